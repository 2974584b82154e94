"""The pages on which games are played: the start of a match, and the match itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count, islice
from typing import Any, TypeVar

from nicegui import background_tasks, ui
from nicegui.events import UploadEventArguments

from ...errors import GameloreError, counted
from ...net.pool import WorkerDied
from ..service.rule_processes import OPEN_SECONDS, Rules
from ..service.shared_match import MOST_MOVE_SECONDS, SOLVE_SECONDS, MatchPace, SharedMatch, TakenSeat, joint_text
from .clickable_board import ClickableBoard
from .frame import (
    Services,
    answer_of,
    attribute_text,
    choice,
    complain,
    complaint,
    cookie,
    is_connected,
    keep_in_browser,
    page_frame,
    picture,
    place_on,
    rulesheet_address,
    text_in,
    told,
    waiting,
)
from .seat_form import SeatForm

MOST_LISTED = 200  # moves in a list; the filter finds the others
SLICE, MOST_SLICES = 0.4, 25  # seconds of a step of the search that shows what it thinks, and number of steps
MOST_RECENT = 12
MOST_SHOWN_RULES = 100_000  # letters
MOST_ROWS = 10  # of the first page of a table
FIRST_GAME = "shipped/connectfour"
FIRST_TIME = "gamelore starts. The first time, it is compiled for this computer, which takes a minute or two"
Answer = TypeVar("Answer")


# ---- the start of a match ---------------------------------------------------------------------------------------


class StartPage:
    """The form in which game and seats are chosen, and the list of the last matches."""

    def __init__(self, services: Services, key: str) -> None:
        self._services = services
        self._key = key
        self._choices: dict[str, str] = {}
        self._seats: list[SeatForm] = []
        self._rules: Rules | None = None
        self._client = ui.context.client

    async def draw(self) -> None:
        """Draw the page, and then load the game that is chosen first."""
        with page_frame("Play"):
            ui.label("Play any game").classes("text-2xl").props("role=heading aria-level=1")
            with ui.row().classes("w-full gap-8 items-start"):
                with ui.column().classes("grow gap-3").style("min-width: min(100%, 22rem); flex: 2"):
                    self._draw_choice()
                    self._form = ui.column().classes("w-full gap-3")
                with ui.column().classes("grow gap-2").style("min-width: min(100%, 18rem); flex: 1"):
                    self._draw_recent()
        if not await is_connected():
            return
        await self._load(self._key)

    def _draw_choice(self) -> None:
        sheets = self._services.library.labels()
        self._key = self._key if self._key in sheets else FIRST_GAME
        game = choice(sheets, self._key, "Game", lambda event: self._load(event.value))
        game.classes("w-full").props("data-testid=game")

    async def _load(self, key: str | None, choices: Mapping[str, str] | None = None) -> None:
        """Load a game, and ask who plays its roles."""
        if key is None:
            return
        self._key, self._choices, self._rules = key, dict(choices or {}), None
        asked = self._choices
        self._form.clear()
        with self._form:
            is_new = not self._services.processes.is_prepared
            waiting(FIRST_TIME if is_new else "Loading the game; a large one takes a minute")
        try:
            rules = self._services.library.rules(key, self._choices)
            processes = self._services.processes
            opened = await processes.ask(rules, "open", time_limit=OPEN_SECONDS)
            view = await processes.ask(rules, "view", time_limit=OPEN_SECONDS, plies=[])
            kinds = await processes.ask(None, "players", time_limit=OPEN_SECONDS)
        except GameloreError as error:
            shown = partial(self._draw_refusal, key, str(error))
        else:
            shown = partial(self._draw_form, rules, opened, view, kinds)
        if asked is self._choices and not self._form.is_deleted:  # nothing else was chosen meanwhile
            self._form.clear()
            with self._form:
                shown()

    def _draw_refusal(self, key: str, error: str) -> None:
        complaint(error)
        ui.link("Open it in the editor", rulesheet_address(key)).classes("gl-link")

    def _draw_form(
        self, rules: Rules, opened: Mapping[str, Any], view: Mapping[str, Any], kinds: Mapping[str, Any]
    ) -> None:
        keep_in_browser("game", self._key)
        self._rules = rules
        if about := self._services.library.sheet(self._key).about:
            ui.label(about).classes("gl-faint")
        self._draw_options(opened["options"])
        with ui.row().classes("w-full items-start gap-6"):
            with ui.column().classes("gap-2 grow"):
                roles = opened["roles"]
                self._seats = [
                    SeatForm(role, TakenSeat() if number == 0 else TakenSeat("gamelore"), kinds)
                    for number, role in enumerate(roles)
                ]
                self._seconds = ui.number(
                    "Seconds for a move", value=1, min=0.1, max=MOST_MOVE_SECONDS, step=0.1, format="%.1f"
                )
                self._seconds.classes("w-44")
                ui.button("Start", icon="play_arrow", on_click=told(self._start)).props("data-testid=start")
            if opened["has_board"]:
                picture(view["svg"]).style("max-width: 16rem")

    def _draw_options(self, options: Mapping[str, Any]) -> None:
        """Draw a field for each option of the rulesheet; a new value loads the game again."""
        with ui.row():
            for name, (value, values) in options.items():
                load = partial(self._load_with, name)
                if values:
                    ui.select(values, value=value, label=name, on_change=lambda event, load=load: load(event.value))
                else:
                    field = ui.input(name, value=value)
                    field.on("keydown.enter", lambda load=load, field=field: load(field.value))

    async def _load_with(self, option: str, value: str) -> None:
        await self._load(self._key, {**self._choices, option: value})

    async def _start(self) -> None:
        rules = self._rules  # another game may be chosen while players are checked
        assert rules is not None
        seats = {form.role: form.seat for form in self._seats}
        for seat in seats.values():
            if not seat.is_person:
                await self._services.processes.ask(None, "check_player", time_limit=OPEN_SECONDS, spec=seat.player)
        seconds = float(self._seconds.value or 1.0)
        match = self._services.archive.new(
            rules=rules, seats=seats, pace=MatchPace(seconds, min(2 * seconds, MOST_MOVE_SECONDS))
        )
        await match.open()
        self._client.open(f"/play/{match.id}")

    # ---- earlier matches ----------------------------------------------------------------------------------------

    def _draw_recent(self) -> None:
        ui.label("Your matches").classes("text-lg").props("role=heading aria-level=2")
        recent = [*islice(self._services.archive.kept(), MOST_RECENT)]
        if not recent:
            ui.label("None yet. A match is kept after every move, and can be continued here.").classes("gl-faint")
        for kept in recent:
            with ui.row().classes("items-center w-full no-wrap gap-2") as row:
                about = f"{kept.game}: {' - '.join(kept.players)}, {counted(kept.num_plies, 'ply', 'plies')}"
                with ui.column().classes("gap-0 grow"):
                    ui.link(about, f"/play/{kept.id}").classes("gl-link")
                    changed = datetime.fromtimestamp(kept.changed).strftime("%Y-%m-%d %H:%M")
                    ui.label(f"{changed}{kept.result and '; '}{kept.result}").classes("gl-faint text-sm")
                ui.button(icon="delete", on_click=partial(self._delete, kept.id, row)).props(
                    f'flat round dense aria-label="delete this match of {attribute_text(kept.game)}"'
                )
        ui.label("Open a match record").classes("text-lg mt-4").props("role=heading aria-level=2")
        ui.label("A GGP record of the chosen game, of gamelore or another program.").classes("gl-faint")
        ui.upload(label="record.json", auto_upload=True, max_file_size=1_500_000, on_upload=self._open_record).classes(
            "w-full"
        ).props('accept=".json" flat bordered')

    def _delete(self, match_id: str, row: ui.row) -> None:
        self._services.archive.delete(match_id)
        row.delete()

    async def _open_record(self, event: UploadEventArguments) -> None:
        if self._rules is None:
            return complain("expected a game, got none; choose the game of the record first")
        try:
            text = (await event.file.read()).decode("utf-8", "replace")
            record = await self._services.processes.ask(self._rules, "replay", time_limit=OPEN_SECONDS, text=text)
            match = self._services.archive.new(rules=self._rules)
            match.plies, match.choosers = record["plies"], [[] for _ in record["plies"]]
            await match.open()
            match.keep(match)
            ui.navigate.to(f"/play/{match.id}")
        except GameloreError as error:
            complain(str(error))


# ---- a match ----------------------------------------------------------------------------------------------------


class MatchPage:
    """The page of a match: its board, its moves, its seats, and what a search thinks about the shown position."""

    def __init__(self, services: Services, match: SharedMatch, kinds: Mapping[str, Any]) -> None:
        self._services, self._match, self._kinds = services, match, kinds
        self._seats: dict[str, TakenSeat] = {}  # as they are listed
        self._shown: int | None = None  # ply of an earlier position that is shown; None for the present one
        self._listed: tuple[str, int, list[str]] | None = None  # whose moves are listed at which ply, and the moves
        self._view: Mapping[str, Any] | None = None
        self._thinking: asyncio.Task[None] | None = None
        self._turned: ui.button | None = None  # the button that stops it
        self._opinion: Mapping[str, Any] | None = None
        self._is_fresh = False

    def draw(self) -> None:
        """Draw the page, and follow the match until the page is closed."""
        ui.label(self._match.rules.name).classes("text-2xl").props("role=heading aria-level=1")
        with ui.row().classes("w-full gap-6 items-start"):
            with ui.column().classes("gap-2").style("flex: 3; min-width: min(100%, 20rem)"):
                self._draw_board()
            with ui.column().classes("gap-3").style("flex: 2; min-width: min(100%, 18rem)"):
                self._draw_side()
        client = ui.context.client
        client.on_delete(self._match.watch(self._changed))
        client.on_delete(self._rest)
        self._changed()

    def _draw_board(self) -> None:
        self._status = ui.label().classes("text-lg").props("role=status aria-live=polite data-testid=status")
        self._error = ui.label().classes("text-negative").style("white-space: pre-wrap")
        self._again = ui.button("Try again", icon="refresh", on_click=self._match.try_again).props("outline dense")
        self._board = ClickableBoard(self._clicked, f"board of {attribute_text(self._match.rules.name)}")
        self._menu = ui.row().classes("items-center gap-2")
        with ui.row().classes("items-center w-full no-wrap gap-1"):
            for icon, label, step in _STEPS:
                ui.button(icon=icon, on_click=partial(self._step, step)).props(f'flat dense round aria-label="{label}"')
            self._slider = ui.slider(min=0, max=1, value=0, on_change=lambda event: self._slide(place_on(event.value)))
            self._slider.classes("grow").props('label aria-label="position of the match"')
        with ui.row().classes("gap-2 items-center"):
            ui.button("Undo", icon="undo", on_click=self._undo).props("outline dense data-testid=undo")
            ui.button("Restart", icon="restart_alt", on_click=self._restart).props("outline dense")
            ui.button("Save record", icon="download", on_click=told(self._save)).props("outline dense")
            self._pause = ui.button("Pause", icon="pause", on_click=self._turn_pause).props("outline dense")
            self._from_here = ui.button("Play from here", icon="alt_route", on_click=told(self._branch)).props(
                "outline dense"
            )
        self._list = ui.expansion("Moves", on_value_change=self._draw_list).classes("w-full")
        self._list.props("dense data-testid=moves")
        with self._list:
            self._filter = (
                ui.input("Type a part of a move", on_change=self._draw_list).props("clearable dense").classes("w-full")
            )
            self._filter.on("keydown.enter", self._take_only)
            self._buttons = ui.row().classes("gap-1")

    def _draw_side(self) -> None:
        ui.label("Seats").classes("text-lg").props("role=heading aria-level=2")
        self._seat_rows = ui.column().classes("w-full gap-1")
        self._dialogs = ui.element()
        ui.separator()
        ui.label("What does it think?").classes("text-lg").props("role=heading aria-level=2")
        with ui.row().classes("gap-2").props('role=group aria-label="what does it think?"'):
            self._think = ui.button("Search", icon="psychology", on_click=self._turn_thinking)
            self._solve = ui.button("Exact values", icon="functions", on_click=self._turn_solving)
            learned = ui.button("What was learned", icon="school", on_click=told(self._show_learned))
            hint = ui.button("Hint", icon="lightbulb", on_click=told(self._hint))
        for name, button in {"think": self._think, "exact": self._solve, "learned": learned, "hint": hint}.items():
            button.props(f"outline dense no-caps data-testid={name}")
        self._thoughts = ui.column().classes("w-full gap-1").props("data-testid=thoughts")
        ui.label("Moves so far").classes("text-lg").props("role=heading aria-level=2")
        self._history = ui.column().classes("w-full gap-0 gl-mono text-sm").style("max-height: 20rem; overflow: auto")
        rules = self._match.rules.text
        with ui.expansion("The rules").classes("w-full").props("dense data-testid=rules") as expansion:
            text = ui.label().classes("gl-mono text-xs").style("white-space: pre-wrap; overflow-wrap: anywhere")
        expansion.on_value_change(lambda event: text.set_text(rules[:MOST_SHOWN_RULES] if event.value else ""))

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def _ply(self) -> int:
        return len(self._match.plies) if self._shown is None else self._shown

    def _changed(self) -> None:
        """Show the match after a change of it."""
        if self._shown is not None and self._shown >= len(self._match.plies):
            self._shown = None
        if self._shown is None and self._view is not self._match.view:
            self._forget_opinion()
            self._view = self._match.view
        self._show()

    def _show(self) -> None:
        match, live = self._match, self._shown is None
        self._status.set_text(self._status_text())
        self._error.set_text(match.error)
        self._again.set_visibility(bool(match.error) and not match.is_deleted)
        role = match.waiting[0] if live and match.waiting else None
        if self._view is not None:
            paths = self._view["clicks"].get(role, []) if role else []
            svg = self._opinion["svg"] if self._opinion and self._opinion.get("svg") else self._view["svg"]
            self._board.show(svg, paths, self._ply, self._status_text(), role or "")
        self._menu.clear()
        self._slider.props(f"max={max(1, len(match.plies))}")
        self._slider.set_value(self._ply)
        self._from_here.set_visibility(not live)
        persons = any(seat.is_person for seat in match.seats.values())
        self._pause.set_visibility(not persons)
        self._pause.set_text("Go on" if match.is_paused else "Pause")
        self._draw_seats()
        self._draw_list()
        self._draw_history()

    def _status_text(self) -> str:
        match = self._match
        if self._shown is not None and self._shown < len(match.plies):
            return f"Position after {counted(self._shown, 'ply', 'plies')} of {len(match.plies)}"
        if match.view is None:
            return "One moment .."
        if match.is_over:
            return match.result
        if match.waiting:
            hidden = " (your choice stays hidden until all have chosen)" if match.is_simultaneous else ""
            return f"{match.waiting[0]} is to move{hidden}"
        if match.thinking:
            return f"{', '.join(sorted(match.thinking))} thinks .."
        return "Paused" if match.is_paused else "One moment .."

    def _draw_list(self) -> None:
        """List the moves that contain the text of the filter."""
        match = self._match
        role = match.waiting[0] if match.waiting and self._shown is None else ""
        legal = list(match.view["legal"][role]) if role and match.view else []
        self._list.set_text(f"Moves of {role} ({len(legal)})" if role else "Moves")
        if role and not self._view_has_clicks(role) and not self._list.value:
            self._list.set_value(True)  # which draws the list
            return
        shown = [move for move in legal if text_in(self._filter).lower() in move.lower()] if self._list.value else []
        listed = (role, self._ply, shown)
        if listed == self._listed:  # else a click on a button that is replaced at this moment would be lost
            return
        self._listed = listed
        self._buttons.clear()
        with self._buttons:
            for move in shown[:MOST_LISTED]:
                ui.button(move, on_click=partial(self._submit, role, move, self._ply)).props(
                    "outline dense no-caps"
                ).classes("gl-mono")
            if len(shown) > MOST_LISTED:
                ui.label(f"and {len(shown) - MOST_LISTED} more; type a part of the move").classes("gl-faint")

    def _view_has_clicks(self, role: str) -> bool:
        """Return whether each move of a role has clicks that make it."""
        paths = self._view["clicks"].get(role) if self._view else None
        return bool(paths and all(paths))

    def _take_only(self) -> None:
        """Make the only move in the list."""
        text, role = text_in(self._filter).lower(), self._match.waiting[0] if self._match.waiting else None
        if role and self._match.view:
            fitting = [move for move in self._match.view["legal"][role] if text in move.lower()]
            if len(fitting) == 1:
                self._filter.set_value("")
                self._submit(role, fitting[0], self._ply)

    def _draw_history(self) -> None:
        number, rows = len(self._match.plies), self._history.default_slot.children
        if len(rows) > number:
            self._history.clear()
        with self._history:
            for ply in range(len(self._history.default_slot.children), number):
                text = f"{ply + 1}. {joint_text(self._match.roles, self._match.plies[ply])}"
                ui.button(text, on_click=partial(self._slide, ply + 1)).props("flat dense no-caps align=left")

    # ---- what people do -----------------------------------------------------------------------------------------

    def _clicked(self, indices: Sequence[int], ply: int, role: str) -> None:
        """Make the move that clicks on the board mean, or ask which of several."""
        match = self._match
        if role not in match.waiting or match.view is None or ply != len(match.plies):
            return
        moves = [match.view["legal"][role][i] for i in indices if 0 <= i < len(match.view["legal"][role])]
        if len(moves) == 1:
            return self._submit(role, moves[0], ply)
        self._menu.clear()
        with self._menu:
            ui.label("Which move?")
            for move in moves:
                ui.button(move, on_click=partial(self._submit, role, move, ply)).props("dense no-caps")

    def _submit(self, role: str, move: str, ply: int) -> None:
        try:
            self._match.submit(role, move, ply)
        except GameloreError as error:
            complain(str(error))

    def _undo(self) -> None:
        self._shown = None
        self._match.undo()

    def _restart(self) -> None:
        self._shown = None
        self._match.restart()

    def _turn_pause(self) -> None:
        self._match.pause(not self._match.is_paused)

    async def _branch(self) -> None:
        match = self._services.archive.add(self._match.branch(self._ply))
        await match.open()
        match.keep(match)
        ui.navigate.to(f"/play/{match.id}")

    async def _save(self) -> None:
        ui.download.content(
            await self._match.record(), f"{attribute_text(self._match.rules.name)}-{self._match.id}.json"
        )

    async def _step(self, step: int | None) -> None:
        last = len(self._match.plies)
        await self._slide({-2: 0, None: last}.get(step, min(last, max(0, self._ply + (step or 0)))))

    async def _slide(self, ply: int) -> None:
        """Show the position after some plies."""
        last = len(self._match.plies)
        if ply == self._ply or (ply >= last and self._shown is None):
            return
        self._forget_opinion()
        self._shown = None if ply >= last else ply
        if self._shown is None:
            self._view = self._match.view
        else:
            try:
                view = await self._match.view_at(ply)
            except GameloreError as error:
                return complain(str(error))
            if self._shown != ply:
                return
            self._view = view
        self._show()

    # ---- seats --------------------------------------------------------------------------------------------------

    def _draw_seats(self) -> None:
        """List who plays which role, if that has changed."""
        seats = {role: replace(seat) for role, seat in self._match.seats.items()}
        if seats == self._seats:
            return
        self._seats = seats
        self._seat_rows.clear()
        with self._seat_rows:
            for role in self._match.roles:
                seat = self._match.seats[role]
                with ui.row().classes("items-center gap-2 w-full no-wrap"):
                    ui.label(f"{role}: {seat.player}{' (remembers)' if seat.remembers else ''}").classes("grow")
                    ui.button("Change", on_click=partial(self._change_seat, role)).props(
                        f'flat dense no-caps aria-label="change who plays {attribute_text(role)}"'
                    )

    async def _change_seat(self, role: str) -> None:
        with self._dialogs, ui.dialog() as dialog, ui.card():
            form = SeatForm(role, self._match.seats[role], self._kinds)
            with ui.row():
                ui.button("Take the seat", on_click=lambda: dialog.submit(True))
                ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat")
        if await answer_of(dialog):
            try:
                if not form.seat.is_person:
                    processes = self._services.processes
                    await processes.ask(None, "check_player", time_limit=OPEN_SECONDS, spec=form.seat.player)
                self._match.take_seat(role, form.seat)
            except GameloreError as error:
                complain(str(error))

    # ---- opinions -----------------------------------------------------------------------------------------------

    def _turn_thinking(self) -> None:
        self._turn(self._think, self._search)

    def _turn_solving(self) -> None:
        self._turn(self._solve, self._show_exact)

    def _turn(self, button: ui.button, work: Callable[[int], Awaitable[None]]) -> None:
        """Let a button begin its work, or stop it."""
        was_on = self._turned is button
        self._forget_opinion(shows=True)
        if not was_on:
            self._turned = button
            button.set_text("Stop")
            self._thinking = background_tasks.create(self._work(work, self._ply), name="think")

    async def _work(self, work: Callable[[int], Awaitable[None]], ply: int) -> None:
        try:
            await work(ply)
        except GameloreError as error:
            self._thoughts.clear()
            with self._thoughts:
                complaint(str(error))
        self._thinking = None
        self._rest()

    async def _search(self, ply: int) -> None:
        """Show what a search thinks, while it goes on."""
        for _ in range(MOST_SLICES):
            thought = await self._match.think(SLICE, ply)
            self._opinion = thought
            self._show_opinion(thought["rows"], thought["effort"], thought["line"])
            if thought["is_proved"]:
                break

    async def _show_exact(self, ply: int) -> None:
        """Show the exact value of each move, if the game can be solved; meanwhile, how long it has taken."""
        with self._thoughts:
            told_time = ui.label()
        solving = asyncio.ensure_future(self._match.exact(ply))
        try:
            for second in count():
                told_time.set_text(f"Solving the game: {second} s of at most {SOLVE_SECONDS:g}")
                if (await asyncio.wait({solving}, timeout=1.0))[0]:
                    break
            self._opinion = exact = await solving
        except WorkerDied:
            raise GameloreError(
                f"expected a game that can be solved here in {SOLVE_SECONDS:g} s, got a larger one; "
                "let a search think about it instead"
            ) from None
        finally:
            solving.cancel()
        self._show_opinion(exact["rows"], exact["effort"])

    def _show_opinion(self, rows: Sequence[Mapping[str, Any]], effort: str, line: str = "") -> None:
        self._thoughts.clear()
        with self._thoughts:
            ui.label(effort).classes("gl-faint")
            if line:
                ui.label(f"best line: {line}").classes("gl-mono text-sm")
            columns = [
                {"name": name, "label": label, "field": name, "align": "left" if name in ("role", "move") else "right"}
                for name, label in _COLUMNS.items()
                if any(row.get(name) for row in rows)
            ]
            shown = [{column["name"]: row.get(column["name"]) for column in columns} for row in rows]
            pagination = MOST_ROWS if len(shown) > MOST_ROWS else None
            ui.table(columns=columns, rows=shown, pagination=pagination).classes("w-full").props("dense flat")
        self._show()

    async def _about_shown(self, ask: Callable[[int], Awaitable[Answer]]) -> Answer:
        """Return the answer to a question about the position that is shown; ask again if it changes meanwhile."""
        while True:
            ply, view = self._ply, self._view
            answer = await ask(ply)
            if view is self._view:
                return answer

    async def _show_learned(self, learner: int | None = None) -> None:
        """Show the values of the moves that a learner of the knowledge store has learned, and a choice of learners."""
        self._forget_opinion(shows=True)
        store = str(self._services.store)
        try:
            learned = await self._about_shown(lambda ply: self._match.learned(ply, store, learner))
        except GameloreError as error:  # nothing is learned yet
            with self._thoughts:
                ui.label(str(error)).classes("gl-faint")
            return
        self._opinion = learned
        self._show_opinion(learned["rows"], learned["effort"])
        with self._thoughts:
            choice = ui.select(dict(learned["learners"]), value=learned["learner"], label="Who learned it")
            choice.on_value_change(lambda event: self._choose_learner(event.value))
        choice.classes("w-full").props("dense data-testid=learner").move(target_index=0)

    async def _choose_learner(self, learner: int) -> None:
        try:
            await self._show_learned(learner)
        except GameloreError as error:
            complain(str(error))

    async def _hint(self) -> None:
        """Show good moves with their reasons, and the first of them on the board."""
        self._forget_opinion(shows=True)
        store = str(self._services.store)
        hints = await self._about_shown(lambda ply: self._match.hints(ply, store))
        self._thoughts.clear()
        with self._thoughts:
            for hint in hints:
                self._draw_hint(hint)
            if not hints:
                ui.label("There is nothing to choose: each role has only one move.")
        if hints:
            self._show_hint(hints[0])

    def _draw_hint(self, hint: Mapping[str, Any]) -> None:
        with ui.card().classes("w-full gap-1 p-3").props("flat bordered data-testid=hint-card"):
            ui.label(hint["title"]).classes("gl-faint")
            with ui.row().classes("w-full items-center no-wrap"):
                ui.label(f"{hint['role']}: {hint['move']}").classes("text-lg gl-mono grow")
                ui.button("Show", icon="visibility", on_click=partial(self._show_hint, hint, scrolls=True)).props(
                    f'flat dense no-caps aria-label="show the move {attribute_text(hint["move"])} on the board"'
                )
            ui.label(hint["reason"])
            for title, svg in hint["pictures"]:
                with ui.expansion(title).classes("w-full").props("dense"):
                    picture(svg)

    def _show_hint(self, hint: Mapping[str, Any], scrolls: bool = False) -> None:
        """Show the move of a hint on the board; on a small screen, scroll there."""
        self._opinion = hint
        self._show()
        if scrolls:
            ui.run_javascript(f"getHtmlElement({self._board.id}).scrollIntoView({{block: 'nearest'}})")

    def _rest(self) -> None:
        """Stop the search, or the solving of the game."""
        if self._thinking is not None:
            self._thinking.cancel()
        self._thinking = self._turned = None
        self._think.set_text("Search")
        self._solve.set_text("Exact values")

    def _forget_opinion(self, shows: bool = False) -> None:
        self._rest()
        self._opinion = None
        self._thoughts.clear()
        if shows:
            self._show()


_COLUMNS = {"role": "role", "move": "move", "value": "points", "visits": "visits", "plies": "plies to the end"}
_STEPS = (
    ("first_page", "first position", -2),
    ("chevron_left", "one ply back", -1),
    ("chevron_right", "one ply on", 1),
    ("last_page", "last position", None),
)


def add_pages(services: Services) -> None:
    """Add the pages to the server."""

    @ui.page("/")
    async def start(game: str = "") -> None:
        await StartPage(services, game or cookie("game")).draw()

    @ui.page("/play/{match_id}")
    async def play(match_id: str) -> None:
        with page_frame("Play") as main:
            waiting("Loading the match")
        if not await is_connected():
            return
        main.clear()
        with main:
            try:
                match = await services.archive.find(match_id)
                kinds = await services.processes.ask(None, "players", time_limit=OPEN_SECONDS)
                MatchPage(services, match, kinds).draw()
            except GameloreError as error:
                ui.label(str(error))
                ui.link("Begin a new match", "/").classes("gl-link")
