"""A learner behind the wire becomes what the same learner in process becomes, match by match."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands import run
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import Afterstate, MatchRow
from wire import hosting, serving

MATCHES = 15
SEED = 11


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a learner of tictactoe, from which others transfer."""
    store = tmp_path_factory.mktemp("taught") / "knowledge.db"
    run("learn", "tictactoe", "--matches", 40, "--knowledge", store)
    return store


def learned(path: Path, game: str) -> tuple[list[MatchRow], list[Afterstate]]:
    """The rewards of the one learner of a game, and all that it knows."""
    with KnowledgeStore(path, create=False) as store:
        (learner,) = store.learners(source=game)
        return store.matches(learner), store.afterstates(learner)


@pytest.mark.parametrize(
    ("player", "options"),
    [
        ("baseline", ["--learner", "baseline"]),
        ("transfer", ["--learner", "transfer", "--source", "tictactoe"]),
        ("lookahead:heuristic=maxmax", ["--learner", "lookahead", "--heuristic", "maxmax"]),
    ],
)
def test_the_curve_over_the_wire_is_the_one_in_process(
    taught: Path, tmp_path: Path, player: str, options: list[str]
) -> None:
    here, there = (shutil.copy(taught, tmp_path / name) for name in ("here.db", "there.db"))
    run("learn", "connect3", *options, "--matches", MATCHES, "--seed", SEED, "--knowledge", here)
    with serving("--player", player, "--knowledge", there, "--opponent", "egreedy", "--seed", SEED) as port:
        told = hosting(
            "connect3", "--player", f"red=http://127.0.0.1:{port}", "--player", "yellow=egreedy",
            "--matches", MATCHES, "--seed", SEED, "--startclock", 10, "--playclock", 10, "--scramble",
        )  # fmt: skip
    rewards, afterstates = learned(here, "connect3")
    assert learned(there, "connect3") == (rewards, afterstates)
    assert len(rewards) == MATCHES
    assert told["players"][0]["mean_goal"] == pytest.approx(sum(row.reward for row in rewards) / MATCHES)
