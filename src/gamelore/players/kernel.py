"""The numba decorator `kernel` for compiled loops, and the array types of their parameters.

`I32` is a C-contiguous array int32[n], `I32x2` is a two-dimensional array int32[n, m], and so on. For a type checker,
these types are plain arrays. A kernel is compiled once, for exactly the types in its annotations. The same machine code
then serves every game and every array length. A parameter may also be a `NamedTuple` of such types. Kernels can call
other machine code by its address, and can tell the time. `lazy_zeros` makes large arrays for them.

Machine code that is in the cache is loaded with the first call, because most programs call few of the kernels that they
import. A program that must answer in time calls `load_kernels` first. A kernel that calls `sum`, `max` or `argmax` of
an array would import scipy when it is loaded, which takes as long as to load dozens of kernels: write a loop instead.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from math import prod
from pathlib import Path
from pickle import UnpicklingError
from types import NoneType
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba.core.caching import FunctionCache, NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic
from numpy.typing import DTypeLike, NDArray

F = TypeVar("F", bound=Callable[..., Any])

Bool: TypeAlias = Annotated[NDArray[np.bool_], "boolean[::1]"]
Boolx2: TypeAlias = Annotated[NDArray[np.bool_], "boolean[:, ::1]"]
F32: TypeAlias = Annotated[NDArray[np.float32], "float32[::1]"]
F32x2: TypeAlias = Annotated[NDArray[np.float32], "float32[:, ::1]"]
F32x3: TypeAlias = Annotated[NDArray[np.float32], "float32[:, :, ::1]"]
F64: TypeAlias = Annotated[NDArray[np.float64], "float64[::1]"]
F64x2: TypeAlias = Annotated[NDArray[np.float64], "float64[:, ::1]"]
I16: TypeAlias = Annotated[NDArray[np.int16], "int16[::1]"]
I16x2: TypeAlias = Annotated[NDArray[np.int16], "int16[:, ::1]"]
I32: TypeAlias = Annotated[NDArray[np.int32], "int32[::1]"]
I32x2: TypeAlias = Annotated[NDArray[np.int32], "int32[:, ::1]"]
I32x3: TypeAlias = Annotated[NDArray[np.int32], "int32[:, :, ::1]"]
I64: TypeAlias = Annotated[NDArray[np.int64], "int64[::1]"]
I64x2: TypeAlias = Annotated[NDArray[np.int64], "int64[:, ::1]"]
I8: TypeAlias = Annotated[NDArray[np.int8], "int8[::1]"]
I8x2: TypeAlias = Annotated[NDArray[np.int8], "int8[:, ::1]"]
U64: TypeAlias = Annotated[NDArray[np.uint64], "uint64[::1]"]
U64x2: TypeAlias = Annotated[NDArray[np.uint64], "uint64[:, ::1]"]
U64x4: TypeAlias = Annotated[NDArray[np.uint64], "uint64[:, :, :, ::1]"]
U16: TypeAlias = Annotated[NDArray[np.uint16], "uint16[::1]"]
U8: TypeAlias = Annotated[NDArray[np.uint8], "uint8[::1]"]
U8x2: TypeAlias = Annotated[NDArray[np.uint8], "uint8[:, ::1]"]
Int8: TypeAlias = Annotated[int, "int8"]
Int32: TypeAlias = Annotated[int | np.int32, "int32"]

_SCALARS = {int: "int64", float: "float64", bool: "boolean", np.uint64: "uint64", np.int32: "int32", NoneType: "void"}

_LARGE, _HUGE = 1 << 18, 1 << 22  # bytes of an array with pages of its own, and of one with huge pages, as in numpy
_HAS_CLOCK = hasattr(time, "clock_gettime")  # whether the system has a POSIX clock
_MONOTONIC = time.CLOCK_MONOTONIC if _HAS_CLOCK else 0

_njit: Any = numba.njit  # its type hints do not know all of these options
_FunctionCache: Any = FunctionCache  # it has no type hints
_compiler_lock: Any = global_compiler_lock  # it has no type hints
# These options but the first, and what `_Inlined`, `_Unloaded` and `_Cache` change, are private to numba: see
# tests/players/test_kernel.py.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}


def lazy_zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros, to which the system gives memory only as they are written.

    `np.zeros` does so only until the first large array is freed: from then on, glibc keeps such blocks, and fills them.
    """
    num_bytes = prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
    if num_bytes < _LARGE:
        return np.zeros(shape, dtype)
    try:
        pages = mmap.mmap(-1, num_bytes, access=mmap.ACCESS_COPY)
    except OSError:
        return np.zeros(shape, dtype)  # which raises MemoryError if there is none left
    if sys.platform == "linux" and num_bytes >= _HUGE:
        with suppress(OSError):  # a system without huge pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype).reshape(shape)


