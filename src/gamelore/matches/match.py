"""One match as a state machine without I/O, and the match record in JSON: written, read, and replayed.

The host uses a `MatchState` for each match, and waits for replies until the clock ends. The lab plays thousands of
matches in lockstep (lockstep.py). Both ask the same players in the same way, so both produce the same matches.

A `MatchRecord` contains the JSON that GGP game managers write. A record of another program must contain at least the
states and the moves. Data of gamelore that the common format does not know are under the key "gamelore". Other programs
ignore this key.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GDLError, IllegalMoveError
from ..files import write_whole
from ..gdl.syntax import Function, natural_order, parse_term, printable
from ..players.player import CAP, END_NAMES, STUCK, TERMINAL, Finished, MatchLog, Started, Turn
from ..players.position_graph import PositionGraph

if TYPE_CHECKING:
    from ..game.game import Game

MAX_PLIES = 1000
BROKEN_OFF = "broken off"
LATE, UNREACHABLE, ILLEGAL = "TO", "CE", "IL"  # errors in a record; after ILLEGAL the reply follows, as in `IL <move>`
SERIES, RULES, JOURNAL = "series.json", "rules.kif", "journal.jsonl"  # names of files in a folder of records
RECORDS = "match-*.json"  # pattern of record files; * is the number of the match, with at least six digits
RECORD_FORMAT = 1
MAX_FACTS_TOLD = 6  # maximum number of different facts in an error message


@dataclass(frozen=True, slots=True)
class Event:
    """A fault of a player: a late, illegal or missing reply."""

    ply: int
    role: str
    kind: str
    text: str = ""


def check_seats(game: Game, players: Sequence[object]) -> None:
    """Raise GameloreError unless there is one player for each role."""
    if len(players) != game.num_roles:
        roles = ", ".join(game.roles)
        raise GameloreError(f"expected {game.num_roles} players, one for each of {roles}, got {len(players)}")


class MatchState:
    """One running match.

    `submit` takes the move of one role. When the moves of all roles are there, the joint move is made. `pending`
    returns the roles whose moves are still missing.

    end      None while the match runs, then "terminal", "stuck" or "cap"
    rows     rows of all positions of the match in the graph
    choices  chosen moves by ply and role, each as an index into the legal moves
    """

    def __init__(self, graph: PositionGraph, *, max_plies: int = MAX_PLIES) -> None:
        self.graph = graph
        self.max_plies = max_plies
        self.events: list[Event] = []
        self.rows = [graph.start]
        self.choices: list[list[int]] = []
        self._submitted: list[int | None] = []
        self._open_ply()

    @classmethod
    def after(cls, graph: PositionGraph, moves: Iterable[Sequence[int | str]], *, max_plies: int) -> MatchState:
        """Return a match on `graph` after these joint moves. Raise IllegalMoveError as `submit` does."""
        match = cls(graph, max_plies=max_plies)
        for joint in moves:
            match.play(joint)
        return match

    @property
    def ply(self) -> int:
        """The number of joint moves that have been made."""
        return len(self.choices)

    @property
    def row(self) -> int:
        """The row of the present position in the graph."""
        return self.rows[-1]

    @property
    def state_key(self) -> str:
        """The key of the present position, as 16 hexadecimal digits."""
        return f"{int(self.graph.keys[self.row]):016x}"

    @property
    def goals(self) -> tuple[int | None, ...]:
        """The goals by role.

        A goal is None if the present position is not terminal, or if the rules give the role no goal or several goals.
        """
        if self.end != END_NAMES[TERMINAL]:
            return (None,) * self.graph.game.num_roles
        return _goals(self.graph.goals[self.row])

    def pending(self) -> tuple[int, ...]:
        """Return the roles whose moves are missing; empty if the match is over."""
        return tuple(role for role, choice in enumerate(self._submitted) if choice is None)

    def has_choice(self, role: int) -> bool:
        """Return whether the role's player must choose a move.

        The player must choose if it is the role's turn, or if the role has several legal moves. Otherwise, the choice
        is 0, the index of the only move.
        """
        return bool(self.graph.acting[self.row, role] or self.graph.num_moves[self.row, role] > 1)

    def legal(self, role: int) -> list[str]:
        """Return the role's legal moves as text, in action order; empty if the match is over."""
        if self.end is not None:
            return []
        game = self.graph.game
        return [game.move_text(role, action) for action in self.graph.legal(self.row, role).tolist()]

    def submit(self, role: int, move: int | str) -> None:
        """Take a role's move, and make the joint move if no other move is missing.

        move: the move as text, or its index among the role's legal moves

        Raise IllegalMoveError for an illegal move, for a role that has already moved, and for a match that is over.
        The match is then unchanged.
        """
        if role not in self.pending():
            waiting = (
                ", ".join(self.graph.game.roles[other] for other in self.pending()) or "no role (the match is over)"
            )
            raise IllegalMoveError(
                f"expected a move of {waiting}, got a move of role {role}; pending() returns the roles that must move"
            )
        self._submitted[role] = self._choice(role, move)
        if not self.pending():
            joint = [choice for choice in self._submitted if choice is not None]
            try:
                row = int(self.graph.successor([self.row], [joint])[0])
            except BaseException:  # the match is unchanged
                self._submitted[role] = None
                raise
            self.choices.append(joint)
            self.rows.append(row)
            self._open_ply()

    def play(self, joint: Sequence[int | str]) -> None:
        """Make a joint move: submit the move of each role, in their order. After an error, the match is unchanged."""
        if len(joint) != self.graph.game.num_roles:
            raise IllegalMoveError(f"expected a move for each of {self.graph.game.num_roles} roles, got {len(joint)}")
        before = list(self._submitted)
        try:
            for role, move in enumerate(joint):
                self.submit(role, move)
        except BaseException:
            self._submitted = before
            raise

    def note(self, role: int, kind: str, text: str = "") -> None:
        """Add an event to the record of the match."""
        self.events.append(Event(self.ply, self.graph.game.roles[role], kind, text))

    def turn(self, role: int, key: int | np.uint64) -> Turn:
        """Return the request for a move of the role's player; `key` is the key of the player's random stream."""
        return Turn(
            self.graph,
            role,
            np.zeros(1, np.int64),
            np.array([self.row], np.int32),
            np.array([key], np.uint64),
            np.array([self.ply], np.int32),
            MatchLog(np.array([self.rows], np.int32), self._choice_array()),
        )

    def started(self, match: int = 0) -> Started:
        """Return the event that tells the players that this match began, as match number `match` of lane 0."""
        return Started(self.graph, np.zeros(1, np.int64), np.array([match], np.int64))

    def finished(self, match: int = 0) -> Finished:
        """Return the event that tells the players that the match ended. Raise GameloreError if it still runs."""
        if self.end is None:
            raise GameloreError(
                f"expected a match that is over, got one that is still running at ply {self.ply}; submit more moves"
            )
        goals = [-1 if goal is None else goal for goal in self.goals]
        return Finished(
            graph=self.graph,
            lanes=np.zeros(1, np.int64),
            matches=np.array([match], np.int64),
            plies=np.array([self.ply], np.int32),
            rows=np.array([self.rows], np.int32),
            choices=self._choice_array(),
            goals=np.array([goals], np.int16),
            ends=np.array([END_NAMES.index(self.end)], np.uint8),
        )

    def record(self, match_id: str, players: Sequence[str], *, is_aborted: bool = False, **others: Any) -> MatchRecord:
        """Return the record of the match up to now. `others` are further fields of the record."""
        return _recorded(
            self.graph,
            self.rows,
            self.choices,
            self.goals,
            self.end,
            match_id=match_id,
            players=tuple(players),
            is_aborted=is_aborted or self.end not in (None, END_NAMES[TERMINAL]),
            events=tuple(self.events),
            **others,
        )

    def _choice_array(self) -> NDArray[np.int32]:
        """Return all choices up to now, int32[1, plies, roles]."""
        return np.array([self.choices], np.int32).reshape(1, self.ply, self.graph.game.num_roles)

    def _choice(self, role: int, move: int | str) -> int:
        """Return the index of a move among the legal moves. Raise IllegalMoveError for an illegal move."""
        actions = self.graph.legal(self.row, role).tolist()
        choice = -1 if isinstance(move, str) else move
        if isinstance(move, str):
            with suppress(GDLError, ValueError):  # the text is no action, or not a legal one
                choice = actions.index(self.graph.game.action(role, move))
        if not 0 <= choice < len(actions):
            raise IllegalMoveError(
                f"expected a legal move of {self.graph.game.roles[role]}, got {move}; legal moves: "
                f"{', '.join(self.legal(role))}"
            )
        return choice

    def _open_ply(self) -> None:
        """Set `end` if the match is over. Otherwise, mark the moves of all roles as missing."""
        self.graph.list_moves([self.row])
        self.end: str | None = None
        if self.graph.terminal[self.row]:
            self.end = END_NAMES[TERMINAL]
        elif self.graph.stuck[self.row]:
            self.end = END_NAMES[STUCK]
        elif self.ply >= self.max_plies:
            self.end = END_NAMES[CAP]
        self._submitted = [] if self.end else [None] * self.graph.game.num_roles


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRecord:
    """A match record in the common format. The fields have Python names instead of the keys in JSON.

    states           states as text, such as "( (cell 1 1 b) .. )", with facts without `true`. There is one state more
                     than joint moves. Older versions of `gamelore play` wrote the key of each state instead, in
                     hexadecimal digits.
    moves            for each ply the moves of all roles, in the order of roles
    start_time       begin of the match, in milliseconds since 1970
    state_times      time of each state, in milliseconds since 1970
    errors           one row for each state, with one text for each role: `IL <move>`, `TO`, `CE`, or an empty text for
                     no error. The first row belongs to the START phase.
    goal_values      goals by role; empty if the match was not completed, or if a role has no goal
    *_clock          clocks in seconds; -1 for no clock
    is_completed     whether the match reached a terminal position
    is_aborted       whether the match ended in a position that is not terminal
    others           all other keys of the JSON with their values

    The fields after `others` are gamelore's own part. They are empty in records of other programs.

    game, rules_hash  name of the game and hash of its rules
    players           players by role: the description of a local player, or the address of a remote player
    goals             goals by role. A goal is None if no terminal position was reached, or if the rules give the role
                      no goal or several goals.
    end               "terminal", "stuck" (a role had no legal move), "cap" (the match reached the maximum number of
                      plies), or None (the match was aborted before its end)
    key               key of the random streams of the match: (seed, run, stage, match)
    settings          settings of the host and of the series
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
    others: Mapping[str, Any] = field(default_factory=dict)

    game: str = ""
    rules_hash: str = ""
    roles: tuple[str, ...] = ()
    players: tuple[str, ...] = ()
    goals: tuple[int | None, ...] = ()
    end: str | None = None
    key: tuple[int | str, ...] = ()
    events: tuple[Event, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ending(self) -> str:
        """Why the match ended: "terminal", "stuck" or "cap"; BROKEN_OFF if the record ends before the match."""
        return self.end or BROKEN_OFF

    @property
    def is_ours(self) -> bool:
        """Whether the record contains gamelore's own part."""
        return bool(self.rules_hash)

    def to_json(self) -> str:
        """Return the record as one line of JSON, without empty optional fields."""
        values = asdict(self)
        common = {key: values[name] for name, key in _KEYS.items() if values[name] or name not in _OPTIONAL}
        own = {name: values[name] for name in _OWN} | {"format": RECORD_FORMAT}
        return json.dumps({**common, **self.others, **({"gamelore": own} if self.is_ours else {})})

    @classmethod
    def from_json(cls, text: str) -> MatchRecord:
        """Read a record of gamelore or of another program. Raise GameloreError if the text is no record."""
        try:
            values = json.loads(text)
            return cls(**(_former_fields(values) if "state_keys" in values else _fields(values)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            why = printable(f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error), 100)
            raise GameloreError(
                f"expected a GGP match record in JSON, got something else ({why}); "
                'it needs at least {"states": ["( (fact) ... )", ...], "moves": [["move", ...], ...]}'
            ) from None

    @classmethod
    def read(cls, path: Path) -> MatchRecord:
        """Read the record in a file.

        Raise GameloreError, with the name of the file, if the content is no record. Raise OSError if the file cannot be
        read.
        """
        try:
            return cls.from_json(text_of(path))
        except GameloreError as error:
            raise GameloreError(f"{path}: {error}") from None

    def write(self, path: Path) -> None:
        """Write the record to a file."""
        write_whole(path, f"{self.to_json()}\n")

    def facts(self, ply: int) -> frozenset[str]:
        """Return the facts of a state, in canonical form and lower case. Raise GameloreError for malformed text."""
        text = self.states[ply].strip()
        try:
            state = parse_term(f"(state {text[1:-1]})") if text[:1] + text[-1:] == "()" else None
        except GDLError as error:
            raise GameloreError(f"expected facts at ply {ply}, got {printable(text)}: {error.message}") from None
        if state is None:
            raise GameloreError(
                f"expected a state of the form ( (fact) ... ) at ply {ply}, got {printable(text)}; correct the record"
            )
        facts = state.args if isinstance(state, Function) else ()
        return frozenset(str(_bare(fact)).lower() for fact in facts)

    @property
    def absent(self) -> frozenset[str]:
        """The roles whose players never replied, from the START phase to the last move."""
        missed = Counter(event.role for event in self.events if event.kind in (UNREACHABLE, LATE))
        return frozenset(role for role, times in missed.items() if times == len(self.moves) + 1)

    def replay(self, game: Game, graph: PositionGraph | None = None) -> MatchState:
        """Make the recorded moves again, on `graph` or on a new graph of the game, and return the match.

        Raise GameloreError at the first difference from the record.
        """
        _check_lengths(self, game)
        if self.is_ours and self.rules_hash != game.rules_hash:
            raise GameloreError(f"expected the recorded rules of {printable(self.game)}, got other rules; {_REMEDY}")
        match = MatchState(graph or PositionGraph(game), max_plies=len(self.moves) + (self.end != END_NAMES[CAP]))
        for ply, moves in enumerate(self.moves):
            _compare_state(self, match)
            try:
                match.play(moves)
            except IllegalMoveError as error:
                why = printable(str(error), 500)
                raise GameloreError(f"ply {ply} differs from the record: {why}") from None
        _compare_state(self, match)
        _compare_end(self, match)
        return match


def match_records(
    finished: Finished, players: Sequence[str], key: Sequence[int | str] = (), *, with_states: bool = True
) -> list[MatchRecord]:
    """Return the records of finished matches.

    players      names of the players by role
    key          key of the random streams, without the number of the match
    with_states  whether the records contain the states, which take most of the time. Records without states are useful
                 only to count results.
    """
    return [
        _recorded(
            finished.graph,
            finished.rows[i, : plies + 1].tolist(),
            finished.choices[i, :plies].tolist(),
            _goals(finished.goals[i]),
            END_NAMES[finished.ends[i]],
            with_states=with_states,
            match_id=".".join(map(str, (*key, match))),
            is_aborted=bool(finished.ends[i] != TERMINAL),
            players=tuple(players),
            key=(*key, match),
        )
        for i, (match, plies) in enumerate(zip(finished.matches.tolist(), finished.plies.tolist(), strict=True))
    ]


def write_records(path: Path, records: Sequence[MatchRecord], rules: str) -> None:
    """Write records to a file or an existing folder.

    A file has one record in each line. In a folder, each record is a file of its own, and the rules are another file.
    After an OSError, the folder has the files that it had before.
    """
    if not path.is_dir():
        write_whole(path, "".join(f"{record.to_json()}\n" for record in records))
        return
    files = [
        (path / RULES, rules),
        *((record_path(path, i), f"{record.to_json()}\n") for i, record in enumerate(records)),
    ]
    new = []
    try:
        for file, text in files:
            new += [] if file.exists() else [file]
            write_whole(file, text)
    except OSError:
        for file in new:
            with suppress(OSError):
                file.unlink(missing_ok=True)
        raise


def record_path(folder: Path, number: int) -> Path:
    """Return the path of the record of match `number` in a folder."""
    return folder / RECORDS.replace("*", f"{number:06}")


def _camel_case(name: str) -> str:
    """Return the key of the common format for a Python name, such as stateTimes for state_times."""
    return re.sub("_(.)", lambda letter: letter[1].upper(), name)


_REMEDY = "replay the record with the rules with which it was made"
_IRREGULAR = {
    "game_meta_url": "gameMetaURL",
    "player_names": "playerNamesFromHost",
    "tournament": "tournamentNameFromHost",
}
_NAMES = [attribute.name for attribute in fields(MatchRecord)]
_COMMON, _OWN = _NAMES[: _NAMES.index("others")], _NAMES[_NAMES.index("others") + 1 :]
_KEYS = {name: _IRREGULAR.get(name) or _camel_case(name) for name in _COMMON}
_OPTIONAL = ("errors", "goal_values", "player_names", "is_player_human", "tournament")
_TYPES = get_type_hints(MatchRecord)
_STATE_KEY = re.compile("[0-9a-f]{16}")


def _recorded(
    graph: PositionGraph,
    rows: Sequence[int],
    choices: Sequence[Sequence[int]],
    goals: tuple[int | None, ...],
    end: str | None,
    *,
    with_states: bool = True,
    **others: Any,
) -> MatchRecord:
    """Return the record of a match on a graph."""
    game = graph.game
    return MatchRecord(
        is_completed=end == END_NAMES[TERMINAL],
        states=tuple(state_text(graph.facts(row)) for row in rows) if with_states else (),
        moves=tuple(
            tuple(game.move_text(role, int(graph.legal(row, role)[choice])) for role, choice in enumerate(joint))
            for row, joint in zip(rows, choices, strict=False)
        ),
        goal_values=tuple(goal for goal in goals if goal is not None) if None not in goals else (),
        game=game.name,
        rules_hash=game.rules_hash,
        roles=tuple(game.roles),
        goals=goals,
        end=end,
        **others,
    )


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record from its JSON `values`. Remove the known keys from `values`."""
    missing = [key for key in ("states", "moves") if key not in values]
    if missing:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    own = values.pop("gamelore", None)
    given = {name: values.pop(key, None) for name, key in _KEYS.items()}
    common = {name: _typed(_TYPES[name], value) for name, value in given.items() if value is not None}
    return {**common, "others": values, **({} if own is None else _own_fields(own))}


def _own_fields(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of gamelore's own part from its JSON values."""
    if values["format"] != RECORD_FORMAT:
        raise ValueError(f"expected format {RECORD_FORMAT} in the entry 'gamelore', got {values['format']!r}")
    return {name: _typed(_TYPES[name], values[name]) for name in _OWN}


def _former_fields(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record in the older format of `gamelore play --records`."""
    own = _own_fields(values)
    states, moves = _typed(_TYPES["states"], values["state_keys"]), _typed(_TYPES["moves"], values["moves"])
    is_completed = own["end"] == END_NAMES[TERMINAL]
    return {"states": states, "moves": moves, "is_completed": is_completed, "is_aborted": not is_completed, **own}


def _typed(kind: Any, value: Any) -> Any:
    """Convert a JSON value to the type `kind`. Raise TypeError if this is not possible."""
    outer, inner = get_origin(kind), get_args(kind)
    if kind is Event:
        return Event(**{name: _typed(of, value[name]) for name, of in get_type_hints(Event).items()})
    if outer is tuple and isinstance(value, list):
        return tuple(_typed(inner[0], item) for item in value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    plain = outer if outer in (tuple, Mapping) else kind
    if plain is not tuple and isinstance(value, plain) and isinstance(value, bool) == (kind is bool):
        return value
    raise TypeError(f"expected {getattr(kind, '__name__', kind)}, got {value!r}")


def text_of(path: Path) -> str:
    """Return the text of a file. Undecodable bytes are replaced."""
    return path.read_text(encoding="utf-8-sig", errors="replace")


_order = lru_cache(1 << 16)(natural_order)


def state_text(facts: Iterable[str]) -> str:
    """Return facts as the text of a state in a record."""
    return f"( {' '.join(sorted(facts, key=_order))} )"


def _bare(fact: Any) -> Any:
    """Return the fact of a term `(true fact)`, which some programs write. Return any other term unchanged."""
    return fact.args[0] if isinstance(fact, Function) and fact.name == "true" and len(fact.args) == 1 else fact


def _check_lengths(record: MatchRecord, game: Game) -> None:
    """Raise GameloreError if the lengths of the lists in a record do not fit the game or each other."""
    roles, states = game.num_roles, len(record.moves) + 1
    _compare("the number of states", len(record.states), states)
    for ply, moves in enumerate(record.moves):
        _compare(f"the number of moves at ply {ply}", len(moves), roles)
    for ply, errors in enumerate(record.errors):
        _compare(f"the number of errors at ply {ply}", len(errors), roles)
    for name, row, length in (
        ("state times", record.state_times, states),
        ("lists of errors", record.errors, states),
        ("goals", record.goal_values, roles),
        ("players", record.player_names, roles),
        ("players", record.players, roles),
        ("roles", record.roles, roles),
        ("goals", record.goals, roles),
    ):
        if row:
            _compare(f"the number of {name}", len(row), length)


def _compare_state(record: MatchRecord, match: MatchState) -> None:
    """Raise GameloreError if the present state of a replayed match differs from the record."""
    state, facts = record.states[match.ply], match.graph.facts(match.row)
    if state == state_text(facts):
        return
    if _STATE_KEY.fullmatch(state):
        return _compare(f"the state at ply {match.ply}", state, match.state_key)
    recorded, played = record.facts(match.ply), {fact.lower() for fact in facts}
    if recorded != played:
        raise GameloreError(
            f"expected the recorded state at ply {match.ply}, got another state; facts only in the record: "
            f"{_some_facts(recorded - played)}; facts only in the replay: {_some_facts(played - recorded)}; {_REMEDY}"
        )


def _compare_end(record: MatchRecord, match: MatchState) -> None:
    """Raise GameloreError if the end of a replayed match differs from the record, except for aborted matches."""
    if record.is_completed:
        _compare("the end", END_NAMES[TERMINAL], match.end)
        _compare("the goals", record.goal_values or match.goals, match.goals)
    if record.end is not None:
        _compare("the end", record.end, match.end)
        _compare("the goals", record.goals or match.goals, match.goals)


def _some_facts(facts: Iterable[str]) -> str:
    """Return facts as text for an error message, at most MAX_FACTS_TOLD of them."""
    ordered = [printable(fact, 80) for fact in sorted(facts, key=natural_order)]
    more = ["..."] if len(ordered) > MAX_FACTS_TOLD else []
    return " ".join(ordered[:MAX_FACTS_TOLD] + more) or "none"


def _compare(name: str, recorded: object, played: object) -> None:
    """Raise GameloreError if a value of a replayed match differs from the recorded value."""
    if recorded != played:
        raise GameloreError(
            f"expected {name} to be {printable(str(recorded))} as recorded, got {printable(str(played))}; {_REMEDY}"
        )


def _goals(goals: NDArray[np.int16]) -> tuple[int | None, ...]:
    """Return goals as a tuple, with None for -1."""
    return tuple(int(goal) if goal >= 0 else None for goal in goals)
