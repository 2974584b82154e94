"""Which facts and moves lie near each other: locality, as Lock & Epstein (2004, 3) call it, for any game.

Facts that differ in one argument, and of which one at most was seen to hold in any state, are one *variable*, such as
all that may lie in a cell. An action *touches* a variable where it was seen to make something else of it than most
actions of its role do, legal there or not; how the rules say so does not matter.

Variables are *neighbours* where a rule of the sheet needs both, such as the cells of a line (see neighbours.py).

A variable that no action touches, or that most of a role's actions do, is *everywhere*, such as whose turn it is: it
makes nothing near and is near to everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GroundingError
from .engine import States, unpack_bits
from .game import Game
from .names import GroundTerm
from .neighbours import MOST, neighbours
from .symmetry import symmetries

MATCHES, PLIES = 64, 100  # looked at for facts that exclude each other
STATES = 200  # looked at for what actions touch


@dataclass(frozen=True, eq=False)
class Vicinity:
    """Facts by their bit number, actions by their flat number.

    variables   int64[num_facts], the variable of each fact
    neighbours  bool[variables, variables], reflexive and symmetric
    touched     bool[actions, variables], what each action touches
    everywhere  bool[variables]
    """

    variables: NDArray[np.int64]
    neighbours: NDArray[np.bool_]
    touched: NDArray[np.bool_]
    everywhere: NDArray[np.bool_]

    @classmethod
    def of(cls, game: Game) -> Vicinity:
        """Plays some random matches, and grounds the rules.

        Raises GameloreError where the game is not compiled as a whole, or its rules as written are too large for this.
        """
        if game.circuit is None or game.is_bounded:
            raise _unfit(f"that is compiled as a whole, got {game.name}: {game.engine_reason}")
        facts = game.circuit.facts
        seen, states, joint = _sampled(game)
        variables = _variables(facts, unpack_bits(seen, len(facts)))
        touched = _touched(game, variables, states, joint)
        everywhere = _everywhere(touched, list(map(len, game.circuit.actions)))
        variable_of = dict(zip(facts, variables.tolist(), strict=True))
        try:
            return cls(variables, neighbours(game.rulesheet, variable_of, ~everywhere), touched, everywhere)
        except GroundingError as error:
            raise _unfit(f"whose rules are small as they are written, got {game.name}: {error}") from None

    def close_together(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[n]: in which sequences int32[n, longest] each action is near the first; negative is behind the end.

        Two actions are near where what they touch is the same variable or are neighbours, and where one of them
        touches only what is everywhere.
        """
        nowhere = np.asarray(~self._local.any(axis=1))
        close = np.ones(len(sequences), np.bool_)
        first = sequences[:, 0]
        for other in sequences.T[1:]:
            met = (self._reached[first] & self._local[other]).any(axis=1)
            close &= met | nowhere[first] | nowhere[other] | (other < 0)
        return close

    def around(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[n, num_facts]: the facts of what the actions touch, of its neighbours, and of what is everywhere."""
        reached = np.repeat(self.everywhere[None], len(sequences), axis=0)
        for action in sequences.T:
            reached |= self._reached[action] & (action >= 0)[:, None]
        return np.asarray(reached[:, self.variables])

    @cached_property
    def _local(self) -> NDArray[np.bool_]:
        """bool[actions, variables]: what each action touches that is not everywhere."""
        return self.touched & ~self.everywhere

    @cached_property
    def _reached(self) -> NDArray[np.bool_]:
        """bool[actions, variables]: that, and its neighbours."""
        return np.asarray(self._local.astype(np.float32) @ self.neighbours.astype(np.float32) > 0)


def _unfit(expected: str) -> GameloreError:
    return GameloreError(f"expected a game {expected}; leave out locality")


def _sampled(game: Game) -> tuple[States, States, NDArray[np.int32]]:
    """States of random matches, uint64[n, words]; some of those that go on, and joint moves there, int32[m, roles]."""
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], MATCHES, axis=0)
    seen, going, played = [states], [], []
    for _ in range(PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        goes_on = counts.min(axis=1) > 0
        states, starts, counts = states[goes_on], starts[goes_on], counts[goes_on]
        joint = legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)]
        going.append(states)
        played.append(joint)
        states = game.next(states, joint)
        seen.append(states)
    different, first = np.unique(np.concatenate(going), axis=0, return_index=True)
    some = np.linspace(0, len(different), min(STATES, len(different)), endpoint=False, dtype=np.int64)
    return np.unique(np.concatenate(seen), axis=0), different[some], np.concatenate(played)[first[some]]


def _variables(facts: Sequence[GroundTerm], held: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The variable of each fact: the last argument in which facts differ that exclude each other is its value.

    held: uint8[states, facts].
    """
    found = np.full(len(facts), -1)
    number = 0
    for group in _groups(facts):
        if (found[group] < 0).all() and held[:, group].sum(axis=1).max(initial=0) <= 1:
            found[group] = number
            number += 1
    alone = found < 0
    found[alone] = number + np.arange(np.count_nonzero(alone))
    return found


def _groups(facts: Sequence[GroundTerm]) -> Iterator[list[int]]:
    """Numbers of facts that are equal but for one argument, the last argument first."""
    for place in range(1, 1 + max((len(arguments) for _, arguments in facts), default=0)):
        groups: dict[object, list[int]] = {}
        for number, (name, arguments) in enumerate(facts):
            if len(arguments) >= place:
                before, behind = arguments[:-place], arguments[len(arguments) - place + 1 :]
                groups.setdefault((name, before, behind), []).append(number)
        yield from groups.values()


def _touched(game: Game, variables: NDArray[np.int64], states: States, joint: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[actions, variables]: where an action, or one symmetric to it, made of some fact what most do not."""
    differs = _unusual(game, states, joint)
    group = symmetries(game)
    symmetric = np.zeros_like(differs)
    for facts, actions in zip(group.facts, group.actions, strict=True):
        symmetric[np.ix_(actions, facts)] |= differs
    members = variables[:, None] == np.arange(variables.max(initial=-1) + 1)
    return np.asarray(symmetric.astype(np.float32) @ members.astype(np.float32) > 0)


def _unusual(game: Game, states: States, joint: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[actions, facts]: which facts an action makes true or false where most actions of its role do not."""
    assert game.circuit is not None
    num_actions, num_facts = game.circuit.num_actions, game.circuit.num_facts
    ends = np.cumsum(list(map(len, game.circuit.actions)))
    differs = np.zeros((num_actions, num_facts), np.bool_)
    for role, own in enumerate(np.split(np.arange(num_actions), ends[:-1])):
        for state, moves in zip(states, joint, strict=True):
            every = np.repeat(moves[None], len(own), axis=0)
            every[:, role] = own
            following = unpack_bits(game.next(np.repeat(state[None], len(own), axis=0), every), num_facts)
            differs[own] |= following != (2 * following.sum(axis=0) > len(own))
    return differs


def _everywhere(touched: NDArray[np.bool_], num_actions: Sequence[int]) -> NDArray[np.bool_]:
    """bool[variables]: touched by no action, or by most of one role's."""
    by_role = np.split(touched, np.cumsum(num_actions)[:-1])
    by_most = [part.sum(axis=0) > MOST * len(part) for part in by_role]
    return np.asarray(~touched.any(axis=0) | np.any(by_most, axis=0))
