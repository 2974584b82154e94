"""The gallery: measure rulesheets, draw a position of each, and write `gallery.md`.

    python docs/draw_gallery.py --measure ../shared/games    # hours; sheets that are measured already are left out
    python docs/draw_gallery.py                              # writes the page from gallery/games.json

The shipped games are always among the measured ones. Each sheet is measured in a process of its own, with a limit of
time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE, FOLDER = DOCS / "gallery.md", DOCS / "gallery"
DATA, BOARDS = FOLDER / "games.json", FOLDER / "boards"
SIMULATIONS = 200  # of the players uct
MATCHES = 100  # between them, or as many as begin within SECONDS
FEWEST = 10  # with fewer matches, nothing is told about them
SAMPLED = 20  # random matches for the number of moves
SECONDS = 12.0  # of processor time for the matches, and for solving
LIMIT = 75  # of wall time for a sheet
BEGIN, END = "<!-- games: written by draw_gallery.py -->", "<!-- end of games -->"


# ---- measuring ----


def measured(source: str) -> Iterator[dict[str, Any]]:
    """Yield the figures of a sheet, with the picture of a position as SVG under "svg", then more and more of them."""
    import gamelore
    from gamelore.drawing.position import position_svg

    game = gamelore.load(source)
    random = gamelore.play(game, "random", matches=SAMPLED, seed=1, progress=False)
    match = random[0]
    positions = [position for played in random for position in list(played)[:-1]]
    choices = [[len(moves) for moves in position.legal.values() if len(moves) > 1] for position in positions]
    counts = [number for position in choices for number in position]
    row = {
        "roles": list(game.roles),
        "engine": game.engine,
        "simultaneous": any(len(position) > 1 for position in choices),
        "moves": sum(counts) / len(counts) if counts else 1.0,
        "plies": float(random.plies.mean()),
        "svg": position_svg(match[len(match) // 2]),
        "steps_per_s": None, "uct": None, "solved": None,
    }  # fmt: skip
    yield row
    for name, figure in (("steps_per_s", speed), ("solved", exact), ("uct", strong)):
        row = row | {name: figure(game)}
        yield row


def speed(game: Any) -> float:
    """Return the number of plies of random play in a second of processor time."""
    from gamelore.cli.bench_command import playout_speed

    return playout_speed(game, 1.0).steps_per_s


def strong(game: Any) -> dict[str, Any] | None:
    """Return the mean goals of the roles between players `uct`, and how far the first role is ahead of the others."""
    import numpy as np

    import gamelore

    begin, goals = time.process_time(), []
    while len(goals) < MATCHES and time.process_time() - begin < SECONDS:
        at_once = 2 if len(goals) < FEWEST else 10
        played = gamelore.play(game, f"uct:simulations={SIMULATIONS}", matches=at_once, seed=len(goals), progress=False)
        goals += np.nan_to_num(played.goals).tolist()
    if len(goals) < FEWEST:
        return None
    table = np.array(goals)
    ahead = table[:, 0] - table[:, 1:].mean(axis=1) if len(game.roles) > 1 else table[:, 0]
    error = float(ahead.std(ddof=1) / len(table) ** 0.5)
    return {"matches": len(table), "goals": table.mean(axis=0).tolist(), "ahead": float(ahead.mean()), "error": error}


def exact(game: Any) -> dict[str, Any] | None:
    """Return the goals of best play, or None if the game is not solved within SECONDS."""
    import gamelore

    begin = time.process_time()

    def tell(*now: object) -> None:
        if time.process_time() - begin > SECONDS:
            raise TimeoutError

    try:
        solved = gamelore.solve(game, memory=1.0, progress=tell)
    except (gamelore.GameloreError, TimeoutError):
        return None
    return {"goals": list(solved.values.values()), "plies": solved.plies, "positions": solved.num_positions}


def measure(folder: Path) -> None:
    """Measure the shipped games and the sheets of a folder, and store each as soon as it is done."""
    from gamelore.rulesheets import names

    BOARDS.mkdir(parents=True, exist_ok=True)
    sources = {path.stem: str(path) for path in sorted(folder.glob("*.kif"))}
    sources |= {name: name for name in names()}  # in place of public sheets with these names
    for number, (name, source) in enumerate(sources.items(), 1):
        games = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
        if name in games:
            continue
        row = in_own_process(source)
        if svg := row.pop("svg", None):
            (BOARDS / f"{name}.svg").write_text(svg, encoding="utf-8")
        games[name] = {"shipped": source == name, **row}
        DATA.write_text(json.dumps(games, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{number} of {len(sources)}: {name} {row.get('failed', '')}", file=sys.stderr, flush=True)


def in_own_process(source: str) -> dict[str, Any]:
    """Return the figures of a sheet that come within LIMIT, or {"failed": why}."""
    command = [sys.executable, __file__, "--sheet", source]
    try:
        ran = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
        printed, why = ran.stdout, ran.stderr.decode().strip().rpartition("\n")[2][:200]
    except subprocess.TimeoutExpired as expired:
        printed, why = expired.stdout or b"", f"not measured within {LIMIT} s"
    lines = printed.decode().split("\n")[:-1]  # what the limit cuts off in the middle is no line
    row: dict[str, Any] = json.loads(lines[-1]) if lines else {"failed": why}
    return row


# ---- the page ----

KINDS = {
    "Shipped games": lambda row: row["shipped"],
    "Two players who take turns": lambda row: len(row["roles"]) == 2 and not row["simultaneous"],
    "Two players at the same time": lambda row: len(row["roles"]) == 2,
    "Three and more players": lambda row: len(row["roles"]) > 2,
    "Puzzles": lambda row: True,
}


def page(games: dict[str, dict[str, Any]], text: str) -> str:
    """Return the page with the games between its two markers."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{''.join(sections(games))}{END}{after}"


