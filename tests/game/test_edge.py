"""Small corner cases with recorded play: games/edge/VERDICTS.md in ../shared."""

from pathlib import Path

import pytest

import gamelore

EDGE = Path(__file__).parents[3] / "shared" / "games" / "edge"

pytestmark = pytest.mark.skipif(not EDGE.exists(), reason="no ../shared/games/edge beside the project")


@pytest.mark.parametrize("engine", ["native", "reasoner"])
@pytest.mark.parametrize(
    ("name", "move", "goal_at_start"),
    [
        ("test_case_1a", "proceed", 100),
        ("test_case_3c", "win", None),
        ("test_case_5a", "proceed", None),
        ("test_case_5c", "proceed", None),
        ("test_case_5b", "(draw 1 1 1 2)", None),
    ],
)
def test_recorded_play(name, move, goal_at_start, engine):
    position = gamelore.load(EDGE / f"{name}.kif", engine=engine).start()
    (role,) = position.game.roles
    if goal_at_start is not None:
        assert position.goals[role] == goal_at_start
    assert position.legal[role] == [move]
    position = position.play(move)
    assert position.is_terminal
    if name != "test_case_5b":
        assert position.goals[role] == 100