def kernel(function: F) -> F:
    """Compile a loop over arrays for the types of its annotations. It cannot call itself.

    The machine code is cached beside the source file, in `__pycache__`, until this file changes, or what the code
    contains of other files; see `_Cache`.
    """
    return _compile(function)


def inlined(function: F) -> F:
    """Compile a function for use inside kernels, as a part of their machine code. It cannot make arrays.

    Such a function does not count the references to its arrays. Counting would take longer than most of these
    functions. It has no entry for Python, because an entry doubles the time to compile it. So a call from Python raises
    TypeError.
    """
    # without forceinline, LLVM leaves the larger ones as calls, and copies all arrays of a tuple in each call
    dispatcher = _cached(function, _nrt=False, forceinline=True, no_cpython_wrapper=True)
    dispatcher.__class__ = _Inlined
    return cast(F, dispatcher)


class _Inlined(CPUDispatcher):
    """A function that only kernels can call."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise TypeError. Without this method, a call from Python would crash the process."""
        name = self.py_func.__name__
        raise TypeError(
            f"expected a kernel to call {name}, got a call from Python; write a function with the decorator kernel "
            f"that calls {name}, and call that function"
        )

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the function together with the first kernel that calls it; not at all if all are in the cache."""
        if not self.signatures:
            _compile_single(self, _signature(self.py_func))
        return super().get_call_template(args, kws)


def kernel_without_refcounts(function: F) -> F:
    """Compile a loop that makes no arrays. It reads arrays from tuples without cost, see `inlined`."""
    return _compile(function, _nrt=False)


def kernel_without_gil(function: F) -> F:
    """Compile a loop as `kernel` does. Other threads of Python run during a call.

    Where they change the same arrays, it needs `acquire`, `release` and `increment`.
    """
    return _compile(function, nogil=True)


def _compile(function: F, **options: bool) -> F:
    dispatcher, signature = _cached(function, **options), _signature(function)
    if not isinstance(dispatcher._cache, NullCache) and dispatcher._cache.has_code(signature, dispatcher.targetctx):
        dispatcher.__class__ = _Unloaded
        _to_load.append(dispatcher)
    else:
        _compile_single(dispatcher, signature)
    return cast(F, dispatcher)


def _compile_single(dispatcher: Any, signature: Any) -> None:
    """Compile a function for one signature, or load its code from the cache, and refuse all other signatures."""
    dispatcher.compile(signature)
    dispatcher.disable_compile()


class _Unloaded(CPUDispatcher):
    """A kernel whose machine code is in the cache. With its first use, it becomes a usual dispatcher with this code."""

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """Load the kernel, and call it."""
        _load(self)
        return self(*args, **kws)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Load the kernel, because another function that calls it is compiled."""
        _load(self)
        return self.get_call_template(args, kws)


_to_load: list[Any] = []  # kernels for `load_kernels`; a call may have loaded some of them


def load_kernels() -> None:
    """Load the machine code of all imported kernels now, so that no later call takes time to load its own."""
    with _compiler_lock:
        while _to_load:
            kernel = _to_load.pop()
            try:
                _load(kernel)
            except BaseException:
                _to_load.append(kernel)  # so that the next call raises the error again
                raise


def _load(kernel: Any) -> None:
    with _compiler_lock:  # with a lock of our own, two threads could wait for each other
        if not kernel.signatures:
            _compile_single(kernel, _signature(kernel.py_func))
        kernel.__class__ = CPUDispatcher  # last, because other threads may call the kernel


def _cached(function: Callable[..., Any], **options: bool) -> Any:
    dispatcher = _njit(**_OPTIONS, **options)(function)
    with suppress(RuntimeError):  # no folder for the cache can be written
        dispatcher._cache = _Cache(function)
    return dispatcher


