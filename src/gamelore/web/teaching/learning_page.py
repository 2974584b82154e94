"""The page "Watch learning": the plan of a new run, and the runs that were begun before."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import partial

from nicegui import ui

from ...errors import GameloreError
from ..pages.frame import Services, agreed, heading, is_connected, page_frame, told
from ..pages.knowledge_parts import faint
from .learning_curves import KeptRun, LearningDesk, Row, learning_desk
from .learning_form import FIRST_GAME, LearningForm
from .learning_words import STATES, game_name, learners_text
from .watched_run_page import RunPage

FIRST_SPEED = 100.0  # matches a second: slow enough to watch
MOST_LISTED = 30


class NewRunPage:
    """The form of a new run, and the list of all runs.

    Args:
        services: the services of the pages
        desk: all runs
        key: key of the game that is chosen first
        plan: a plan to begin with, or None
    """

    def __init__(self, services: Services, desk: LearningDesk, key: str, plan: Row | None) -> None:
        self._services, self._desk = services, desk
        self._key, self._plan = key, plan
        self._client = ui.context.client

    async def draw(self) -> None:
        """Draw the page, and load the game that is chosen first."""
        heading("Watch learning", 1)
        faint(
            "Learners play many matches of a game against an opponent, and get better. Their curves grow side by side: "
            "one learner may begin with what it learned in another game. Rewards are points from 0 (lost) to 100 (won)."
        )
        with ui.row().classes("w-full gap-8 items-start"):
            with ui.column().classes("gap-3").style("flex: 3; min-width: min(100%, 22rem)"):
                self._form = LearningForm(self._services, self._key, self._plan)
                ui.button("Start", icon="play_arrow", on_click=told(self._start)).props("data-testid=start")
            with ui.column().classes("gap-2").style("flex: 2; min-width: min(100%, 18rem)"):
                heading("Your runs")
                self._list = ui.column().classes("w-full gap-1").props("data-testid=run-list")
                self._draw_runs()
        if not await is_connected():
            return
        await self._form.load()

    async def _start(self) -> None:
        plan = self._form.plan()
        run = await self._desk.begin(plan, f"{game_name(plan['target'])}: {learners_text(plan)}", FIRST_SPEED)
        self._client.open(f"/learning/{run.id}")

    def _draw_runs(self, most: int = MOST_LISTED) -> None:
        self._list.clear()
        runs = self._desk.kept()
        with self._list:
            if not runs:
                faint("None yet. A run is kept here with its curves and its report, also while it goes on.")
            for run in runs[:most]:
                self._draw_run(run)
            if len(runs) > most:
                ui.button(f"Show all {len(runs)} runs", on_click=partial(self._draw_runs, len(runs))).props(
                    "flat dense no-caps"
                )

    def _draw_run(self, run: KeptRun) -> None:
        with ui.row().classes("items-center w-full no-wrap gap-2"):
            with ui.column().classes("grow gap-0"):
                ui.link(run.title, f"/learning/{run.id}").classes("gl-link").style("overflow-wrap: anywhere")
                ui.label(f"{STATES.get(run.state, run.state)}, {when_text(run.created)}").classes("gl-faint text-sm")
            ui.button(icon="delete", on_click=told(partial(self._delete, run))).props(
                'flat round dense aria-label="delete this run"'
            )

    async def _delete(self, run: KeptRun) -> None:
        if await agreed("Delete this run with its report and its results?", "Delete"):
            with suppress(GameloreError):  # it was deleted elsewhere
                await self._desk.delete(run.id)
            self._draw_runs()


def when_text(created: str) -> str:
    """Return a time in ISO format as people read it, in the time zone of the server."""
    return datetime.fromisoformat(created).astimezone().strftime("%d %B %Y, %H:%M")


def add_pages(services: Services) -> None:
    """Add the pages to the server."""
    desk = learning_desk(services)

    @ui.page("/learning")
    async def begin(game: str = FIRST_GAME, again: str = "") -> None:
        plan = None
        with suppress(GameloreError):  # it was deleted
            plan = desk.run(again).plan if again else None
        with page_frame("Watch learning"):
            await NewRunPage(services, desk, game, plan).draw()

    @ui.page("/learning/{run_id}")
    async def watch(run_id: str) -> None:
        with page_frame("Watch learning") as main:
            ui.spinner(size="lg").props('aria-label="loading"')
        if not await is_connected():
            return
        main.clear()
        with main:
            try:
                RunPage(services, desk, desk.run(run_id)).draw()
            except GameloreError as error:
                ui.label(str(error)).props("role=alert")
                ui.link("All runs", "/learning").classes("gl-link")
