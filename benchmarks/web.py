"""Measure the web page under load: `python benchmarks/web.py --clients 49 --seconds 60`.

Starts the server, one real browser, and clients that speak the protocol of the page over websockets. Each client plays
matches of its own between two people, one click a second; another page watches a search that never stops. Printed are
the times from a click until the position after it is there, in the browser and in the clients; the times until a page
is first painted; and the memory of the server with all its processes (proportional set size).

Needs NiceGUI, Playwright and Chromium.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
import socketio
import typer
from playwright.async_api import Page, async_playwright

from gamelore.rulesheets import path

GAMES = ("breakthrough", "connectfour", "othello4", "connect3", "fivemensmorris")
MATCHES = 9  # prepared for each client, fewer than 500 in all; a new one begins when one is over
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
OPEN_SECONDS = 120.0  # in which a page must show its board
FIRST_CLICK = 20.0  # seconds in which all clients connect before clicks count
# Watch the picture of the board: `shown` is the time of its last change.
WATCH = """() => {
  window.shown = 0;
  new MutationObserver(() => { window.shown = performance.now(); })
    .observe(document.querySelector('.gl-board'), { childList: true, subtree: true });
}"""
CLICK = """() => {
  const place = document.querySelector('rect.gl-next');
  if (!place) return false;
  window.clicked = performance.now();
  place.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  return true;
}"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


# ---- the server -------------------------------------------------------------------------------------------------


def prepare(folder: Path, clients: int) -> list[list[str]]:
    """Write matches into the folder of the server; return their ids, a list for each client, and that of the search."""
    (folder / "matches").mkdir(parents=True)
    people, search = ["person", False], ["gamelore", False]
    ids = [[_match(folder, GAMES[c % len(GAMES)], people, 1.0) for _ in range(MATCHES)] for c in range(clients)]
    browser = [_match(folder, "connectfour", people, 1.0) for _ in range(MATCHES)]
    return [*ids, browser, [_match(folder, "breakthrough", search, 60.0)]]


