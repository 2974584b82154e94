"""The shipped rulesheets as a collection, and what all of them promise, with the naive evaluator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from gamelore import rulesheets
from gamelore.errors import GameloreError
from gamelore.gdl.syntax import formatted
from naive import Naive
from pictures import State, naive, random_states

TURNS = [name for name in rulesheets.names() if name not in ("goofspiel", "pegsolitaire")]
ZERO_SUM = [name for name in rulesheets.names() if name not in ("tictactoe3p", "pegsolitaire")]


# ---- the collection ----


def test_every_game_has_its_counts_and_its_line_in_the_docstring() -> None:
    folder = Path(rulesheets.__file__).parent
    assert rulesheets.names() == tuple(sorted(path.stem for path in folder.glob("*.perft")))
    for name in rulesheets.names():
        assert rulesheets.path(name).is_file()
        assert f"    {name} " in (rulesheets.__doc__ or "")


def test_a_wrong_name_gets_the_nearest_right_ones() -> None:
    with pytest.raises(GameloreError, match="got 'tictactow'; did you mean tictactoe"):
        rulesheets.path("tictactow")
    with pytest.raises(GameloreError, match=r"the shipped games are breakthrough, .*tictactoe3p"):
        rulesheets.perft("zzz")


def test_a_missing_file_gets_the_nearest_games_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(source: str | Path) -> str:
        with pytest.raises(GameloreError) as caught:
            rulesheets.load(source)
        return str(caught.value)

    monkeypatch.chdir(tmp_path)
    what = "expected a shipped game or the path of a rulesheet, got"
    missing = f"there is no such file in {tmp_path}"
    shipped = f"the shipped games are {', '.join(rulesheets.names())}"
    assert told("nofile.kif") == f"{what} 'nofile.kif'; {missing}; {shipped}"  # goofspiel has such letters, but far
    assert told("zzz.kif").startswith(f"{what} 'zzz.kif'; {missing}; the shipped games are breakthrough, ")
    assert told("goofspeil.kif") == f"{what} 'goofspeil.kif'; {missing}; did you mean goofspiel?"
    mine = tmp_path / "MyGame.kif"
    mine.write_text("(role a)", encoding="utf-8")
    assert told("tictacto.kif").startswith(f"{what} 'tictacto.kif'; {missing}; did you mean tictactoe or ")
    assert told("TicTacToe.kif:rows=1").startswith(f"{what} 'TicTacToe.kif'; {missing}; did you mean tictactoe or ")
    for wrong in ("MyGaem.kif", "mygame.kif"):
        assert told(wrong) == f"{what} {wrong!r}; {missing}; did you mean MyGame.kif?"
    for wrong in ("MyGaem.kif", "MyGaem"):
        assert told(tmp_path / wrong) == f"{what} {str(tmp_path / wrong)!r}; {missing}; did you mean {mine}?"
        assert told(str(tmp_path / wrong)) == f"{what} {str(tmp_path / wrong)!r}; {missing}; did you mean {mine}?"
    assert told("MyGaem").endswith("got 'MyGaem'; did you mean MyGame.kif?")
    assert told(tmp_path / "zzz.kif").endswith(f"got {str(tmp_path / 'zzz.kif')!r}; {missing}")
    assert told(tmp_path / "none" / "a.kif").endswith(f"; there is no folder {tmp_path / 'none'}")
    assert told(tmp_path).endswith(f"this is a folder: name the files in it, for example {tmp_path / '*.kif'}")


@pytest.mark.parametrize("name", rulesheets.names())
def test_rulesheets_are_in_canonical_form(name: str) -> None:
    text = rulesheets.path(name).read_text(encoding="utf-8")
    assert formatted(text) == text


@pytest.mark.parametrize("name", rulesheets.names())
def test_perft_files_agree_with_themselves(name: str) -> None:
    counts = rulesheets.counts(name)
    assert rulesheets.perft(name) == counts.sequences
    assert list(counts.sequences) == list(counts.positions) == list(range(1, len(counts.sequences) + 1))
    assert all(counts.positions[depth] <= number for depth, number in counts.sequences.items())
    assert (counts.complete is None) == (counts.reachable is None)
    if counts.reachable is not None:  # positions that come up at two depths, after passes, are counted once there
        assert counts.reachable <= 1 + sum(counts.positions.values())


def test_well_known_counts() -> None:
    assert list(rulesheets.perft("connectfour").values())[:7] == [7, 49, 343, 2401, 16807, 117649, 823536]
    assert rulesheets.counts("tictactoe").complete == 255168
    assert rulesheets.counts("tictactoe").reachable == 5478
    assert rulesheets.counts("pegsolitaire").complete == 568630
    assert rulesheets.perft("pegsolitaire")[13] == 29760
    assert rulesheets.counts("othello4").complete == 4 * 15015


# ---- perft ----


def layers(name: str) -> Iterator[Counter[State]]:
    """The positions after 1, 2, .. moves, each with the number of joint-move sequences that lead to it."""
    game = naive(name)
    layer = Counter({game.initial: 1})
    while layer:
        following: Counter[State] = Counter()
        for state, number in layer.items():
            if not game.terminal(state):
                for joint in product(*game.legal(state).values()):
                    following[game.next(state, dict(zip(game.roles, joint, strict=True)))] += number
        layer = following
        yield layer


@pytest.mark.parametrize("name", rulesheets.names())
def test_perft(name: str) -> None:
    counts, expanded = rulesheets.counts(name), 1
    for depth, layer in enumerate(layers(name), start=1):
        if not layer:
            break
        assert (sum(layer.values()), len(layer)) == (counts.sequences[depth], counts.positions[depth])
        expanded += len(layer)
        if expanded > 300:
            break
    assert depth >= 2


def test_tictactoe_to_its_end() -> None:
    game, complete, reachable = naive("tictactoe"), 0, 1
    for layer in layers("tictactoe"):
        complete += sum(number for state, number in layer.items() if game.terminal(state))
        reachable += len(layer)
    assert (complete, reachable) == (255168, 5478)


# ---- what holds in every game ----


@pytest.mark.parametrize("name", rulesheets.names())
def test_random_matches_keep_the_form(name: str) -> None:
    """Moves for everybody until the end, none after it, one goal each, facts within base and moves within input."""
    game = naive(name)
    base = declared(name, "base")
    moves = declared(name, "input")
    for state in random_states(name, seed=1, matches=4):
        assert state <= base
        legal = game.legal(state)
        assert {f"{role} {move}" for role in game.roles for move in legal[role]} <= moves
        if game.terminal(state):
            assert all(goal in (0, 25, 33, 50, 75, 100) for goal in game.goals(state).values())
        else:
            assert all(legal.values())


def declared(name: str, relation: str) -> set[str]:
    """What `base` or `input` declares, as text, read as if they were `init`."""
    sheet = rulesheets.path(name).read_text(encoding="utf-8").replace("(init ", "(unused ")
    if relation == "base":
        return set(Naive(sheet.replace("(base ", "(init ")).initial)
    text = sheet.replace("(input ", "(possible ") + "(<= (init (pair ?r ?m)) (possible ?r ?m))"
    return {pair.removeprefix("(pair ")[:-1] for pair in Naive(text).initial}


def test_moves_declared() -> None:
    numbers = {name: len(declared(name, "input")) for name in ("pegsolitaire", "goofspiel", "connectfour", "othello4")}
    assert numbers == {"pegsolitaire": 36, "goofspiel": 10, "connectfour": 16, "othello4": 34}


@pytest.mark.parametrize("name", TURNS)
def test_one_role_is_in_control_and_the_others_wait(name: str) -> None:
    game = naive(name)
    for state in random_states(name, seed=2, matches=2):
        idle = [role for role in game.roles if f"(control {role})" not in state]
        assert len(idle) == len(game.roles) - 1
        if not game.terminal(state):
            assert all(game.legal(state)[role] == ["noop"] for role in idle)


@pytest.mark.parametrize("name", ZERO_SUM)
def test_two_players_share_a_hundred(name: str) -> None:
    game = naive(name)
    ends = [state for state in random_states(name, seed=3, matches=6) if game.terminal(state)]
    assert [sum(filter(None, game.goals(state).values())) for state in ends] == [100] * 6


@pytest.mark.parametrize("name", rulesheets.names())
def test_the_first_mover_is_declared_first(name: str) -> None:
    game = naive(name)
    if name in TURNS:
        assert f"(control {game.roles[0]})" in game.initial
    assert game.legal(game.initial)[game.roles[0]] != ["noop"]


def test_a_game_gets_a_name() -> None:
    assert rulesheets.load("tictactoe", name="noughts").name == "noughts"
    text = "(role me) (init a) (legal me go) (<= (next b) (does me go)) (<= terminal (true b)) (goal me 1)"
    assert [rulesheets.load(text).name, rulesheets.load(text, name="tiny").name] == ["unnamed", "tiny"]
