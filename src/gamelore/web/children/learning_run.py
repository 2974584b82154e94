"""The child process behind the page "Watch learning": learners of one game, whose curves grow side by side.

The experiment is that of the lab (`lab.studies.transfer_study`), with its store of results, its report and its figures.
A thread plays it, so requests are answered at once. Between two steps of a tenth of a second the thread calls a watch,
which hands the rewards on, and waits if the run is paused or too fast. A step is a number of matches that all lanes
play: all runs of all learners. Lanes do not influence each other, so the results are those of the lab.

Every finished trial is in the store. The same plan in the same folder continues after an interruption: finished curves
come from the store, and unfinished series are played again.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from threading import Condition
from time import monotonic
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...api.transfer_experiment import SEED, TransferExperiment, with_roles
from ...errors import GameloreError, check_count, one_of
from ...files import write_whole
from ...gdl.limits import Limits
from ...lab.experiment import Batch, SeriesSetting, SettingGrid, code_version
from ...lab.feature_trees import DrawnFeature, drawable, feature_text, features_figure, labelled, left_out
from ...lab.figures import ReportPicture, file_name, svg_text
from ...lab.report import without_backslashes
from ...lab.results import ResultStore, store_path
from ...lab.stats import FEWEST_SHOWN, mean_curve, t_quantile
from ...lab.studies.transfer_study import TransferPlan, TransferResult, transfer
from ...learning.store.features import FeatureValues, combine
from ...learning.td.initial_values import Initialisation, Kind, LearnerSettings
from ...learning.td.series import CAP_VARIABLE
from ...matches.opponents import opponent_settings
from ...net.requests import answer_requests, limits_within
from ...players.lookahead import Heuristic
from ...rulesheets import names, split, title
from .long_job import Computation, JobPlan, Stopped

PLAN = "plan.json"  # name of the file with the plan, in the folder of a run
MOST_RUNS, MOST_MATCHES, MOST_SOURCES = 30, 10_000, 8
PREPARING = "preparing the learners"  # some seconds where they look ahead
MOST_POINTS = 300  # of a curve
MOST_TREES = 24  # in the picture of a source; more take many seconds
STEP_SECONDS = 0.1
LONGEST_WAIT = 60.0  # seconds; Python waits for some centuries at most
RATE_SECONDS = 3.0  # the rate is the mean over so many seconds
LOOKAHEAD = 1 / 2  # share of the memory for the positions of learners that look ahead
_TOO_LARGE = (
    "expected a run that fits into the memory of its process, got a larger one; choose fewer runs, lazy initialisation "
    "or a smaller game"
)

Point: TypeAlias = tuple[int, float, float | None, float | None]
"""Match, mean, and the ends of the 95 % interval of the cumulative average reward over runs, with three decimals. The
ends are None for too few runs."""


# ---- plans ----


class PlannedGame(Struct, frozen=True, forbid_unknown_fields=True):
    """A game of a plan.

    game  name of a shipped game, perhaps with options, or the text of a rulesheet
    name  name of the game of a text
    role  the learner's role; None for the first role
    """

    game: str
    name: str = "game"
    role: str | None = None

    def kept(self, folder: Path) -> str:
        """Return the name of the game, or the path of a file in the folder to which the text is written.

        Raise GameloreError for the path of a file: a page must not read the files of this machine.
        """
        if "(" not in self.game:
            one_of(split(self.game)[0], names(), "the text of a rulesheet or a shipped game")
            return self.game
        path = folder / f"{file_name(self.name)}.kif"
        write_whole(path, self.game)
        return str(path)


class LearningPlan(JobPlan, frozen=True, forbid_unknown_fields=True):
    """What is learned, by whom and how often. All numbers are as in `api.transfer_experiment.transfer`.

    target    the game in which the learners are compared
    learners  kinds of learners
    sources   games that the learner "transfer" learns first: it learns the target once after each of them
    opponent  the opponent in all games, such as "weak:filler=first"
    """

    target: PlannedGame
    learners: tuple[str, ...] = ("baseline",)
    sources: tuple[PlannedGame, ...] = ()
    opponent: str = "egreedy:filler=hashed"
    runs: int = 10
    matches: int = 3000
    seed: int = SEED
    source_matches: int = 100
    source_epsilon: float = 1.0
    initialisation: Initialisation = "eager"
    heuristic: Heuristic = "minimax"

    def __post_init__(self) -> None:
        self._check_learners()
        self._check_numbers()
        opponent_settings(self.opponent)

    def _check_learners(self) -> None:
        for learner in self.learners:
            one_of(learner, get_args(Kind), "a learner")
        if not self.learners or len(set(self.learners)) < len(self.learners):
            raise GameloreError(f"expected every learner once, got {', '.join(self.learners) or 'none'}; choose some")
        if ("transfer" in self.learners) != bool(self.sources):
            got = "sources without it" if self.sources else "no source"
            raise GameloreError(f"expected sources for the learner transfer, got {got}; choose both or neither")
        if len(self.sources) > MOST_SOURCES:
            raise GameloreError(f"expected at most {MOST_SOURCES} sources, got {len(self.sources)}; choose fewer")

    def _check_numbers(self) -> None:
        if not 0.0 <= self.source_epsilon <= 1.0:
            raise GameloreError(
                f"expected a source_epsilon from 0 to 1, got {self.source_epsilon}; it is a probability"
            )
        for name, most in (("runs", MOST_RUNS), ("matches", MOST_MATCHES), ("source_matches", MOST_MATCHES)):
            check_count(name, number := getattr(self, name))
            if number > most:
                raise GameloreError(f"expected at most {most} {name}, got {number}; `gamelore transfer` plays more")

    def plans(self, folder: Path, limits: Limits) -> list[TransferPlan]:
        """Return the plans of the lab, one for each source. Write the texts of rulesheets into the folder.

        Load all games, so that errors in rules and roles occur before the first match.
        """
        rules = folder / "rules"
        target = self.target.kept(rules / "target")
        places = [source.kept(rules / f"source{i}") for i, source in enumerate(self.sources, 1)] or [""]
        roles = [source.role for source in self.sources] or [None]
        return [
            with_roles(self._plan(place, target), role, self.target.role, limits)
            for place, role in zip(places, roles, strict=True)
        ]

    def _plan(self, source: str, target: str) -> TransferPlan:
        return TransferPlan(
            source,
            (target,),
            opponent_settings(self.opponent),
            LearnerSettings("transfer", self.heuristic, self.initialisation),
            self.learners,
            source_matches=self.source_matches,
            source_epsilon=self.source_epsilon,
            runs=self.runs,
            matches=self.matches,
            seed=self.seed,
        )


# ---- the pace of a run ----


class _Pace:
    """How far and how fast a run goes on. The thread of the run calls `next`, other threads call the other methods.

    is_paused  whether the run waits
    speed      matches of each lane in a second; None for as many as possible
    """

    def __init__(self) -> None:
        self.is_paused = self._is_stopped = False
        self.speed: float | None = None
        self._changed = Condition()
        self._due = self._since = 0.0  # time of the next step, and of the beginning of the last one (monotonic)
        self._size = 1  # matches of the last step
        self._ended: deque[tuple[float, int]] = deque()  # steps: (time of the end, number of matches then)

    def pause(self, is_paused: bool) -> None:
        """Let the run wait, or go on."""
        with self._changed:
            self.is_paused = is_paused
            self._begin_anew()

    def set_speed(self, speed: float | None) -> None:
        """Set the speed from now on."""
        with self._changed:
            self.speed = speed
            self._begin_anew()

    def stop(self) -> None:
        """Let `next` raise Stopped."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def next(self, done: int) -> int:
        """Wait until more than `done` matches may be played. Return the number of matches after the next step."""
        with self._changed:
            self._note(done)
            while not self._is_stopped and (self.is_paused or self._due > monotonic()):
                self._changed.wait(None if self.is_paused else min(LONGEST_WAIT, self._due - monotonic()))
            if self._is_stopped:
                raise Stopped
            self._since = monotonic()
            if self.speed is not None:
                self._size = max(1, round(self.speed * STEP_SECONDS))
                self._due = self._since + self._size / self.speed
            return done + self._size

    def rate(self) -> float | None:
        """Return the matches of each lane in a second; None if this is unknown at present."""
        with self._changed:
            if len(self._ended) < 2:
                return None
            (first, before), (last, done) = self._ended[0], self._ended[-1]
            return (done - before) / max(last - first, 1e-9)

    def _note(self, done: int) -> None:
        """Note the end of a step, and choose the size of the next one."""
        now = monotonic()
        if not done:  # another game
            self._begin_anew()
        growth = STEP_SECONDS / max(now - self._since, 1e-9)
        self._size = max(1, int(self._size * min(2.0, growth))) if done else 1
        self._ended.append((now, done))
        while len(self._ended) > 2 and self._ended[1][0] < now - RATE_SECONDS:
            self._ended.popleft()

    def _begin_anew(self) -> None:
        self._ended.clear()
        self._due = 0.0
        self._changed.notify_all()


