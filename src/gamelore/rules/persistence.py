"""Facts that never change: those for which the only rule is that they stay. Reading one is reading the first state.

    (init (wall 3 0 north))   (<= (next (wall ?x ?y ?d)) (true (wall ?x ?y ?d)))

What depends on such facts alone is then known when the rules are ground. It holds in every reachable state; in a state
made up by somebody, with other walls, it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from .clauses import Clause, Literal, Signature
from .gdl import Atom, Function, Term, Variable


def without_persistent_facts(rules: Sequence[Clause], prefix: str) -> list[Clause]:
    """Clauses that read facts that never change from the first state, under a relation whose name has the prefix."""
    shapes = persistent(rules)
    if not shapes:
        return list(rules)
    changed = (rule if _keeps_one_of(rule, shapes) else _reading(rule, shapes, prefix) for rule in rules)
    return [*changed, *_definitions(rules, shapes, prefix)]


def _fact(atom: Atom) -> Term:
    return atom.args[0]


def _shape(fact: Term) -> Signature | None:
    """The name of a fact and the number of its arguments; None for a variable."""
    return None if isinstance(fact, Variable) else (fact.name, len(fact.args) if isinstance(fact, Function) else 0)


def persistent(rules: Sequence[Clause]) -> set[Signature]:
    """The facts that the first state may hold and whose `next` rules only keep them."""
    following = [rule for rule in rules if rule.head.name == "next"]
    changing = {_shape(_fact(rule.head)) for rule in following if not _only_keeps(rule)}
    kept = {_shape(_fact(rule.head)) for rule in following if _keeps_all(rule)}
    initial = {_shape(_fact(rule.head)) for rule in rules if rule.head.name == "init"}
    if None in changing | kept | initial:
        return set()
    return {shape for shape in (kept - changing) & initial if shape is not None}


def _only_keeps(rule: Clause) -> bool:
    """Whether a rule is `(<= (next f) (true f) ..)`: it makes no fact hold that did not."""
    return rule.head.name == "next" and any(
        atom.name == "true" and _fact(atom) == _fact(rule.head) for atom in rule.positive
    )


def _keeps_one_of(rule: Clause, shapes: Set[Signature]) -> bool:
    """Whether a rule says that such facts stay."""
    return rule.head.name == "next" and _shape(_fact(rule.head)) in shapes


def _keeps_all(rule: Clause) -> bool:
    """Whether a rule keeps all facts of a shape: no other condition, every argument a variable of its own."""
    fact = _fact(rule.head)
    arguments = fact.args if isinstance(fact, Function) else ()
    free = {argument.name for argument in arguments if isinstance(argument, Variable)}
    return _only_keeps(rule) and len(rule.body) == 1 and len(free) == len(arguments) and not isinstance(fact, Variable)


def _reading(rule: Clause, persistent: set[Signature], prefix: str) -> Clause:
    body = tuple(
        Literal(literal.positive, _always(literal.sentence, prefix))
        if isinstance(literal.sentence, Atom) and _is_of(literal.sentence, persistent)
        else literal
        for literal in rule.body
    )
    return Clause(rule.head, body, rule.location)


def _is_of(atom: Atom, persistent: set[Signature]) -> bool:
    return atom.name == "true" and _shape(_fact(atom)) in persistent


def _always(atom: Atom, prefix: str) -> Atom:
    fact = _fact(atom)
    assert not isinstance(fact, Variable)
    arguments = fact.args if isinstance(fact, Function) else ()
    return Atom(f"{prefix}{fact.name}", arguments, f"{prefix}{fact.spelling}", atom.location)


def _definitions(rules: Sequence[Clause], persistent: set[Signature], prefix: str) -> Iterator[Clause]:
    """The relations of these facts, defined as the first state is."""
    for rule in rules:
        if rule.head.name == "init" and _shape(_fact(rule.head)) in persistent:
            yield Clause(_always(rule.head, prefix), rule.body, rule.location)
