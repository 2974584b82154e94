"""Dead rules: rules of a sheet whose conditions were never fulfilled in the states of some matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..game.reasoner import Reasoner
from ..gdl.clauses import renamed
from ..gdl.limits import Limits
from ..gdl.syntax import Rule, Rulesheet, parse_term

MARK = "rule_that_fires"  # the function of the facts that stand for rules


def dead_rules(
    sheet: Rulesheet,
    states: Sequence[Iterable[str]],
    moves: Sequence[Mapping[str, str]],
    limits: Limits | None = None,
) -> list[Rule]:
    """Return the rules that fire in none of these states, in the order of the sheet.

    The question is put to the reasoner, with other rules for `next`: each rule of the sheet gives the fact (MARK
    number) in the next state. The own `next` of the sheet gets another name, because conditions may read it.

    Args:
        sheet: the rules as written.
        states: the facts of each state, as text.
        moves: the moves made in each state, role -> move; none at the end of a match.
        limits: limits of the reasoner.

    Raises:
        GroundingError: the limits are exceeded.
    """
    rules = [rule for rule in sheet.rules if rule.body]
    as_written = [renamed(rule, {"next": "next as written"}) for rule in sheet.rules]
    marks = [
        replace(rule, head=replace(rule.head, name="next", spelling="next", args=(parse_term(f"({MARK} {number})"),)))
        for number, rule in enumerate(rule for rule in as_written if rule.body)
    ]
    reasoner = Reasoner(Rulesheet((*as_written, *marks), sheet.text, sheet.path), limits)
    term = reasoner.names.ground_term
    facts = [frozenset(term(parse_term(fact)) for fact in state) for state in states]
    joints = [{term(parse_term(role)): term(parse_term(move)) for role, move in joint.items()} for joint in moves]
    fired = {term(parse_term(f"({MARK} {number})")): number for number in range(len(rules))}
    alive = {fired[fact] for marked in reasoner.successors(facts, joints) for fact in marked if fact in fired}
    return [rule for number, rule in enumerate(rules) if number not in alive]
