"""Fixtures of the whole suite, and small games that several tests play."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

import gamelore
from drawn_trees import WALKING
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import Lessons
from gamelore.players.position_graph import PositionGraph

SHARED = Path(__file__).resolve().parents[2] / "shared"
SLOW = Path(__file__).parent / "slow.txt"  # test functions of a fifth of a second or more; from --durations=0


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells let background jobs ignore Ctrl-C, and processes inherit it: tests that interrupt one would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    """Let the second worker begin with the modules that others import last.

    So in a fresh checkout, two workers share the work to compile all kernels.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        for name in ("search.native_growth", "puzzles.portfolio", "learning.sequences.seqplayer"):
            import_module(f"gamelore.{name}")


@pytest.fixture
def lessons(tmp_path: Path) -> Iterator[Lessons]:
    """The lessons in a new store."""
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        yield Lessons(knowledge)


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Remove what a test added to the logs: commands that run in this process set them up for the whole process."""
    own = logging.getLogger("gamelore")
    before = logging.root.handlers[:], logging.root.level, own.level
    yield
    logging.root.handlers[:], logging.root.level, own.level = before


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Let typer make the commands of an app once: it takes a fifth of a second, and did so for each call of one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow.txt, which `make test-fast` leaves out; let `--dist loadgroup` see the groups of tests."""
    slow = set(SLOW.read_text(encoding="utf-8").split())
    for item in items:
        if item.nodeid.partition("@")[0].partition("[")[0] in slow:
            item.add_marker("slow")
        # pytest-xdist 3.8 adds "@group" to an attribute that pytest 9.2 does not read: pytest-dev/pytest-xdist#1386
        with_group = vars(item).get("_nodeid", item.nodeid)
        if with_group != item.nodeid:
            item._id = type(item._id).parse(with_group)  # type: ignore[attr-defined]


# Both choose at once: a wins whatever happens, b wins or loses, c never ends at once, d draws.
ONE_SHOT = """
(role row) (role column)
(init first)
(legal row a) (legal row b) (legal row c) (legal row d)
(legal column x) (legal column y)
(<= (next won) (does row a))
(<= (next won) (does row b) (does column x))
(<= (next lost) (does row b) (does column y))
(<= (next later) (true first) (does row c))
(<= (next later) (true later) (does row c))
(<= (next drawn) (does row d))
(<= terminal (true won))
(<= terminal (true lost))
(<= terminal (true drawn))
(<= (goal row 100) (true won)) (<= (goal column 0) (true won))
(<= (goal row 0) (true lost)) (<= (goal column 100) (true lost))
(<= (goal row 50) (true drawn))
"""

# A tree in which white moves at the root and black below. Leaves with white's goal (black's is 100 minus that):
#     root -l-> p:  -> leaf 40, -> leaf 90
#     root -m-> q:  -> leaf 0,  -> deep -> (white again) leaf 100 or leaf 10
#     root -r-> leaf 30
TREE = (
    """
(role white) (role black)
(init (at root)) (init (control white))
(edge root l p) (edge root m q) (edge root r leaf30)
(edge p l leaf40) (edge p r leaf90)
(edge q l leaf0) (edge q r deep)
(edge deep l leaf100) (edge deep r leaf10)
(leaf leaf0 0 100) (leaf leaf10 10 90) (leaf leaf30 30 70) (leaf leaf40 40 60) (leaf leaf90 90 10)
(leaf leaf100 100 0)
"""
    + WALKING
)

# One player walks for ever (stay), into a dead end without being over (trap), or out, where no goal is given.
WALK = """
(role walker)
(init (at hall))
(legal_in hall stay) (legal_in hall trap) (legal_in hall leave)
(<= (legal walker ?m) (true (at ?n)) (legal_in ?n ?m))
(<= (next (at hall)) (does walker stay))
(<= (next (at dead_end)) (does walker trap))
(<= (next (at garden)) (does walker leave))
(<= terminal (true (at garden)))
(<= (goal walker 70) (true (at attic)))
"""

TEXTS = {"one_shot": ONE_SHOT, "tree": TREE, "walk": WALK}


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of test material beside the project: public rulesheets and recorded play, not ours to ship."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: the public rulesheets and traces lie beside the project, and only there")
    return SHARED


@cache
def load(name: str, engine: str = "auto") -> gamelore.Game:
    return gamelore.load(TEXTS.get(name, name), engine=engine)  # type: ignore[arg-type]


@pytest.fixture(name="load")
def load_fixture() -> Callable[..., gamelore.Game]:
    """Loads a shipped game or one of TEXTS, once."""
    return load


@pytest.fixture
def graph_of() -> Callable[..., PositionGraph]:
    """A fresh graph of such a game."""
    return lambda name, engine="auto", **limits: PositionGraph(load(name, engine), **limits)


@pytest.fixture
def row_at() -> Callable[[PositionGraph, str], int]:
    """The row of a tic-tac-toe position drawn as "xo. .x. ..o"; who is to move follows from the marks."""

    def row(graph: PositionGraph, drawing: str) -> int:
        cells = drawing.replace(" ", "")
        facts = [f"(cell {i // 3 + 1} {i % 3 + 1} {'b' if c == '.' else c})" for i, c in enumerate(cells)]
        mover = "xplayer" if cells.count("x") == cells.count("o") else "oplayer"
        return int(graph.intern(graph.game.state([*facts, f"(control {mover})"])[None])[0])

    return row
