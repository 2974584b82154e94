"""What the child process answers: positions with clicks, players that follow a match, opinions and records."""

import json
from pathlib import Path

import pytest

import gamelore
from gamelore.errors import GameloreError, GDLError, IllegalMoveError
from gamelore.rulesheets import path
from gamelore.web.children.rule_worker import MOST_PLAYERS, RuleWorker

TICTACTOE = {"rules": path("tictactoe").read_text(), "name": "tictactoe"}
FOUR_PLIES = [["(mark 1 1)", "noop"], ["noop", "(mark 2 1)"], ["(mark 1 2)", "noop"], ["noop", "(mark 2 2)"]]


@pytest.fixture(scope="module")
def worker() -> RuleWorker:
    return RuleWorker(memory=2 << 30, prepare_seconds=60)


def test_a_position_is_the_same_as_that_of_the_library(worker: RuleWorker) -> None:
    view = worker.view(**TICTACTOE, plies=FOUR_PLIES)
    position = gamelore.load("tictactoe").start()
    for joint in FOUR_PLIES:
        position = position.play(joint)
    assert view["legal"] == position.legal
    assert view["goals"] == position.goals
    assert view["is_terminal"] is False
    json.dumps(view)  # the answer goes through a pipe as JSON


def test_clicks_name_places_that_the_picture_has(worker: RuleWorker) -> None:
    view = worker.view(**TICTACTOE, plies=FOUR_PLIES)
    steps = view["clicks"]["xplayer"]
    assert [len(path) for path in steps] == [1] * len(view["legal"]["xplayer"])
    numbers = [place for (step,) in steps for place in step]
    assert len(set(numbers)) == 5
    for number in numbers:
        assert f'data-place="{number}"' in view["svg"]
    assert view["clicks"]["oplayer"] == []  # it has no choice


def test_the_last_move_is_marked(worker: RuleWorker) -> None:
    marked, plain = (worker.view(**TICTACTOE, plies=FOUR_PLIES, marked=marked)["svg"] for marked in (True, False))
    assert marked.count("<circle") == plain.count("<circle") + 1


def test_illegal_moves_and_wrong_rules_are_told(worker: RuleWorker) -> None:
    with pytest.raises(IllegalMoveError, match="expected a legal move of xplayer"):
        worker.view(**TICTACTOE, plies=[["(mark 9 9)", "noop"]])
    with pytest.raises(GDLError):
        worker.open(rules="(role", name="broken")


def test_a_player_follows_the_match_also_after_an_undo(worker: RuleWorker) -> None:
    def choose(plies: list[list[str]]) -> str:
        return worker.choose(
            **TICTACTOE,
            plies=plies,
            match="m",
            role="xplayer",
            player="minimax:depth=1",
            options={"seed": 1},
            seconds=1.0,
            startclock=0.0,
        )

    assert choose(FOUR_PLIES) == "(mark 1 3)"  # three in a line
    assert choose([]).startswith("(mark ")
    assert choose(FOUR_PLIES) == "(mark 1 3)"


def test_a_learner_learns_from_a_finished_match_and_keeps_it(worker: RuleWorker, tmp_path: Path) -> None:
    store = tmp_path / "knowledge.db"
    given = {"match": "n", "role": "xplayer", "player": "baseline"}
    options = {"seed": 1, "knowledge": str(store), "opponent": "random"}
    plies = [*FOUR_PLIES, ["(mark 1 3)", "noop"]]
    assert worker.finish(**TICTACTOE, plies=plies, **given, options=options) == 1
    (learner,) = gamelore.Knowledge(store)
    assert (learner.num_matches, learner.rewards.tolist()) == (1, [100.0])


def test_opinions_go_on(worker: RuleWorker) -> None:
    connectfour = {"rules": path("connectfour").read_text(), "name": "connectfour"}

    def think() -> tuple[int, dict]:
        thought = worker.think(**connectfour, plies=[], seconds=0.05)
        return sum(row["visits"] for row in thought["rows"]), thought

    first, thought = think()
    for _ in range(100):  # on a busy machine, hardly a batch fits into the time
        now, thought = think()
        if now > first:
            break
    assert now > first
    assert {row["role"] for row in thought["rows"]} == {"red"}
    assert len(thought["rows"]) == 7
    json.dumps(thought)


