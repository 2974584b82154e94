"""Tapes: machine code, a reader written from their description, and plain gates must agree on any circuit."""

from ctypes import CFUNCTYPE, c_void_p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gamelore
from gamelore import rulesheets
from gamelore.circuit.aig import FALSE, PIECE, TRUE, WIDEST, Builder, Circuit, Loop, evaluate, schedule, wide_gates
from gamelore.circuit.native import TapedCode, compiled
from gamelore.circuit.playout import PlayoutRunner
from gamelore.circuit.tape import (
    COMMIT,
    END,
    GROUPS,
    HEADER,
    PLANE,
    PlaneLayout,
    Tapes,
    outputs_of,
    record,
    record_circuit,
    zero_planes,
)

NUM_FACTS = 6


def empty_circuit(num_facts=NUM_FACTS):
    return Circuit([(number, ()) for number in range(num_facts)], [[]], [[]], [False] * num_facts)


def read_tape(words, planes):
    """A tape, read as its module describes it; planes: uint64[planes, 8]."""
    ones = ~np.zeros(8, np.uint64)
    words, at = words.tolist(), 0
    while words[at] != END:
        shape, inverted, plain, negated, count = words[at : at + HEADER]
        start, at = at, at + HEADER
        changed = False
        for _ in range(count):
            if shape == COMMIT:
                variable, result = words[at] // PLANE, words[at + 1]
                value = planes[result // PLANE] ^ (ones if result % 2 else 0)
                changed |= (planes[variable] != value).any()
                planes[variable] = value
                at += 2
                continue
            operands = [planes[word // PLANE] for word in words[at + 1 : at + 1 + plain + negated]]
            value = np.bitwise_and.reduce([ones, *operands[:plain], *(~plane for plane in operands[plain:])])
            planes[words[at] // PLANE] = ~value if inverted else value
            at += 1 + plain + negated
        if changed:
            at = start - plain


def random_planes(num_planes, seed=0):
    planes = zero_planes(num_planes)
    planes[:] = np.random.default_rng(seed).integers(0, 2**64, planes.shape, np.uint64)
    return planes


def bits(planes):
    """bool[lanes, planes]"""
    return np.unpackbits(planes.view(np.uint8), axis=1).astype(np.bool_).T


def run(code, name, planes):
    CFUNCTYPE(None, c_void_p)(code.address(name))(planes.ctypes.data)


def assert_tape_says_what_gates_say(circuit, literals):
    layout = PlaneLayout(circuit.num_facts, 0, len(literals))
    tape = record(circuit, literals, layout)
    planes = random_planes(tape.num_planes)
    also = planes.copy()
    circuit.outputs = {"these": literals}
    expected = evaluate(circuit, bits(planes[: circuit.num_facts]))["these"]
    run(TapedCode(Tapes({"these": tape.words}, tape.num_planes)), "these", planes)
    read_tape(tape.words, also)
    for got in (planes, also):
        np.testing.assert_array_equal(bits(got[layout.outputs :][: len(literals)]), expected)


@st.composite
def circuits(draw):
    """Random gates, as they come from the builder or raw, and loops in whose sums the variables are not negated."""
    builder = Builder(empty_circuit())
    known = list(range(2, 2 + 2 * NUM_FACTS))

    def literals(number):
        return st.lists(st.sampled_from(known), min_size=1, max_size=number)

    for kind in draw(st.lists(st.sampled_from(["gate", "gate", "gate", "raw", "all", "any", "loop"]), max_size=25)):
        if kind == "loop":
            nodes = [builder.new_node() for _ in range(draw(st.integers(1, 3)))]
            sums = [
                [[*draw(literals(2)), *draw(st.lists(st.sampled_from(nodes), max_size=1).map(doubled))] for _ in "ab"]
                for _ in nodes
            ]
            results = [
                draw(st.sampled_from([FALSE, TRUE, 2 * nodes[0], *4 * [builder.sum_of_products(s)]])) for s in sums
            ]
            builder.circuit.loops.append(Loop(tuple(nodes), tuple(results)))
            new = [2 * node for node in nodes]
        elif kind == "raw":
            new = [2 * builder.new_node(*(draw(st.sampled_from(known)) for _ in "ab"))]
        else:
            chosen = draw(literals(2 if kind == "gate" else 40))
            new = [builder.any_of(chosen) if kind == "any" else builder.all_of(chosen)]
        known += [literal ^ flip for literal in new if literal > TRUE for flip in (0, 1)]
    outputs = draw(st.lists(st.sampled_from([FALSE, TRUE, *known, *4 * known[-9:]]), min_size=1, max_size=20))
    return builder.circuit, outputs


def doubled(nodes):
    return [2 * node for node in nodes]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(circuits())
def test_tapes_and_plain_gates_agree_on_random_circuits_with_loops(drawn):
    assert_tape_says_what_gates_say(*drawn)


def test_any_shape_of_gate_and_any_kind_of_output():
    builder = Builder(empty_circuit(40))
    facts = list(range(2, 82, 2))
    literals = [
        builder.all_of(fact ^ (i < negated) for i, fact in enumerate(facts[:n]))
        for n in range(1, 7)
        for negated in range(n + 1)
    ]
    literals += [literal ^ 1 for literal in literals] + literals[:3] + [FALSE, TRUE, FALSE, facts[0], facts[0] ^ 1]
    assert_tape_says_what_gates_say(builder.circuit, literals)


@pytest.mark.parametrize("width", [WIDEST, WIDEST + 1, 3 * PIECE, 3 * PIECE + 1, 300])
def test_what_is_too_wide_is_cut_into_pieces(width):
    builder = Builder(empty_circuit(width + 1))
    pairs = [builder.disjunction(2 * node, 2 * node + 2) for node in range(1, width + 1)]
    literals = [builder.all_of(pairs)]
    gates = wide_gates(builder.circuit, schedule(builder.circuit, literals), literals)
    assert np.bincount(gates.gates).max() <= WIDEST
    assert_tape_says_what_gates_say(builder.circuit, literals)


def test_places_are_used_again():
    builder = Builder(empty_circuit(2000))
    total = FALSE
    for node in range(1, 1999):
        total = builder.disjunction(
            builder.conjunction(2 * node, 2 * node + 2), builder.conjunction(total, 2 * node + 5)
        )
    layout = PlaneLayout(2000, 0, 1)
    assert record(builder.circuit, [total], layout).num_planes < layout.temporaries + 600
    assert_tape_says_what_gates_say(builder.circuit, [total])


def test_thousands_of_places_become_free():
    """Each pair is read again when all of them are known."""
    builder = Builder(empty_circuit(80))
    facts = range(2, 162, 2)
    pairs = [builder.conjunction(a, b) for a in facts for b in facts if a < b]
    known = builder.any_of(pairs)
    literals = [builder.any_of([builder.conjunction(known, pair) for pair in pairs])]
    layout = PlaneLayout(80, 0, 1)
    assert len(pairs) < record(builder.circuit, literals, layout).num_planes - layout.temporaries < 1.2 * len(pairs)
    assert_tape_says_what_gates_say(builder.circuit, literals)


@pytest.mark.parametrize("name", rulesheets.names())
def test_tapes_and_machine_code_give_the_same_bits_and_the_same_playouts(name):
    circuit = gamelore.load(name, engine="native")._engine.circuit
    tapes, machine_code = TapedCode(record_circuit(circuit)), compiled(circuit)
    for group in GROUPS:
        _, layout = outputs_of(circuit, group)
        results = []
        for code in (tapes, machine_code):
            planes = random_planes(code.num_planes)
            planes[: layout.outputs] = random_planes(layout.outputs, seed=1)
            run(code, group, planes)
            results.append(planes[layout.outputs :][: layout.num_outputs])
        np.testing.assert_array_equal(*results)
    first, second = (
        PlayoutRunner(code.address, circuit, code.num_planes).playouts(600, seed=3, threads=1)
        for code in (tapes, machine_code)
    )
    assert first == second
