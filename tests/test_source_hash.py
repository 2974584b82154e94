"""What is stored tells which code made it: a changed byte gives another hash, a lost package raises."""

import ast
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import gamelore
from gamelore import GameloreError
from gamelore.analysis import symmetry
from gamelore.circuit import cache
from gamelore.lab import experiment
from gamelore.lab.papers.lock2004 import page
from gamelore.net import player_server, pool, worker
from gamelore.solver import solution

LISTED = {
    "a trial": experiment.MEASURING,
    "a run of lock2004": page.MEASURING,
    "a solution": solution.MADE_BY,
    "a compiled game": cache.COMPILING,
    "symmetries": symmetry.FOUND_BY,
}
BEFORE = {  # hashed beside these
    "a run of lock2004": experiment.MEASURING,
    "a solution": cache.COMPILING,
    "symmetries": cache.COMPILING,
}
FIRST = {  # the modules that make what is stored; all others in these lists are there because these need them
    "a solution": "solver.solution",
    "a compiled game": "game.compile",
    "symmetries": "analysis.symmetry",
}
# What needs no place in a list though modules in it import this: it names no number, or is no part of a result.
NOT_MEASURING = {"gamelore.errors", "gamelore.files", "gamelore.circuit.cache", "gamelore.drawing.position", "gamelore"}
NOT_MEASURING |= {"gamelore.workers.processes", "gamelore.workers.cluster"}  # they hand on what trials return
AT_PLAY = {  # compile.py, which makes engines, compiles by nothing of these
    f"gamelore.game.{name}" for name in ("engines", "game", "reasoner")
}
REFUSING = {"gamelore.gdl.lint"}  # a sheet that is not refused is compiled as it is
PLAYED = {"gamelore.circuit.playout"}  # random playouts, of which no solution is made


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package in another folder, where it may be changed."""
    root = tmp_path / "gamelore"
    shutil.copytree(Path(gamelore.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__", "*.kif"))
    monkeypatch.setattr(cache, "ROOT", root)
    cache.source_hash.cache_clear()
    yield root
    cache.source_hash.cache_clear()


def hashed(names: tuple[str, ...]) -> str:
    cache.source_hash.cache_clear()
    return cache.source_hash(*names)


def change(path: Path) -> None:
    source = path.read_bytes()
    path.write_bytes(source[:-1] + bytes([source[-1] ^ 1]))


@pytest.mark.parametrize("names", LISTED.values(), ids=LISTED.keys())
def test_a_byte_in_any_package_gives_another_hash(copied: Path, names: tuple[str, ...]) -> None:
    seen = {hashed(names)}
    assert seen == {hashed(names)}
    for name in names:
        change(cache.source_files(name)[-1])
        seen.add(hashed(names))
    assert len(seen) == 1 + len(names)


@pytest.mark.parametrize("names", LISTED.values(), ids=LISTED.keys())
def test_a_package_that_was_renamed_is_an_error(copied: Path, names: tuple[str, ...]) -> None:
    for name in names:
        place = copied.joinpath(*name.split("."))
        place = place if place.is_dir() else place.with_suffix(".py")
        place.rename(place.with_name("renamed"))
        with pytest.raises(GameloreError, match=rf"expected the Python files of gamelore\.{name} in"):
            hashed(names)
        place.with_name("renamed").rename(place)


def test_a_package_without_source_is_an_error(copied: Path) -> None:
    (copied / "left" / "__pycache__").mkdir(parents=True)
    for content in (None, "", "\n"):
        if content is not None:
            (copied / "left" / "__init__.py").write_text(content)
        with pytest.raises(GameloreError, match=r"gamelore\.left"):
            hashed(("gdl", "left"))


def test_files_of_rooms_in_rooms_and_their_names_count(copied: Path) -> None:
    seen = {hashed(("learning",))}
    (copied / "learning" / "new").mkdir()
    (copied / "learning" / "new" / "update.py").write_text("a = 1\n")
    seen.add(hashed(("learning",)))
    (copied / "learning" / "new" / "update.py").rename(copied / "learning" / "new" / "other.py")
    seen.add(hashed(("learning",)))
    assert len(seen) == 3


@pytest.mark.parametrize("made", ["trial", "run", "solution", "game", "symmetries"])
def test_what_is_stored_tells_the_code_that_made_it(copied: Path, monkeypatch: pytest.MonkeyPatch, made: str) -> None:
    key = {
        "trial": (experiment.code_version, experiment.MEASURING),
        "run": (page.version, page.MEASURING),
        "solution": (lambda: cache.key_of(solution.MADE_BY, "tictactoe"), solution.MADE_BY),
        "game": (cache._machine.__wrapped__, cache.COMPILING),
        "symmetries": (lambda: cache.key_of(symmetry.FOUND_BY, "tictactoe"), symmetry.FOUND_BY),
    }
    get, names = key[made]
    before = get()
    for name in names:
        change(cache.source_files(name)[0])
        cache.source_hash.cache_clear()
        assert get() != before
        before = get()


def test_a_change_of_the_drawn_board_keeps_compiled_games(copied: Path) -> None:
    before = cache._machine.__wrapped__()
    change(copied / "drawing" / "board.py")
    cache.source_hash.cache_clear()
    assert cache._machine.__wrapped__() == before


@pytest.mark.parametrize("what", LISTED)
def test_the_lists_have_all_that_their_modules_import(what: str) -> None:
    names = (*LISTED[what], *BEFORE.get(what, ()))
    files = {file for name in names for file in cache.source_files(name)}
    missing = imported(files) - {module_name(file) for file in files} - NOT_MEASURING
    if what in ("a compiled game", "symmetries"):
        missing -= AT_PLAY | REFUSING | PLAYED
    elif what == "a solution":
        missing -= REFUSING | PLAYED
    elif what == "a run of lock2004":
        missing -= {f"gamelore.lab{name}" for name in ("", ".papers", ".papers.lock2004", ".figures")}
    assert missing == set()


@pytest.mark.parametrize("what", FIRST)
def test_the_lists_have_nothing_that_is_not_needed(what: str) -> None:
    files = {file for name in (*LISTED[what], *BEFORE.get(what, ())) for file in cache.source_files(name)}
    listed = {module_name(file): file for file in files if file.name != "__init__.py"}
    reached, todo = set[str](), [f"gamelore.{FIRST[what]}", "gamelore.game.compile"]  # all is made of a compiled game
    while todo:
        module = todo.pop()
        reached.add(module)
        todo += (imported({listed[module]}) & listed.keys()) - reached
    # the compiled game is handed over with its engine, whose code no list of compiling modules has
    assert listed.keys() - reached <= {"gamelore.circuit.native"}


@pytest.mark.parametrize("module", ["gdl/lint", "circuit/playout", "circuit/transpose", "game/game", "solver/perfect"])
def test_a_change_of_what_does_not_compile_keeps_compiled_games(copied: Path, module: str) -> None:
    before = hashed(cache.COMPILING)
    change(copied / f"{module}.py")
    assert hashed(cache.COMPILING) == before


@pytest.mark.parametrize("module", ["gdl/lint", "analysis/playcheck", "players/uct", "solver/perfect"])
def test_a_change_of_what_does_not_solve_keeps_solutions(copied: Path, module: str) -> None:
    before = hashed((*cache.COMPILING, *solution.MADE_BY))
    change(copied / f"{module}.py")
    assert hashed((*cache.COMPILING, *solution.MADE_BY)) == before


def imported(files: set[Path]) -> set[str]:
    """The modules of gamelore that files import to run."""
    found = set()
    for file in files:
        package = module_name(file) if file.name == "__init__.py" else module_name(file).rpartition(".")[0]
        tree = ast.parse(file.read_text(encoding="utf-8"))
        typing = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level and id(node) not in typing:
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                found |= {is_module(f"{base}.{alias.name}") or base for alias in node.names}
    return found


def is_module(name: str) -> str:
    place = cache.ROOT.parent.joinpath(*name.split("."))
    return name if place.is_dir() or place.with_suffix(".py").is_file() else ""


def module_name(file: Path) -> str:
    parts = file.relative_to(cache.ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_worker_that_is_started_is_there_and_known(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec(worker.__name__)
    assert spec is not None
    assert pool.WORKER == player_server.WORKER == worker.__name__
    main = type("Main", (), {"__spec__": spec})
    monkeypatch.setitem(player_server.sys.modules, "__main__", main)
    with pytest.raises(GameloreError, match="__main__"):
        player_server.serve("random")
