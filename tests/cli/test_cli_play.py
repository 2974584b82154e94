"""gamelore play with players who learn: one match after the other, and one learner with `gamelore learn` and `host`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import run, run_json
from gamelore import rulesheets
from gamelore.catalogue import player
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.matches.lockstep import STAGE, run_lockstep
from gamelore.matches.match import match_records
from gamelore.players.player import Finished
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own."""
    path = tmp_path / "knowledge.db"
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", str(path))
    return path


def known(path: Path) -> list[tuple[str, str, str, int, int]]:
    with KnowledgeStore(path, create=False) as knowledge:
        return [
            (one.role, one.settings["kind"], one.opponent, one.seed, one.num_matches) for one in knowledge.learners()
        ]


def test_a_learner_learns_from_match_to_match(tmp_path: Path, store: Path) -> None:
    file = tmp_path / "records.jsonl"
    run("play", "tictactoe", "baseline", "egreedy", "--matches", 12, "--seed", 3, "--records", file)
    played = [json.loads(line)["moves"] for line in file.read_text().splitlines()]
    learner = player("baseline", knowledge=str(tmp_path / "other.db"), seed=3, opponent="egreedy")
    ended: list[Finished] = []
    for match in range(12):
        run_lockstep(
            PositionGraph(rulesheets.load("tictactoe")),
            [learner, player("egreedy")],
            [stream(3, 0, STAGE)],
            1,
            first_match=match,
            on_end=ended.append,
        )
    assert played == [[list(moves) for moves in match_records(one, ["", ""])[0].moves] for one in ended]


def test_it_is_the_learner_of_learn_and_of_host(store: Path) -> None:
    run("play", "tictactoe", "baseline", "egreedy", "--matches", 4, "--seed", 3)
    run("learn", "tictactoe", "--learner", "baseline", "--matches", 10, "--seed", 3)
    options = ("--player", "xplayer=baseline", "--player", "oplayer=egreedy")
    run("host", "tictactoe", *options, "--matches", 5, "--seed", 3)
    told = run_json("play", "tictactoe", "baseline", "egreedy", "--matches", 2, "--seed", 3)
    assert (told["matches"], told["players"][0]["player"]) == (2, "baseline")
    assert known(store) == [("xplayer", "baseline", "egreedy:filler=random,epsilon=0.01", 3, 17)]


def test_two_learners_in_one_store(store: Path) -> None:
    shown = run("play", "tictactoe", "baseline", "lookahead:seed=9", "--matches", 5)
    assert "5 matches (5 terminal)" in shown.stdout
    assert known(store) == [
        ("xplayer", "baseline", "lookahead:seed=9", 0, 5),
        ("oplayer", "lookahead", "baseline", 9, 5),
    ]


def test_a_learner_against_a_human(store: Path) -> None:
    run("play", "tictactoe", "human", "baseline", input="1\n2\n3\n4\n5\n6\n7\n8\n9\n" * 3)
    assert known(store) == [("oplayer", "baseline", "human", 0, 1)]


def test_goals_that_the_rules_do_not_give_are_told(tmp_path: Path) -> None:
    rules = tmp_path / "stuck.kif"
    rules.write_text(
        "(role r) (init (at 0)) (<= (legal r go) (true (at 0))) (<= (next (at 1)) (does r go)) (goal r 50)"
        " (<= terminal (true (at 2)))"
    )
    assert "none: 3" in run("play", rules, "random", "--matches", 3).stdout
    assert "none: 3" in run("host", rules, "--player", "r=random", "--matches", 3).stdout


BUGGY = """
import neighbour
from gamelore.players.player import PositionPlayer


class Late(PositionPlayer):
    def move(self, position, role):
        return neighbour.first(position.legal[role])


class Illegal(PositionPlayer):
    def move(self, position, role):
        return sorted(position.legal[role], key=lambda move: position.play("(nothing)"))[0]


class Missing(PositionPlayer):
    def move(self, position, role):
        try:
            {}["weights"]
        except KeyError as error:
            raise FileNotFoundError("no weights") from error


class Maker(PositionPlayer):
    def __init__(self, depth=1):
        self.most = "none" + depth

    def move(self, position, role):
        return position.legal[role][0]


class Refuses(PositionPlayer):
    def __init__(self):
        from gamelore.errors import GameloreError

        raise GameloreError("expected another day, got today; wait")

    def move(self, position, role):
        return "(nothing)"
"""


@pytest.fixture
def buggy(tmp_path: Path) -> Path:
    """A file of players that fail, and a module beside it."""
    (tmp_path / "neighbour.py").write_text("def first(moves):\n    return moves[len(moves)]\n")
    (tmp_path / "buggy.py").write_text(BUGGY)
    return tmp_path / "buggy.py"


