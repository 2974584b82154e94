"""The page of a hosted series: the present match on its board, its moves with their times, standings, and records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import background_tasks, ui

from ...errors import GameloreError, counted
from ..service.network_desk import Fault, MatchTurn, NetworkDesk, SeriesRun
from ..service.shared_match import View, joint_text
from .frame import Services, complain, picture, place_on, told

LIVE = -1  # stands for the present match where the pages choose a match
FEWEST_IN_CURVE = 10  # matches from which on a learning curve is shown
COLOURS = ["#1d5fa8", "#b3261e", "#2e7d32", "#8a5a00"]  # of curves, on white
INK = "#22262b"
KINDS = {"TO": "late", "CE": "not reached", "IL": "illegal"}
STEPS = (
    ("first_page", "first position", "first"),
    ("chevron_left", "one move back", "back"),
    ("chevron_right", "one move on", "on"),
    ("last_page", "last position", "last"),
)


class SeriesPage:
    """The page of a series. It shows the present match, until a finished one is chosen."""

    def __init__(self, services: Services, desk: NetworkDesk, series: SeriesRun) -> None:
        self._services, self._desk, self._series = services, desk, series
        self._client = ui.context.client
        self._number = LIVE  # of the match that is shown
        self._ply: int | None = None  # of the position that is shown; None for the last one
        self._plies: list[Sequence[str]] = []  # joint moves of the match that is shown
        self._listed: tuple[int, int] = (LIVE, 0)  # match whose moves are listed, and number of listed turns
        self._drawing: asyncio.Task[None] | None = None
        self._is_outdated = False
        self._shown_results: object = None

    def draw(self) -> None:
        """Draw the page, and follow the series until the page is closed."""
        plan = self._series.plan
        ui.label(f"Series of {plan.rules.name}").classes("text-2xl").props("role=heading aria-level=1")
        self._state = ui.label().classes("text-lg").props("role=status aria-live=polite data-testid=state")
        self._error = ui.label().classes("text-negative").style("white-space: pre-wrap").props("role=alert")
        with ui.row().classes("w-full gap-6 items-start"):
            with ui.column().classes("gap-2").style("flex: 3; min-width: min(100%, 20rem)"):
                self._draw_match()
            with ui.column().classes("gap-3").style("flex: 2; min-width: min(100%, 20rem)"):
                self._draw_results()
        self._client.on_delete(self._desk.watch(self._changed))
        self._changed()

    def _draw_match(self) -> None:
        with ui.row().classes("items-center gap-2 w-full"):
            self._choice = (
                ui.select({LIVE: "present match"}, value=LIVE, label="Match", on_change=self._choose)
                .classes("grow")
                .props("data-testid=match")
            )
            self._stop = ui.button("Stop the series", icon="stop", on_click=self._series.stop)
            self._stop.props("outline dense no-caps data-testid=stop")
            self._go_on = ui.button("Go on with the series", icon="play_arrow", on_click=self._series.start)
            self._go_on.props("outline dense no-caps data-testid=go-on")
        self._where = ui.label().props("data-testid=where")
        self._board = picture("").classes("gl-board").style("max-width: 24rem")
        self._board.props('role=img data-testid=board aria-label="board"')
        with ui.row().classes("items-center w-full no-wrap gap-1"):
            for icon, label, step in STEPS:
                ui.button(icon=icon, on_click=partial(self._step, step)).props(
                    f'flat dense round aria-label="{label}" data-testid=step-{step}'
                )
            self._slider = ui.slider(min=0, max=1, value=0, on_change=lambda event: self._slide(place_on(event.value)))
            self._slider.classes("grow").props('label aria-label="position of the match" data-testid=slider')
        with ui.row().classes("gap-2 items-center"):
            ui.button("Play from here", icon="alt_route", on_click=told(self._branch)).props(
                "outline dense no-caps data-testid=branch"
            )
            self._save = ui.button("Save this record", icon="download", on_click=told(self._save_record))
            self._save.props("outline dense no-caps data-testid=save")
        ui.label("Moves").classes("text-lg").props("role=heading aria-level=2")
        self._moves_area = ui.scroll_area().classes("w-full").style("height: 16rem")
        self._moves_area.props('tabindex=0 role=group aria-label="moves"')
        with self._moves_area:
            self._moves = ui.column().classes("w-full gap-0 text-sm").props("data-testid=moves")

    def _draw_results(self) -> None:
        ui.label("Standings").classes("text-lg").props("role=heading aria-level=2")
        columns = [
            {"name": name, "label": label, "field": name, "align": "left" if name in ("role", "player") else "right"}
            for name, label in COLUMNS.items()
        ]
        self._standings = ui.table(columns=columns, rows=[], row_key="role").classes("w-full").props("dense flat")
        self._standings.props("data-testid=standings wrap-cells")
        self._about = ui.label().classes("gl-faint text-sm")
        self._curve_title = ui.label().classes("text-lg").props("role=heading aria-level=2")
        self._curve = ui.echart(_chart([])).classes("w-full").style("height: 15rem")
        self._curve.props("data-testid=curve")
        self._notes = ui.label().style("white-space: pre-wrap")
        ui.label("About this series").classes("text-lg").props("role=heading aria-level=2")
        self._save_all = ui.button("Save all records", icon="download", on_click=told(self._save_records))
        self._save_all.props("outline dense no-caps data-testid=save-all")
        plan = self._series.plan
        scrambled = " Players on the network see the rules with other names in every match." * plan.scramble
        ui.label(
            f"Clocks: {plan.startclock} s to prepare, {plan.playclock} s for a move. If an answer is late or illegal, "
            f"a random legal move is played in its place, and the match counts.{scrambled}"
        ).classes("gl-faint text-sm")
        ui.label(
            "The series goes on while a page of gamelore is open, and stops about a minute after the last one is "
            "closed. Finished matches are kept; the series can then go on."
        ).classes("gl-faint text-sm")
        ui.link("All player servers and series", "/network").classes("gl-link")

    # ---- showing ------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Show the series after a change of it, or of what is chosen; at most one drawing goes on at a time."""
        self._is_outdated = True
        if self._drawing is None or self._drawing.done():
            self._drawing = background_tasks.create(self._draw_again(), name="draw a series")

    async def _draw_again(self) -> None:
        while self._is_outdated and not self._client.is_deleted:
            self._is_outdated = False
            self._show_results()
            try:
                await self._show_match()
            except GameloreError as error:
                if not self._client.is_deleted:
                    self._where.set_text(str(error))

    def _show_results(self) -> None:
        series = self._series
        self._state.set_text(state_text(series))
        self._error.set_text(series.error)
        self._stop.set_visibility(series.is_on and not series.is_stopping)
        self._go_on.set_visibility(not series.is_on and not series.is_done)
        self._notes.set_text("\n".join(series.progress.get("notes", ())))
        results = (len(series.finished), series.progress.get("standings"), series.is_on)
        if results != self._shown_results:
            self._shown_results = results
            self._show_standings()
            self._choice.set_options(self._match_choices(), value=self._number)
            self._save_all.set_visibility(bool(series.finished))

    def _show_standings(self) -> None:
        seats = self._series.plan.seats
        rows = self._series.progress.get("standings") or list(map(_no_standing, self._series.plan.roles))
        self._standings.rows = [_standing_row(row, seat.title) for row, seat in zip(rows, seats, strict=False)]
        self._about.set_text(_about_standings(rows))
        curves = self._series.progress.get("curves", ())
        is_shown = len(self._series.finished) >= FEWEST_IN_CURVE and bool(curves)
        self._curve_title.set_visibility(is_shown)
        self._curve.set_visibility(is_shown)
        if is_shown:
            self._curve_title.set_text(f"Mean goal of the last {counted(curves[0]['window'], 'match', 'matches')}")
            self._curve.options.clear()
            self._curve.options.update(_chart(curves))
            self._curve.update()

    def _match_choices(self) -> dict[int, str]:
        """Return the matches that can be shown, the latest ones first."""
        return {LIVE: "present match" if self._series.is_on else "last match"} | {
            number: match_text(number, goals, is_aborted, num_faults)
            for number, _, goals, num_faults, is_aborted in reversed(self._series.finished)
        }

    def _match_number(self) -> int | None:
        """Return the number of the match that is shown; None if there is none yet."""
        if self._number != LIVE:
            return self._number
        if self._series.live is not None:
            return int(self._series.live["number"])
        return int(self._series.finished[-1][0]) if self._series.finished else None

    async def _show_match(self) -> None:
        number = self._match_number()
        turns = [] if number is None else await self._series.turns(number)
        self._plies = [turn.moves for turn in turns if turn.moves]
        ply = self._shown_ply
        view = await self._series.view_at(self._plies[:ply])
        if self._client.is_deleted:
            return
        self._where.set_text("No match yet" if number is None else self._where_text(number, ply, view))
        self._board.set_content(view["svg"])
        self._slider.props(f"max={max(1, len(self._plies))}")
        self._slider.set_value(ply)
        self._save.set_visibility(number is not None and self._is_finished(number))
        self._list_moves(number, turns)

    @property
    def _shown_ply(self) -> int:
        return len(self._plies) if self._ply is None else min(self._ply, len(self._plies))

    def _is_finished(self, number: int) -> bool:
        return any(number == finished[0] for finished in self._series.finished)

    def _where_text(self, number: int, ply: int, view: View) -> str:
        """Return what the board shows, as text."""
        match = f"Match {number + 1}"
        if self._is_finished(number):
            if view["is_terminal"]:
                goals = ", ".join(f"{role} {'none' if goal is None else goal}" for role, goal in view["goals"].items())
                return f"{match} is over: {goals}"
            return f"{match}, after {counted(ply, 'move')} of {len(self._plies)}"
        waiting = self._series.live["waiting"] if self._series.live else []
        thinks = f"; {', '.join(waiting)} {'thinks' if len(waiting) == 1 else 'think'} .." if waiting else ""
        return f"{match}, after {counted(ply, 'move')}{thinks}"

    def _list_moves(self, number: int | None, turns: Sequence[MatchTurn]) -> None:
        """List the turns that are complete and are not listed yet."""
        is_finished = number is not None and self._is_finished(number)
        complete = list(turns) if is_finished else [*turns][:-1]
        listed_number, num_listed = self._listed
        if number != listed_number or num_listed > len(complete):
            self._moves.clear()
            num_listed = 0
        with self._moves:
            for ply in range(num_listed, len(complete)):
                self._list_turn(ply, complete[ply])
        if not is_finished and num_listed < len(complete):
            self._moves_area.scroll_to(percent=1.0)
        self._listed = LIVE if number is None else number, len(complete)

    def _list_turn(self, ply: int, turn: MatchTurn) -> None:
        if turn.moves:
            seconds = "" if turn.seconds is None else f"  {turn.seconds:.2f} s"
            text = f"{ply}. {joint_text(self._series.plan.roles, turn.moves)}{seconds}"
            ui.label(text).on("click", partial(self._slide, ply)).classes("cursor-pointer gl-mono")
        for fault in turn.faults:
            ui.label(fault_text(fault, self._series.plan.roles, turn.moves)).classes("text-negative pl-4")

    # ---- what people do -----------------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Show another match: the present one at its last position, a finished one at its first."""
        if self._choice.value is not None and self._choice.value != self._number:
            self._number = int(self._choice.value)
            self._ply = None if self._number == LIVE else 0
            self._changed()

    def _step(self, step: str) -> None:
        ply, last = self._shown_ply, len(self._plies)
        self._slide({"first": 0, "back": max(0, ply - 1), "on": min(last, ply + 1), "last": last}[step])

    def _slide(self, ply: int) -> None:
        """Show the position after some plies; at the last one, follow the match."""
        wanted = None if ply >= len(self._plies) else ply
        if wanted != self._ply and ply != self._shown_ply:
            self._ply = wanted
            self._changed()

    async def _branch(self) -> None:
        match = await self._series.branch(self._plies[: self._shown_ply], self._services.archive)
        self._client.open(f"/play/{match.id}")

    async def _save_record(self) -> None:
        number = self._match_number()
        if number is not None and self._is_finished(number):
            with self._client:
                ui.download.file(self._series.record_path(number), f"match-{number + 1}.json")

    async def _save_records(self) -> None:
        try:
            path = await asyncio.to_thread(self._series.all_records)
        except OSError as error:
            return complain(f"expected to read the records, got {error}")
        with self._client:
            ui.download.file(path, "records.jsonl")


