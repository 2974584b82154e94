"""Retrieval: which game of a store is the nearest variant, and what its value becomes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.analysis.isomorphism import scramble
from gamelore.gdl.syntax import Rulesheet, parse
from gamelore.learning.store.lesson_rows import Lessons, OpeningMove, StoredLesson, TrialRow
from gamelore.learning.store.taught_rows import NOTHING, StoredValue
from gamelore.memory import retrieval
from gamelore.memory.lesson import restored_value, stored_value
from gamelore.memory.retrieval import CarriedValue, Relatives
from gamelore.networks.network import Network
from gamelore.networks.tuples import draw_tuples
from gamelore.rulesheets import path
from gamelore.search.value import LinearValue
from misere_play import misere

BREAKTHROUGH = path("breakthrough").read_text(encoding="utf-8")


def played_positions(game: Game) -> list[frozenset[str]]:
    """Return the facts of the positions of some random matches."""
    rng, positions = np.random.default_rng(2), []
    for _ in range(4):
        position = game.start()
        while not position.is_terminal:
            position = position.play({role: str(rng.choice(moves)) for role, moves in position.legal.items()})
            positions.append(position.facts)
    return positions


def remember(lessons: Lessons, game: Game, informed: float | None = None) -> StoredValue:
    """Store a lesson whose weights are drawn by lot."""
    rng = np.random.default_rng(1)
    weights = {fact: tuple(rng.normal(size=game.num_roles).astype(np.float32).tolist()) for fact in game.fact_texts}
    value = StoredValue(0.5, 0.25, informed, (0.125, 0.375, 0.5)[: game.num_roles], weights)
    lessons.put(game, StoredLesson(2, 10, 1000, 1.0, value))
    return value


def nearest_variant(game: Game, lessons: Lessons) -> CarriedValue | None:
    return next(iter(Relatives(game, lessons).variants()), None)


def test_an_empty_store_has_no_variant(lessons: Lessons) -> None:
    assert nearest_variant(load("tictactoe"), lessons) is None


def test_the_lesson_of_the_game_itself_is_no_variant(lessons: Lessons) -> None:
    game = load("breakthrough")
    remember(lessons, game)
    assert nearest_variant(game, lessons) is None


def test_the_most_similar_game_is_the_variant(lessons: Lessons) -> None:
    for name in ("tictactoe", "connectfour", "breakthrough", "othello4"):
        remember(lessons, load(name))
    variant = nearest_variant(load("breakthrough:width=5,height=6,rows=2"), lessons)
    assert variant is not None
    assert variant.rules_hash == load("breakthrough").rules_hash
    assert variant.name == "breakthrough"
    assert variant.likeness == 1.0, "facts do not count"
    assert (variant.value.determination, variant.value.foresight) == (0.5, 0.25)
    assert nearest_variant(load("goofspiel"), lessons) is None


def test_of_equally_similar_games_the_best_explained_one_is_first(lessons: Lessons) -> None:
    sizes = [load(f"breakthrough:width={width},height=6,rows=2") for width in (4, 6)]
    for game, determination in zip(sizes, (0.25, 0.75), strict=True):
        value = remember(lessons, game)._replace(determination=determination)
        lessons.delete(game.rules_hash)
        lessons.put(game, StoredLesson(2, 10, 1000, 1.0, value))
    ordered = Relatives(load("breakthrough"), lessons).variants()
    assert [variant.rules_hash for variant in ordered] == [game.rules_hash for game in sizes[::-1]]


def test_only_the_most_similar_game_is_read_at_first(lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (4, 6):
        remember(lessons, load(f"breakthrough:width={width},height=6,rows=2"))
    num_read = [0]

    def counted(text: str) -> Rulesheet:
        num_read[0] += 1
        return parse(text)

    monkeypatch.setattr(retrieval, "parse", counted)
    relatives = Relatives(load("breakthrough"), lessons)
    first = relatives.first_variant()
    assert first is not None
    assert num_read == [1]
    assert relatives.has_several
    variants = relatives.variants()
    assert first in variants
    assert (len(variants), num_read) == (2, [2])


def test_a_value_is_carried_to_the_facts_that_correspond(lessons: Lessons) -> None:
    """The corners of a small board correspond to those of a large one."""
    small, large = load("breakthrough"), load("breakthrough:width=5,height=6,rows=2")
    value = remember(lessons, small)
    variant = nearest_variant(large, lessons)
    assert variant is not None
    assert variant.value.constants == pytest.approx(value.constants)
    for ours, theirs in (("(cell 1 6 white)", "(cell 1 5 white)"), ("(cell 5 2 black)", "(cell 4 2 black)")):
        assert variant.value.weights[ours] == pytest.approx(value.weights[theirs], abs=0.5)
    assert variant.value.weights["(cell 5 6 white)"] == pytest.approx(value.weights["(cell 4 5 white)"])


def test_roles_go_by_the_map(lessons: Lessons, tmp_path: Path) -> None:
    """The same game with its roles in the other order, and one rule more."""
    white, black = "(role white)", "(role black)"
    swapped = BREAKTHROUGH.replace(white, "(?)").replace(black, white).replace("(?)", black)
    (tmp_path / "other.kif").write_text(swapped + "(<= (idle ?p) (role ?p))")
    game, other = load("breakthrough"), load(tmp_path / "other.kif")
    assert other.roles == game.roles[::-1]
    value = remember(lessons, game)
    variant = nearest_variant(other, lessons)
    assert variant is not None
    assert variant.value.constants == pytest.approx(value.constants[::-1])
    fact = "(cell 1 1 white)"
    assert variant.value.weights[fact] == pytest.approx(value.weights[fact][::-1])


def test_misere_play_gets_a_value_twice(lessons: Lessons, tmp_path: Path) -> None:
    """What was worth 0.125 at first is worth 0.875, and each weight has the other sign; then as it was."""
    (tmp_path / "misere.kif").write_text(misere(BREAKTHROUGH))
    value, game = remember(lessons, load("breakthrough")), load(tmp_path / "misere.kif")
    relatives = Relatives(game, lessons)
    first = relatives.first_variant()
    assert relatives.has_several
    turned, straight = relatives.variants()
    assert first == turned
    assert turned.value.constants == (0.875, 0.625)
    assert straight.value.constants == value.constants == (0.125, 0.375)
    for fact, weights in value.weights.items():
        assert turned.value.weights[fact] == pytest.approx([-weight for weight in weights])
        assert straight.value.weights[fact] == pytest.approx(weights)


def test_informed_playouts_are_carried_without_weights(lessons: Lessons, shared: Path) -> None:
    game = load(shared / "games" / "connectFour_9x6.kif")
    source = load(shared / "games" / "connectFour.kif")
    lessons.put(source, StoredLesson(2, 10, 1000, 1.0, NOTHING._replace(constants=(0.5, 0.5), informed=0.5)))
    variant = nearest_variant(game, lessons)
    assert variant is not None
    assert variant.value.informed == 0.5
    lessons.delete(source.rules_hash)
    lessons.put(source, StoredLesson(2, 10, 1000, 1.0, NOTHING._replace(constants=(0.5, 0.5))))
    assert nearest_variant(game, lessons) is None, "a value without weights says nothing"


def test_the_lesson_of_the_same_game_is_copied_whatever_the_order_of_the_rules(
    lessons: Lessons, tmp_path: Path
) -> None:
    game = load("breakthrough")
    value = remember(lessons, game)
    roles, others = ("\n".join(map(str, rules)) for rules in (game.rulesheet.rules[:2], game.rulesheet.rules[:1:-1]))
    (tmp_path / "other.kif").write_text(f"{roles}\n{others.replace('move', 'walk')}")
    other = load(tmp_path / "other.kif")
    Relatives(other, lessons).adopt()
    copy = lessons.find(other.rules_hash)
    assert copy is not None
    assert copy.value.weights == value.weights


def test_the_copy_of_a_lesson_begins_its_generation_anew(lessons: Lessons, tmp_path: Path) -> None:
    """The sums of the generation cannot be copied, so its walks do not count: 250,000 and 500,000 were before it."""
    text = path("breakthrough").read_text(encoding="utf-8")
    (tmp_path / "other.kif").write_text(text.replace("move", "walk"))
    game, other = load("breakthrough"), load(tmp_path / "other.kif")
    value = remember(lessons, game)
    lessons.put(game, StoredLesson(2, 100, 1_000_000, 10.0, value, b"sums"))
    kept = Relatives(other, lessons).copy()
    assert lessons.find(other.rules_hash) is None, "a copy without adoption leaves the store as it is"
    assert kept is not None
    assert (kept.lesson.generation, kept.lesson.walks, kept.lesson.progress) == (2, 750_000, b"")
    assert kept.lesson.value == value
    Relatives(other, lessons).adopt()
    assert lessons.state(other.rules_hash) == (kept.lesson.id, 750_000)


@pytest.mark.parametrize(
    "damage", ["taught SET weights = '{\"x\":[1]}'", "opening SET move = 77", "trial SET num = 'many'"]
)
def test_a_damaged_lesson_of_the_same_game_is_not_copied(
    damage: str, lessons: Lessons, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = path("breakthrough").read_text(encoding="utf-8")
    (tmp_path / "other.kif").write_text(text.replace("move", "walk"))
    game, other = load("breakthrough"), load(tmp_path / "other.kif")
    remember(lessons, game)
    lessons.put_opening(game, frozenset({"(cell 1 1 white)"}), [OpeningMove(0, "noop", 60, 60.0)])
    lessons.add_evidence(game, TrialRow("lesson", 2, "without"), lambda row: row._replace(num=1))
    with lessons.knowledge.writing() as connection:
        connection.execute(f"UPDATE {damage}")
    Relatives(other, lessons).adopt()
    assert lessons.find(other.rules_hash) is None
    assert "the lesson about breakthrough is left out: " in caplog.text
    lessons.delete(game.rules_hash)
    remember(lessons, game)
    Relatives(other, lessons).adopt()
    assert lessons.find(other.rules_hash) is not None


def test_a_damaged_lesson_of_another_game_is_left_out(lessons: Lessons, caplog: pytest.LogCaptureFixture) -> None:
    remember(lessons, load("breakthrough"))
    with lessons.knowledge.writing() as connection:
        connection.execute("UPDATE taught SET weights = '{\"x\":[1]}'")
    assert Relatives(load("breakthrough:width=5,height=6,rows=2"), lessons).variants() == []
    assert "the lesson about breakthrough is left out: " in caplog.text


@pytest.mark.parametrize("damage", ["rules = '(role white'", "rules = X'00'", "name = X'00'"])
def test_a_damaged_game_is_left_out(damage: str, lessons: Lessons, caplog: pytest.LogCaptureFixture) -> None:
    """The other game of the store is of use without it."""
    sizes = [load(f"breakthrough:width={width},height=6,rows=2") for width in (4, 6)]
    for size in sizes:
        remember(lessons, size)
    with lessons.knowledge.writing() as connection:
        connection.execute(f"UPDATE game SET {damage} WHERE rules_hash = ?", [sizes[0].rules_hash])
    relatives = Relatives(load("breakthrough"), lessons)
    assert [variant.rules_hash for variant in relatives.variants()] == [sizes[1].rules_hash]
    assert f"the lesson about {sizes[0].rules_hash} is left out: " in caplog.text
    relatives.adopt()
    assert lessons.find(load("breakthrough").rules_hash) is None, "nothing has the same rules"


def remember_network(lessons: Lessons, game: Game, rng: np.random.Generator, informed: float | None = None) -> Network:
    """Store a lesson with a network whose entries are drawn by lot."""
    tuples = draw_tuples(game, rng)
    network = Network.zero(tuples, game.num_roles)
    network.entries[:] = rng.normal(scale=0.1, size=network.entries.shape)
    value = replace(LinearValue.zero(game), network=network)
    value.weights[:, : len(game.fact_texts)] = 0.1
    lessons.put(game, StoredLesson(2, 10, 1000, 60.0, stored_value(game, value, informed)))
    return network


def carried_networks(game: Game, lessons: Lessons) -> list[Network]:
    """Return the networks that variants give to a game."""
    values = [restored_value(game, variant.value) for variant in Relatives(game, lessons).variants()]
    return [value.network for value in values if value is not None and value.network is not None]


@pytest.mark.parametrize("is_misere", [False, True])
def test_a_network_is_carried_to_the_same_board(is_misere: bool, lessons: Lessons, tmp_path: Path) -> None:
    """Its values are the same for the roles that correspond, and one minus them, too, in misère play.

    The sheet has other names, and its roles in the other order.
    """
    game, rng = load("breakthrough"), np.random.default_rng(1)
    text = misere(BREAKTHROUGH) if is_misere else BREAKTHROUGH + "(<= (idle ?p) (role ?p))"
    text = text.replace("(role white)", "").replace("(role black)", "(role black) (role white)")
    other, renaming = scramble(parse(text), rng)
    (tmp_path / "other.kif").write_text(other.text)
    target, network = load(tmp_path / "other.kif"), remember_network(lessons, game, rng)
    positions = played_positions(game)
    own = np.array([game.state(facts) for facts in positions])
    theirs = np.array([target.state(map(renaming.theirs, facts)) for facts in positions])
    values = network(own, np.zeros(len(own), np.int64))
    expected = [1.0 - values, values] if is_misere else [values]
    carried = carried_networks(target, lessons)
    assert len(carried) == len(expected)
    role = target.roles.index(renaming.theirs("white"))
    for each, right in zip(carried, expected, strict=True):
        assert each(theirs, np.full(len(own), role)) == pytest.approx(right, abs=2e-3)


def test_facts_of_the_game_alone_keep_no_network_out(lessons: Lessons, tmp_path: Path) -> None:
    """A game with a counter of 200 plies gets the network of one without. The other one lacks most of its facts."""
    steps = " ".join(f"(after {number} {number + 1})" for number in range(200))
    counter = f"(init (ply 0)) (<= (next (ply ?n)) (true (ply ?m)) (after ?m ?n)) {steps}"
    (tmp_path / "counted.kif").write_text(BREAKTHROUGH + counter)
    game, counted = load("breakthrough"), load(tmp_path / "counted.kif")
    remember_network(lessons, game, np.random.default_rng(1))
    assert len(carried_networks(counted, lessons)) == 1
    lessons.delete(game.rules_hash)
    remember_network(lessons, counted, np.random.default_rng(1))
    assert carried_networks(game, lessons) == []


def test_a_network_comes_without_informed_playouts(lessons: Lessons, tmp_path: Path) -> None:
    """Its lesson never tries them."""
    (tmp_path / "other.kif").write_text(BREAKTHROUGH + "(<= (idle ?p) (role ?p))")
    remember_network(lessons, load("breakthrough"), np.random.default_rng(1), informed=0.3)
    (variant,) = Relatives(load(tmp_path / "other.kif"), lessons).variants()
    assert variant.value.network is not None
    assert variant.value.informed is None


@pytest.mark.parametrize(("own", "other"), [(4, 5), (5, 4), (4, 7), (7, 4)])
def test_a_network_is_not_carried_to_a_board_of_another_size(own: int, other: int, lessons: Lessons) -> None:
    """Rows 1 to 4 are rows 1, 3, 5 and 7 of seven, each a row of its own, and three are left."""
    source, target = (load(f"breakthrough:width={size},height={size},rows=1") for size in (own, other))
    remember_network(lessons, source, np.random.default_rng(1))
    assert len(Relatives(target, lessons).variants()) == 1
    assert carried_networks(target, lessons) == []
