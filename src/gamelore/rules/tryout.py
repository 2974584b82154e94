"""Plays a game to see whether it behaves: all reachable states where they are few, else some and random matches.

The states nearest the start are walked first. Where that reaches all of them, what the watch notes is proved. Otherwise
random matches are played in lockstep, in rounds of 1, 2, 4 .. matches; a round depends on the seed and its number only,
so a number of matches gives the same result however long it takes. A match that was once in the same state twice need
not end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from math import inf

import numpy as np
from numpy.typing import NDArray

from .game import Game
from .reach import Endless, Walk
from .watch import Declared, Joints, UnplayableError, Watch

AT_ONCE = {"native": 512, "reasoner": 16}  # states, or matches side by side
WALKED = {"native": 10_000, "reasoner": 300}  # states, unless told otherwise: the reasoner takes 1 ms and more for each
MATCHES_AFTER_WALK = 1023  # where every state was seen, matches are played for the figures only


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is played. Seconds of the wall clock and matches: None is no limit, what is reached first stops.

    max_steps: a match that has not ended after so many is cut (the longest of the public rulesheets have 200, so 1000
    cuts none that merely takes long). max_states: the walk gives up beyond, 0 for no walk,
    None for WALKED.
    """

    seconds: float | None = 5.0
    matches: int | None = None
    max_steps: int = 1000
    max_states: int | None = None
    seed: int = 0


