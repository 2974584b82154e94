"""Settings and a way to play that needs no game."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from gamelore.lab.experiment import Batch, SeriesSetting
from gamelore.lab.results import Outcome
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import OpponentSettings
from gamelore.players.random_streams import stream, uniform
from gamelore.workers.processes import Report
from processes import children, command_of


def make_setting(name: str = "game/egreedy/baseline", **changes: object) -> SeriesSetting:
    """A small setting; changes as for SeriesSetting."""
    plain: dict[str, object] = {
        "game": "game", "role": 0, "learner": LearnerSettings(), "opponent": OpponentSettings(filler="hashed"),
        "runs": 3, "matches": 4, "seed": 1,
    }  # fmt: skip
    return SeriesSetting(name, **{**plain, **changes})  # type: ignore[arg-type]


def make_source(name: str = "source/egreedy/source", **changes: object) -> SeriesSetting:
    """A setting whose runs keep feature values."""
    return make_setting(name, **{"game": "source", "stage": "source", "extract": True, **changes})


def pretend(batch: Batch, report: Report) -> list[Outcome]:
    """Rewards that are a function of the trial and of the feature values it was given."""
    report(batch.size)
    outcomes = []
    for lane in batch.lanes:
        setting = lane.trial.setting
        given = sum(value for value, _ in lane.values.values()) if lane.values else 0.0
        key = stream(setting.seed, lane.trial.run, batch.stage, setting.id, int(given))
        draws = uniform(np.full(batch.matches, key), np.arange(batch.matches), 0)
        rewards = np.array([0, 50, 100], np.float32)[(draws * 3).astype(int)]
        values = FeatureValues({"L,{W}": (float(lane.trial.run), 5)}) if setting.extract else None
        lengths = np.arange(batch.matches, dtype=np.int16)
        outcomes.append(Outcome(lane.trial, rewards, lengths, values, f"rules of {batch.game}", "native"))
    return outcomes


def die(batch: Batch, report: Report) -> list[Outcome]:
    """A worker that is killed, by its own hand."""
    os._exit(1)


def fail(batch: Batch, report: Report) -> list[Outcome]:
    """A job with a bug."""
    raise ZeroDivisionError(batch.game)


def kill_the_tracker(batch: Batch, report: Report) -> list[Outcome]:
    """A worker that kills the process in which Python keeps the names of the caller's semaphores."""
    for pid in children(os.getppid()):
        if "resource_tracker" in command_of(pid):
            os.kill(pid, signal.SIGKILL)
    return pretend(batch, report)


def linger(batch: Batch, report: Report) -> list[Outcome]:
    """Plays one game at once and is never done with the other; says which process it is."""
    if batch.game == "other":
        (Path(os.environ["PRETENDED"]) / f"{os.getpid()}").touch()
        time.sleep(600)
    return pretend(batch, report)
