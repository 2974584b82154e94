"""Rulesheets made to explode, drawn at random: `load` and `check` end within their limits, with one clear error.

They run in a child process, which measures the processor time and the memory of each call; a slow machine has more
time. For new examples in tests, the child counts function calls instead (`counted_time`).
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from clocks import counted_time
from explosions import BEGIN, EXPLOSIONS
from gamelore import load
from gamelore.circuit.cache import FOLDER_VARIABLE
from gamelore.errors import GameloreError
from gamelore.game.compile import rulesheet_findings
from gamelore.gdl.limits import Limits
from hostile_constructs import CONSTRUCTS

LIMITS = Limits(seconds=1.0, memory=256 << 20)
REST = 0.5 * LIMITS.seconds + 0.5  # seconds; half a second is for what cannot be interrupted, such as a step of clingo
MOST_MEMORY = int(1.5 * LIMITS.memory) + (64 << 20)
CHECKED = 6e-6  # seconds for each character of a sheet, in addition, to find its mistakes
USUAL = 0.08  # seconds that `_slowness` takes on the machine for which these times are; slower ones have more
TRIES = (
    3  # measurements before a sheet counts as too slow: the time of a virtual machine's neighbours may count as ours
)
# clingo keeps all names and terms of a process in a table that doubles in one step. After many sheets, this step takes
# more memory than any of them.
SHEETS_OF_A_CHILD = 15
HANGS = 60  # seconds of processor time after which the child is ended
COUNTED = "counted"  # the argument of a child that counts calls
LARGEST = 3_000_000  # characters
LONGEST = 2_000  # characters of a message

Clock: TypeAlias = Callable[[], AbstractContextManager[Callable[[], float]]]
"""A function that starts a clock, which tells the seconds since then."""


# ---- sheets -----------------------------------------------------------------------------------------------------


def _join(size: int, random: Random) -> str:
    """Return a rule that joins relations of random arities at random places."""
    arities = [random.randint(1, 4) for _ in range(random.randint(1, 4))]
    names = [f"?v{i}" for i in range(random.randint(2, max(2, size)))]
    values = range(random.choice((2, 10, 60)))
    facts = [
        f"(j{number} {' '.join(str(random.choice(values)) for _ in range(arity))})"
        for number, arity in enumerate(arities)
        for _ in range(random.choice((5, 50, 400)))
    ]
    shape = random.choice(("{}", "{}", "(true {})"))
    body = []
    for _ in range(size):
        number = random.randrange(len(arities))
        chosen = " ".join(random.choice(names) for _ in range(arities[number]))
        body.append(shape.format(f"(j{number} {chosen})"))
    bound = sorted({word.strip("()") for text in body for word in text.split() if word.startswith("?")})
    body += [f"(distinct {random.choice(bound)} {random.choice(bound)})" for _ in range(random.randint(0, 5))]
    head = f"(joined {' '.join(random.sample(bound, random.randint(1, len(bound))))})"
    inits = " ".join(f"(init {fact})" for fact in facts) if shape != "{}" else ""
    return f"{' '.join(facts)} {inits} (<= {head} {' '.join(body)}) (<= (next (seen {bound[0]})) {head})"


def _growth(size: int, random: Random) -> str:
    """Return a recursion in which terms grow, in a static relation or from state to state."""
    arity = random.randint(1, 3)
    arguments = [f"?x{i}" for i in range(arity)]
    grown = f"(s {' '.join(random.choice(arguments) for _ in range(random.randint(1, 3)))})"
    inside = "{}"
    for _ in range(random.randrange(min(size, 100)) + 1):
        inside = f"(s {inside})" if random.random() < 0.5 else inside
    shape, begin = random.choice((("(g {})", "(g {})"), ("(true (g {}))", "(init (g {}))")))
    head = "(next (g {}))" if "true" in shape else shape
    body = " ".join(shape.format(argument) for argument in dict.fromkeys(arguments))
    return f"{begin.format('z')} {begin.format('(a b)')} (<= {head.format(inside.format(grown))} {body})"


def _lists(size: int, random: Random) -> str:
    """Return a relation that walks through a graph with the list of what it has visited."""
    nodes = random.randint(2, max(2, size))
    edges = " ".join(f"(way {i} {j})" for i in range(nodes) for j in range(nodes) if random.random() < 0.5)
    guard = random.choice(("", "(not (in ?c ?l))", "(distinct ?a ?c)", "(not (true (at ?c)))"))
    return f"""{edges} (way 0 1) (init (at 0))
        (<= (path ?a ?b (c ?a (c ?b nil))) (way ?a ?b))
        (<= (path ?a ?c (c ?c ?l)) (path ?a ?b ?l) (way ?b ?c) {guard})
        (<= (in ?a (c ?a ?l)) (path ?b ?d (c ?a ?l)))
        (<= (in ?a (c ?b ?l)) (path ?d ?e (c ?b ?l)) (in ?a ?l))
        (<= (next (at ?b)) (path ?a ?b ?l) (true (at ?a)))"""


def _board(size: int, random: Random) -> str:
    """Return a board of several dimensions, and moves between its cells."""
    sides = " ".join(f"(side {i})" for i in range(size))
    places = [f"?p{i}" for i in range(random.randint(1, 4))]
    targets = [f"?t{i}" for i in range(random.randint(1, 3))]
    on = " ".join(f"(side {name})" for name in (*places, *targets))
    return f"""{sides}
        (<= (init (on {" ".join(places)} blank)) {on.partition(" (side ?t")[0]})
        (<= (legal x (put {" ".join((*places, *targets))})) {on})
        (<= (next (on {" ".join(places)} full)) (does x (put {" ".join((*places, *targets))})))"""


def _deep(size: int, random: Random) -> str:
    """Return terms and conditions that are nested, wide or long."""
    depth, width = random.randint(1, min(size, 150)), random.randint(1, size)
    return random.choice(
        (
            f"(init (d {'(f ' * depth}a{')' * depth}))" * width,
            f"(init (d {' '.join(['a'] * width)})) (<= (next (d ?x)) (true (d {' '.join(['?x'] * width)})))",
            f"(<= (deep ?x) {'(not (not ' * (depth // 2)}(true (d ?x)){'))' * (depth // 2)})",
            f"(<= (deep ?x) {'(or (true (d ?x)) (and ' * (depth // 3)}(true (e ?x)){'))' * (depth // 3)})",
            f"(init {'a' * size * 10})",
        )
    )


def _many(size: int, random: Random) -> str:
    """Return many roles, moves, relations or constants, some of which depend on each other."""
    kind = random.choice(
        (
            "(role r{0}) (<= (legal r{0} m{1}) (true (step 0)))",
            "(legal x m{0})",
            "(<= (k{0} ?x) (k{1} ?x) (not (k{2} ?x)))",
            "(<= (k{0} ?x ?y) (k{1} ?x ?y)) (k{2} a b)",
            "(<= (next (h {0})) (true (h {1})) (not (true (h {2}))))",
            "(goal x {0})",
        )
    )
    return " ".join(kind.format(i, random.randrange(size), random.randrange(size)) for i in range(size))


def _late(size: int, random: Random) -> str:
    """Return a join without a result that begins only after many ground rules."""
    pads = _facts("pad", size)
    begin = "(<= (init (pad ?a ?b)) (pad ?a) (pad ?b)) (<= (next (pad 0 ?a)) (true (pad 0 ?a)) (true (pad ?a 0)))"
    needed = f"(true (step 0)) (true (pad 0 {random.randrange(size)}))"
    return f"{pads} {begin} {EXPLOSIONS['clique'][0](7).replace('(true (step 0))', needed)}"


def _rejected(size: int, random: Random) -> str:
    """Return joins of derived relations that another condition rejects at the end, as many as wanted."""
    first, second = random.choice(((1000, 100), (300, 300), (50, 50)))
    last = random.choice((30, 300))
    rule = "(<= (w{0}) (big ?a ?b) (c ?c) (not (bc ?b ?c))) (<= (legal x k) (w{0}))"
    return f"""{_facts("a", first)} {_facts("b", second)} {_facts("c", last)}
        (<= (big ?a ?b) (a ?a) (b ?b)) (<= (bc ?b ?c) (b ?b) (c ?c)) {" ".join(rule.format(i) for i in range(size))}"""


def _equal(size: int, random: Random) -> str:
    """Return many joins of medium length, none of which has a result."""
    nodes = random.randint(2, 25)
    pairs = [(i, j) for i in range(nodes) for j in range(nodes)]
    facts = " ".join(f"(z {i} {j}) (h {i} {j})" for i, j in pairs) + " ".join(
        f"(e {i} {j})" for i, j in pairs if i != j
    )
    join = " ".join(
        [*(f"(e ?v{i} ?v{i + 1})" for i in range(4)), "(z ?v0 ?v2) (z ?v1 ?v3) (z ?v2 ?v4) (not (h ?v0 ?v4))"]
    )
    return f"{facts} {' '.join(f'(<= (next (won {i})) (true (step 0)) {join})' for i in range(size))}"


def _facts(name: str, size: int) -> str:
    return " ".join(f"({name} {i})" for i in range(size))


KINDS: dict[str, tuple[Callable[[int, Random], str], int]] = {
    "random join": (_join, 40),
    "random growth": (_growth, 100),
    "random lists": (_lists, 14),
    "random board": (_board, 200),
    "deep": (_deep, 20_000),
    "many": (_many, 30_000),
    "late join": (_late, 600),
    "rejected joins": (_rejected, 100),
    "equal joins": (_equal, 400),
    **CONSTRUCTS,
    **{name: (lambda size, _, make=make: make(size), most) for name, (make, most) in EXPLOSIONS.items()},
}
"""Name -> function that makes the rules, and the size at which they explode."""


def drawn(random: Random) -> dict[str, Any]:
    """Draw one or two kinds of explosions, each with a size and a seed."""
    kinds = random.sample(list(KINDS), random.choice((1, 1, 2)))
    return {"parts": [[kind, _size(KINDS[kind][1], random), random.randrange(1000)] for kind in kinds]}


def _size(most: int, random: Random) -> int:
    """Draw a size: full, or of any order of magnitude."""
    return most if random.random() < 0.3 else max(1, round(most ** random.random() * random.uniform(0.5, 1.2)))


def text_of(example: dict[str, Any]) -> str:
    """Return the rulesheet of an example; of one that is too long, the begin."""
    parts = (KINDS[kind][0](size, Random(seed)) for kind, size, seed in example["parts"])
    text = BEGIN + "\n".join(parts)
    return text if len(text) <= LARGEST else text[: text.rfind(" (", 0, LARGEST)]


def smaller(example: dict[str, Any], fails: Callable[[Any], bool]) -> dict[str, Any]:
    """Leave out parts, and halve sizes."""
    parts = example["parts"]
    while True:
        fewer = [[*parts[:place], *parts[place + 1 :]] for place in range(len(parts)) if len(parts) > 1]
        for place, (kind, size, seed) in enumerate(parts):
            fewer += [[*parts[:place], [kind, less, seed], *parts[place + 1 :]] for less in (size // 2, size * 7 // 8)]
        better = next((other for other in fewer if all(part[1] for part in other) and fails({"parts": other})), None)
        if better is None:
            return {"parts": parts}
        parts = better


# ---- in the child -----------------------------------------------------------------------------------------------


def main() -> None:
    """Read an example from each line; print the length of its rules, and what `load` and `check` did with them."""
    clock, slowness = (counted_time, 1.0) if COUNTED in sys.argv else (_processor_clock, _slowness())
    load("tictactoe")
    rulesheet_findings(BEGIN, limits=LIMITS)
    for line in sys.stdin:
        text = text_of(json.loads(line))
        with TemporaryDirectory() as folder:  # what could not be loaded is remembered, and not tried again
            os.environ[FOLDER_VARIABLE] = folder
            measured = [_measured(work, text, clock) | {"slowness": slowness} for work in (_loaded, _checked)]
            print(json.dumps([len(text), *measured]), flush=True)


def _loaded(text: str) -> list[str]:
    """Return the message of the error that loading raises; nothing if it raises none."""
    try:
        load(text, limits=LIMITS)
    except GameloreError as error:
        return [str(error)]
    return []


def _checked(text: str) -> list[str]:
    """Return the findings."""
    return list(map(str, rulesheet_findings(text, limits=LIMITS)))


def _measured(work: Callable[[str], list[str]], text: str, clock: Clock) -> dict[str, Any]:
    """Return the messages of a call, its seconds, and the bytes by which the memory of the process grew."""
    soft = int(_processor_time()) + HANGS
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # let the peak of the memory begin anew
    before = _memory("VmRSS")
    with clock() as now:
        messages, seconds = work(text), now()
    return {"messages": messages, "seconds": seconds, "memory": _memory("VmHWM") - before}


def _slowness() -> float:
    """Return how many times as long as usual this machine takes, at least 1."""
    begin = _processor_time()
    sum(number * number % 7 for number in range(2_000_000))
    return max(1.0, (_processor_time() - begin) / USUAL)


@contextmanager
def _processor_clock() -> Iterator[Callable[[], float]]:
    begin = _processor_time()
    yield lambda: _processor_time() - begin


def _processor_time() -> float:
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(kilobytes) << 10


# ---- the fuzzer -------------------------------------------------------------------------------------------------


class Figures:
    """The worst of all sheets so far."""

    def __init__(self) -> None:
        self.sheets = self.refused = 0
        self.worst: dict[str, tuple[float, str]] = {}

    def add(self, what: str, value: float, example: dict[str, Any]) -> None:
        parts = " + ".join(f"{kind} {size}" for kind, size, _ in example["parts"])
        self.worst[what] = max(self.worst.get(what, (0.0, "")), (value, parts))

    def __str__(self) -> str:
        worst = ", ".join(f"{what} {value:.2f} ({parts})" for what, (value, parts) in self.worst.items())
        return f"{self.sheets} sheets, {self.refused} refused by load; the worst: {worst}"


class Measuring:
    """A child process that takes some sheets, one after the other. It is started when needed, with these arguments."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.figures = Figures()
        self._process: subprocess.Popen[str] | None = None
        self._sheets_left = 0  # of this process

    def __call__(self, example: dict[str, Any]) -> None:
        """Assert that loading and checking a sheet end within the limits, with one error or a few findings."""
        for tries_left in reversed(range(TRIES)):
            length, loading, checking = self._measured(example)
            most_loading = LIMITS.seconds + loading["slowness"] * REST
            most_checking = most_loading + checking["slowness"] * CHECKED * length
            if (loading["seconds"] <= most_loading and checking["seconds"] <= most_checking) or not tries_left:
                break
        self.figures.sheets += 1
        self.figures.refused += bool(loading["messages"])
        for what, told in (("load", loading), ("check", checking)):
            self.figures.add(f"{what} s", told["seconds"], example)
            self.figures.add(f"{what} MiB", told["memory"] / (1 << 20), example)
            assert told["memory"] <= MOST_MEMORY + 100 * length, f"{what} took {told['memory'] >> 20} MiB"
            assert max(map(len, told["messages"]), default=0) <= LONGEST, f"{what} told too much"
        assert loading["seconds"] <= most_loading, f"load took {loading['seconds']:.2f} s"
        assert checking["seconds"] <= most_checking, f"check took {checking['seconds']:.2f} s"
        assert len(loading["messages"]) <= 1, loading["messages"]
        assert all("emedy: " in message for message in loading["messages"]), loading["messages"]

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _measured(self, example: dict[str, Any]) -> list[Any]:
        """Return what the child measured. Raise AssertionError with the last line that it printed if it dies."""
        if not self._sheets_left:
            self.close()
        self._sheets_left -= 1
        if self._process is None:
            self._sheets_left = SHEETS_OF_A_CHILD - 1
            self._process = subprocess.Popen(
                [sys.executable, __file__, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(example) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            self._process = None
            _, errors = process.communicate()
            last = (errors.strip().splitlines() or ["no message"])[-1]
            raise AssertionError(f"expected an answer, got exit code {process.returncode}: {last}")
        measured: list[Any] = json.loads(line)
        return measured


@contextmanager
def session(*arguments: str) -> Iterator[Callable[[Any], None]]:
    """One child process for many sheets."""
    measuring = Measuring(*arguments)
    try:
        yield measuring
    finally:
        measuring.close()


def counted_session() -> AbstractContextManager[Callable[[Any], None]]:
    """The same, and the child counts calls."""
    return session(COUNTED)


def assert_bounded(example: dict[str, Any]) -> None:
    """Load and check a sheet in a child process of its own."""
    with session() as check:
        check(example)


if __name__ == "__main__":
    main()
