"""Search of a puzzle by parts: parts that the highest goal needs are searched apart, and their solutions joined.

The condition of the highest goal is taken apart into *alternatives* (disjunction) and *aims* (conjunction). Parts of
the game (analysis/parts.py) that an aim reads together stay together. So each alternative has one or several groups of
parts, and parts that it does not need are left out.

- A single group is a smaller puzzle for the methods of portfolio.py. Each of its actions stands for a class of actions
  of the whole game.
- In a *serial* game, each action is made in one group while the others wait. The groups are solved one after the other,
  each in the position to which the solutions before have led. If this fails, it is tried in the opposite order.
- In a *parallel* game, each action is a combination of actions of all groups, so the solutions must have equal lengths.
  All groups are searched breadth first in lockstep, each with its own repetitions left out within a ply, until all of
  them reach their aims in the same ply.

What is not taken into account is left to a check: a joined solution counts only if the rules of the whole game allow
all of its actions and give the goal. An end of the match that several groups cause together, or that one causes for the
others, can spoil it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..analysis.parts import PartGame, Parts, conjuncts, part_game
from ..circuit.aig import TRUE, GateLiteral
from ..game.engines import HIGHEST_GOAL
from .outlook import Ending, States, successors

if TYPE_CHECKING:
    from ..game.game import Game

_MOST_ALTERNATIVES = 16
_MOST_STATES = 1 << 17  # of a ply of a group in a parallel game
_MOST_BYTES = 1 << 28  # of all plies of a group in a parallel game
_EXPANDED_AT_ONCE = 1 << 10  # positions of a group in a parallel game
_MOST_WAITS = 512  # plies after a solution, until the match ends
_MOST_PLIES = 400  # of a parallel game
_SLICE = 64  # simulations of a group at a time
POSITIONS_OF_A_WALK = 32  # so many positions count as one simulation

Plans: TypeAlias = list[NDArray[np.int32]]
"""The actions of each group, of its own game."""


class GroupSolution(Protocol):
    """What is needed of a solution of a group; see portfolio.py."""

    @property
    def goal(self) -> int: ...
    @property
    def actions(self) -> NDArray[np.int32]: ...


class GroupSearch(Protocol):
    """What is needed of a search of a group; see portfolio.py."""

    @property
    def solution(self) -> GroupSolution | None: ...
    @property
    def is_running(self) -> bool: ...
    def begin(self, state: States, key: np.uint64) -> None: ...
    def run(self, simulations: int | None = None, deadline: float | None = None) -> int: ...


class PartGroup(NamedTuple):
    """Parts, by number, and the aims that read them."""

    parts: tuple[int, ...]
    aims: tuple[GateLiteral, ...]


GroupKey: TypeAlias = tuple[PartGroup, bool]
"""A group, and whether its game ends with its aims."""


@dataclass
class FactoredSearch:
    """A search by parts. `best` is the best end that it has found.

    `new_search` returns a search of a part, which may take a share of the memory; the alternatives share it equally.
    `games` keeps the games of groups for further searches, because to compile one takes 0.01 to 0.2 s.
    """

    whole: Parts
    new_search: Callable[[Game, float], GroupSearch]
    games: dict[GroupKey, PartGame]
    best: Ending | None = None

    def steps(self, state: States, key: np.uint64) -> Iterator[int]:
        """Search below a state, uint64[words]; yield numbers of computed positions."""
        several = alternatives(self.whole)
        running = [self._alternative(groups, state, key, 1 / len(several)) for groups in several]
        while running and self.best is None:
            for search in list(running):
                positions = next(search, None)
                if positions is None:
                    running.remove(search)
                    continue
                yield positions
                if self.best is not None:
                    return

    def _alternative(self, groups: Sequence[PartGroup], state: States, key: np.uint64, share: float) -> Iterator[int]:
        """Search for an end with all aims of an alternative."""
        games = [self._game(group, groups) for group in groups]
        if self._is_in_lockstep(groups):
            plans = yield from lockstep(games, state)
            if plans is not None:
                allowed = [[game.moves[action] for action in plan] for game, plan in zip(games, plans, strict=True)]
                self._finish(*self._played(state, list(zip(*allowed, strict=True))))
                yield 1
            return
        for order in (games, games[::-1])[: len(games)]:
            yield from self._in_turn(order, state, key, share)
            if self.best is not None:
                return

    def compile_games(self, deadline: float | None = None) -> None:
        """Compile the games of all groups, until a deadline in seconds of `time.monotonic`."""
        for groups in alternatives(self.whole):
            for group in groups:
                if deadline is not None and monotonic() >= deadline:
                    return
                self._game(group, groups)

    def _is_in_lockstep(self, groups: Sequence[PartGroup]) -> bool:
        return self.whole.kind == "parallel" and len(groups) > 1

    def _game(self, group: PartGroup, groups: Sequence[PartGroup]) -> PartGame:
        """Return the game of a group of an alternative."""
        ends_with_aims = not self._is_in_lockstep(groups)
        if (group, ends_with_aims) not in self.games:
            self.games[group, ends_with_aims] = _game_of(self.whole, group, ends_with_aims)
        return self.games[group, ends_with_aims]

    def _in_turn(self, games: Sequence[PartGame], state: States, key: np.uint64, share: float) -> Iterator[int]:
        """Search the groups one after the other, each from the position to which the plans before it have led."""
        actions: list[int] = []
        for game in games:
            search = self.new_search(game.game, share)
            search.begin(game.states(state[None])[0], key)
            while search.is_running:
                yield POSITIONS_OF_A_WALK * search.run(_SLICE)
            if search.solution is None or search.solution.goal < HIGHEST_GOAL:
                return
            state, made = self._played(state, [(game.moves[action],) for action in search.solution.actions])
            actions += made
        self._finish(state, actions)
        yield 1

    def _played(self, state: States, plies: Sequence[Sequence[NDArray[np.int32]]]) -> tuple[States, list[int]]:
        """Make a legal action in each ply that is in all sets of the ply; return the last state and the actions.

        Stop where there is none. Of several, make one that leaves the most parts waiting.
        """
        game, actions = self.whole.game, list[int]()
        for sets in plies:
            legal = game.legal(state[None]).actions
            for own in sets:
                legal = np.intersect1d(legal, own)
            if not len(legal):
                break
            actions.append(int(legal[np.argmax(self._idleness[legal])]))
            state = game.next(state[None], np.array([[actions[-1]]], np.int32))[0]
        return state, actions

    def _finish(self, state: States, actions: Sequence[int]) -> None:
        """Wait until the match is over, and keep the end if it has the highest goal."""
        end, waits = self._played(state, [()] * _MOST_WAITS)
        terminal, goals = self.whole.game.evaluate(end[None])
        if terminal[0] and goals[0, 0] == max(self.whole.game.goal_values[0]):
            self.best = Ending(int(goals[0, 0]), np.array([*actions, *waits], np.int32))

    @cached_property
    def _idleness(self) -> NDArray[np.int64]:
        """In how many parts each action waits, int64[actions]."""
        assert self.whole.game.circuit is not None
        idle = np.zeros(self.whole.game.circuit.num_actions, np.int64)
        for part in self.whole.parts:
            idle[self.whole.joint[~part.touches.any(axis=0), 0]] += 1
        return idle


def alternatives(whole: Parts) -> list[list[PartGroup]]:
    """Return the alternatives, those with the fewest facts first, except for those that need the game as a whole."""
    circuit = whole.game.circuit
    if whole.kind == "one" or circuit is None:
        return []
    aim, several = circuit.outputs["goal"][int(np.argmax(circuit.goals[0]))], list[list[PartGroup]]()
    for part in [literal ^ 1 for literal in conjuncts(circuit, aim ^ 1)][:_MOST_ALTERNATIVES]:
        aims = [literal for literal in conjuncts(circuit, part) if literal != TRUE]
        groups = [PartGroup(tuple(own), _of_parts(whole, own, aims)) for own in whole.joined(aims)]
        groups = [group for group in groups if group.aims]
        if len(groups) > 1 or (groups and len(groups[0].parts) < len(whole.parts)):
            several.append(groups)
    return sorted(several, key=lambda groups: sum(len(whole.parts[part].facts) for own in groups for part in own.parts))


def _of_parts(whole: Parts, numbers: Sequence[int], literals: Sequence[GateLiteral]) -> tuple[GateLiteral, ...]:
    """Return the literals that read one of these parts."""
    facts = sum(1 << fact for number in numbers for fact in whole.parts[number].facts)
    return tuple(literal for literal in literals if whole.reads(literal) & facts)


def _game_of(whole: Parts, group: PartGroup, ends_with_aims: bool) -> PartGame:
    """Return the game of a group. It ends when the group, or the clock, alone ends the match, or with all its aims."""
    circuit = whole.game.circuit
    assert circuit is not None
    inside = sum(1 << fact for number in group.parts for fact in whole.parts[number].facts)
    end = circuit.outputs["terminal"][0]
    ends = [literal ^ 1 for literal in conjuncts(circuit, end ^ 1) if not whole.reads(literal) & ~inside]
    together = [group.aims] if ends_with_aims else []
    return part_game(whole, group.parts, group.aims, [*([literal] for literal in ends), *together])


class Ply(NamedTuple):
    """The positions of a ply, without repetitions: states uint64[n, words], rows of the ply before, and actions."""

    states: States
    parents: NDArray[np.int64]
    actions: NDArray[np.int32]


def lockstep(games: Sequence[PartGame], state: States) -> Generator[int, None, Plans | None]:
    """Search all groups breadth first until all reach their aims in one ply; return plans of equal lengths, or None."""
    none = np.zeros(0, np.int64), np.zeros(0, np.int32)
    plies = [[Ply(game.states(state[None]), *none)] for game in games]
    while all(len(own[-1].states) for own in plies):
        last = [own[-1].states for own in plies]
        aims = [game.game.evaluate(states)[1][:, 0] == HIGHEST_GOAL for game, states in zip(games, last, strict=True)]
        if all(own.any() for own in aims):
            return [_plan(own, int(np.argmax(aim))) for own, aim in zip(plies, aims, strict=True)]
        size = max(sum(array.nbytes for ply in own for array in ply) for own in plies)
        if max(map(len, last)) > _MOST_STATES or size > _MOST_BYTES or len(plies[0]) > _MOST_PLIES:
            return None
        for game, own in zip(games, plies, strict=True):
            own.append((yield from _next_ply(game.game, own[-1].states)))
            # `_plan` needs the parents and the actions only; a slice would keep all states in memory
            own[-2] = own[-2]._replace(states=np.empty((0, game.game.num_words), np.uint64))
    return None


def _next_ply(game: Game, states: States) -> Generator[int, None, Ply]:
    """Return the next positions of all positions of a ply. Equal hashes count as equal positions."""
    kept = list[tuple[NDArray[np.uint64], States, NDArray[np.int64], NDArray[np.int32]]]()
    for begin in range(0, len(states), _EXPANDED_AT_ONCE):
        children = successors(game, states[begin : begin + _EXPANDED_AT_ONCE])
        keys, first = np.unique(game.state_keys(children.states), return_index=True)
        kept.append(
            (keys, children.states[first], begin + children.parents[first].astype(np.int64), children.actions[first])
        )
        yield len(children.actions)
    keys, following, parents, actions = map(np.concatenate, zip(*kept, strict=True))
    first = np.unique(keys, return_index=True)[1]
    return Ply(following[first], parents[first], actions[first])


def _plan(plies: Sequence[Ply], row: int) -> NDArray[np.int32]:
    """Return the actions that lead to a row of the last ply."""
    actions = []
    for ply in reversed(plies[1:]):
        actions.append(int(ply.actions[row]))
        row = int(ply.parents[row])
    return np.array(actions[::-1], np.int32)
