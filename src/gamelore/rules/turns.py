"""Whose turn it is. GDL asks every role for a move in every state; who really chooses must be read off the game.

In most games that take turns one fact says it, `(control white)`: a relation of one argument with exactly one role in
every state, such that only that role ever has a choice. Names do not matter. Where no such fact is seen, a role acts
when it has more than one move, or when its only move is not one of its *idle* moves (its only move in a state where
another chooses). The evidence is a number of random matches with a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .engine import Legal, States
    from .game import Game

NUM_MATCHES = 32
MAX_PLIES = 100


@dataclass(frozen=True)
class Turns:
    """`controls`: for each role the fact that gives it the turn, or none; `idle`: (role, action) that mean waiting."""

    controls: tuple[str, ...] | None
    idle: frozenset[tuple[int, int]]

    @classmethod
    def observe(cls, game: Game) -> Turns:
        """Reads it off NUM_MATCHES random matches."""
        states, legal = _random_states(game)
        counts = np.diff(legal.offsets).reshape(len(states), game.num_roles)
        facts = [game.facts(state) for state in states]
        return cls(_controls(game, facts, counts), _idle_moves(legal, counts))

    def acting(self, game: Game, states: States) -> NDArray[np.bool_]:
        """bool[batch, roles]."""
        if game.num_roles == 1:
            return np.ones((len(states), 1), np.bool_)
        if self.controls is not None:
            return np.stack([game.holds(states, fact) for fact in self.controls], axis=1)
        return self._by_choice(game, states)

    def _by_choice(self, game: Game, states: States) -> NDArray[np.bool_]:
        legal = game.legal(states)
        counts = np.diff(legal.offsets).reshape(len(states), game.num_roles)
        acting = counts > 1
        for lane, role in np.argwhere(counts == 1).tolist():
            action = int(legal.actions[legal.offsets[lane * game.num_roles + role]])
            acting[lane, role] = (role, action) not in self.idle
        return acting


def _random_states(game: Game) -> tuple[States, Legal]:
    """The non-terminal states of the matches, uint64[states, words], and their legal moves."""
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], NUM_MATCHES, axis=0)
    seen = []
    for _ in range(MAX_PLIES):
        legal = game.legal(states)
        counts = np.diff(legal.offsets).reshape(len(states), game.num_roles)
        playing = counts.min(axis=1) > 0
        if not playing.any():
            break
        choices = legal.offsets[:-1] + (rng.random(counts.size) * counts.ravel()).astype(np.int64)
        choices = choices.reshape(counts.shape)[playing]
        seen.append(states[playing])
        states = game.next(states[playing], legal.actions[choices])
    if not seen:
        seen.append(game.initial[None])
    unique = np.unique(np.concatenate(seen), axis=0)
    return unique, game.legal(unique)


def _controls(game: Game, facts: list[frozenset[str]], counts: NDArray[np.int64]) -> tuple[str, ...] | None:
    roles = {role.lower() for role in game.roles}
    words = [fact[1:-1].split() for fact in sorted(frozenset().union(*facts)) if fact.startswith("(")]
    names = {word[0] for word in words if len(word) == 2 and word[1].lower() in roles}
    for name in sorted(names):
        candidates = tuple(f"({name} {role})" for role in game.roles)
        held = np.array([[fact in state for fact in candidates] for state in facts], np.bool_)
        if (held.sum(axis=1) == 1).all() and not (counts > 1)[~held].any():
            return candidates
    return None


def _idle_moves(legal: Legal, counts: NDArray[np.int64]) -> frozenset[tuple[int, int]]:
    idle = set()
    another_chooses = (counts > 1).any(axis=1, keepdims=True)
    for lane, role in np.argwhere((counts == 1) & another_chooses).tolist():
        idle.add((role, int(legal.actions[legal.offsets[lane * counts.shape[1] + role]])))
    return frozenset(idle)
