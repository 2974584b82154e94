"""Fewer ground rules: the same atoms hold, whatever the state, and what is alike is said once."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelore.ground.program import factor_rules

FACTS, ACTIONS = range(1, 6), range(6, 10)  # atoms; two roles with two actions each
ROLE_OF = {6: "a", 7: "a", 8: "b", 9: "b"}
DERIVED = range(10, 18)
OUTPUTS = range(14, 18)


def program(rules, wanted=OUTPUTS):
    """Rules are (head, body); the wanted atoms are what comes next."""
    lengths = [len(body) for _, body in rules]
    return SimpleNamespace(
        heads=np.array([head for head, _ in rules], np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        literals=np.array([literal for _, body in rules for literal in body], np.int32),
        roles=["a", "b"],
        true={("fact", atom): atom for atom in FACTS},
        does={(ROLE_OF[atom], ("move", atom)): atom for atom in ACTIONS},
        next={("fact", atom): atom for atom in wanted},
        legal={},
        goal={},
        init={},
        terminal=0,
    )


def rules_of(rules):
    """The rules as pairs of a head and a set of literals, as in a program."""
    ends = rules.offsets.tolist()
    bodies = [rules.literals[start:end].tolist() for start, end in pairwise(ends)]
    signed = [frozenset(-(code >> 1) if code & 1 else code >> 1 for code in body) for body in bodies]
    return list(zip(rules.heads.tolist(), signed, strict=True))


def holding(rules, inputs):
    """What follows; only inputs are negated, so the least model is reached by going round."""
    held = set(inputs)
    while True:
        new = {
            head
            for head, body in rules
            if all((literal in held) if literal > 0 else (-literal not in held) for literal in body)
        } - held
        if not new:
            return held
        held |= new


def states():
    for facts in range(2 ** len(FACTS)):
        held = {atom for atom in FACTS if facts >> (atom - 1) & 1}
        yield from (held | {a, b} for a in (6, 7) for b in (8, 9))


LITERALS = st.one_of(
    st.sampled_from([*FACTS, *ACTIONS]),
    st.sampled_from([*FACTS, *ACTIONS]).map(lambda atom: -atom),
    st.sampled_from(DERIVED),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(DERIVED), st.lists(LITERALS, max_size=4)), max_size=40))
def test_the_same_atoms_hold_in_every_state(rules):
    fewer = rules_of(factor_rules(program(rules)))
    for inputs in states():
        assert holding(rules, inputs) & set(OUTPUTS) == holding(fewer, inputs) & set(OUTPUTS)


def test_rules_that_differ_in_one_literal_ask_for_one_of_a_set_which_all_of_them_share():
    rules = [(head, [fact, other]) for head, fact in ((14, 1), (15, 2)) for other in (3, 4, -5)]
    fewer = rules_of(factor_rules(program(rules)))
    (one,) = {literal for head, body in fewer if head in (14, 15) for literal in body if literal > 17}
    assert sorted((head, sorted(body)) for head, body in fewer if head <= 17) == [(14, [1, one]), (15, [2, one])]
    assert {body for head, body in fewer if head == one} == {frozenset([3]), frozenset([4]), frozenset([-5])}


def test_a_literal_that_rules_of_a_head_share_is_taken_out_and_equal_remainders_are_one():
    rules = [(head, [fact, *rest]) for head, fact in ((14, 1), (15, 2)) for rest in ([3, -4], [-3, 5])]
    fewer = rules_of(factor_rules(program(rules)))
    (remainder,) = {literal for head, body in fewer if head in (14, 15) for literal in body if literal > 17}
    assert {body for head, body in fewer if head == remainder} == {frozenset([3, -4]), frozenset([-3, 5])}
    assert len(fewer) == 4


def test_long_bodies_with_much_in_common_are_factored():
    shared = list(range(10, 2010))
    rules = [(2010, [*shared, 1]), (2010, [*shared, 2]), *((atom, [3, -4]) for atom in shared[::2])]
    rules += [(atom, [3, 5, -4]) for atom in shared[1::2]]
    fewer = rules_of(factor_rules(program(rules, [2010])))
    assert len([head for head, _ in fewer if head == 2010]) == 1


def test_nothing_is_left_of_what_is_constant_repeated_impossible_or_not_wanted():
    rules = [
        (10, []),  # true
        (11, [1, -1]),  # impossible
        (11, [6, 7]),  # two actions of a role
        (11, [12]),  # nothing derives 12
        (11, [11, 2]),  # only because it holds
        (13, [1, 2]),  # nobody asks for it
        (14, [10, 1, 1]),
        (14, [1]),
        (15, [1, 6, -7]),  # who plays 6 does not play 7
    ]
    fewer = rules_of(factor_rules(program(rules)))
    assert sorted((head, sorted(body)) for head, body in fewer) == [(14, [1]), (15, [1, 6])]


def test_aliases_of_each_other_are_left_to_the_loops():
    rules = [(10, [11]), (11, [10]), (12, [1]), (13, [12]), (14, [10, 13]), (14, [2, -13])]
    fewer = rules_of(factor_rules(program(rules)))
    assert {(14, frozenset([10, 1])), (14, frozenset([2, -1])), (10, frozenset([11]))} <= set(fewer)


def test_a_program_without_rules():
    assert rules_of(factor_rules(program([]))) == []
