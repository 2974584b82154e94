"""Players by name, as the command line and a match record write them: "egreedy:filler=first,epsilon=0.05".

A player of one's own is "path/to/file.py:ClassName": a subclass of `Player` in a Python file. The parameters of its
`__init__` are its options: "mine.py:Careful:depth=3".
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import get_args, get_type_hints

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


def player(spec: str, **given: object) -> Player:
    """The player that "name" or "name:option=value,option=value" describes; it serves any number of lanes.

    "path/to/file.py:ClassName", options behind it as above, is the class of that name from that file. `given` are
    values, not texts, for options that the spec does not set; those that this player does not have, and those that
    are None, are passed over.

    Raises GameloreError for an unknown name or option, naming the nearest, for an unreadable value, and for a file
    that cannot be imported or has no such player.
    """
    name, entry, settings = _entry(spec)
    pairs = [_pair(part, spec) for part in settings.split(",") if part.strip()]
    values = {_known(key, entry.options, f"option of {name}"): _read(entry, key, text, spec) for key, text in pairs}
    others = {key: value for key, value in given.items() if key in entry.options and value is not None}
    return entry.make(**{**others, **values})


def _entry(spec: str) -> tuple[str, Entry, str]:
    """(the name, what it stands for, the options behind it) in a spec."""
    if own := _OWN.fullmatch(spec):
        path, name, settings = own.groups(default="")
        return name, _own_entry(Path(path.strip()), name, spec), settings
    name, _, settings = spec.partition(":")
    if name.strip().endswith(".py"):
        raise GameloreError(f"expected FILE.py:CLASS, got {spec!r}; name the class in that file that is the player")
    return name, ROSTER[_known(name.strip(), ROSTER, "player")], settings


_OWN = re.compile(r"(.+?\.py)\s*:\s*(\w+)\s*(?::(.*))?", re.DOTALL)


def _pair(part: str, spec: str) -> tuple[str, str]:
    key, equals, value = part.partition("=")
    if not equals:
        raise GameloreError(f"expected option=value, got {part!r} in {spec!r}; write name:option=value,..")
    return key.strip(), value.strip()


def _read(entry: Entry, key: str, text: str, spec: str) -> object:
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


def yes_or_no(text: str) -> bool:
    """The reader of an option that is either. Raises GameloreError for another word."""
    if text.lower() not in ("yes", "no"):
        raise GameloreError(f"expected yes or no, got {text!r}; write one of these")
    return text.lower() == "yes"


def _own_entry(path: Path, name: str, spec: str) -> Entry:
    """A class in somebody's file as an entry. Raises GameloreError where it is none of a player."""
    found = _module(path.resolve(), path.stat().st_mtime_ns if path.is_file() else 0).get(name)
    if not isinstance(found, type) or Player not in found.__mro__[1:]:
        what = "nothing of that name" if found is None else repr(found)
        raise GameloreError(
            f"expected a class {name}(Player) in {path}, got {what}; derive it from gamelore.play.player.Player"
        )
    return Entry(inspect.getdoc(found) or "", _own_options(found), partial(_made, found, spec))


@cache
def _module(path: Path, changed: int) -> Mapping[str, object]:
    """What a file defines, run once for each of its states; beside it, as for a script, lie modules that it imports."""
    name = f"gamelore_player_{path.stem}_{blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    assert module_spec is not None  # for a name that ends in .py there is one
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module  # dataclasses and pickle look for it there
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        found = f"{type(error).__name__}: {error}"
        raise GameloreError(f"expected a Python file that can be imported, got {found} in {path}; mend it") from error
    return vars(module)


def _own_options(found: type) -> dict[str, Callable[[str], object]]:
    """What can be set: the parameters of a class, read as what they are annotated with, else as their default is."""
    init = inspect.unwrap(found.__init__)  # type: ignore[misc]
    parameters = list(inspect.signature(init).parameters.values())[1:]
    try:
        hints = get_type_hints(init)
    except Exception:  # annotations that only a type checker can resolve
        hints = {}
    named = (one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))
    return {one.name: _reader(hints.get(one.name, type(one.default))) for one in named}


def _reader(kind: object) -> Callable[[str], object]:
    """How an option of this kind, `int` or `int | None`, is read."""
    readers: dict[object, Callable[[str], object]] = {bool: yes_or_no, int: int, float: float, Path: Path}
    return next((readers[one] for one in (kind, *get_args(kind)) if one in readers), str)


def _made(found: Callable[..., Player], spec: str, **settings: object) -> Player:
    try:
        return found(**settings)
    except TypeError as error:
        raise GameloreError(f"expected a player from {spec!r}, got: {error}; name its options behind it") from error


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
