"""Shared parts of the benchmarks: rates in process CPU time, and OpenSpiel's random playouts in C++."""

from __future__ import annotations

import time
from collections.abc import Callable

Work = Callable[[], int]  # does some work, and returns the number of units


def cpu_rate(work: Work) -> float:
    """Return the units of work per second of CPU time of this process."""
    start = time.process_time()
    units = work()
    return units / (time.process_time() - start)


def in_turn(ours: Work, theirs: Work, repeats: int) -> list[tuple[float, float]]:
    """Return pairs of rates, ours and theirs, measured in turn under the same conditions."""
    return [(cpu_rate(ours), cpu_rate(theirs)) for _ in range(repeats)]


def lasting(work_of: Callable[[int], Work], seconds: float, at_least: int) -> Work:
    """Return work_of(n) for n >= at_least that takes about so many seconds, estimated from a part of the work."""
    n = at_least
    while True:
        start = time.process_time()
        work_of(n)()
        spent = time.process_time() - start
        if spent >= seconds / 4:
            return work_of(max(at_least, round(n * seconds / spent)))
        n *= 4


def their_playouts(name: str, n: int) -> Work:
    """Return n of OpenSpiel's C++ rollouts: one simulation of its MCTS, which evaluates the first state by them."""
    import pyspiel

    game = pyspiel.load_game(name)
    evaluator = pyspiel.RandomRolloutEvaluator(n, 1)
    bot = pyspiel.MCTSBot(game, evaluator, 2.0, 1, 100, False, 1, False)
    state = game.new_initial_state()

    def run() -> int:
        bot.mcts_search(state)
        return n

    return run
