"""Whether what the chase proves is so: what it refutes never holds, of a group that it proves one fact holds at most.

Both are held against the naive evaluator, in states and after joint moves that random play of the rules reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from agreement import FIT, walk
from evaluators import Plainly, within_limits
from gamelore.gdl.clauses import Clause, Literal, clauses
from gamelore.gdl.syntax import Rule, Rulesheet, bound, parse, parse_term
from gamelore.ground.domains import Domains, Statics, statics
from gamelore.ground.invariants import NOTHING, Chase, Group, unique
from gamelore.ground.program import ground

QUESTIONS = 40  # that the chase is asked about one sheet
MOST_STATES, JOINT_MOVES = 20, 4


def assert_proofs_hold(text: str) -> None:
    """Raises AssertionError for a proof of something false, Unfit for rules that the limits do not allow."""
    sheet = parse(text)
    with within_limits():
        ground(sheet, FIT)
    rules = clauses(sheet)
    known = statics(rules)
    chase = Chase(rules, known, cases=100_000)
    refuted = [body for body in _questions(rules, Random(0)) if chase.refutes(body)]
    proved = unique(rules, known, set(_groups(rules, known)))
    seen = Plainly(_observing(sheet, refuted))
    for state in walk(seen, MOST_STATES, JOINT_MOVES).states:
        for number, body in enumerate(refuted):
            assert f"(refuted {number})" not in state, " ".join(str(literal.condition) for literal in body)
        for group in proved:
            own = [fact for fact in state if group.holds(parse_term(fact))]
            assert len(own) <= 1, f"{group.pattern()}: {own} in {sorted(state)}"


def _questions(rules: Sequence[Clause], random: Random) -> Iterator[tuple[Literal, ...]]:
    """Bodies of clauses, two together, and some of the conditions of a third one, perhaps turned into their opposite.

    Variables of the same name are taken for the same one.
    """
    bodies = [rule.body for rule in rules if rule.body]
    for _ in range(QUESTIONS):
        one, other, third = (random.choice(bodies) for _ in range(3))
        some = (Literal(literal.positive == (random.random() < 0.5), literal.sentence) for literal in third)
        body = (*one, *other[: random.randrange(4)], *list(some)[: random.randrange(3)])
        if Clause(NOTHING, body, NOTHING.location).variables.keys() <= bound(_rule(body)):
            yield body


def _groups(rules: Sequence[Clause], known: Statics) -> Iterator[Group]:
    """All facts of a shape, and those with some constant in one place."""
    (facts,) = Domains(rules, known).of.get(("true", 1), [None])
    for shape, parts in facts.functions.items() if facts else ():
        yield Group(shape)
        for place, part in enumerate(parts):
            yield from (Group(shape, ((place, constant),)) for constant in sorted(part.constants))


def _observing(sheet: Rulesheet, bodies: Sequence[tuple[Literal, ...]]) -> Rulesheet:
    """The sheet, where a fact of the next state says which of these conditions hold."""
    rules = (
        Rule(parse(f"(next (refuted {number}))").rules[0].head, _rule(body).body, NOTHING.location, True)
        for number, body in enumerate(bodies)
    )
    return Rulesheet((*sheet.rules, *rules), sheet.text)


def _rule(body: Sequence[Literal]) -> Rule:
    return Clause(NOTHING, tuple(body), NOTHING.location).rule
