"""The page on which player servers and series of matches over the network are started, and watched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from weakref import WeakSet

from nicegui import Client, app, ui

from ...errors import GameloreError, counted
from ..service.network_desk import (
    MOST_AT_ONCE,
    MOST_CLOCK,
    MOST_MATCHES,
    MOST_PAUSE,
    MOST_PORT,
    NetworkDesk,
    SeatPlan,
    SeriesPlan,
    SeriesRun,
    ServerPlan,
    ServerRun,
    checked_address,
)
from ..service.rule_processes import OPEN_SECONDS, Rules
from .frame import Services, choice, complain, complaint, is_connected, page_frame, picture, say, text_in, told, whole
from .series_page import SeriesPage, state_text

FIRST_GAME = "shipped/tictactoe"
ELSEWHERE = "a player at another address"  # a choice in the form of a player
MOST_LISTED = 12  # earlier series
LOG_LINES = 12
INTRODUCTION = (
    "Programs of different makers play each other over the network: each is a player server, which answers the "
    "messages of a host, in the protocol of general game playing (GGP). Here you can start player servers, and be the "
    "host of a series of matches."
)
LASTING = (
    "Player servers and series go on while a page of gamelore is open in some tab, and stop about a minute after the "
    "last one is closed."
)


class PlayerForm:
    """Fields for a player: one by name, with its options, or one on the network.

    Args:
        label: what it plays
        kinds: name of each player -> `about`, `options`, and whether it `remembers`
        servers: the player servers that can be chosen; None if it must be a player by name
    """

    def __init__(
        self, label: str, kinds: Mapping[str, Any], first: str, servers: Callable[[], Iterable[ServerRun]] | None = None
    ) -> None:
        self._kinds, self._servers = kinds, servers
        test_id = "".join(mark for mark in label if mark.isalnum())
        with ui.column().classes("gap-0 w-full"):
            choices = self._choices()
            first = first if first in choices else next(iter(choices))
            self._name = choice(choices, first, label, self._chosen)
            self._name.classes("w-full").props(f"data-testid=player-{test_id}")
            self._address = ui.input("Address", placeholder="http://127.0.0.1:9147").classes("w-full gl-mono")
            self._address.props(f"dense data-testid=address-{test_id}")
            self._about = ui.label().classes("gl-faint text-sm")
            self._remembers = ui.checkbox("remembers: keeps what it learns in the store", value=False)
            with ui.expansion("Options").classes("w-full").props("dense") as self._more:
                self._options = ui.input("Options", placeholder="name=value,name=value").classes("w-full gl-mono")
                self._options.props("dense")
                self._names = ui.label().classes("gl-faint text-sm").style("overflow-wrap: anywhere")
        self._chosen()

    def offer(self) -> None:
        """Offer the servers that run now. A server that no longer runs is replaced by the first player."""
        choices = self._choices()
        if choices != self._name.options:
            value = self._name.value if self._name.value in choices else next(iter(choices))
            self._name.set_options(choices, value=value)

    def choose(self, name: str) -> None:
        """Choose a player, if it is among those that are offered."""
        if name in self._choices():
            self._name.set_value(name)

    def plan(self, store: str) -> SeatPlan:
        """Return the player as it was chosen. Raise GameloreError for an address that is none.

        A player that could remember, and shall not, gets no store; all others may read it.
        """
        name = str(self._name.value)
        if name == ELSEWHERE:
            address = checked_address(text_in(self._address))
            return SeatPlan(address, address)
        for server in self._servers() if self._servers else ():
            if server.id == name:
                return SeatPlan(server.url, f"{server.plan.player.title} at {server.url}")
        kind = self._kinds[name]
        options = text_in(self._options).strip() if kind["options"] else ""
        remembers = kind["always"] or (kind["remembers"] and self._remembers.value)
        spec = f"{name}:{options}" if options else name
        is_forgetful = kind["remembers"] and not remembers
        return SeatPlan(spec, f"{spec} (remembers)" if remembers else spec, None if is_forgetful else store)

    def is_by_name(self) -> bool:
        """Whether a player by name is chosen."""
        return self._name.value in self._kinds

    def _choices(self) -> dict[str, str]:
        servers = {server.id: _server_choice(server) for server in self._servers()} if self._servers else {}
        others = {ELSEWHERE: ELSEWHERE} if self._servers else {}
        return servers | others | {name: name for name in self._kinds}

    def _chosen(self) -> None:
        name = self._name.value
        kind = self._kinds.get(name)
        self._address.set_visibility(name == ELSEWHERE)
        self._more.set_visibility(bool(kind and kind["options"]))
        self._remembers.set_visibility(bool(kind and kind["remembers"] and not kind["always"]))
        self._about.set_text(kind["about"] if kind else _ABOUT_ADDRESS if name == ELSEWHERE else _ABOUT_SERVER)
        self._names.set_text(f"Options of {name}: {', '.join(kind['options'])}" if kind else "")


_ABOUT_ADDRESS = "a player server that somebody has started, of gamelore or another program"
_ABOUT_SERVER = "a player server of this page"


def _server_choice(server: ServerRun) -> str:
    return f"the player server {server.plan.player.title} at {server.url}"


# ---- player servers ---------------------------------------------------------------------------------------------


class ServerCard:
    """What a player server does, on a page."""

    def __init__(self, desk: NetworkDesk, server: ServerRun) -> None:
        self._desk, self._server = desk, server
        self._shown_picture: object = None
        self.element = ui.card().classes("w-full gap-1").props("data-testid=server flat bordered")
        with self.element:
            with ui.row().classes("items-center w-full gap-2"):
                ui.label(server.plan.player.title).classes("text-lg").props("role=heading aria-level=3")
                ui.space()
                self._draw_buttons()
            with ui.row().classes("items-center gap-1"):
                self._address = ui.label().classes("gl-mono").props("data-testid=address")
                self._copy = ui.button(icon="content_copy", on_click=self._copy_address)
                self._copy.props('flat dense round aria-label="copy the address of the player server"')
            self._state = ui.label().props("role=status aria-live=polite data-testid=server-state")
            self._error = ui.label().classes("text-negative").style("white-space: pre-wrap")
            self._matches = ui.label().classes("text-sm").style("white-space: pre-wrap; overflow-wrap: anywhere")
            self._board = picture("").classes("gl-board").style("max-width: 16rem")
            self._board.props('role=img aria-label="board of a match"')
            with ui.expansion("Last answers and log").classes("w-full").props("dense"):
                self._log = (
                    ui.label().classes("gl-mono text-xs").style("white-space: pre-wrap; overflow-wrap: anywhere")
                )
        self.show()

    def _draw_buttons(self) -> None:
        server = self._server
        self._stop = ui.button("Stop", icon="stop", on_click=server.stop).props("outline dense no-caps")
        self._stop.props("data-testid=stop-server")
        self._again = ui.button("Start again", icon="play_arrow", on_click=server.start).props("outline dense no-caps")
        self._remove = ui.button(icon="delete", on_click=lambda: self._desk.forget(server))
        self._remove.props('flat dense round aria-label="remove this player server"')

    def show(self) -> None:
        """Show the present state."""
        server, progress = self._server, self._server.progress
        self._address.set_text(server.url)
        self._copy.set_visibility(bool(server.url))
        self._state.set_text(server_state_text(server))
        self._error.set_text(server.error)
        self._stop.set_visibility(server.is_on and not server.is_stopping)
        self._again.set_visibility(not server.is_on)
        self._remove.set_visibility(not server.is_on)
        self._matches.set_text("\n".join(map(_served_text, progress.get("matches", ()))))
        lines = [_reply_text(reply) for reply in progress.get("replies", ())] + [
            "",
            *progress.get("log", ())[:LOG_LINES],
        ]
        self._log.set_text("\n".join(lines).strip() or "nothing yet")
        self._show_picture()

    def _show_picture(self) -> None:
        position = self._server.position
        view = position.view if position else None
        self._board.set_visibility(view is not None)
        if view is not None and view is not self._shown_picture:
            self._shown_picture = view
            self._board.set_content(view["svg"])
        elif position is not None and position.error:
            self._matches.set_text(f"{self._matches.text}\nno picture: {position.error}")

    def _copy_address(self) -> None:
        ui.clipboard.write(self._server.url)
        say("The address is in the clipboard.")


def server_state_text(server: ServerRun) -> str:
    """Return what a player server does, as text."""
    progress = server.progress
    played = f"{counted(progress.get('num_played', 0), 'match', 'matches')} played"
    if not server.is_on:
        return f"Ended; {played}"
    if server.is_stopping or progress.get("state") == "stopping":
        return f"Stopping; {played}"
    if not server.url:
        return "Starting .. (it loads the player; after an installation this takes a minute)"
    running = sum(match["stage"] in ("preparing", "playing") for match in progress["matches"])
    return f"Ready, {counted(running, 'match', 'matches')} running; {played}"


def _served_text(match: Mapping[str, Any]) -> str:
    """Return a match of a player server in a line."""
    stages = {"preparing": "gets ready", "playing": "plays", "stopped": "has played", "over": "has played"}
    startclock, playclock = match["clocks"]
    answer = f", last answer {match['reply']}" if match["reply"] else ""
    moves = counted(match["num_plies"], "move")
    return f"{stages[match['stage']]} {match['role']}: {moves}{answer} (clocks {startclock} and {playclock} s)"


def _reply_text(reply: Mapping[str, Any]) -> str:
    return f"{reply['time']} {reply['message']} answered {reply['reply']} after {reply['seconds']:.2f} s"


class ServerForm:
    """The form in which a player server is started."""

    def __init__(self, services: Services, desk: NetworkDesk, kinds: Mapping[str, Any]) -> None:
        self._services, self._desk = services, desk
        self._player = PlayerForm("Player", kinds, "gamelore")
        with ui.row().classes("gap-4"):
            self._port = ui.number("Port (0: any free one)", value=0, min=0, max=65535, format="%d")
            self._port.props("data-testid=port").classes("w-44")
            self._at_once = ui.number("Matches at once, at most", value=2, min=1, max=MOST_AT_ONCE, format="%d")
            self._at_once.classes("w-44")
        ui.button("Start the player server", icon="dns", on_click=told(self._start)).props(
            "no-caps data-testid=start-server"
        )

    async def _start(self) -> None:
        seat = self._player.plan(str(self._services.store))
        await check_player(self._services, seat.spec)
        self._desk.serve(
            ServerPlan(
                seat,
                whole(self._port, "a port", 0, MOST_PORT),
                whole(self._at_once, "matches at once", 1, MOST_AT_ONCE),
            )
        )


async def check_player(services: Services, spec: str) -> None:
    """Raise GameloreError if there is no player by this name, or pages may not set one of its options."""
    await services.processes.ask(None, "check_player", time_limit=OPEN_SECONDS, spec=spec)


# ---- series -----------------------------------------------------------------------------------------------------


class SeriesForm:
    """The form in which a series is begun."""

    def __init__(self, services: Services, desk: NetworkDesk, kinds: Mapping[str, Any]) -> None:
        self._services, self._desk, self._kinds = services, desk, kinds
        self._client = ui.context.client
        self._rules: Rules | None = None
        self._players: dict[str, PlayerForm] = {}
        sheets = services.library.labels()
        self._key = FIRST_GAME
        game = choice(sheets, FIRST_GAME, "Game", lambda event: self.load(event.value))
        game.classes("w-full").props("data-testid=game")
        self._seats = ui.column().classes("w-full gap-2")
        with ui.row().classes("gap-4"):
            self._matches = _number("Matches", 10, 1, MOST_MATCHES, "matches")
            self._startclock = _number("Seconds to prepare (startclock)", 10, 1, MOST_CLOCK, "startclock")
            self._playclock = _number("Seconds for a move (playclock)", 5, 1, MOST_CLOCK, "playclock")
            self._pause = ui.number(
                "Pause before moves, to watch (s)", value=0.5, min=0, max=MOST_PAUSE, step=0.1, format="%.1f"
            )
            self._pause.classes("w-56").props("data-testid=pause")
        self._scramble = ui.checkbox("Give players on the network the rules with other names in every match")
        ui.button("Begin the series", icon="play_arrow", on_click=told(self._begin)).props(
            "no-caps data-testid=begin-series"
        )

    async def load(self, key: str | None) -> None:
        """Load a game, and ask who plays its roles."""
        if key is None:
            return
        self._key, self._rules = key, None
        self._seats.clear()
        with self._seats:
            ui.spinner().props('aria-label="loading"')
        try:
            rules = self._services.library.rules(key)
            opened = await self._services.processes.ask(rules, "open", time_limit=OPEN_SECONDS)
        except GameloreError as error:
            opened = str(error)
        if self._key != key or self._client.is_deleted:
            return
        self._seats.clear()
        with self._seats:
            if isinstance(opened, str):
                complaint(opened)
                return
            self._rules = rules
            self._draw_seats(opened["roles"])

    def _draw_seats(self, roles: Iterable[str]) -> None:
        first = next((server.id for server in self._running()), "gamelore")
        self._players = {
            role: PlayerForm(role, self._kinds, "random" if number else first, self._running)
            for number, role in enumerate(roles)
        }

    def offer(self) -> None:
        """Offer the servers that run now."""
        for form in self._players.values():
            form.offer()

    def _running(self) -> list[ServerRun]:
        return [server for server in self._desk.servers.values() if server.url]

    async def _begin(self) -> None:
        rules = self._rules  # another game may be chosen while players are checked
        if rules is None:
            raise GameloreError("expected a game that is loaded, got none; choose another game, or wait a moment")
        store = str(self._services.store)
        seats = {role: form.plan(store) for role, form in self._players.items()}
        named = [seats[role].spec for role, form in self._players.items() if form.is_by_name()]
        for spec in named:
            await check_player(self._services, spec)
        self._check_servers(seats.values())
        plan = SeriesPlan(
            rules,
            tuple(seats),
            tuple(seats.values()),
            whole(self._matches, "matches", 1, MOST_MATCHES),
            whole(self._startclock, "a startclock in seconds", 1, MOST_CLOCK),
            whole(self._playclock, "a playclock in seconds", 1, MOST_CLOCK),
            self._scramble.value,
            float(self._pause.value or 0.0),
        )
        self._client.open(f"/network/series/{self._desk.host(plan).id}")

    def _check_servers(self, seats: Iterable[SeatPlan]) -> None:
        """Raise GameloreError if a server of this page has more roles than matches at once."""
        specs = [seat.spec for seat in seats]
        for server in self._running():
            if specs.count(server.url) > server.plan.at_once:
                raise GameloreError(
                    f"expected a player server for {specs.count(server.url)} matches at once, got {server.url}, which "
                    f"plays at most {server.plan.at_once}; start another one"
                )


def _number(label: str, value: int, least: int, most: int, test_id: str) -> ui.number:
    field = ui.number(label, value=value, min=least, max=most, format="%d").classes("w-56")
    return field.props(f"data-testid={test_id}")


# ---- the page ---------------------------------------------------------------------------------------------------


class NetworkPage:
    """Forms for player servers and series, and all of them that there are."""

    def __init__(self, services: Services, desk: NetworkDesk) -> None:
        self._services, self._desk = services, desk
        self._cards: dict[str, ServerCard] = {}
        self._listed: object = None

    def draw(self, kinds: Mapping[str, Any]) -> None:
        """Draw the page, and follow all servers and series until the page is closed."""
        ui.label("Matches over the network").classes("text-2xl").props("role=heading aria-level=1")
        ui.label(INTRODUCTION).classes("mt-2 mb-6")
        with ui.row().classes("w-full gap-8 items-start"):
            with ui.column().classes("gap-3").style("flex: 1; min-width: min(100%, 22rem)"):
                self._draw_servers(kinds)
            with ui.column().classes("gap-3").style("flex: 1; min-width: min(100%, 22rem)"):
                self._draw_series(kinds)
        ui.label(LASTING).classes("gl-faint text-sm mt-6")
        ui.context.client.on_delete(self._desk.watch(self._changed))
        self._changed()

    async def load(self) -> None:
        """Load the game that is chosen first."""
        await self._form.load(FIRST_GAME)

    def _draw_servers(self, kinds: Mapping[str, Any]) -> None:
        ui.label("Player servers").classes("text-xl").props("role=heading aria-level=2")
        ui.label("A player server waits for matches, and plays them. Programs on this machine can reach it.").classes(
            "gl-faint"
        )
        self._running = ui.column().classes("w-full gap-2")
        ServerForm(self._services, self._desk, kinds)

    def _draw_series(self, kinds: Mapping[str, Any]) -> None:
        ui.label("Host a series").classes("text-xl").props("role=heading aria-level=2")
        ui.label("The host sends the rules to the players, asks them for moves, and keeps the records.").classes(
            "gl-faint"
        )
        self._form = SeriesForm(self._services, self._desk, kinds)
        ui.label("Series so far").classes("text-lg mt-4").props("role=heading aria-level=2")
        self._kept = ui.column().classes("w-full gap-1").props("data-testid=series-list")

    def _changed(self) -> None:
        """Show what has changed."""
        servers = self._desk.servers
        for gone in self._cards.keys() - servers.keys():
            self._cards.pop(gone).element.delete()
        with self._running:
            for id, server in servers.items():
                if id not in self._cards:
                    self._cards[id] = ServerCard(self._desk, server)
        for card in self._cards.values():
            card.show()
        self._form.offer()
        self._list_series()

    def _list_series(self) -> None:
        kept = [(series, state_text(series)) for series in self._desk.kept(MOST_LISTED)]
        listed = [(series.id, state) for series, state in kept]
        if listed == self._listed:
            return
        self._listed = listed
        self._kept.clear()
        with self._kept:
            if not kept:
                ui.label("None yet. The records of all matches are kept, and can be stepped through.").classes(
                    "gl-faint"
                )
            for series, state in kept:
                self._list(series, state)

    def _list(self, series: SeriesRun, state: str) -> None:
        players = " against ".join(seat.title for seat in series.plan.seats)
        with ui.row().classes("items-center w-full no-wrap gap-2"):
            about = f"{series.plan.rules.name}: {players}. {state}"
            ui.link(about, f"/network/series/{series.id}").classes("gl-link grow").style("overflow-wrap: anywhere")
            if not series.is_on:
                ui.button(icon="delete", on_click=partial(self._desk.delete, series)).props(
                    'flat round dense aria-label="delete this series"'
                )


def _nothing() -> None:
    """Show no change."""


def add_pages(services: Services) -> None:
    """Add the pages to the server."""
    desk = NetworkDesk(services.folder / "series", services.processes)
    present: WeakSet[Client] = WeakSet()

    def stay(client: Client) -> None:
        """Let servers and series go on while any page is open, not only this one."""
        if client not in present:
            present.add(client)
            client.on_delete(desk.watch(_nothing))

    app.on_connect(stay)

    @ui.page("/network")
    async def show() -> None:
        with page_frame("Network") as main:
            ui.spinner().props('aria-label="loading"')
        if not await is_connected():
            return
        try:
            kinds = await services.processes.ask(None, "players", time_limit=OPEN_SECONDS)
        except GameloreError as error:
            return complain(str(error))
        main.clear()
        with main:
            page = NetworkPage(services, desk)
            page.draw(kinds)
        await page.load()

    @ui.page("/network/series/{series_id}")
    async def watch(series_id: str) -> None:
        with page_frame("Network") as main:
            ui.spinner().props('aria-label="loading"')
        if not await is_connected():
            return
        main.clear()
        with main:
            try:
                SeriesPage(services, desk, desk.series(series_id)).draw()
            except GameloreError as error:
                ui.label(str(error))
                ui.link("All player servers and series", "/network").classes("gl-link")