def _match(folder: Path, game: str, seat: Sequence[Any], seconds: float) -> str:
    """Write a match that has not begun; return its id."""
    text, match = path(game).read_text(encoding="utf-8"), secrets.token_urlsafe(9)
    roles = re.findall(r"^\(role (\S+)\)", text, re.MULTILINE)
    kept = {"id": match, "game": game, "rules": text, "roles": [], "seats": {role: seat for role in roles}}
    kept |= {"plies": [], "choosers": [], "pace": [seconds, seconds, 0.3], "learned": -1}
    (folder / "matches" / f"{match}.json").write_text(json.dumps(kept))
    return match


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int]]:
    """Run a server; yield its address and its process id."""
    command = [
        sys.executable,
        "-m",
        "gamelore",
        "web",
        "--port",
        "0",
        "--no-browser",
        "--json",
        "--folder",
        str(folder),
    ]
    command += ["--knowledge", str(folder / "knowledge.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"].rstrip("/"), server.pid
        finally:
            server.terminate()


def memory(pid: int) -> dict[str, float]:
    """Return the memory of a process and of all below it in MiB: the server's own, and that of its children."""
    below: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        fields = status.read_text().rpartition(")")[2].split()
        below.setdefault(int(fields[1]), []).append(int(status.parent.name))
    children, waiting = list[int](), [pid]
    while waiting:
        waiting += below.get(waiting.pop(), [])
        children += waiting[-1:]
    all_below = {child for parent in [pid, *children] for child in below.get(parent, [])}
    return {"server": _pss(pid), "children": sum(map(_pss, all_below)), "processes": len(all_below)}


def _pss(pid: int) -> float:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024


# ---- clients ----------------------------------------------------------------------------------------------------


class Client:
    """A page without a browser: it plays its matches, one click a second, and notes how long each click takes."""

    def __init__(self, url: str, matches: Sequence[str], clicks: bool) -> None:
        self._url, self._matches, self._clicks = url, iter(matches), clicks
        self.times: list[float] = []
        self.opened: list[float] = []
        self.errors: list[str] = []
        self.is_idle = False  # whether all its matches were over before the end

    async def run(self, begin: float, end: float) -> None:
        """Play until a time of `time.monotonic`, or until all matches are over."""
        for match in self._matches:
            await self._play(match, begin, end)
            if time.monotonic() > end:
                return
        self.is_idle = True

    async def _play(self, match: str, begin: float, end: float) -> None:
        asked = time.monotonic()
        page = await asyncio.to_thread(_page, f"{self._url}/play/{match}")
        query = json.loads(re.search(r"query: (\{.*?\})", page)[1].replace("'", '"').replace("True", "true"))  # type: ignore[index]
        query |= {"document_id": secrets.token_hex(8), "tab_id": secrets.token_hex(8)}
        shown, changed, board = dict[str, Any](), asyncio.Event(), dict[str, Any]()
        socket = socketio.AsyncClient(reconnection=False)

        @socket.on("update")
        def update(elements: dict[str, Any]) -> None:
            for number, element in elements.items():
                if isinstance(element, dict) and "paths" in (element.get("props") or {}):
                    board.update(id=int(number), events=element["events"])
                    shown.update(element["props"])
                    changed.set()

        address = f"{self._url}?{urlencode({name: str(value).lower() for name, value in query.items()})}"
        await socket.connect(
            address, headers={"Origin": self._url}, transports=["websocket"], socketio_path="/_nicegui_ws/socket.io"
        )
        try:
            await asyncio.wait_for(changed.wait(), OPEN_SECONDS)
            self.opened.append(time.monotonic() - asked)
            while time.monotonic() < end:
                ply, paths = shown["ply"], shown["paths"]
                if self._clicks and any(paths):
                    await self._click(socket, query["client_id"], board, shown, changed, begin)
                    if shown["ply"] == ply:
                        break
                elif self._clicks and ply:
                    break  # the match is over
                await asyncio.sleep(1.0 * (0.5 + np.random.default_rng().random()))
        finally:
            await socket.disconnect()

    async def _click(
        self,
        socket: socketio.AsyncClient,
        client: str,
        board: dict[str, Any],
        shown: dict[str, Any],
        changed: asyncio.Event,
        begin: float,
    ) -> None:
        """Make a random move, and wait for the next position."""
        ply, moves = shown["ply"], [number for number, path in enumerate(shown["paths"]) if path]
        move = {"indices": [int(np.random.default_rng().choice(moves))], "ply": ply}
        (listener,) = [event["listener_id"] for event in board["events"] if event["type"] == "move"]
        clicked = time.monotonic()
        message = {"id": board["id"], "client_id": client, "listener_id": listener, "args": [json.dumps(move)]}
        await socket.emit("event", message)
        while shown["ply"] == ply and time.monotonic() < clicked + 10:
            changed.clear()
            try:
                await asyncio.wait_for(changed.wait(), 10)
            except TimeoutError:
                self.errors.append("no answer within 10 s")
        if shown["ply"] != ply and clicked > begin:
            self.times.append(time.monotonic() - clicked)


def _page(url: str) -> str:
    with urlopen(Request(url), timeout=60) as reply:
        return str(reply.read().decode())


# ---- the browser ------------------------------------------------------------------------------------------------


async def browse(page: Page, url: str, matches: Sequence[str], begin: float, end: float) -> list[float]:
    """Click once a second in a browser; return the seconds from each click until the picture has changed."""
    times, ids = list[float](), iter(matches)
    while time.monotonic() < end:
        await page.goto(f"{url}/play/{next(ids)}")
        await page.wait_for_selector("rect.gl-next", timeout=120_000)
        await page.evaluate(WATCH)
        while time.monotonic() < end and await page.evaluate(CLICK):
            await page.wait_for_function("() => window.shown > window.clicked", timeout=30_000)
            if time.monotonic() > begin:
                times.append(await page.evaluate("() => (window.shown - window.clicked) / 1000"))
            await asyncio.sleep(1.0)
            await page.wait_for_timeout(50)
    return times


async def paints(browser: Any, url: str) -> tuple[list[float], list[float]]:
    """Return the seconds until the first paint of the start page: with an empty cache, and with a full one."""
    cold, warm = list[float](), list[float]()
    for _ in range(5):
        context = await browser.new_context()
        page = await context.new_page()
        for times in (cold, warm):
            await page.goto(url)
            await page.wait_for_timeout(3000)
            times.append(float(await page.evaluate(PAINT)) / 1000)
        await context.close()
    return cold, warm


async def load(url: str, pid: int, matches: list[list[str]], seconds: float) -> dict[str, Any]:
    """Measure all; return the figures."""
    *ids, of_browser, of_search = matches
    executable = next(filter(None, map(shutil.which, BROWSERS)))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        cold, warm = await paints(browser, url)
        begin = time.monotonic() + FIRST_CLICK
        end = begin + seconds
        clients = [Client(url, own, clicks=True) for own in ids]
        searching = Client(url, of_search, clicks=False)
        page = await browser.new_page()
        tasks = [asyncio.create_task(client.run(begin, end)) for client in [*clients, searching]]
        in_browser = await browse(page, url, of_browser, begin, end)
        used = memory(pid)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        await browser.close()
    errors = [repr(error) for error in done if error] + [error for client in clients for error in client.errors]
    in_clients = [seconds for client in clients for seconds in client.times]
    return {
        "browser": quantiles(in_browser),
        "clients": quantiles(in_clients),
        "a page of a client opens": quantiles([seconds for client in clients for seconds in client.opened]),
        "first paint, empty cache": quantiles(cold),
        "first paint, full cache": quantiles(warm),
        "memory in MiB": used,
        "clients without matches at the end": sum(client.is_idle for client in clients),
        "errors": errors,
    }


def quantiles(times: Sequence[float]) -> dict[str, float]:
    """Return number, median and 95th percentile, in milliseconds."""
    if not times:
        return {"number": 0}
    low, high = np.quantile(times, [0.5, 0.95]) * 1000
    return {"number": len(times), "median": round(float(low)), "95 %": round(float(high))}


def main(
    clients: Annotated[int, typer.Option(min=1, help="Number of clients beside the browser.")] = 49,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds of clicks.")] = 60.0,
) -> None:
    """Measure the web page under load."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "web"
        matches = prepare(folder, clients)
        with served(folder) as (url, pid):
            figures = asyncio.run(load(url, pid, matches, seconds))
    print(f"{clients} clients and a browser, {os.cpu_count()} cores; milliseconds")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    typer.run(main)