# ---- a run ----


class _Grown(NamedTuple):
    """What is known of a curve: rewards float32[all lanes, matches], its own lanes, and the matches that are finished.

    It is replaced as a whole, because a thread writes it while another one reads it.
    """

    rewards: NDArray[np.float32]
    lanes: Sequence[int]
    done: int

    def points(self) -> list[Point]:
        """See `points`."""
        return points(self.rewards[self.lanes, : self.done]) if self.done else []


class _Curve:
    """A setting, and its rewards while they are played.

    learner  "source", or the kind of learner in the target
    game     the game with the learner's role, as the lab names it
    source   the same of the source whose values the learner begins with; "" for none
    """

    def __init__(self, setting: SeriesSetting, learner: str, game: str, source: str = "") -> None:
        self.setting, self.learner, self.game, self.source = setting, learner, game, source
        self.grown = _Grown(np.empty((setting.runs, 0), np.float32), range(setting.runs), 0)
        self._shown: tuple[_Grown, list[Point]] = self.grown, []

    @property
    def is_done(self) -> bool:
        return self.grown.done == self.setting.matches

    def as_json(self) -> dict[str, Any]:
        """Return the curve so far, see `LearningRun.progress`."""
        grown = self.grown
        if grown is not self._shown[0]:
            self._shown = grown, grown.points()
        return {
            "id": self.setting.id,
            "learner": self.learner,
            "game": self.game,
            "source": self.source or None,
            "runs": len(grown.lanes),
            "done": grown.done,
            "matches": self.setting.matches,
            "points": self._shown[1],
        }


