"""Step counters: facts that count the plies, and that nothing but the end of a match depends on.

What is found is proven on the circuit, not observed. In states in which the match goes on, the legal moves and what
comes next of all other facts are the same whatever the counter says: no gate that they need reads it, but by way of
`terminal`, which does not hold there. The counter's own course depends on nothing else. Until it ends, `terminal` and
the goals are the same whatever it says; when it ends, so does the match, or the counter stands still.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuit import FALSE, TRUE, Circuit, GateLiteral, Node, needed_nodes
from .engine import pack_bits, unpack_bits
from .game import Game

LONGEST = 10_000  # plies: what counts on for longer is not followed
SHORTEST = 2  # plies: what happens only once counts nothing

Config = frozenset[int]  # the facts of a counter that hold
Course = list[Config]  # from the first state on, as long as there are new ones


@dataclass(frozen=True, slots=True, eq=False)
class StepCounter:
    """`facts`: bit numbers of the native engine's states, in the order of counting from the initial one.

    `mask`, `first`, `last`, uint64[words]: all of these bits; those of the initial state; those with which the count
    ends, `length` plies later. `ends`: whether the match is over then, whatever else holds. Where several facts count,
    each by itself, they are one counter together, in which more than one fact may hold.
    """

    facts: tuple[int, ...]
    mask: NDArray[np.uint64]
    first: NDArray[np.uint64]
    last: NDArray[np.uint64]
    length: int
    ends: bool


def step_counter(game: Game) -> StepCounter | None:
    """The step counter of a game; None where it has none, or is not compiled as a whole."""
    circuit = game.circuit
    if circuit is None or game.is_bounded or not all(circuit.actions):
        return None
    own = _left_alone(circuit)
    course, again = _course(game, own)
    counting = [part for part in _parts(own) if len(_of(part, course)) > SHORTEST]
    standing = _joined(part for part in counting if len(_of(part, course[again:])) == 1)
    candidates = (_joined(counting), standing, *counting)  # together they may count what none does alone
    found = (_cap(game, circuit, _of(part, course), must_end=not part <= standing) for part in candidates)
    return next((counter for counter in found if counter is not None), None)


def _joined(parts: Iterable[Config]) -> Config:
    return frozenset().union(*parts)


def _of(part: Config, course: Course) -> Course:
    """The course of some facts of those whose course it is."""
    return list(dict.fromkeys(config & part for config in course))


def _cap(game: Game, circuit: Circuit, course: Course, must_end: bool) -> StepCounter | None:
    """The counter that takes this course, where `terminal` and the goals are the same until it ends."""
    told = _told(circuit, frozenset().union(*course), course)
    ends = bool(told) and told[-1][0] == TRUE
    if len(told) <= SHORTEST or len(set(told[: len(told) - ends])) != 1 or (must_end and not ends):
        return None
    return _counter(game, course[: len(told)], ends)


def _left_alone(circuit: Circuit) -> dict[int, set[int]]:
    """The most facts that neither moves nor other facts depend on, nor they on others; with what decides on each."""
    end = circuit.outputs["terminal"][0] >> 1
    facts, actions = range(circuit.num_facts), range(circuit.num_facts, circuit.num_inputs)
    acted = _reads(circuit, {1 + action: 1 for action in actions}, end)
    following = [literal >> 1 for literal in circuit.outputs["next"]]
    own = [fact for fact in facts if not acted[following[fact]]]
    place = {fact: number for number, fact in enumerate(own)}
    other = 1 << len(own)
    seeds = {1 + fact: 1 << place[fact] if fact in place else other for fact in (*facts, *actions)}
    read = _reads(circuit, seeds, end)
    decided_by = [read[following[fact]] for fact in facts]
    refused = other
    for literal in circuit.outputs["legal"]:
        refused |= read[literal >> 1]
    refused = _closed(refused, decided_by, place)
    kept = {fact: decided_by[fact] for fact in own if not refused >> place[fact] & 1}
    return {fact: {other for other in kept if bits >> place[other] & 1} for fact, bits in kept.items()}


def _closed(refused: int, decided_by: Sequence[int], place: Mapping[int, int]) -> int:
    """These facts, those that decide on them or on facts without a place, and those on which they decide; as bits."""
    before = 0
    while refused != before:
        before = refused
        for fact, bits in enumerate(decided_by):
            if fact not in place or refused >> place[fact] & 1:
                refused |= bits
            elif bits & refused:
                refused |= 1 << place[fact]
    return refused


def _reads(circuit: Circuit, seeds: Mapping[Node, int], cut: Node) -> list[int]:
    """What each node depends on, as the union (bits) of what these inputs stand for; nothing by way of `cut`."""
    read = [0] * len(circuit.left)
    for node, bits in seeds.items():
        read[node] = bits
    read[cut] = 0
    before: list[int] = []
    while before != read:
        before = list(read)
        for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
            if left >= 0 and node != cut:
                read[node] = read[left >> 1] | read[right >> 1]
        for loop in circuit.loops:
            for node, result in zip(loop.variables, loop.results, strict=True):
                read[node] |= read[result >> 1]
        if not circuit.loops:
            break
    return read


def _course(game: Game, own: Collection[int]) -> tuple[Course, int]:
    """What becomes of these facts, whatever the others do, and the place at which it goes on when it has ended."""
    assert game.circuit is not None
    mask = _packed(game, own)
    joint = np.cumsum([0, *map(len, game.circuit.actions[:-1])]).astype(np.int32)[None]  # it does not matter which
    state = game.initial[None]
    course: dict[Config, int] = {}
    while (config := _unpacked(game, state & mask)) not in course and len(course) < LONGEST:
        course[config] = len(course)
        state = state & ~mask | game.next(state, joint) & mask
    return list(course), course.get(config, 0)


def _packed(game: Game, facts: Collection[int]) -> NDArray[np.uint64]:
    """uint64[words]: the bits of these facts."""
    held = np.zeros((1, 64 * game.num_words), np.bool_)
    held[0, list(facts)] = True
    packed: NDArray[np.uint64] = pack_bits(held, game.num_words)[0]
    return packed


def _unpacked(game: Game, state: NDArray[np.uint64]) -> Config:
    """The facts of a state, uint64[1, words]."""
    return frozenset(np.flatnonzero(unpack_bits(state, 64 * game.num_words)[0]).tolist())


def _parts(own: Mapping[int, Collection[int]]) -> list[Config]:
    """The facts that have to do with each other."""
    parts: list[Config] = []
    for fact, decided_by in own.items():
        linked = frozenset([fact, *decided_by])
        others = [part for part in parts if part & linked]
        parts = [part for part in parts if not part & linked]
        parts.append(linked.union(*others))
    return parts


def _told(circuit: Circuit, own: Collection[int], course: Course) -> list[tuple[GateLiteral, ...]]:
    """What `terminal` and the goals become at each place of the course, as far as to where the match is over.

    They are literals, equal ones for what is equal. Empty where a loop reads the counter: that is not looked into.
    """
    outputs = circuit.outputs["terminal"] + circuit.outputs["goal"]
    read = _reads(circuit, {1 + fact: 1 for fact in own}, FALSE)
    depending = [node for node in np.flatnonzero(needed_nodes(circuit, outputs)).tolist() if read[node]]
    if not {node for loop in circuit.loops for node in loop.variables}.isdisjoint(depending):
        return []
    made: dict[tuple[GateLiteral, GateLiteral], GateLiteral] = {}
    told: list[tuple[GateLiteral, ...]] = []
    for config in course:
        told.append(_fixed(circuit, depending, config, outputs, made))
        if told[-1][0] == TRUE:
            break
    return told


def _fixed(
    circuit: Circuit,
    depending: Sequence[Node],
    config: Config,
    outputs: Sequence[GateLiteral],
    made: dict[tuple[GateLiteral, GateLiteral], GateLiteral],
) -> tuple[GateLiteral, ...]:
    """The outputs where only these facts of the counter hold; `made` has the gates that the circuit has not."""
    values: dict[Node, GateLiteral] = {}

    def value(literal: GateLiteral) -> GateLiteral:
        return values.get(literal >> 1, literal & ~1) ^ literal & 1

    for node in depending:
        left, right = circuit.left[node], circuit.right[node]
        if left < 0:
            values[node] = TRUE if node - 1 in config else FALSE
        else:
            values[node] = _conjunction(value(left), value(right), len(circuit.left), made)
    return tuple(map(value, outputs))


def _conjunction(
    a: GateLiteral, b: GateLiteral, num_nodes: int, made: dict[tuple[GateLiteral, GateLiteral], GateLiteral]
) -> GateLiteral:
    """a AND b: a literal, or one of a new gate."""
    a, b = min(a, b), max(a, b)
    if a <= TRUE:
        return b if a else FALSE
    if a ^ b <= 1:
        return a if a == b else FALSE
    return made.setdefault((a, b), 2 * (num_nodes + len(made)))


def _counter(game: Game, course: Course, ends: bool) -> StepCounter:
    order = list(dict.fromkeys(fact for config in course for fact in sorted(config)))
    facts = [fact for fact in order if not all(fact in config for config in course)]
    first, last = (_packed(game, config.intersection(facts)) for config in (course[0], course[-1]))
    return StepCounter(tuple(facts), _packed(game, facts), first, last, len(course) - 1, ends)