COLUMNS = {"role": "role", "player": "player", "mean": "mean goal", "errors": "errors"}


def state_text(series: SeriesRun) -> str:
    """Return how far a series is, as text."""
    done, matches = len(series.finished), series.plan.matches
    of = f"{done} of {counted(matches, 'match', 'matches')} played"
    if series.is_stopping:
        return f"Stopping; {of}"
    if series.is_on:
        stage = series.progress.get("stage", "")
        return f"Playing; {of}" if stage == "playing" else f"{(stage or 'one moment').capitalize()} .. ({of})"
    if series.error:
        return f"The series has ended early; {of}"
    return f"The series is over; {of}" if series.is_done else f"Stopped; {of}"


def match_text(number: int, goals: Sequence[int | None], is_aborted: bool, num_faults: int) -> str:
    """Return a finished match in a few words."""
    if is_aborted:
        return f"match {number + 1}: not played, because a player was busy"
    faults = f", {counted(num_faults, 'late or illegal answer')}" if num_faults else ""
    return f"match {number + 1}: {' - '.join('?' if goal is None else str(goal) for goal in goals)}{faults}"


def fault_text(fault: Fault, roles: Sequence[str], moves: Sequence[str]) -> str:
    """Return a fault in words, with the move that was played in its place; `moves` is empty for START."""
    role, kind, text = fault
    if not moves:
        told_words = {
            "TO": "was not ready in time",
            "CE": "could not be reached",
            "IL": f"did not get ready, but said {text}",
        }
        return f"At the start, {role} {told_words.get(kind, kind)}"
    words = {"TO": "no answer in time", "CE": "could not be reached", "IL": f"the answer {text} is not legal"}
    return f"{role}: {words.get(kind, kind)}; {moves[list(roles).index(role)]} was played instead"


