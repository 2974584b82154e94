"""Tuples of variables: walks along the rules, entries for all values, and images under symmetries."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from gamelore import load
from gamelore.analysis.symmetry import symmetries
from gamelore.analysis.variables import Variables
from gamelore.networks.tuples import Tuples, draw_tuples


def tuples_of(name: str, seed: int = 0, num: int = 20, fewest_orbits: int = 1) -> Tuples:
    return draw_tuples(load(name), np.random.default_rng(seed), num, fewest_orbits)


@cache
def variables_in(name: str) -> Variables:
    return Variables.of(load(name))


def variables_of(name: str, tuples: Tuples, number: int) -> list[int]:
    """Return the variables of a tuple."""
    return sorted(set(variables_in(name).numbers[np.flatnonzero(tuples.strides[:, number])].tolist()))


@pytest.mark.parametrize("name", ["tictactoe", "breakthrough:width=3,height=4", "connect3"])
def test_each_combination_of_values_has_an_entry_of_its_own(name):
    variables, tuples = Variables.of(load(name)), tuples_of(name)
    starts = np.unique(tuples.offsets)
    for number, offset in enumerate(tuples.offsets.tolist()):
        values = []
        for variable in variables_of(name, tuples, number):
            facts = np.flatnonzero(variables.numbers == variable)
            values.append(tuples.strides[facts, number].tolist() + ([] if variables.settled[variable] else [0]))
        entries = sorted(offset + sum(strides) for strides in product(*values))
        end = starts[starts > offset].min(initial=tuples.num_entries)
        assert entries == list(range(offset, end))


def all_variables(name: str, tuples: Tuples) -> list[list[int]]:
    """Return the variables of each tuple."""
    return [variables_of(name, tuples, number) for number in range(len(tuples.offsets))]


def test_each_variable_is_a_tuple_of_its_own():
    alone = [own for own in all_variables("tictactoe", tuples_of("tictactoe")) if len(own) == 1]
    assert sorted(alone) == [[number] for number in range(10)], "nine cells, and whose turn it is"


HEAPS = """
(role a) (role b) (init (control a)) (heap w) (heap x) (heap y) (heap z) (<= (init (full ?h)) (heap ?h))
(<= (legal ?r (take ?h)) (true (control ?r)) (true (full ?h)))
(<= (legal a wait) (true (control b))) (<= (legal b wait) (true (control a)))
(<= (next (control b)) (true (control a))) (<= (next (control a)) (true (control b)))
(<= (next (full ?h)) (true (full ?h)) (not (taken ?h))) (<= (taken ?h) (does ?r (take ?h)))
(<= left (true (full ?h))) (<= terminal (not left))
(<= (goal ?r 0) (true (control ?r))) (<= (goal ?r 100) (role ?r) (not (true (control ?r))))
"""  # all orders of the four heaps are symmetries


def test_each_variable_is_a_tuple_of_its_own_in_games_with_more_symmetries_than_images():
    assert len(symmetries(load(HEAPS)).facts) == 24
    alone = [own for own in all_variables(HEAPS, tuples_of(HEAPS)) if len(own) == 1]
    assert sorted(alone) == [[number] for number in range(5)], "four heaps, and whose turn it is"


def facts_by_entries(tuples: Tuples) -> set[tuple[int, tuple[int, ...]]]:
    """Return (first entry, facts) of each tuple."""
    offsets, columns = tuples.offsets.tolist(), tuples.strides.T
    return {(offset, tuple(np.flatnonzero(own).tolist())) for offset, own in zip(offsets, columns, strict=True)}


def test_images_share_their_entries():
    tuples = tuples_of("tictactoe")
    for facts in symmetries(load("tictactoe")).facts:
        moved = np.zeros_like(tuples.strides)
        moved[facts] = tuples.strides
        assert facts_by_entries(tuples._replace(strides=moved)) == facts_by_entries(tuples)


def test_entries_of_images_belong_to_facts_that_a_symmetry_exchanges():
    tuples, maps = tuples_of("tictactoe"), symmetries(load("tictactoe")).facts
    for offset in np.unique(tuples.offsets):
        first, *others = tuples.strides.T[tuples.offsets == offset]
        images = [np.bincount(facts, first, len(first)).astype(np.int32) for facts in maps]
        assert all(any(np.array_equal(own, image) for image in images) for own in others)


def test_walks_stay_where_rules_connect():
    near, tuples = Variables.of(load("breakthrough")).closeness > 0, tuples_of("breakthrough", num=60)
    chosen = all_variables("breakthrough", tuples)
    for own in chosen:
        reached = {own[0]}
        for _ in own:
            reached |= {other for other in own if near[other, list(reached)].any()}
        assert reached == set(own)
    assert len(set(map(tuple, chosen))) == len(chosen), "no two tuples have the same variables"


def test_the_seed_decides():
    tables = [tuples_of("connect3", seed).strides for seed in (0, 0, 1)]
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])


def test_there_are_as_many_tuples_as_wanted():
    for wanted in (1, 30):
        tuples = tuples_of("breakthrough", num=wanted)
        num = sum(len(own) > 1 for own in all_variables("breakthrough", tuples))
        assert wanted <= num < wanted + 8


def test_games_with_many_symmetries_have_more_tuples():
    """Each of the eight images of a tuple is one, and all have the same entries."""
    tuples = tuples_of("tictactoe", num=1, fewest_orbits=5)
    is_long = [len(own) > 1 for own in all_variables("tictactoe", tuples)]
    assert len(np.unique(tuples.offsets[is_long])) == 5
    assert sum(is_long) > 5
