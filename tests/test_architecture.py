"""What the design promises about the code itself: rooms, imports, names, fast imports, short functions and files."""

import ast
import io
import re
import runpy
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import pytest

import gamelore

SOURCE = Path(gamelore.__file__).parent
ROOT = Path(__file__).parent.parent

# The order of reading, of the data and of the imports: a module imports from rooms above its own, and within its room
# without circles. The rooms are those of the picture, in its order; the picture leaves out `errors` and `files`, which
# all modules may import, `gamelore`, which is `__init__.py`, and the papers. `learning` and `lab` stand for the modules
# that lie directly in them.
DRAWING = runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))
BEHIND = {
    "lab": ["lab.studies", "lab.papers.banerjee2007", "lab.papers.lock2004", "lab.papers"],
    "api": ["gamelore"],
    "cli": ["__main__"],
}
ROOMS = ["errors", "files", *(name for drawn in DRAWING["ROOMS"] for name in (drawn, *BEHIND.get(drawn, ())))]

PAPERS = {"lab.papers.banerjee2007", "lab.papers.lock2004"}
MOST_MODULES = 268
MOST_MODULES_IN_A_ROOM = 14
MOST_LINES_OF_CODE = 60_500
MOST_LINES_IN_A_FILE = 800


def modules() -> dict[str, Path]:
    """Every module of the package by its name below `gamelore`; the package itself is `gamelore`."""
    names = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        names[".".join(parts) or "gamelore"] = path
    return names


MODULES = modules()


def room(module: str) -> str:
    """The room of a module: the longest entry of ROOMS that it is or lies in."""
    parts = module.split(".")
    prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in ROOMS), f"{module}, which is in no room")


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it."""
    package = ("gamelore", *path.relative_to(SOURCE).parent.parts)
    imported: set[str] = set()
    for node in DRAWING["running"](ast.parse(path.read_text(encoding="utf-8"))):
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


@cache
def imports_by_module() -> dict[str, set[str]]:
    """The modules that each module imports."""
    return {name: imports(path) for name, path in MODULES.items()}


def against_the_order() -> set[tuple[str, str]]:
    """(importing, imported) where the imported module lies in a room below, or imports the other one back."""
    place = {name: number for number, name in enumerate(ROOMS)}
    wrong = set()
    for name, imported_modules in imports_by_module().items():
        for imported in imported_modules - {name}:
            rooms = room(name), room(imported)
            downwards = place[rooms[1]] > place[rooms[0]]
            if downwards or (rooms[0] == rooms[1] and name in below(imported)):
                wrong.add((name, imported))
    return wrong


def below(name: str) -> set[str]:
    """Everything that a module imports, by way of others of its room too."""
    reached: set[str] = set()
    stack = [name]
    while stack:
        for imported in imports_by_module()[stack.pop()] - reached:
            reached.add(imported)
            if room(imported) == room(name):
                stack.append(imported)
    return reached


def functions() -> Iterator[tuple[str, int]]:
    """Every function of the package and its number of lines, from `def` to its end."""
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield f"{path.name}:{node.name}", node.end_lineno - node.lineno + 1


def lines_of_code(source: str) -> int:
    """Count the lines that have code: no blank lines, no comments and no docstrings."""
    code: set[int] = set()
    is_new = True  # whether the next token begins a statement: a string there is a docstring, or does nothing
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        if not (is_new and token.type == tokenize.STRING) and token.type != tokenize.NEWLINE:
            code.update(range(token.start[0], token.end[0] + 1))
        is_new = token.type == tokenize.NEWLINE
    return len(code)


def in_several_rooms(names: dict[str, set[str]]) -> dict[str, set[str]]:
    """Names that stand in several rooms; the two papers mirror each other, and count as one room."""
    rooms = {name: {"papers" if place in PAPERS else place for place in places} for name, places in names.items()}
    return {name: places for name, places in rooms.items() if len(places) > 1}


def test_every_module_has_its_room():
    assert [name for name in MODULES if room(name) not in ROOMS] == []
    assert [name for name in ROOMS if name not in MODULES] == []


def test_imports_point_upwards_without_circles():
    """No import is excepted, also not one inside a function: `imports_by_module` has them all."""
    assert not against_the_order()


def test_the_order_would_be_held():
    assert "gdl.syntax" in imports_by_module()["gdl.lint"]
    assert imports_by_module()["gdl.syntax"] == {"errors", "gdl.limits"}
    assert "rulesheets" in imports_by_module()["gamelore"]
    assert "gdl.syntax" in below("gdl.lint")


def test_rooms_are_small():
    sizes = Counter(room(name) for name, path in MODULES.items() if path.name != "__init__.py")
    assert {name: size for name, size in sizes.items() if size > MOST_MODULES_IN_A_ROOM} == {}


def test_the_package_is_small():
    assert len(MODULES) <= MOST_MODULES
    assert sum(lines_of_code(path.read_text(encoding="utf-8")) for path in MODULES.values()) <= MOST_LINES_OF_CODE


def test_lines_of_code_are_counted_without_blank_lines_comments_and_docstrings():
    source = '"""Module.\n\nMore."""\n\n# comment\na = """two\nlines"""  # comment\n'
    assert lines_of_code(source) == 2
    assert lines_of_code('class A:\n    """Docstring."""\n\n    b: int = 1\n    """Docstring of b."""\n') == 2
    assert lines_of_code("call(\n    # comment\n    1,\n\n)\n") == 3
    assert lines_of_code('return (\n    "text"\n)\n') == 3


def test_the_readme_names_the_rooms_in_order():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## How it is built\n")[2].partition("\n## ")[0]
    shown = [MODULES[name].relative_to(SOURCE).parts[0] for name in DRAWING["ROOMS"]]
    rooms = [name if name.endswith(".py") else f"{name}/" for name in dict.fromkeys(shown)]
    assert re.findall(r"^\| `(.*?)` \|", section, re.MULTILINE) == rooms


def test_no_file_name_stands_in_two_rooms():
    places = defaultdict(set)
    for name, path in MODULES.items():
        if path.name != "__init__.py":
            places[path.name].add(room(name))
    assert in_several_rooms(places) == {}


def test_no_public_class_name_stands_in_two_rooms():
    places = defaultdict(set)
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(room(name))
    assert in_several_rooms(places) == {}


def listed_in_api(title: str) -> set[str]:
    """The names in the first column of a table of docs/api.md."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    table = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)", cell)}


