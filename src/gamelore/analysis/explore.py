"""Walks over reachable states, and random matches that record the faults of a rulesheet.

`try_out` plays a game. First, a breadth-first `Walk` visits all reachable states if they are few, and otherwise the
states nearest the start. If the walk visits all states, its results are proved. In this case, every match ends if and
only if no match can return to an earlier state. Then random matches are played in lockstep, in rounds of 1, 2, 4, ...
matches. The moves of a round depend only on the seed and on the number of the round. So a given number of matches has
the same result on fast and slow machines. A match that visits one state twice can go on forever.

`Watch` records the faults, and the joint moves that lead to them: a role without a legal move in a state that is not
terminal, a missing or unclear goal, a goal above 100, facts that `base` does not declare, moves that `input` does not
declare, and states for which the rules have no answer.

Playing ends within its limits of time and memory, whatever the rules. States are queried in parts of BATCH_BYTES, and
the reasoner looks at the limits while it answers. If a single step takes half of the time, or all of the memory, the
`Watch` records this as a fault, too.
"""

from __future__ import annotations

import time
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, pairwise
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GDLSemanticError, GroundingError
from ..game.engines import HIGHEST_GOAL, Legal, States
from ..game.game import Game
from ..gdl.limits import GIB, Limits, check, exceeds, processor_time, within
from .perft import BATCH_BYTES, ENTRY_BYTES, joint_batches, joint_bytes

NUM_SAMPLES = 16  # number of sample states that are kept for each unclear goal; samples nearest the start are preferred
MOST_INCIDENTS = 500  # recorded incidents of each kind

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
"""Joint moves from the start: for each step, the action of every role."""
Path: TypeAlias = Callable[[int], Joints]
"""A function that returns the joint moves that led to the state of a given lane."""


class Key(NamedTuple):
    """Identity of an incident: its kind, its role (-1 for none), and its subject `what`.

    The subject is a fact, a move, a goal value or an error message; it is empty for the other kinds.
    """

    kind: Kind
    role: int = -1
    what: str = ""


class Sample(NamedTuple):
    """A state with an incident, uint64[num_words], and joint moves that lead from the start to this state."""

    joints: Joints
    state: NDArray[np.uint64]

    @property
    def depth(self) -> int:
        """Number of steps from the start."""
        return len(self.joints)


@dataclass(slots=True)
class Incident:
    """A fault that was found: the number of states with it in each phase, and sample states, sorted by depth."""

    counts: Counter[Phase] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Declared:
    """The facts that `base` declares, and the moves that `input` declares for each role.

    An attribute is None if the sheet does not have its relation.
    """

    base: frozenset[str] | None = None
    inputs: tuple[frozenset[str], ...] | None = None


class Seen(NamedTuple):
    """Answers of the rules for a batch of states: legal moves and three arrays.

    The arrays are terminal, bool[batch]; stuck, bool[batch]; and goals, int16[batch, roles].
    """

    terminal: NDArray[np.bool_]
    stuck: NDArray[np.bool_]
    goals: NDArray[np.int16]
    legal: Legal


class UnplayableError(GameloreError):
    """Error: the rules have no answer for a state, or playing exceeded its limits. The watch has recorded this."""