@pytest.mark.parametrize(
    ("name", "line", "where", "message", "frames"),
    [
        ("Late", 8, "move", "IndexError: list index out of range", 2),
        (
            "Illegal",
            13,
            "<lambda>",
            "IllegalMoveError: expected 2 moves, one for each of xplayer, oplayer, got 1; a role that waits has "
            "one legal move, often noop",
            2,
        ),
        ("Missing", 21, "move", "FileNotFoundError: no weights", 2),
        ("Maker", 26, "__init__", 'TypeError: can only concatenate str (not "int") to str', 1),
    ],
)
def test_a_bug_in_a_players_own_file_shows_its_frames(
    buggy: Path, name: str, line: int, where: str, message: str, frames: int
) -> None:
    told = run("play", "tictactoe", f"{buggy}:{name}", "random", code=1).stderr
    heading, *rest = told.splitlines()
    assert heading == f"error: a bug in the player of {buggy}, line {line}, in {where}: {message}"
    shown = [text for text in rest if text.startswith('  File "')]
    assert len(shown) == frames
    assert all(text.startswith(f'  File "{buggy.parent}') for text in shown)
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1].endswith(message)


def test_a_bug_that_keeps_a_players_file_from_being_imported_shows_its_frames(buggy: Path) -> None:
    buggy.write_text("def halve(number):\n    return number / 0\n\n\nhalve(1)\n")
    told = run("play", "tictactoe", f"{buggy}:Late", "random", code=1).stderr
    assert told.splitlines()[0] == (
        f"error: a bug in the player of {buggy}, line 2, in halve: ZeroDivisionError: division by zero"
    )
    assert told.count('  File "') == told.count(f'  File "{buggy}"') == 2


def test_what_a_player_refuses_itself_and_illegal_moves_are_one_line(buggy: Path) -> None:
    told = run("play", "tictactoe", f"{buggy}:Refuses", "random", code=2).stderr
    assert told == "error: expected another day, got today; wait\n"
    buggy.write_text(BUGGY.replace("return neighbour.first(position.legal[role])", "return '(mark 4 4)'"))
    told = run("play", "tictactoe", f"{buggy}:Late", "random", code=1).stderr
    assert told.startswith(
        "error: expected a legal move of xplayer from Late, got (mark 4 4); legal moves: (mark 1 1), "
    )
    assert "Traceback" not in told


def test_roles_without_a_named_player_are_played_by_gamelore(store: Path) -> None:
    played = run_json("play", "tictactoe", "random", "--matches", 2)
    assert [seat["player"] for seat in played["players"]] == ["random", "gamelore"]


def test_think_shows_moves_proofs_and_the_best_line(store: Path) -> None:
    played = ("--play", "(mark 1 1)", "--play", "(mark 1 2)")
    text = run("think", "tictactoe", *played, "--simulations", 5000).stdout
    assert "xplayer's move" in text
    assert "100 in 5 plies" in text
    assert "best line: (mark " in text
    thought = run_json("think", "tictactoe", *played, "--simulations", 5000)
    assert thought["proved"]
    best = thought["moves"]["xplayer"][0]
    assert (best["low"], best["high"], best["plies"]) == (100, 100, 5)
    assert len(thought["line"]) == 5
    assert thought["line"][0] == [best["move"], "noop"]
    assert len(thought["moves"]["xplayer"]) == 7
    over = " ".join(f"(cell {x} 1 x)" for x in (1, 2, 3)) + " (control oplayer)"
    picture = store.parent / "thought.svg"
    run("think", "tictactoe", "--simulations", 500, "--svg", picture)
    assert "</svg>" in picture.read_text()
    refused = run("think", "tictactoe", "--simulations", 500, "--svg", "thought.png", code=2).stderr
    told = " ".join(refused.replace("│", "").split())
    assert "expected the name of an .svg file, got thought.png; write thought.svg" in told
    told = " ".join(run("think", "tictactoe", "--svg", "..", code=2).stderr.replace("│", "").split())
    assert "expected the name of an .svg file, got ..; write ../picture.svg" in told
    taught = run_json("think", "tictactoe", "--simulations", 500, "--teaching", 20_000, "--threads", 2)
    assert taught["simulations"] == sum(move["visits"] for move in taught["moves"]["xplayer"]) == 500
    assert "expected a position in which the match goes on" in run("think", "tictactoe", "--facts", over, code=1).stderr


def test_think_shows_the_mixed_strategies_of_simultaneous_moves(store: Path) -> None:
    regret = ("think", "goofspiel", "--simulations", 5000, "--joint", "regret")
    header = next(line for line in run(*regret).stdout.splitlines() if "red's move" in line)
    assert header.split() == ["red's", "move", "share", "value", "visits", "proved"]
    for moves in run_json(*regret)["moves"].values():
        shares = [move["share"] for move in moves]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1)
    fixed = run_json("think", "goofspiel", "--simulations", 5000, "--joint", "uct")["moves"]["red"]
    assert all("share" not in move for move in fixed)
