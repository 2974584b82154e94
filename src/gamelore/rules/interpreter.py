"""The machine code that evaluates tapes, and the functions of a circuit that is on tapes."""

from __future__ import annotations

from contextlib import ExitStack
from ctypes import c_void_p
from functools import partial

from .ir import Code
from .kernels import load_kernel
from .planes import ONES, VECTOR
from .tape import COMMIT, END, HEADER, PLANE, SHAPES, Tapes

WORD = "i32"


class TapedCode:
    """Functions that evaluate tapes; each takes the address of the planes."""

    def __init__(self, tapes: Tapes) -> None:
        self.num_planes = tapes.num_planes
        self._words = tapes.words  # the machine code reads them
        self._code = load_kernel(_tape_code(list(tapes.words)))
        for name, words in tapes.words.items():
            c_void_p.from_address(self._code.address_of_data(f"{name}_tape")).value = words.ctypes.data

    def address(self, function: str) -> int:
        """Where a function begins."""
        return self._code.address(function)


def _tape_code(names: list[str]) -> str:
    """IR of a function `<name>(planes)` for each name, which evaluates the tape whose address is in `<name>_tape`."""
    functions = []
    for name in names:
        code = Code(f"void @{name}(ptr %p)")
        code.do(f"call void @evaluate(ptr %p, ptr {code.line(f'load ptr, ptr @{name}_tape')})")
        functions += [f"@{name}_tape = global ptr null", code.text()]
    return "\n".join([_evaluate(), *functions])


class _TapeCode(Code):
    """A function that goes along the tape `%t` with the planes `%p`."""

    def __init__(self, signature: str) -> None:
        super().__init__(signature)
        self.place = self.number()  # of the next word

    def word(self, ahead: int = 0) -> str:
        """A word of the tape, as a number."""
        place = self.calc("add", self.place.get(), ahead)
        return self.line(f"zext i32 {self.get('%t', place, WORD)} to i64")

    def skip(self, words: int) -> None:
        self.place.set(self.calc("add", self.place.get(), words))

    def load_at(self, offset: str) -> str:
        """A plane, by its place in bytes."""
        return self.line(f"load {VECTOR}, ptr {self._byte(offset)}, align {PLANE}")

    def store_at(self, offset: str, plane: str) -> None:
        self.do(f"store {VECTOR} {plane}, ptr {self._byte(offset)}, align {PLANE}")

    def _byte(self, offset: str) -> str:
        return self.line(f"getelementptr i8, ptr %p, i64 {offset}")

    def mask(self, flag: str) -> str:
        """All lanes where the flag, a number, is 1, none where it is 0."""
        return self.all_lanes(self.calc("sub", 0, flag))


def _evaluate() -> str:
    """`evaluate(planes, tape)`."""
    code = _TapeCode("internal void @evaluate(ptr %p, ptr %t)")
    shape = code.number()

    def more() -> str:
        shape.set(code.word())
        return code.compare("ne", shape.get(), END)

    runs = {number: partial(_run_of, code, *operands) for number, operands in enumerate(SHAPES, start=1)}
    runs[COMMIT] = partial(_commit, code)
    with code.repeat(more), ExitStack() as choices:
        for number, run in runs.items():
            otherwise = choices.enter_context(code.choice(code.compare("eq", shape.get(), number)))
            run()
            otherwise()
        _run_of_any_shape(code)
    return code.text()


def _run_of(code: _TapeCode, num_plain: int, num_negated: int) -> None:
    """Gates with a few operands, in registers."""
    inverted, count = code.mask(code.word(1)), code.word(4)
    code.skip(HEADER)
    with code.loop(count):
        planes = [code.load_at(code.word(place)) for place in range(1, 1 + num_plain + num_negated)]
        result = ONES
        for plane in planes[:num_plain]:
            result = code.op("and", result, plane)
        if num_negated:
            result = code.without(result, code.any_of(planes[num_plain:]))
        code.store_at(code.word(), code.op("xor", result, inverted))
        code.skip(1 + num_plain + num_negated)


def _run_of_any_shape(code: _TapeCode) -> None:
    """Gates with any number of operands, one after the other."""
    inverted, num_plain, num_negated, count = code.mask(code.word(1)), code.word(2), code.word(3), code.word(4)
    code.skip(HEADER)
    with code.loop(count):
        place = code.word()
        code.skip(1)
        result = code.plane(ONES)
        with code.loop(num_plain):
            result.set(code.op("and", result.get(), code.load_at(code.word())))
            code.skip(1)
        with code.loop(num_negated):
            result.set(code.without(result.get(), code.load_at(code.word())))
            code.skip(1)
        code.store_at(place, code.op("xor", result.get(), inverted))


def _commit(code: _TapeCode) -> None:
    """The variables of a loop take over their results; where one changes, the loop is swept again."""
    start, back, count = code.place.get(), code.word(2), code.word(4)
    code.skip(HEADER)
    changed = code.plane()
    with code.loop(count):
        variable, result = code.word(), code.word(1)
        new = code.load_at(code.calc("and", result, -2))
        new = code.op("xor", new, code.mask(code.calc("and", result, 1)))
        changed.set(code.op("or", changed.get(), code.op("xor", new, code.load_at(variable))))
        code.store_at(variable, new)
        code.skip(2)
    with code.when(code.any(changed.get())):
        code.place.set(code.calc("sub", start, back))
