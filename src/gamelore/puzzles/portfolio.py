"""Search of a puzzle, a game with one role: a portfolio of methods, and the best solution that they have found.

A puzzle has no opponent and no chance, so a sequence of its actions always has the same result, and the best one found
so far is kept and followed. The methods take turns. Each gets a fixed share of the time, or, with a budget of
simulations, of all positions; near a deadline, only methods whose steps fit. Most of them are generators, which yield
the number of positions that they have computed since the last time. All drop hopeless positions, see outlook.py.

**Breadth first** expands every position once. If it ends, it has seen the best end, which proves the value. Facts that
count plies make a new position of every repetition. They are masked: two positions that differ in these facts only are
one position, of which the first is kept. It is the one with the most plies left, so everything that is reachable from a
later one within its plies is reachable from the first one, too. A match can still end by the count alone, in a position
that would have been reached later. Therefore the goals at the end of the count are an upper bound of such results, and
if the bound is too high, the search begins again without a mask, but not after the table has become full.

**By width** is iterated width, IW(1) and IW(2) (Lipovetzky & Geffner 2012): breadth first, but a position is kept only
if it makes a fact (a pair of facts) true for the first time in the search. So IW(1) keeps at most one position for each
fact.

**Best first** expands the positions with the smallest width first, among these the ones that fit the highest goal best,
among these the latest (best-first width search; Lipovetzky & Geffner 2017). Widths are counted apart for each level of
the fit; a position on another level than the one before has all of its facts anew there.

**Deepest first** expands the deepest positions first, among these the children of positions with many moves, which
suits puzzles that fill something without a conflict. It begins again and again, with noise in the number of moves.

**By subsets** is for puzzles in which the order of actions does not matter. It is a depth-first search that bans
actions: those which made a position hopeless, and those which were tried before, since a solution with them has been
looked for there. If a position without an action were hopeless, the action is needed, and no other is tried. Else only
those actions are tried that make one part of the goal true, the part with the fewest such actions. So it is propagation
of constraints; in other puzzles the bans leave solutions out, and the search ends soon.

**By parts** takes a sum of puzzles apart, see factored.py. The other methods leave irrelevant facts out when they
compare positions; see analysis/parts.py.

**NRPA**, nested rollout policy adaptation (Rosin 2011), plays random matches by a policy, and adapts the policy to the
best match so far. A policy has a weight for each code of a move; a move is drawn with a probability in proportion to
exp(weight). Nested levels have policies of their own: a level restarts the level below with a copy of its policy, and
then adapts its policy to the best match that came back. Here a match of the lowest level is the best of a batch
(stabilised NRPA, Cazenave 2020). Several searches run side by side, with other codes: the action; the action and the
one before; the action and the ply. Matches with equal goals are compared by their fit. At the start, all weights are 0,
so the first matches are plain playouts.

With a budget, the result is a function of the state, the key and the settings.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..analysis.parts import PartGame, parts
from ..analysis.symmetry import StepCounter, step_counter
from ..circuit.tape import LANES
from ..errors import GameloreError
from ..game.engines import HIGHEST_GOAL
from ..players.kernel import F64, I32, I64, F32x2, inlined, kernel
from ..players.position_graph import MIB, longer
from ..players.random_streams import extend, mix, unit
from ..players.uct import MAX_PLIES
from .factored import POSITIONS_OF_A_WALK, FactoredSearch, GroupKey
from .outlook import Agenda, Children, FactBits, Fit, Novelty, Prospect, Reached, States, pair_bytes, seeming_clocks

if TYPE_CHECKING:
    from ..game.game import Game

SHARES = {"breadth first": 1, "by width": 1, "best first": 1, "deepest first": 1, "by subsets": 1, "NRPA": 2}
BY_PARTS = "by parts"  # a method for puzzles that are sums, see factored.py
METHODS = {BY_PARTS: 1} | SHARES
WIDTHS = (1, 2)
LEVELS = 32  # of the fit, for the widths of the best-first search
_BITS = 64  # of a word
_MEMORY_MIB = 1024
_MOST_BITS = 8192  # of a state, for pairs of facts
_MOST_PAIR_BYTES = 64 * MIB  # of all levels of the best-first search
_MOST_MISFIT = (1 << 20) - 1
_FIRST_TRY = 500  # positions to expand in the first order of actions
_FIRST_DIVE = 100_000  # positions; each dive is longer than the one before by so many
_DEEPEST, _RANKS, _MOST_RANK, _NOISE = (1 << 15) - 1, 32, (1 << 16) - 1, 0.1  # of the order of dives
_NOMINAL = 1e-6  # seconds that a position counts without a deadline
BY_ACTION, BY_PREVIOUS, BY_PLY = range(3)  # codes of moves
KINDS = (BY_ACTION, BY_PREVIOUS, BY_PLY, BY_ACTION)  # of the searches by NRPA side by side
LANES_OF_REASONER = 16
ITERATIONS = 50  # of each level
STEP = 1.0  # of the adaptation of a policy, alpha
_LEVELS = 2
_CODES = 1 << 16
_MOST_PLIES = 512  # of a match by NRPA
_CLOCKS, _PLAYING = range(2)  # purposes of random numbers


Steps: TypeAlias = Iterator[int]
_Ply: TypeAlias = tuple[NDArray[np.int64], States, NDArray[np.int32]]  # lanes, their positions, their actions


@dataclass(frozen=True)
class PuzzleSolution:
    """Actions from a position to the end of the match, and the goal that they reach.

    goal     0 to 100
    actions  int32[n]
    states   uint64[n + 1, words], the positions on the way, with both ends
    method   the name of the method that found it
    """

    goal: int
    actions: NDArray[np.int32]
    states: States
    method: str

    @classmethod
    def replayed(cls, game: Game, state: States, actions: NDArray[np.int32], method: str) -> PuzzleSolution:
        """Return the solution that consists of legal actions, with its goal as the rules say it."""
        states = [state]
        for action in actions:
            states.append(game.next(states[-1][None], np.array([[action]], np.int32))[0])
        return cls._without_loops(game, states, actions, method)

    @classmethod
    def _without_loops(
        cls, game: Game, states: Sequence[States], actions: NDArray[np.int32], method: str
    ) -> PuzzleSolution:
        """Return the solution along some positions, with both ends.

        Where a position occurs again, the actions between are left out: a player could not tell how far it has come.
        """
        goal = max(int(game.evaluate(states[-1][None])[1][0, 0]), 0)
        places, place, last = list[int](), 0, {state.tobytes(): place for place, state in enumerate(states)}
        while (place := last[states[place].tobytes()]) < len(actions):
            places.append(place)
            place += 1
        return cls(goal, actions[places], np.array(states)[[*places, -1]], method)

    @classmethod
    def of_moves(cls, game: Game, moves: Sequence[str], method: str) -> PuzzleSolution | None:
        """Return the solution that consists of moves from the first position on.

        Return None if the rules do not allow one of them, or if the match does not end with the last one.
        """
        states, actions = [game.initial], np.empty(len(moves), np.int32)
        for number, move in enumerate(moves):
            try:
                actions[number] = game.action(0, move)
            except GameloreError:  # no move of the game
                return None
            state = states[-1][None]
            if actions[number] not in game.legal(state).actions:
                return None
            states.append(game.next(state, actions[None, number : number + 1])[0])
        is_whole = len(moves) > 0 and game.terminal(states[-1][None])[0]
        return cls._without_loops(game, states, actions, method) if is_whole else None

    def after(self, state: States) -> PuzzleSolution | None:
        """Return the part of the solution from a position on; None if it is not on the way, or is the end."""
        places = np.flatnonzero((self.states[:-1] == state).all(axis=1))
        if not len(places):
            return None
        return PuzzleSolution(self.goal, self.actions[places[0] :], self.states[places[0] :], self.method)


class Exhaustion:
    """Breadth-first search of all positions below a state, without repetitions.

    Args:
        counter: facts that count plies, to be masked; None to compare them, too
        relevant: facts that have an influence on the value of a position, uint64[words]; if not given, all facts

    `bound` is an upper bound of all goals when the search has ended with `is_complete`.
    """

    def __init__(
        self, reached: Reached, state: States, counter: StepCounter | None, relevant: States | None = None
    ) -> None:
        self.reached, self.bound, self.is_complete = reached, 0, False
        self._counter = counter
        mask = np.full(len(state), ~np.uint64(0)) if relevant is None else relevant
        reached.plant(state, mask if counter is None else mask & ~counter.mask)

    def steps(self) -> Steps:
        """Search; see the module."""
        reached, cursor = self.reached, 0
        self._note(reached.states[:1])
        while cursor < reached.num:
            end = min(cursor + reached.batch, reached.num)
            children = reached.expand(np.arange(cursor, end, dtype=np.int32))
            self.bound = max(self.bound, int(children.goals[children.terminal].max(initial=0)))
            cursor = end
            self._note(reached.add_new(children))
            yield reached.computed
            if reached.is_full:
                return
        self.is_complete = True

    def _note(self, states: States) -> None:
        """Raise the bound by the goals that positions would have at the end of the count."""
        if self._counter is not None and self._counter.ends and len(states):
            goals = self.reached.game.evaluate(states & ~self._counter.mask | self._counter.last)[1]
            self.bound = max(self.bound, int(goals.max()))


def by_width(reached: Reached, state: States, facts: FactBits) -> Steps:
    """Search by IW(1), then IW(2)."""
    for width in WIDTHS:
        if width == 1 or facts.num_bits <= _MOST_BITS:
            yield from _iterated_width(reached, state, facts, width)


def _iterated_width(reached: Reached, state: States, facts: FactBits, width: int) -> Steps:
    reached.plant(state)
    seen = Novelty(facts.num_bits, 1, width)
    seen.widths(facts.of(state[None]), np.zeros((1, facts.num_bits // _BITS), np.uint64), np.zeros(1, np.int64))
    cursor = 0
    while cursor < reached.num:
        end = min(cursor + reached.batch, reached.num)
        children = reached.expand(np.arange(cursor, end, dtype=np.int32))
        cursor = end
        inner = np.flatnonzero(~children.terminal)
        bits, before = facts.of(children.states[inner]), facts.of(reached.states[children.parents[inner]])
        new = inner[seen.widths(bits, before, np.zeros(len(inner), np.int64)) <= width]
        reached.keep(children, new)
        yield reached.computed


def best_first(reached: Reached, state: States, facts: FactBits, fit: Fit | None, mask: States) -> Steps:
    """Search best first; repetitions are found by the facts of the mask."""
    reached.plant(state, mask)
    width = 2 if LEVELS * pair_bytes(facts.num_bits) <= _MOST_PAIR_BYTES else 1
    seen, agenda = Novelty(facts.num_bits, LEVELS, width), Agenda()
    agenda.add(np.zeros(1, np.int64), np.zeros(1, np.int64))
    levels = (_fits(reached.game, fit, state[None]) * (LEVELS - 1)).astype(np.int64)  # of each row
    seen.widths(facts.of(state[None]), np.zeros((1, facts.num_bits // _BITS), np.uint64), levels)
    share = 1 if reached.game.uses_reasoner else 8  # a smaller batch follows the order more closely
    while agenda.size and not reached.is_full:
        children = reached.expand(agenda.take(max(1, reached.batch // share)))
        states = reached.add_new(children)
        fits = _fits(reached.game, fit, states)
        new = np.arange(reached.num - len(states), reached.num)
        parents, own = reached.parents[new], (fits * (LEVELS - 1)).astype(np.int64)
        before = facts.of(reached.states[parents]) * (levels[parents] == own)[:, None].astype(np.uint64)
        widths = seen.widths(facts.of(states), before, own)
        if len(levels) < reached.num:
            levels = longer(levels, len(reached.states))
        levels[new] = own
        misfits = ((1 - fits) * _MOST_MISFIT).astype(np.int64)
        agenda.add(widths * (_MOST_MISFIT + 1) + misfits, new)
        yield reached.computed


def deepest_first(reached: Reached, state: States, mask: States, seed: int) -> Steps:
    """Search depth first, in turn among the children of positions with many moves; again and again with other noise."""
    rng, work = np.random.default_rng(seed), _FIRST_DIVE
    while True:
        spent = 0
        for positions in _dive(reached, state, mask, rng):
            spent += positions
            yield positions
            if spent > work:
                break
        else:
            if not reached.is_full:
                return  # all positions were seen
        work += _FIRST_DIVE


def _dive(reached: Reached, state: States, mask: States, rng: np.random.Generator) -> Steps:
    best = reached.best
    reached.plant(state, mask)
    reached.best = best  # of an earlier dive
    agenda = Agenda()
    agenda.add(np.zeros(1, np.int64), np.zeros(1, np.int64))
    while agenda.size and not reached.is_full:
        rows = agenda.take(max(1, reached.batch // 8))
        children = reached.expand(rows)
        moves = np.bincount(np.searchsorted(np.sort(rows), children.parents), minlength=len(rows))
        first = reached.num
        reached.add_new(children)
        new = np.arange(first, reached.num)
        parents = reached.parents[new]
        choice = moves[np.searchsorted(np.sort(rows), parents)] * (1 + _NOISE * rng.random(len(new)))
        rank = (_MOST_RANK - np.minimum(_RANKS * choice, _MOST_RANK)).astype(np.int64)
        agenda.add(np.maximum(_DEEPEST - reached.depths[new].astype(np.int64), 0) * (_MOST_RANK + 1) + rank, new)
        yield reached.computed


def by_subsets(reached: Reached, state: States, prospect: Prospect, fit: Fit | None, seed: int) -> Steps:
    """Search by subsets; again and again with other orders of actions, each time twice as long."""
    rng, limit = np.random.default_rng(seed), _FIRST_TRY
    while True:
        for number, positions in enumerate(_subsets(reached, state, prospect, fit, rng)):
            yield positions
            if number >= limit:
                break
        else:
            if not reached.is_full:
                return
        limit *= 2


def _subsets(reached: Reached, state: States, prospect: Prospect, fit: Fit | None, rng: np.random.Generator) -> Steps:
    best = reached.best
    reached.plant(state)
    reached.best = best  # of an earlier order
    bans = [np.zeros(prospect.action_words, np.uint64)]  # of each row
    stack = [0]
    while stack and not reached.is_full:
        row = stack.pop()
        children, ban = _pruned(reached, row, bans[row], prospect)
        if fit is not None and len(children.actions) > 1:
            children = children.some(_most_urgent(fit, reached.states[row], children.states))
        first = reached.num
        reached.keep(children, rng.permutation(len(children.actions)))
        earlier = np.concatenate([ban[None], action_bits(reached.actions[first : reached.num], len(ban))])[:-1]
        bans += list(np.bitwise_or.accumulate(earlier, axis=0))
        stack += reversed(range(first, reached.num))
        yield reached.computed


def _pruned(reached: Reached, row: int, ban: States, prospect: Prospect) -> tuple[Children, States]:
    """Return the children of a row without hopeless ones, and the banned actions; only one if its action is needed."""
    children = reached.expand(np.array([row], np.int32))
    bits = action_bits(children.actions, len(ban))
    which = np.flatnonzero(~children.terminal & ~(bits & ban).any(axis=1))
    while True:
        hopeful = prospect.can_end(children.states[which], reached.above, np.repeat(ban[None], len(which), axis=0))
        if hopeful.all():
            break
        ban = ban | np.bitwise_or.reduce(bits[which[~hopeful]], axis=0)
        which = which[hopeful]
    without = np.concatenate([ban[None], ban | bits[which]])
    states = np.repeat(reached.states[row : row + 1], len(without), axis=0)
    needed = ~prospect.can_end(states, reached.above, without)
    if needed[0]:
        which = which[:0]
    elif needed.any():
        which = which[np.argmax(needed[1:])][None]
    return children.some(which), ban


def _most_urgent(fit: Fit, state: States, following: States) -> NDArray[np.int64]:
    """Return the indices of those children that make the same part of the goal true, a part with the fewest such."""
    gains = fit.held_parts(following) & ~fit.held_parts(state[None])
    counts = gains.sum(axis=0)
    if not counts.any():
        return np.arange(len(following))
    return np.flatnonzero(gains[:, np.argmin(np.where(counts, counts, len(following) + 1))])


def action_bits(actions: NDArray[np.int32], num_words: int) -> States:
    """Return rows with one bit each, that of an action, uint64[n, words]."""
    rows = np.zeros((len(actions), num_words), np.uint64)
    rows[np.arange(len(actions)), actions >> 6] = np.uint64(1) << (actions & 63).astype(np.uint64)
    return rows


def _fits(game: Game, fit: Fit | None, states: States) -> NDArray[np.float64]:
    """Return how promising positions are, from 0 to 1: the mean of their fit and of their goal, if they have one."""
    goals: NDArray[np.float64] = np.clip(game.evaluate(states)[1][:, 0], 0, HIGHEST_GOAL) / HIGHEST_GOAL
    return goals if fit is None else (goals + fit.of(states)) / 2


class PolicyMatch(NamedTuple):
    """A match by a policy: its score, its goal, the positions before its moves uint64[n, words], and its actions."""

    score: float
    goal: int
    states: States
    actions: NDArray[np.int32]


class PolicySearch:
    """Nested rollout policy adaptation, several searches side by side; see the module."""

    def __init__(self, game: Game, fit: Fit | None, max_plies: int) -> None:
        self.game, self._fit, self._max_plies = game, fit, max_plies
        self.best: PolicyMatch | None = None
        lanes = LANES_OF_REASONER if game.uses_reasoner else LANES
        self._searches = np.arange(lanes) * len(KINDS) // lanes  # of each lane
        self._kinds = np.array(KINDS, np.int64)
        self._policies = np.zeros((_LEVELS, len(KINDS), _CODES), np.float32)
        self._bests: list[list[PolicyMatch | None]] = [[None] * len(KINDS) for _ in range(_LEVELS)]

    def steps(self, state: States, key: np.uint64) -> Steps:
        """Search until the puzzle has no legal move, see the class."""
        iteration = 0
        while len(self.game.legal(state[None]).actions):
            trials = yield from self._play(state, np.uint64(extend(key, iteration)))
            iteration += 1
            for search, trial in enumerate(trials):
                self._learn(0, search, trial)
            for level in range(1, _LEVELS):
                if iteration % ITERATIONS**level == 0:
                    self._return_to(level)
            if iteration % ITERATIONS**_LEVELS == 0:
                self._policies[:], self._bests = 0, [[None] * len(KINDS) for _ in range(_LEVELS)]

    def _return_to(self, level: int) -> None:
        """Let a level learn the best matches of the level below, and restart that one."""
        for search, trial in enumerate(self._bests[level - 1]):
            if trial is not None:
                self._learn(level, search, trial)
        self._policies[level - 1] = self._policies[level]
        self._bests[level - 1] = [None] * len(KINDS)

    def _learn(self, level: int, search: int, trial: PolicyMatch) -> None:
        """Adapt the policy of a level to its best match, perhaps this one."""
        if not len(trial.actions):
            return
        best = self._bests[level][search]
        if best is None or trial.score >= best.score:
            best = self._bests[level][search] = trial
        legal = self.game.legal(best.states)
        adapt(self._policies[level], search, legal.offsets, legal.actions, best.actions, KINDS[search], STEP)

    def _play(self, state: States, key: np.uint64) -> Generator[int, None, list[PolicyMatch]]:
        """Play a match in each lane; return the best match of each search."""
        states, lanes = np.repeat(state[None], len(self._searches), axis=0), np.arange(len(self._searches))
        ends, before = states.copy(), np.full(len(lanes), -1, np.int64)
        history: list[_Ply] = []
        for ply in range(self._max_plies + 1):
            legal = self.game.legal(states)
            going = np.diff(legal.offsets) > 0
            ends[lanes[~going]] = states[~going]
            if not going.any() or ply == self._max_plies:
                ends[lanes[going]] = states[going]
                break
            chosen = _choose(
                legal.offsets, legal.actions, lanes, self._searches, before, ply, self._policies[0], self._kinds,
                mix(key, np.uint64(ply)),
            )  # fmt: skip
            lanes, states, actions = lanes[going], states[going], chosen[going]
            history.append((lanes, states, actions))
            before[lanes] = actions
            states = self.game.next(states, actions[:, None])
            yield len(lanes)
        return self._judged(ends, history)

    def _judged(self, ends: States, history: Sequence[_Ply]) -> list[PolicyMatch]:
        """Return the best match of each search, and keep the best that ended."""
        terminal, goals = self.game.evaluate(ends)
        goals = np.where(terminal, np.maximum(goals[:, 0], 0), -1)
        scores = goals + (0.99 * self._fit.of(ends) if self._fit is not None else 0.0)
        trials = []
        for search in range(len(KINDS)):
            lanes = np.flatnonzero(self._searches == search)
            lane = int(lanes[np.argmax(scores[lanes])])
            trial = _trial(lane, float(scores[lane]), int(goals[lane]), ends[:0], history)
            if trial.goal >= 0 and (self.best is None or trial.goal > self.best.goal):
                self.best = trial
            trials.append(trial)
        return trials


def _trial(lane: int, score: float, goal: int, no_states: States, history: Sequence[_Ply]) -> PolicyMatch:
    """Return the match of a lane."""
    states, actions = [no_states], []
    for lanes, before, made in history:
        place = int(np.searchsorted(lanes, lane))
        if place == len(lanes) or lanes[place] != lane:
            break
        states.append(before[place : place + 1])
        actions.append(int(made[place]))
    return PolicyMatch(score, goal, np.concatenate(states), np.array(actions, np.int32))


@inlined
def _code(kind: int, action: int, before: int, ply: int) -> int:
    """Return the code of a move, an index of a policy; for use inside kernels."""
    if kind == BY_ACTION:
        return action & (_CODES - 1)
    other = np.uint64(before + 1) if kind == BY_PREVIOUS else np.uint64(ply)
    return int(mix(np.uint64(action), other) & np.uint64(_CODES - 1))


@inlined
def _weigh(
    policy: F32x2, row: int, kind: int, actions: I32, begin: int, end: int, before: int, ply: int, weights: F64
) -> float:
    """Write exp(weight) of some moves, divided by the largest of these numbers; return their sum. For kernels."""
    most = -np.inf
    for i in range(begin, end):
        weights[i - begin] = policy[row, _code(kind, actions[i], before, ply)]
        most = max(most, weights[i - begin])
    total = 0.0
    for i in range(end - begin):
        weights[i] = np.exp(weights[i] - most)
        total += weights[i]
    return total


@kernel
def _choose(
    offsets: I64, actions: I32, lanes: I64, searches: I64, before: I64, ply: int, policies: F32x2, kinds: I64,
    key: np.uint64,
) -> I32:  # fmt: skip
    """Return a random action of each lane by the policy of its search; -1 without a legal action."""
    chosen, weights = np.full(lanes.size, -1, np.int32), np.empty(actions.size)
    for i in range(lanes.size):
        begin, end, lane = offsets[i], offsets[i + 1], lanes[i]
        if begin == end:
            continue
        search = searches[lane]
        total = _weigh(policies, search, kinds[search], actions, begin, end, before[lane], ply, weights)
        left, move = unit(key, np.uint64(lane), np.uint64(0)) * total, begin
        while move < end - 1 and left >= weights[move - begin]:
            left -= weights[move - begin]
            move += 1
        chosen[i] = actions[move]
    return chosen


@kernel
def adapt(policies: F32x2, search: int, offsets: I64, legal: I32, actions: I32, kind: int, step: float) -> None:
    """Adapt a policy to a match: more weight for its actions, less for all legal ones by their probability.

    The move `actions[i]` was chosen among `legal[offsets[i] : offsets[i + 1]]`. All probabilities are those before the
    adaptation.
    """
    codes, changes = np.empty(legal.size, np.int64), np.empty(legal.size)
    weights, before = np.empty(legal.size), -1
    for i in range(actions.size):
        begin, end = offsets[i], offsets[i + 1]
        total = _weigh(policies, search, kind, legal, begin, end, before, i, weights)
        for j in range(begin, end):
            codes[j] = _code(kind, legal[j], before, i)
            changes[j] = step * ((legal[j] == actions[i]) - weights[j - begin] / total)
        before = int(actions[i])
    for j in range(offsets[actions.size]):
        policies[search, codes[j]] += changes[j]


class PuzzleSearch:
    """Search of the best sequence of actions in a puzzle. It can be stopped and resumed at any time.

    Args:
        game: game with one role
        memory: limit on the memory in MiB
        max_plies: maximum number of plies of a random match
        methods: names of the methods to use, of those in METHODS; all if it is not given

    `solution` is the best solution from `state` on; None if no end of the match has been reached yet.
    """

    def __init__(
        self,
        game: Game,
        memory: float = _MEMORY_MIB,
        max_plies: int = MAX_PLIES,
        methods: tuple[str, ...] = tuple(METHODS),
    ) -> None:
        self.game, self._max_plies, self._methods = game, min(max_plies, _MOST_PLIES), methods
        self._bytes = int(memory * MIB / 4)  # of each method with a table of positions
        self.top = max(game.goal_values[0], default=0)
        self._counter = step_counter(game)
        self._parts = parts(game)
        self._fit = Fit.of_goal(game)
        self._games_of_groups = dict[GroupKey, PartGame]()
        self.state: States | None = None
        self.solution: PuzzleSolution | None = None
        self.forget()

    def forget(self) -> None:
        """Forget the position and its solution; keep what depends on the game only."""
        self.state = self.solution = None
        self._is_exhausted = False
        self._shares_time: bool | None = None  # else positions; the first run decides, so that work has one unit
        self._running: dict[str, Steps] = {}
        self._bests: dict[str, Reached | PolicySearch | FactoredSearch] = {}

    def begin(self, state: States, key: np.uint64, known: PuzzleSolution | None = None) -> None:
        """Begin a new search below a state, uint64[words]. `known` is a solution from there."""
        self.forget()
        self.state, self.solution = state.copy(), known
        # of the last step of each method, or half of what was expected of it if that is more
        self._seconds = dict.fromkeys(self._methods, 0.0)
        clocks = seeming_clocks(self.game, state, int(extend(key, _CLOCKS)))
        mask = self._parts.relevant & ~(clocks if self._counter is None else clocks | self._counter.mask)
        self._prospect = Prospect.of_game(self.game, ~mask)
        self._work = {name: 0.0 for name in self._methods}
        self._running = {name: self._start(name, mask, np.uint64(extend(key, _PLAYING))) for name in self._methods}
        self._raise_aim()

    def _start(self, name: str, mask: States, key: np.uint64) -> Steps:
        """Start a method."""
        game, state = self.game, self.state
        assert state is not None
        if name == "NRPA":
            policies = self._bests[name] = PolicySearch(game, self._fit, self._max_plies)
            return policies.steps(state, key)
        if name == "by subsets":
            if self._prospect is None:
                return iter(())
            reached = self._bests[name] = Reached(game, self._bytes // 4)  # it tests the children itself
            return by_subsets(reached, state, self._prospect, self._fit, int(key))
        if name == BY_PARTS:
            factored = self._bests[name] = self._by_parts()
            return factored.steps(state, key)
        reached = self._bests[name] = Reached(game, self._bytes, self._prospect)
        if name == "breadth first":
            return self._exhaust(reached)
        if name == "by width":
            return by_width(reached, state, FactBits(game, mask))
        if name == "deepest first":
            return deepest_first(reached, state, mask, int(key))
        return best_first(reached, state, FactBits(game, mask), self._fit, mask)

    def compile_parts(self, deadline: float | None = None) -> None:
        """Compile the games of parts that searches need, until a deadline in seconds of `time.monotonic`."""
        if BY_PARTS in self._methods:
            self._by_parts().compile_games(deadline)

    def _by_parts(self) -> FactoredSearch:
        return FactoredSearch(self._parts, self._search_of_part, self._games_of_groups)

    def _search_of_part(self, game: Game, share: float) -> PuzzleSearch:
        """Return a search of a part of the game by the other methods, with a share of the memory of a method."""
        return PuzzleSearch(game, share * self._bytes / MIB, self._max_plies, tuple(SHARES))

    def _exhaust(self, reached: Reached) -> Steps:
        """Search breadth first, at first without the facts that count plies, which proves the value in most puzzles."""
        assert self.state is not None
        counters: list[StepCounter | None] = [self._counter, None] if self._counter is not None else [None]
        for counter in counters:
            search = Exhaustion(reached, self.state, counter, self._parts.relevant)
            yield from search.steps()
            self._keep("breadth first")
            reached_goal = self.solution.goal if self.solution is not None else 0
            if not search.is_complete:
                return  # without the mask there are more positions, which fit even less into the table
            if search.bound <= reached_goal:
                self._is_exhausted = True
                return

    @property
    def is_proved(self) -> bool:
        """Whether no better solution exists."""
        return self._is_exhausted or (self.solution is not None and self.solution.goal >= self.top)

    @property
    def is_running(self) -> bool:
        """Whether there is something left to search."""
        return bool(self._running) and not self.is_proved

    def is_at(self, state: States) -> bool:
        """Return whether the search is below this state, uint64[words]."""
        return self.state is not None and np.array_equal(self.state, state)

    def advance(self, state: States, key: np.uint64) -> None:
        """Go on below another state. If the solution leads there, its rest is kept, also the proof of its value."""
        rest = self.solution.after(state) if self.solution is not None else None
        if self.is_proved and rest is not None:
            self.forget()
            self.state, self.solution, self._is_exhausted = state.copy(), rest, True
        else:
            self.begin(state, key, rest)

    def run(self, simulations: int | None = None, deadline: float | None = None, least_steps: int = 0) -> int:
        """Search until a budget is used up or the value is proved.

        Args:
            simulations: stop after so many simulations; 32 computed positions count as one
            deadline: time to stop at, in seconds of `time.monotonic`
            least_steps: number of steps to make even if they end after the deadline

        Returns:
            The number of simulations.
        """
        limit, done, steps = simulations and simulations * POSITIONS_OF_A_WALK, 0, 0
        if self._shares_time is None:
            self._shares_time = limit is None
        if deadline is not None and self.game.uses_reasoner and not any(self._seconds.values()):
            self._seconds = dict.fromkeys(self._methods, self._expected())
        while self.is_running and (limit is None or done < limit):
            begin = monotonic()
            left = np.inf if deadline is None or steps < least_steps else deadline - begin
            fitting = [name for name in self._running if self._seconds[name] <= left]
            if not fitting:
                break
            name = min(fitting, key=lambda name: self._work[name])
            positions = self._step(name)
            seconds = monotonic() - begin
            self._seconds[name] = max(0.5 * self._seconds[name], seconds)
            self._work[name] += (seconds if self._shares_time else _NOMINAL * positions) / METHODS[name]
            done, steps = done + positions, steps + (positions > 0)
        return -(-done // POSITIONS_OF_A_WALK)

    def _expected(self) -> float:
        """Return how long the first step takes at least, in seconds: to compute all children of a position."""
        assert self.state is not None
        begin, legal = monotonic(), self.game.legal(self.state[None])
        if len(legal.actions):
            self.game.evaluate(self.game.next(self.state[None], legal.actions[:1, None]))
        return len(legal.actions) * (monotonic() - begin)

    def _step(self, name: str) -> int:
        """Let a method make a step; return the number of positions."""
        positions = next(self._running[name], None)
        if positions is None:
            del self._running[name]
            return 0
        self._keep(name)
        return max(positions, 1)

    def _keep(self, name: str) -> None:
        """Keep the best end of a method if it is better than the solution."""
        best = self._bests[name].best
        if best is not None and (self.solution is None or best.goal > self.solution.goal):
            assert self.state is not None
            self.solution = PuzzleSolution.replayed(self.game, self.state, best.actions, name)
            self._raise_aim()

    def _raise_aim(self) -> None:
        """Tell all methods that only better ends than the solution are of use."""
        for best in self._bests.values():
            if isinstance(best, Reached) and self.solution is not None:
                best.above = max(best.above, self.solution.goal)

    def choice(self) -> int | None:
        """Return the index of the solution's first action among the legal actions; None without a solution."""
        if self.solution is None or self.state is None:
            return None
        legal = self.game.legal(self.state[None]).actions
        return int(np.flatnonzero(legal == self.solution.actions[0])[0])
