"""What relations of clauses depend on, and by way of which negations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .clauses import Clause, Signature, all_atoms, signature
from .gdl import Atom

Edges = Mapping[Signature, Iterable[Signature]]


def reachable(edges: Edges, roots: Iterable[Signature]) -> set[Signature]:
    """Everything that the edges lead to from the roots, themselves included."""
    found: set[Signature] = set()
    stack = list(roots)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += edges.get(name, ())
    return found


class Dependencies:
    """`uses`: relation -> those in the bodies of its clauses; `negates`: those that stand there negated."""

    def __init__(self, rules: Sequence[Clause]) -> None:
        self.uses: dict[Signature, set[Signature]] = {}
        self.negates: dict[Signature, set[Signature]] = {}
        for rule in rules:
            head = signature(rule.head)
            self.uses.setdefault(head, set()).update(map(signature, all_atoms(rule.body)))
            negated = (lit.sentence for lit in rule.body if not lit.positive and isinstance(lit.sentence, Atom))
            self.negates.setdefault(head, set()).update(map(signature, negated))

    def below(self, *roots: Signature) -> set[Signature]:
        """Everything that these relations depend on, themselves included."""
        return reachable(self.uses, roots)

    def recursive(self) -> set[Signature]:
        """The relations that depend on themselves."""
        return {name for name, uses in self.uses.items() if name in self.below(*uses)}

    def negated_below(self, root: Signature) -> set[Signature]:
        """Everything that a relation depends on by way of at least one negation."""
        return self.below(*(negated for name in self.below(root) for negated in self.negates.get(name, ())))

    def negative_cycles(self) -> set[Signature]:
        """The relations that lie, with the negation of one of them, on a cycle."""
        found: set[Signature] = set()
        for head, negated in self.negates.items():
            for name in negated - found:
                below = self.below(name)
                if head in below:
                    found |= {other for other in below if name in self.below(other)}
        return found
