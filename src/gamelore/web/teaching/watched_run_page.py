"""The page of a learning run: its growing curves, the features that it found, its results, and a learner to keep."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from ...errors import GameloreError, counted
from ..pages.frame import Services, agreed, heading, picture, place_on, told
from ..pages.knowledge_parts import add_trees, draw_facts, faint, table_of
from .learning_curves import ASK_SECONDS, LearningCurves, LearningDesk, Row, WatchedRun, failure_text, plain_words
from .learning_words import (
    FEW_RUNS,
    SPEEDS,
    done_share,
    gain_rows,
    game_name,
    left_text,
    matches_text,
    plan_facts,
    speed_index,
    speed_text,
    stage_text,
    upper_first,
    verdicts,
    windows_text,
)

STUDYING = "gamelore.web.children.studying_job"
MOST_KEPT_MATCHES = 10_000
FEATURE_SIGNS = "■ the opponent is to move, ● the learner is to move, □ a win, ○ a loss, ⊠ a draw"


class RunPage:
    """The page of a run."""

    def __init__(self, services: Services, desk: LearningDesk, run: WatchedRun) -> None:
        self._services, self._desk, self._run = services, desk, run
        self._client = ui.context.client
        self._shown_features: object = ()
        self._shown_figures: object = None

    def draw(self) -> None:
        """Draw the page, and follow the run until the page is closed."""
        heading(f"Learning {game_name(self._run.plan['target'])}", 1)
        self._stage = ui.label().classes("text-lg").props("role=status aria-live=polite data-testid=stage")
        self._error = ui.label().classes("text-negative").style("white-space: pre-wrap")
        self._error.props("role=alert data-testid=error")
        with ui.row().classes("w-full gap-8 items-start"):
            with ui.column().classes("gap-3").style("flex: 3; min-width: min(100%, 22rem)"):
                self._draw_controls()
                self._curves = LearningCurves()
                if self._run.plan["runs"] >= FEW_RUNS:
                    faint("The shaded areas are 95 % intervals: where the mean of many more runs would probably be.")
                with ui.expansion("Curves in the games learned first").classes("w-full").props("dense") as first:
                    self._source_curves = LearningCurves(of_sources=True, height="13rem")
                first.set_visibility("transfer" in self._run.plan["learners"])
            with ui.column().classes("gap-3").style("flex: 2; min-width: min(100%, 20rem)"):
                self._draw_plan()
                self._draw_side_buttons()
        self._results = ui.column().classes("w-full gap-2").props("data-testid=results")
        self._features = ui.column().classes("w-full gap-2").props("data-testid=features")
        self._keeping = ui.column().classes("w-full gap-2")
        with self._keeping:
            KeepingPart(self._services, self._run)
        self._client.on_delete(self._run.watch(self._changed))
        self._changed()

    def _draw_controls(self) -> None:
        self._bar = ui.linear_progress(value=0, show_value=False).props('aria-label="share of all matches"')
        self._left = ui.label().classes("gl-faint").props("data-testid=left")
        with ui.row().classes("items-center gap-4 w-full"):
            self._pause = ui.button("Pause", icon="pause", on_click=self._run.pause)
            self._pause.props("outline dense no-caps data-testid=pause")
            self._go_on = ui.button("Go on", icon="play_arrow", on_click=self._run.resume)
            self._go_on.props("outline dense no-caps data-testid=go-on")
            with ui.row().classes("items-center gap-3 grow no-wrap") as self._speed_row:
                ui.label("Speed")
                self._speed = ui.slider(min=0, max=len(SPEEDS) - 1, step=1, value=speed_index(self._run.speed))
                self._speed.on_value_change(lambda event: self._set_speed(event.value))
                self._speed.classes("grow").style("min-width: 6rem").props('aria-label="speed" data-testid=speed')
                self._speed_text = ui.label().classes("text-no-wrap").props("data-testid=speed-text")

    def _draw_plan(self) -> None:
        heading("What is compared")
        draw_facts(plan_facts(self._run.plan))

    def _draw_side_buttons(self) -> None:
        with ui.row().classes("gap-2"):
            ui.button("Change the settings", icon="tune", on_click=self._copy).props("outline dense no-caps")
            ui.button("Delete this run", icon="delete", on_click=told(self._delete)).props(
                "outline dense no-caps data-testid=delete"
            )
        ui.link("All runs", "/learning").classes("gl-link")
        faint(
            "The run goes on while a page shows it. It waits soon after the last one is closed, and goes on when one "
            "is opened again."
        )

    def _copy(self) -> None:
        ui.navigate.to(f"/learning?again={self._run.id}")

    async def _delete(self) -> None:
        if await agreed("Delete this run with its report and its results?", "Delete"):
            await self._desk.delete(self._run.id)
            self._client.open("/learning")

    # ---- showing ------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Show the run after a change of it."""
        run = self._run
        self._stage.set_text(stage_text(run))
        self._error.set_text(run.error)
        self._error.set_visibility(bool(run.error))
        self._curves.update(run.progress)
        self._source_curves.update(run.progress)
        self._show_controls()
        if run.features is not self._shown_features:
            self._shown_features = run.features
            self._draw_features()
        self._keeping.set_visibility(run.figures is not None)
        if run.figures is not self._shown_figures:
            self._shown_figures = run.figures
            self._draw_results()

    def _set_speed(self, value: Any) -> None:
        """Set the speed that the slider shows."""
        self._run.set_speed(SPEEDS[min(place_on(value), len(SPEEDS) - 1)])

    def _show_controls(self) -> None:
        run = self._run
        self._bar.set_value(done_share(run.progress["curves"]))
        self._left.set_text(left_text(run.progress))
        is_waiting = run.is_paused or not run.is_on
        self._pause.set_visibility(not is_waiting and run.figures is None)
        self._go_on.set_visibility(is_waiting and run.figures is None)
        self._go_on.set_text("Try again" if run.error else "Go on")
        self._speed_row.set_visibility(run.figures is None and not run.error)
        self._speed.set_value(speed_index(run.speed))
        self._speed_text.set_text(speed_text(run.speed))

    def _draw_features(self) -> None:
        self._features.clear()
        if not self._run.features:
            return
        with self._features:
            heading("What transfer brings along")
            faint(
                "From the games learned first it takes features. A feature is what the next moves can lead to, "
                f"whatever the board looks like: {FEATURE_SIGNS}. The number below it is its value: the mean reward "
                "that was learned where this was seen. In the new game, moves that lead to the same begin with "
                "this value."
            )
            for source in self._run.features:
                self._draw_source(source)

    def _draw_source(self, source: Row) -> None:
        ui.label(f"From {source['source']}: {counted(source['num_features'], 'feature')}").props(
            "role=heading aria-level=3 data-testid=source-features"
        ).classes("text-base font-bold mt-2")
        if source["svg"]:
            label = "trees of features; the table has the same as text"
            with (
                ui.element("div").classes("w-full").style("overflow-x: auto").props(f'tabindex=0 aria-label="{label}"')
            ):
                picture(source["svg"]).style("min-width: 34rem").props("role=presentation")
        with ui.expansion("The features as a table").classes("w-full").props("dense data-testid=feature-table"):
            columns = {"label": "", "tree": "tree", "value": "value", "visits": "visits", "runs": "in how many runs"}
            rows = [
                {**row, "id": row["label"], "value": round(row["value"], 1), "visits": round(row["visits"], 1)}
                for row in source["features"]
            ]
            add_trees(table_of(columns, rows, numbers=("value", "visits", "runs"), row_key="id"))
            if source["left_out"]:
                faint(source["left_out"])

    def _draw_results(self) -> None:
        self._results.clear()
        figures = self._run.figures
        if figures is None:
            return
        with self._results:
            heading("Result")
            ui.label(figures["headline"]).classes("text-base").style("max-width: 60rem").props("data-testid=headline")
            for text in verdicts(figures["gains"], int(self._run.plan["runs"])):
                ui.label(text).style("max-width: 60rem").props("data-testid=verdict")
            self._draw_gains(figures["gains"])
            self._draw_downloads()
            with ui.row().classes("gap-6 w-full items-start"):
                for figure in figures["figures"]:
                    with ui.column().classes("gap-1").style("flex: 1; min-width: min(100%, 24rem); max-width: 44rem"):
                        picture(figure["svg"]).props('role=img aria-label="figure; its caption is below"')
                        faint(figure["caption"])

    def _draw_gains(self, gains: Sequence[Row]) -> None:
        early, late = windows_text(int(self._run.plan["matches"]))
        labels = {
            "learner": "learner",
            "level": f"mean reward, {late}",
            "early": f"transfer minus it, {early}",
            "late": f"transfer minus it, {late}",
        }
        if not any(row["quantity"] == "late gain" for row in gains):
            del labels["early"], labels["late"]
        columns = [
            {"name": name, "label": label, "field": name, "align": "left" if name == "learner" else "right"}
            for name, label in labels.items()
        ]
        for column in columns:
            column["headerStyle"] = "white-space: normal"
        table = ui.table(columns=columns, rows=gain_rows(gains), row_key="id").classes("w-full")
        table.props('dense flat bordered wrap-cells data-testid=gains aria-label="results"')
        faint(
            "Rewards are points from 0 (lost) to 100 (won). The gain is computed run by run: how many points more "
            f"transfer had in each match.{_INTERVALS if self._run.plan['runs'] >= FEW_RUNS else ''}"
        )

    def _draw_downloads(self) -> None:
        figures = self._run.figures["figures"] if self._run.figures else ()
        files = {"report.html": "report (HTML)", "gains.csv": "table (CSV)"}
        for figure in figures:
            files[f"{figure['name']}.csv"] = f"curves {figure['name']} (CSV)" if len(figures) > 1 else "curves (CSV)"
        with ui.row().classes("gap-2 items-center"):
            ui.label("Save")
            for name, label in files.items():
                ui.button(label, icon="download", on_click=told(partial(self._save, name))).props(
                    f'outline dense no-caps data-testid=save-{Path(name).suffix[1:]} aria-label="save {label}"'
                )

    async def _save(self, name: str) -> None:
        path = self._run.folder / Path(name).name
        if not path.is_file():
            raise GameloreError("expected the files of the run, got none; its folder was changed, so begin a new run")
        with self._client:
            ui.download.file(path, Path(name).name)


