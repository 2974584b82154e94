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

A game is `NAME.kif`, commented GDL, and `NAME.perft`, its counts. (The word is from chess: a performance test that
walks all moves to a fixed depth.) A line of a perft file is `depth sequences positions`: the joint-move sequences of
exactly that length from the start, where a match that has ended goes no further, and the distinct positions (sets of
facts) that they lead to. Where a game was counted to its end, `complete N` gives the number of its complete games and
`reachable N` its distinct positions over all depths. `#` begins a comment.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from ..errors import GameloreError
from ..rules.asp import Limits
from ..rules.game import EngineName, Game, make
from ..rules.gdl import Rulesheet, parse

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
    a path that ends in ".kif"; a shipped name goes before a file of that name. Raises GDLError for a
    rulesheet that cannot be played, GameloreError for an unknown name or engine, OSError for a file that cannot be
    read.
    """
    sheet, name = read(source)
    return make(sheet, name, engine, limits, rewrite)


def read(source: str | Path) -> tuple[Rulesheet, str]:
    """Parses a shipped name, a path or GDL text; also gives the game's name. Raises as `load` does."""
    place = Path(source)
    if isinstance(source, str) and "(" in source and ("\n" in source or place.suffix != ".kif"):
        return parse(source), "unnamed"
    if source in names() or not (place.suffix or place.is_file()):
        place = path(str(source))
    return parse(place.read_text(encoding="utf-8", errors="replace"), place), place.stem


def _suggestion(name: str) -> str:
    close = get_close_matches(name.lower(), names(), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"choose one of {', '.join(names())}"