@dataclass(slots=True)
class Tally:
    """What became of random matches.

    Of `num_matches` that were started some ended in a terminal state, some got stuck, some were cut after the largest
    number of steps, and the rest were going on when time was up. `lengths`: the steps of those that ended; `goals`:
    theirs, int16[roles] each, negative where unclear. Both leave out a round that did not finish, for it would favour
    short matches.
    """

    num_matches: int = 0
    num_steps: int = 0
    num_ended: int = 0
    num_stuck: int = 0
    num_cut: int = 0
    lengths: list[int] = field(default_factory=list)
    goals: list[NDArray[np.int16]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Takes in a round."""
        self.num_matches += other.num_matches
        self.num_steps += other.num_steps
        self.num_ended += other.num_ended
        self.num_stuck += other.num_stuck
        self.num_cut += other.num_cut
        if other.num_ended + other.num_stuck + other.num_cut == other.num_matches:
            self.lengths += other.lengths
            self.goals += other.goals

    def mean_length(self) -> float | None:
        """In steps; None where no match ended."""
        return float(np.mean(self.lengths)) if self.lengths else None

    def mean_goal(self, role: int) -> float | None:
        """Over the matches that gave the role one; None where none did."""
        values = [goals[role] for goals in self.goals if goals[role] >= 0]
        return float(np.mean(values)) if values else None


@dataclass(slots=True)
class Tryout:
    """What was played and what the watch noted.

    num_states, num_terminal: seen by the walk; all that are reachable where it is `complete`. longest: the steps of the
    longest match that is possible, None where unknown or without limit.
    """

    effort: Effort
    watch: Watch
    tally: Tally = field(default_factory=Tally)
    num_states: int = 0
    num_terminal: int = 0
    complete: bool = False
    longest: int | None = None
    endless: Endless | None = None
    interrupted: bool = False
    seconds: float = 0.0

    def found_endless(self, endless: Endless) -> None:
        """Keeps the shortest, rather one that comes back than one that was cut."""

        def rank(one: Endless) -> tuple[bool, int]:
            return one.back_to is None, len(one.joints)

        if self.endless is None or rank(endless) < rank(self.endless):
            self.endless = endless


def try_out(game: Game, effort: Effort, declared: Declared | None = None) -> Tryout:
    """Plays. An interrupt (Ctrl-C) ends it early and keeps what was found, and so does a state with no answer."""
    result = Tryout(effort, Watch(game, declared))
    start = time.monotonic()
    seconds = inf if effort.seconds is None else effort.seconds
    try:
        _walk(result, start + seconds / 2)
        _play(result, start + seconds)
    except KeyboardInterrupt:
        result.interrupted = True
    except UnplayableError:
        pass
    result.seconds = time.monotonic() - start
    return result


def _walk(result: Tryout, deadline: float) -> None:
    engine, max_states = result.watch.game.engine, result.effort.max_states
    walk = Walk(result.watch, WALKED[engine] if max_states is None else max_states, AT_ONCE[engine])
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
    """Random matches; where every state was seen, the watch need not look at them again."""
    watch = Watch(result.watch.game) if result.complete else result.watch
    watch.phase = "matches"
    for number, size in enumerate(_sizes(result, result.effort.matches)):
        if time.monotonic() > deadline:
            break
        matches = Round(watch, size, result.effort, number)
        try:
            matches.play(deadline)
        finally:
            result.tally.add(matches.tally)
        if not result.complete:
            for endless in matches.endless():
                result.found_endless(endless)


def _sizes(result: Tryout, wanted: int | None) -> Iterator[int]:
    """How many matches each round plays."""
    if wanted is None and result.complete:
        wanted = MATCHES_AFTER_WALK
    for number in count():
        size = min(1 << number, AT_ONCE[result.watch.game.engine])
        if wanted is not None:
            size = min(size, wanted - result.tally.num_matches)
        if size <= 0:
            return
        yield size


class Round:
    """Random matches side by side: every step asks once about the states of all that are still going on."""

    def __init__(self, watch: Watch, size: int, effort: Effort, number: int) -> None:
        self.watch, self.game, self.max_steps = watch, watch.game, effort.max_steps
        self.tally = Tally(num_matches=size)
        self._rng = np.random.default_rng((effort.seed, number))
        self._matches = np.arange(size)  # which match each lane plays
        self._states = np.repeat(self.game.initial[None], size, axis=0)
        self._history: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self._keys: list[NDArray[np.uint64]] = []

    def play(self, deadline: float) -> None:
        """To the end, or until it is later than `deadline`."""
        while self._step() and time.monotonic() <= deadline:
            pass

    def _step(self) -> bool:
        """One joint move of every match that goes on; False where none does."""
        depth = len(self._history)
        seen = self.watch.look(self._states, depth, self._path)
        self._remember_keys()
        going = ~(seen.terminal | seen.stuck)
        self.tally.num_ended += int(seen.terminal.sum())
        self.tally.num_stuck += int(seen.stuck.sum())
        self.tally.lengths += [depth] * int(seen.terminal.sum())
        self.tally.goals += list(seen.goals[seen.terminal])
        starts, counts = seen.legal.by_role(self.game.num_roles)
        drawn = starts + (self._rng.random(counts.shape) * counts).astype(np.int64)
        self._matches, self._states = self._matches[going], self._states[going]
        if depth == self.max_steps:
            self.tally.num_cut = len(self._matches)
            return False
        if len(self._matches):
            self._advance(seen.legal.actions[drawn[going]])
        return len(self._matches) > 0

    def _advance(self, joints: NDArray[np.int32]) -> None:
        self._history.append((self._matches, joints))
        self._states = self.watch.ask(self.game.next, (self._states, joints), self._path)
        self.tally.num_steps += len(joints)

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

    def _remember_keys(self) -> None:
        """The key of each match's state; for a match that is over a number that no other step has."""
        keys = np.full(self.tally.num_matches, len(self._keys), np.uint64)
        keys[self._matches] = self.game.state_keys(self._states)
        self._keys.append(keys)

    def endless(self) -> Iterator[Endless]:
        """A match that was cut, and every one that came back to a state in which it had been."""
        if self.tally.num_cut:
            yield Endless(self._path(0), None)
        keys = np.array(self._keys)
        ordered = np.sort(keys, axis=0)
        for match in np.flatnonzero((ordered[1:] == ordered[:-1]).any(axis=0)).tolist():
            back_to, step = _first_return(keys[:, match].tolist())
            yield Endless(self._path_of(match)[:step], back_to)


def _first_return(keys: list[int]) -> tuple[int, int]:
    """Of the first key that was there before: where that was, and where it is again."""
    places: dict[int, int] = {}
    return next((places[key], step) for step, key in enumerate(keys) if places.setdefault(key, step) != step)
