"""A player server as one call, from its start to Ctrl-C: HTTP in front, matches behind it, workers behind them."""

from __future__ import annotations

import asyncio
import errno
import inspect
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import GameloreError
from .clocks import MARGIN
from .server import PlayerServer
from .web import EVERYWHERE, WebLimits, listen
from .workers import Workers, WorkerSettings

if TYPE_CHECKING:
    from ..play.player import Player

PORT = 9147
MEMORY = 4 << 30  # bytes
QUOTA = 4 << 30  # bytes
CONNECTIONS = 4  # for each match, at least
LINES = 20  # of the log in a second
log = logging.getLogger(__name__)


def serve(
    player: str | type[Player] = "transfer",
    *,
    port: int = PORT,
    address: str = "127.0.0.1",
    name: str = "gamelore",
    knowledge: Path | str | None = None,
    opponent: str | None = None,
    seed: int = 0,
    learn: bool = True,
    quota: int = QUOTA,
    search: float | None = None,
    matches_at_once: int = 1,
    margin: float = MARGIN,
    memory: int = MEMORY,
    prepare_seconds: float = 60.0,
    limits: WebLimits | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> signal.Signals:
    """Plays for the game managers that call, until Ctrl-C or SIGTERM; gives the signal. A second one does not wait.

    player           one of `gamelore players` with its options, or a class of one's own at the top of a file (which
                     is run again by the processes that play, so `serve(..)` belongs under `if __name__ == "__main__"`)
    knowledge ..     `knowledge`, `opponent`, `seed`, `learn`, `quota` (bytes) and `search` (seconds a move) are options
      .. search      of the player, for those that have them and do not set them themselves
    matches_at_once  more than so many are answered with `busy`
    margin           seconds of every clock that are left to the network
    memory           bytes for each process that plays
    prepare_seconds  in which rules must be ready to play
    limits           of HTTP, and what it takes from whom
    on_ready         told the address, as http://ADDRESS:PORT, when it is there; unless given, it goes into the log

    Raises GameloreError for a player that there is not, and for an address and port that cannot be listened on.
    """
    _refuse_inside_a_worker()
    given: dict[str, object] = {
        "knowledge": knowledge and str(knowledge),
        "opponent": opponent,
        "seed": seed,
        "learn": learn,
        "quota": quota,
        "search": search,
    }
    options = {key: value for key, value in given.items() if value is not None}
    settings = WorkerSettings(spec(player), options, memory=memory, prepare_seconds=prepare_seconds)
    if not logging.root.handlers:
        log_to_stderr()
    server = {"name": name, "most_matches": matches_at_once, "margin": margin}
    tell = on_ready or (lambda url: log.info("%s plays at %s; Ctrl-C ends it", name, url))
    try:
        return asyncio.run(_serve(settings, server, address, port, limits, tell))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def log_to_stderr(level: int = logging.INFO) -> None:
    """What happens, a line each, so far as they are not too many."""
    handler = logging.StreamHandler()
    handler.addFilter(Sparing())
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", handlers=[handler], force=True)
    logging.getLogger("gamelore").setLevel(level)


class Sparing(logging.Filter):
    """Lets `LINES` lines a second through, or whoever may send messages could fill a disk with what is said of them."""

    def __init__(self) -> None:
        super().__init__()
        self._second = 0
        self._num_lines = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is one of those; the first one after those that were not says how many there were."""
        second = int(time.monotonic())
        if second != self._second:
            if self._num_lines > LINES:
                record.msg = f"({self._num_lines - LINES} lines left out) {record.msg}"
            self._second, self._num_lines = second, 0
        self._num_lines += 1
        return self._num_lines <= LINES


def spec(player: str | type[Player]) -> str:
    """A player as text, FILE.py:NAME for a class. Raises GameloreError for one that other processes cannot find."""
    if isinstance(player, str):
        return player
    if not isinstance(player, type):
        raise GameloreError(f"expected a player's class or name, got {player!r}; leave out the parentheses behind it")
    try:
        path = inspect.getsourcefile(player)
    except (OSError, TypeError):  # typed at a prompt
        path = None
    if path is None or not path.endswith(".py") or "." in player.__qualname__:
        raise GameloreError(
            f"expected a player's class at the top of a Python file, got {player.__qualname__}; put it into one"
        )
    return f"{Path(path).resolve()}:{player.__name__}"


def _refuse_inside_a_worker() -> None:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == "gamelore.net.worker":
        raise GameloreError('expected serve(..) under `if __name__ == "__main__":`, got it at the top of the file')


async def _serve(
    settings: WorkerSettings,
    server: dict[str, Any],
    address: str,
    port: int,
    limits: WebLimits | None,
    on_ready: Callable[[str], None],
) -> signal.Signals:
    async with AsyncExitStack() as stack:
        told = stack.enter_context(_signals())
        workers = await stack.enter_async_context(Workers(settings))
        matches = await stack.enter_async_context(PlayerServer(workers, **server))
        limits = limits or WebLimits()
        limits = replace(limits, connections=max(limits.connections, CONNECTIONS * matches.most_matches))
        try:
            port = await stack.enter_async_context(listen(matches.answer, address, port, limits))
        except OSError as error:
            raise _unusable(address, port, error) from error
        on_ready(f"http://{_shown(address)}:{port}")
        return await told


def _shown(address: str) -> str:
    """An address as a URL has it, from where it can be reached on this machine."""
    if address in EVERYWHERE:
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address


def _unusable(address: str, port: int, error: OSError) -> GameloreError:
    if error.errno == errno.EADDRINUSE:
        return GameloreError(f"expected a free port, got {port}, where a program listens already; choose another one")
    return GameloreError(f"expected an address and port of this machine, got {address} and {port}: {error.strerror}")


@contextmanager
def _signals() -> Iterator[asyncio.Future[signal.Signals]]:
    """The first Ctrl-C or SIGTERM that comes; a second one cancels the task that began this."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    first: asyncio.Future[signal.Signals] = loop.create_future()

    def tell(number: signal.Signals) -> None:
        if first.done():
            task.cancel()
        else:
            first.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, tell, number)
    try:
        yield first
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
