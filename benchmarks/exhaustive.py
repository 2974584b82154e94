"""Values of positions for the benchmarks of the search, by the solver, or by exhaustive search for any number of roles.

The exhaustive search is written apart from everything in `gamelore.search`. It lists all positions below some others,
and computes backward which results can come about if every role plays for its own goal. Among equal moves a role may
choose any, so a position can have several results. A result of a child is one of the position's if the mover cannot be
sure of more by another move, that is, if no other child has only better results for the mover. With constant sum, each
position has one result, which is the minimax value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gamelore.errors import GameloreError
from gamelore.game.game import Game
from gamelore.players.random_streams import stream
from gamelore.solver.solution import solve

State = NDArray[np.uint64]  # uint64[words]
States = NDArray[np.uint64]  # uint64[n, words]
Joint = NDArray[np.int32]  # int32[roles], the action of each role
Match = tuple[Sequence[State], Sequence[Joint]]
Goals = NDArray[np.int16]
Result = tuple[int, ...]  # the goals of all roles
BATCH = 4096
GROWTH = 3  # from a position to the one before, the number of positions below grows about so much, or more


class UnsettledError(Exception):
    """Raised where exhaustive search gives no values: too many positions, cycles, or moves at the same time."""


@dataclass(slots=True)
class Expanded:
    """Positions with their moves: bool[n] whether the match is over, goals int16[n, roles], and the moves.

    mover    int64[n], the role that chooses; 0 if none does
    parents  int64[moves], the position of each move, in ascending order
    states   uint64[moves, words], the positions that the moves lead to; the moves of a position in action order
    """

    terminal: NDArray[np.bool_]
    goals: Goals
    mover: NDArray[np.int64]
    parents: NDArray[np.int64]
    states: States


def expanded(game: Game, states: States) -> Expanded:
    """Return the moves of positions, uint64[n, words]. Raise UnsettledError if roles choose at the same time."""
    legal = game.legal(states)
    first, counts = legal.by_role(game.num_roles)
    terminal, goals = game.evaluate(states)
    if (np.sum(counts > 1, axis=1) > 1).any() or not (terminal | counts.all(axis=1)).all():
        raise UnsettledError("roles choose at the same time, or have no moves")
    mover = counts.argmax(axis=1)
    num_moves = np.where(terminal, 0, counts.max(axis=1))
    parents = np.repeat(np.arange(len(states)), num_moves)
    index = np.arange(len(parents)) - np.repeat(np.cumsum(num_moves) - num_moves, num_moves)
    chosen = np.where(np.arange(game.num_roles) == mover[parents, None], index[:, None], 0)
    joint = legal.actions[first[parents] + chosen].astype(np.int32)
    children = game.next(states[parents], joint) if len(parents) else states[:0]
    return Expanded(terminal, np.maximum(goals, 0), mover, parents, children)


class Outcomes:
    """The results of all positions below some positions, uint64[n, words]; see the module.

    Raise UnsettledError if there are more than `most` positions, or cycles, or moves at the same time.
    """

    def __init__(self, game: Game, states: States, most: int) -> None:
        self._rows: dict[bytes, int] = {}
        self._results: list[frozenset[Result] | None] = []
        self._children: list[list[int]] = []
        self._movers: list[int] = []
        self._list_all(game, states, most)
        self._settle()
        # all rows are settled now
        listed = [np.array(sorted(results or ())) for results in self._results]
        self._low = np.array([results.min(axis=0) for results in listed], np.int16)
        self._high = np.array([results.max(axis=0) for results in listed], np.int16)

    def __len__(self) -> int:
        return len(self._rows)

    def _list_all(self, game: Game, states: States, most: int) -> None:
        """List all positions, breadth first, with their moves; the results of final ones are known."""
        new = self._add(states)
        while len(new):
            later = []
            for begin in range(0, len(new), BATCH):
                batch = new[begin : begin + BATCH]
                moves = expanded(game, batch)
                later.append(self._add(moves.states))
                rows = [self._rows[state.tobytes()] for state in moves.states]
                ends = np.cumsum(np.bincount(moves.parents, minlength=len(batch))).tolist()
                self._children += [rows[i:j] for i, j in zip([0, *ends[:-1]], ends, strict=True)]
                self._movers += moves.mover.tolist()
                self._results += [
                    frozenset({tuple(goals)}) if over else None
                    for over, goals in zip(moves.terminal.tolist(), moves.goals.tolist(), strict=True)
                ]
                if len(self._rows) > most:
                    raise UnsettledError(f"more than {most} positions")
            new = np.concatenate(later)

    def _add(self, states: States) -> States:
        """Number new positions; return them."""
        new = []
        for index, state in enumerate(states):
            key = state.tobytes()
            if key not in self._rows:
                self._rows[key] = len(self._rows)
                new.append(index)
        return states[new]

    def _settle(self) -> None:
        """Compute the results of all positions, each after its children."""
        parents: list[list[int]] = [[] for _ in self._children]
        for row, children in enumerate(self._children):
            for child in children:
                parents[child].append(row)
        missing = [len(children) for children in self._children]
        ready = [row for row, count in enumerate(missing) if count == 0]
        for row in ready:  # which grows
            if self._children[row]:
                self._results[row] = self._result(row)
            for parent in parents[row]:
                missing[parent] -= 1
                if missing[parent] == 0:
                    ready.append(parent)
        if len(ready) < len(missing):
            raise UnsettledError("positions repeat")

    def _result(self, row: int) -> frozenset[Result]:
        """Return the results of a position from those of its children."""
        mover = self._movers[row]
        results = [self._results[child] or frozenset() for child in self._children[row]]
        sure = max(min(result[mover] for result in own) for own in results)  # the best goal that the mover is sure of
        return frozenset(result for own in results for result in own if result[mover] >= sure)

    def bounds(self, states: States) -> tuple[Goals, Goals]:
        """Return the lowest and the highest goals among the results of positions: int16[n, roles] each."""
        rows = [self._rows[state.tobytes()] for state in states]
        return self._low[rows], self._high[rows]


class SolvedValues:
    """The values of a game that `gamelore solve` can solve, with the interface of `Outcomes`."""

    def __init__(self, game: Game, memory: int | None = None) -> None:
        """Solve a game; with a limit on the memory in bytes, without a file of the solution."""
        self._solution = solve(game) if memory is None else solve(game, memory=memory, cache=False)

    def __len__(self) -> int:
        return self._solution.num_positions

    def bounds(self, states: States) -> tuple[Goals, Goals]:
        """See `Outcomes.bounds`."""
        goals = self._solution.look_up(states)[0]
        return goals, goals

    def distances(self, states: States) -> NDArray[np.int32]:
        """Return the numbers of plies to the end if one role forces it, int32[n]; see `Solution.look_up`."""
        return self._solution.look_up(states)[1]


Values = SolvedValues | Outcomes


def chapters(game: Game, most: int, seed: int) -> Iterator[tuple[Values, States]]:
    """Yield values and positions of random matches, uint64[n, words], whose values they are, without end.

    If the game as a whole has no values (see `values_of_all`), the positions are the last ones of each match: all that
    an exhaustive search of at most `most` positions settles.
    """
    whole, rng = values_of_all(game, most), np.random.default_rng(int(stream(seed, game.rules_hash)))
    while True:
        states, _ = random_match(game, rng)
        if whole is not None:
            yield whole, np.array(states)
        elif (late := values_of_end(game, states, most)) is not None:
            yield late


def values_of_all(game: Game, most: int) -> Values | None:
    """Return the values of all positions, by the solver or by exhaustive search; None if neither is possible."""
    try:
        return SolvedValues(game)
    except GameloreError:
        pass
    try:
        return Outcomes(game, game.initial[None], most)
    except UnsettledError:
        return None


def values_of_end(game: Game, states: Sequence[State], most: int) -> tuple[Outcomes, States] | None:
    """Return the values of the last positions of a match, and these positions; None if even the last has no values."""
    values, first = None, len(states)
    while first and (values is None or len(values) <= most // GROWTH):
        try:
            values = Outcomes(game, states[first - 1][None], most)
        except UnsettledError:
            break
        first -= 1
    return None if values is None else (values, np.array(states[first:]))


def random_match(
    game: Game, rng: np.random.Generator, before: Match = ((), ()), most_plies: int = 1000
) -> tuple[list[State], list[Joint]]:
    """Return the states of a random match that begins with `before`, without the last one, and its joint moves."""
    states, joints = list(before[0]), list(before[1])
    state = after(game, states[-1], joints[-1]) if states else game.initial
    while len(states) < most_plies and not game.evaluate(state[None])[0][0]:
        legal = game.legal(state[None])
        first, counts = (part[0] for part in legal.by_role(game.num_roles))
        if not counts.all():
            break
        states.append(state)
        joints.append(legal.actions[first + rng.integers(counts)].astype(np.int32))
        state = after(game, state, joints[-1])
    return states, joints


def after(game: Game, state: State, joint: Joint) -> State:
    """Return the state after a joint move."""
    later: State = game.next(state[None], joint[None])[0]
    return later
