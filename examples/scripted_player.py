"""A player with scripted faults, for authors of hosts (game managers) who test how their host copes with them.

    python examples/scripted_player.py --port 9148 --script "play@2=late:8; play@3=illegal; stop=silent"

It plays the first legal move in any game, and answers every message correctly, unless the script says otherwise.
A script is a list of steps separated by `;`. The last step that fits a message applies:

    KIND=ANSWER         every message of this kind: info, preview, start, play, stop, abort, or any
    KIND@TURN=ANSWER    only in this turn of a match, from 0; with + after the number: and in all later turns
    KIND#MATCH=ANSWER   only in this match, from 0, in the order of their STARTs; with +: and in all later matches
    KIND#MATCH@TURN=ANSWER

and an answer is one of

    ok              the correct reply
    late:SECONDS    the correct reply, with this delay
    reply:TEXT      this text
    illegal         a term that is no move
    garbage         no term, with bytes outside ASCII
    wrong-match     a move for another match: the first move of this player again
    huge            a megabyte
    status:NUMBER   this HTTP status instead of 200
    redirect        a redirection to an address with the correct reply
    silent          nothing, and the connection stays open
    stall           half a header, and then nothing
    half            half a header, and the connection is closed
    close           the connection is closed

It uses bare sockets, and `gamelore.net.messages` to read the messages; take it as a start for your own player.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType

from gamelore import Game, GameloreError, Position, load
from gamelore.net import messages
from gamelore.net.messages import Abort, Info, Message, Play, PlayerInfo, Preview, Start, Stop

KINDS = ("info", "preview", "start", "play", "stop", "abort", "any")
PLAIN = ["ok", "illegal", "garbage", "wrong-match", "huge", "redirect", "silent", "stall", "half", "close"]
WITH_VALUE = ("late", "reply", "status")
STEP = re.compile(r"(\w+)(?:#(\d+)(\+?))?(?:@(\d+)(\+?))?\s*=\s*([\w-]+)(?::(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A step of a script: the messages that it fits, and the answer to them."""

    kind: str
    matches: tuple[int, int]  # first and last, both included
    turns: tuple[int, int]
    action: str
    value: str

    def fits(self, kind: str, match: int, turn: int) -> bool:
        """Return whether the step fits a message; `match` and `turn` are -1 for a message outside a match."""
        in_match = self.matches[0] <= match <= self.matches[1]
        return self.kind in (kind, "any") and in_match and self.turns[0] <= turn <= self.turns[1]


def read_script(text: str) -> list[Step]:
    """Return the steps of a script. Raise ValueError for an invalid step."""
    return [_step(part.strip()) for part in text.split(";") if part.strip()]


def _step(text: str) -> Step:
    parts = STEP.fullmatch(text)
    if parts is None or parts[1] not in KINDS or parts[6] not in (*PLAIN, *WITH_VALUE):
        raise ValueError(f"expected a step such as play@3=late:2.5, got {text!r}; kinds: {KINDS}; answers: {PLAIN}")
    if (parts[6] in WITH_VALUE) != (parts[7] is not None):
        raise ValueError(f"expected a value after {', '.join(WITH_VALUE)} and only there, got {text!r}")
    return Step(parts[1], _range(parts[2], parts[3]), _range(parts[4], parts[5]), parts[6], parts[7] or "")


def _range(number: str | None, more: str | None) -> tuple[int, int]:
    every = 1 << 60
    return (-1, every) if number is None else (int(number), every if more else int(number))


@dataclass
class Match:
    """The state of a match."""

    number: int
    role: str
    position: Position
    turn: int = -1
    last_told: tuple[str, ...] | None = None
    moves: list[str] = field(default_factory=list)


