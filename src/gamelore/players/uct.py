"""UCT player: search trees grown by random playouts, decoupled UCB1 for simultaneous moves, virtual loss.

A simulation walks down a tree to a leaf, plays a random playout from there, and adds the result to the moves on the way
back to the root. The trees of many lanes are stored in the same flat arrays, and their leaves are evaluated in batches.
The player grows a new tree for every move.

Selection is UCB1 applied to trees (Kocsis & Szepesvari 2006, "Bandit based Monte-Carlo planning"). Each role selects
for itself: a node keeps visits and values of each role's own moves, and each role takes the move with its best bound.
The resulting joint move leads to the child. This is decoupled UCT, for any number of roles and for simultaneous moves,
as in CadiaPlayer (Finnsson & Bjornsson 2008, "Simulation-based approach to general game playing"). Where one role moves
at a time and the others have only a noop, this is plain UCT in which each role maximises its own goal.

With simultaneous moves, decoupled UCT need not reach an equilibrium (Shafiei, Sturtevant & Schaeffer 2009, "Comparing
UCT versus CFR in simultaneous games"). Roles in symmetric situations always change their moves at the same time, so the
search never explores a joint move in which only one role changes its move. Randomised bounds avoid this. But in most of
the simultaneous games that were tried, a player with randomised bounds lost to a player with plain bounds (goofspiel:
51 wins, 149 losses).

Several simulations of a tree run at once. A simulation adds 1 to the visits of its moves on the way down, and adds its
value on the way back. In between, the visit counts as a loss. This virtual loss lowers the bounds of these moves, so
that the next simulation takes another way (Chaslot, Winands & van den Herik 2008, "Parallel Monte-Carlo tree search").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..game.engines import HIGHEST_GOAL
from .kernel import F64, I8, I32, I64, U64, F64x2, I32x2, I64x2, kernel, load_kernels
from .lookahead import draw_best, draw_each
from .player import Player, Turn
from .position_graph import longer, memory_cap
from .random_streams import below, extend, mix

if TYPE_CHECKING:
    from ..game.game import Game

MAX_PLIES = 1000  # of a playout; with random moves, a playout may never end


def playout_goals(
    game: Game,
    states: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    *,
    max_plies: int = MAX_PLIES,
    deadline: float | None = None,
) -> NDArray[np.int16] | None:
    """Play one random playout from each of the states uint64[trees, n, words]; return the goals int16[trees, n, roles].

    A goal is -1 where the rules give no goal or several goals. All goals of a playout are -1 if its last state is not
    terminal: it is stuck, or it is the state after `max_plies`. The playouts of tree i depend only on states[i],
    keys[i] and the engine. The native engine plays 64 matches in hardly more time than one match. Stop and return None
    once the deadline, in seconds of `monotonic()`, has passed.
    """
    trees, each, words = states.shape
    if game.uses_reasoner:
        streams = extend(keys[:, None], np.arange(each)).ravel()
        reasoned = _reasoned(game, states.reshape(-1, words), streams, max_plies, deadline)
        return None if reasoned is None else reasoned.reshape(trees, each, game.num_roles)
    goals = np.empty((trees, each, game.num_roles), np.int16)
    for tree in range(trees):
        if deadline is not None and monotonic() > deadline:
            return None
        goals[tree] = game.rollouts(states[tree], int(keys[tree]), threads=1, max_steps=max_plies).goals
    return goals


def _reasoned(
    game: Game, states: NDArray[np.uint64], keys: NDArray[np.uint64], max_plies: int, deadline: float | None
) -> NDArray[np.int16] | None:
    """Return `playout_goals` of states uint64[n, words], played on the reasoner. Check the deadline at each ply."""
    last = states.copy()
    running = np.arange(len(states))
    for ply in range(max_plies):
        if deadline is not None and monotonic() > deadline:
            return None
        legal = game.legal(states)  # no moves in terminal states, so they need no evaluation before the end
        going, joint = _draw(legal.offsets, legal.actions, keys[running], ply, game.num_roles)
        if len(going) < len(running):
            last[running] = states
            running, states = running[going], states[going]
        if not len(going):
            break
        states = game.next(states, joint)
    last[running] = states
    terminal, goals = game.evaluate(last)
    goals[~terminal] = -1
    return goals


@kernel
def _draw(offsets: I64, actions: I32, keys: U64, ply: int, roles: int) -> tuple[I64, I32x2]:
    """Draw a random joint move in each state in which every role has a move.

    Return (indices of these states int64[going], joint moves int32[going, roles]).
    """
    going = np.empty(keys.size, np.int64)
    joint = np.empty((keys.size, roles), np.int32)
    size = 0
    for i in range(keys.size):
        stuck = False
        for role in range(roles):
            begin = offsets[i * roles + role]
            count = offsets[i * roles + role + 1] - begin
            if count == 0:
                stuck = True
                break
            joint[size, role] = actions[begin]
            if count > 1:
                joint[size, role] = actions[begin + below(keys[i], np.uint64(ply), np.uint64(role), count)]
        if not stuck:
            going[size] = i
            size += 1
    return going[:size], joint[:size]


# Stages of a node. BORN: nothing is known. SEEN: the state is known. LISTED: the moves are known, too. CLOSED: there
# are no moves (terminal or stuck). Many nodes are visited only once, so moves are listed only at the second visit.
BORN, SEEN, LISTED, CLOSED = 0, 1, 2, 3

# columns of `Forest.links`
PARENT, CHILD, SIBLING, DEPTH = 0, 1, 2, 3

# arrays of a forest with an entry for each node, and for each move
OF_NODES = ("states", "stage", "links", "led", "walks", "num_moves", "move_start")
OF_MOVES = ("actions", "visits", "sums")


class Forest:
    """Search trees of one game, one tree for each of the states uint64[trees, words].

    Node i < trees is the root of tree i.

    The arrays, all with unused entries at the end:

    stage       int8[nodes], BORN, SEEN, LISTED or CLOSED
    states      uint64[nodes, words]
    links       int32[nodes, 4], columns PARENT, CHILD (the first), SIBLING (the next), each -1 for none; and DEPTH
    led         int32[nodes, roles], the joint move that leads to the node: an index into the legal moves of each role
    walks       int32[nodes], number of walks through the node
    num_moves   int32[nodes, roles], 0 until listed
    move_start  int64[nodes, roles], index of the role's first move in the arrays with an entry for each move
    actions     int32[moves]
    visits      int32[moves], how often the role chose the move
    sums        float64[moves], sum of the values of these visits for the role; each value is from 0 to 1
    """

    def __init__(self, game: Game, states: NDArray[np.uint64], exploration: float) -> None:
        trees, roles = len(states), game.num_roles
        self.game = game
        self.exploration = exploration
        self.num_nodes = trees
        self.num_listed = 0  # moves in use
        self.states = states.copy()
        self.stage = np.full(trees, SEEN, np.int8)
        self.links = np.tile(np.array([-1, -1, -1, 0], np.int32), (trees, 1))
        self.led = np.zeros((trees, roles), np.int32)
        self.walks = np.zeros(trees, np.int32)
        self.num_moves = np.zeros((trees, roles), np.int32)
        self.move_start = np.zeros((trees, roles), np.int64)
        self.actions = np.zeros(0, np.int32)
        self.visits = np.zeros(0, np.int32)
        self.sums = np.zeros(0)
        self._scores = np.empty(1)

    @property
    def num_bytes(self) -> int:
        """Bytes of memory of the nodes and moves."""
        return sum(getattr(self, name).nbytes for name in (*OF_NODES, *OF_MOVES))

    def select(self, trees: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Walk down tree `trees[i]` for each entry of `trees` int64[n], in this order. Return the end nodes int32[n].

        An end node is new, or has no moves. Among moves with equal bounds, the streams of `keys` uint64[n] choose. The
        caller must finish each walk with `back_up` or `withdraw`.
        """
        ends = trees.astype(np.int32)
        first = self.num_nodes
        if first + len(ends) > len(self.stage):
            for name in OF_NODES:
                setattr(self, name, longer(getattr(self, name), 2 * (first + len(ends))))
        self._descend(ends, keys)
        self._list(np.unique(ends[self.stage[ends] == SEEN]))
        self._descend(ends, keys)
        new = np.arange(first, self.num_nodes)
        if len(new):
            parents = self.links[new, PARENT]
            joint = self.actions[self.move_start[parents] + self.led[new]]
            self.states[new] = self.game.next(self.states[parents], joint)
            self.stage[new] = SEEN
        return ends

    def back_up(self, ends: NDArray[np.int32], values: NDArray[np.float64]) -> None:
        """Add values float64[n, roles], each from 0 to 1, to the moves of the walks that ended in these nodes."""
        self._credit(ends, values, 0)

    def withdraw(self, ends: NDArray[np.int32]) -> None:
        """Undo the visits of walks that ended in these nodes and have no result."""
        self._credit(ends, np.zeros((len(ends), self.game.num_roles)), -1)

    def _credit(self, ends: NDArray[np.int32], values: NDArray[np.float64], change: int) -> None:
        _credit(ends, values, change, self.links, self.led, self.move_start, self.walks, self.visits, self.sums)

    def _descend(self, ends: NDArray[np.int32], keys: NDArray[np.uint64]) -> None:
        nodes = self.num_nodes, self.stage, self.links, self.led, self.walks, self.num_moves, self.move_start
        self.num_nodes = _descend(ends, keys, self.exploration, *nodes, self.visits, self.sums, self._scores)

    def _list(self, nodes: NDArray[np.int32]) -> None:
        """List the legal moves of these nodes."""
        if not len(nodes):
            return
        legal = self.game.legal(self.states[nodes])
        starts, counts = legal.by_role(self.game.num_roles)
        self.num_moves[nodes] = counts
        self.move_start[nodes] = self.num_listed + starts
        self.stage[nodes] = np.where(counts.all(axis=1), LISTED, CLOSED)
        begin, self.num_listed = self.num_listed, self.num_listed + len(legal.actions)
        if self.num_listed > len(self.actions):
            for name in OF_MOVES:
                setattr(self, name, longer(getattr(self, name), 2 * self.num_listed))
        self.actions[begin : self.num_listed] = legal.actions
        if counts.max() > len(self._scores):
            self._scores = np.empty(counts.max())


