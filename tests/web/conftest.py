"""A server of the pages in a process of its own, and a real browser that opens them."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
GAMES = HERE.parents[2] / "shared" / "games"  # public rulesheets, on our machines only
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")  # the first takes half the time
HAS_FAILED = pytest.StashKey[bool]()
TIMEOUT = 120_000  # milliseconds that a test waits for something to appear; the machine may be busy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process run all tests of a module, and of all modules with tests of pages: `--dist loadgroup`.

    The tests of a module share stores and matches; those of pages share a server and a browser.
    """
    own = [item for item in items if item.path.parent == HERE]
    with_pages = {item.path for item in own if "page" in getattr(item, "fixturenames", ())}
    for item in own:
        item.add_marker(pytest.mark.xdist_group("pages" if item.path in with_pages else item.path.stem))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep whether a test failed, for the fixtures that end after it."""
    report = yield
    item.stash[HAS_FAILED] = item.stash.get(HAS_FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def web_folder(tmp_path_factory) -> Path:
    """The folder of the server."""
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="session")
def web_url(web_folder: Path) -> Iterator[str]:
    """The address of a server, without the slash at its end."""
    pytest.importorskip("nicegui", reason="the web page needs NiceGUI: pip install 'gamelore[web]'")
    command = [sys.executable, "-m", "gamelore", "web", "--port", "0", "--no-browser", "--json"]
    command += ["--folder", str(web_folder), "--knowledge", str(web_folder / "knowledge.db")]
    if GAMES.is_dir():
        command += ["--games", str(GAMES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"].rstrip("/")
        finally:
            server.terminate()


class Chromium:
    """The browser of all tests of a worker, with one context, in which loading a page takes half the time of a new one.

    Playwright's event loop is the running one only while a test browses: `asyncio.run` of other tests fails otherwise.
    """

    def __init__(self, playwright: Any, path: str) -> None:
        self._launch = partial(playwright.chromium.launch, executable_path=path, args=["--no-sandbox"])
        self.loop = asyncio.get_running_loop()
        self._browser: Any = None
        self._context: Any = None

    @contextmanager
    def browsing(self) -> Iterator[None]:
        """Let Playwright work."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self.loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def new_context(self) -> Any:
        """Return a new context with one tab."""
        if self._browser is None or not self._browser.is_connected():  # it may have crashed
            self._browser, self._context = self._launch(), None
        context = self._browser.new_context(reduced_motion="reduce")  # a turning spinner takes processor time
        context.new_page()
        return context

    def tab(self) -> Any:
        """Return the first tab of the context of all tests."""
        if self._context is None or not self._browser.is_connected():
            self._context = self.new_context()
        return self._context.pages[0]

    def close_context(self) -> None:
        """Close the context of all tests, so that the next one begins with a new one."""
        context, self._context = self._context, None
        with suppress(Exception):  # it may have crashed
            context.close()


@pytest.fixture(scope="session")
def chromium():
    """A browser. Without one, tests are skipped, or fail if GAMELORE_BROWSER is `required`."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        if os.environ.get("GAMELORE_BROWSER") == "required":
            pytest.fail("expected Chromium and Playwright, because GAMELORE_BROWSER is required, got none")
        pytest.skip("needs Chromium (apt install chromium) and Playwright")
    with sync_playwright() as playwright:
        chromium = Chromium(playwright, path)
        asyncio._set_running_loop(None)
        yield chromium
        asyncio._set_running_loop(chromium.loop)


@pytest.fixture
def new_tab(chromium: Chromium):
    """A tab of the browser in a context of its own."""
    with chromium.browsing():
        context = chromium.new_context()
        yield context.pages[0]
        context.close()


@pytest.fixture
def page(chromium: Chromium, web_url: str, request: pytest.FixtureRequest):
    """A page of the browser; errors of its scripts, and requests to other servers, fail the test."""
    with chromium.browsing():
        page = chromium.tab()
        page.set_viewport_size({"width": 1200, "height": 900})
        page.set_default_timeout(TIMEOUT)
        errors: list[str] = []
        listeners = {
            "pageerror": lambda error: errors.append(str(error)),
            "request": lambda request: errors.append(request.url) if not _is_own(request.url, web_url) else None,
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        yield page
        if request.node.stash.get(HAS_FAILED, False):
            for opened in page.context.pages:
                with suppress(Exception):  # it may have crashed
                    print(f"{opened.url}\n{opened.locator('body').inner_text(timeout=1000)}")  # pytest shows it
            chromium.close_context()
        else:
            _forget(page, web_url)
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
        assert errors == []


def _forget(page: Any, web_url: str) -> None:
    """Let the next test begin as a new visitor, in the first tab."""
    for other in page.context.pages[1:]:
        other.close()
    page.goto(f"{web_url}/favicon.ico")  # of the same site, so that Chromium keeps its process
    page.evaluate("sessionStorage.clear()")
    page.context.clear_cookies()


def _is_own(url: str, web_url: str) -> bool:
    return url.startswith((web_url, "data:", "blob:"))
