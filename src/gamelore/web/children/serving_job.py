"""The child process of a player server for the page "Network": `net.player_server`, with its messages watched.

The server listens at a loopback address only. It runs in a thread of this process, which knows no rules: its workers
and followers, which are children of this process with limits of their own, read and play them. So the page asks other
processes for pictures of the matches, see `RuleProcesses`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from threading import Lock, Thread
from typing import Any, Literal, TypeAlias

from ...errors import GameloreError
from ...gdl.syntax import printable
from ...net import messages
from ...net.http import WebLimits, listen
from ...net.player_server import CONNECTIONS, PlayerServer, Sparing
from ...net.pool import FOLLOWER, Workers, WorkerSettings
from ...net.requests import answer_requests

ADDRESS = "127.0.0.1"
MOST_LINES = 40  # kept lines of the log
MOST_REPLIES = 12  # kept replies
MOST_SHOWN = 80  # characters of a match's id or of a move

ServerState: TypeAlias = Literal["starting", "ready", "stopping", "stopped", "failed"]
MatchStage: TypeAlias = Literal["preparing", "playing", "stopped", "over"]
RUNNING = ("preparing", "playing")  # stages


@dataclass(eq=False, slots=True)
class ServedMatch:
    """A match of the server, as its messages tell it.

    plies   joint moves so far, in the order of roles
    reply   the last move of the player
    heard   time of the last message (monotonic)
    """

    id: str
    role: str
    rules: str
    clocks: tuple[int, int]
    heard: float = field(default_factory=time.monotonic)
    plies: list[tuple[str, ...]] = field(default_factory=list)
    reply: str = ""
    stage: MatchStage = "preparing"

    def as_json(self, key: str) -> dict[str, Any]:
        """Return the match without its moves and rules."""
        return {
            "key": key,
            "id": printable(self.id, MOST_SHOWN),
            "role": printable(self.role, MOST_SHOWN),
            "clocks": self.clocks,
            "num_plies": len(self.plies),
            "reply": self.reply,
            "stage": self.stage,
        }


class ServedMatches:
    """The matches of a server, and its last replies. One thread notes messages, another one reads.

    Args:
        most: maximum number of running matches

    version      number of changes
    num_played   matches that were played to their end
    """

    def __init__(self, most: int) -> None:
        self.version = self.num_played = 0
        self._matches: dict[str, ServedMatch] = {}
        self._replies: deque[dict[str, Any]] = deque(maxlen=MOST_REPLIES)
        self._most = most
        self._lock = Lock()
        self._waiting: dict[str, tuple[str, ...] | None] = {}  # joint moves of PLAYs that have no reply yet

    def hear(self, message: messages.Message) -> None:
        """Note a message before it is answered."""
        with self._lock:
            self.version += 1
            key = _key(message)
            if isinstance(message, messages.Start):
                if self._num_running() < self._most:
                    self._begin(key, message)
            elif (match := self._matches.get(key)) is not None and match.stage == "playing":
                self._hear_of(match, key, message)

    def _hear_of(self, match: ServedMatch, key: str, message: messages.Message) -> None:
        """Note a message of a running match. A PLAY that equals another one that waits for a reply repeats it."""
        match.heard = time.monotonic()
        if isinstance(message, messages.Play | messages.Stop):
            is_repeated = key in self._waiting and self._waiting[key] == message.moves
            if message.moves is not None and not is_repeated:
                match.plies.append(tuple(message.moves))
        if isinstance(message, messages.Play):
            self._waiting[key] = message.moves
        elif isinstance(message, messages.Stop):
            match.stage = "stopped"

    def tell(self, message: messages.Message, reply: str, seconds: float) -> None:
        """Note the reply to a message, and the seconds that it took."""
        with self._lock:
            self.version += 1
            self._take(message, _key(message), reply)
            self._replies.append(
                {
                    "time": time.strftime("%H:%M:%S"),
                    "message": type(message).__name__.upper(),
                    "match": printable(getattr(message, "match", ""), MOST_SHOWN),
                    "reply": printable(reply, MOST_SHOWN),
                    "seconds": round(seconds, 3),
                }
            )

    def _take(self, message: messages.Message, key: str, reply: str) -> None:
        match = self._matches.get(key)
        if isinstance(message, messages.Start) and reply == messages.READY:
            match = match or self._begin(key, message)
            match.stage = "playing"
        elif match is None:
            return
        elif isinstance(message, messages.Start | messages.Abort):
            if match.stage == "preparing" or isinstance(message, messages.Abort):
                del self._matches[key]
        elif isinstance(message, messages.Play):
            self._waiting.pop(key, None)
            match.reply = printable(reply, MOST_SHOWN)
        elif isinstance(message, messages.Stop) and match.stage == "stopped" and reply == messages.DONE:
            match.stage = "over"
            self.num_played += 1

    def _num_running(self) -> int:
        return sum(match.stage in RUNNING for match in self._matches.values())

    def _begin(self, key: str, start: messages.Start) -> ServedMatch:
        """Add a match, unless it is there. Forget those that are over, and those that the server has given up."""
        self._matches = {name: match for name, match in self._matches.items() if match.stage in RUNNING}
        while len(self._matches) >= self._most and key not in self._matches:
            del self._matches[min(self._matches, key=lambda name: self._matches[name].heard)]
        new = ServedMatch(start.match, start.role, start.rules, (start.startclock, start.playclock))
        return self._matches.setdefault(key, new)

    def as_json(self) -> dict[str, Any]:
        """Return the matches without their moves, and the last replies, the latest ones first."""
        with self._lock:
            return {
                "num_played": self.num_played,
                "matches": [match.as_json(key) for key, match in self._matches.items()],
                "replies": [*self._replies][::-1],
            }

    def told(self, key: str, ply: int) -> dict[str, Any]:
        """Return the joint moves of a match from a ply on, and its rules if the ply is 0.

        Raise GameloreError if there is no such match any more.
        """
        with self._lock:
            match = self._matches.get(key)
            if match is None:
                raise GameloreError("expected a match of this server, got one that is forgotten; choose another match")
            return {"rules": "" if ply else match.rules, "plies": match.plies[ply:]}


def _key(message: messages.Message) -> str:
    """Return the key of the match of a message; empty for a message about no match."""
    return str(getattr(message, "match", "")).lower()


class _Lines(logging.Handler):
    """The last lines of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=MOST_LINES)
        self.num = 0
        self.addFilter(Sparing())

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`, which holds a lock meanwhile."""
        left_out = getattr(record, "left_out", "")
        self.lines.append(f"{time.strftime('%H:%M:%S')} {left_out}{record.getMessage()}")
        self.num += 1

    def latest_first(self) -> list[str]:
        """Return the lines."""
        self.acquire()
        try:
            return [*self.lines][::-1]
        finally:
            self.release()


class ServingJob:
    """The requests of the page to a player server. `begin` comes first, and once.

    Args:
        memory: bytes for this process, and for each worker process
        prepare_seconds: processor time to get a game ready
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._memory, self._prepare_seconds = memory, prepare_seconds
        self._state: ServerState = "starting"
        self._url = self._error = ""
        self._num_changes = 0
        self._served = ServedMatches(1)
        self._lines = _Lines()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False
        self._stop: asyncio.Event | None = None

    def idle(self) -> bool:
        """Do nothing between requests."""
        return False

    def begin(self, player: str, name: str, port: int, at_once: int, options: Mapping[str, Any]) -> None:
        """Start the server; `progress` tells when it listens, or why it cannot.

        Args:
            player: name of the player, with options
            name: what the server calls itself, one word
            port: 0 for any free port
            at_once: maximum number of running matches
            options: `knowledge` and others for the player, if it has them
        """
        self._served = ServedMatches(at_once)
        logging.root.addHandler(self._lines)
        logging.getLogger("gamelore").setLevel(logging.INFO)
        settings = WorkerSettings(
            player, {**options, "clock": True}, memory=self._memory, prepare_seconds=self._prepare_seconds
        )
        Thread(target=self._run, args=(settings, name, port, at_once), name="server", daemon=True).start()

    def progress(self, seen: int = -1) -> dict[str, Any]:
        """Return the state of the server.

        Args:
            seen: the version that the page has

        Returns:
            `version`; and unless it is the same, `state`, `error`, `url`, `num_played`, `matches`, `replies`, `log`.
        """
        version = self._num_changes + self._served.version + self._lines.num
        if version == seen:
            return {"version": version}
        own = {"version": version, "state": self._state, "error": self._error, "url": self._url}
        return own | self._served.as_json() | {"log": self._lines.latest_first()}

    def told(self, key: str, ply: int) -> dict[str, Any]:
        """Return the joint moves of a match, see `ServedMatches.told`."""
        return self._served.told(key, ply)

    def stop(self) -> None:
        """End the server. Its player first learns from finished matches."""
        self._is_stopped = True
        if self._state in ("starting", "ready") and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)

    def _set(self, state: ServerState, error: str = "") -> None:
        self._state, self._error = state, error
        self._num_changes += 1

    def _run(self, settings: WorkerSettings, name: str, port: int, at_once: int) -> None:
        try:
            asyncio.run(self._serve(settings, name, port, at_once))
            self._set("stopped")
        except GameloreError as error:
            self._set("failed", str(error))
        except OSError as error:
            taken = f"expected a port that can be used, got {port}: {error.strerror or error}"
            self._set("failed", f"{taken}; choose another port, or 0 for any free one")
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            self._set("failed", f"expected the server to go on, got {type(error).__name__}: {error}; start it again")

    async def _serve(self, settings: WorkerSettings, name: str, port: int, at_once: int) -> None:
        self._stop, self._loop = asyncio.Event(), asyncio.get_running_loop()
        if self._is_stopped:
            return
        socket.create_server((ADDRESS, port)).close()  # a port that is taken is told before the player is loaded
        following = replace(settings, player="", options={}, module=FOLLOWER)
        limits = WebLimits()
        limits = replace(limits, connections=max(limits.connections, CONNECTIONS * at_once))
        async with AsyncExitStack() as stack:
            workers = await stack.enter_async_context(Workers(settings))
            followers = await stack.enter_async_context(Workers(following))
            server = await stack.enter_async_context(
                PlayerServer(workers, name, followers=followers, most_matches=at_once)
            )

            async def answer(text: str) -> str:
                message, begin = messages.parse(text), time.monotonic()
                self._served.hear(message)
                reply = await server.answer(text)
                self._served.tell(message, reply, time.monotonic() - begin)
                return reply

            actual_port = await stack.enter_async_context(listen(answer, ADDRESS, port, limits))
            self._url = f"http://{ADDRESS}:{actual_port}"
            self._set("ready")
            await self._stop.wait()
            self._set("stopping")


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(ServingJob)


if __name__ == "__main__":
    main()
