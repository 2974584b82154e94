"""The program of a seat: one player of gamelore in a process of its own, which seats.py starts and talks to.

The file is run as a script. It plays with the gamelore that the environment variable PYTHONPATH names: this source tree
or another one, such as an older commit. So it imports nothing of gamelore at the top, and uses only names that all
these trees have. `MODULES` says where they are.

A request is a line of JSON on standard input, {"do": name, "id": number, ..}; the reply on standard output is a line
with the same id, or with {"error": text}. The program ends when its input does. The requests:

    load   rules, player, seed, engine, limits
                                        read the rules within these limits of loading, if the tree knows them, make the
                                        player, and let it make a move for practice
    start  role, facts, match, key, max_plies, seconds
                                        a match begins in the position with these facts. `key` is that of the random
                                        stream, `match` the number of the match at this seat. If `seconds` is not null,
                                        the player may think for this long before the reply, and from then on until
                                        `stop` while there is no request
    play   moves, seconds               the last joint move, or null; reply with {"move": text}, within `seconds`
                                        if this is not null
    stop   moves                        the match is over after this joint move, or was broken off (null)
"""

from __future__ import annotations

import json
import os
import select
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from time import monotonic
from typing import Any

MODULES = (  # (module, name) of the function `player`, the graph of positions, and the state of a match
    (("catalogue", "player"), ("players.position_graph", "PositionGraph"), ("matches.match", "MatchState")),
    (("play.roster", "player"), ("play.graph", "Graph"), ("play.match", "MatchState")),  # until November 2026
)
PONDERING = 0.05  # seconds of thinking between two looks at the input
INPUT = 0


def names() -> list[Any]:
    """Return the function `player` and the classes of graph and match of the tree that is imported."""
    for places in MODULES:
        if find_spec(f"gamelore.{places[0][0].partition('.')[0]}") and find_spec(f"gamelore.{places[0][0]}"):
            return [getattr(import_module(f"gamelore.{module}"), name) for module, name in places]
    raise ImportError("expected a gamelore with a module catalogue or play.roster; give another source tree")


def _load_kernels() -> None:
    """Load the machine code of all kernels, so that no turn takes time for it; older trees load it when imported."""
    if load := getattr(sys.modules.get("gamelore.players.kernel"), "load_kernels", None):
        load()


def _limited(limits: Mapping[str, float]) -> dict[str, Any]:
    """Return the arguments of `load` for limits of loading; of a tree that has other limits, those that it knows."""
    if not find_spec("gamelore.gdl") or not find_spec("gamelore.gdl.limits"):
        return {}  # until November 2026
    limits_of_tree = import_module("gamelore.gdl.limits").Limits
    names = {field.name for field in fields(limits_of_tree)}
    return {"limits": limits_of_tree(**{name: limit for name, limit in limits.items() if name in names})}


class _Seat:
    """A player with its game, and the match that it plays."""

    def __init__(self) -> None:
        self.ponders = False

    def load(self, rules: str, player: str, seed: int, engine: str, limits: Mapping[str, float]) -> dict[str, Any]:
        """Read the rules, make the player, and let it make a move for practice."""
        gamelore = import_module("gamelore")
        make, self.graph_type, self.match_type = names()
        self.game = gamelore.load(rules, engine=engine, **_limited(limits))
        self.player = make(player, seed=seed)
        _load_kernels()
        self._warm_up()
        return {"roles": list(self.game.roles), "engine": self.game.engine}

    def _warm_up(self) -> None:
        """Ask a player that has no `begin` for a move, so that its first match needs no time to compile code.

        A player with `begin` can prepare there, and might take the request for part of a match.
        """
        if any("begin" in vars(base) for base in type(self.player).__mro__ if base.__name__ != "Player"):
            return
        match = self.match_type(self.graph_type(self.game))
        for role in match.pending():
            if match.has_choice(role):
                self.player.choose(match.turn(role, 0))
                return

    def start(
        self, role: int, facts: Sequence[str], match: int, key: int, max_plies: int, seconds: float | None = None
    ) -> dict[str, Any]:
        """Begin a match in the position with these facts."""
        begin = monotonic()
        self.role, self.key, self.number = role, key, match
        graph = self.graph_type(self.game)
        graph.start = int(graph.intern(self.game.state(facts)[None])[0])
        self.match = self.match_type(graph, max_plies=max_plies)
        self.ponders = seconds is not None and hasattr(self.player, "ponder")
        if seconds is not None and hasattr(self.player, "prepare"):
            self.player.prepare(self.game, role)
        self.player.begin(role, self._started(match, None if seconds is None else begin + seconds - monotonic()))
        while seconds is not None and monotonic() < begin + seconds and self.ponder():
            pass
        return {}

    def _started(self, match: int, startclock: float | None) -> Any:
        """Return the event for the player; older source trees do not tell it the startclock."""
        started = self.match.started(match)
        return replace(started, startclock=startclock) if hasattr(started, "startclock") else started

    def ponder(self) -> bool:
        """Let the player think for a moment; return whether it did. After an error it does not think ahead any more."""
        if not self.ponders or self.match.end is not None:
            return False
        turn = replace(self.match.turn(self.role, self.key), deadline=monotonic() + PONDERING)
        try:
            return bool(self.player.ponder(turn))
        except Exception:
            traceback.print_exc()
            self.ponders = False
            return False

    def play(self, moves: Sequence[str] | None, seconds: float | None) -> dict[str, Any]:
        """Make the last joint move, and return the player's next move."""
        deadline = None if seconds is None else monotonic() + seconds
        self._advance(moves)
        legal = self.match.legal(self.role)
        if not self.match.has_choice(self.role):
            return {"move": legal[0]}
        turn = replace(self.match.turn(self.role, self.key), deadline=deadline)
        return {"move": legal[int(self.player.choose(turn)[0])]}

    def stop(self, moves: Sequence[str] | None) -> dict[str, Any]:
        """End the match. The player is told only if the match came to an end."""
        self.ponders = False
        self._advance(moves)
        if self.match.end is not None:
            self.player.end(self.role, self.match.finished(self.number))
        return {}

    def _advance(self, moves: Sequence[str] | None) -> None:
        for role, move in enumerate(moves or ()):
            self.match.submit(role, move)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a request; an error of the player is a reply, too."""
        arguments = {name: value for name, value in request.items() if name not in ("do", "id")}
        try:
            reply: dict[str, Any] = getattr(self, request["do"])(**arguments)
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"}
        return {"id": request["id"], **reply}


def _requests(seat: _Seat) -> Iterator[bytes]:
    """Yield the requests. The player thinks while there is none."""
    received = b""
    while True:
        while b"\n" not in received:
            while not select.select([INPUT], [], [], 0)[0] and seat.ponder():
                pass
            part = os.read(INPUT, 1 << 16)
            if not part:
                return
            received += part
        request, _, received = received.partition(b"\n")
        yield request


def main() -> None:
    """Answer requests until the input ends. What a player prints goes to standard error."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        seat = _Seat()
        for line in _requests(seat):
            replies.write(json.dumps(seat.answer(json.loads(line))) + "\n")
            replies.flush()


if __name__ == "__main__":
    main()
