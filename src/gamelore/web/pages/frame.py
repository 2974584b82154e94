"""What all pages share: the services behind them, the header with its links, colours, and messages."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from nicegui import ui
from nicegui.events import ClickEventArguments, GenericEventArguments

from ...errors import GameloreError
from ..service.archive import Archive
from ..service.rule_processes import RuleProcesses
from ..service.sheet_library import SheetLibrary

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

LINKS = {
    "Play": "/",
    "Watch learning": "/learning",
    "Knowledge": "/knowledge",
    "Rulesheets": "/rulesheets",
    "Network": "/network",
    "Tour": "/tour",
}
YEAR = 31_536_000  # seconds
CONNECT_SECONDS = 60.0  # within which a browser opens the connection to its page
MOST_DETAILS = 10  # lines of a question
PRIMARY = "#1d5fa8"  # white text on it has a contrast of 6.5
_STYLE = """
:root { --gl-ink: #22262b; --gl-faint: #5b6570; --gl-paper: #ffffff; --gl-accent: #1d5fa8; }
body.body--dark { --gl-ink: #e8eaed; --gl-faint: #b4bcc6; --gl-paper: #1a1d21; --gl-accent: #8ab8ee; }
.gl-page { max-width: 76rem; margin: 0 auto; padding: 0.75rem 1rem 3rem; width: 100%; }
.gl-faint { color: var(--gl-faint); }
.gl-board { width: 100%; position: relative; }
.gl-board svg { width: 100%; max-width: 40rem; height: auto; }
.gl-board svg, .gl-picture svg { background: #ffffff; border-radius: 6px; }
.gl-board rect.place { outline: none; }
.gl-board rect.gl-next { cursor: pointer; fill: rgba(29, 95, 168, 0.07); }
.gl-board rect.gl-next:hover { fill: rgba(29, 95, 168, 0.2); }
.gl-board rect.gl-clicked { fill: rgba(29, 95, 168, 0.3); stroke: #1d5fa8; stroke-width: 3; }
.gl-board rect.place:focus-visible { stroke: #b3261e; stroke-width: 3; }
.gl-spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.gl-picture svg { max-width: 100%; height: auto; }
.gl-mono { font-family: ui-monospace, Consolas, monospace; }
body.body--dark .text-negative { color: #ff9b92 !important; }
body.body--dark :is(.q-btn--outline, .q-btn--flat, .q-field, .q-linear-progress, .q-item, .q-tab) {
  --q-primary: var(--gl-accent); }
header :focus-visible { outline-color: #ffffff; }
a.gl-spoken:focus { position: static; width: auto; height: auto; clip-path: none; color: #ffffff; padding: 0 0.5rem; }
body.body--dark .text-primary { color: var(--gl-accent) !important; }
body.body--dark .q-btn.bg-primary { background: #8ab8ee !important; color: #14181d !important; }
.q-notification .q-btn { color: #ffffff !important; }
a.gl-link { color: var(--gl-accent); text-decoration: underline; }
:focus-visible { outline: 3px solid var(--gl-accent); outline-offset: 2px; }
@media (prefers-reduced-motion: reduce) { .q-spinner, .q-spinner * { animation: none !important; } }
"""


@dataclass(frozen=True)
class Services:
    """What the pages use: processes that know rules, rulesheets, matches, the knowledge store, and their folder."""

    processes: RuleProcesses
    library: SheetLibrary
    archive: Archive
    store: Path
    folder: Path


def rulesheet_address(key: str) -> str:
    """Return the address of the page of a sheet."""
    return f"/rulesheets?sheet={quote(key)}"


@contextmanager
def page_frame(title: str) -> Iterator[ui.element]:
    """Draw the header of a page; what is drawn inside the `with` block is its main part, which is yielded."""
    ui.page_title(f"{title} - gamelore")
    ui.add_css(_STYLE)
    ui.colors(primary=PRIMARY, dark="#1a1d21")
    dark = ui.dark_mode(_COLOURS.get(cookie("colours")))
    with ui.header(elevated=False).classes("items-center gap-1 px-3 py-1"):
        ui.html('<a class="gl-spoken" href="#main">Skip to the main part</a>', sanitize=True)
        ui.link("gamelore", "/").classes("text-white text-lg no-underline font-bold mr-3")
        with ui.element("nav").classes("row items-center gap-1 gt-sm").props('aria-label="pages"'):
            for name, target in LINKS.items():
                _nav_link(name, target, name == title)
        ui.space()
        _dark_button(dark)
        with ui.button(icon="menu").props('flat round color=white aria-label="pages"').classes("lt-md"), ui.menu():
            for name, target in LINKS.items():
                ui.menu_item(name, on_click=lambda target=target: ui.navigate.to(target))
    with ui.element().classes("gl-page").props("id=main") as main:  # NiceGUI puts it into a <main>
        yield main


def _nav_link(name: str, target: str, is_here: bool) -> None:
    link = ui.link(name, target).classes("text-white no-underline px-2 py-1 rounded")
    if is_here:
        link.classes("bg-white/20").props("aria-current=page")


def _dark_button(dark: ui.dark_mode) -> None:
    def turn() -> None:
        value = None if dark.value is False else dark.value is None  # automatic, dark, bright
        dark.set_value(value)
        keep_in_browser("colours", _WORDS[value])
        button.props(f'icon={_ICONS[value]} aria-label="colours: {_WORDS[value]}"')
        tip.set_text(f"colours: {_WORDS[value]}")

    word = _WORDS[dark.value]
    with ui.button(icon=_ICONS[dark.value], on_click=turn).props(
        f'flat round color=white aria-label="colours: {word}"'
    ) as button:
        tip = ui.tooltip(f"colours: {word}")


_ICONS = {None: "brightness_auto", True: "dark_mode", False: "light_mode"}
_WORDS = {None: "automatic", True: "dark", False: "light"}
_COLOURS = {word: value for value, word in _WORDS.items()}


def cookie(name: str) -> str:
    """Return what the browser keeps for gamelore under a name; empty if it keeps nothing."""
    request = ui.context.client.request
    return unquote(request.cookies.get(f"gamelore-{name}", "")) if request else ""


def keep_in_browser(name: str, text: str) -> None:
    """Let the browser keep a text, which `cookie` returns on the next pages."""
    value = json.dumps(f"gamelore-{name}={quote(text)}; path=/; max-age={YEAR}; samesite=strict")
    ui.run_javascript(f"document.cookie = {value}")


def choice(options: Mapping[str, str], value: str | None, label: str, on_change: Callable[..., Any]) -> ui.select:
    """Draw a field in which one chooses by clicks, or by typing a name and Enter.

    Args:
        options: value -> what is shown
        value: the first value
        label: name of the field
        on_change: called with the event of a new value
    """
    field = ui.select({**options}, value=value, label=label, with_input=True, on_change=on_change)

    def take(event: GenericEventArguments) -> None:
        text = str(event.args).strip().lower()
        offered = {key: str(shown).lower() for key, shown in dict(field.options).items()}  # they may have changed
        fitting = [key for key, shown in offered.items() if shown == text]
        if not fitting and text:
            fitting = [key for key, shown in offered.items() if text in shown]
        if len(fitting) == 1:
            field.set_value(fitting[0])

    # the text is used unless one of the listed options is marked, which Enter chooses
    typed = f"(event) => getElement({field.id}).$refs.qRef.getOptionIndex() < 0 && emit(event.target.value)"
    field.on("keydown.enter", take, js_handler=typed)
    return field


async def is_connected() -> bool:
    """Wait until the browser is connected to the present page; return False if it never is, or the page is closed."""
    client = ui.context.client
    try:
        await client.connected(timeout=CONNECT_SECONDS)
    except TimeoutError:
        return False
    return not client.is_deleted


def told(action: Callable[[], Awaitable[Any]]) -> Callable[[ClickEventArguments], Awaitable[None]]:
    """Return the answer to a button: it turns until the action is done, and an error of gamelore is shown."""

    async def answer(event: ClickEventArguments) -> None:
        event.sender.props("loading")
        try:
            await action()
        except GameloreError as error:
            if not event.client.is_deleted:
                complain(str(error))
        finally:
            if not event.sender.is_deleted:
                event.sender.props(remove="loading")

    return answer


async def answer_of(dialog: ui.dialog) -> Any:
    """Show a dialog, and return what it is submitted with; None if it is closed, or deleted with its page."""
    answer = await dialog
    if not dialog.is_deleted:
        dialog.delete()
    return answer


def text_in(field: ui.input) -> str:
    """Return the text in a field. A browser may have sent anything as its value."""
    return field.value if isinstance(field.value, str) else ""


def place_on(value: Any) -> int:
    """Return the place of a slider. A browser may have sent anything as its value."""
    is_number = isinstance(value, int | float) and abs(value) < 1e9
    return max(0, int(value)) if is_number else 0


async def agreed(question: str, yes: str, details: Sequence[str] = ()) -> bool:
    """Ask the person at the page whether to do something.

    Args:
        question: the question
        yes: what the button says
        details: lines below the question; only the first ones are shown
    """
    with ui.dialog() as dialog, ui.card():
        heading(question)
        for line in details[:MOST_DETAILS]:
            ui.label(line).style("overflow-wrap: anywhere")
        if len(details) > MOST_DETAILS:
            ui.label(f"and {len(details) - MOST_DETAILS} more")
        with ui.row():
            ui.button(yes, on_click=lambda: dialog.submit(True)).props("data-testid=agree")
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat")
    return bool(await answer_of(dialog))


def heading(text: str, level: int = 2) -> ui.label:
    """Draw a heading of a level from 1 to 3, which screen readers find."""
    size = {1: "text-2xl", 2: "text-lg mt-4", 3: "text-base font-bold mt-2"}[level]
    return ui.label(text).classes(size).style("overflow-wrap: anywhere").props(f"role=heading aria-level={level}")


def attribute_text(text: str) -> str:
    """Return a text for an attribute of an element: letters, digits and some signs only."""
    return "".join(mark if mark.isalnum() or mark in " :=,._-" else " " for mark in text)[:60]


def whole(field: ui.number, what: str, least: int, most: int) -> int:
    """Return the whole number in a field. Raise GameloreError if it has none, or one that is too small or large."""
    value = field.value
    if not isinstance(value, int | float) or value != int(value) or not least <= value <= most:
        got = "nothing" if value is None else value
        raise GameloreError(
            f"expected a whole number for {what} from {least:,} to {most:,}, got {got}; choose another number"
        )
    return int(value)


def complain(text: str) -> None:
    """Show an error on the page until it is closed."""
    ui.notify(text, type="negative", multi_line=True, timeout=10_000, close_button="Close", position="top")


def say(text: str) -> None:
    """Show a message on the page for some seconds."""
    ui.notify(text, position="top")


def picture(svg: str) -> ui.html:
    """Show a picture that gamelore drew; its texts were escaped when it was drawn."""
    return ui.html(svg, sanitize=False).classes("gl-picture")


def waiting(text: str) -> None:
    """Show that something is computed."""
    with ui.row().classes("items-center gap-3").props("role=status"):
        ui.spinner(size="1.5em")
        ui.label(text)


async def fill(
    area: ui.element, asked: Awaitable[Answer], draw: Callable[[Answer], None], text: str = "loading"
) -> None:
    """Wait for an answer, and draw it into an area, or the error.

    Args:
        area: where to draw; what is there is removed
        asked: the answer
        draw: draws it
        text: what is shown until it comes
    """
    area.clear()
    with area:
        waiting(text)
    try:
        answer = await asked
    except GameloreError as error:
        drawn: Callable[[], None] = partial(complaint, str(error))
    else:
        drawn = partial(draw, answer)
    if area.is_deleted:
        return
    area.clear()
    with area:
        drawn()


def complaint(text: str) -> None:
    """Show an error where something else should be."""
    ui.label(text).classes("text-negative").style("white-space: pre-wrap").props("role=alert")
