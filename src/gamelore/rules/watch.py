"""Looks at states as they are played and notes what a rulesheet should not do, with the moves that lead there.

Noted are: a role without a legal move before the end, a goal at the end that is not one number, a goal above 100, facts
that `base` does not name and moves that `input` does not name, a state about which the rules cannot be asked.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GDLSemanticError, GroundingError
from .engine import Legal, States
from .game import Game

MAX_GOAL = 100
NUM_SAMPLES = 16  # of each kind of incident, the nearest to the start

Kind: TypeAlias = Literal[
    "no-legal-move",
    "unclear-goal",
    "goal-out-of-range",
    "outside-base",
    "outside-input",
    "no-perfect-model",
    "too-large",
]
Phase: TypeAlias = Literal["walk", "matches"]
Joints: TypeAlias = list[tuple[int, ...]]
"""Joint moves from the start: for each step the actions of the roles."""
Path: TypeAlias = Callable[[int], Joints]
"""The joint moves that led to the state of a lane."""


class Key(NamedTuple):
    """What happened, to which role (-1: to none), and the fact, move, value or message."""

    kind: Kind
    role: int = -1
    what: str = ""


class Sample(NamedTuple):
    """A state in which it happened, uint64[num_words], and the joint moves that lead there."""

    joints: Joints
    state: NDArray[np.uint64]

    @property
    def depth(self) -> int:
        """How many steps from the start."""
        return len(self.joints)


@dataclass(slots=True)
class Incident:
    """In how many of the states of each phase, and a few of them, the nearest to the start first."""

    counts: Counter[Phase] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a sheet declares: its `base` facts, and the `input` moves of each role; None where it has none."""

    base: frozenset[str] | None = None
    inputs: tuple[frozenset[str], ...] | None = None


class Seen(NamedTuple):
    """What the rules say of a batch: terminal bool[batch], stuck bool[batch], goals int16[batch, roles], moves."""

    terminal: NDArray[np.bool_]
    stuck: NDArray[np.bool_]
    goals: NDArray[np.int16]
    legal: Legal


class UnplayableError(GameloreError):
    """The rules cannot be asked about a state; the watch has noted which."""


class Watch:
    """`incidents`: everything that was noted; `end`: the first terminal state that was seen."""

    def __init__(self, game: Game, declared: Declared | None = None) -> None:
        self.game = game
        self.declared = declared or Declared()
        self.phase: Phase = "walk"
        self.incidents: dict[Key, Incident] = {}
        self.end: Sample | None = None
        self._facts: set[str] = set()
        self._bits = np.zeros(game.num_words, np.uint64)
        self._moves = np.zeros((game.num_roles, 0), np.bool_)

    def look(self, states: States, depth: int, path: Path) -> Seen:
        """Asks about states, uint64[batch, num_words], all of them `depth` steps from the start.

        Raises UnplayableError where there is one about which the rules cannot be asked.
        """
        terminal, goals = self.ask(self.game.evaluate, (states,), path)
        legal = self.ask(self.game.legal, (states,), path)
        _, counts = legal.by_role(self.game.num_roles)
        none = ~terminal[:, None] & (counts == 0)
        for role in range(self.game.num_roles):
            self._note(Key("no-legal-move", role), none[:, role], states, depth, path)
            self._note(Key("unclear-goal", role), terminal & (goals[:, role] < 0), states, depth, path)
            for value in np.unique(goals[goals[:, role] > MAX_GOAL, role]).tolist():
                self._note(Key("goal-out-of-range", role, str(value)), goals[:, role] == value, states, depth, path)
        if self.end is None and terminal.any():
            lane = int(terminal.argmax())
            self.end = Sample(path(lane), states[lane].copy())
        self._look_at_facts(states, depth, path)
        self._look_at_moves(legal, states, depth, path)
        return Seen(terminal, none.any(axis=1), goals, legal)

    def ask(self, question: Callable[..., Any], rows: tuple[NDArray[Any], ...], path: Path) -> Any:
        """The answer to a question about a batch. Raises UnplayableError, and notes the first state that has none."""
        try:
            return question(*rows)
        except (GDLSemanticError, GroundingError) as error:
            lane = next((lane for lane in range(len(rows[0])) if not _answers(question, rows, lane)), 0)
            kind: Kind = "too-large" if isinstance(error, GroundingError) else "no-perfect-model"
            message = error.message if isinstance(error, GDLSemanticError) else str(error)
            self._add(Key(kind, what=message), Sample(path(lane), rows[0][lane]))
            raise UnplayableError(message) from error

    def _note(self, key: Key, where: NDArray[np.bool_], states: States, depth: int, path: Path) -> None:
        """Counts the lanes in which something happens, bool[batch], and keeps some if they are near the start."""
        lanes = np.flatnonzero(where)
        if not len(lanes):
            return
        incident = self.incidents.setdefault(key, Incident())
        incident.counts[self.phase] += len(lanes)
        for lane in lanes[:NUM_SAMPLES].tolist():
            if len(incident.samples) == NUM_SAMPLES and incident.samples[-1].depth <= depth:
                break
            insort(incident.samples, Sample(path(lane), states[lane].copy()), key=lambda sample: sample.depth)
            del incident.samples[NUM_SAMPLES:]

    def _add(self, key: Key, sample: Sample) -> None:
        incident = self.incidents.setdefault(key, Incident())
        incident.counts[self.phase] += 1
        incident.samples.append(sample)

    def _look_at_facts(self, states: States, depth: int, path: Path) -> None:
        if self.declared.base is None:
            return
        new = set(self._facts_of(states)) - self._facts
        self._facts |= new
        for fact in sorted(new - self.declared.base):
            self._note(Key("outside-base", what=fact), self.game.holds(states, fact), states, depth, path)

    def _facts_of(self, states: States) -> Iterable[str]:
        """The facts of states; of a compiled game, whose states are bits, only those that were not asked for before."""
        if self.game.engine != "native" or self.game.is_bounded:
            return (fact for state in np.unique(states, axis=0) for fact in self.game.facts(state))
        new = np.bitwise_or.reduce(states, axis=0, initial=np.uint64(0)) & ~self._bits
        self._bits |= new
        return self.game.facts(new) if new.any() else ()

    def _look_at_moves(self, legal: Legal, states: States, depth: int, path: Path) -> None:
        if self.declared.inputs is None or not len(legal.actions):
            return
        lanes_and_roles = np.repeat(np.arange(len(legal.offsets) - 1), np.diff(legal.offsets))
        lanes, roles = np.divmod(lanes_and_roles, self.game.num_roles)
        missing = int(legal.actions.max()) + 1 - self._moves.shape[1]
        if missing > 0:
            self._moves = np.pad(self._moves, ((0, 0), (0, missing)))
        new = np.zeros_like(self._moves)
        new[roles, legal.actions] = True
        new &= ~self._moves
        self._moves |= new
        for role, action in np.argwhere(new).tolist():
            move = self.game.move_text(role, action)
            if move not in self.declared.inputs[role]:
                where = np.zeros(len(states), np.bool_)
                where[lanes[(roles == role) & (legal.actions == action)]] = True
                self._note(Key("outside-input", role, move), where, states, depth, path)


def _answers(question: Callable[..., Any], rows: tuple[NDArray[Any], ...], lane: int) -> bool:
    try:
        question(*(part[lane : lane + 1] for part in rows))
    except (GDLSemanticError, GroundingError):
        return False
    return True
