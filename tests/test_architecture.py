"""What the design promises about the code itself: who may import whom, exports, fast imports, short functions."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

import gamelore

SOURCE = Path(gamelore.__file__).parent

# The order of reading, of the data and of the imports: a module imports only from modules above it. A new module is
# entered here at its place; `room` stands for the `__init__` of a room, `gamelore` for that of the package.
FROM_TOP_TO_BOTTOM = """
    errors
    rules rules.gdl rules.options rules.layout rules.relations rules.flaws rules.spelling rules.check
    rules.clauses rules.stratification rules.names rules.asp rules.statics rules.domains rules.persistence
    rules.chase rules.unique
    rules.projection rules.demand rules.rewrite rules.bounds rules.ground rules.reasoner
    rules.groundrules rules.factor rules.cycles rules.circuit rules.translate rules.schedule rules.planes rules.wide
    rules.tape rules.native rules.cache rules.ir rules.kernels rules.interpreter rules.rows rules.draw rules.block
    rules.playout
    rules.engine rules.promises rules.bounded rules.turns rules.board rules.game
    rules.counter rules.colouring rules.automorphisms rules.tallies rules.rulegraph rules.symmetry
    rules.sheetgraph rules.renaming
    rules.neighbours rules.vicinity
    rules.perft rules.speed rules.query rules.watch rules.reach rules.tryout rules.playcheck
    games
    gamelore
    play play.kernel play.streams play.statetable play.graph play.decisive play.player play.positions play.search
    play.playouts
    play.forest play.uct play.canonical play.retrograde play.turntaking play.sampling play.expansion play.solutionfile
    play.solve play.perfect play.reasonable play.bestline play.regret play.roster play.match play.lockstep
    play.expectation
    learn learn.features learn.table1 learn.storefile learn.storerows learn.tables learn.knowledge learn.exchange
    learn.afterstates learn.merging learn.values learn.coalesce learn.trees learn.settings learn.initial learn.scoring
    learn.learner learn.transfer learn.trajectories learn.study learn.patterns learn.excerpts learn.seqtable
    learn.contexts learn.matching learn.weighing learn.advice learn.sequences learn.seqplayer learn.training
    learn.seqstore learn.seqstudy learn.searching learn.lasting learn.players learn.recognition
    net.messages net.records net.clocks net.believed net.table net.worker net.process net.running net.workers
    net.http net.web net.server net.serving net.client net.seats net.host net.seriesfolder net.series net
    lab lab.stats lab.trees lab.drawing lab.layout lab.effects lab.pairs lab.marks lab.boards lab.learned lab.structure
    lab.grid lab.trials lab.claims lab.costs lab.endpoints lab.workers lab.runner
    lab.figures lab.report lab.transfer lab.banerjee2007.plan lab.banerjee2007.study lab.banerjee2007.tables
    lab.banerjee2007.pictures lab.banerjee2007.page lab.banerjee2007.run lab.banerjee2007 lab.demo
    lab.lock2004.printed lab.lock2004.plan lab.lock2004.strategies lab.lock2004.observing lab.lock2004.runs
    lab.lock2004.speed lab.lock2004.store lab.lock2004.study lab.lock2004.claims lab.lock2004.findings
    lab.lock2004.classes lab.lock2004.exact lab.lock2004.tables lab.lock2004.learned lab.lock2004.pictures
    lab.lock2004.page lab.lock2004.run lab.lock2004
    cli.console cli.games cli.check cli.fmt cli.inspect cli.bench cli.solve cli.human cli.play cli.replay
    cli.serve cli.host cli.sequences cli.learn
    cli.features cli.pairs cli.knowledge cli.lab cli
"""
ORDER = FROM_TOP_TO_BOTTOM.split()


def modules() -> dict[str, Path]:
    """Every module of the package by its name in ORDER."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(parts) or "gamelore"] = path
    return found


MODULES = modules()


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a module but those that only a type checker reads."""
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING":
        return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from nodes(child)


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it."""
    package = ("gamelore", *path.relative_to(SOURCE).parent.parts)
    imported: set[str] = set()
    for node in nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {own_module(tuple(alias.name.split("."))) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (package[: len(package) + 1 - node.level] if node.level else ()) + tuple(
                (node.module or "").split(".") if node.module else ()
            )
            imported |= {own_module((*base, alias.name)) for alias in node.names}
    return imported - {""}


def own_module(parts: tuple[str, ...]) -> str:
    """The module that a dotted name is or lies in; empty where it is not one of the package."""
    if parts[0] != "gamelore":
        return ""
    inside = [".".join(parts[1:end]) for end in range(len(parts), 1, -1)]
    return next((name for name in inside if name in MODULES), "gamelore")


def against_the_order() -> set[tuple[str, str]]:
    place = {name: number for number, name in enumerate(ORDER)}
    return {
        (name, imported)
        for name, path in MODULES.items()
        for imported in imports(path)
        if place.get(imported, 0) >= place.get(name, len(ORDER))
    }


def functions() -> Iterator[tuple[str, int]]:
    """Every function of the package and its number of lines, from `def` to its end."""
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield f"{path.name}:{node.name}", node.end_lineno - node.lineno + 1


def test_every_module_has_its_place():
    assert set(MODULES) - set(ORDER) == set(), "enter new modules in ORDER, at their place"
    assert len(ORDER) == len(set(ORDER))


def test_imports_point_upwards():
    assert not against_the_order()


@pytest.mark.parametrize("room", ["rules", "play", "learn"])
def test_a_room_tells_its_reading_order(room):
    told = re.findall(r"^ *(\w+)\.py ", MODULES[room].read_text(encoding="utf-8"), re.MULTILINE)
    assert [f"{room}.{name}" for name in told] == [name for name in ORDER if name.startswith(f"{room}.")]


def test_the_order_would_be_held():
    assert "rules.gdl" in imports(MODULES["rules.check"])
    assert imports(MODULES["rules.gdl"]) == {"errors"}
    assert "games" in imports(MODULES["gamelore"])


def test_exports():
    tree = ast.parse(MODULES["gamelore"].read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported | {"__version__"} == set(gamelore.__all__)
    assert len(gamelore.__all__) == len(set(gamelore.__all__))
    assert [name for name in gamelore.__all__ if not hasattr(gamelore, name)] == []


@pytest.mark.parametrize("statement", ["import gamelore", "import gamelore.cli"])
def test_import_is_light(statement):
    heavy = {"numba", "matplotlib", "scipy", "clingo", "llvmlite"}
    code = f"import sys; {statement}; print(*sorted({heavy!r} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_functions_are_short():
    lengths = [length for _, length in functions()]
    assert len(lengths) > 100
    assert median(lengths) < 10


def test_files_are_short():
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > 450} == {}
