"""Shared by the measurements that take hours: failures of single jobs, lines of progress, the version measured."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gamelore
from gamelore.errors import GameloreError
from gamelore.lab.results import Outcome
from gamelore.lab.stats import Interval
from gamelore.workers.processes import Report


def check_gamelore() -> None:
    """Raise GameloreError if the gamelore that is imported is not the one beside this file."""
    source = Path(__file__).resolve().parents[1] / "src"
    if not Path(gamelore.__file__).resolve().is_relative_to(source):
        raise GameloreError(f"expected gamelore of {source}, got {gamelore.__file__}; set PYTHONPATH to {source}")


def provenance(version: str) -> str:
    """Return a short name of a version of the code, for a folder."""
    return hashlib.sha256(version.encode()).hexdigest()[:8]


def shown(interval: Interval) -> str:
    """Return a mean with its interval as text."""
    return f"{interval.mean:.1f} [{interval.low:.1f}, {interval.high:.1f}]"


@dataclass(frozen=True)
class Tolerant:
    """A function that plays a job. An error costs this job only, and its text is written to the folder `failures`."""

    play: Callable[[Any, Report], list[Outcome]]
    failures: Path

    def __call__(self, job: Any, report: Report) -> list[Outcome]:
        """Play a job; return [] if it fails."""
        file = self.failures / _failure_name(job.trial.setting.id, job.trial.run)
        try:
            outcomes = self.play(job, report)
        except Exception:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(traceback.format_exc())
            return []
        file.unlink(missing_ok=True)  # of an earlier run
        return outcomes


@dataclass
class Progress:
    """Progress as lines. A progress bar would take a CPU clock (cpu_clock.py) for the time of day.

    every  number of steps between two lines, at least
    told   number of steps in the last line
    """

    every: int = 1000
    told: int = 0

    def __call__(self, label: str, done: int, total: int) -> None:
        """Print how much is done."""
        if done == total or done >= self.told + self.every:
            self.told = done
            print(f"{done} of {total} {label}", file=sys.stderr, flush=True)


def _failure_name(name: str, run: int) -> str:
    """Return the name of the file for the error of a trial."""
    return f"{name.replace('/', '-')}-{run}.txt"


def told_failures(folder: Path, finished: Iterable[tuple[str, int]] = ()) -> int:
    """Print the files of the jobs that have failed; return their number.

    finished  trials with results: an error of theirs is past, though another machine may have played them again
    """
    past = {_failure_name(name, run) for name, run in finished}
    files = sorted(file for file in folder.glob("*.txt") if file.name not in past)
    print(*(f"failed, see {file}\n" for file in files), sep="", end="")
    return len(files)