@kernel
def _child(node: int, choice: I32, links: I32x2, led: I32x2) -> int:
    """Return the child of a node after a joint move; -1 if there is no such child yet."""
    child = int(links[node, CHILD])
    while child >= 0:
        same = True
        for role in range(choice.size):
            same &= led[child, role] == choice[role]
        if same:
            break
        child = int(links[child, SIBLING])
    return child


@kernel
def _add_child(node: int, child: int, choice: I32, stage: I8, links: I32x2, led: I32x2) -> None:
    """Enter a new child of a node into the arrays."""
    stage[child] = BORN
    led[child] = choice
    links[child, PARENT] = node
    links[child, CHILD] = -1
    links[child, SIBLING] = links[node, CHILD]
    links[child, DEPTH] = links[node, DEPTH] + 1
    links[node, CHILD] = child


@kernel
def _bounds(exploration: float, walks: int, visits: I32, sums: F64, out: F64) -> None:
    """Fill in the UCB1 bound of each move: mean value + exploration * sqrt(ln walks / visits).

    The bound of an unvisited move is infinite.
    """
    log = np.log(walks)
    for i in range(visits.size):
        if visits[i] == 0:
            out[i] = np.inf
        else:
            out[i] = sums[i] / visits[i] + exploration * np.sqrt(log / visits[i])


