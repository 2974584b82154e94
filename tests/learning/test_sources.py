"""A game is recognised by its rules, in any words."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from gamelore import rulesheets
from gamelore.analysis.isomorphism import Renaming, scramble, shape_hash
from gamelore.gdl.syntax import Rulesheet, num_names, parse
from gamelore.learning import sources
from gamelore.learning.sources import KnownRules, Recognition

RING = "(role a) (role b) (init u) (edge 1 1)"


def ring(*cycles: str) -> str:
    """Facts that lead from each letter to the next, and from the last to the first."""
    edges = [(one, other) for letters in cycles for one, other in zip(letters, letters[1:] + letters[0], strict=True)]
    return RING + " ".join(f"(edge {one} {other})" for one, other in edges)


def known(name: str, text: str) -> KnownRules:
    return KnownRules(name, parse(text).rules_hash, text)


def scrambled(text: str, seed: int = 0) -> tuple[Rulesheet, Renaming]:
    return scramble(parse(text), np.random.default_rng(seed))


@pytest.mark.parametrize("name", rulesheets.names())
def test_shipped_games_are_known_in_any_words(name):
    text = rulesheets.path(name).read_text()
    theirs, renaming = scrambled(text)
    found = Recognition().recognise(theirs)
    assert (found.name, found.is_new, found.renaming) == (name, False, renaming)
    assert found.sheet.rules == parse(text).rules


def test_the_hash_of_rules_is_that_of_the_game_without_comments_and_case():
    game = rulesheets.load("tictactoe", engine="reasoner")
    assert parse(f"; a comment\n{game.rulesheet}".upper()).rules_hash == game.rules_hash
    assert parse(f"{game.rulesheet} (role z)").rules_hash != game.rules_hash


def test_the_same_rules_are_spelled_as_received():
    theirs = parse(str(parse(rulesheets.path("tictactoe").read_text())).upper())
    found = Recognition().recognise(theirs)
    assert (found.name, found.is_new) == ("tictactoe", False)
    assert found.renaming.theirs("(mark 1 2)") == "(MARK 1 2)"


def test_a_new_game_is_called_by_its_shape_whatever_its_names_are():
    sheet = parse(ring("uvw"))
    found = Recognition().recognise(sheet)
    assert found.is_new
    assert found.name == f"game-{shape_hash(sheet)[:8]}"
    assert found.sheet is sheet
    assert found.renaming.is_identity
    assert Recognition().recognise(scrambled(ring("uvw"))[0]).name == found.name


def test_what_was_added_is_known():
    recognition = Recognition()
    first = recognition.recognise(parse(ring("uvw")))
    recognition.add(known(first.name, ring("uvw")))
    theirs, renaming = scrambled(ring("uvw"))
    again = recognition.recognise(theirs)
    assert (again.name, again.is_new, again.renaming) == (first.name, False, renaming)
    recognition.add(known("another name", ring("uvw")))
    assert recognition.recognise(theirs).name == first.name


def test_what_is_known_goes_before_what_is_shipped():
    text = str(scrambled(rulesheets.path("connect3").read_text())[0])
    recognition = Recognition([known("mine", text)])
    assert recognition.recognise(scrambled(text, seed=1)[0]).name == "mine"
    assert recognition.recognise(parse(rulesheets.path("connect3").read_text())).name == "connect3"


def test_what_only_looks_the_same_is_new():
    one, other = ring("uvwxyz"), ring("uvw", "xyz")
    assert shape_hash(parse(one.replace("(init u)", ""))) == shape_hash(parse(other.replace("(init u)", "")))
    recognition = Recognition([known("hexagon", one.replace("(init u)", ""))])
    assert recognition.recognise(parse(other.replace("(init u)", ""))).is_new


def test_without_time_only_the_obvious_is_recognised():
    text = ring("uvwxyz")
    recognition = Recognition([known("hexagon", text)], seconds=0.0)
    assert not recognition.recognise(scrambled(text)[0]).is_new
    turned = parse(str(parse(text)).replace("(edge u v)\n(edge v w)", "(edge v w)\n(edge u v)"))
    assert recognition.recognise(turned).is_new
    assert not Recognition([known("hexagon", text)]).recognise(turned).is_new


@pytest.fixture
def parsed(monkeypatch):
    """The number of characters in each text that a recognition parses."""
    sizes = []

    def noted(text):
        sizes.append(len(text))
        return parse(text)

    monkeypatch.setattr(sources, "parse", noted)
    return sizes


def test_games_of_another_size_are_not_parsed(parsed):
    large = "\n".join(f"(f {i})" for i in range(3000))
    recognition = Recognition([known("large", large), known("hexagon", ring("uvwxyz"))])
    parsed.clear()  # those shipped
    assert recognition.recognise(scrambled(ring("uvwxyz"))[0]).name == "hexagon"
    assert recognition.recognise(parse(ring("uvwx"))).is_new
    assert parsed == [len(ring("uvwxyz"))]


def test_many_games_of_the_same_size_take_a_limited_time(parsed):
    games = [known(f"game{i}", f"{ring('uvw')} (f g{i})") for i in range(100)]
    recognition = Recognition(games, seconds=0.0)
    parsed.clear()  # those shipped
    assert recognition.recognise(parse(f"(role z) {ring('uvw')}")).is_new
    assert len(parsed) <= 1
    assert not recognition.recognise(parse(games[99].text)).is_new


@pytest.mark.parametrize("text", ["(<= (init u)) (init v)", "(<= (init u) (or (true v)) (and (true (w ?x))))"])
def test_the_number_of_names_is_that_of_the_rules(text):
    assert (
        num_names(text)
        == num_names(str(parse(text)))
        == num_names(f"; a b\n{text.upper()}\r; a (b\n".replace(" ", "  "))
    )
    assert num_names(text) < num_names(f"{text} (init z)")


def test_damaged_rules_do_not_stand_in_the_way(caplog):
    damaged = KnownRules("damaged", parse(ring("uvw")).rules_hash, "(role a")
    with caplog.at_level(logging.WARNING):
        recognition = Recognition([damaged])
        assert recognition.recognise(parse(ring("uvw"))).is_new
        assert recognition.recognise(scrambled(rulesheets.path("othello4").read_text())[0]).name == "othello4"
    assert "the rules of damaged cannot be read" in caplog.text