_UNUSABLE = (OSError, EOFError, UnpicklingError)  # the last two if a loss of power left zeros, or a part of a file


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Machine code on the disk. Where a disk is full or a file is damaged, the process compiles the code again.

    numba stores a hash of the source file in the index, and begins a new index after a change of the file. The machine
    code contains the functions that it calls, so a hash of their sources is stored, too.
    """

    _is_stamped = False

    def _stamp(self) -> None:
        """Take the sources into account. This has to wait for the first use: the functions may be defined later."""
        if not self._is_stamped:
            self._is_stamped = True
            self._cache_file._source_stamp = self._cache_file._source_stamp, _sources(self._py_func)

    def has_code(self, sig: Any, target_context: Any) -> bool:
        """Return whether there is code for a signature. It may turn out to be damaged when it is loaded."""
        self._stamp()
        with suppress(*_UNUSABLE):
            return self._index_key(sig, target_context.codegen()) in self._cache_file._load_index()
        return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature; None if there is none, or none that can be read.

        numba would first import its whole compiler, and scipy for it. This takes longer than to load the kernels that
        most programs need. The compiler is imported anyway as soon as it has something to compile.
        """
        self._stamp()
        try:
            rtsys.initialize(target_context)  # which kernels need to make arrays
            return self._load_overload(sig, target_context)
        except _UNUSABLE:
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the code for a signature, if the disk allows it."""
        self._stamp()
        with suppress(*_UNUSABLE):
            super().save_overload(sig, data)


def _sources(function: Callable[..., Any]) -> str:
    """Return a hash of everything in source files on which the machine code of a function depends.

    These are the files of the function and of all functions that it calls, constants, and the fields of its tuples.
    """
    parts, done, todo = set[str](), set[Callable[..., Any]](), [function]
    while todo:
        done.add(called := todo.pop())
        own, further = _own_sources(called)
        parts |= own
        todo += further - done
    return sha256("\n".join(sorted(parts)).encode()).hexdigest()


@cache
def _own_sources(function: Callable[..., Any]) -> tuple[frozenset[str], frozenset[Callable[..., Any]]]:
    """Return on what a function depends without the functions that it calls, and these."""
    parts, called = {_file_hash(function.__code__.co_filename)}, set[Callable[..., Any]]()
    names = {*function.__code__.co_names, *map(str, function.__annotations__.values())}
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if isinstance(value, CPUDispatcher):
            called.add(value.py_func)
        elif isinstance(value, _Intrinsic):
            parts.add(_file_hash(value._defn.__code__.co_filename))
        elif isinstance(value, type) and hasattr(value, "_fields"):
            parts.add(_fields(value))
        elif isinstance(value, int | float | tuple | np.generic):
            parts.add(f"{name} = {value!r}")
    return frozenset(parts), frozenset(called)


@cache
def _file_hash(path: str) -> str:
    """Return a hash of a source file; "" if there is no such file, as for the cells of a notebook."""
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


@cache
def _fields(hint: Any) -> str:
    """Return the names and the types of the fields of a NamedTuple, and of those inside it."""
    fields = get_type_hints(hint, include_extras=True)
    types = [_fields(own) if hasattr(own, "_fields") else str(own) for own in fields.values()]
    return f"{hint.__name__}({', '.join(map(': '.join, zip(fields, types, strict=True)))})"


@cache  # needed twice: to look for the code on the disk, and to load it
def _signature(function: Callable[..., Any]) -> Any:
    hints = get_type_hints(function, include_extras=True)
    returned = _numba_type(hints.pop("return"))
    return returned(*map(_numba_type, hints.values()))


@cache
def _numba_type(hint: Any) -> Any:
    """Return the numba type of an annotated type."""
    join: Any = numba.types.BaseTuple.from_types
    if get_origin(hint) is tuple:
        return join(tuple(map(_numba_type, get_args(hint))))
    if hasattr(hint, "_fields"):  # a NamedTuple
        fields = get_type_hints(hint, include_extras=True)
        return join(tuple(map(_numba_type, fields.values())), hint)
    name = hint.__metadata__[0] if get_origin(hint) is Annotated else _SCALARS[hint]
    return normalize_signature(f"{name}()")[1]  # type: ignore[no-untyped-call]


@intrinsic
def _call_address(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call machine code at an address with integers as arguments; return an integer. For use inside kernels."""
    signature = numba.types.int64(address, arguments)
    count = arguments.count

    def write_call(_: Any, builder: Any, signature: Any, values: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(number, [number] * count).as_pointer()
        given = [builder.extract_value(values[1], i) for i in range(count)]
        return builder.call(builder.inttoptr(values[0], function), given)

    return signature, write_call


call_address: Any = _call_address  # type checkers do not know that numba passes the context


def new_clock() -> NDArray[np.int64]:
    """Return a clock for `read_clock`: int64[3], the address of clock_gettime, and its output.

    The address is 0 on a system without a POSIX clock. It is not a constant of kernels, because their code is cached
    and the address differs between processes.
    """
    address = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value if _HAS_CLOCK else 0
    return np.array([address, 0, 0], np.int64)


def has_time(clock: I64) -> bool:
    """Return whether `read_clock` tells the time, see `new_clock`."""
    return bool(clock[0])


@inlined
def read_clock(clock: I64) -> int:
    """Return the time in nanoseconds since some fixed moment; 0 on a system without a POSIX clock."""
    if clock[0] == 0:
        return 0
    call_address(clock[0], (_MONOTONIC, clock[1:].ctypes.data))
    return int(clock[1] * 1_000_000_000 + clock[2])


def _prefetching(is_changed: bool) -> Any:
    """Return what asks for the line of the cache with an address, without waiting for it. For use inside kernels.

    `is_changed` tells whether the line will be changed, so that no other core may keep it.
    """

    def prefetching(typing_context: Any, address: Any) -> Any:
        def write_prefetch(_: Any, builder: Any, __: Any, values: Any) -> Any:
            number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
            function = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], function)
            # to be kept in all levels of the cache, data
            arguments = [builder.inttoptr(values[0], byte), number(int(is_changed)), number(3), number(1)]
            builder.call(instruction, arguments)

        return numba.types.void(address), write_prefetch

    return intrinsic(prefetching)


