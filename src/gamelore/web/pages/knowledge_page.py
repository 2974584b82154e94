"""The page "Knowledge": what the store holds, and who taught whom; search, export, import, check and deletion.

The process of the pages never opens the store. One child process does it for all pages, see `knowledge_worker`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from nicegui import ui
from nicegui.events import EChartPointClickEventArguments, UploadEventArguments

from ...errors import GameloreError, counted
from .frame import Services, agreed, answer_of, complain, fill, heading, is_connected, page_frame, say, text_in, told
from .knowledge_parts import (
    MOST_BYTES,
    MOST_LABELLED,
    WIDE_STYLE,
    Row,
    StoreProcess,
    add_choice,
    add_links,
    chart_of,
    draw_facts,
    export_file,
    faint,
    map_height,
    map_options,
    table_of,
)
from .learned_pages import KINDS, ComparePage, LearnerPage, LessonPage, used_text

WIDTH_SECONDS = 5.0  # within which it tells its width
NARROWEST = 320.0  # pixels of the main part of a page, on a phone
_WIDTH = "document.getElementById('main').clientWidth - 32"  # without the margins
_WHAT = {"features": "features", "lesson": "lesson of a variant", "experiment": "features, in an experiment"}


# ---- the overview -----------------------------------------------------------------------------------------------


class OverviewPage:
    """The page of the whole store: the map of games, all learners and lessons, export, import, check and deletion."""

    def __init__(self, services: Services, process: StoreProcess) -> None:
        self._services, self._process = services, process
        self._view: dict[str, Any] = {}
        self._width = NARROWEST

    async def draw(self) -> None:
        """Draw the page."""
        heading("Knowledge", 1)
        faint(
            "What was learned is kept in a store, so that the next match, and the next game, begin with it. "
            "Rewards and values are points from 0 (lost) to 100 (won)."
        )
        self._area = ui.column().classes("w-full gap-2")
        with ui.column().classes("w-full gap-2") as self._lasting:
            self._draw_import()
        with suppress(TimeoutError):
            self._width = await ui.run_javascript(_WIDTH, timeout=WIDTH_SECONDS)
        await self._read()

    def _read_soon(self) -> None:
        """Read the store again after an event, whose button the reading removes."""
        with self._lasting:
            ui.timer(0.0, self._read, once=True)

    async def _read(self) -> None:
        self._area.clear()
        asked = self._process.ask("overview", folder=str(self._services.folder))
        await fill(self._area, asked, self._draw_view)

    def _draw_view(self, view: dict[str, Any]) -> None:
        self._view = view
        with ui.row().classes("items-center gap-2"):
            size = f"{view['size'] / 1e6:.1f} MB" if view["size"] else "not there yet"
            name = ui.label(f"{view['path']}, {size}").classes("gl-faint gl-mono text-sm")
            name.style("overflow-wrap: anywhere")
            ui.button("Read again", icon="refresh", on_click=self._read_soon).props("flat dense no-caps")
            if view["size"]:
                ui.button("Check the store", icon="fact_check", on_click=told(self._check)).props(
                    "flat dense no-caps data-testid=check"
                )
        for damage in view["damaged"]:
            self._draw_damage(damage)
        if not view["learners"] and not view["lessons"]:
            _draw_empty()
        if view["num_games"]:
            self._draw_map()
        if view["learners"] or view["lessons"]:
            self._draw_filters()
        if view["learners"]:
            self._draw_learners()
        if view["lessons"]:
            self._draw_lessons()
        self._filter()

    def _draw_damage(self, damage: Row) -> None:
        with ui.row().classes("items-center gap-2"):
            ui.label(damage["error"]).classes("text-negative").style("overflow-wrap: anywhere")
            if damage["number"] is not None:
                delete = partial(self._delete, {str(damage["number"]): ""}, [], [f"learner {damage['number']}"])
                ui.button("Delete it", icon="delete", on_click=told(delete)).props("outline dense no-caps")

    # ---- the map ------------------------------------------------------------------------------------------------

    def _draw_map(self) -> None:
        view = self._view
        heading("Who taught whom")
        faint(
            "Each box is a game; click it to see what was learned in it. An arrow leads from a game that taught to "
            "the game in which that was used. Its number is the gain: how many points more the pupil got in each of "
            "its first matches than a learner without teacher, with a 95 % interval where there are enough runs."
        )
        options = map_options(view["games"], view["teachings"], self._width)
        height = map_height(view["games"], self._width)
        chart = chart_of(options, f"{height}px", "map of the games; the tables below say the same")
        chart.on_point_click(self._clicked).props("data-testid=map")
        if len(options["series"][0]["links"]) > MOST_LABELLED:
            faint("There are many arrows, so their gains are only in the table.")
        shown = sum(map(len, view["games"]))
        if shown < view["num_games"]:
            faint(f"{view['num_games'] - shown} more games are only in the lists below.")
        if view["teachings"]:
            self._draw_gains()

    def _draw_gains(self) -> None:
        columns = {"teacher": "teacher", "pupil": "pupil", "what": "what was used", "gain": "gain", "about": "where"}
        rows = [
            {
                "id": number,
                "teacher": teaching["names"][0],
                "pupil": teaching["names"][1],
                "what": _WHAT[teaching["what"]],
                "gain": teaching["text"],
                "about": teaching["about"],
            }
            for number, teaching in enumerate(self._view["teachings"])
        ]
        pagination = 10 if len(rows) > 10 else None
        table_of(columns, rows, wide=("gain", "about"), pagination=pagination).props("data-testid=gains")
        faint(
            "An interval is over runs of the pupil: learners with the same teachers and settings, and other seeds. "
            "Gains are computed from the rewards in the store, and from the experiments of Watch learning here."
        )

    def _clicked(self, event: EChartPointClickEventArguments) -> None:
        """Show what was learned in the game that was clicked."""
        key = event.data.get("id") if event.data_type == "node" and isinstance(event.data, dict) else None
        if key is None:
            return
        if not any(key in (row.get("hash"), row.get("rules_hash")) for row in self._rows):
            return say("the store has nothing about this game now")
        self._game.set_value(key)
        ui.run_javascript(f"document.getElementById('c{self._game.id}').scrollIntoView({{behavior: 'smooth'}})")

    # ---- lists --------------------------------------------------------------------------------------------------

    @property
    def _rows(self) -> list[Row]:
        return [*self._view["learners"], *self._view["lessons"]]

    def _draw_filters(self) -> None:
        heading("What was learned")
        games = {row.get("hash") or row["rules_hash"]: row["game"] for row in self._rows}
        names = list(games.values())
        shown = {key: name if names.count(name) == 1 else f"{name} ({key[:8]})" for key, name in games.items()}
        kinds = sorted({row["kind"] for row in self._view["learners"]})
        with ui.row().classes("w-full items-end gap-4"):
            self._game = ui.select(shown, label="Game", with_input=True, clearable=True, on_change=self._filter)
            self._game.classes("w-52").props("data-testid=filter-game")
            self._kind = ui.select(kinds, label="Kind of learner", clearable=True, on_change=self._filter)
            self._kind.classes("w-44").props("data-testid=filter-kind")
            self._opponent = ui.input("Opponent contains", on_change=self._filter).classes("w-44")
            self._opponent.props("clearable data-testid=filter-opponent")
        self._status = ui.label().classes("gl-faint").props("role=status aria-live=polite data-testid=found")

    def _draw_learners(self) -> None:
        heading("Learners", 3)
        columns = {
            "name": "learner", "game": "game", "role": "role", "kind": "kind", "opponent": "opponent",
            "sources": "taught by", "matches": "matches", "seed": "seed", "since": "since",
        }  # fmt: skip
        self._learners = _choice_of(columns, self._view["learners"], ("matches", "seed"))
        self._learners.props("data-testid=learners")
        add_links(self._learners, "name", "/knowledge/learner/")
        add_choice(self._learners, "learner")
        with ui.row().classes("gap-2"):
            self._button("Compare two", "compare_arrows", self._compare, "compare")
            self._button("Export", "download", self._export_learners, "export")
            self._button("Delete", "delete", self._delete_learners, "delete")
        with ui.expansion("What the kinds mean").props("dense").classes("w-full"):
            draw_facts(KINDS.items())

    def _draw_lessons(self) -> None:
        heading("Lessons of the player gamelore", 3)
        faint("A lesson is what the strong player has learned about a game from its own searches.")
        columns = {
            "name": "game", "seconds": "seconds of teaching", "generations": "generations",
            "explains": "explains", "variant": "began with", "openings": "openings", "matches": "matches",
            "used": "used",
        }  # fmt: skip
        numbers = ("seconds", "generations", "explains", "openings", "matches")
        self._lessons = _choice_of(columns, self._view["lessons"], numbers)
        self._lessons.props("data-testid=lessons")
        add_links(self._lessons, "name", "/knowledge/lesson/")
        add_choice(self._lessons, "lesson")
        with ui.row().classes("gap-2"):
            self._button("Export", "download", self._export_lessons, "export-lessons")
            self._button("Delete", "delete", self._delete_lessons, "delete-lessons")

    def _button(self, text: str, icon: str, action: Callable[[], Awaitable[None]], name: str) -> None:
        ui.button(text, icon=icon, on_click=told(action)).props(f"outline dense no-caps data-testid={name}")

    def _filter(self) -> None:
        """Show only what fits the filters."""
        if not self._rows:
            return
        view, game = self._view, self._game.value
        text = text_in(self._opponent).lower()
        learners = [
            row
            for row in view["learners"]
            if (game in (None, row["hash"]) and self._kind.value in (None, row["kind"]))
            and text in row["opponent"].lower()
        ]
        is_of_learners = bool(text or self._kind.value)
        lessons = [row for row in view["lessons"] if game in (None, row["rules_hash"]) and not is_of_learners]
        if view["learners"]:
            _show_rows(self._learners, map(_learner_row, learners))
        if view["lessons"]:
            _show_rows(self._lessons, map(_lesson_row, lessons))
        self._status.set_text(
            f"{len(learners)} of {counted(len(view['learners']), 'learner')}, "
            f"{len(lessons)} of {counted(len(view['lessons']), 'lesson')}"
        )

    # ---- actions ------------------------------------------------------------------------------------------------

    def _chosen(self, table: ui.table, what: str) -> list[Any]:
        """Return the ids of the chosen rows of a table. Raise GameloreError if there are none."""
        chosen = [row["id"] for row in table.selected]
        if not chosen:
            raise GameloreError(f"expected chosen {what}, got none; tick them in the table")
        return chosen

    async def _compare(self) -> None:
        chosen = self._chosen(self._learners, "learners")
        if len(chosen) != 2:
            raise GameloreError(f"expected two chosen learners, got {len(chosen)}; tick two of them")
        left, right = sorted(chosen)
        ui.navigate.to(f"/knowledge/compare/{left}/{right}")

    async def _export_learners(self) -> None:
        await export_file(self._process, "knowledge.json", numbers=sorted(self._chosen(self._learners, "learners")))

    async def _export_lessons(self) -> None:
        await export_file(self._process, "lessons.json", lessons=self._chosen(self._lessons, "lessons"))

    async def _delete_learners(self) -> None:
        chosen = self._chosen(self._learners, "learners")
        rows = [row for row in self._view["learners"] if row["number"] in chosen]
        names = [f"learner {row['number']}: {row['game']}, {row['role']} against {row['opponent']}" for row in rows]
        await self._delete({str(row["number"]): row["created"] for row in rows}, [], names)

    async def _delete_lessons(self) -> None:
        chosen = self._chosen(self._lessons, "lessons")
        names = [f"the lesson about {row['game']}" for row in self._view["lessons"] if row["rules_hash"] in chosen]
        await self._delete({}, chosen, names)

    async def _delete(self, learners: Mapping[str, str], lessons: Sequence[str], names: Sequence[str]) -> None:
        """Delete learners and lessons, if the person confirms it."""
        if await agreed("Delete for good? There is no way back, except from an export.", "Delete", names):
            say(await self._process.ask("delete", learners=learners, lessons=lessons))
            self._read_soon()

    async def _check(self) -> None:
        """Check the whole store, and show what is wrong."""
        wrong = await self._process.ask("check")
        with ui.dialog() as dialog, ui.card():
            heading("The store is in order" if not wrong else counted(len(wrong), "problem"))
            for problem in wrong[:20]:
                ui.label(problem).style("overflow-wrap: anywhere")
            if wrong:
                faint("Delete wrong learners. If a game or the file is wrong, export the others into a new store.")
            ui.button("Close", on_click=dialog.close)
        await answer_of(dialog)

    # ---- import -------------------------------------------------------------------------------------------------

    def _draw_import(self) -> None:
        heading("Import")
        faint(
            f"A file that was exported here or on another machine, of at most {MOST_BYTES / 1e6:g} MB. For larger "
            "files, use the commands: gamelore knowledge import FILE, and gamelore lessons import FILE."
        )
        self._upload = ui.upload(
            label="knowledge.json or lessons.json",
            auto_upload=True,
            max_file_size=MOST_BYTES,
            on_upload=self._import,
            on_rejected=lambda: complain(
                f"expected a .json file of at most {MOST_BYTES / 1e6:g} MB, got another one; export fewer learners "
                "into each file, or use the command gamelore knowledge import FILE"
            ),
        )
        self._upload.classes("w-full max-w-lg").props('accept=".json" flat bordered data-testid=import')
        self._imported = ui.label().props("role=status aria-live=polite data-testid=imported")
        self._imported.style("white-space: pre-wrap; overflow-wrap: anywhere")
        with ui.expansion("What happens to learners that are here already").props("dense").classes("w-full"):
            faint(
                "A learner of the file is one of the store if game, role, opponent, settings and seed are equal. The "
                "one with more matches is kept. If the two differ in a match that both played, or in what they began "
                "with, nothing of the file is imported: import it into a new store with gamelore knowledge import "
                "FILE --knowledge NEW. Of two lessons about a game, the one that was taught longer is kept; openings "
                "and matches are added."
            )

    async def _import(self, event: UploadEventArguments) -> None:
        text = (await event.file.read()).decode("utf-8", "replace")
        self._imported.set_text("importing ..")
        self._upload.reset()  # the browser would refuse the same file again
        try:
            added = await self._process.ask("add", text=text, name=event.file.name[:100])
        except GameloreError as error:
            self._imported.set_text(str(error))
            return
        self._imported.set_text(imported_text(event.file.name, added))
        self._read_soon()


def _choice_of(columns: Mapping[str, str], rows: Sequence[Row], numbers: Sequence[str]) -> ui.table:
    """Draw a table without rows yet, in which rows can be chosen. `rows`: at most so many come."""
    pagination = 20 if len(rows) > 20 else None
    return table_of(columns, [], numbers=numbers, wide=["used"], selection="multiple", pagination=pagination)


def _show_rows(table: ui.table, rows: Iterable[dict[str, Any]]) -> None:
    """Show other rows in a table. Those that were chosen stay chosen if they are still shown."""
    chosen = {row["id"] for row in table.selected}
    table.rows = list(rows)
    table.selected = [row for row in table.rows if row["id"] in chosen]


def _learner_row(row: Row) -> dict[str, Any]:
    sources = row["sources"] or "-"
    return {
        **{name: row[name] for name in ("game", "role", "kind", "opponent", "matches", "seed")},
        "id": row["number"],
        "name": f"learner {row['number']}",
        "sources": sources,
        "since": row["created"][:10],
    }


def _lesson_row(row: Row) -> dict[str, Any]:
    return {
        "id": row["rules_hash"],
        "name": row["game"],
        "seconds": round(row["seconds"]),
        "generations": row["generations"],
        "explains": f"{row['determination']:.0%}",
        "variant": row["variant"] or "-",
        "openings": row["openings"],
        "matches": row["matches"],
        "used": used_text(row["taken_for"]),
    }


def imported_text(name: str, added: Row) -> str:
    """Return in words what became of an imported file; see `KnowledgeWorker.add`."""
    lines = [f"{name}: {counted(added['num'], added['what'].removesuffix('s'))}"]
    if added["new"]:
        lines.append(f"new: {', '.join(added['new'])}")
    if added["longer"]:
        lines.append(f"longer than here, so they replaced what was here: {', '.join(added['longer'])}")
    if added["same"]:
        lines.append(f"already here with as much or more, so nothing changed: {added['same']}")
    return "\n".join(lines)


def _draw_empty() -> None:
    """Explain how knowledge gets into a store."""
    with ui.card().classes("w-full max-w-2xl").props("flat bordered data-testid=empty"):
        ui.label("Nothing is remembered here yet. Knowledge comes from:")
        with ui.column().classes("gap-1"):
            ui.link("a match with a seat that remembers: tick “remembers” where you choose its player", "/").classes(
                "gl-link"
            )
            ui.link("Watch learning: its experiments appear on a map here", "/learning").classes("gl-link")
            ui.label("the commands gamelore learn GAME and gamelore study GAME")
            ui.label("a file that was exported elsewhere, see Import below")


Page: TypeAlias = OverviewPage | LearnerPage | LessonPage | ComparePage


async def _show(page: Page) -> None:
    """Show a page, and fill it when the browser is connected."""
    with page_frame("Knowledge") as main:
        ui.add_css(WIDE_STYLE)
    if not await is_connected():
        return
    with main:
        await page.draw()


def add_pages(services: Services) -> None:
    """Add the pages to the server."""
    process = StoreProcess(services)

    @ui.page("/knowledge")
    async def overview() -> None:
        await _show(OverviewPage(services, process))

    @ui.page("/knowledge/learner/{number:int}")
    async def learner(number: int) -> None:
        await _show(LearnerPage(process, number))

    @ui.page("/knowledge/lesson/{key}")
    async def lesson(key: str) -> None:
        await _show(LessonPage(process, key))

    @ui.page("/knowledge/compare/{left:int}/{right:int}")
    async def compare(left: int, right: int) -> None:
        await _show(ComparePage(process, left, right))
