"""Clauses of rules that explode: large rules take time in proportion, and those that grow too large are refused."""

from __future__ import annotations

import pytest

from clocks import counted_time
from gamelore.errors import GDLSemanticError, GroundingError
from gamelore.gdl.clauses import Dependencies, TermsTooLargeError, clauses, unfolded
from gamelore.gdl.limits import Limits, within
from gamelore.gdl.syntax import parse
from parsing import num_calls

COMPARISONS = {
    "true": lambda size: " ".join("(distinct a b)" for _ in range(size)),
    "equal": lambda size: " ".join(f"(n ?v{i}) (not (distinct ?v{i} a))" for i in range(size)),
    "equal in a row": lambda size: " ".join(f"(n ?v{i}) (not (distinct ?v{i + 1} ?v{i}))" for i in range(size)),
    "different": lambda size: " ".join(f"(distinct ?v{i} ?v{i + 1})" for i in range(size)),
}
DOUBLING = " ".join(f"(not (distinct ?v{i + 1} (f ?v{i} ?v{i})))" for i in range(40))
NESTED = " ".join(f"(not (distinct ?v{i + 1} (f ?v{i})))" for i in range(300))
ORS = " ".join(f"(or (a {i}) (b {i}))" for i in range(12))


@pytest.mark.parametrize("kind", COMPARISONS)
def test_comparisons_take_time_in_proportion(kind: str) -> None:
    some, twice = (parse(f"(<= won p {COMPARISONS[kind](size)})") for size in (1000, 2000))
    assert num_calls(clauses, twice) <= 2.3 * num_calls(clauses, some)


@pytest.mark.parametrize("conditions", [DOUBLING, NESTED])
def test_terms_that_grow_out_of_each_other_are_refused(conditions: str) -> None:
    with pytest.raises(GDLSemanticError, match="in place of variables, this rule grows by more than") as caught:
        clauses(parse(f"\n(<= (p ?v40) (q ?v0) {conditions})"))
    assert caught.value.line == 2
    assert caught.value.remedy


def test_definitions_whose_terms_double_are_refused() -> None:
    names = " ".join(f"?v{i + 1} (f ?v{i} ?v{i})" for i in range(40))
    (definition,) = clauses(parse(f"(<= (d {names}) (q ?v0))"))
    (clause,) = clauses(parse(f"(<= (p ?w40) (d {' '.join(f'?w{i + 1} ?w{i + 1}' for i in range(40))}))"))
    with pytest.raises(TermsTooLargeError):
        unfolded(clause, clause.positive[0], definition)


def test_conjunctions_are_bounded_with_their_literals() -> None:
    with pytest.raises(GDLSemanticError, match="4096 conjunctions with more than 1000000 conditions in all"):
        clauses(parse(f"(<= p {ORS} {' '.join(f'(c {i})' for i in range(5000))})"))


def test_branches_beside_an_or_that_never_holds_are_not_multiplied_out() -> None:
    assert num_calls(clauses, parse(f"(<= p (and {ORS} {ORS} {ORS}) (or))")) < 2000
    assert clauses(parse(f"(<= p (and {ORS} {ORS} {ORS}) (or))")) == []


def test_recursive_relations_are_found_in_proportion_to_the_rules() -> None:
    some, twice = (
        Dependencies(clauses(parse(" ".join(f"(<= p{i} p{i + 1})" for i in range(size))))) for size in (300, 600)
    )
    some.recursive()  # imports rustworkx
    assert num_calls(Dependencies.recursive, twice) <= 2.3 * num_calls(Dependencies.recursive, some)
    assert Dependencies(clauses(parse("(<= a b) (<= b a) (<= c a) (<= d d) (<= a e)"))).recursive() == {
        ("a", 0),
        ("b", 0),
        ("d", 0),
    }


@pytest.mark.parametrize("kind", COMPARISONS)
def test_a_long_rule_looks_at_the_budget(kind: str) -> None:
    sheet = parse(f"(<= won p {COMPARISONS[kind](30_000)})")
    with counted_time() as now, within(Limits(seconds=0.05)), pytest.raises(GroundingError, match=r"within 0\.05 s"):
        clauses(sheet)
    assert now() < 0.1
