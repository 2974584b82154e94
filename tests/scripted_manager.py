"""A manager of matches against one player server: random moves for the other roles, and an account of each match."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from random import Random

from gamelore import load
from gamelore.game.game import Position
from processes import wait_until
from wire import PATIENCE, rules

CLOCKS = "60 20"  # startclock and playclock in seconds


@cache
def start_of(game: str) -> Position:
    return load(game).start()


@dataclass(frozen=True)
class Match:
    """A match that was led to its end. Times are in seconds since 1970.

    errors       what was said in place of legal moves; empty texts for no answer
    is_finished  whether STOP was answered with `done`; None if nobody knows
    begin        time before START
    last         time after the last move
    over         time after the reply to STOP
    """

    id: str
    errors: tuple[str, ...]
    is_finished: bool | None
    begin: float
    last: float
    over: float


def lead(
    send: Callable[[str], str], game: str, match: str, random: Random, *, more: str = "", patience: float = 0.0
) -> Match:
    """Lead a match to its end, as managers do: a random move takes the place of a missing one.

    send: sends a message to the player; returns the reply, or an empty text if there is none.
    more: facts to be sent in addition to the rules.
    patience: seconds for which START is sent again until the player takes the match.
    """
    position, shown, errors, begin = start_of(game), "NIL", [], time.time()
    role = random.choice(list(position.legal))
    start = f"( START {match} {role} ( {rules(game)} {more} ) {CLOCKS} )"
    wait_until(lambda: send(start) == "ready", f"`ready` for the match {match}", patience)
    while not position.is_terminal:
        joint = {name: random.choice(moves) for name, moves in position.legal.items()}
        reply = send(f"( PLAY {match} {shown} )")
        if reply in position.legal[role]:
            joint[role] = reply
        else:
            errors.append(reply)
        position, shown = position.play(joint), f"( {' '.join(joint.values())} )"
    last = time.time()
    is_finished = send(f"( STOP {match} {shown} )") == "done"
    return Match(match, tuple(errors), is_finished, begin, last, time.time())


class ScriptedManager:
    """Matches of one game, some at a time. Their ids begin with a name that no other manager has."""

    def __init__(self, send: Callable[[str], str], game: str, seed: int, at_once: int = 2) -> None:
        self._send, self._game, self._seed, self._at_once = send, game, seed, at_once
        self._name = f"scripted.{seed}.{time.time_ns()}"

    def play(self, over: threading.Event, at_least: int = 1) -> list[Match]:
        """Return the matches that were played. Each thread plays so many and goes on until `over`, then one more."""
        with ThreadPoolExecutor(self._at_once) as threads:
            done = [
                threads.submit(self._play_on, f"{self._name}.{number}", over, at_least)
                for number in range(self._at_once)
            ]
        return [match for thread in done for match in thread.result()]

    def may_have(self, match: str) -> bool:
        """Whether a match in a store can be one of this manager that it has not told of."""
        return match.startswith(self._name)

    def _play_on(self, name: str, over: threading.Event, at_least: int) -> list[Match]:
        random, matches = Random(f"{self._seed}{name[-1]}"), list[Match]()
        while True:
            is_last = over.is_set() and len(matches) + 1 >= at_least
            match = lead(self._send, self._game, f"{name}.{len(matches)}", random, patience=PATIENCE)
            matches.append(match)
            if is_last:
                return matches