@kernel
def _descend(
    ends: I32,
    keys: U64,
    exploration: float,
    num_nodes: int,
    stage: I8,
    links: I32x2,
    led: I32x2,
    walks: I32,
    num_moves: I32x2,
    move_start: I64x2,
    visits: I32,
    sums: F64,
    scores: F64,
) -> int:
    """Continue each walk from its node in `ends` to a node without listed moves, and write this node into `ends`.

    Add a node for each joint move that has no child yet. Return the new number of nodes.
    """
    choice = np.empty(led.shape[1], np.int32)
    for i in range(ends.size):
        node = int(ends[i])
        while stage[node] == LISTED:
            for role in range(choice.size):
                begin, end = move_start[node, role], move_start[node, role] + num_moves[node, role]
                choice[role] = 0
                if end > begin + 1:
                    bounds = scores[: end - begin]
                    _bounds(exploration, walks[node], visits[begin:end], sums[begin:end], bounds)
                    choice[role] = draw_best(bounds, 0.0, mix(keys[i], np.uint64(role)), np.uint64(links[node, DEPTH]))
                visits[begin + choice[role]] += 1
            walks[node] += 1
            child = _child(node, choice, links, led)
            if child < 0:
                child = num_nodes
                num_nodes += 1
                _add_child(node, child, choice, stage, links, led)
            node = child
        ends[i] = node
    return num_nodes


@kernel
def _credit(
    ends: I32,
    values: F64x2,
    change: int,
    links: I32x2,
    led: I32x2,
    move_start: I64x2,
    walks: I32,
    visits: I32,
    sums: F64,
) -> None:
    """Add `values` to the sums, and `change` to the visits, of all moves on the way from each end to its root."""
    for i in range(ends.size):
        node = int(ends[i])
        parent = int(links[node, PARENT])
        while parent >= 0:
            for role in range(values.shape[1]):
                move = move_start[parent, role] + led[node, role]
                visits[move] += change
                sums[move] += values[i, role]
            walks[parent] += change
            node, parent = parent, int(links[parent, PARENT])


