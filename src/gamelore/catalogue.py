"""All players and learners by name. The text for a player is its *spec*, such as "egreedy:epsilon=0.05".

The command line, the lab and the network code create players with this module; match records contain the specs. The
spec of a user-defined player is "path/to/file.py:ClassName": a subclass of `Player` in a Python file. The parameters of
its `__init__` are its options, as in "mine.py:Careful:depth=3".
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import PLAYER_MODULES, GameloreError, one_of
from .matches import lockstep
from .matches.opponents import (
    EXPERT,
    NOVICE,
    OPPONENT_OPTIONS,
    Opponent,
    OpponentSettings,
    Readers,
    Reasonable,
    XReasonable,
    options_of,
    read_options,
    yes_or_no,
)
from .matches.opponents import Kind as OpponentKind
from .players.lookahead import HEURISTICS, Heuristic, Lookahead
from .players.player import Player
from .players.uct import UCT, SearchSettings
from .search.settings import ChampionSettings
from .solver.perfect import Perfect

if TYPE_CHECKING:
    from .learning.td.initial_values import Kind


@dataclass(frozen=True, slots=True)
class PlayerKind:
    """A kind of player: a short description, its options, and its constructor.

    `options` maps the name of each option to the function that reads its value from text. `leading` is the option whose
    value may come first without its name, as in "openspiel:mcts". `told` returns the class whose docstring says what
    the options mean.
    """

    about: str
    options: Readers
    make: Callable[..., Player]
    leading: str = ""
    told: Callable[[], type] | None = None

    @property
    def meanings(self) -> dict[str, str]:
        """What each option means, with its default value, as far as a docstring says so."""
        texts = {**_OF_STORES, **(_told_by(self.told()) if self.told is not None else {})}
        return {option: texts[option] for option in self.options if option in texts}


_OF_STORES = {
    "knowledge": "file of the knowledge store",
    "quota": "size of the store in bytes at which the player stops learning",
    "learn": "whether the player learns from its matches (default: yes)",
}
_TOLD = re.compile(r"^(\w+(?:, \w+)*) +(\S.*(?:\n {2,}\S.*)*)", re.MULTILINE)


def _told_by(kind: type) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say about its parameters, with their default values."""
    parameters, texts = inspect.signature(kind).parameters, dict[str, str]()
    for own in reversed(kind.__mro__):
        for names, text in _TOLD.findall(inspect.cleandoc(own.__doc__ or "")):
            texts |= {name: " ".join(text.split()) for name in names.split(", ") if name in parameters}
    return {name: text + _default(parameters[name].default) for name, text in texts.items()}


