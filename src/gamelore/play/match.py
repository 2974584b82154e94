"""One match as a state machine without input or output of its own, and the record that it leaves.

The host drives a `MatchState` by clocks and replies, the lab drives thousands of matches in lockstep
(lockstep.py); both ask the same players in the same way, so a match is the same on either path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GDLError, IllegalMoveError
from .graph import Graph
from .player import CAP, END_NAMES, STUCK, TERMINAL, Finished, MatchLog, Started, Turn

if TYPE_CHECKING:
    from ..rules.game import Game

MAX_PLIES = 1000
RECORD_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened outside the rules: a reply that was late, illegal or never came."""

    ply: int
    role: str
    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class MatchRecord:
    """A match as it was played; enough to play it again and see that nothing differs.

    moves       per ply one move of every role, in the order of roles
    state_keys  per position its key in 16 hexadecimal digits, one more than `moves`
    goals       per role; None where the rules give none or several, or the match did not reach a terminal position
    end         "terminal", "stuck" (a role without a move) or "cap" (too many plies)
    key         what the random streams of the match were keyed by: (seed, run, stage, match)
    """

    game: str
    rules_hash: str
    roles: tuple[str, ...]
    players: tuple[str, ...]
    moves: tuple[tuple[str, ...], ...]
    state_keys: tuple[str, ...]
    goals: tuple[int | None, ...]
    end: str
    key: tuple[int | str, ...] = ()
    events: tuple[Event, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    format: int = RECORD_FORMAT

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> MatchRecord:
        """Reads `to_json`. Raises GameloreError for anything else."""
        try:
            values = json.loads(text)
            events = tuple(Event(**event) for event in values.pop("events"))
            record = cls(**{name: _tuples(value) for name, value in values.items()}, events=events)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise GameloreError(
                f"expected a match record in JSON, got something else ({error}); give one line as gamelore wrote it"
            ) from None
        if record.format != RECORD_FORMAT:
            raise GameloreError(
                f"expected a match record of format {RECORD_FORMAT}, got {record.format}; "
                "read it with the version of gamelore that wrote it"
            )
        return record

    def replay(self, game: Game) -> MatchState:
        """Plays the moves again. Raises GameloreError where anything differs from the record."""
        self._compare("rules", self.rules_hash, game.rules_hash)
        match = MatchState(Graph(game), max_plies=len(self.moves) + (self.end != END_NAMES[CAP]))
        for ply, moves in enumerate(self.moves):
            self._compare(f"state at ply {ply}", self.state_keys[ply], match.state_key)
            for role, move in enumerate(moves):
                match.submit(role, move)
        self._compare("final state", self.state_keys[-1], match.state_key)
        self._compare("end", self.end, match.end)
        self._compare("goals", self.goals, match.goals)
        return match

    def _compare(self, what: str, recorded: object, found: object) -> None:
        if recorded != found:
            raise GameloreError(
                f"expected {what} {recorded} as recorded, got {found}; "
                f"replay with the rules of {self.game} that the record was made with"
            )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class MatchState:
    """One match: `pending` roles `submit` their moves; when all are in the match goes on.

    `end` is None while it runs, then "terminal", "stuck" or "cap".
    """

    def __init__(self, graph: Graph, *, max_plies: int = MAX_PLIES) -> None:
        self.graph = graph
        self.max_plies = max_plies
        self.events: list[Event] = []
        self._rows = [graph.start]
        self._choices: list[list[int]] = []
        self._submitted: list[int | None] = []
        self._open_ply()

    @property
    def ply(self) -> int:
        """How many joint moves were made."""
        return len(self._choices)

    @property
    def row(self) -> int:
        """The present position in the graph."""
        return self._rows[-1]

    @property
    def state_key(self) -> str:
        """The key of the present position in 16 hexadecimal digits."""
        return _key_text(self.graph.keys[self.row])

    @property
    def goals(self) -> tuple[int | None, ...]:
        """By role; None while the match runs and where the rules give none or several."""
        if self.end != END_NAMES[TERMINAL]:
            return (None,) * self.graph.game.num_roles
        return _goals(self.graph.goals[self.row])

    def pending(self) -> tuple[int, ...]:
        """The roles whose moves are missing; none when the match is over."""
        return tuple(role for role, choice in enumerate(self._submitted) if choice is None)

    def has_choice(self, role: int) -> bool:
        """Whether a player is to be asked: it is its turn, or it has several moves. Else its choice is 0."""
        return bool(self.graph.acting[self.row, role] or self.graph.num_moves[self.row, role] > 1)

    def legal(self, role: int) -> list[str]:
        """The role's legal moves as text, in action order; none when the match is over."""
        if self.end is not None:
            return []
        game = self.graph.game
        return [game.move_text(role, action) for action in self.graph.legal(self.row, role).tolist()]

    def submit(self, role: int, move: int | str) -> None:
        """Takes a role's move, as text or as a position within its legal moves; the last one moves the match on.

        Raises IllegalMoveError, and nothing has changed, for a move that is not legal, a role that has moved
        already, and a match that is over.
        """
        if role not in self.pending():
            waiting = ", ".join(self.graph.game.roles[other] for other in self.pending()) or "none: it is over"
            raise IllegalMoveError(f"expected a move of {waiting}, got one of role {role}; ask pending() first")
        self._submitted[role] = self._position(role, move)
        if not self.pending():
            self._move_on()

    def note(self, role: int, kind: str, text: str = "") -> None:
        """Puts an event into the record."""
        self.events.append(Event(self.ply, self.graph.game.roles[role], kind, text))

    def turn(self, role: int, key: int | np.uint64) -> Turn:
        """What a player of this role is asked; `key` is that of the stream of match and role."""
        return Turn(
            self.graph,
            role,
            np.zeros(1, np.int64),
            np.array([self.row], np.int32),
            np.array([key], np.uint64),
            np.array([self.ply], np.int32),
            MatchLog(np.array([self._rows], np.int32), self._choice_array()),
        )

    def started(self, match: int = 0) -> Started:
        """The event for the players that this match, number `match` of lane 0, began."""
        return Started(self.graph, np.zeros(1, np.int64), np.array([match], np.int64))

    def finished(self, match: int = 0) -> Finished:
        """The event for the players that it ended. Raises GameloreError while it runs."""
        if self.end is None:
            raise GameloreError(f"expected a match that is over, got one at ply {self.ply}; submit on")
        goals = [-1 if goal is None else goal for goal in self.goals]
        return Finished(
            graph=self.graph,
            lanes=np.zeros(1, np.int64),
            matches=np.array([match], np.int64),
            plies=np.array([self.ply], np.int32),
            rows=np.array([self._rows], np.int32),
            choices=self._choice_array(),
            goals=np.array([goals], np.int16),
            ends=np.array([END_NAMES.index(self.end)], np.uint8),
        )

    def record(
        self, players: Sequence[str], key: Sequence[int | str] = (), settings: Mapping[str, Any] | None = None
    ) -> MatchRecord:
        """The record. Raises GameloreError while the match runs."""
        return match_records(self.finished(), players, [tuple(key)], settings, tuple(self.events))[0]

    def _choice_array(self) -> NDArray[np.int32]:
        """int32[1, plies, roles]: the choices so far."""
        return np.array([self._choices], np.int32).reshape(1, self.ply, self.graph.game.num_roles)

    def _position(self, role: int, move: int | str) -> int:
        """A move's position within the legal ones."""
        actions = self.graph.legal(self.row, role).tolist()
        choice = self._find(role, move, actions) if isinstance(move, str) else move
        if not 0 <= choice < len(actions):
            raise IllegalMoveError(
                f"expected a legal move of {self.graph.game.roles[role]}, got {move}; "
                f"legal: {', '.join(self.legal(role))}"
            )
        return choice

    def _find(self, role: int, move: str, actions: list[int]) -> int:
        try:
            action = self.graph.game.action(role, move)
        except (GDLError, IllegalMoveError):
            return -1
        return actions.index(action) if action in actions else -1

    def _move_on(self) -> None:
        joint = [choice for choice in self._submitted if choice is not None]
        self._choices.append(joint)
        self._rows.append(int(self.graph.successor([self.row], [joint])[0]))
        self._open_ply()

    def _open_ply(self) -> None:
        """Looks whether the match is over; else waits for everybody."""
        self.graph.list_moves([self.row])
        self.end: str | None = None
        if self.graph.terminal[self.row]:
            self.end = END_NAMES[TERMINAL]
        elif self.graph.stuck[self.row]:
            self.end = END_NAMES[STUCK]
        elif self.ply >= self.max_plies:
            self.end = END_NAMES[CAP]
        self._submitted = [] if self.end else [None] * self.graph.game.num_roles


def match_records(
    finished: Finished,
    players: Sequence[str],
    keys: Sequence[Sequence[int | str]],
    settings: Mapping[str, Any] | None = None,
    events: Sequence[Event] = (),
) -> list[MatchRecord]:
    """Records of matches that ended: `players` by role, `keys` by match, the rest the same for all."""
    game = finished.graph.game
    return [
        MatchRecord(
            game=game.name,
            rules_hash=game.rules_hash,
            roles=tuple(game.roles),
            players=tuple(players),
            moves=_moves(finished, i),
            state_keys=tuple(map(_key_text, finished.graph.keys[finished.rows[i, : finished.plies[i] + 1]])),
            goals=_goals(finished.goals[i]),
            end=END_NAMES[finished.ends[i]],
            key=tuple(keys[i]),
            events=tuple(events),
            settings=dict(settings or {}),
        )
        for i in range(len(finished.lanes))
    ]


def _moves(finished: Finished, i: int) -> tuple[tuple[str, ...], ...]:
    """The joint moves of match i as text."""
    graph, game = finished.graph, finished.graph.game
    return tuple(
        tuple(
            game.move_text(role, int(graph.legal(row, role)[finished.choices[i, ply, role]]))
            for role in range(game.num_roles)
        )
        for ply, row in enumerate(finished.rows[i, : finished.plies[i]].tolist())
    )


def _goals(goals: NDArray[np.int16]) -> tuple[int | None, ...]:
    return tuple(int(goal) if goal >= 0 else None for goal in goals)


def _key_text(key: np.uint64) -> str:
    return f"{int(key):016x}"
