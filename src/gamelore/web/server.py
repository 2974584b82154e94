"""The server of the pages: NiceGUI behind a guard, with its storage in gamelore's own folder."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from ..errors import GameloreError
from .service.archive import Archive
from .service.guard import Guard, GuardSettings
from .service.rule_processes import ProcessLimits, RuleProcesses
from .service.sheet_library import SheetLibrary

RECONNECT_SECONDS = 60.0  # for which a page that lost its connection keeps its state


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Settings of the server of the pages.

    folder       folder of matches and own rulesheets
    store        knowledge store
    port         0 for any free port
    host         address at which it listens
    allow_hosts  further names by which browsers may call this machine
    sheets       folders of rulesheets
    limits       limits of the processes that know rules
    """

    folder: Path
    store: Path
    port: int
    host: str = "127.0.0.1"
    allow_hosts: tuple[str, ...] = ()
    sheets: tuple[Path, ...] = ()
    limits: ProcessLimits = field(default_factory=ProcessLimits)

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise GameloreError(f"expected a port from 0 to {(1 << 16) - 1}, got {self.port}; choose another one")


def serve_pages(settings: WebSettings, on_ready: Callable[[str], None] = lambda url: None) -> None:
    """Serve the pages until the process is interrupted, which raises KeyboardInterrupt at the end.

    A process can do this once, because NiceGUI keeps its pages in global variables.

    Args:
        settings: see `WebSettings`
        on_ready: called with the address of the start page as soon as it answers

    Raises:
        GameloreError: the address cannot be used.
    """
    with _listening(settings) as listening:
        port = listening.getsockname()[1]
        guarding = GuardSettings(port=port, names=(*_own_name(settings.host), *settings.allow_hosts))
        guarding.check_names()
        config = uvicorn.Config(
            Guard(_application(settings), guarding),
            loop="asyncio",  # the pool of processes is tested with it
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # any program could name another address in them
            server_header=False,
            ws_max_size=guarding.max_frame,
            timeout_graceful_shutdown=3,
        )
        _Server(config, lambda: on_ready(f"http://{_shown(settings.host)}:{port}/")).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that tells when it answers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def _listening(settings: WebSettings) -> socket.socket:
    """Return a socket that listens. Raise GameloreError if the address is in use or is none of this machine."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # with this protocol, asyncio sends short replies at once; else they wait for 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise GameloreError(
            f"expected to listen at {settings.host}, port {settings.port}, got {error.strerror or error}; choose "
            "another port, or 0 for any free one"
        ) from None
    return listening


def _shown(host: str) -> str:
    """Return the name of this machine in the address of a page."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)


def _application(settings: WebSettings) -> FastAPI:
    """Return the pages, and the processes behind them."""
    os.environ["NICEGUI_STORAGE_PATH"] = str(settings.folder / "nicegui")  # read when NiceGUI is imported
    from nicegui import core, ui

    from .pages import knowledge_page, network_page, play_page, rulesheet_page
    from .pages.frame import Services
    from .teaching import learning_page, tour_page

    processes = RuleProcesses(settings.limits)
    library = SheetLibrary(settings.folder / "sheets", settings.sheets)
    archive = Archive(settings.folder / "matches", processes, str(settings.store))
    services = Services(processes, library, archive, settings.store, settings.folder)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with processes:
            warming = asyncio.create_task(processes.warm_up())
            yield
            warming.cancel()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    ui.expansion.default_props("duration=0")  # while it slides open, a click misses what is inside
    for page in (play_page, learning_page, knowledge_page, rulesheet_page, network_page, tour_page):
        page.add_pages(services)
    core.app.config.socket_io_js_transports = ["websocket"]  # the guard refuses long polling
    ui.run_with(app, title="gamelore", dark=None, reconnect_timeout=RECONNECT_SECONDS, show_welcome_message=False)
    return app


def _own_name(host: str) -> tuple[str, ...]:
    """Return the address at which the server listens as an allowed host, if it is a single one."""
    is_single = host not in ("0.0.0.0", "::", "127.0.0.1", "::1", "localhost")
    return (f"[{host}]" if ":" in host else host,) if is_single else ()
