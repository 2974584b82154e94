"""A server of the pages in a process of its own, and a real browser that opens them."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from asyncio import get_running_loop
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
GAMES = HERE.parents[2] / "shared" / "games"  # public rulesheets, on our machines only
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")  # the first takes half the time
HAS_FAILED = pytest.StashKey[bool]()
TIMEOUT = 120_000  # milliseconds that a test waits for something to appear; the machine may be busy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process run all tests of a module, which share a server and a browser: `--dist loadgroup`."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


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


class Browsing(NamedTuple):
    """A browser, and the event loop in which Playwright waits for it."""

    browser: Any
    loop: asyncio.AbstractEventLoop

    @contextmanager
    def __call__(self) -> Iterator[Any]:
        """Let Playwright work: `asyncio.run` of other tests fails while its loop is the running one."""
        asyncio._set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def browsing():
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
        browsing = Browsing(playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]), get_running_loop())
        asyncio._set_running_loop(None)
        yield browsing
        with browsing() as browser:
            browser.close()
        asyncio._set_running_loop(browsing.loop)


@pytest.fixture
def chromium(browsing):
    """A browser with no open tab."""
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def context(browsing):
    """A context of the browser with one open tab: loading a page there takes less than half the time of a new tab."""
    with browsing() as browser:
        opened = browser.new_context()
        opened.new_page()
    yield opened
    with browsing():
        opened.close()


@pytest.fixture
def page(browsing, context, web_url: str, request: pytest.FixtureRequest):
    """A page of the browser; errors of its scripts, and requests to other servers, fail the test."""
    with browsing():
        page = context.pages[0]
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
            from playwright.sync_api import Error

            for opened in context.pages:  # pytest shows it with the failure
                with suppress(Error):
                    print(f"{opened.url}\n{opened.locator('body').inner_text(timeout=1000)}")
                opened.close()  # it may have crashed
            context.new_page()
        _forget(context, web_url)
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        assert errors == []


def _forget(context, web_url: str) -> None:
    """Let the next test begin as a new visitor, in the first tab."""
    page, *others = context.pages
    for other in others:
        other.close()
    page.goto(f"{web_url}/favicon.ico")  # of the same site, so that Chromium keeps its process
    page.evaluate("sessionStorage.clear()")
    context.clear_cookies()


def _is_own(url: str, web_url: str) -> bool:
    return url.startswith((web_url, "data:", "blob:"))
