"""Maps between variants of a game: scrambled sheets, other sizes, changed rules, and sheets that share nothing."""

import numpy as np
import pytest

from gamelore import load, rulesheets
from gamelore.analysis.isomorphism import scramble
from gamelore.analysis.variants import FactMap, NameMap, map_facts, map_names, rule_shapes, shape_similarities
from gamelore.gdl.syntax import Rulesheet, parse
from misere_play import misere

STEP = """
(role white) (role black)
(init (at white 1)) (init (at black {last})) (init (control white))
{succ}
(<= (legal ?p (step ?x ?y)) (true (control ?p)) (true (at ?p ?x)) (succ ?x ?y))
(<= (legal ?p noop) (role ?p) (not (true (control ?p))))
(<= (next (at ?p ?y)) (does ?p (step ?x ?y)))
(<= (next (at ?p ?x)) (true (at ?p ?x)) (not (true (control ?p))))
(<= (next (control white)) (true (control black)))
(<= (next (control black)) (true (control white)))
(<= terminal (true (at white {last})))
(<= (goal white {won}) (true (at white {last})))
(<= (goal white {lost}) (not (true (at white {last}))))
(<= (goal black {lost}) (true (at white {last})))
(<= (goal black {won}) (not (true (at white {last}))))
"""

CLIMB = """
(role white) (init (pos 1 x))
(<= (legal white (rise ?y)) (true (pos ?x x)) (lt ?x ?y))
(<= (legal white (fall ?y)) (true (pos ?x ?z)) (gt ?x ?y))
(<= (next (pos ?y x)) (does white (rise ?y)))
(<= (next (pos ?y x)) (does white (fall ?y)))
(<= terminal (not (true (pos 1 x))))
(<= (goal white 100) (true (pos 1 x)))
"""


def rising(last: int) -> str:
    return "".join(f"(lt {place} {place + 1})" for place in range(1, last))


def falling(last: int) -> str:
    return "".join(f"(gt {place} {place - 1})" for place in range(last, 1, -1))


def bound(left: Rulesheet, right: Rulesheet) -> float:
    return float(shape_similarities(rule_shapes(left), [rule_shapes(right)])[0])


def steps(last: int, won: int = 100) -> Rulesheet:
    """Return a game in which pieces step from 1 to `last`; with `won` = 0, who arrives loses."""
    succ = " ".join(f"(succ {number} {number + 1})" for number in range(1, last))
    return parse(STEP.format(last=last, succ=succ, won=won, lost=100 - won))


def facts(sheet: Rulesheet, last: int) -> list[str]:
    return [f"(at {role} {place})" for role in ("white", "black") for place in range(1, last + 1)] + ["(control white)"]


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "breakthrough", "othello4", "fivemensmorris"])
def test_a_scrambled_sheet_is_mapped_back(name: str) -> None:
    sheet = parse(rulesheets.path(name).read_text(encoding="utf-8"))
    scrambled, renaming = scramble(sheet, np.random.default_rng(1))
    names = map_names(sheet, scrambled)
    assert names.score == 1.0
    roles = {str(rule.head.args[0]).lower() for rule in sheet.rules if rule.head.name == "role"}
    for role in roles:
        assert names.source(("role", 0), renaming.theirs(role)) in roles
    again = map_names(scrambled, sheet)
    assert again.score == 1.0


def test_shapes_bound_the_score() -> None:
    """Shapes do not depend on names and on facts."""
    five, nine = steps(5), steps(9)
    assert set(rule_shapes(five)) == set(rule_shapes(nine))
    assert bound(five, nine) == 1.0
    other = parse(rulesheets.path("tictactoe").read_text(encoding="utf-8"))
    assert map_names(five, other).score <= bound(five, other) < 1.0
    scrambled, _ = scramble(five, np.random.default_rng(1))
    assert set(rule_shapes(five)) == set(rule_shapes(scrambled))
    assert bound(parse(""), parse("")) == 0.0


