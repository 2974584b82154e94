"""How fast a game is, in this process's CPU time: to its first legal moves, and in random playouts on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import GameloreError
from .game import Game

SIDE_BY_SIDE = 512  # matches that the native engine plays at once; fewer take as long
GROWTH = 4  # from one trial to the next
PATIENCE = {"native": 30, "reasoner": 3}  # times the seconds asked for, after which a call is stopped


@dataclass(frozen=True, slots=True)
class PlayoutSpeed:
    """`num_playouts` random matches, with `num_steps` joint moves in all, took `cpu_s` seconds, and `wall_s` on the
    clock; the first call, which compiles, took `compile_s` before. Where no match came to its end, the steps of one.
    """

    num_playouts: int
    num_steps: int
    cpu_s: float
    wall_s: float
    compile_s: float

    @property
    def playouts_per_s(self) -> float | None:
        """Random matches in a second; None where none came to its end."""
        return self.num_playouts / self.cpu_s if self.num_playouts else None

    @property
    def steps_per_s(self) -> float:
        """Joint moves in a second."""
        return self.num_steps / self.cpu_s

    @property
    def mean_steps(self) -> float | None:
        """Joint moves of a match; None where none came to its end."""
        return self.num_steps / self.num_playouts if self.num_playouts else None


def started(load: Callable[[], Game]) -> tuple[Game, float]:
    """A game that is loaded and has its first legal moves, and the seconds that this took."""
    begin = time.process_time()
    game = load()
    _ = game.start().legal
    return game, time.process_time() - begin


def size(game: Game) -> dict[str, int | None]:
    """Facts, actions and gates of a compiled game; None each where there is no circuit."""
    names = ("num_facts", "num_actions", "num_gates")
    return {name: getattr(game.circuit, name) if game.circuit else None for name in names}


def playout_speed(game: Game, seconds: float, seed: int = 0) -> PlayoutSpeed:
    """Measures one call of `game.playouts` of about so many seconds, after shorter ones that find its size.

    Raises GameloreError where the native engine's first playouts do not end in PATIENCE times the seconds.
    """
    n, compile_s = 1, 0.0
    if game.engine == "native":
        n, compile_s = SIDE_BY_SIDE, _timed(game, 1, seconds, seed).cpu_s
    while True:
        speed = _timed(game, n, seconds, seed, compile_s)
        if speed.cpu_s >= seconds / 2 or not speed.num_playouts:
            return speed
        n = max(n + 1, min(GROWTH * n, int(n * seconds / max(speed.cpu_s, 1e-6))))


class _OutOfTimeError(Exception):
    pass


def _timed(game: Game, n: int, seconds: float, seed: int, compile_s: float = 0.0) -> PlayoutSpeed:
    """n playouts; where the reasoner's only one does not end, its steps until then."""
    begin, wall = time.process_time(), time.perf_counter()
    reports: list[float] = []

    def progress(done: int) -> None:
        reports.append(time.process_time())
        if reports[-1] - reports[0] > PATIENCE[game.engine] * seconds:
            raise _OutOfTimeError

    try:
        played = game.playouts(n, seed, threads=1, progress=progress)
    except _OutOfTimeError:
        spent = time.process_time() - begin
        wall_s = time.perf_counter() - wall
        if game.engine == "native":
            raise GameloreError(
                f"expected random playouts of {game.name} to end, but {n} did not in {spent:.0f} s; "
                "give it more seconds, or see `gamelore check --play` whether they must end"
            ) from None
        return PlayoutSpeed(0, n * len(reports), spent, wall_s, compile_s)  # it reports after each step
    spent, wall_s = time.process_time() - begin, time.perf_counter() - wall
    return PlayoutSpeed(played.num_playouts, played.num_steps, spent, wall_s, compile_s)
