"""The follower: it knows the legal moves that the player's worker knows, has no player, and stays small."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

from gamelore import GameloreError, GDLSemanticError, GDLSyntaxError, load
from gamelore.analysis.isomorphism import Renaming, scramble
from gamelore.catalogue import player
from gamelore.gdl.syntax import Rulesheet, parse
from gamelore.ground import clingo
from gamelore.ground.rehearsal import rehearse
from gamelore.net.belief import PlayerMatches
from gamelore.net.follower import Follower, without_goals
from gamelore.players.random_streams import stream, uniform
from gamelore.rulesheets import path, read

TICTACTOE = path("tictactoe").read_text(encoding="utf-8")
JOIN = " ".join(f"(true (edge ?{a} ?{b}))" for a, b in combinations("abcdefg", 2))
CLIQUE = f"""
(role x) {" ".join(f"(node {number})" for number in range(40))} (init (edge 0 1)) (goal x 0)
(<= (legal x (link ?a ?b)) (node ?a) (node ?b)) (<= (next (edge ?a ?b)) (does x (link ?a ?b))) (<= terminal {JOIN})
"""  # a long join for all that edges may be; there is only one edge at a time
GAMES = ["tictactoe", "goofspiel", "tictactoe3p", "pegsolitaire", "breakthrough"]


SUMS = """
(role a) (init (step 1)) (num 1) (num 2) (<= (legal a (take ?n)) (num ?n)) (<= (next (step 2)) (does a (take ?n)))
(<= (chosen ?n) (does a (take ?n))) (<= (next (taken ?n)) (chosen ?n)) (<= terminal (true (step 2))) (succ 1 2)
(<= (plus ?n) (succ 1 ?n)) (<= (goal a 100) (true (taken ?n)) (plus ?n)) (<= (goal a 0) (not (true (taken 2))))
"""


def test_rules_of_goals_are_left_out() -> None:
    kept = [str(rule) for rule in without_goals(parse(SUMS)).rules]
    assert kept[-1] == "(<= (goal ?r 0) (role ?r))"
    assert [str(rule) for rule in parse(SUMS).rules if str(rule) not in kept] == [
        "(succ 1 2)",
        "(<= (plus ?n) (succ 1 ?n))",
        "(<= (goal a 100) (true (taken ?n)) (plus ?n))",
        "(<= (goal a 0) (not (true (taken 2))))",
    ]
    assert len(kept) == len(parse(SUMS).rules) - 3


def test_goals_that_the_end_depends_on_stay() -> None:
    sheet = parse(SUMS.replace("(<= terminal (true (step 2)))", "(<= terminal (goal a 100))"))
    assert without_goals(sheet).rules == sheet.rules


def test_a_mistake_in_the_rules_of_goals_is_told() -> None:
    with pytest.raises(GDLSemanticError, match="variable"):
        follower().prepare(SUMS.replace("(goal a 0)", "(goal a ?x)"))


def follower() -> Follower:
    return Follower(1 << 30, 60.0)


def in_other_words(name: str) -> tuple[Rulesheet, Renaming]:
    return scramble(read(name)[0], np.random.default_rng(3))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("is_scrambled", [False, True])
def test_it_knows_what_the_worker_knows(name: str, is_scrambled: bool) -> None:
    game = load(name)
    matches, following = PlayerMatches(game, player("random")), follower()
    sheet, renaming = in_other_words(name) if is_scrambled else (game.rulesheet, Renaming.identity(game.rulesheet))
    rules = str(sheet)
    position, ply = game.start(), 0
    for role in game.roles:
        matches.start(role, role)
        assert following.opening(renaming.theirs(role), rules) == tuple(map(renaming.theirs, matches.opening(role)))
        following.start(role, renaming.theirs(role), rules)
    joint: list[str] = []
    while not position.is_terminal and ply < 40:
        for role in game.roles:
            legal, seen, _, is_lost = following.advance(role, [renaming.theirs(move) for move in joint])
            advanced = matches.advance(role, joint)
            assert (legal, seen, is_lost) == (tuple(map(renaming.theirs, advanced.legal)), ply, False)
        key = stream(1, ply)
        joint = [legal[int(uniform(key, role, 0) * len(legal))] for role, legal in enumerate(position.legal.values())]
        position, ply = position.play(joint), ply + 1
    assert ply > 3
    if position.is_terminal:
        assert following.advance(game.roles[0], [renaming.theirs(move) for move in joint])[0] == ()


def test_spelling_is_as_received() -> None:
    following = follower()
    assert following.opening("XPLAYER", TICTACTOE.upper())[0] == "(MARK 1 1)"
    following.start("m", "xplayer", TICTACTOE)
    assert following.advance("m", ["(MARK 1 1)", "Noop"])[0] == ("noop",)


def test_a_repeated_report_changes_nothing_and_a_missed_turn_is_noticed() -> None:
    following = follower()
    following.start("m", "oplayer", TICTACTOE)
    first = following.advance("m", ["(mark 1 1)", "noop"])
    assert following.advance("m", ["(mark 1 1)", "noop"]) == first
    assert (len(first[0]), first[1]) == (8, 1)
    assert following.advance("m", ["(mark 3 3)", "noop"]) == ((), 1, None, True)
    assert following.advance("m", ["noop", "(mark 2 2)"])[0] == ()


def test_a_match_goes_on_from_its_history() -> None:
    following = follower()
    history = [None, ["(mark 1 1)", "noop"], ["(mark 1 1)", "noop"], ["noop", "(mark 2 2)"]]
    number, (legal, ply, _, is_lost) = following.start("m", "xplayer", TICTACTOE, 7, history)
    assert (number, len(legal), ply, is_lost) == (7, 7, 2, False)


def test_games_are_forgotten_with_their_last_match() -> None:
    following = follower()
    for match in "ab":
        following.prepare(TICTACTOE)
        following.start(match, "xplayer", TICTACTOE)
    (game,) = following._games.values()
    following.abort("a")
    assert list(following._games.values()) == [game]
    following.abort("b")
    following.abort("unknown")
    assert not following._games


def test_what_cannot_be_followed_is_said() -> None:
    following = follower()
    with pytest.raises(GDLSyntaxError):
        following.prepare("(role r")
    with pytest.raises(GameloreError, match="expected one of the roles xplayer, oplayer, got 'z'"):
        following.start("m", "z", TICTACTOE)
    with pytest.raises(GameloreError, match="expected a running match, got m"):
        following.advance("m", None)


def test_it_does_not_try_long_joins_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """That took longer than the join, at each turn. The pool ends a follower that hangs."""
    tried = []
    monkeypatch.setattr(clingo, "rehearse", lambda *given: tried.append(given) or rehearse(*given))
    load(CLIQUE, engine="reasoner")
    assert tried
    tried.clear()
    following = follower()
    following.start("m", "x", CLIQUE)
    assert len(following.advance("m", ["(link 3 4)"])[0]) == 1600
    assert not tried


def test_it_is_small() -> None:
    code = f"""
import sys
from gamelore.net.follower import Follower
following = Follower(1 << 30, 60.0)
following.start("m", "xplayer", open({str(path("tictactoe"))!r}).read())
assert len(following.advance("m", None)[0]) == 9
print(*sorted({{"numba", "llvmlite", "scipy", "gamelore.catalogue"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
