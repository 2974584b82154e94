"""Whose turn it is. GDL asks every role for a move in every state; who really chooses must be read off the game.

In most games that take turns one fact says it, `(control white)`: a relation of one argument with exactly one role in
every state, such that only that role ever has a choice. Names do not matter. Where no such fact is seen, a role acts
when it has more than one move, or when its only move is not one of its *idle* moves (its only move in a state where
another chooses). The evidence is a number of random matches with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .engine import Engine, Legal, States
from .names import GroundTerm

NUM_MATCHES = 32
MAX_PLIES = 100


@dataclass(frozen=True)
class Turns:
    """`controls`: for each role the fact that gives it the turn, or none; `idle`: (role, action) that mean waiting."""

    engine: Engine
    controls: tuple[GroundTerm, ...] | None
    idle: frozenset[tuple[int, int]]

    @classmethod
    def observe(cls, engine: Engine) -> Turns:
        """Reads it off NUM_MATCHES random matches."""
        states, legal = _random_states(engine)
        _, counts = legal.by_role(len(engine.roles))
        facts = [frozenset(engine.facts(state)) for state in states]
        return cls(engine, _controls(engine.roles, facts, counts), _idle_moves(legal, len(engine.roles)))

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


def _random_states(engine: Engine) -> tuple[States, Legal]:
    """The non-terminal states of the matches, uint64[states, words], and their legal moves."""
    rng = np.random.default_rng(0)
    states = np.repeat(engine.initial[None], NUM_MATCHES, axis=0)
    seen = []
    for _ in range(MAX_PLIES):
        legal = engine.legal(states)
        starts, counts = legal.by_role(len(engine.roles))
        playing = counts.min(axis=1) > 0
        if not playing.any():
            break
        choices = (starts + (rng.random(counts.shape) * counts).astype(np.int64))[playing]
        seen.append(states[playing])
        states = engine.next(states[playing], legal.actions[choices])
    if not seen:
        seen.append(engine.initial[None])
    unique = np.unique(np.concatenate(seen), axis=0)
    return unique, engine.legal(unique)


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


def _idle_moves(legal: Legal, num_roles: int) -> frozenset[tuple[int, int]]:
    starts, counts = legal.by_role(num_roles)
    idle = set()
    another_chooses = (counts > 1).any(axis=1, keepdims=True)
    for lane, role in np.argwhere((counts == 1) & another_chooses).tolist():
        idle.add((role, int(legal.actions[starts[lane, role]])))
    return frozenset(idle)
