"""Matches as the GGP record: the JSON that game managers write, one match a file, read back and checked.

A record of another program is read as far as it goes: only the states and the moves have to be there. What the common
format has no place for stands under one key of its own, "gamelore", which other programs skip.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import GameloreError, GDLError, IllegalMoveError
from ..play.graph import Graph
from ..play.match import Event, MatchState
from ..play.player import CAP, END_NAMES, TERMINAL
from ..rules.board import natural_order
from ..rules.gdl import Function, parse_term
from .messages import printable

if TYPE_CHECKING:
    from ..rules.game import Game

LATE, UNREACHABLE, ILLEGAL = "TO", "CE", "IL"  # errors of a record, the last with what was said: `IL <move>`
DETAILS_FORMAT = 1
MAX_FACTS_TOLD = 6  # of those that differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What the common format lacks.

    players   by role: the description of a player of this host, or the address of one elsewhere
    goals     by role; None where the rules give none or several, or the match did not reach a terminal position
    end       "terminal", "stuck" or "cap"; None where the match was broken off
    key       what the random streams of the match were keyed by: (seed, run, stage, match)
    settings  of the host and of the series, as it likes
    """

    game: str
    rules_hash: str
    roles: tuple[str, ...]
    players: tuple[str, ...] = ()
    goals: tuple[int | None, ...] = ()
    end: str | None = None
    key: tuple[int | str, ...] = ()
    events: tuple[Event, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    format: int = DETAILS_FORMAT


@dataclass(frozen=True, slots=True, kw_only=True)
class GGPRecord:
    """A match in the common format; its keys by what they are called here.

    states           each "( (cell 1 1 b) .. )", the facts without `true`; one more than there are moves
    moves            per ply one of every role, in the order of roles
    state_times      milliseconds since 1970, one a state, as `start_time`
    errors           per state and role "", `IL <move>`, `TO` or `CE`; the first row is the phase of START
    goal_values      by role; empty where the match was not completed or the rules give a role none
    *_clock          seconds; -1 where there was none
    is_completed     it reached a terminal position; `is_aborted`: it is over without
    others           all further keys, as they were read
    """

    match_id: str = ""
    random_token: str = ""
    start_time: int = 0
    game_meta_url: str = ""
    is_completed: bool = False
    is_aborted: bool = False
    states: tuple[str, ...]
    moves: tuple[tuple[str, ...], ...]
    state_times: tuple[int, ...] = ()
    preview_clock: int = -1
    start_clock: int = -1
    play_clock: int = -1
    scrambled: bool = False
    errors: tuple[tuple[str, ...], ...] = ()
    goal_values: tuple[int, ...] = ()
    player_names: tuple[str, ...] = ()
    is_player_human: tuple[bool, ...] = ()
    tournament: str = ""
    details: Details | None = None
    others: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line of JSON; what is optional and empty is left out."""
        values = {key: getattr(self, name) for name, (key, _) in _KEYS.items()}
        optional = {_KEYS[name][0] for name in _OPTIONAL}
        shown = {key: value for key, value in values.items() if value or key not in optional}
        details = {} if self.details is None else {_OURS: asdict(self.details)}
        return json.dumps({**shown, **self.others, **details})

    @classmethod
    def from_json(cls, text: str) -> GGPRecord:
        """Reads a record, of gamelore or of another program. Raises GameloreError for anything else."""
        try:
            return cls._of(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            why = printable(f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error), 100)
            raise GameloreError(
                f"expected a GGP match record in JSON, got something else ({why}); "
                'the least that it needs is {"states": ["( (fact) .. )", ..], "moves": [["move", ..], ..]}'
            ) from None

    @classmethod
    def _of(cls, values: dict[str, Any]) -> GGPRecord:
        """A record of what the JSON says, which is used up."""
        missing = [key for key in ("states", "moves") if key not in values]
        if missing:
            raise ValueError(f"without {' and '.join(missing)}")
        details = _details(values.pop(_OURS, None))
        given = {name: values.pop(key, None) for name, (key, _) in _KEYS.items()}
        known = {name: _KEYS[name][1](value) for name, value in given.items() if value is not None}
        return cls(**known, details=details, others=values)

    def write(self, path: Path) -> None:
        """Writes the record as a file, which is there whole or, whatever happens, not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(f"{self.to_json()}\n", encoding="ascii")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def facts(self, ply: int) -> frozenset[str]:
        """The facts of a state, in canonical form and lower case. Raises GameloreError for a text that has none."""
        text = self.states[ply].strip()
        try:
            state = parse_term(f"(state {text[1:-1]})") if text[:1] + text[-1:] == "()" else None
        except GDLError as error:
            raise GameloreError(f"expected facts at ply {ply}, got {printable(text)}: {error.message}") from None
        if state is None:
            raise GameloreError(f"expected ( (fact) .. ) at ply {ply}, got {printable(text)}; write it like that")
        facts = state.args if isinstance(state, Function) else ()
        return frozenset(str(_bare(fact)).lower() for fact in facts)


def of_match(
    match: MatchState,
    match_id: str,
    players: Sequence[str],
    *,
    names: Sequence[str] = (),
    random_token: str = "",
    start_time: int = 0,
    state_times: Sequence[int] = (),
    clocks: tuple[int, int, int] = (-1, -1, -1),
    scrambled: bool = False,
    errors: Iterable[Sequence[str]] = (),
    key: Sequence[int | str] = (),
    is_aborted: bool = False,
    settings: Mapping[str, Any] | None = None,
    **others: Any,
) -> GGPRecord:
    """The record of a match as far as it was played.

    players  by role, see `Details`; `names`: what they call themselves, if they do
    clocks   (preview, start, play) in seconds, -1 where there is none
    others   further fields of GGPRecord: `tournament`, `is_player_human`, `game_meta_url`
    """
    game, goals = match.graph.game, match.goals
    rows, choices = trajectory(match)
    return GGPRecord(
        match_id=match_id,
        random_token=random_token,
        start_time=start_time,
        is_completed=match.end == END_NAMES[TERMINAL],
        is_aborted=is_aborted or match.end not in (None, END_NAMES[TERMINAL]),
        states=tuple(_state_text(match.graph.facts(row)) for row in rows),
        moves=tuple(
            tuple(game.move_text(role, int(match.graph.legal(row, role)[choice])) for role, choice in enumerate(joint))
            for row, joint in zip(rows, choices, strict=False)
        ),
        state_times=tuple(state_times),
        preview_clock=clocks[0],
        start_clock=clocks[1],
        play_clock=clocks[2],
        scrambled=scrambled,
        errors=tuple(map(tuple, errors)),
        goal_values=tuple(goal for goal in goals if goal is not None) if None not in goals else (),
        player_names=tuple(names),
        details=Details(
            game=game.name,
            rules_hash=game.rules_hash,
            roles=tuple(game.roles),
            players=tuple(players),
            goals=goals,
            end=match.end,
            key=tuple(key),
            events=tuple(match.events),
            settings=dict(settings or {}),
        ),
        **others,
    )


def trajectory(match: MatchState) -> tuple[list[int], list[list[int]]]:
    """The positions of a match so far, as rows of its graph, and the choices of all roles by ply."""
    log = match.turn(0, 0).log
    assert log is not None
    return log.rows[0].tolist(), log.choices[0].tolist()


def replay(record: GGPRecord, game: Game, graph: Graph | None = None) -> MatchState:
    """Plays the moves of a record again, on a graph of the game that others may use, too.

    Raises GameloreError, naming the ply, where anything differs from the record.
    """
    _check_lengths(record, game)
    details = record.details
    if details is not None and details.rules_hash != game.rules_hash:
        raise GameloreError(f"expected the rules of {printable(details.game)} as recorded, got others; {_REMEDY}")
    is_capped = details is not None and details.end == END_NAMES[CAP]
    match = MatchState(graph or Graph(game), max_plies=len(record.moves) + (not is_capped))
    for ply, moves in enumerate(record.moves):
        _compare_facts(record, match)
        for role, move in enumerate(moves):
            _submit(match, ply, role, move)
    _compare_facts(record, match)
    _compare_end(record, match)
    return match


def read(path: Path) -> GGPRecord:
    """The record in a file. Raises GameloreError, naming the file, for anything else; OSError as files do."""
    try:
        return GGPRecord.from_json(path.read_text(encoding="utf-8-sig", errors="replace"))
    except GameloreError as error:
        raise GameloreError(f"{path}: {error}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r}")
    return value


def _whole(value: Any) -> int:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_whole:
        raise TypeError(f"expected a whole number, got {value!r}")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def _several(reader: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A reader of lists of what another one reads."""

    def read_list(values: Any) -> tuple[Any, ...]:
        if not isinstance(values, list):
            raise TypeError(f"expected a list, got {values!r}")
        return tuple(map(reader, values))

    return read_list


def _or_none(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else reader(value)


def _event(values: Any) -> Event:
    return Event(_whole(values["ply"]), _text(values["role"]), _text(values["kind"]), _text(values["text"]))


_OURS = "gamelore"
_REMEDY = "replay it with the rules that it was made with"
_OPTIONAL = ("errors", "goal_values", "player_names", "is_player_human", "tournament")
_KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "match_id": ("matchId", _text),
    "random_token": ("randomToken", _text),
    "start_time": ("startTime", _whole),
    "game_meta_url": ("gameMetaURL", _text),
    "is_completed": ("isCompleted", _flag),
    "is_aborted": ("isAborted", _flag),
    "states": ("states", _several(_text)),
    "moves": ("moves", _several(_several(_text))),
    "state_times": ("stateTimes", _several(_whole)),
    "preview_clock": ("previewClock", _whole),
    "start_clock": ("startClock", _whole),
    "play_clock": ("playClock", _whole),
    "scrambled": ("scrambled", _flag),
    "errors": ("errors", _several(_several(_text))),
    "goal_values": ("goalValues", _several(_whole)),
    "player_names": ("playerNamesFromHost", _several(_text)),
    "is_player_human": ("isPlayerHuman", _several(_flag)),
    "tournament": ("tournamentNameFromHost", _text),
}
_DETAILS: dict[str, Callable[[Any], Any]] = {
    "game": _text,
    "rules_hash": _text,
    "roles": _several(_text),
    "players": _several(_text),
    "goals": _several(_or_none(_whole)),
    "end": _or_none(_text),
    "key": tuple,
    "events": _several(_event),
    "settings": dict,
    "format": _whole,
}


def _details(values: Any) -> Details | None:
    """Reads `asdict(Details)`."""
    if values is None:
        return None
    if values["format"] != DETAILS_FORMAT:
        raise ValueError(f"expected gamelore's part in format {DETAILS_FORMAT}, got {values['format']!r}")
    return Details(**{key: _DETAILS[key](value) for key, value in values.items()})


def _state_text(facts: Iterable[str]) -> str:
    return f"( {' '.join(sorted(facts, key=natural_order))} )"


def _bare(fact: Any) -> Any:
    """`(true fact)`, as some programs write it, is the fact."""
    return fact.args[0] if isinstance(fact, Function) and fact.name == "true" and len(fact.args) == 1 else fact


def _check_lengths(record: GGPRecord, game: Game) -> None:
    roles, states = game.num_roles, len(record.moves) + 1
    _compare("the number of states", len(record.states), states)
    for ply, moves in enumerate(record.moves):
        _compare(f"the number of moves at ply {ply}", len(moves), roles)
    for ply, errors in enumerate(record.errors):
        _compare(f"the number of errors at ply {ply}", len(errors), roles)
    for what, row, length in (
        ("state times", record.state_times, states),
        ("rows of errors", record.errors, states),
        ("goals", record.goal_values, roles),
        ("players", record.player_names, roles),
    ):
        if row:
            _compare(f"the number of {what}", len(row), length)


def _compare_facts(record: GGPRecord, match: MatchState) -> None:
    """Compares the state at the present ply of a match that is played again."""
    found = match.graph.facts(match.row)
    if record.states[match.ply] == _state_text(found):
        return
    recorded, played = record.facts(match.ply), {fact.lower() for fact in found}
    if recorded != played:
        raise GameloreError(
            f"expected the state at ply {match.ply} as recorded, got another one; only recorded: "
            f"{_told(recorded - played)}; only played: {_told(played - recorded)}; {_REMEDY}"
        )


def _compare_end(record: GGPRecord, match: MatchState) -> None:
    """Compares how it ended, as far as the record says so: that of a match that was broken off does not."""
    if record.is_completed:
        _compare("the end", END_NAMES[TERMINAL], match.end)
        _compare("the goals", record.goal_values or match.goals, match.goals)
    if record.details is not None and record.details.end is not None:
        _compare("the end", record.details.end, match.end)
        _compare("the goals", record.details.goals or match.goals, match.goals)


def _submit(match: MatchState, ply: int, role: int, move: str) -> None:
    try:
        match.submit(role, move)
    except IllegalMoveError as error:
        raise GameloreError(f"ply {ply} differs from the record: {printable(str(error), 500)}") from None


def _told(facts: Iterable[str]) -> str:
    """Some facts, the first of them where there are many."""
    ordered = [printable(fact, 80) for fact in sorted(facts, key=natural_order)]
    more = [".."] if len(ordered) > MAX_FACTS_TOLD else []
    return " ".join(ordered[:MAX_FACTS_TOLD] + more) or "none"


def _compare(what: str, recorded: object, found: object) -> None:
    if recorded != found:
        raise GameloreError(
            f"expected {what} as recorded, {printable(str(recorded))}, got {printable(str(found))}; {_REMEDY}"
        )
