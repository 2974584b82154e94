"""The rulesheets shipped with the package, each with its perft counts.

    tictactoe            3x3, three in a line wins
    losetictactoe        3x3, three in a line loses
    tictactoe3p          three players, 4x4, three in a line wins
    connect3             5x5 with gravity, three in a line wins
    connectfour          7 columns by 6 rows, four in a line wins
    othello4             Othello on 4x4, with passes
    capturego3           Go on 3x3, the first capture wins, no suicide
    capturego3_suicide   the same with suicide legal and losing
    goofspiel            two players bid at the same time for five prizes
    pegsolitaire         one player, fifteen holes in a triangle, goals by the pegs left
    fivemensmorris       place and move five pieces, three in a line remove one; options cap, flying, removal
    breakthrough         pawns on 4x5 or a larger board, the first in the last row wins; options width, height, rows

A game is `NAME.kif`, commented GDL, and `NAME.perft`, its counts. (The word is from chess: a performance test that
walks all moves to a fixed depth.) A line of a perft file is `depth sequences positions`: the joint-move sequences of
exactly that length from the start, where a match that has ended goes no further, and the distinct positions (sets of
facts) that they lead to. Where a game was counted to its end, `complete N` gives the number of its complete games and
`reachable N` its distinct positions over all depths. `#` begins a comment.

A sheet may have options, of which any are chosen behind a game's name or the path of its sheet:

    load("fivemensmorris:cap=80,flying=yes")     load("my/game.kif:width=6")

Which there are, and their values, `gamelore games` lists; how a sheet states them is told in rules/options.py. The
game's name says what was chosen, in the order of the sheet; its rules, and so its hash, are those with these values.
Perft files count the game as it is without choosing.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from ..errors import GameloreError
from ..rules.asp import Limits
from ..rules.game import EngineName, Game, make
from ..rules.gdl import Rulesheet, parse
from ..rules.options import choose

_FOLDER = Path(__file__).parent


class Counts(NamedTuple):
    """The counts of one game; depths from 1. `complete` and `reachable` are None where nobody counted to the end."""

    sequences: dict[int, int]
    positions: dict[int, int]
    complete: int | None
    reachable: int | None


def names() -> tuple[str, ...]:
    """The names of the shipped games, in alphabetical order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.kif")))


def path(name: str) -> Path:
    """The rulesheet of a shipped game. Raises GameloreError, with the nearest right names, where there is none."""
    if name not in names():
        raise GameloreError(f"expected the name of a shipped game, got '{name}'; {_suggestion(name)}")
    return _FOLDER / f"{name}.kif"


def perft(name: str) -> dict[int, int]:
    """Joint-move sequences from the start by their length. Raises GameloreError as `path` does."""
    return counts(name).sequences


def counts(name: str) -> Counts:
    """All that the perft file of a shipped game says. Raises GameloreError as `path` does."""
    sequences, positions, totals = {}, {}, {}
    for line in path(name).with_suffix(".perft").read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if len(words) == 3:
            depth = int(words[0])
            sequences[depth], positions[depth] = int(words[1]), int(words[2])
        elif words:
            totals[words[0]] = int(words[1])
    return Counts(sequences, positions, totals.get("complete"), totals.get("reachable"))


def load(
    source: str | Path, engine: EngineName = "auto", limits: Limits | None = None, *, rewrite: bool = True
) -> Game:
    """A game from a shipped name, a path or GDL text.

    engine: "native" compiles and raises GroundingError over the limits; "reasoner" asks the rules each time; "auto" is
    native where the limits allow it. limits: budgets of grounding, `Limits()` unless told. rewrite: False to take the
    rules as they are written (see rules/rewrite.py), the oracle for tests. A source with a parenthesis is text, but for
    a path that ends in ".kif"; a shipped name goes before a file of that name. Behind a name or a path there may be
    options, as in "fivemensmorris:cap=80,flying=yes". Raises GDLError for a rulesheet that cannot be played,
    GameloreError for an unknown name, option or engine, OSError for a file that cannot be read.
    """
    sheet, name = read(source)
    return make(sheet, name, engine, limits, rewrite)


def read(source: str | Path) -> tuple[Rulesheet, str]:
    """Parses a shipped name, a path or GDL text; also gives the game's name. Raises as `load` does."""
    if isinstance(source, str) and _is_text(source):
        return parse(source), "unnamed"
    place, text, name = sheet(source)
    return parse(text, place), name


def sheet(source: str | Path) -> tuple[Path, str, str]:
    """Where the rulesheet of a shipped name or a path is, its text with the chosen options, and the game's name.

    Raises GameloreError for an unknown name or option, OSError for a file that cannot be read.
    """
    base, settings = split(source)
    is_path = base not in names() and (Path(base).suffix or (Path(base).exists() and not Path(base).is_dir()))
    place = Path(base) if is_path else path(base)
    text = place.read_text(encoding="utf-8", errors="replace")
    chosen = _chosen(settings, str(source))
    if not chosen:
        return place, text, place.stem
    text, values = choose(text, chosen, place.stem)
    return place, text, f"{place.stem}:{','.join(map('='.join, values.items()))}"


def split(source: str | Path) -> tuple[str, str]:
    """A shipped name or a path, and the options behind it: ("connect3", ""), ("my/game.kif", "cap=80,flying=yes")."""
    base, colon, settings = str(source).rpartition(":")
    has_options = colon and ("=" in settings or base in names() or base.endswith(".kif"))
    if not has_options or any(mark in settings for mark in "/\\") or Path(source).is_file():
        return str(source), ""
    return base, settings


def title(source: str | Path) -> str:
    """A short name for tables, without looking at the rulesheet: the options as given, but no folder, no `.kif`."""
    base, settings = split(source)
    return ":".join(filter(None, (Path(base).stem, settings)))


def _is_text(source: str) -> bool:
    return "(" in source and ("\n" in source or not re.search(r"\.kif(:[^()]*)?$", source))


def _chosen(settings: str, source: str) -> dict[str, str]:
    """The options in `flying=yes,cap=80`."""
    chosen: dict[str, str] = {}
    for part in filter(None, map(str.strip, settings.split(","))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise GameloreError(f"expected option=value, got {part!r} in {source!r}; write name:option=value,..")
        if name.lower() in chosen:
            raise GameloreError(f"expected the option {name} once, got it again in {source!r}; leave one out")
        chosen[name.lower()] = value
    return chosen


def _suggestion(name: str) -> str:
    close = get_close_matches(name.lower(), names(), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"choose one of {', '.join(names())}"
