"""Draw the rooms of gamelore and list its modules, from the code itself: `python docs/draw_architecture.py`.

Writes `architecture.svg` (the rooms in the order of the data, with the imports between them) and, in
`architecture.md`, the table of modules between its two markers. With `--check` nothing is written, and the exit code
is 1 where one of the two is not what the code says now.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "gamelore"
BEGIN, END = "<!-- modules: written by draw_architecture.py -->", "<!-- end of modules -->"

# The rooms (packages and modules) from top to bottom, each with what it hands to the rooms below. This is the order of
# reading, of the data and of the imports; tests/test_architecture.py reads it here.
ROOMS = {
    "gdl": "rulesheet",
    "ground": "ground program",
    "circuit": "machine code",
    "drawing": "boards",
    "game": "Game, Position",
    "analysis": "symmetries, counts, findings",
    "rulesheets": "shipped games",
    "players": "moves",
    "solver": "exact values",
    "puzzles": "solutions of puzzles",
    "networks": "values from self-play",
    "search": "strong play",
    "matches": "matches, records",
    "learning.store": "rows on disk",
    "learning.td": "values, features",
    "learning.sequences": "sequences, contexts",
    "learning": "sessions",
    "memory": "what is remembered of games",
    "catalogue": "players and learners by name",
    "net": "matches over the wire",
    "workers": "results of jobs",
    "lab": "trials, claims, reports",
    "api": "public functions, results",
    "envs": "arrays for other libraries",
    "web.children": "answers about rules",
    "web.service": "matches, drafts, processes",
    "web.pages": "pages to play and browse",
    "web.teaching": "pages to learn from",
    "web": "the page in the browser",
    "cli": "commands",
}
LEFT, TOP, WIDTH, HEIGHT, STEP = 16, 16, 372, 34, 46
ARC = 17  # how far an arc swings out, for each room that it passes


def modules() -> dict[str, Path]:
    """Every module by its dotted name below `gamelore`, rooms in their order; `""` is the package itself."""
    names = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def room_of(module: str) -> str | None:
    """The room of a module; None for the few modules at the top of the package."""
    inside = [name for name in ROOMS if module == name or module.startswith(f"{name}.")]
    return max(inside, key=len, default=None)


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a module but those that only a type checker reads."""
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING":
        return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from running(child)


def imported_modules(path: Path, names: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, anywhere in it but for type checkers only."""
    package = ["gamelore", *path.relative_to(SOURCE).parent.parts]
    imported = set()
    for node in running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) + 1 - node.level] + (node.module or "").split(".") * bool(node.module)
            for alias in node.names:
                whole = ".".join([*base[1:], alias.name])
                imported.add(whole if whole in names else ".".join(base[1:]))
    return imported


def room_imports(names: dict[str, Path]) -> Counter[tuple[str, str]]:
    """(importing room, imported room) -> how many modules of the one import modules of the other."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, path in names.items():
        for imported in imported_modules(path, names):
            rooms = room_of(name), room_of(imported)
            if rooms[0] and rooms[1] and rooms[0] != rooms[1]:
                counts[rooms[0], rooms[1]] += 1
    return counts


def without_implied(counts: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    """The imports that do not follow from others: the transitive reduction."""
    above: dict[str, set[str]] = {}
    for room in ROOMS:
        direct = [target for source, target in counts if source == room]
        above[room] = set(direct).union(*(above.get(target, set()) for target in direct))
    return [
        (source, target)
        for source, target in counts
        if not any(target in above[other] for start, other in counts if start == source)
    ]


def picture(names: dict[str, Path]) -> str:
    """The rooms as boxes from top to bottom; an arrow on the right for each import that no other implies."""
    order = list(ROOMS)
    arrows = without_implied(room_imports(names))
    longest = max(abs(order.index(a) - order.index(b)) for a, b in arrows)
    width, height = LEFT + WIDTH + 40 + ARC * longest + 24, TOP * 2 + STEP * len(order) - (STEP - HEIGHT)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="14">',
        "<title>The rooms of gamelore and the imports between them</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#5b6b7b"/></marker></defs>',
    ]
    for place, (room, gives) in enumerate(ROOMS.items()):
        y = TOP + STEP * place
        lines.append(
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3f8" stroke="#8fa3b8"/>'
            f'<text x="{LEFT + 12}" y="{y + 22}" font-weight="600" fill="#16324f">{label(room, names)}</text>'
            f'<text x="{LEFT + WIDTH - 12}" y="{y + 22}" text-anchor="end" fill="#43566a">{escape(gives)}</text>'
        )
    leaving, arriving = Counter[str](), Counter[str]()
    for source, target in sorted(arrows, key=lambda arrow: order.index(arrow[0]) - order.index(arrow[1])):
        x, span = LEFT + WIDTH, order.index(source) - order.index(target)
        start = TOP + STEP * order.index(source) + 9 + 5 * leaving[source]
        end = TOP + STEP * order.index(target) + HEIGHT - 7 - 5 * arriving[target]
        leaving[source], arriving[target] = min(leaving[source] + 1, 3), min(arriving[target] + 1, 4)
        out = x + 26 + ARC * span
        lines.append(
            f'<path d="M{x} {start}C{out} {start} {out} {end} {x + 2} {end}" fill="none" stroke="#5b6b7b" '
            'stroke-width="1.3" marker-end="url(#head)"/>'
        )
    return "\n".join([*lines, "</svg>", ""])


def label(room: str, names: dict[str, Path]) -> str:
    """The path of a room below `src/gamelore`."""
    return room.replace(".", "/") + ("" if names[room].name == "__init__.py" else ".py")


def first_line(path: Path) -> str:
    """The first paragraph of a module's docstring, as one line of a table."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")


def table(names: dict[str, Path]) -> str:
    """Every module with the first line of its docstring, room by room."""
    lines = ["| module | what is inside |", "|---|---|"]
    for name in reading_order(names):
        path = names[name]
        if path.stat().st_size:
            lines.append(f"| `{path.relative_to(SOURCE).as_posix()}` | {first_line(path)} |")
    return "\n".join(lines)


def reading_order(names: dict[str, Path]) -> list[str]:
    """All modules, rooms in their order; in a room, a module stands below the modules that it imports."""
    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            own = {other for other in imported_modules(names[name], names) - {name} if room_of(other) == room_of(name)}
            is_package = names[name].name == "__init__.py"
            heights[name] = 0 if is_package else 1 + max(map(height, own), default=0)
        return heights[name]

    return sorted(names, key=lambda name: (place_of(name), names[name].parent, height(name), name))


def place_of(name: str) -> tuple[int, bool]:
    """Where a module stands in the table: by room; the package itself first, then the modules beside the rooms."""
    room = room_of(name)
    return (-1, bool(name)) if room is None else (list(ROOMS).index(room), name != room)


def main() -> int:
    """Write both files, or compare them."""
    names = modules()
    page = DOCS / "architecture.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = {
        page: f"{before}{BEGIN}\n{table(names)}\n{END}{after}",
        DOCS / "architecture.svg": picture(names),
    }
    stale = [path for path, new in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != new]
    for path in stale:
        print(f"{path.name} is {'not what the code says: run python docs/draw_architecture.py' if check() else 'new'}")
        if not check():
            path.write_text(wanted[path], encoding="utf-8")
    return int(bool(stale) and check())


def check() -> bool:
    """Whether nothing is to be written."""
    return "--check" in sys.argv[1:]


if __name__ == "__main__":
    sys.exit(main())
