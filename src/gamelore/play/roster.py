"""Players by name, as the command line and a match record write them: "egreedy:filler=first,epsilon=0.05"."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ..errors import GameloreError
from .perfect import Perfect
from .player import Kind, Opponent, OpponentSettings, Player
from .reasonable import EXPERT, NOVICE, Reasonable, XReasonable
from .search import HEURISTICS, Heuristic, Lookahead
from .uct import UCT, SearchSettings


@dataclass(frozen=True, slots=True)
class Entry:
    """A kind of player: what it is in a few words, what can be set (name -> reader), and its maker."""

    about: str
    options: Mapping[str, Callable[[str], object]]
    make: Callable[..., Player]


ROSTER: dict[str, Entry] = {}


def enlist(name: str, entry: Entry) -> None:
    """Adds a kind of player. Raises GameloreError where the name is taken."""
    if name in ROSTER:
        raise GameloreError(f"expected a new player name, got {name!r}, which is taken; choose another")
    ROSTER[name] = entry


def player(spec: str) -> Player:
    """The player that "name" or "name:option=value,option=value" describes; it serves any number of lanes.

    Raises GameloreError for an unknown name or option, naming the nearest, and for an unreadable value.
    """
    name, _, settings = spec.partition(":")
    entry = ROSTER[_known(name.strip(), ROSTER, "player")]
    pairs = [_pair(part, spec) for part in settings.split(",") if part.strip()]
    values = {_known(key, entry.options, f"option of {name}"): _read(entry, key, text, spec) for key, text in pairs}
    return entry.make(**values)


def _pair(part: str, spec: str) -> tuple[str, str]:
    key, equals, value = part.partition("=")
    if not equals:
        raise GameloreError(f"expected option=value, got {part!r} in {spec!r}; write name:option=value,..")
    return key.strip(), value.strip()


def _read(entry: Entry, key: str, text: str, spec: str) -> object:
    _known(key, entry.options, f"option in {spec!r}")
    try:
        return entry.options[key](text)
    except ValueError:
        raise GameloreError(f"expected a number for {key}, got {text!r} in {spec!r}; write {key}=1") from None


def _known(name: str, names: Mapping[str, object], what: str) -> str:
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        remedy = f"did you mean {' or '.join(near)}?" if near else "choose one of these"
        raise GameloreError(f"expected {what}: {', '.join(names) or 'none'}; got {name!r}; {remedy}")
    return name


def _opponent(kind: Kind, **settings: object) -> Opponent:
    return Opponent(OpponentSettings(kind, **settings))  # type: ignore[arg-type]


def _uct(**settings: object) -> UCT:
    return UCT(SearchSettings(**settings))  # type: ignore[arg-type]


_OPPONENT_OPTIONS: dict[str, Callable[[str], object]] = {"filler": str, "epsilon": float, "hash_key": int}
_ABOUT_OPPONENTS: dict[Kind, str] = {
    "egreedy": "takes a winning move, avoids giving one, explores a little (B&S 2007)",
    "random": "draws among its legal moves",
    "weak": "the opposite of egreedy: loses where it can (B&S 2007)",
}
_ABOUT_LOOKAHEAD: dict[Heuristic, str] = {
    "minimax": "looks `depth` plies ahead, expecting the others' worst",
    "maxmax": "looks `depth` plies ahead, expecting the others to help",
    "avgmax": "looks `depth` plies ahead, expecting the others to draw at random",
}

for _kind, _about in _ABOUT_OPPONENTS.items():
    enlist(_kind, Entry(_about, {} if _kind == "random" else _OPPONENT_OPTIONS, partial(_opponent, _kind)))
for _heuristic in HEURISTICS:
    enlist(
        _heuristic,
        Entry(
            _ABOUT_LOOKAHEAD[_heuristic],
            {"depth": int, "default": float},
            partial(Lookahead, _heuristic),
        ),
    )
enlist(
    "uct",
    Entry(
        "searches by random playouts, 1000 `simulations` a move or so many `seconds` (UCT)",
        {"simulations": int, "seconds": float, "exploration": float, "leaves": int, "playouts": int, "max_plies": int},
        _uct,
    ),
)
enlist(
    "perfect",
    Entry(
        "solves the game first; wins as fast and loses as slowly as can be (best=value: loses nothing)",
        {"best": str},
        Perfect,
    ),
)
enlist(
    "reasonable",
    Entry(
        "wins at once, avoids giving a win at once, else draws (L&E 2004; own=avoid: nor loses at once)",
        {"own": str},
        Reasonable,
    ),
)
enlist(
    "xreasonable",
    Entry(
        "reasonable in `x` per cent of its moves, perfect in the others (L&E 2004)",
        {"x": float, "own": str, "best": str},
        XReasonable,
    ),
)
for _name, _x in (("expert", EXPERT), ("novice", NOVICE)):
    enlist(_name, Entry(f"xreasonable with x={_x:g}", {"own": str, "best": str}, partial(XReasonable, _x)))
