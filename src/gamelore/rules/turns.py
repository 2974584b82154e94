"""Whose turn it is. GDL asks every role for a move in every state; who really chooses must be read off the game.

In most games that take turns one fact says it, `(control white)`: a relation of one argument with exactly one role in
every state, such that only that role ever has a choice. Names do not matter. Where no such fact is seen, a role acts
when it has more than one move, or when its only move is not one of its *idle* moves (its only move in a state where
another chooses). The evidence is a number of random matches with a fixed seed; the reasoner, which takes 1 ms and more
for every state, looks at the beginning of fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .engine import Engine, Legal, NativeEngine, States
from .names import GroundTerm

MATCHES_AND_PLIES = 32, 100
ON_THE_REASONER = 4, 20


@dataclass(frozen=True)
class Turns:
    """`controls`: for each role the fact that gives it the turn, or none; `idle`: (role, action) that mean waiting."""

    engine: Engine
    controls: tuple[GroundTerm, ...] | None
    idle: frozenset[tuple[int, int]]

    @classmethod
    def observe(cls, engine: Engine) -> Turns:
        """Reads it off random matches."""
        states, counts, idle = _seen_at_random(engine)
        facts = [frozenset(engine.facts(state)) for state in states]
        return cls(engine, _controls(engine.roles, facts, counts), frozenset(idle))

    def acting(self, states: States) -> NDArray[np.bool_]:
        """bool[batch, roles]."""
        if len(self.engine.roles) == 1:
            return np.ones((len(states), 1), np.bool_)
        if self.controls is not None:
            return np.stack([self.engine.holds(states, fact) for fact in self.controls], axis=1)
        return self._by_choice(states)

    def _by_choice(self, states: States) -> NDArray[np.bool_]:
        legal = self.engine.legal(states)
        starts, counts = legal.by_role(len(self.engine.roles))
        acting = counts > 1
        for lane, role in np.argwhere(counts == 1).tolist():
            action = int(legal.actions[starts[lane, role]])
            acting[lane, role] = (role, action) not in self.idle
        return acting


def _seen_at_random(engine: Engine) -> tuple[States, NDArray[np.int64], set[tuple[int, int]]]:
    """Of the matches: the states, uint64[states, words]; how many moves each role has there; the idle moves."""
    matches, plies = MATCHES_AND_PLIES if isinstance(engine, NativeEngine) else ON_THE_REASONER
    rng = np.random.default_rng(0)
    states = np.repeat(engine.initial[None], matches, axis=0)
    seen, num_moves = [states[:1]], [np.zeros((1, len(engine.roles)), np.int64)]
    idle: set[tuple[int, int]] = set()
    for _ in range(plies):
        legal = engine.legal(states)
        starts, counts = legal.by_role(len(engine.roles))
        playing = counts.min(axis=1) > 0
        if not playing.any():
            break
        states, starts, counts = states[playing], starts[playing], counts[playing]
        seen.append(states)
        num_moves.append(counts)
        idle |= _idle_moves(legal, starts, counts)
        states = engine.next(states, legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)])
    places = slice(1, None) if len(seen) > 1 else slice(None)  # the first state alone where nothing could be played
    unique, first = np.unique(np.concatenate(seen[places]), axis=0, return_index=True)
    return unique, np.concatenate(num_moves[places])[first], idle


def _controls(
    roles: Sequence[GroundTerm], facts: Sequence[frozenset[GroundTerm]], counts: NDArray[np.int64]
) -> tuple[GroundTerm, ...] | None:
    known = frozenset().union(*facts)
    for name in sorted({name for name, arguments in known if len(arguments) == 1 and arguments[0] in roles}):
        candidates = tuple((name, (role,)) for role in roles)
        held = np.array([[fact in state for fact in candidates] for state in facts], np.bool_)
        if (held.sum(axis=1) == 1).all() and not (counts > 1)[~held].any():
            return candidates
    return None


def _idle_moves(legal: Legal, starts: NDArray[np.int64], counts: NDArray[np.int64]) -> set[tuple[int, int]]:
    another_chooses = (counts > 1).any(axis=1, keepdims=True)
    lanes, roles = np.nonzero((counts == 1) & another_chooses)
    return set(zip(roles.tolist(), legal.actions[starts[lanes, roles]].tolist(), strict=True))