def points(rewards: NDArray[np.float32]) -> list[Point]:
    """Return the curve of rewards [runs, matches] from match 1 on, as the lab computes it, in at most MOST_POINTS."""
    curve = mean_curve(rewards)
    kept = np.unique(np.linspace(0, len(curve.matches) - 1, MOST_POINTS).astype(int))
    mean, low, high = (column[kept].round(3).tolist() for column in (curve.mean, curve.low, curve.high))
    if len(rewards) < FEWEST_SHOWN:
        low = high = [None] * len(kept)
    return list(zip(curve.matches[kept].tolist(), mean, low, high, strict=True))


def _curves(plans: Sequence[TransferPlan]) -> dict[str, _Curve]:
    """Return the curves of all settings by id, sources first. All plans have the same target."""
    sources = [
        _Curve(plan.source_setting(), "source", plan.source_place) for plan in plans if "transfer" in plan.learners
    ]
    learners = [
        _Curve(
            plan.setting(target, kind), kind, plan.target_place(target), plan.source_place if kind == "transfer" else ""
        )
        for plan in plans
        for target in plan.targets
        for kind in plan.learners
    ]
    return {curve.setting.id: curve for curve in (*sources, *learners)}


Ahead: TypeAlias = dict[tuple[str, int, str], int]
"""Matches that each lane has still to play, by (game, role, stage)."""