SEARCH = 2  # purpose of random numbers, besides EXPLORE and WHICH of random_streams.py
SELECTION, PLAYOUT = 0, 1  # the two uses of a simulation's random stream
DEFAULT_SIMULATIONS = 1000
FOREST_VARIABLE = "GAMELORE_SEARCH_MIB"  # environment variable: memory for trees that only time limits
FOREST_MIB = 2048  # its default
_GROWN = 1 / 4  # largest size of the trees, as a share of it; while they grow, they need up to three times as much
OF_THE_CLOCK = 0.95  # share of the time before the deadline for a search by the clock: the machine may be busy
NODES_AT_ONCE = 1 << 20  # maximum number of nodes of all trees that grow at once, if a number of simulations is given


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Budget and parameters of a search.

    simulations  number of simulations per tree; 1000 if neither simulations nor seconds are given
    clock        if neither simulations nor seconds are given and the turn has a deadline: search until shortly before
                 this deadline. `gamelore serve` sets this option
    seconds      time for all lanes of one call together. If both budgets are given, the search ends when the first of
                 them is used up. The results of a search with a time budget are not repeatable. Such a search begins
                 with few leaves, so that it has results even if playouts are slow. If no simulation ends in time, the
                 player moves at random
    exploration  factor of the square root in UCB1, for goals scaled to 0 .. 1; sqrt(2) as in the original UCB1
    leaves       number of simulations of a tree that run at once. Their leaves are evaluated in one batch, so none of
                 them can use the results of the others. In connect four, a player with 32 leaves is as strong as one
                 with 16 or 8 leaves and the same number of simulations; with the same time it is stronger
    playouts     number of playouts from each leaf; their mean is the value of the simulation. They are played in one
                 batch, so that four playouts take hardly more time than one
    max_plies    maximum length of a playout; a longer playout gives 0 to every role, like a match that is cut off

    If only time limits a search, its trees take at most a quarter of FOREST_VARIABLE MiB.
    """

    simulations: int | None = None
    seconds: float | None = None
    exploration: float = 2**0.5
    leaves: int = 32
    playouts: int = 4
    max_plies: int = MAX_PLIES
    clock: bool = False

    def __post_init__(self) -> None:
        if self.simulations is None and self.seconds is None and not self.clock:
            object.__setattr__(self, "simulations", DEFAULT_SIMULATIONS)
        for name in ("simulations", "leaves", "playouts", "max_plies"):
            _check(name, getattr(self, name), 1)
        for name in ("seconds", "exploration"):
            _check(name, getattr(self, name), 0)


def _check(name: str, value: float | None, least: int) -> None:
    if value is not None and not least <= value < float("inf"):
        raise GameloreError(
            f"expected {name} of at least {least}, got {value}; choose another value, or leave the option out"
        )


REHEARSAL = SearchSettings(simulations=2, leaves=1, playouts=1, max_plies=2)


@dataclass(frozen=True, slots=True)
class Searched:
    """Statistics of the moves at the roots, in the order of trees, then of roles, then of actions.

    The moves of role r in tree i begin at index `offsets[i * roles + r]` and end before `offsets[i * roles + r + 1]`.
    """

    offsets: NDArray[np.int64]  # [trees * roles + 1]
    visits: NDArray[np.int32]  # [moves]
    means: NDArray[np.float64]  # [moves], the mean goal, 0 to 100; nan for a move without visits


def _deadline(settings: SearchSettings, deadline: float | None) -> float | None:
    """Return the end of `settings.seconds` from now, or the given deadline if that is earlier; None for no limit."""
    if settings.seconds is None:
        return deadline
    load_kernels()  # outside the time
    own = monotonic() + settings.seconds
    return own if deadline is None else min(own, deadline)


def search(
    game: Game,
    states: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    settings: SearchSettings,
    deadline: float | None = None,
) -> Searched:
    """Grow one tree from each of the states uint64[n, words], with the random streams of `keys` uint64[n].

    Without a time limit, tree i depends only on states[i], keys[i] and the engine. The time limit is the end of
    `settings.seconds` or `deadline` (in seconds of `time.monotonic`), whichever is first. Simulations that are
    unfinished at the time limit are dropped, and no simulation starts that would probably end too late. Without any
    limit, there are 1000 simulations. Terminal and stuck states have no moves.
    """
    forest = Forest(game, states, settings.exploration)
    deadline = _deadline(settings, deadline)
    limit = settings.simulations or (DEFAULT_SIMULATIONS if deadline is None else np.inf)
    most_bytes = np.inf
    if settings.simulations is None and deadline is not None:
        most_bytes = _GROWN * memory_cap(FOREST_VARIABLE, FOREST_MIB)
        if settings.seconds is None:
            deadline = monotonic() + OF_THE_CLOCK * (deadline - monotonic())
    done, each, begin = 0, 0.0, monotonic()
    while done < limit and forest.num_bytes < most_bytes:
        leaves = int(min(settings.leaves, limit - done, np.inf if deadline is None else done + 1))
        if done and deadline is not None and begin + leaves * each > deadline:
            break  # the next simulations would end too late if they take as long as the last ones
        streams = extend(keys, done)
        walks = extend(extend(streams, SELECTION)[:, None], np.arange(leaves)).ravel()
        ends = forest.select(np.repeat(np.arange(len(states)), leaves), walks)
        values = _values(forest, ends.reshape(-1, leaves), extend(streams, PLAYOUT), settings, deadline)
        if values is None:
            forest.withdraw(ends)
            break
        forest.back_up(ends, values)
        done += leaves
        now = monotonic()
        each, begin = (now - begin) / leaves, now
    return _at_roots(forest, len(states))


def _values(
    forest: Forest, ends: NDArray[np.int32], keys: NDArray[np.uint64], settings: SearchSettings, deadline: float | None
) -> NDArray[np.float64] | None:
    """Return the values float64[trees * leaves, roles] of nodes int32[trees, leaves]; None after the deadline."""
    leaves = forest.states[np.repeat(ends, settings.playouts, axis=1)]
    goals = playout_goals(forest.game, leaves, keys, max_plies=settings.max_plies, deadline=deadline)
    if goals is None:
        return None
    values: NDArray[np.float64] = np.maximum(goals, 0).reshape(ends.size, settings.playouts, -1).mean(axis=1)
    return values / HIGHEST_GOAL


def _at_roots(forest: Forest, trees: int) -> Searched:
    """Return the statistics of the moves at the roots."""
    counts, starts = forest.num_moves[:trees].ravel(), forest.move_start[:trees].ravel()
    offsets = np.append(0, np.cumsum(counts, dtype=np.int64))
    moves = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
    visits = forest.visits[moves]
    means = np.divide(HIGHEST_GOAL * forest.sums[moves], visits, out=np.full(len(moves), np.nan), where=visits > 0)
    return Searched(offsets, visits, means)


def prepare_search(game: Game) -> None:
    """Compile and load everything that `search` needs in this game, by a search of two simulations and short playouts.

    Without this call, the first search does it.
    """
    search(game, game.initial[None], extend(np.zeros(1, np.uint64), SEARCH), REHEARSAL)


class UCT(Player):
    """Player that makes the move with the most visits in a search. Among moves with equal visits it chooses at random.

    The search stops before the deadline of a turn.
    """

    def __init__(self, settings: SearchSettings | None = None) -> None:
        self.settings = settings or SearchSettings()

    def prepare(self, game: Game, role: int) -> None:
        """See `Player.prepare` and `prepare_search`."""
        prepare_search(game)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. A single legal move is made without a search."""
        choices = np.zeros(len(turn.rows), np.int32)
        several = np.flatnonzero(turn.graph.num_moves[turn.rows, turn.role] > 1)
        size = max(
            1, NODES_AT_ONCE // (self.settings.simulations or 1)
        )  # without a number of simulations: all lanes at once, because they share the time
        if self.settings.seconds is not None:
            turn = replace(turn, deadline=_deadline(self.settings, turn.deadline))  # for all parts together
        for begin in range(0, len(several), size):
            part = several[begin : begin + size]
            choices[part] = self._choose(turn, part)
        return choices

    def _choose(self, turn: Turn, part: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the choices for the entries of the turn with these indices."""
        game, keys, plies = turn.graph.game, turn.keys[part], turn.plies[part]
        streams = extend(extend(keys, plies), SEARCH)
        searched = search(game, turn.graph.states[turn.rows[part]], streams, self.settings, turn.deadline)
        roles = game.num_roles
        visits = searched.visits.astype(np.float64)
        drawn = draw_each(searched.offsets, visits, np.repeat(keys, roles), np.repeat(plies, roles))
        return drawn.reshape(-1, roles)[:, turn.role]
