"""Learning that is watched: the chart of growing curves, and the runs behind it, which any number of pages watch.

A `WatchedRun` lives in the process of the pages, and its learners in a child process (`learning_run`). The child asks
for nothing: the run asks it how far it is while a page watches. All finished curves are on disk, so that a run goes on
after the server, or its child, has ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import cycle
from operator import call
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from nicegui import ui

from ...errors import GameloreError
from ...files import write_whole
from ...net.pool import WorkerDied, WorkerProcess
from ..pages.frame import Services
from ..service.archive import KEPT_ID
from ..service.rule_processes import RuleProcesses, TooBusy
from ..service.watchers import Watchers

MODULE = "gamelore.web.children.learning_run"
POLL_SECONDS, PARKED_POLL_SECONDS = 0.33, 30.0
PARKED_SECONDS = 600.0  # for which a run that nobody watches keeps its process
ASK_SECONDS = 300.0  # limit for a request, which is answered at once unless the child imports or compiles something
MOST_OPEN = 50  # runs in memory
RUN, SHOWN = "run.json", "shown.json"  # files in the folder of a run
log = logging.getLogger(__name__)

Row: TypeAlias = Mapping[str, Any]
"""A JSON object that the child has sent; see `learning_run.LearningRun`."""


# ---- the chart --------------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """Colour of a curve on white (contrast at least 4), and its line: a name, or the lengths of dashes and gaps."""

    colour: str
    line: str | Sequence[int]


LOOKS = {  # the colours are those of the lab's figures
    "baseline": Look("#8a6d3b", "dashed"),
    "transfer": Look("#1f6fb4", "solid"),
    "lookahead": Look("#c9403a", "dotted"),
    "oracle": Look("#2c8a4b", (12, 4, 3, 4)),
    "source": Look("#5b6570", "solid"),
}
FURTHER_LOOKS = (  # of the transfer learners from further sources, and of further source games
    Look("#8a5bb0", (18, 4)),
    Look("#0b7a75", (4, 4)),
    Look("#b0307a", (14, 4, 3, 4, 3, 4)),
    Look("#6b6b00", (8, 8)),
    Look("#2f3e9e", (2, 6)),
    Look("#7a3b10", (22, 6, 6, 6)),
    Look("#22262b", (10, 3)),
)
INK, PAPER = "#22262b", "#ffffff"  # the chart is on white paper in dark colours, too
X_AXIS, Y_AXIS = "matches", "mean reward so far (0 to 100)"
LEGEND_LINE = 20  # pixels
_COLUMNS = {"name": "learner", "done": "matches", "mean": "mean reward so far", "interval": "95 % interval"}


class LearningCurves:
    """A chart of learning curves, one line and one shaded interval for each learner, and a table of the last values.

    It is drawn into the present element of the page.

    Args:
        of_sources: show the learners in the source games, instead of those that are compared
        height: height of the chart without its legend, as in CSS
    """

    def __init__(self, *, of_sources: bool = False, height: str = "18rem") -> None:
        self._of_sources, self._height = of_sources, height
        self._shown: list[Row] = []
        where = "in the source games" if of_sources else "of the learners"
        with ui.column().classes("w-full gap-2"):
            self._chart = ui.echart(chart_options([]), renderer="svg").classes("w-full rounded")
            self._chart.style(f"height: {height}").props("role=img data-testid=curves")
            self._chart.props(f'aria-label="learning curves {where}; the table below has their last values"')
            columns = [
                {"name": name, "label": label, "field": name, "align": "left" if name == "name" else "right"}
                for name, label in _COLUMNS.items()
            ]
            self._table = ui.table(columns=columns, rows=[], row_key="name").classes("w-full")
            self._table.props('dense flat bordered wrap-cells aria-label="last values" data-testid=last-values')

    def update(self, progress: Row) -> None:
        """Show how far a run is: an answer of `LearningRun.progress`."""
        curves = in_order(curve for curve in progress["curves"] if (curve["learner"] == "source") == self._of_sources)
        if curves == self._shown:
            return
        if len(curves) != len(self._shown):
            self._chart.style(f"height: calc({self._height} + {LEGEND_LINE * len(curves)}px)")
        self._shown = curves
        self._chart.options.clear()
        self._chart.options.update(chart_options(curves))
        self._chart.update()
        self._table.rows = last_values(curves)


def in_order(curves: Iterable[Row]) -> list[Row]:
    """Return the curves with those of the same kind of learner beside each other."""
    given = list(curves)
    kinds = [curve["learner"] for curve in given]
    return sorted(given, key=lambda curve: kinds.index(curve["learner"]))


def chart_options(curves: Sequence[Row]) -> dict[str, Any]:
    """Return the chart of these curves as options of ECharts."""
    named = list(zip(curve_names(curves), curve_looks(curves), curves, strict=True))
    axis = {"type": "value", "nameLocation": "middle", "axisLabel": {"color": INK}, "nameTextStyle": {"color": INK}}
    names = [name for name, _, _ in named]
    return {
        "backgroundColor": PAPER,
        "animation": False,
        "grid": {"left": 54, "right": 24, "top": 24 + LEGEND_LINE * len(names), "bottom": 46},
        "legend": {
            "data": names,
            "orient": "vertical",
            "left": 54,
            "top": 8,
            "itemWidth": 44,
            "itemHeight": 2,  # of the circle on the line, which cannot be left out
            "itemGap": LEGEND_LINE - 7,
            "textStyle": {"color": INK},
        },
        "tooltip": {"trigger": "axis", "renderMode": "richText"},  # names are no HTML
        "xAxis": {**axis, "name": X_AXIS, "nameGap": 28, "min": 1, "max": _last_match(curves), "minInterval": 1},
        "yAxis": {**axis, "name": Y_AXIS, "nameGap": 36, "min": 0, "max": 100},
        "series": [series for part in named for series in _series(*part)],
    }


def _last_match(curves: Sequence[Row]) -> int:
    return max([2, *(int(curve["matches"]) for curve in curves)])


def _series(name: str, look: Look, curve: Row) -> Iterator[dict[str, Any]]:
    """Yield the line of a curve and its interval: an invisible line, on which a shaded one is stacked."""
    points = curve["points"]
    common = {"type": "line", "symbol": "none", "color": look.colour}
    style = {"type": look.line if isinstance(look.line, str) else list(look.line), "width": 2.5}
    yield {
        **common,
        "name": name,
        "data": [point[:2] for point in points],
        "lineStyle": style,
        ":tooltip": "{valueFormatter: value => value.toFixed(1)}",
        "z": 3,
    }
    ends = [(match, *_within(low, high)) for match, _, low, high in points if low is not None]
    hidden = {"silent": True, "tooltip": {"show": False}, "lineStyle": {"opacity": 0}, "stack": f"interval of {name}"}
    yield {**common, **hidden, "data": [(match, low) for match, low, _ in ends]}
    shade = {"opacity": 0.18, "color": look.colour}
    yield {**common, **hidden, "data": [(match, high - low) for match, low, high in ends], "areaStyle": shade}


def _within(low: float, high: float) -> tuple[float, float]:
    """Return the part of an interval that is from 0 to 100."""
    return max(0.0, low), min(100.0, high)


def curve_names(curves: Sequence[Row]) -> list[str]:
    """Return what the curves are called: transfer learners and source games with the game if there are several."""
    kinds = [curve["learner"] for curve in curves]
    return [_name(curve, kinds.count(curve["learner"]) > 1) for curve in curves]


def _name(curve: Row, is_ambiguous: bool) -> str:
    if curve["learner"] == "source":
        return f"learner in {curve['game']}"
    return f"{curve['learner']} from {curve['source']}" if is_ambiguous else str(curve["learner"])


def curve_looks(curves: Sequence[Row]) -> list[Look]:
    """Return the looks of the curves: all are different."""
    further, used, looks = cycle(FURTHER_LOOKS), set[str](), list[Look]()
    for curve in curves:
        kind = curve["learner"]
        looks.append(LOOKS[kind] if kind not in used else next(further))
        used.add(kind)
    return looks


def last_values(curves: Sequence[Row]) -> list[dict[str, str]]:
    """Return a row of texts for each curve: its name, matches, mean so far, and interval."""
    return [
        {"name": name, "done": f"{curve['done']:,} of {curve['matches']:,}"} | _last_point(curve)
        for name, curve in zip(curve_names(curves), curves, strict=True)
    ]


def _last_point(curve: Row) -> dict[str, str]:
    if not curve["points"]:
        return {"mean": "-", "interval": "-"}
    _, mean, low, high = curve["points"][-1]
    interval = f"too few runs ({curve['runs']})" if low is None else "{:.1f} to {:.1f}".format(*_within(low, high))
    return {"mean": f"{mean:.1f}", "interval": interval}


# ---- a run ------------------------------------------------------------------------------------------------------

IDLE: Row = {
    "state": "idle",
    "stage": "",
    "curves": [],
    "speed": None,
    "matches_per_second": None,
    "seconds_left": None,
    "num_features": 0,
    "error": None,
}
"""The progress of a run that has not begun; see `LearningRun.progress`."""


@dataclass(eq=False)
class WatchedRun:
    """A run, see the module. Pages read its attributes after each change.

    While no page watches, the run waits, GRACE after the last one has left; after PARKED_SECONDS its process ends. It
    goes on when a page opens again.

    Attributes:
        id: name of the folder, and part of the address
        folder: folder of results, report and figures
        plan: the fields of `learning_run.LearningPlan`
        processes: the processes of the server
        title: what the pages call it
        created: the time of its beginning, in ISO format, UTC
        is_paused: whether a person lets it wait
        speed: matches of each learner in a second; None for as many as possible
        progress: last answer of `LearningRun.progress`
        features: answer of `LearningRun.features`; empty until all sources are learned
        figures: answer of `LearningRun.figures`; None until the run is done
        error: why the run cannot go on, in a sentence; empty if it can
    """

    id: str
    folder: Path
    plan: Row
    processes: RuleProcesses
    title: str = ""
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    is_paused: bool = False
    speed: float | None = None
    progress: Row = field(default_factory=lambda: IDLE)
    features: Sequence[Row] = ()
    figures: Row | None = None
    error: str = ""
    _work: asyncio.Task[None] | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _parked_at: float | None = None  # seconds of `time.monotonic`
    _is_stopping: bool = False
    _is_kept: bool = True

    def __post_init__(self) -> None:
        self._watchers: Watchers[Callable[[], None]] = Watchers(self.park)

    # ---- watching -----------------------------------------------------------------------------------------------

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call a function after each change, until the returned function is called.

        A new or an interrupted run begins or goes on.
        """
        leave = self._watchers.add(on_change)
        self._parked_at = None
        self._wake()
        if not (self.is_paused or self.is_over or self.error):
            self.start()
        return leave

    @property
    def is_watched(self) -> bool:
        """Whether a page shows the run."""
        return bool(self._watchers)

    @property
    def is_on(self) -> bool:
        """Whether the run has a process."""
        return self._work is not None and not self._work.done()

    @property
    def is_parked(self) -> bool:
        """Whether the run waits because nobody watches it."""
        return self._parked_at is not None

    @property
    def is_over(self) -> bool:
        """Whether the run is done, or has failed."""
        return self.progress["state"] in ("done", "failed")

    def _tell(self) -> None:
        self._watchers.tell(call)

    # ---- what people do -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the run, or continue it from its folder; nothing happens if it goes on already, is done or deleted.

        It waits unless a page watches it within GRACE.
        """
        self._watchers.end_unless_watched()
        if not self._is_kept:
            return
        self.is_paused = False
        if not self.is_on and self.figures is None:
            self.error, self._is_stopping = "", False
            self.progress = {**self.progress, "state": "running", "stage": "", "error": None}
            self._work = asyncio.get_running_loop().create_task(self._go_on())
            self._work.add_done_callback(lambda _: self._ended())
        self._changed()

    def pause(self) -> None:
        """Let the run wait, until `resume`."""
        self.is_paused = True
        self._changed()

    def resume(self) -> None:
        """Let the run go on."""
        self.start()

    def set_speed(self, matches_per_second: float | None) -> None:
        """Set the number of matches of each learner in a second; None for as many as possible."""
        self.speed = matches_per_second
        self._changed()

    def park(self) -> None:
        """Let the run wait until somebody watches it again."""
        if not self.is_watched:
            self._parked_at = monotonic()
            self._wake()

    async def stop(self) -> None:
        """End the process of the run, and wait until it has ended. Finished curves are kept."""
        self._is_stopping = True
        self._wake()
        if self._work is not None:
            await asyncio.wait({self._work})

    async def delete(self) -> None:
        """End the run, and remove its folder."""
        self._is_kept = False
        await self.stop()
        self.error = "this run was deleted"
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        self._tell()

    def _changed(self) -> None:
        self.keep()
        self._wake()
        self._tell()

    def _wake(self) -> None:
        self._woken.set()

    # ---- going on -----------------------------------------------------------------------------------------------

    async def _go_on(self) -> None:
        """Let a process go on with the run, until it is over or has to end."""
        try:
            async with self.processes.job(MODULE) as process:
                await process.ask("set_speed", ASK_SECONDS, matches_per_second=self.speed)
                await process.ask("begin", ASK_SECONDS, plan=dict(self.plan), folder=str(self.folder))
                await self._follow(process)
        except GameloreError as error:
            self._fail(error)
        except Exception as error:
            log.exception("a run failed")
            self.error = f"expected the run to go on, got {type(error).__name__}: {error}; go on with it"

    def _ended(self) -> None:
        if not self.is_over:
            self.progress = {**self.progress, "state": "stopped", "seconds_left": None, "matches_per_second": None}
        self.keep()
        self._tell()

    def _fail(self, error: GameloreError) -> None:
        self.error = plain_words(str(error))
        if not isinstance(error, WorkerDied | TooBusy):
            self.progress = {**self.progress, "state": "failed"}

    async def _follow(self, process: WorkerProcess) -> None:
        """Tell the process what is wanted, and ask how far it is, until the run is over or has to end."""
        steered: tuple[bool, float | None] = False, self.speed
        while not self._has_to_end():
            self._woken.clear()
            wanted = self.is_paused or self.is_parked, self.speed
            if wanted != steered:
                await process.ask("pause" if wanted[0] else "resume", ASK_SECONDS)
                await process.ask("set_speed", ASK_SECONDS, matches_per_second=wanted[1])
                steered = wanted
            await self._take(process)
            if self.is_over:
                return
            with suppress(TimeoutError):
                seconds = PARKED_POLL_SECONDS if self.is_parked else POLL_SECONDS
                await asyncio.wait_for(self._woken.wait(), seconds)
        await process.ask("stop", ASK_SECONDS)

    def _has_to_end(self) -> bool:
        is_forgotten = self._parked_at is not None and monotonic() - self._parked_at > PARKED_SECONDS
        return self._is_stopping or is_forgotten

    async def _take(self, process: WorkerProcess) -> None:
        """Take a new progress, with new features and figures, and tell the pages of it."""
        progress = await process.ask("progress", ASK_SECONDS)
        if progress["num_features"] and not self.features:
            self.features = await process.ask("features", ASK_SECONDS)
        if progress["state"] == "done":
            self.figures = await process.ask("figures", ASK_SECONDS)
        if progress["state"] == "failed":
            self.error = failure_text(progress["error"])
        if progress != self.progress:
            self.progress = progress
            self._tell()

    # ---- on disk ------------------------------------------------------------------------------------------------

    def keep(self) -> None:
        """Write the run into its folder; what it shows only while it has no process, since that is large."""
        if not self._is_kept:
            return
        about = {name: getattr(self, name) for name in ("title", "created", "plan", "is_paused", "speed")}
        shown = {name: getattr(self, name) for name in ("progress", "features", "figures")}
        try:
            if not self.is_on:
                write_whole(self.folder / SHOWN, json.dumps(shown))
            about |= {"state": self.progress["state"], "error": self.error if self.is_over else ""}
            write_whole(self.folder / RUN, json.dumps(about))
        except OSError as error:  # the run goes on
            log.warning("a run could not be kept: %s", error)

    @classmethod
    def read(cls, folder: Path, processes: RuleProcesses) -> WatchedRun:
        """Return a run that was kept. Raise GameloreError for anything else."""
        try:
            about = json.loads((folder / RUN).read_text(encoding="utf-8"))
            shown = json.loads((folder / SHOWN).read_text(encoding="utf-8")) if (folder / SHOWN).is_file() else {}
            given = {name: about[name] for name in ("title", "created", "plan", "is_paused", "speed", "error")}
            return cls(folder.name, folder, processes=processes, **given, **shown)
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise GameloreError(
                f"expected a learning run in {folder}, got something else ({error}); delete it"
            ) from None


def failure_text(error: Row) -> str:
    """Return an error of the child as a sentence; an error in rules with its place."""
    place = f"line {error['line']}, column {error['column']}: " if error.get("line") else ""
    remedy = f"; {error['remedy']}" if error.get("remedy") else ""
    return plain_words(f"{place}{error['message']}{remedy}")


def plain_words(text: str) -> str:
    """Return an error without what only a command line has, such as names of options and of variables."""
    for pattern, words in _REWORDED:
        text = pattern.sub(words, text)
    return text


_REWORDED = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"; choose another folder with --out$", "; begin a new run"),
        (
            r"; end another job first$",
            "; pause another learning run and close its page, or end another server or series",
        ),
        (r"another learner \(lookahead or transfer\), or allow more memory with .*", "or without the learner oracle"),
        (
            r"choose lazy initialisation, .* or allow more memory with .*",
            "choose another time for the first value of a position (More options), fewer matches or a smaller game",
        ),
        (r"`gamelore check --play` shows", "the page Rulesheets shows"),
        (r"; allow more memory if you want to play this game$", "; choose fewer runs or matches, or a smaller game"),
        (r"`gamelore transfer` plays more$", "more are possible with the command gamelore transfer"),
    )
)


# ---- all runs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run on disk, in a line: its id, title, state, and the time of its beginning."""

    id: str
    title: str
    state: str
    created: str