def _no_standing(role: str) -> dict[str, Any]:
    return {"role": role, "name": "", "matches": 0, "mean": None, "low": None, "high": None, "errors": {}}


def _standing_row(row: Mapping[str, Any], title: str) -> dict[str, Any]:
    name = row["name"]
    errors = ", ".join(f"{number} {KINDS.get(kind, kind)}" for kind, number in row["errors"].items())
    return {
        "role": row["role"],
        "player": f"{title} ({name})" if name and name not in title else title,
        "mean": _mean_text(row),
        "errors": errors or "none",
    }


def _mean_text(row: Mapping[str, Any]) -> str:
    """Return a mean with its interval, if there are enough matches for it."""
    if row["mean"] is None:
        return "none"
    return f"{row['mean']:.1f}" if row["low"] is None else f"{row['mean']:.1f} ({row['low']:.1f} to {row['high']:.1f})"


def _about_standings(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what the figures of the standings mean, and whether they are of enough matches."""
    about = "Goals go from 0 (lost) to 100 (won)."
    if not rows or rows[0]["mean"] is None:
        return f"{about} No match counts yet."
    if rows[0]["low"] is None:
        return f"{about} Of {counted(rows[0]['matches'], 'match', 'matches')}: too few for an interval."
    return f"{about} Of {counted(rows[0]['matches'], 'match', 'matches')}; in brackets the 95 % interval of the mean."


_MATCHES_PLAYED = {"name": "matches played", "nameLocation": "middle", "nameGap": 26, "min": 1, "minInterval": 1}


def _chart(curves: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the learning curves as options of ECharts."""
    axis = {"type": "value", "axisLabel": {"color": INK}, "nameTextStyle": {"color": INK}}
    return {
        "backgroundColor": "#ffffff",
        "color": COLOURS,
        "aria": {"enabled": True},
        "animation": False,
        "legend": {"top": 4, "textStyle": {"color": INK}},
        "grid": {"left": 44, "right": 16, "top": 36, "bottom": 44},
        "tooltip": {"trigger": "axis"},
        "xAxis": {**axis, **_MATCHES_PLAYED},
        "yAxis": {**axis, "min": 0, "max": 100},
        "series": [
            {"type": "line", "name": curve["role"], "data": curve["points"], "showSymbol": len(curve["points"]) < 30}
            for curve in curves
        ],
    }
