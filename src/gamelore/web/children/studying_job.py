"""The child process of a study: a learner plays the matches of a run once more, and keeps what it learns in the store.

The settings are those with which the players baseline, transfer, lookahead and oracle begin when they are chosen by
name. So a seat that remembers goes on with this learner against the same opponent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from ...api.learn import ValueKind, learn
from ...api.progress import Progress
from ...errors import check_count, one_of
from ...game.game import Game
from ...net.requests import answer_requests, limits_within
from ...rulesheets import load
from .learning_run import LearningPlan, PlannedGame
from .long_job import Computation

SEED = 0  # of the players that are chosen by name
_TOO_LARGE = (
    "expected a study that fits into the memory of its process, got a larger one; keep a learner of fewer matches"
)


class StudyingJob:
    """The requests of the page. All of them return at once.

    Args:
        memory: bytes for the process
        prepare_seconds: processor time to get a game ready
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits = limits_within(memory, prepare_seconds)
        self._told: tuple[str, int, int] = "loading the games", 0, 0
        self._computation: Computation | None = None

    def idle(self) -> bool:
        """Do nothing between requests: the study has a thread of its own."""
        return False

    def begin(self, plan: Mapping[str, Any], learner: str, matches: int, folder: str, store: str) -> None:
        """Begin the study, or continue it.

        Args:
            plan: plan of a run, see `LearningPlan`
            learner: one of its learners
            matches: number of matches of the learner, with those that it has in the store
            folder: folder of the run, for texts of rulesheets
            store: path of the knowledge store

        Raises:
            GameloreError: this is no plan, or has no such learner. Other errors come later, with `progress`.
        """
        planned = LearningPlan.of(plan)
        one_of(learner, planned.learners, "a learner of this run")
        check_count("matches", matches)
        study = partial(self._study, planned, learner, matches, Path(folder) / "rules", Path(store))
        self._computation = Computation(study, "study", _TOO_LARGE)
        self._computation.begin()

    def progress(self) -> dict[str, Any]:
        """Return `stage` (in words), `done` and `matches` of it, and `outcome`: None, an error, or the learner.

        The learner is {"ok": {"number", "game", "matches", "mean", "features"}}; `mean` is its mean reward.
        """
        stage, done, matches = self._told
        outcome = self._computation.outcome if self._computation is not None else None
        return {"stage": stage, "done": done, "matches": matches, "outcome": outcome}

    def _study(self, plan: LearningPlan, learner: str, matches: int, folder: Path, store: Path) -> dict[str, Any]:
        about: dict[str, Any] = {"opponent": plan.opponent, "store": store, "seed": SEED}
        if learner == "transfer":
            about["sources"] = [
                self._source(source, plan, folder / f"source{number}", **about)
                for number, source in enumerate(plan.sources, 1)
            ]
        if learner == "lookahead":
            about["heuristic"] = plan.heuristic
        game, progress = self._loaded(plan.target, folder / "target"), self._tell(plan.target)
        kind = cast(ValueKind, learner)
        learned = learn(game, kind, role=plan.target.role, matches=matches, progress=progress, **about)
        return {
            "number": learned.number,
            "game": game.name,
            "matches": learned.num_matches,
            "mean": learned.mean_reward,
            "features": len(learned.features),
        }

    def _source(self, source: PlannedGame, plan: LearningPlan, folder: Path, **about: Any) -> str:
        """Learn a source game; return the hash of its rules, by which the store finds it."""
        game, progress = self._loaded(source, folder), self._tell(source)
        about |= {"role": source.role, "matches": plan.source_matches, "epsilon": plan.source_epsilon}
        learn(game, "baseline", progress=progress, **about)
        return game.rules_hash

    def _loaded(self, game: PlannedGame, folder: Path) -> Game:
        return load(game.kept(folder), limits=self._limits)

    def _tell(self, game: PlannedGame) -> Progress:
        """Return the function that is told how far the learner of a game is."""
        name = game.name if "(" in game.game else game.game
        self._told = f"learning {name}", 0, 0

        def tell(_: str, done: int, total: int) -> None:
            self._told = f"learning {name}", done, total

        return tell


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(StudyingJob)


if __name__ == "__main__":
    main()