def test_exact_values_are_those_of_the_solver(worker: RuleWorker) -> None:
    exact = worker.exact(**TICTACTOE, plies=FOUR_PLIES)
    solved = gamelore.solve("tictactoe", progress=False)
    position = gamelore.load("tictactoe").start()
    for joint in FOUR_PLIES:
        position = position.play(joint)
    wanted = {row["move"]: row["goal_xplayer"] for row in solved.moves(position)}
    assert {row["move"]: row["mean"] for row in exact["rows"]} == wanted
    assert exact["rows"][0]["move"] == "(mark 1 3)"
    assert "exact values" in exact["effort"]


def test_records_are_read_again(worker: RuleWorker, tmp_path: Path) -> None:
    plies = [*FOUR_PLIES, ["(mark 1 3)", "noop"]]
    text = worker.record(**TICTACTOE, plies=plies, match="m", players=["person", "gamelore"])
    assert worker.replay(**TICTACTOE, text=text) == {"plies": plies, "players": ["person", "gamelore"]}
    (tmp_path / "m.json").write_text(text)
    (match,) = gamelore.replay(tmp_path / "m.json", "tictactoe")
    assert match.goals == {"xplayer": 100, "oplayer": 0}


def test_the_record_of_another_game_is_refused(worker: RuleWorker) -> None:
    text = worker.record(**TICTACTOE, plies=FOUR_PLIES, match="m", players=["person", "person"])
    with pytest.raises(GameloreError):
        worker.replay(rules=path("connectfour").read_text(), name="connectfour", text=text)


@pytest.mark.parametrize(
    "spec",
    [
        "gamelor",
        "uct:simulation=3",
        "uct:simulations=many",
        "/tmp/evil.py:Evil",
        "evil.py:Evil",
        "uct:/../../../../tmp/evil.py:Evil",
        "baseline:knowledge =/any/path.db",
        "transfer:source_opponent=/tmp/evil.py:Evil",
        "transfer:source_opponent=evil.PY:Evil",
        "baseline:knowledge=/etc/passwd",
        "gamelore:seconds=1,knowledge=other.db",
    ],
)
def test_players_that_do_not_exist_or_name_files_are_refused(worker: RuleWorker, spec: str) -> None:
    with pytest.raises(GameloreError, match="expected"):
        worker.check_player(spec)


def test_every_listed_player_is_described(worker: RuleWorker) -> None:
    kinds = worker.players()
    assert {"gamelore", "uct", "random", "transfer", "perfect"} <= kinds.keys()
    assert kinds["gamelore"]["remembers"]
    assert not kinds["gamelore"]["always"]
    assert kinds["transfer"]["always"]
    assert not kinds["random"]["remembers"]
    assert "knowledge" not in kinds["gamelore"]["options"]
    for name in (
        "gamelore",
        "uct:simulations=10",
        "minimax:depth=2",
        "transfer:source=tictactoe,source_opponent=random",
    ):
        worker.check_player(name)


def test_players_of_matches_that_were_left_are_dropped(worker: RuleWorker) -> None:
    def choose(match: str, seed: int) -> str:
        given = {"player": "uct", "options": {"seed": seed}, "seconds": 0.1, "startclock": 0.0}
        return worker.choose(**TICTACTOE, plies=[], match=match, role="xplayer", **given)

    loaded = worker._game(TICTACTOE["rules"], TICTACTOE["name"])
    loaded.players.clear()
    for number in range(MOST_PLAYERS + 2):
        assert choose(f"match{number}", number).startswith("(mark")
    assert len(loaded.players) == MOST_PLAYERS
    assert choose("match0", 0).startswith("(mark"), "a player that was dropped begins anew"
    worker.leave(**TICTACTOE, match="match0")
    worker.leave(**TICTACTOE, match="match3")
    assert len(loaded.players) == MOST_PLAYERS - 2