def test_similarities_to_several_sets_are_those_of_the_pairs() -> None:
    rng = np.random.default_rng(1)
    sets = [rng.permutation(12)[:size].astype(np.uint64) for size in (5, 0, 12, 1, 7)]
    for own in sets:
        expected = [len({*own} & {*other}) / max(len({*own} | {*other}), 1) for other in sets]
        assert shape_similarities(own, sets).tolist() == pytest.approx(expected)
    assert shape_similarities(sets[0], []).shape == (0,)


def test_names_that_are_spelled_alike_are_matched_where_no_map_is_better() -> None:
    """By their facts, each relation is like the other one of the other sheet. These do not count for the score."""
    rules = "(role a) (<= (s ?x) (p ?x)) (<= (t ?x) (q ?x)) (<= terminal (s a) (t a))"
    sheet, other = parse(f"{rules} (p a) (p 1) (p 2) (q 3) (r 5)"), parse(f"{rules} (q a) (q 1) (q 2) (p 3) (r 6)")
    names = map_names(sheet, other)
    assert names.score == 1.0
    assert [names.source(("relation", 1), name) for name in "pqst"] == list("pqst")
    assert names.source(("constant", 0), "6") == "5", "what has no namesake is matched by its contexts"


def test_spelling_does_not_count_where_another_map_is_better() -> None:
    """In the other sheet, each of two relations has the name of the other one."""
    first = "(<= (p ?x) (q ?x a) (q a ?x)) (<= (q ?x ?x) (r ?x))"
    second = first.replace("(r ?x)", "(s ?x)").replace("(p ?x)", "(r ?x)")
    names = map_names(parse(first), parse(second))
    assert names.score == 1.0
    assert names.source(("relation", 1), "r") == "p"
    assert names.source(("relation", 1), "s") == "r"


def test_the_same_sheet_is_mapped_onto_itself() -> None:
    sheet = steps(5)
    names = map_names(sheet, sheet)
    assert names.score == 1.0
    assert all(kind_and_name[1] == source for kind_and_name, source in names.sources.items())


def test_another_size_by_hand() -> None:
    """Of five places, 1, 3 and 5 are the first, the middle and the last of nine: 1, 5 and 9; 2 is 3, 4 is 7."""
    names = map_names(steps(9), steps(5))
    assert names.score == 1.0
    mapped = map_facts(names, steps(9), steps(5), facts(steps(9), 9), facts(steps(5), 5))
    pairs = {row: column for row, column, share in zip(mapped.rows, mapped.columns, mapped.shares, strict=True)}
    assert [pairs[row] for row in range(5)] == [0, 2, 4, 6, 8]
    assert [pairs[row] for row in range(5, 10)] == [9, 11, 13, 15, 17]
    assert pairs[10] == 18
    weights = np.arange(19, dtype=np.float32)[None]
    assert mapped.carried(weights, 11).tolist() == [[0, 2, 4, 6, 8, 9, 11, 13, 15, 17, 18]]


def test_places_between_two_are_shared_by_hand() -> None:
    """Of four places, the second is at 2/3 of the way from the first to the second of three."""
    mapped = map_facts(map_names(steps(3), steps(4)), steps(3), steps(4), facts(steps(3), 3), facts(steps(4), 4))
    weights = np.array([[0.0, 3.0, 9.0, 0.0, 0.0, 0.0, 1.0]], np.float32)
    carried = mapped.carried(weights, 9)
    assert np.allclose(carried[0, :4], [0.0, 2.0, 5.0, 9.0])
    assert carried[0, 8] == 1.0


def test_one_to_one_by_hand() -> None:
    """Of five places, the first, the middle and the last are the three of the source; the others are between two."""
    mapped = map_facts(map_names(steps(3), steps(5)), steps(3), steps(5), facts(steps(3), 3), facts(steps(5), 5))
    assert mapped.one_to_one() == {0: 0, 1: 2, 2: 4, 3: 5, 4: 7, 5: 9, 6: 10}
    doubled = FactMap(np.array([0, 1, 2]), np.array([3, 3, 4]), np.ones(3))
    assert doubled.one_to_one() == {4: 2}, "two facts correspond to the same one"