class _Run(Computation):
    """A run of a plan in its own thread. The result is the answer to `figures`.

    stage     what the thread does now
    curves    by the id of the setting
    features  what was learned in each source, see `_carried`
    """

    def __init__(self, plan: LearningPlan, folder: Path, limits: Limits) -> None:
        self.pace = _Pace()
        self.stage = "loading the games"
        self.curves: dict[str, _Curve] = {}
        self.features: list[dict[str, Any]] = []
        self._plan, self._folder, self._limits = plan, folder, limits
        self._ahead: Ahead = {}
        super().__init__(self._play, "learning", _TOO_LARGE)

    def stop(self) -> None:
        """End the thread after the present step, and wait for it for a moment."""
        self.pace.stop()
        self.wait(2 * STEP_SECONDS)

    def left(self) -> int:
        """Return the number of matches that each lane has still to play, in all games together."""
        return sum(list(self._ahead.values()))

    def _play(self) -> dict[str, Any]:
        t_quantile(1)  # imports scipy, which no request shall wait for
        plans = self._plan.plans(self._folder, self._limits)
        self.curves = _curves(plans)
        self._prepare()
        self.stage = PREPARING
        result = transfer(plans, self._folder, workers=1, progress=False, limits=self._limits, watch=self._watch)
        self._read_store()
        self.stage = "done"
        return _figures(result)

    def _prepare(self) -> None:
        """Read what earlier runs of the plan have finished. Raise ExperimentError for results of other plans."""
        grid = SettingGrid.of(curve.setting for curve in self.curves.values())
        with ResultStore(store_path(self._folder)) as store:
            store.check(grid.settings, code_version())
            store.check_trials(grid.trials())
        write_whole(self._folder / PLAN, json.dumps(msgspec.to_builtins(self._plan), indent=1))
        self._read_store()
        todo = (curve.setting for curve in self.curves.values() if not curve.is_done)
        self._ahead = {(setting.game, setting.role, setting.stage): setting.matches for setting in todo}

    def _read_store(self) -> None:
        """Take the rewards and the features of the settings whose trials are all finished."""
        with ResultStore(store_path(self._folder)) as store:
            finished = store.finished()
            for name, curve in self.curves.items():
                runs = curve.setting.runs
                if finished >= {(name, run) for run in range(runs)}:
                    curve.grown = _Grown(store.rewards(name, runs), range(runs), curve.setting.matches)
            sources = [curve for curve in self.curves.values() if curve.learner == "source"]
            if not self.features and all(curve.is_done for curve in sources):
                self.features = [_carried(curve, store) for curve in sources]

    def _watch(self, batch: Batch, done: int, rewards: NDArray[np.float32]) -> int:
        """Note the rewards so far, and return the number of matches after the next step. See `BatchWatch`."""
        if not done:
            self._begin_stage(batch)
        for name, lanes in _lanes(batch).items():
            self.curves[name].grown = _Grown(rewards, lanes, done)
        self._ahead[batch.game, batch.role, batch.stage] = batch.matches - done
        if done < batch.matches:
            return self.pace.next(done)
        self.stage = PREPARING if self.left() else "drawing the figures"
        return done

    def _begin_stage(self, batch: Batch) -> None:
        if batch.stage == "source":
            self.stage = f"learning the source game {title(batch.game)}"
        else:
            kinds = dict.fromkeys(lane.trial.setting.learner.kind for lane in batch.lanes)
            self._read_store()  # the sources are finished
            self.stage = f"learning {title(batch.game)}: {', '.join(kinds)}"


def _lanes(batch: Batch) -> dict[str, list[int]]:
    """Return the lanes of each setting of a batch, by its id."""
    lanes: dict[str, list[int]] = {}
    for number, lane in enumerate(batch.lanes):
        lanes.setdefault(lane.trial.setting.id, []).append(number)
    return lanes


def _carried(curve: _Curve, store: ResultStore) -> dict[str, Any]:
    """Return the features of a source, see `LearningRun.features`.

    Each run of the target begins with the values of its own run of the source.
    """
    setting = curve.setting
    runs = store.values(setting.id, setting.runs)
    values = combine(runs)
    most_visited = sorted(values, key=lambda text: (-values[text][1], text))
    shown = drawable(labelled((text, {setting.opponent.kind: values[text][0]}) for text in most_visited))
    heading = f"{curve.game}, against {setting.opponent.kind}"
    return {
        "source": curve.game,
        "runs": setting.runs,
        "num_features": len(values),
        "left_out": left_out(len(values) - len(shown), len(values)) if len(shown) < len(values) else "",
        "features": list(_feature_rows(shown, values, runs)),
        "svg": svg_text(features_figure(shown[:MOST_TREES], title=heading)) if shown else "",
    }


def _feature_rows(
    features: Sequence[DrawnFeature], values: FeatureValues, runs: Sequence[FeatureValues]
) -> Iterator[dict[str, Any]]:
    for feature in features:
        value, visits = values[feature.text]
        yield {
            "label": feature.label,
            "text": feature.text,
            "tree": feature_text(feature.text),
            "value": value,
            "visits": visits,
            "runs": sum(feature.text in run for run in runs),
        }


def _figures(result: TransferResult) -> dict[str, Any]:
    """Return the answer to `LearningRun.figures`."""
    paths = result.report
    return {
        "headline": paths.headline,
        "gains": TransferExperiment(paths.headline, result.gains, result.rewards, paths).rows,
        "figures": list(map(_figure, result.pictures)),
        "folder": str(paths.folder),
        "report": str(paths.html),
    }


def _figure(picture: ReportPicture) -> dict[str, str]:
    svg = picture.svg.read_text(encoding="utf-8")
    return {"name": picture.name, "caption": without_backslashes(picture.caption), "svg": svg}


# ---- requests ----

State: TypeAlias = Literal["idle", "running", "paused", "stopped", "failed", "done"]