def test_docs_list_the_public_api():
    assert listed_in_api("Functions and results") == set(gamelore.__all__)


def test_no_room_has_a_reserved_name():
    names = set(gamelore.__all__)
    assert names >= {"play", "learn", "features", "solve", "symmetries", "check", "transfer", "tournament"}
    assert names >= {"Knowledge", "list_players", "player"}
    rooms = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert rooms & names == set()


def test_the_page_on_architecture_shows_the_code_as_it_is():
    script = ROOT / "docs" / "draw_architecture.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


def test_a_room_tells_its_reading_order():
    """In the table, a module stands below all modules that it imports."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([\w/]+)\.py` \|", text, re.MULTILINE)
    in_order = [name.replace("/", ".") for name in told if not name.endswith("__init__")]
    assert set(in_order) == {name for name, path in MODULES.items() if path.name != "__init__.py"}
    place = {name: number for number, name in enumerate(in_order)}
    wrong = {
        (name, other)
        for name in place
        for other in imports_by_module()[name] & place.keys()
        if place[other] > place[name]
    }
    assert wrong == set()


def test_exports():
    tree = ast.parse(MODULES["gamelore"].read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported | {"__version__"} == set(gamelore.__all__)
    assert len(gamelore.__all__) == len(set(gamelore.__all__))
    assert [name for name in gamelore.__all__ if not hasattr(gamelore, name)] == []


@pytest.mark.parametrize("statement", ["import gamelore", "import gamelore.cli", "import gamelore.net.player_server"])
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
    assert {name: length for name, length in lengths.items() if length > MOST_LINES_IN_A_FILE} == {}


def test_every_slow_test_is_there():
    listed = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").split()
    assert listed == sorted(set(listed))
    for test in listed:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), test
