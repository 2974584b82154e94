"""Recorded play of public rulesheets by an independent reasoner, reproduced step by step."""

import gzip
import json
from pathlib import Path

import pytest

import gamelore
from gamelore.gdl.limits import Limits

LIMITS = Limits(seconds=600)
LONG = (Path(__file__).parent / "long_to_compile.txt").read_text().split()  # or too large; on the reasoner here
# To compile, or to play with so many facts.
MINUTES = {"amazonsTorus", "ruleDepthExponential", "amazons", "racer4", "gt_two_thirds_6p"}
SHARED = Path(__file__).parents[3] / "shared"
NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in (SHARED / "traces").glob("*.jsonl.gz"))
SMALL = [
    "ticTacToe",
    "connectFour",
    "tictactoe_3player",
    "buttons",
    "lightsOn",
    "nim1",
    "sum15",
    "chomp",
    "roshambo2",
    "gt_prisoner",
    "doubletoetictac",
    "3pttc",
    "eightPuzzle",
    "hanoi",
    "biddingTicTacToe",
    "ticTacHeaven",
    "cittaceot",
]


def lowered(texts):
    return {text.lower() for text in texts}


def reproduce(game, name):
    """Walks every match of a trace and compares all that it says."""
    steps = 0
    with gzip.open(SHARED / "traces" / f"{name}.jsonl.gz", "rt") as lines:
        for line in lines:
            match = json.loads(line)
            assert [role.lower() for role in match["roles"]] == [role.lower() for role in game.roles]
            position = game.start()
            for step in match["steps"]:
                assert lowered(position.facts) == lowered(step["state"])
                assert position.is_terminal == step["terminal"]
                if step["terminal"]:
                    assert list(position.goals.values()) == step["goals"]
                else:
                    for role, moves in zip(game.roles, step["legal"], strict=True):
                        assert lowered(position.legal[role]) == lowered(moves)
                if "moves" in step:
                    position = position.play(step["moves"])
                steps += 1
    assert steps > 0


needs_traces = pytest.mark.skipif(not NAMES, reason="no ../shared/traces beside the project")


@needs_traces
@pytest.mark.parametrize("name", [name for name in NAMES if name not in MINUTES.union(LONG)] or ["none"])
def test_native(name):
    reproduce(gamelore.load(SHARED / "games" / f"{name}.kif", engine="native", limits=LIMITS), name)


@needs_traces
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MINUTES))
def test_native_of_what_takes_minutes(name):
    reproduce(gamelore.load(SHARED / "games" / f"{name}.kif", engine="native", limits=LIMITS), name)


@needs_traces
@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def test_reasoner(name):
    reproduce(gamelore.load(SHARED / "games" / f"{name}.kif", engine="reasoner"), name)


@needs_traces
def test_at_least_170_of_the_public_sheets_play_natively():
    assert len(set(NAMES) - set(LONG)) >= 170
    assert set(LONG) <= set(NAMES)


@needs_traces
def test_what_is_too_large_says_so():
    with pytest.raises(gamelore.GroundingError, match="400000 literals"):
        gamelore.load(SHARED / "games" / "sudoku.kif", engine="native", limits=Limits(600, 400_000))