class LearningRun:
    """The requests of the page. All of them return at once; the results are values that JSON can hold.

    memory           bytes for the process
    prepare_seconds  processor time to get a game ready
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits = limits_within(memory, prepare_seconds)
        self._run: _Run | None = None
        self._speed: float | None = None

    def idle(self) -> bool:
        """Do nothing between requests: the thread of the run works by itself."""
        return False

    def begin(self, plan: Mapping[str, Any], folder: str) -> None:
        """Begin a run, or continue the one in this folder.

        Args:
            plan: the fields of `LearningPlan`, as in the file PLAN of the folder of an earlier run.
            folder: the folder for the results and the report; its parent need not exist.

        Raises:
            GameloreError: the plan has an unknown learner, opponent or option, or a run goes on already. Errors in the
                rules, too large lookahead and results of other settings come later, with `progress`.
        """
        if self._run is not None and self._run.is_alive:
            raise GameloreError("expected one run at a time, got another while one goes on; stop it first")
        self._run = _Run(LearningPlan.of(plan), Path(folder), self._limits)
        self._run.pace.set_speed(self._speed)
        self._run.begin()

    def progress(self) -> dict[str, Any]:
        """Return how far the run is.

        Returns:
            `state` (a State), `stage` (what the run does now, in words), `curves` (for each learner, also in sources:
            `id`, `learner`, `game`, `source`, `runs`, `done` and `matches` of each run, and `points`, a list of Point),
            `speed`, `matches_per_second` (of each run), `seconds_left` (both None if unknown), `num_features` (in the
            sources, see `features`), and `error` (None, or `error`, the class, and `message`, the sentence).
        """
        run = self._run
        state: State = "idle" if run is None else _state(run)
        rate = run.pace.rate() if run is not None and state == "running" else None
        return {
            "state": state,
            "stage": run.stage if run else "",
            "curves": [curve.as_json() for curve in run.curves.values()] if run else [],
            "speed": self._speed,
            "matches_per_second": rate,
            "seconds_left": run.left() / rate if run and rate else None,
            "num_features": sum(source["num_features"] for source in self.features()),
            "error": run.outcome if run and state == "failed" else None,
        }

    def features(self) -> list[dict[str, Any]]:
        """Return the features found in each source with the values that they carry, as soon as all are learned.

        Returns:
            For each source `source` (its game), `runs`, `num_features`, `left_out` (says which of them are not shown,
            or is empty), `svg` (a picture of the trees of the first ones, or empty), and `features`: `label`, `text`,
            `tree` (in box characters), `value` (points), `visits`, and `runs` (in how many the feature was met). The
            most visited ones come first. A value is the mean over all runs, weighted by visits.
        """
        return self._run.features if self._run is not None else []

    def pause(self) -> None:
        """Let the run wait after the present step."""
        self._begun().pace.pause(True)

    def resume(self) -> None:
        """Let the run go on."""
        self._begun().pace.pause(False)

    def set_speed(self, matches_per_second: float | None) -> None:
        """Set the most matches that each learner plays in each run in a second; None for no limit.

        Raise GameloreError for a number that is not above 0. The speed also holds for the next run.
        """
        if matches_per_second is not None and not 0 < matches_per_second < inf:
            raise GameloreError(f"expected a speed above 0, got {matches_per_second}; choose null for no limit")
        self._speed = matches_per_second
        if self._run is not None:
            self._run.pace.set_speed(matches_per_second)

    def stop(self) -> None:
        """End the run. `begin` with the same plan and folder continues it."""
        self._begun().stop()

    def figures(self) -> dict[str, Any]:
        """Return the results of the run, which are those of the lab.

        Returns:
            `headline`, `gains` (the rows of `TransferExperiment.rows`), `figures` (each with `name`, `caption` and
            `svg`), `folder` and `report` (the path of the HTML page).

        Raises:
            GameloreError: the run is not done.
        """
        run = self._begun()
        if run.outcome is None or "ok" not in run.outcome:
            raise GameloreError(f"expected a run that is done, got one that is {_state(run)}; wait for its end")
        figures: dict[str, Any] = run.outcome["ok"]
        return figures

    def _begun(self) -> _Run:
        if self._run is None:
            raise GameloreError("expected a run, got none; begin one first")
        return self._run


def _state(run: _Run) -> State:
    if run.outcome is not None:
        return "done" if "ok" in run.outcome else "failed"
    if run.is_stopped:
        return "stopped"
    return "paused" if run.pace.is_paused else "running"


def _created(memory: int, **given: Any) -> LearningRun:
    """Return the object that answers the requests of this process."""
    os.environ.setdefault(CAP_VARIABLE, str(int(LOOKAHEAD * memory) >> 20))
    return LearningRun(memory=memory, **given)


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(_created)


if __name__ == "__main__":
    main()
