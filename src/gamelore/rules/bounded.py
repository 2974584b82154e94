"""The engine of a game that is compiled within `base` and `input`: natively there, by the reasoner outside.

A state that the circuit answers for exactly, see bounds.py and promises.py, is the native engine's row with a word 0
after it; any other is the number that the reasoner gave it, plus 1, after words of 0. Which of the two a state is
depends on its facts alone, so equal states have equal rows however play came there. Actions are the native ones and,
after these, the reasoner's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from .bounds import goal_outside
from .engine import (
    Engine,
    Lanes,
    Legal,
    NativeEngine,
    Played,
    Progress,
    ReasonerEngine,
    States,
    play_stepwise,
    possible_goals,
)
from .gdl import Rulesheet
from .names import GroundTerm
from .playout import Playouts, Rollouts
from .promises import Promises

MOST_TRIED = 1024  # matches that are played at once, where fewer are wanted, to find some of the right kind


class BoundedEngine:
    """Both engines as one; the reasoner is made when a state is first met that is its own.

    native: of the sheet within its bounds. reasoner: makes one of the sheet as it is, with the native engine's names.
    """

    def __init__(self, sheet: Rulesheet, native: NativeEngine, reasoner: Callable[[], ReasonerEngine]) -> None:
        self.names, self.roles, self.circuit = native.names, native.roles, native.circuit
        self._native, self._make_reasoner = native, reasoner
        self._goal_outside = goal_outside(sheet)
        possible = possible_goals(sheet, native.names, native.roles)
        self.goal_values = [
            sorted(known.union(own) - {self._goal_outside})
            for known, own in zip(possible, native.goal_values, strict=True)
        ]
        self.num_words = native.num_words + 1
        self._promises = Promises(sheet, native.names, native.circuit)
        self._known_facts = frozenset(native.circuit.facts)
        self._num_actions = len(native.moves)
        self.initial = self.pack(native.facts(native.initial))

    @cached_property
    def _reasoner(self) -> ReasonerEngine:
        return self._make_reasoner()

    @cached_property
    def _reasoned_actions(self) -> NDArray[np.int32]:
        """int32[native actions]: the reasoner's number of each."""
        return np.array([self._reasoner.action(0, move) for move in self._native.moves], np.int32)

    # ---- rows

    def pack(self, facts: Iterable[GroundTerm]) -> NDArray[np.uint64]:
        """One state from its facts."""
        row: NDArray[np.uint64] = self._rows([frozenset(facts)])[0]
        return row

    def facts(self, state: NDArray[np.uint64]) -> list[GroundTerm]:
        """The facts of one state, uint64[num_words]."""
        return self._reasoner.facts(state[-1:] - np.uint64(1)) if state[-1] else self._native.facts(state[:-1])

    def _rows(self, facts_of: Sequence[Collection[GroundTerm]]) -> States:
        """Rows of states, given by their facts."""
        rows = np.zeros((len(facts_of), self.num_words), np.uint64)
        for lane, facts in enumerate(facts_of):
            if self._known_facts.issuperset(facts) and self._promises.hold(facts):
                rows[lane, :-1] = self._native.pack(facts)
            else:
                rows[lane, -1] = self._reasoned_word(facts)
        native = np.flatnonzero(rows[:, -1] == 0)
        for lane in native[self._are_outside(rows[native, :-1])].tolist():
            rows[lane, :-1], rows[lane, -1] = 0, self._reasoned_word(facts_of[lane])
        return rows

    def _reasoned_word(self, facts: Iterable[GroundTerm]) -> int:
        return int(self._reasoner.pack(facts)[0]) + 1

    def _are_outside(self, rows: States) -> NDArray[np.bool_]:
        """bool[batch]: which rows of the native engine are no states that it answers for."""
        outside: NDArray[np.bool_] = self._native.goals(rows)[:, 0] == self._goal_outside
        return outside

    def _parts(self, states: States) -> Iterator[tuple[Lanes, Engine, States]]:
        """The lanes of each engine's states, and the states as that has them."""
        is_native = states[:, -1] == 0
        if is_native.all():
            yield np.arange(len(states)), self._native, states[:, :-1]
            return
        for engine, lanes in ((self._native, np.flatnonzero(is_native)), (self._reasoner, np.flatnonzero(~is_native))):
            own = states[lanes, :-1] if engine is self._native else states[lanes, -1:] - np.uint64(1)
            yield lanes, engine, own

    # ---- questions

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """See NativeEngine.evaluate."""
        terminal = np.zeros(len(states), np.bool_)
        goals = np.zeros((len(states), len(self.roles)), np.int16)
        for lanes, engine, own in self._parts(states):
            terminal[lanes], goals[lanes] = engine.evaluate(own)
        return terminal, goals

    def keys(self, states: States) -> NDArray[np.uint64]:
        """See NativeEngine.keys."""
        keys = np.zeros(len(states), np.uint64)
        for lanes, engine, own in self._parts(states):
            keys[lanes] = engine.keys(own)
        return keys

    def holds(self, states: States, fact: GroundTerm) -> NDArray[np.bool_]:
        """bool[batch]: in which states a fact holds."""
        held = np.zeros(len(states), np.bool_)
        for lanes, engine, own in self._parts(states):
            held[lanes] = engine.holds(own, fact)
        return held

    def legal(self, states: States) -> Legal:
        """See NativeEngine.legal."""
        parts = [(lanes, engine, engine.legal(own)) for lanes, engine, own in self._parts(states)]
        if len(parts) == 1:
            return parts[0][2]
        num_roles = len(self.roles)
        counts, terminal = np.zeros((len(states), num_roles), np.int64), np.zeros(len(states), np.bool_)
        for lanes, _, legal in parts:
            counts[lanes], terminal[lanes] = legal.by_role(num_roles)[1], legal.terminal
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        actions = np.zeros(offsets[-1], np.int32)
        starts = offsets[:-1].reshape(-1, num_roles)
        for lanes, engine, legal in parts:
            moved = np.repeat(starts[lanes].ravel() - legal.offsets[:-1], np.diff(legal.offsets))
            actions[np.arange(len(moved)) + moved] = legal.actions if engine is self._native else self._numbered(legal)
        return Legal(offsets, actions, terminal)

    def _numbered(self, legal: Legal) -> list[int]:
        """The actions of the reasoner's states in the numbers of this engine."""
        roles = np.repeat(np.arange(len(legal.offsets) - 1) % len(self.roles), np.diff(legal.offsets)).tolist()
        moves = (self._reasoner.move(role, action) for role, action in zip(roles, legal.actions.tolist(), strict=True))
        return list(map(self.action, roles, moves))

    def action(self, role: int, move: GroundTerm) -> int:
        """The index of a move."""
        try:
            return self._native.action(role, move)
        except KeyError:
            return self._num_actions + self._reasoner.action(role, move)

    def move(self, role: int, action: int) -> GroundTerm:
        """The move that an action's index stands for."""
        if action < self._num_actions:
            return self._native.move(role, action)
        return self._reasoner.move(role, action - self._num_actions)

    # ---- play

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """See NativeEngine.next. What leaves the bounds the reasoner works out anew, from the facts."""
        following = np.zeros_like(states)
        native = np.flatnonzero((states[:, -1] == 0) & (joint < self._num_actions).all(axis=1))
        rows = self._native.next(states[native, :-1], joint[native])
        following[native, :-1] = rows
        reasoned = np.delete(np.arange(len(states)), native[~self._are_outside(rows)])
        if len(reasoned):
            following[reasoned] = self._reasoned(states[reasoned], joint[reasoned])
        return following

    def _reasoned(self, states: States, joint: NDArray[np.int32]) -> States:
        """Successors by the reasoner."""
        given = np.array([self._reasoner.pack(self.facts(state)) for state in states])
        native = joint < self._num_actions
        moves = joint - np.int32(self._num_actions)
        moves[native] = self._reasoned_actions[joint[native]]
        return self._rows([self._reasoner.facts(state) for state in self._reasoner.next(given, moves)])

    def playouts(self, n: int, seed: int, threads: int | None, progress: Progress | None) -> Playouts:
        """Random matches in planes; all of them anew, step by step, if some went outside, as many as did."""
        if not self.initial[-1]:
            played = self._native.playouts(n, seed, threads, progress)
            num_left = played.goals[0].get(self._goal_outside, 0)
            if not num_left:
                return played
        else:
            num_left = n
        states = np.repeat(self.initial[None], n, axis=0)
        return self._played(states, np.arange(n) < num_left, seed, 0, progress).counted()

    def rollouts(self, states: States, seed: int, threads: int | None, max_steps: int) -> Rollouts:
        """Random matches in planes, one from each state; those that went outside anew, step by step."""
        goals = np.full((len(states), len(self.roles)), self._goal_outside, np.int16)
        steps = np.zeros(len(states), np.int32)
        native = np.flatnonzero(states[:, -1] == 0)
        played = self._native.rollouts(states[native, :-1], seed, threads, max_steps)
        goals[native], steps[native] = played.goals, played.steps
        left = np.flatnonzero(goals[:, 0] == self._goal_outside)
        again = self._played(states[left], np.ones(len(left), np.bool_), seed, max_steps)
        goals[left], steps[left] = again.goals, again.steps
        return Rollouts(goals, steps)

    def _played(
        self, states: States, leaving: NDArray[np.bool_], seed: int, max_steps: int, progress: Progress | None = None
    ) -> Played:
        """One random match from each state, of those that go outside, or of those that do not: bool[batch].

        Matches are played until there is one of the right kind for each (rejection sampling). So where it was drawn
        before which matches go outside, what comes of them all has the same law as without bounds; played anew without
        regard to that, there would be too few that do.
        """
        chosen = Played.none(len(states), len(self.roles))
        lanes, rounds = np.arange(len(states)), 0
        while len(lanes):
            tried = np.tile(lanes, min(2**rounds, max(1, MOST_TRIED // len(lanes))))
            told = partial(progress, len(states) - len(lanes)) if progress else int
            played, left = self._watched(states[tried], (seed, rounds), max_steps, told)
            fitting = np.flatnonzero(left == leaving[tried])
            found, first = np.unique(tried[fitting], return_index=True)
            chosen.put(found, played, fitting[first])
            lanes, rounds = np.setdiff1d(lanes, found), rounds + 1
        return chosen

    def _watched(
        self, states: States, seed: Sequence[int], max_steps: int, told: Callable[[], object]
    ) -> tuple[Played, NDArray[np.bool_]]:
        """One random match from each state, and which of them were outside at some time, bool[batch]."""
        left = states[:, -1] > 0

        def see(going: Lanes, following: States) -> None:
            left[going] |= following[:, -1] > 0
            told()

        return play_stepwise(self, states, seed, max_steps, see), left