# ---- a learner to keep ------------------------------------------------------------------------------------------


class KeepingPart:
    """The part of the page in which a learner plays once more, and keeps what it learns in the store.

    It is a child process of the page, and ends with it. Every match is kept at once, so that nothing is lost.
    """

    def __init__(self, services: Services, run: WatchedRun) -> None:
        self._services, self._run = services, run
        self._client = ui.context.client
        kinds = list(run.plan["learners"])
        heading("Let a learner keep what it learns")
        faint(
            "The learners of a run forget everything at its end. Here one of them plays once more, one series of "
            "matches, and keeps what it learns in the store: it is then on the page Knowledge. In Play, seats named "
            "baseline, transfer, lookahead or oracle keep what they learn, too: each goes on where it was against the "
            "same opponent, and transfer begins with the features of the other games in the store."
        )
        with ui.row().classes("gap-4 items-center"):
            first = "transfer" if "transfer" in kinds else kinds[0]
            self._kind = ui.select(kinds, value=first, label="Learner").classes("w-40")
            self._kind.props("data-testid=keep-learner")
            self._matches = ui.number("Matches", value=run.plan["matches"], min=1, max=MOST_KEPT_MATCHES, step=1)
            self._matches.classes("w-32").props("data-testid=keep-matches")
            ui.button("Learn and keep", icon="save", on_click=told(self._keep)).props(
                "outline no-caps data-testid=keep"
            )
        self._how_far = ui.label().props("role=status aria-live=polite data-testid=kept")
        self._links = ui.row().classes("gap-4")

    async def _keep(self) -> None:
        matches = self._matches.value
        if not matches or matches != int(matches) or not 1 <= matches <= MOST_KEPT_MATCHES:
            raise GameloreError(
                f"expected a whole number of matches from 1 to {MOST_KEPT_MATCHES:,}, got {matches}; choose another one"
            )
        self._links.clear()
        self._how_far.set_text("Starting ..")
        try:
            learned = await self._study(str(self._kind.value), int(matches))
        except GameloreError as error:
            self._how_far.set_text("")
            raise GameloreError(plain_words(str(error))) from error
        if learned is not None:
            self._show(learned)

    async def _study(self, kind: str, matches: int) -> Row | None:
        """Let a process learn; return the learner, or None if the page was closed meanwhile."""
        run = self._run
        given = {"folder": str(run.folder), "store": str(self._services.store)}
        async with self._services.processes.job(STUDYING) as process:
            await process.ask("begin", ASK_SECONDS, plan=run.plan, learner=kind, matches=matches, **given)
            while not self._client.is_deleted:
                progress = await process.ask("progress", ASK_SECONDS)
                outcome: Mapping[str, Any] | None = progress["outcome"]
                if outcome is not None and "ok" in outcome:
                    return dict(outcome["ok"])
                if outcome is not None:
                    raise GameloreError(failure_text(outcome))
                of = f": {progress['done']:,} of {progress['matches']:,} matches" if progress["matches"] else ""
                self._how_far.set_text(f"{upper_first(progress['stage'])}{of}")
                await asyncio.sleep(0.5)
        return None

    def _show(self, learned: Row) -> None:
        self._how_far.set_text(
            f"Kept: learner {learned['number']} of {learned['game']}, {matches_text(learned['matches'])}, "
            f"mean reward {learned['mean']:.1f}, {counted(learned['features'], 'feature')}."
        )
        with self._links:
            ui.link("Look at it", f"/knowledge/learner/{learned['number']}").classes("gl-link")
            ui.link("Play", "/").classes("gl-link")


_INTERVALS = (
    " In brackets are 95 % intervals over the runs. If that of a gain contains 0, these runs do not show a difference."
)
