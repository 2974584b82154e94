"""Random playouts and rollouts in planes, on all cores.

Exactly n playouts are started and all finish: stopping at the first n that finish would favour short ones. Every 64
lanes have their own quota and their own random stream, so the result depends neither on the width of the machine's
registers nor on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ctypes import CFUNCTYPE, Array, addressof, c_int64, c_void_p
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .block import ACTIVE, COUNTERS, NUM_STEPS, NUM_STUCK, RANDOM, REMAINING, Block, Seat, block_code
from .circuit import Circuit
from .draw import STATE, draw_code, num_digits
from .kernels import kernel
from .planes import LANES, Layout, zero_planes

GROUPS = 8  # of 64 lanes, in a block
PLAYED_PER_BLOCK = 8 * LANES  # in fewer, lanes without a match would be too many towards the end
MOST_BLOCKS = 64  # of playouts, whose number of matches is not limited
GATES_PER_CALL = 200_000_000  # about a tenth of a second, in which nothing is told and nothing can be stopped
FULL = np.uint64(2**64 - 1)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Playouts:
    """Outcome of random playouts: for each role goal value -> how often; None counts stuck ones and unclear goals."""

    num_playouts: int
    num_steps: int
    num_stuck: int
    goals: tuple[dict[int | None, int], ...]

    def mean(self, role: int) -> float:
        """The mean goal of a role over the playouts that gave it one; nan if none did."""
        counts = {value: count for value, count in self.goals[role].items() if value is not None}
        total = sum(counts.values())
        return sum(value * count for value, count in counts.items()) / total if total else float("nan")


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Outcome of one random match from each of some states.

    goals: int16[states, roles], -1 where the rules give none or several, and where the match was stuck or cut.
    steps: int32[states], how many joint moves each took.
    """

    goals: NDArray[np.int16]
    steps: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Shares:
    """How matches are dealt: `quotas`, int64[blocks, GROUPS], and random `streams`, uint64[blocks, STATE, GROUPS]."""

    quotas: NDArray[np.int64]
    streams: NDArray[np.uint64]

    @classmethod
    def deal(cls, n: int, num_blocks: int, seed: int) -> _Shares:
        groups = num_blocks * GROUPS
        quotas = np.full(groups, n // groups, np.int64)
        quotas[: n % groups] += 1
        drawn = np.random.SeedSequence(seed).generate_state(STATE * groups, np.uint64).astype(np.uint64)
        streams = drawn.reshape(num_blocks, GROUPS, STATE).transpose(0, 2, 1)
        return cls(quotas.reshape(num_blocks, GROUPS), streams)

    def first_rows(self) -> NDArray[np.int64]:
        """int64[blocks, GROUPS]: where each group begins when matches are dealt in order."""
        return (np.cumsum(self.quotas) - self.quotas.ravel()).reshape(self.quotas.shape)


class _Place:
    """Memory in which one block after the other is played; none reads what an earlier one left.

    `block` tells the machine code where all of it lies.
    """

    def __init__(self, circuit: Circuit, num_planes: int, draws: Sequence[int]) -> None:
        layout = Layout(circuit.num_facts, circuit.num_actions, 0)
        self.lanes = zero_planes(COUNTERS + sum(map(len, circuit.goals)))
        self.next_rows = np.zeros(GROUPS, np.int64)
        self._memory: dict[str, NDArray[Any]] = {
            "planes": zero_planes(num_planes),
            "waiting": zero_planes(num_planes),
            "num_values": np.array([len(values) for values in circuit.goals], np.int64),
            "values": np.array([value for values in circuit.goals for value in values], np.int16),
            "lanes": self.lanes,
            "next_rows": self.next_rows,
            **{name: zero_planes(LANES // 8) for name in ("rows", "starts", "waiting_rows")},
        }
        self._seats = self._new_seats(circuit, layout, draws)
        self.block = Block(
            num_facts=circuit.num_facts,
            outputs=layout.outputs,
            terminal=layout.outputs + circuit.num_actions,
            num_roles=len(circuit.actions),
            seats=addressof(self._seats),
            **{name: array.ctypes.data for name, array in self._memory.items()},
        )

    def _new_seats(self, circuit: Circuit, layout: Layout, draws: Sequence[int]) -> Array[Seat]:
        self._sums = zero_planes(max(map(len, circuit.actions), default=0) // 2)
        self._used = [np.zeros(len(moves) // 8, np.uint8) for moves in circuit.actions]
        seats, first = (Seat * len(circuit.actions))(), 0
        for seat, draw, moves, used in zip(seats, draws, circuit.actions, self._used, strict=True):
            seat.draw, seat.num_moves, seat.used, seat.sums = draw, len(moves), used.ctypes.data, self._sums.ctypes.data
            seat.first_output, seat.first_action = layout.outputs + first, layout.actions + first
            first += len(moves)
        return seats

    def unfinished(self) -> int:
        """The matches that go on or have not begun."""
        return int(self.lanes[REMAINING].sum()) + sum(map(int.bit_count, self.lanes[ACTIVE].tolist()))


class PlayoutRunner:
    """Random matches of a compiled circuit.

    `address_of` gives the address of a function of the loaded code. It is kept, and with it the code.
    """

    def __init__(self, address_of: Callable[[str], int], circuit: Circuit, num_planes: int) -> None:
        self._address_of = address_of
        self._circuit, self._num_planes = circuit, num_planes
        code = kernel(block_code())
        self._begin = CFUNCTYPE(None, c_void_p)(code.address("begin"))
        self._play = CFUNCTYPE(c_int64, c_void_p, c_int64)(code.address("play"))
        self._draws = [kernel(draw_code(num_digits(len(moves)))).address("draw") for moves in circuit.actions]
        self._steps_per_call = max(1, GATES_PER_CALL // (LANES + circuit.num_gates))
        self._initial = np.where(circuit.initial, FULL, np.uint64(0))
        self._no_facts = np.zeros_like(self._initial)
        self._free: list[_Place] = []

    def playouts(
        self, n: int, seed: int, threads: int | None = None, progress: Callable[[int], None] | None = None
    ) -> Playouts:
        """Exactly n uniformly random playouts from the first state.

        `progress` is told the number of finished ones now and then, in the thread that finished them, by one thread at
        a time; where it raises, or the caller is interrupted, all threads stop.
        """
        shares = _Shares.deal(n, min(MOST_BLOCKS, max(1, n // PLAYED_PER_BLOCK)), seed)
        left, telling = shares.quotas.sum(axis=1), Lock()

        def play(index: int, stopped: Event) -> NDArray[np.int64]:
            with self._place() as place:
                place.block.states, place.block.max_steps = 0, 0
                place.block.initial = self._initial.ctypes.data
                for unfinished in self._played(place, shares, index, stopped):
                    with telling:
                        left[index] = unfinished
                        if progress and not stopped.is_set():
                            progress(n - int(left.sum()))
                counted: NDArray[np.int64] = place.lanes.view(np.int64).sum(axis=1)
                return counted

        return self._counted(n, np.sum(_in_threads(play, len(left), threads), axis=0))

    def rollouts(
        self, states: NDArray[np.uint64], seed: int, threads: int | None = None, max_steps: int = 0
    ) -> Rollouts:
        """One uniformly random match from each of the states, uint64[n, words]; max_steps: 0 for no limit."""
        states = np.ascontiguousarray(states)
        shares = _Shares.deal(len(states), max(1, len(states) // PLAYED_PER_BLOCK), seed)
        first_rows = shares.first_rows()
        goals = np.full((len(states), len(self._draws)), -1, np.int16)
        steps = np.zeros(len(states), np.int32)

        def play(index: int, stopped: Event) -> None:
            with self._place() as place:
                place.next_rows[:] = first_rows[index]
                block = place.block
                block.states, block.state_words = states.ctypes.data, states.shape[1]
                block.goals, block.lengths = goals.ctypes.data, steps.ctypes.data
                block.initial, block.max_steps = self._no_facts.ctypes.data, max_steps
                for _ in self._played(place, shares, index, stopped):
                    pass

        _in_threads(play, len(first_rows), threads)
        return Rollouts(goals, steps)

    def _played(self, place: _Place, shares: _Shares, index: int, stopped: Event) -> Iterator[int]:
        """Plays a block's share, until stopped; yields how many matches are unfinished, now and then and at the end."""
        place.lanes[:] = 0
        place.lanes[RANDOM : RANDOM + STATE] = shares.streams[index]
        place.lanes[REMAINING] = shares.quotas[index]
        place.block.now = -1
        address = addressof(place.block)
        self._begin(address)
        going = True
        while going and not stopped.is_set():
            going = bool(self._play(address, self._steps_per_call))
            yield place.unfinished()

    @contextmanager
    def _place(self) -> Iterator[_Place]:
        """A place that nobody else uses; lost where something is raised meanwhile."""
        try:
            place = self._free.pop()  # to look first whether there is one would be a race between threads
        except IndexError:
            place = self._new_place()
        yield place
        self._free.append(place)

    def _new_place(self) -> _Place:
        place = _Place(self._circuit, self._num_planes, self._draws)
        for function in ("legal", "goal", "next"):
            setattr(place.block, function, self._address_of(function))
        return place

    def _counted(self, n: int, numbers: NDArray[np.int64]) -> Playouts:
        goals, first = [], COUNTERS
        for values in self._circuit.goals:
            counts: dict[int | None, int] = {
                value: int(count) for value, count in zip(values, numbers[first : first + len(values)], strict=True)
            }
            counts[None] = n - sum(counts.values())
            goals.append({value: count for value, count in counts.items() if count})
            first += len(values)
        return Playouts(n, int(numbers[NUM_STEPS]), int(numbers[NUM_STUCK]), tuple(goals))


def _in_threads(play: Callable[[int, Event], Result], count: int, threads: int | None) -> list[Result]:
    """What `play` gives for 0 .. count - 1.

    The event that it is given is set where one of them raises, or the caller is interrupted: then all shall stop.
    """
    stopped = Event()

    def stopping(index: int) -> Result:
        try:
            return play(index, stopped)
        except BaseException:
            stopped.set()  # at once, though the caller waits for the results in their order
            raise

    threads = min(count, threads or _num_cores())
    if threads == 1:
        return [play(index, stopped) for index in range(count)]
    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(stopping, range(count)))
        finally:
            stopped.set()


def _num_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