def sections(games: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield a section for each kind of game, and the list of sheets without figures."""
    left = {name: row for name, row in games.items() if "failed" not in row}
    for title, is_kind in KINDS.items():
        chosen = [name for name, row in left.items() if is_kind(row)]
        yield f'\n## {title}\n\n<div class="gallery">\n'
        yield from (card(name, left.pop(name)) for name in sorted(chosen, key=str.lower))
        yield "</div>\n"
    failed = {name: row["failed"] for name, row in sorted(games.items()) if "failed" in row}
    if failed:
        yield "\n## Not measured\n\n"
        yield from (f"- {name}: {why}\n" for name, why in failed.items())
    yield "\n"


def card(name: str, row: dict[str, Any]) -> str:
    """Return a game as a figure: its picture and its figures."""
    lines = "<br>".join(map(escape, about(row)))
    alt = f"A position of {name}"
    return (
        f'<figure><img src="gallery/boards/{escape(name)}.svg" alt="{escape(alt)}" loading="lazy">'
        f"<figcaption><strong>{escape(name)}</strong><br>{lines}</figcaption></figure>\n"
    )


def about(row: dict[str, Any]) -> Iterator[str]:
    """Yield what is told about a game."""
    yield f"{row['moves']:.1f} moves, {row['plies']:.0f} plies"
    if (uct := row["uct"]) and len(row["roles"]) == 1:
        yield f"uct: {uct['goals'][0]:.0f} points"
    elif uct:
        interval = f" ± {1.96 * uct['error']:.0f}" if uct["error"] else f" in all {uct['matches']}"
        yield f"{row['roles'][0]} {round(uct['ahead']):+d}{interval}"
    if row["solved"]:
        yield f"solved: {', '.join(f'{goal:g}' for goal in row['solved']['goals'])}"
    engine = "" if row["engine"] == "native" else f" ({row['engine']})"
    if row["steps_per_s"]:
        yield f"{rounded(row['steps_per_s'])} plies/s{engine}"


def rounded(number: float) -> str:
    """Return a number with two digits and a unit: 1.2 G, 41 M, 520 k, 95."""
    number = float(f"{number:.2g}")
    size, unit = next((each for each in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if number >= each[0]), (1.0, ""))
    return f"{number / size:g}{unit}"


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measure", type=Path, metavar="FOLDER", help="a folder of public rulesheets")
    parser.add_argument("--sheet", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sheet:
        for row in measured(given.sheet):
            print(json.dumps(row), flush=True)
        return 0
    if given.measure:
        measure(given.measure)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(json.loads(DATA.read_text(encoding="utf-8")), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