def test_facts_that_the_source_lacks_do_not_stretch_the_others() -> None:
    """What was never seen in teaching has no weight, but its place is there."""
    sheet, every = steps(5), facts(steps(5), 5)
    known = [fact for fact in every if " 5)" not in fact]
    mapped = map_facts(map_names(sheet, sheet), sheet, sheet, known, every)
    assert [(every[row], known[column]) for row, column in zip(mapped.rows, mapped.columns, strict=True)] == [
        (fact, fact) for fact in known
    ]
    assert mapped.shares.tolist() == [1.0] * len(known)


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("last", [4, 7])
def test_places_are_compared_in_the_order_of_the_same_relation(last: int, renamed: bool) -> None:
    """The target numbers its places downwards first. Of seven places, 1, 3, 5 and 7 are those of four."""
    source, target = (
        parse(f"{facts} {CLIMB}") for facts in (f"{rising(4)} {falling(4)}", falling(last) + rising(last))
    )
    own = [f"(pos {place} x)" for place in range(1, last + 1)]
    if renamed:
        target, renaming = scramble(target, np.random.default_rng(1))
        own = [renaming.theirs(place) for place in own]
    names = map_names(source, target)
    assert names.score == 1.0
    mapped = map_facts(names, source, target, [f"(pos {place} x)" for place in range(1, 5)], own)
    pairs = {row: column for row, column, share in zip(mapped.rows, mapped.columns, mapped.shares, strict=True)}
    assert [pairs[row] for row in range(0, last, (last - 1) // 3)] == [0, 1, 2, 3]


def test_a_misere_variant_has_other_goals_only() -> None:
    """Four of the rules with a body have goals, of eleven; so 7 rules of 15 different ones agree."""
    names = map_names(steps(5), steps(5, won=0))
    assert names.score == pytest.approx(7 / 15)
    assert names.source(("function", 2), "at") == "at"
    assert names.source(("role", 0), "white") == "white"


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "breakthrough", "othello4"])
def test_misere_play_is_told_by_the_goals(name: str, renamed: bool) -> None:
    """In misère play, a goal of 100 becomes 0, and 0 becomes 100. The board may have another size."""
    sheet = parse(rulesheets.path(name).read_text(encoding="utf-8"))
    other = parse(misere(sheet.text))
    if renamed:
        other, _ = scramble(other, np.random.default_rng(1))
    assert map_names(sheet, other).is_misere
    assert map_names(other, sheet).is_misere
    assert not map_names(sheet, sheet).is_misere
    assert not map_names(other, other).is_misere
    assert map_names(steps(5), steps(9, won=0)).is_misere
    assert not map_names(steps(5, won=0), steps(9, won=0)).is_misere


def test_goals_that_are_counted_say_nothing_about_misere_play() -> None:
    """A goal that is a variable has no value in its rule, whatever the place that it is read from."""
    sheets = [parse(f"(role white) (init (at {n})) (<= (goal white ?n) (true (at ?n)))") for n in (0, 100)]
    assert not map_names(*sheets).is_misere


def test_games_without_likeness_share_little() -> None:
    sheets = [parse(rulesheets.path(name).read_text(encoding="utf-8")) for name in ("tictactoe", "fivemensmorris")]
    assert map_names(*sheets).score < 0.2


def test_a_map_takes_no_longer_than_it_may() -> None:
    """Without it, what is left unmatched would look alike."""
    scrambled, _ = scramble(steps(5), np.random.default_rng(1))
    assert map_names(steps(5), scrambled).score == 1.0
    assert map_names(steps(5), scrambled, seconds=0.0) == NameMap(0.0, {})


def test_facts_of_another_form_have_no_share() -> None:
    mapped = map_facts(map_names(steps(5), steps(5)), steps(5), steps(5), ["(at white 1)"], ["(at white 1)", "(z 1)"])
    assert mapped.rows.tolist() == [0]
    assert mapped.carried(np.ones((2, 1), np.float32), 2).tolist() == [[1, 0], [1, 0]]


def test_a_game_is_mapped_onto_itself() -> None:
    game = load("breakthrough")
    circuit = game.circuit
    assert circuit is not None
    texts = list(game.fact_texts)
    names = map_names(game.rulesheet, game.rulesheet)
    mapped = map_facts(names, game.rulesheet, game.rulesheet, texts, texts)
    assert mapped.rows.tolist() == mapped.columns.tolist() == list(range(len(texts)))