def _default(value: object) -> str:
    if value in (None, "", inspect.Parameter.empty):
        return ""
    shown = (
        {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else value
    )
    return f" (default: {shown})"


PLAYERS: dict[str, PlayerKind] = {}
PLUGINS = "gamelore.players"
"""The group of entry points by which packages add players: name -> a PlayerKind."""


def register(name: str, kind: PlayerKind) -> None:
    """Add a kind of player. Raise GameloreError if the name is taken."""
    if name in PLAYERS:
        raise GameloreError(
            f"expected a new name for a player, got {name!r}, which is already used; choose another name"
        )
    PLAYERS[name] = kind


@cache
def _plugins() -> dict[str, EntryPoint]:
    """Return the players of other packages, and of packages that need them, by name."""
    return {found.name: found for found in entry_points(group=PLUGINS) if found.name not in PLAYERS}


def all_names() -> list[str]:
    """Return the names of all players, those of plug-ins last."""
    return [*PLAYERS, *_plugins()]


def kind_of(name: str) -> PlayerKind:
    """Return the kind of player with a name. Raise GameloreError for a plug-in that cannot be imported."""
    if name in PLAYERS:
        return PLAYERS[name]
    plugin = _plugins()[name]
    try:
        kind = plugin.load()
    except Exception as error:
        raise GameloreError(
            f"expected the player {name} in {plugin.value}, got {type(error).__name__}: {error}; correct the package"
        ) from error
    if not isinstance(kind, PlayerKind):
        raise GameloreError(f"expected a PlayerKind in {plugin.value}, got {kind!r}; correct the package")
    return kind


def player(spec: str, **given: object) -> Player:
    """Return the player for the spec "name" or "name:option=value,option=value"; it can play in any number of lanes.

    The name can also be "path/to/file.py:ClassName", which means a class in that file. `given` contains values for
    options that the spec does not set. A value None, and a value for an option that this player does not have, are
    ignored.

    Raise GameloreError if a name or an option is unknown (the message suggests the nearest known name), if a value
    cannot be read, or if a file cannot be imported or does not contain the player.
    """
    return _player(*_read(spec), given)


def named_player(spec: str, *, without: Collection[str] = (), **given: object) -> Player:
    """Return the player for a spec that a stranger wrote, such as somebody at a web page.

    It can only be a player with a name: a class of a file would run that file.

    Args:
        spec: "name" or "name:option=value,option=value", without names of files
        without: options that the spec may not set
        given: values for options that the spec does not set, see `player`

    Raises:
        GameloreError: what `player` raises, a spec that could name a file, or an option of `without`.
    """
    if not _PLAIN.fullmatch(spec) or ".py" in spec.lower():
        raise GameloreError(
            "expected the name of a player, with options of letters, digits and the signs _ = , . + - :, and no file, "
            f"got {spec[:100]!r}; choose a player from the list"
        )
    kind, values = _read(spec)
    for option in without:
        if option in values:
            raise GameloreError(
                f"expected options without {option}, which is set elsewhere, got {spec!r}; leave it out"
            )
    return _player(kind, values, given)


_PLAIN = re.compile(r"[\w :=,.+-]*")


def _read(spec: str) -> tuple[PlayerKind, dict[str, Any]]:
    """Return the kind of player of a spec, and the values of its options."""
    name, kind, settings = _kind_of(spec)
    if kind.leading and settings and "=" not in settings.partition(",")[0]:
        settings = f"{kind.leading}={settings}"
    return kind, read_options(settings, kind.options, name, spec)


def _player(kind: PlayerKind, values: Mapping[str, Any], given: Mapping[str, object]) -> Player:
    defaults = {key: value for key, value in given.items() if key in kind.options and value is not None}
    return kind.make(**{**defaults, **values})


def _kind_of(spec: str) -> tuple[str, PlayerKind, str]:
    """Return the parts of a spec: the name, the kind of player, and the options as text."""
    if own := _OWN.fullmatch(spec):
        path, name, settings = own.groups(default="")
        return name, _own_kind(Path(path.strip()), name, spec), settings
    name, _, settings = spec.partition(":")
    if name.strip().endswith(".py"):
        raise GameloreError(f"expected FILE.py:CLASS, got {spec!r}; name the player's class in this file")
    return name, kind_of(one_of(name.strip(), all_names(), "a player")), settings


_OWN = re.compile(r"(.+?\.py)\s*:\s*(\w+)\s*(?::(.*))?", re.DOTALL)


def _own_kind(path: Path, name: str, spec: str) -> PlayerKind:
    """Return the kind of player of a class in a file. Raise GameloreError if the class is not a player."""
    own = _module(path.resolve(), path.stat().st_mtime_ns if path.is_file() else 0).get(name)
    if not isinstance(own, type) or Player not in own.__mro__[1:]:
        definition = "no such name" if own is None else repr(own)
        raise GameloreError(
            f"expected the class of a player with the name {name} in {path}, got {definition}; derive the class from "
            "gamelore.Player or gamelore.PositionPlayer"
        )
    return PlayerKind(inspect.getdoc(own) or "", options_of(own), partial(_made, own, spec))


@cache
def _module(path: Path, changed: int) -> Mapping[str, object]:
    """Run a Python file and return the names that it defines.

    The file is run again only if `changed`, its modification time, is new. The folder of the file is added to the
    import path, so that the file can import its neighbours.
    """
    name = f"{PLAYER_MODULES}{path.stem}_{blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    assert module_spec is not None  # Python finds a module spec for every name that ends in .py
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module  # dataclasses and pickle look the module up by its name
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        cause = f"{type(error).__name__}: {error}"
        raise GameloreError(
            f"expected a Python file that can be imported, got {cause} in {path}; correct the file"
        ) from error
    return vars(module)


def _made(kind: Callable[..., Player], spec: str, **settings: object) -> Player:
    """Return a player of a class. Raise GameloreError if the options are wrong."""
    try:
        return kind(**settings)
    except TypeError as error:
        raise GameloreError(
            f"expected a player from {spec!r}, got: {error}; write its options as NAME:option=value,option=value"
        ) from error


KNOWN_OPPONENTS = (
    "random",
    "egreedy",
    "egreedy:filler=first",
    "weak",
    "minimax:depth=2",
    "uct:simulations=100",
    "uct:simulations=1000",
    "gamelore:simulations=1000",
)
"""The specs of the players with whom `gamelore study` compares the opponents of the player gamelore."""


def known_opponents() -> dict[str, Player]:
    """Return the players of KNOWN_OPPONENTS by spec."""
    return {spec: player(spec) for spec in KNOWN_OPPONENTS}


play_matches = partial(lockstep.play_matches, player=player)
"""The function `lockstep.play_matches` with the players of this catalogue."""


def _opponent(kind: OpponentKind, **settings: object) -> Opponent:
    return Opponent(OpponentSettings(kind, **settings))  # type: ignore[arg-type]


def _uct(**settings: object) -> UCT:
    return UCT(SearchSettings(**settings))  # type: ignore[arg-type]


def _gamelore(knowledge: str | None = None, quota: int | None = None, learn: bool = True, **settings: object) -> Player:
    from .memory.remembering import Remembering
    from .search.champion import Gamelore

    champion = ChampionSettings(**settings)  # type: ignore[arg-type]
    return Gamelore(champion) if knowledge is None else Remembering(champion, knowledge, quota, learn)


def _stored_seqplayer(**options: object) -> Player:
    from .learning.session import StoredSeqPlayer

    return StoredSeqPlayer(**options)  # type: ignore[arg-type]


def _learner_settings() -> type:
    from .learning.td.initial_values import LearnerSettings

    return LearnerSettings


def _lasting(kind: Kind, **options: object) -> Player:
    from .learning.session import LastingLearner

    return LastingLearner(kind, **options)  # type: ignore[arg-type]


_OPPONENTS: dict[OpponentKind, str] = {
    "egreedy": "wins at once if it can, avoids moves that let others win at once, explores a little (B&S 2007)",
    "random": "chooses a random legal move",
    "weak": "the opposite of egreedy: loses if it can (B&S 2007)",
}
_LOOKAHEADS: dict[Heuristic, str] = {
    "minimax": "looks `depth` plies ahead and assumes that the other roles play against it",
    "maxmax": "looks `depth` plies ahead and assumes that the other roles play for it",
    "avgmax": "looks `depth` plies ahead and assumes that the other roles play at random",
}
_OTHERS: dict[str, PlayerKind] = {
    "gamelore": PlayerKind(
        "the strongest player: a search whose tree is kept during a match, with proofs, and a value learned in the "
        "startclock; 10,000 `simulations` for each move, or as many as fit into `seconds`; with a store `knowledge` it "
        "remembers what it learned in earlier matches, and in `gamelore study`",
        {**options_of(ChampionSettings), "knowledge": str, "quota": int, "learn": yes_or_no},
        _gamelore,
        told=lambda: ChampionSettings,
    ),
    "uct": PlayerKind(
        "searches with random playouts (UCT): 1000 `simulations` for each move, or as many as fit into `seconds`; with "
        "clock=yes, and in `serve`, until shortly before the playclock ends if neither is given",
        options_of(SearchSettings),
        _uct,
        told=lambda: SearchSettings,
    ),
    "perfect": PlayerKind(
        "solves the game first; wins as fast and loses as slowly as possible (best=value: any best move; choice=fixed "
        "or symmetric: repeats its choices)",
        options_of(Perfect),
        Perfect,
        told=lambda: Perfect,
    ),
    "reasonable": PlayerKind(
        "wins at once if it can, avoids moves that let another player win at once, else plays at random (L&E "
        "2004; own=avoid: also avoids losing at once; choice=fixed or symmetric: repeats its choices)",
        options_of(Reasonable),
        Reasonable,
        told=lambda: Reasonable,
    ),
    "xreasonable": PlayerKind(
        "plays `x` per cent of its moves like reasonable, the others like perfect (L&E 2004)",
        options_of(XReasonable),
        XReasonable,
        told=lambda: XReasonable,
    ),
    **{
        name: PlayerKind(
            f"xreasonable with x={x:g}", options_of(XReasonable, "x"), partial(XReasonable, x), told=lambda: XReasonable
        )
        for name, x in (("expert", EXPERT), ("novice", NOVICE))
    },
    "seqplayer": PlayerKind(
        "plays by learned sequences (L&E 2004) of the learner with the number `learner` in the store `knowledge`",
        {
            **{"knowledge": str, "learner": int, "version": int, "enforce": str, "votes": str},
            **{"nearest": int, "verify": int, "fallback": str},
        },
        _stored_seqplayer,
    ),
}
# not read from the settings themselves: the rooms of learning are imported only if a learner plays
_LEARNER_OPTIONS: Readers = {
    **{"knowledge": str, "opponent": str, "seed": int, "learn": yes_or_no, "quota": int, "search": float},
    **{"initialisation": str, "depth": int, "alpha": float, "gamma": float, "lam": float, "epsilon": float},
    **{"symmetry": str, "ties": str},
}
_LEARNERS: dict[Kind, tuple[str, Readers]] = {
    "baseline": (
        "learns afterstate values for play against `opponent` (join its options by +); keeps them in the store"
        " `knowledge` unless learn=no (B&S 2007)",
        {},
    ),
    "transfer": (
        "like baseline, but begins with feature values from the games `source` (join them by +; default: all in "
        "the store); with `turns`, with those of features below and a model of the replies",
        {"source": str, "source_opponent": str, "control": str, "turns": int},
    ),
    "lookahead": (
        "like baseline, but begins with values of a lookahead of `depth` plies (B&S 2007)",
        {"heuristic": str},
    ),
    "oracle": (
        "like baseline, but begins with the exact values of best play against `opponent`; the game must be small "
        "(control=optimal: without its own random moves)",
        {"control": str},
    ),
}

for _kind, _about in _OPPONENTS.items():
    _readers = {} if _kind == "random" else OPPONENT_OPTIONS
    register(_kind, PlayerKind(_about, _readers, partial(_opponent, _kind), told=lambda: OpponentSettings))
for _heuristic in HEURISTICS:
    register(
        _heuristic,
        PlayerKind(
            _LOOKAHEADS[_heuristic],
            options_of(Lookahead, "heuristic"),
            partial(Lookahead, _heuristic),
            told=lambda: Lookahead,
        ),
    )
for _name, _other in _OTHERS.items():
    register(_name, _other)
for _learner, (_about, _more) in _LEARNERS.items():
    _readers = {**_LEARNER_OPTIONS, **_more}
    register(_learner, PlayerKind(_about, _readers, partial(_lasting, _learner), told=_learner_settings))
