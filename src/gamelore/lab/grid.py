"""What is to be run, as data. A `Setting` is one line of a figure or a table; run i of it is a `Trial`.

Everything random in a trial follows from (seed, run, stage, match, role), see `play.streams`; the stage is "source"
or "target". Settings that are compared have the same seed and stage, so their run i meets the same random numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ..errors import ExperimentError
from ..learn.table1 import Opponent
from ..learn.transfer import LearnerSettings
from ..play.player import OpponentSettings
from ..play.streams import stream

Stage = Literal["source", "target"]


@dataclass(frozen=True)
class Setting:
    """One experiment: a learner in a role of a game, against an opponent, for `runs` runs of `matches` matches.

    id         readable and unique, like "figures/connect3/egreedy/transfer"
    keyed      a "hashed" opponent has another order of moves in every run: runs sample the opponent, too
    source     the setting whose run i gives run i of this one its feature values
    printed    the column of the paper's Table 1 that gives them instead (learn/table1.py)
    extract    keep the feature values that a run has learned
    """

    id: str
    game: str
    role: int
    learner: LearnerSettings
    opponent: OpponentSettings
    runs: int
    matches: int
    seed: int
    stage: Stage = "target"
    keyed: bool = True
    source: Setting | None = None
    printed: Opponent | None = None
    extract: bool = False

    def __post_init__(self) -> None:
        if self.runs < 1 or self.matches < 1:
            raise ExperimentError(
                f"expected at least one run of one match in {self.id}, got {self.runs} of {self.matches}"
            )
        if self.source is not None and not self.source.extract:
            raise ExperimentError(
                f"expected a source that keeps its feature values, got {self.source.id}; set extract on it"
            )

    def opponent_of(self, run: int) -> OpponentSettings:
        """The opponent that run `run` meets."""
        if self.keyed and self.opponent.filler == "hashed":
            return replace(self.opponent, hash_key=int(stream(self.seed, run, "order")))
        return self.opponent

    def describe(self) -> dict[str, Any]:
        """Everything that decides a run's outcome but the run's number, JSON-able. `runs` is not among it."""
        described = asdict(replace(self, source=None))
        del described["runs"]
        described["learner"] = self.learner.described()
        described["source"] = self.source.describe() if self.source else None
        return described

    @property
    def text(self) -> str:
        """`describe` as one text; equal settings have equal texts."""
        return json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Trial:
    """Run number `run` (from 0) of a setting."""

    setting: Setting
    run: int

    @property
    def key(self) -> tuple[str, int]:
        return self.setting.id, self.run


@dataclass(frozen=True)
class Grid:
    """Settings by id, their sources included; every id stands for one setting only."""

    settings: dict[str, Setting] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Iterable[Setting]) -> Grid:
        """A setting that is met twice with different numbers of runs gets the larger.

        Raises ExperimentError where two settings share an id but are not the same.
        """
        grid = cls()
        for setting in settings:
            grid._add(setting)
        return grid

    def _add(self, setting: Setting) -> None:
        if setting.source is not None:
            self._add(replace(setting.source, runs=max(setting.runs, setting.source.runs)))
        known = self.settings.setdefault(setting.id, setting)
        if known.text != setting.text:
            raise ExperimentError(f"expected one setting named {setting.id}, got two; rename one of them")
        if known.runs < setting.runs:
            self.settings[setting.id] = replace(known, runs=setting.runs)

    def trials(self) -> Iterator[Trial]:
        """Every trial of every setting."""
        for setting in self.settings.values():
            for run in range(setting.runs):
                yield Trial(setting, run)

    def stages(self) -> list[list[Setting]]:
        """Settings in the order in which they can run: sources before what needs them, all else last."""
        sources = {s.source.id for s in self.settings.values() if s.source}
        last = max((_depth(setting) for setting in self.settings.values()), default=0)
        ordered: list[list[Setting]] = [[] for _ in range(last + 1)]
        for setting in self.settings.values():
            ordered[_depth(setting) if setting.id in sources else last].append(setting)
        return ordered


def _depth(setting: Setting) -> int:
    return 0 if setting.source is None else 1 + _depth(setting.source)