class ScriptedPlayer:
    """The player, as an asynchronous context manager; `heard` are the received messages, `matches` all its matches.

    game: saves the time to load the rules; None to load the rules of each START.
    """

    def __init__(
        self, script: str = "", *, port: int = 0, address: str = "127.0.0.1", game: Game | None = None
    ) -> None:
        self.steps = read_script(script)
        self.heard: list[Message] = []
        self.matches: dict[str, Match] = {}
        self.port = port
        self._address = address
        self._game = game
        self._loaded: dict[str, Game] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://{self._address}:{self.port}"

    async def __aenter__(self) -> ScriptedPlayer:
        self._server = await asyncio.start_server(self._serve, self._address, self.port, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening, and drop all connections, as if the player had died."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def count(self, kind: type[Message]) -> int:
        """Return the number of received messages of a kind."""
        return sum(isinstance(message, kind) for message in self.heard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer(reader, writer, *await _request(reader))
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: str) -> None:
        message = messages.parse(body)
        self.heard.append(message)
        right = self._right(message)
        step = self._step(message)
        if path == "/there" or step is None or step.action == "ok":
            return await _send(writer, right)
        await self._act(writer, step, right, message)
        if step.action in ("silent", "stall"):
            await reader.read()  # until the other side goes

    async def _act(self, writer: asyncio.StreamWriter, step: Step, right: str, message: Message) -> None:
        """Answer as the step says."""
        match step.action:
            case "late":
                await asyncio.sleep(float(step.value))
                await _send(writer, right)
            case "reply":
                await _send(writer, step.value)
            case "illegal":
                await _send(writer, "(no such move)")
            case "garbage":
                await _send(writer, b") \xff\x00 (((")
            case "wrong-match":
                await _send(writer, self._match(message).moves[0] if isinstance(message, Play) else right)
            case "huge":
                await _send(writer, "x" * (1 << 20))
            case "status":
                await _send(writer, right, status=f"{step.value} as told")
            case "redirect":
                await _send(writer, "", status="302 Found", more=f"Location: {self.url}/there\r\n")
            case "stall" | "half":
                writer.write(b"HTTP/1.0 200 OK\r\nContent-ty")
                await writer.drain()

    def _step(self, message: Message) -> Step | None:
        playing = self.matches.get(getattr(message, "match", ""))
        match, turn = (-1, -1) if playing is None else (playing.number, playing.turn)
        kind = type(message).__name__.lower()
        return next((step for step in reversed(self.steps) if step.fits(kind, match, turn)), None)

    def _right(self, message: Message) -> str:
        """Process the message, and return the correct reply."""
        try:
            return self._reply(message)
        except (GameloreError, KeyError):
            return messages.BUSY if isinstance(message, Play | Stop) else messages.NIL

    def _reply(self, message: Message) -> str:
        match message:
            case Info():
                return messages.show_info(PlayerInfo("scripted", messages.AVAILABLE))
            case Start(match, role, rules):
                if match not in self.matches:
                    self.matches[match] = Match(len(self.matches), role, self._load(rules).start())
                return messages.READY
            case Play(_, moves):
                return self._move(self._match(message), moves)
            case Stop():
                self._match(message)
                return messages.DONE
            case Abort():
                return messages.ABORTED
            case Preview():
                return messages.READY

    def _match(self, message: Play | Stop) -> Match:
        return self.matches[message.match]

    def _move(self, match: Match, moves: tuple[str, ...] | None) -> str:
        """Return the first legal move; the same one for a repeated turn."""
        if match.turn < 0 or not _is_repeated(match, moves):
            match.position = match.position.play(moves) if moves else match.position
            match.turn += 1
            match.last_told = moves
        legal = {role.lower(): own for role, own in match.position.legal.items()}[match.role.lower()]
        match.moves.append(legal[0])
        return legal[0]

    def _load(self, rules: str) -> Game:
        if self._game is not None:
            return self._game
        if rules not in self._loaded:
            self._loaded[rules] = load(f"{rules}\n")
        return self._loaded[rules]


def _is_repeated(match: Match, moves: tuple[str, ...] | None) -> bool:
    """Return whether this turn was asked before: the joint move is the last one, and not legal now."""
    if moves is None or moves != match.last_told:
        return moves == match.last_told
    try:
        match.position.play(moves)
    except GameloreError:
        return True
    return False


async def _request(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Return the path and the body of a POST."""
    first, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    lengths = [int(line.partition(":")[2]) for line in fields if line.lower().startswith("content-length:")]
    body = await reader.readexactly(lengths[0])
    return first.split()[1], body.decode("ascii", "replace")


async def _send(writer: asyncio.StreamWriter, text: str | bytes, *, status: str = "200 OK", more: str = "") -> None:
    body = text if isinstance(text, bytes) else text.encode("ascii", "replace")
    head = f"HTTP/1.0 {status}\r\nContent-type: text/acl\r\nContent-length: {len(body)}\r\n{more}\r\n"
    writer.write(head.encode("ascii") + body)
    await writer.drain()


@contextmanager
def playing(script: str = "", *, port: int = 0, game: Game | None = None) -> Iterator[ScriptedPlayer]:
    """Run the player in a thread of its own, for code that is not asynchronous."""
    player = ScriptedPlayer(script, port=port, game=game)
    loop = asyncio.new_event_loop()
    listening, over = threading.Event(), asyncio.Event()

    async def play() -> None:
        async with player:
            listening.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(play(),), daemon=True)
    thread.start()
    try:
        assert listening.wait(10), f"no player came up on port {port}"
        yield player
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()


async def _main(port: int, address: str, script: str) -> None:
    async with ScriptedPlayer(script, port=port, address=address) as player:
        print(f"listening at {player.url}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9148, help="0 for a free one")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--script", default="")
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(options.port, options.address, options.script))
