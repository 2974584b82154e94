"""`gamelore.play`, its results, and the players by name."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import gamelore
from commands import run
from gamelore import GameloreError, IllegalMoveError, Match, Matches, Position
from gamelore.api import progress
from gamelore.drawing.steps import MOST_STEPS, shown_steps
from gamelore.envs import GameBatch, GameEnv, GameVectorEnv
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.matches.match import MatchRecord
from gamelore.players.player import PositionPlayer

SIMULTANEOUS = """
(role a) (role b) (init s) (<= (legal ?r m) (role ?r)) (<= (legal ?r n) (role ?r))
(<= (next e) (does a ?m)) (<= terminal (true e)) (<= (goal ?r 100) (role ?r))
"""


def last(position: Position) -> str:
    """Choose the last legal move of the role that has several."""
    return max(position.legal.values(), key=len)[-1]


def last_of(position: Position, role: str) -> str:
    return position.legal[role][-1]


class First(PositionPlayer):
    def move(self, position: Position, role: str) -> str:
        return position.legal[role][0]


def test_any_kind_of_player_opposes_any_other() -> None:
    by_kind = {"name": "egreedy", "player": First(), "function": last, "function of a role": last_of}
    for left in by_kind.values():
        for right in by_kind.values():
            assert len(gamelore.play("tictactoe", [left, right], matches=2)) == 2


def test_functions_choose_the_moves() -> None:
    (match,) = gamelore.play("tictactoe", {"oplayer": last_of, "xplayer": First()})
    assert [list(joint.values()) for joint in match.moves[:2]] == [["(mark 1 1)", "noop"], ["noop", "(mark 3 3)"]]
    assert match.players == {"xplayer": "First", "oplayer": "last_of"}


def test_a_function_with_two_arguments_gets_its_role() -> None:
    asked = []

    def mirror(position: Position, role: str) -> str:
        asked.append(role)
        return position.legal[role]["ab".index(role)]

    (match,) = gamelore.play(SIMULTANEOUS, mirror)
    assert (sorted(asked), match.moves) == (["a", "b"], [{"a": "m", "b": "n"}])


def test_an_argument_with_a_default_is_no_role() -> None:
    def mine(position: Position, depth: int = 3) -> str:
        assert depth == 3
        return last(position)

    assert len(gamelore.play("tictactoe", mine)) == 1


def test_a_role_without_a_player_is_played_by_the_strongest() -> None:
    assert gamelore.play("tictactoe", {"oplayer": "random"}).players == ("gamelore", "random")


def test_one_player_plays_all_roles() -> None:
    assert gamelore.play("tictactoe3p", "random").players == ("random",) * 3


def test_results_are_those_of_the_command(tmp_path: Path) -> None:
    told = json.loads(run("play", "connect3", "egreedy", "random", "--matches", "300", "--seed", "7", "--json").stdout)
    played = gamelore.play("connect3", ["egreedy", "random"], matches=300, seed=7)
    assert list(played.mean_goals.values()) == [result["mean_goal"] for result in told["players"]]
    assert (played.ends, int(played.plies.max())) == (told["ends"], told["plies"]["most"])


def test_match_i_does_not_depend_on_the_number_of_matches() -> None:
    few, many = (gamelore.play("connect3", "random", matches=matches, seed=3) for matches in (2, 600))
    assert [match.moves for match in many[:2]] == [match.moves for match in few]


def test_goals_are_arrays_and_rows() -> None:
    played = gamelore.play("tictactoe", [First(), last_of], matches=3)
    assert (played.goals.shape, played.goals.dtype) == ((3, 2), np.float64)
    assert played.rows[2] == {"match": 2, "end": "terminal", "plies": len(played[2].moves)} | {
        f"goal_{role}": goal for role, goal in played[2].goals.items()
    }
    xplayer = played.intervals["xplayer"]
    assert (xplayer.mean, xplayer.num) == (played.mean_goals["xplayer"], 3)
    assert (
        repr(played)
        == f"<3 matches of tictactoe: xplayer (First) {xplayer.mean:.1f}, oplayer (last_of) {100 - xplayer.mean:.1f}>"
    )


def test_a_match_without_an_end_has_no_goals() -> None:
    played = gamelore.play("connect3", "random", matches=2, max_plies=3)
    assert played.ends == {"cap": 2}
    assert np.isnan(played.goals).all()
    assert played.mean_goals == {role: 0.0 for role in played.game.roles}
    assert repr(played[0]) == "<Match of connect3: 3 plies, cap>"


def test_a_match_is_the_sequence_of_its_positions() -> None:
    match = gamelore.play("tictactoe", "random", seed=2)[0]
    assert len(match) == len(match.moves) + 1
    assert match[0] == match.game.start()
    assert match[-1].is_terminal
    assert match[-1].goals == match.goals
    for before, joint, after in zip(match, match.moves, match[1:], strict=False):
        assert before.play(joint) == after


def test_a_match_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    match = gamelore.play("tictactoe", [First(), last_of])[0]
    match.show()
    shown = capsys.readouterr().out
    assert shown.count("(cell x y *)") == len(match)
    assert "1. xplayer (mark 1 1)\n" in shown
    assert str(match) == f"{match[-1]}\n\n5. xplayer (mark 1 3): xplayer 100, oplayer 0"
    drawn = ElementTree.fromstring(match._repr_html_())
    assert len(drawn.findall("input")) == len(drawn.findall("div")) == len(match)
    assert [each.get("checked") for each in drawn.findall("input")] == ["", *[None] * (len(match) - 1)]


def test_records_can_be_replayed(tmp_path: Path) -> None:
    played = gamelore.play("connect3", ["egreedy", "random"], matches=4)
    played.save(tmp_path / "m.jsonl")
    played.save(str(tmp_path))
    assert run("replay", str(tmp_path / "m.jsonl")).exit_code == 0
    assert run("replay", str(tmp_path)).exit_code == 0
    assert MatchRecord.read(tmp_path / "match-000002.json").moves == played.records[2].moves
    with pytest.raises(GameloreError, match=r"expected a folder without matches, got .*; choose another folder"):
        played.save(tmp_path)


def test_matches_are_read_back_from_their_records(tmp_path: Path) -> None:
    played = gamelore.play("connect3", ["egreedy", "random"], matches=4)
    played.save(tmp_path / "m.jsonl")
    again = gamelore.replay(tmp_path / "m.jsonl")
    assert again.rows == played.rows
    assert again.players == played.players
    assert again[2].moves == played[2].moves
    assert again.game.rules_hash == played.game.rules_hash
    with pytest.raises(GameloreError, match=r"m\.jsonl:1: expected the recorded rules of connect3, got other rules"):
        gamelore.replay(tmp_path / "m.jsonl", "connectfour")


def test_records_of_other_programs_need_the_game(tmp_path: Path) -> None:
    played = gamelore.play("tictactoe", "random", matches=1)
    played.save(tmp_path / "m.jsonl")
    record = json.loads((tmp_path / "m.jsonl").read_text())
    del record["gamelore"]
    (tmp_path / "theirs.json").write_text(json.dumps(record))
    with pytest.raises(GameloreError, match=r"theirs\.json: expected the rules of the game"):
        gamelore.replay(tmp_path / "theirs.json")
    again = gamelore.replay(tmp_path / "theirs.json", "tictactoe")
    assert (again.goals == played.goals).all()
    assert again.ends == {"terminal": 1}


def test_a_replayed_folder_is_saved_and_read_again(tmp_path: Path) -> None:
    """The rules lie in rules.kif there, and the records tell the name of the game and the seed."""
    (folder := tmp_path / "folder").mkdir()
    gamelore.play("connect3", "random", matches=2, seed=7).save(folder)
    again = gamelore.replay(folder)
    assert (again.game.name, again.seed) == ("connect3", 7)
    again.save(tmp_path / "m.jsonl")
    assert gamelore.replay(tmp_path / "m.jsonl").rows == again.rows


def test_a_match_of_another_program_may_be_broken_off(tmp_path: Path) -> None:
    """Its moves get the spelling of the rules, in which they are among the legal ones."""
    gamelore.play("tictactoe", "random", matches=1).save(tmp_path / "m.jsonl")
    record = json.loads((tmp_path / "m.jsonl").read_text())
    del record["gamelore"], record["goalValues"]
    moves = [[move.upper().replace("(", "( ") for move in joint] for joint in record["moves"][:3]]
    record |= {"isCompleted": False, "moves": moves, "states": record["states"][:4]}
    (tmp_path / "theirs.json").write_text(json.dumps(record))
    matches = gamelore.replay(tmp_path / "theirs.json", "tictactoe")
    assert matches[0].end == matches.rows[0]["end"] == "broken off"
    assert (matches.ends, matches.seed) == ({"broken off": 1}, None)
    assert repr(matches[0]) == "<Match of tictactoe: 3 plies, broken off>"
    assert matches[0].moves[0]["xplayer"] in matches[0][0].legal["xplayer"]


def test_a_record_that_does_not_tell_its_end_is_completed(tmp_path: Path) -> None:
    gamelore.play("tictactoe", "random", matches=1).save(tmp_path / "m.jsonl")
    whole = json.loads((tmp_path / "m.jsonl").read_text())
    bare = {name: whole[name] for name in ("states", "moves")}
    (tmp_path / "theirs.json").write_text(json.dumps(bare))
    gamelore.replay(tmp_path / "theirs.json", "tictactoe").save(tmp_path / "again.jsonl")
    again = json.loads((tmp_path / "again.jsonl").read_text())
    for name in ("isCompleted", "isAborted", "goalValues", "states", "moves"):
        assert again[name] == whole[name]


def test_records_of_several_games_are_told(tmp_path: Path) -> None:
    for game in ("connect3", "tictactoe"):
        gamelore.play(game, "random", matches=1).save(tmp_path / f"{game}.json")
    with pytest.raises(GameloreError, match=r"tictactoe\.json: expected a match of connect3, got one of tictactoe"):
        gamelore.replay(tmp_path)


def test_a_record_with_too_few_players_is_told(tmp_path: Path) -> None:
    gamelore.play("tictactoe", "random", matches=1).save(tmp_path / "m.jsonl")
    record = json.loads((tmp_path / "m.jsonl").read_text())
    record["gamelore"]["players"] = ["random"]
    (tmp_path / "m.jsonl").write_text(json.dumps(record))
    with pytest.raises(GameloreError, match="expected the number of players to be 1 as recorded, got 2"):
        gamelore.replay(tmp_path / "m.jsonl")


def test_a_wrong_move_of_a_record_is_told_with_its_place(tmp_path: Path) -> None:
    gamelore.play("tictactoe", "random", matches=2).save(tmp_path / "m.jsonl")
    first, second = (tmp_path / "m.jsonl").read_text().splitlines()
    record = json.loads(second)
    record["moves"][1] = record["moves"][0]
    (tmp_path / "m.jsonl").write_text(f"{first}\n{json.dumps(record)}\n")
    with pytest.raises(GameloreError, match=r"m\.jsonl:2: ply 1 differs from the record: expected a legal move"):
        gamelore.replay(tmp_path / "m.jsonl")


def test_rows_of_matches_are_written_as_csv(tmp_path: Path) -> None:
    gamelore.play("tictactoe", "random", matches=2, seed=1).save(tmp_path / "m.csv")
    head, *rows = (tmp_path / "m.csv").read_text().splitlines()
    assert head == "match,end,plies,goal_xplayer,goal_oplayer"
    assert [row.split(",")[:2] for row in rows] == [["0", "terminal"], ["1", "terminal"]]


@pytest.mark.parametrize("number", [0, -1, 2.5, "many"])
def test_a_number_of_matches_is_a_whole_number(number: Any) -> None:
    with pytest.raises(GameloreError, match="expected a whole number of matches from 1, got"):
        gamelore.play("tictactoe", "random", matches=number)


def test_regret_of_best_play() -> None:
    played = gamelore.play("losetictactoe", ["perfect", "random"], matches=20, regret=True)
    assert played.regret["xplayer"] == 0.0
    assert played.regret["oplayer"] > 0.0
    assert played[:3].regret == {}


def test_a_learner_learns_from_each_match(tmp_path: Path) -> None:
    store = tmp_path / "k.db"
    gamelore.play("tictactoe", {"xplayer": f"baseline:knowledge={store}", "oplayer": "egreedy"}, matches=5)
    listed = json.loads(run("knowledge", "list", "--knowledge", str(store), "--json").stdout)
    assert [(each["opponent"].partition(":")[0], each["num_matches"]) for each in listed] == [("egreedy", 5)]


@pytest.mark.parametrize(
    ("players", "message"),
    [
        (["egreedy"], "expected 2 players, one for each of xplayer, oplayer, got 1"),
        ({"xplyer": "random"}, "got 'xplyer'; did you mean xplayer"),
        (["egredy", "random"], "got 'egredy'; did you mean egreedy"),
        ([First, "random"], "expected a player, got <class .*; give a name of list_players"),
        ([3, "random"], "expected a player, got 3; give a name"),
        (np.array(["random", "random"]), "expected a player, got array"),
        ({0: "random"}, "expected a role of tictactoe .*, got '0'"),
    ],
)
def test_what_is_no_player_is_told(players: object, message: str) -> None:
    with pytest.raises(GameloreError, match=message):
        gamelore.play("tictactoe", players)  # type: ignore[arg-type]


def absent(position: Position) -> str:
    return "(mark 9 9)"


def test_an_illegal_move_names_the_function() -> None:
    with pytest.raises(IllegalMoveError, match=r"expected a legal move of xplayer from absent, got \(mark 9 9\)"):
        gamelore.play("tictactoe", [absent, "random"])


@pytest.mark.parametrize("name", ["matches", "max_plies"])
def test_numbers_that_are_too_small_are_told(name: str) -> None:
    with pytest.raises(GameloreError, match=f"expected a whole number of {name} from 1, got 0"):
        gamelore.play("tictactoe", **{name: 0})  # type: ignore[arg-type]


def test_progress_is_told_as_matches_end() -> None:
    told: list[tuple[str, int, int]] = []
    gamelore.play("tictactoe", "random", matches=300, progress=lambda *step: told.append(step))
    stages, done, totals = zip(*told, strict=True)
    assert (set(stages), set(totals)) == ({"matches"}, {300})
    assert (done[0], done[-1], list(done)) == (0, 300, sorted(set(done)))
    assert len(done) > 5


def test_a_function_may_reorder_the_moves() -> None:
    def reversing(position: Position, role: str) -> str:
        first = position.legal[role][0]
        position.legal[role].reverse()
        return first

    (match,) = gamelore.play("tictactoe", [reversing, "random"])
    assert match.moves[0]["xplayer"] == "(mark 1 1)"


def test_the_end_of_an_input_is_no_end_of_a_series() -> None:
    def ended(position: Position) -> str:
        raise EOFError

    with pytest.raises(EOFError):
        gamelore.play("tictactoe", ended)


@pytest.mark.parametrize(
    "function",
    [
        lambda p, role=None: p.legal[role][0],
        lambda *given: given[0].legal[given[1]][0],
        lambda p, *, role: p.legal[role][0],
    ],
)
def test_a_parameter_for_the_role(function: object) -> None:
    assert len(gamelore.play(SIMULTANEOUS, function)) == 1  # type: ignore[arg-type]


def test_a_player_that_was_made_by_name_keeps_it() -> None:
    names = ["uct:simulations=5", "uct:simulations=9"]
    assert gamelore.play("tictactoe", list(map(gamelore.player, names))).players == tuple(names)


def test_a_match_of_a_series_is_the_same_object() -> None:
    played = gamelore.play("tictactoe", "random", matches=2)
    assert played[1] is played[1]
    assert played[0] in played


def test_matches_without_goals_are_drawn() -> None:
    played = gamelore.play("connect3", "random", matches=40, max_plies=3)
    (axes,) = played.plot().axes
    assert [patch.get_width() for patch in axes.patches] == [100.0, 100.0]


def test_a_long_match_shows_its_last_position() -> None:
    assert shown_steps(3) == [0, 1, 2]
    assert shown_steps(1) == [0]
    assert (len(shown_steps(MOST_STEPS + 5)), shown_steps(MOST_STEPS + 5)[-2:]) == (
        MOST_STEPS,
        [MOST_STEPS - 2, MOST_STEPS + 4],
    )


def test_a_learner_knows_the_name_of_its_opponent(tmp_path: Path) -> None:
    store = tmp_path / "k.db"
    gamelore.play("tictactoe", [f"baseline:knowledge={store}", last_of])
    with KnowledgeStore(store) as knowledge:
        assert [stored.opponent for stored in knowledge.learners()] == ["last_of"]


class Kernel:
    """Stands for the shell of a notebook."""

    kernel = True


def test_a_notebook_shows_one_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[str] = []
    handle = SimpleNamespace(update=lambda data, raw: updates.append(data["text/plain"]))
    shown: list[object] = []

    def display(value: object, **options: bool) -> object:
        shown.append(value)
        return handle

    ipython = ModuleType("IPython")
    ipython.get_ipython = Kernel  # type: ignore[attr-defined]
    ipython.display = ModuleType("IPython.display")  # type: ignore[attr-defined]
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    monkeypatch.setattr(progress, "BETWEEN_UPDATES", -1.0)
    played = gamelore.play("tictactoe", "random", matches=3)
    assert (updates[0], updates[-1]) == ("matches: 0 of 3", "")
    assert any(text.startswith("matches: 3 of 3, about 0 s left") for text in updates)
    played[0].show()
    assert shown[-1] is played[0]


def test_results_can_be_pickled() -> None:
    played = gamelore.play("tictactoe", "random", matches=2)
    again = pickle.loads(pickle.dumps(played))
    assert isinstance(again, Matches)
    assert (again.rows, again[1][-1]) == (played.rows, played[1][-1])
    assert isinstance(again[0], Match)


def test_a_script_prints_nothing_else() -> None:
    code = "import gamelore as gl; print(gl.play('tictactoe', 'random', matches=3).plies.size)"
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


def test_results_are_drawn(tmp_path: Path) -> None:
    played = gamelore.play("tictactoe", "random", matches=10)
    played.plot().savefig(tmp_path / "results.svg")
    drawn = (tmp_path / "results.svg").read_text()
    assert "xplayer: random" in drawn


def test_players_are_listed() -> None:
    listed = {info.name: info for info in gamelore.list_players()}
    assert listed["uct"].options[:1] == ("simulations",)
    assert type(gamelore.player("uct:simulations=3")).__name__ == "UCT"
    assert "strongest" in listed["gamelore"].about
    assert listed["uct"].meanings["exploration"].endswith("sqrt(2) as in the original UCB1 (default: 1.41421)")
    assert set(listed["gamelore"].meanings) == set(listed["gamelore"].options), "each option is explained"
    assert listed["gamelore"].meanings["transpositions"].endswith(" (default: yes)")
    assert listed["gamelore"].meanings["minimax"].startswith("weight of the learned values, backed up by minimax")
    assert listed["human" if "human" in listed else "random"].meanings == {}
    assert listed["transfer"].meanings["alpha"] == "learning rate of Equation 2 (default: 0.3)"


SEEDED = {
    "playouts": lambda seed: gamelore.load("tictactoe").playouts(3, seed),
    "rollouts": lambda seed: gamelore.load("tictactoe").rollouts(gamelore.load("tictactoe").initial[None], seed),
    "play": lambda seed: gamelore.play("tictactoe", matches=1, seed=seed),
    "learn": lambda seed: gamelore.learn("tictactoe", matches=1, seed=seed),
    "features": lambda seed: gamelore.features("tictactoe", seed=seed),
    "check": lambda seed: gamelore.check("tictactoe", play=True, seed=seed),
    "report": lambda seed: gamelore.report("tictactoe", matches=2, seed=seed),
    "study": lambda seed: gamelore.study("tictactoe", seconds=1, store="none.db", seed=seed),
    "think": lambda seed: gamelore.think("tictactoe", simulations=5, seed=seed),
    "tournament": lambda seed: gamelore.tournament("tictactoe", ["random", "egreedy"], matches=1, seed=seed),
    "transfer": lambda seed: gamelore.transfer("connect3", "tictactoe", seed=seed),
    "GameBatch": lambda seed: GameBatch("tictactoe", 3, seed=seed),
    "GameBatch.seed": lambda seed: GameBatch("tictactoe", 3).seed(seed),
    "GameEnv": lambda seed: GameEnv("tictactoe").reset(seed=seed),
    "GameVectorEnv": lambda seed: GameVectorEnv("tictactoe", num_envs=2).reset(seed=seed),
    "GameVectorEnv, each": lambda seed: GameVectorEnv("tictactoe", num_envs=2).reset(seed=[1, seed]),
}


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize("seed", [-1, 0.5])
def test_a_seed_is_a_whole_number_from_0(name: str, seed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GameloreError, match=f"expected a seed that is a whole number from 0, got {seed}; choose"):
        SEEDED[name](seed)
    assert not list(tmp_path.iterdir())


def test_study_takes_no_negative_seed() -> None:
    assert "--seed" in run("study", "tictactoe", "--seed", -1, code=2).stderr