class LearningDesk:
    """All runs of the pages.

    Args:
        folder: folder of the runs
        processes: the processes of the server
    """

    def __init__(self, folder: Path, processes: RuleProcesses) -> None:
        self._folder, self._processes = folder, processes
        self._open: dict[str, WatchedRun] = {}

    async def begin(self, plan: Row, title: str, speed: float | None = None) -> WatchedRun:
        """Begin a run. Whether its plan is allowed is told by its error a moment later.

        Args:
            plan: the fields of `learning_run.LearningPlan`
            title: what the pages call the run
            speed: matches of each learner in a second; None for as many as possible
        """
        await self._make_room()
        self._forget()
        id = secrets.token_urlsafe(9)
        run = self._open[id] = WatchedRun(id, self._folder / id, plan, self._processes, title, speed=speed)
        run.start()
        return run

    def run(self, id: str) -> WatchedRun:
        """Return the run with an id. Raise GameloreError if there is none."""
        if id not in self._open:
            folder = self._folder / id
            if not KEPT_ID.fullmatch(id) or not (folder / RUN).is_file():
                raise GameloreError("expected the address of a learning run, got one that is not kept here; begin one")
            self._forget()
            self._open[id] = WatchedRun.read(folder, self._processes)
        return self._open[id]

    def kept(self) -> list[KeptRun]:
        """Return the runs on disk, the one that began last first."""
        return sorted(self._read_all(), key=lambda run: run.created, reverse=True)

    def _read_all(self) -> Iterator[KeptRun]:
        for path in self._folder.glob(f"*/{RUN}"):
            with suppress(ValueError, KeyError, TypeError, OSError):
                about = json.loads(path.read_text(encoding="utf-8"))
                yield KeptRun(
                    path.parent.name, str(about["title"]), self._state(path.parent.name, about), about["created"]
                )

    def _state(self, id: str, about: Row) -> str:
        """Return the state of a run; a run without a process is no longer running."""
        run = self._open.get(id)
        state = str(run.progress["state"] if run is not None else about["state"])
        is_on = run is not None and run.is_on
        return state if is_on or state in ("done", "failed") else "stopped"

    async def delete(self, id: str) -> None:
        """Delete a run. Raise GameloreError if there is none."""
        await self.run(id).delete()
        self._open.pop(id, None)

    def _forget(self) -> None:
        """Forget runs that are on disk only, if there are many."""
        for run in [run for run in self._open.values() if not (run.is_watched or run.is_on)]:
            if len(self._open) >= MOST_OPEN:
                del self._open[run.id]

    async def _make_room(self) -> None:
        """End the processes of runs that nobody watches, if there are many."""
        going = [run for run in self._open.values() if run.is_on]
        if len(going) >= self._processes.limits.jobs - 1:
            await asyncio.gather(*(run.stop() for run in going if run.is_parked))


@cache
def learning_desk(services: Services) -> LearningDesk:
    """Return the desk of these services, the same for all pages."""
    return LearningDesk(services.folder / "learning", services.processes)
