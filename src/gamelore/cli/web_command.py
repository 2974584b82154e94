"""web: open the page on which to play, to watch learning, and to look into what is remembered."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer
from typer import Option

from . import console
from .console import Json, KnowledgeFile, num_bytes

app = typer.Typer()


@console.command(
    app,
    "web",
    "web",
    "web --port 8080 --no-browser",
    "web --games ~/rulesheets --knowledge knowledge.db",
    "web --address 0.0.0.0 --allow-host box.local",
    kept="matches, rulesheets and knowledge are on disk",
)
def web(
    port: Annotated[int, Option(min=0, max=65535, help="Port of the page; 0 for any free port.")] = 8460,
    games: Annotated[
        list[Path] | None, Option(metavar="FOLDER", help="A folder of rulesheets (.kif) to offer; repeatable.")
    ] = None,
    knowledge: KnowledgeFile = None,
    folder: Annotated[
        Path | None,
        Option(
            metavar="FOLDER", help="Where matches and own rulesheets are kept.", show_default="the user's data folder"
        ),
    ] = None,
    no_browser: Annotated[bool, Option("--no-browser", help="Do not open a browser.")] = False,
    address: Annotated[
        str, Option(help="Address of this machine at which to listen; 0.0.0.0 for all its addresses.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Another name by which browsers may call this machine; repeatable."),
    ] = None,
    memory: Annotated[
        int, Option(parser=num_bytes, metavar="SIZE", help="Memory of each process that plays games.")
    ] = "3G",  # type: ignore[assignment]  # the parser reads it
    json: Json = False,
) -> None:
    """Open a page in the browser: play any game, watch learning happen, see what is remembered, write rulesheets.

    By default, only this machine can open the page. Who can open it can play, learn and delete: give another address
    only in a network that you trust. Rules are read and played in separate processes with limits on memory and time.
    Ctrl-C ends the server; matches go on where they were when it starts again.
    """
    if find_spec("nicegui") is None:
        console.fail("expected NiceGUI for the web page, got none; pip install 'gamelore[web]'")
    import platformdirs

    from ..learning.store.knowledge import default_path
    from ..web.server import WebSettings, serve_pages
    from ..web.service.rule_processes import ProcessLimits

    def on_ready(url: str) -> None:
        typer.echo(dumps({"url": url}) if json else f"gamelore is at {url}; Ctrl-C stops it")
        if not no_browser:
            # the server answers meanwhile: some browsers hold the call until they are closed
            Thread(target=webbrowser.open, args=[url], name="browser", daemon=True).start()

    settings = WebSettings(
        host=address,
        port=port,
        allow_hosts=tuple(allow_host or ()),
        folder=folder or Path(platformdirs.user_data_dir("gamelore", appauthor=False)) / "web",
        store=Path(knowledge) if knowledge else default_path(),
        sheets=tuple(games or ()),
        limits=ProcessLimits(memory=memory),
    )
    serve_pages(settings, on_ready)