prefetch, prefetch_to_change = _prefetching(False), _prefetching(True)


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Count the zeros below the lowest bit of a word that is set; for a word without such a bit, 64."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return numba.uint64(numba.uint64), generate


_count_trailing_zeros: Any = _trailing_zeros  # type checkers do not know that numba passes the context


@inlined
def lowest_bit(word: np.uint64) -> int:
    """Return the number of the lowest bit of a word that is set; for use inside kernels."""
    return int(_count_trailing_zeros(word))


# ---- arrays that several threads share ----


@intrinsic
def _atomic_add(typing_context: Any, address: Any, amount: Any) -> Any:
    """Add to the int32 at an address so that no other thread's change is lost. For use inside kernels."""
    signature = numba.types.void(address, numba.types.int32)

    def write_addition(_: Any, builder: Any, __: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], ir.IntType(32).as_pointer())
        builder.atomic_rmw("add", pointer, values[1], "monotonic")

    return signature, write_addition


@intrinsic
def _atomic_exchange(typing_context: Any, address: Any, number: Any) -> Any:
    """Write an int64 to an address, and return the one before. What other threads released is seen after it."""
    signature = numba.types.int64(address, numba.types.int64)

    def write_exchange(_: Any, builder: Any, __: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("xchg", pointer, values[1], "acq_rel")

    return signature, write_exchange


@intrinsic
def _atomic_load(typing_context: Any, address: Any) -> Any:
    """Read an int64 at an address anew. For use inside kernels."""

    def write_load(_: Any, builder: Any, __: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "monotonic", 8)

    return numba.types.int64(address), write_load


@intrinsic
def _fence(typing_context: Any) -> Any:
    """Let other threads see all changes so far before any later one, and read anew. For use inside kernels."""

    def write_fence(_: Any, builder: Any, __: Any, ___: Any) -> Any:
        builder.fence("acq_rel")

    return numba.types.void(), write_fence


# type checkers do not know that numba passes the context
fence: Any = _fence
_add_atomically: Any = _atomic_add
_exchange: Any = _atomic_exchange
_load_anew: Any = _atomic_load
_SPINS = 64  # between two calls that let another thread run


def new_lock() -> NDArray[np.int64]:
    """Return a lock for `acquire`: int64[2], 1 if a thread has it, and the address of sched_yield.

    The address is 0 on a system without this function, where a thread waits in a loop.
    """
    function = getattr(ctypes.CDLL(None), "sched_yield", None) if _HAS_CLOCK else None
    address = ctypes.cast(function, ctypes.c_void_p).value if function else 0
    return np.array([0, address], np.int64)


@inlined
def acquire(lock: I64) -> None:
    """Wait until no other thread has a lock, and take it. For use inside kernels without the GIL."""
    spins = 0
    while _exchange(lock.ctypes.data, 1) != 0:
        while _load_anew(lock.ctypes.data) != 0:  # an exchange would take the line of the cache from the owner
            spins += 1
            if spins % _SPINS == 0 and lock[1] != 0:
                call_address(lock[1], (0,))


@inlined
def release(lock: I64) -> None:
    """Give a lock back. For use inside kernels."""
    _exchange(lock.ctypes.data, 0)


@inlined
def increment(numbers: I32, index: int, is_shared: bool) -> None:
    """Add 1 to a number; `is_shared` tells whether other threads may do so at the same time."""
    if is_shared:
        _add_atomically(numbers.ctypes.data + 4 * index, np.int32(1))
    else:
        numbers[index] += 1