class Watch:
    """Recorder of the incidents in a game, within the present budget (see `gdl.limits`).

    end: the first terminal state that was seen; None before. left_out: kinds that had more than MOST_INCIDENTS
        incidents; the others were not recorded.
    """

    def __init__(self, game: Game, declared: Declared | None = None, effort: Effort | None = None) -> None:
        self.game = game
        self.declared = declared or Declared()
        self.phase: Phase = "walk"
        self.incidents: dict[Key, Incident] = {}
        self.left_out: set[Kind] = set()
        self.end: Sample | None = None
        self.effort = effort or Effort()
        self.batch_bytes = min(BATCH_BYTES, self.effort.memory // 16)
        self._num_incidents: Counter[Kind] = Counter()
        self._facts: set[str] = set()
        self._bits = np.zeros(game.num_words, np.uint64)
        self._moves: set[int] = set()  # num_roles * action + role
        num_actions = game.circuit.num_actions if game.circuit else 0
        self._fixed_bytes = 24 * game.num_words + ENTRY_BYTES * game.num_roles + num_actions // 4
        self._most_moves = num_actions // 16  # in a state so far, or a guess before

    @property
    def most_matches(self) -> int:
        """The largest number of matches of a round, whose states and joint moves need `batch_bytes` each."""
        steps = min(STEPS, self.effort.max_steps) * (4 * self.game.num_roles + 16)
        return max(1, min(self.batch_bytes // steps, self.batch_bytes // (32 * self.game.num_words)))

    def parts(self, number: int) -> Iterator[slice]:
        """Yield slices of a batch of states. Each part needs at most about `batch_bytes`."""
        start = 0
        while start < number:
            lane = self._fixed_bytes + ENTRY_BYTES * self._most_moves
            stop = min(number, start + max(1, min(AT_ONCE[self.game.engine], self.batch_bytes // lane)))
            yield slice(start, stop)
            start = stop

    def look(self, states: States, depth: int, path: Path) -> Seen:
        """Query the rules for a batch of states, uint64[batch, num_words], and record all incidents.

        All states must be `depth` steps from the start. Raise UnplayableError if the rules have no answer for a state.
        """
        terminal, goals = self.ask(self.game.evaluate, (states,), path)
        legal = self.ask(self.game.legal, (states,), path)
        _, counts = legal.by_role(self.game.num_roles)
        self._most_moves = max(self._most_moves, int(np.diff(legal.offsets[:: self.game.num_roles]).max(initial=0)))
        stuck = ~terminal[:, None] & (counts == 0)
        self._note_roles("no-legal-move", stuck, states, depth, path)
        self._note_roles("unclear-goal", terminal[:, None] & (goals < 0), states, depth, path)
        for role in np.flatnonzero((goals > HIGHEST_GOAL).any(axis=0)).tolist():
            for value in np.unique(goals[goals[:, role] > HIGHEST_GOAL, role]).tolist():
                self._note(Key("goal-out-of-range", role, str(value)), goals[:, role] == value, states, depth, path)
        if self.end is None and terminal.any():
            lane = int(terminal.argmax())
            self.end = Sample(path(lane), states[lane].copy())
        self._look_at_facts(states, depth, path)
        self._look_at_moves(legal, states, depth, path)
        return Seen(terminal, stuck.any(axis=1), goals, legal)

    def ask(self, question: Callable[..., Any], rows: tuple[NDArray[Any], ...], path: Path) -> Any:
        """Return the answer to a query about a batch of states.

        If a state has no answer, record the first such state and raise UnplayableError. Record slow answers, too: the
        native engine does not look at the budget.
        """
        start = processor_time()
        try:
            answer = question(*rows)
        except (GDLSemanticError, GroundingError) as error:
            if isinstance(error, GroundingError) and (what := exceeds()):
                if what == "memory" or self.effort.seconds is None:
                    self._note_lane(Key("too-large", what=error.message), 0, rows[0], path)
                else:
                    self._note_if_slow(processor_time() - start, rows[0], path)
                raise UnplayableError(str(error)) from error
            lane = next((lane for lane in range(len(rows[0])) if not _answers(question, rows, lane)), 0)
            kind: Kind = "too-large" if isinstance(error, GroundingError) else "no-perfect-model"
            self._note_lane(Key(kind, what=error.message), lane, rows[0], path)
            raise UnplayableError(error.message) from error
        num_steps = max(1, -(-len(rows[0]) // LANES[self.game.engine]))
        self._note_if_slow((processor_time() - start) / num_steps, rows[0], path)
        return answer

    def _note_if_slow(self, seconds: float, states: States, path: Path) -> None:
        """Record a step that took half of the time of play. One that began late may have exceeded it in less."""
        limit = self.effort.seconds
        if limit and seconds >= limit / 2:
            what = f"expected a step of play to end within {limit / 2:g} s, half of the time of play, but it did not"
            self._note_lane(Key("too-large", what=what), 0, states, path)

    def _note_lane(self, key: Key, lane: int, states: States, path: Path) -> None:
        self._note(key, np.arange(len(states)) == lane, states, len(path(lane)), path)

    def _note_roles(self, kind: Kind, where: NDArray[np.bool_], states: States, depth: int, path: Path) -> None:
        """Record an incident of the roles and lanes that are given as bool[batch, roles]."""
        for role in np.flatnonzero(where.any(axis=0)).tolist():
            self._note(Key(kind, role), where[:, role], states, depth, path)

    def _note(self, key: Key, where: NDArray[np.bool_], states: States, depth: int, path: Path) -> None:
        """Count the lanes with an incident, given as bool[batch], and keep some states as samples."""
        lanes = np.flatnonzero(where)
        if not len(lanes) or self._is_left_out(key):
            return
        if key not in self.incidents:
            self.incidents[key] = Incident()
            self._num_incidents[key.kind] += 1
        incident = self.incidents[key]
        incident.counts[self.phase] += len(lanes)
        most = NUM_SAMPLES if key.kind == "unclear-goal" else 1
        for lane in lanes[:most].tolist():
            if len(incident.samples) == most and incident.samples[-1].depth <= depth:
                break
            insort(incident.samples, Sample(path(lane), states[lane].copy()), key=lambda sample: sample.depth)
            del incident.samples[most:]

    def _is_left_out(self, key: Key) -> bool:
        """Return whether a new incident is only counted, because there are enough of its kind."""
        if key in self.incidents or self._num_incidents[key.kind] < MOST_INCIDENTS:
            return False
        self.left_out.add(key.kind)
        return True

    def _look_at_facts(self, states: States, depth: int, path: Path) -> None:
        if self.declared.base is None:
            return
        new = set(self._facts_of(states)) - self._facts
        self._facts |= new
        for fact in sorted(new - self.declared.base):
            check()
            key = Key("outside-base", what=fact)
            if not self._is_left_out(key):
                self._note(key, self.game.holds(states, fact), states, depth, path)

    def _facts_of(self, states: States) -> Iterable[str]:
        """Return the facts that hold in these states. For compiled games, leave out facts from earlier calls."""
        if self.game.uses_reasoner:
            return (fact for state in np.unique(states, axis=0) for fact in self._facts_of_one(state))
        new = np.bitwise_or.reduce(states, axis=0, initial=np.uint64(0)) & ~self._bits
        self._bits |= new
        return self.game.facts(new) if new.any() else ()

    def _facts_of_one(self, state: NDArray[np.uint64]) -> Iterable[str]:
        check()
        return self.game.facts(state)

    def _look_at_moves(self, legal: Legal, states: States, depth: int, path: Path) -> None:
        if self.declared.inputs is None:
            return
        lanes_and_roles = np.repeat(np.arange(len(legal.offsets) - 1), np.diff(legal.offsets))
        lanes, roles = np.divmod(lanes_and_roles, self.game.num_roles)
        keys = self.game.num_roles * legal.actions.astype(np.int64) + roles
        new = set(np.unique(keys).tolist()) - self._moves
        self._moves |= new
        for key in sorted(new):
            check()
            action, role = divmod(key, self.game.num_roles)
            incident = Key("outside-input", role, self.game.move_text(role, action))
            if incident.what not in self.declared.inputs[role] and not self._is_left_out(incident):
                where = np.isin(np.arange(len(states)), lanes[keys == key])
                self._note(incident, where, states, depth, path)


def _answers(question: Callable[..., Any], rows: tuple[NDArray[Any], ...], lane: int) -> bool:
    """Return whether the rules have an answer for one lane, as far as the budget allows to ask."""
    with suppress(GDLSemanticError, GroundingError):
        question(*(part[lane : lane + 1] for part in rows))
        return True
    return bool(exceeds())


# Largest average number of joint moves per state. Above it the walk stops, because then random matches see more states.
JOINTS_PER_STATE = 20


@dataclass(frozen=True, slots=True)
class Endless:
    """A match without end. The state after all `joints` equals the state after the first `back_to` joint moves.

    `back_to` is None if the match did not return to a state but was cut.
    """

    joints: Joints
    back_to: int | None


class Walk:
    """A breadth-first walk. States are numbered in the order of discovery; the first state has number 0.

    num_seen: the number of states that were queried. max_states: the walk stops when it knows more states than this,
        or when the states need an eighth of the memory.
    """

    def __init__(self, watch: Watch, max_states: int) -> None:
        self.watch, self.game = watch, watch.game
        self._row_bytes, num_roles = 8 * self.game.num_words, self.game.num_roles
        self.max_states = min(max_states, watch.effort.memory // 8 // (self._row_bytes + JOINT_BYTES * num_roles + 400))
        self._joints_at_once = max(1, watch.batch_bytes // (4 * self._row_bytes + joint_bytes(num_roles)))
        self.complete = False
        self.num_seen = self.num_terminal = self.num_joints = 0
        self._rows: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._parents: list[int] = []
        self._joints: list[tuple[int, ...]] = []
        self._edges: list[NDArray[np.int64]] = [np.zeros((2, 0), np.int64)]

    def run(self, deadline: float) -> None:
        """Walk until all states are visited, too many states are known, or `deadline` (time.monotonic) has passed."""
        self._number(self.game.initial.tobytes(), -1, ())
        layer, depth = range(1), 0
        while layer:
            for part in self.watch.parts(len(layer)):
                if time.monotonic() > deadline or not self._expand(layer[part], depth):
                    return
            layer, depth = range(layer.stop, len(self._rows)), depth + 1
        self.complete = True

    def path(self, number: int) -> Joints:
        """Return a shortest sequence of joint moves from the start to a state."""
        joints = []
        while number:
            joints.append(self._joints[number])
            number = self._parents[number]
        return joints[::-1]

    def _states(self, numbers: Iterable[int]) -> States:
        """Return the states with these numbers."""
        row = b"".join(self._rows[number] for number in numbers)
        return np.frombuffer(row, np.uint64).reshape(-1, self.game.num_words)

    def _number(self, row: bytes, parent: int, joint: tuple[int, ...]) -> int:
        """Return the number of a state. A new state gets the next free number."""
        check()
        number = self._numbers.setdefault(row, len(self._rows))
        if number == len(self._rows):
            self._rows.append(row)
            self._parents.append(parent)
            self._joints.append(joint)
        return number

    def _expand(self, part: range, depth: int) -> bool:
        """Query states and number their successors; return False if there are too many states or joint moves."""
        states = self._states(part)
        seen = self.watch.look(states, depth, lambda lane: self.path(part[lane]))
        self.num_seen += len(part)
        self.num_terminal += int(seen.terminal.sum())
        self.num_joints += sum(seen.legal.num_joint(self.game.num_roles).tolist())
        if self.num_joints > JOINTS_PER_STATE * self.max_states:
            return False
        for parents, joints in joint_batches(seen.legal, self.game.num_roles, self._joints_at_once):
            self._follow(states[parents], joints, parents + part.start)
            if len(self._rows) > self.max_states:
                return False
        return True

    def _follow(self, states: NDArray[np.uint64], joints: NDArray[np.int32], parents: NDArray[np.int64]) -> None:
        """Number the successors of states and record the edges. Row i of the three arrays is about one joint move."""

        def path(lane: int) -> Joints:
            return [*self.path(int(parents[lane])), tuple(joints[lane].tolist())]

        following = self.watch.ask(self.game.next, (states, joints), path)
        rows, first, which = np.unique(following, axis=0, return_index=True, return_inverse=True)
        numbers = np.zeros(len(rows), np.int64)
        for row in np.argsort(first).tolist():
            lane = int(first[row])
            numbers[row] = self._number(rows[row].tobytes(), int(parents[lane]), tuple(joints[lane].tolist()))
        self._edges.append(np.unique(np.stack([parents, numbers[which.ravel()]]), axis=1))

    def longest(self) -> int | Endless:
        """Return the length of the longest match, or a match without end. The walk must be complete."""
        edges = np.concatenate(self._edges, axis=1)
        loop = _loop(edges, len(self._rows))
        if not loop:
            return _longest(edges, len(self._rows))
        stem = self.path(loop[0])
        return Endless([*stem, *self._along(loop)], len(stem))

    def _along(self, numbers: Sequence[int]) -> Joints:
        """Return joint moves that lead along a path, given as the numbers of its states."""
        joints = []
        for here, there in pairwise(numbers):
            state, target = self._states([here]), self._states([there])
            batches = joint_batches(self.game.legal(state), self.game.num_roles, self._joints_at_once)
            joints.append(next(filter(None, (self._leading(state, choices, target) for _, choices in batches))))
        return joints

    def _leading(self, state: States, choices: NDArray[np.int32], target: States) -> tuple[int, ...] | None:
        """Return the first of these joint moves that leads from a state to another one; None if none does."""
        following = self.game.next(np.repeat(state, len(choices), axis=0), choices)
        lanes = np.flatnonzero((following == target).all(axis=1))
        return tuple(choices[lanes[0]].tolist()) if len(lanes) else None


def _loop(edges: NDArray[np.int64], num_states: int) -> list[int]:
    """Return the states along a shortest cycle, first and last state equal; empty if there is no cycle.

    The cycle begins at the lowest-numbered state that lies on any cycle, which is nearest the start. edges: int64[2,
    n], each from state `edges[0]` to state `edges[1]`; the edges of one state are in ascending order.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    def graph(edges: NDArray[np.int64]) -> Any:
        return csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(num_states, num_states))

    _, component = connected_components(graph(edges), connection="strong")
    inside = edges[:, component[edges[0]] == component[edges[1]]]
    if not inside.size:
        return []
    start = int(inside[0].min())
    order, came_from = breadth_first_order(graph(inside), start)
    leading_back = set(inside[0, inside[1] == start].tolist())
    loop = [start, next(state for state in order.tolist() if state in leading_back)]
    while loop[-1] != start:
        loop.append(int(came_from[loop[-1]]))
    return loop[::-1]


def _longest(edges: NDArray[np.int64], num_states: int) -> int:
    """Return the length of a longest path in an acyclic graph."""
    import rustworkx

    graph: rustworkx.PyDiGraph[None, None] = rustworkx.PyDiGraph()
    graph.add_nodes_from([None] * num_states)
    graph.add_edges_from_no_data(list(zip(*edges.tolist(), strict=True)))
    return int(rustworkx.dag_longest_path_length(graph))


A_STEP = "a step of play to end"  # the task of the budget
JOINT_BYTES = 40  # for the action of a role in a joint move that a walk keeps
STEPS = 1000  # of a match: a round has memory for the joint moves of so many
LANES = {"native": 512, "reasoner": 1}  # states that an engine evaluates for the cost of one
AT_ONCE = {"native": 512, "reasoner": 16}  # largest number of states that a walk queries together, or of lanes
WALKED = {"native": 10_000, "reasoner": 300}  # default of `max_states`; the reasoner takes at least 1 ms for each state
MATCHES_AFTER_WALK = 1023  # default number of matches after a complete walk, which serve only the statistics


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of a tryout: `seconds` of wall clock, and number of `matches`. None means no limit.

    Playing stops when the first limit is reached. max_steps: a match is cut after this number of steps. (Matches of the
    public rulesheets end after at most 200 steps, so the default 1000 cuts only endless matches.) max_states: the walk
    stops when it knows more states than this; 0 means no walk, and None means the default in WALKED. memory: bytes by
    which the memory of the process may grow.
    """

    seconds: float | None = 5.0
    matches: int | None = None
    max_steps: int = 1000
    max_states: int | None = None
    seed: int = 0
    memory: int = 4 * GIB


@dataclass(slots=True)
class MatchCounts:
    """Counts of random matches.

    Of `num_matches` matches, `num_ended` ended in a terminal state, `num_stuck` got stuck, and `num_cut` were cut after
    the largest number of steps. The other matches were unfinished when time was up. `lengths` contains the number of
    steps of each match that ended, and `goals` its goals, int16[roles]; a negative goal is unclear. Both lists leave
    out the matches of unfinished rounds, because in such rounds short matches are more likely to end.
    """

    num_matches: int = 0
    num_steps: int = 0
    num_ended: int = 0
    num_stuck: int = 0
    num_cut: int = 0
    lengths: list[int] = field(default_factory=list)
    goals: list[NDArray[np.int16]] = field(default_factory=list)

    def mean_length(self) -> float | None:
        """Return the mean of `lengths`; None if it is empty."""
        return float(np.mean(self.lengths)) if self.lengths else None

    def mean_goals(self, num_roles: int) -> list[float | None]:
        """Return the mean goal of each role over the matches that gave it a goal; None if there are no such matches."""
        goals = np.array(self.goals, np.int16).reshape(-1, num_roles)
        has_goal = goals >= 0
        sums, numbers = np.where(has_goal, goals, 0).sum(axis=0), has_goal.sum(axis=0)
        return [
            total / number if number else None for total, number in zip(sums.tolist(), numbers.tolist(), strict=True)
        ]


@dataclass(slots=True)
class Tryout:
    """Results of a tryout.

    num_states, num_terminal: the number of states, and of terminal states, that the walk visited; if the walk is
    `complete`, it visited all reachable states. longest: the number of steps of the longest possible match; None if it
    is unknown or unlimited. cut: the limit that ended play in the middle of a step, as text; "" if none did.
    """

    effort: Effort
    watch: Watch
    tally: MatchCounts = field(default_factory=MatchCounts)
    num_states: int = 0
    num_terminal: int = 0
    complete: bool = False
    longest: int | None = None
    endless: Endless | None = None
    interrupted: bool = False
    cut: str = ""
    seconds: float = 0.0

    def found_endless(self, endless: Endless) -> None:
        """Store a match without end if it is better than the stored one.

        A match that returns to a state is better than a match that was cut; otherwise a shorter match is better.
        """
        matches = [self.endless, endless] if self.endless else [endless]
        self.endless = min(matches, key=lambda match: (match.back_to is None, len(match.joints)))


def try_out(game: Game, effort: Effort, declared: Declared | None = None) -> Tryout:
    """Walk over the states of a game, then play random matches; return the results.

    After an interrupt (Ctrl-C), or at a state for which the rules have no answer, return the results so far.
    """
    result = Tryout(effort, Watch(game, declared, effort))
    start = time.monotonic()
    seconds = inf if effort.seconds is None else effort.seconds
    with within(Limits(seconds, memory=effort.memory), A_STEP):
        try:
            _walk(result, start + seconds / 2)
            _play(result, start + seconds)
        except KeyboardInterrupt:
            result.interrupted = True
        except UnplayableError:
            pass
        except GroundingError as error:
            result.cut = error.message if exceeds() == "memory" else ""
    result.seconds = time.monotonic() - start
    return result


def _walk(result: Tryout, deadline: float) -> None:
    engine, max_states = result.watch.game.engine, result.effort.max_states
    walk = Walk(result.watch, WALKED[engine] if max_states is None else max_states)
    try:
        walk.run(deadline)
    finally:
        result.num_states, result.num_terminal, result.complete = walk.num_seen, walk.num_terminal, walk.complete
    if walk.complete:
        longest = walk.longest()
        if isinstance(longest, Endless):
            result.found_endless(longest)
        else:
            result.longest = longest


def _play(result: Tryout, deadline: float) -> None:
    """Play random matches. If the walk visited all states, do not record incidents again."""
    watch = Watch(result.watch.game, effort=result.effort) if result.complete else result.watch
    watch.phase = "matches"
    for number, size in enumerate(_sizes(result, watch, result.effort.matches)):
        if time.monotonic() > deadline:
            break
        matches = Round(watch, size, result.effort, number, result.tally)
        matches.play(deadline)
        if not result.complete:
            for endless in matches.endless():
                result.found_endless(endless)


def _sizes(result: Tryout, watch: Watch, wanted: int | None) -> Iterator[int]:
    """Yield the number of matches of each round; `wanted` is the number of all matches, None for no limit."""
    if wanted is None and result.complete:
        wanted = MATCHES_AFTER_WALK
    for number in count():
        size = min(1 << number, AT_ONCE[result.watch.game.engine], watch.most_matches)
        if wanted is not None:
            size = min(size, wanted - result.tally.num_matches)
        if size <= 0:
            return
        yield size


class Round:
    """A round of random matches in lockstep, which adds its results to `tally`.

    Each step queries the states of all unfinished matches.
    """

    def __init__(self, watch: Watch, size: int, effort: Effort, number: int, tally: MatchCounts) -> None:
        self.watch, self.game, self.max_steps = watch, watch.game, effort.max_steps
        self.size, self.tally = size, tally
        self.tally.num_matches += size
        self._num_cut = 0
        self._rng = np.random.default_rng((effort.seed, number))
        self._matches = np.arange(size)  # the match of each lane
        self._states = np.repeat(self.game.initial[None], size, axis=0)
        self._history: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self._keys: list[NDArray[np.uint64]] = []
        self._lengths: list[int] = []
        self._goals: list[NDArray[np.int16]] = []

    def play(self, deadline: float) -> None:
        """Play all matches to the end, or until `deadline` has passed. Add lengths and goals only in the first case."""
        while self._step():
            if time.monotonic() > deadline:
                return
        self.tally.lengths += self._lengths
        self.tally.goals += self._goals

    def _step(self) -> bool:
        """Play one joint move in every unfinished match; return False if no match is left."""
        depth, num_lanes = len(self._history), len(self._states)
        keys = np.full(self.size, depth, np.uint64)  # a finished match gets a different key in every step
        keys[self._matches] = self.game.state_keys(self._states)
        self._keys.append(keys)
        going, joints = np.zeros(num_lanes, np.bool_), np.zeros((num_lanes, self.game.num_roles), np.int32)
        draws = self._rng.random((num_lanes, self.game.num_roles))
        for part in self.watch.parts(num_lanes):
            going[part], joints[part] = self._look(part, depth, draws[part])
        self._matches, self._states = self._matches[going], self._states[going]
        if depth == self.max_steps:
            self._num_cut = len(self._matches)
            self.tally.num_cut += self._num_cut
            return False
        if len(self._matches):
            joints = joints[going]
            self._history.append((self._matches, joints))
            self._states = self.watch.ask(self.game.next, (self._states, joints), self._path)
            self.tally.num_steps += len(joints)
        return len(self._matches) > 0

    def _look(self, part: slice, depth: int, draws: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """Query some of the states. Return whether the match of each state goes on, and with which joint move.

        draws: float64[states, roles], at least 0 and below 1.
        """
        seen = self.watch.look(self._states[part], depth, lambda lane: self._path(part.start + lane))
        going = ~(seen.terminal | seen.stuck)
        num_ended = int(seen.terminal.sum())
        self.tally.num_ended += num_ended
        self.tally.num_stuck += int(seen.stuck.sum())
        self._lengths += [depth] * num_ended
        self._goals += list(seen.goals[seen.terminal])
        starts, counts = seen.legal.by_role(self.game.num_roles)
        joints = np.zeros(draws.shape, np.int32)
        joints[going] = seen.legal.actions[(starts + (draws * counts).astype(np.int64))[going]]
        return going, joints

    def _path(self, lane: int) -> Joints:
        return self._path_of(int(self._matches[lane]))

    def _path_of(self, match: int) -> Joints:
        joints = []
        for matches, step in self._history:
            lane = int(np.searchsorted(matches, match))
            if lane == len(matches) or matches[lane] != match:
                break
            joints.append(tuple(step[lane].tolist()))
        return joints

    def endless(self) -> Iterator[Endless]:
        """Yield the matches without end: one match that was cut, and every match that returned to one of its states."""
        if self._num_cut:
            yield Endless(self._path(0), None)
        keys = np.array(self._keys)
        ordered = np.sort(keys, axis=0)
        for match in np.flatnonzero((ordered[1:] == ordered[:-1]).any(axis=0)).tolist():
            back_to, step = _first_return(keys[:, match].tolist())
            yield Endless(self._path_of(match)[:step], back_to)


def _first_return(keys: list[int]) -> tuple[int, int]:
    """Return two indices of the key that is the first to be repeated: its first and its second occurrence."""
    steps: dict[int, int] = {}
    return next((steps[key], step) for step, key in enumerate(keys) if steps.setdefault(key, step) != step)
