"""Rulesheets that explode: short texts whose grounding, circuit or play needs far too much time or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, pairwise

BEGIN = """(role x) (init (step 0)) (<= (legal x (go a)) (role x))
(<= (goal x 50) (role x)) (<= terminal (true (step 9)))
"""
EDGES_OF_A_STATE = "(<= (init (f ?a ?b)) (e ?a ?b)) (<= (next (f ?a ?b)) (true (f ?a ?b)))"


def numbers(size: int) -> str:
    return " ".join(f"(n {i})" for i in range(size))


def _edges(size: int, parts: int = 6) -> str:
    """Return facts that join all nodes in different parts, so that at most one node of each part is in a clique."""
    return " ".join(f"(e {i} {j})" for i in range(size) for j in range(size) if i % parts != j % parts)


def variables(number: int) -> list[str]:
    return [f"?v{i}" for i in range(number)]


def _joined(pattern: str, pairs: Iterable[tuple[str, str]]) -> str:
    return " ".join(pattern.format(*pair) for pair in pairs)


def cross_join(size: int) -> str:
    """Return a relation of six independent arguments."""
    names = " ".join(variables(6))
    conditions = " ".join(f"(n {name})" for name in variables(6))
    return f"{numbers(size)} (<= (p {names}) {conditions}) (<= (next (q ?v0)) (p {names}))"


def clique(size: int) -> str:
    """Return a rule whose variables are all joined in pairs. No row of the join exists, but many rows of its parts."""
    return f"{_edges(60)} (<= (next won) (true (step 0)) {_joined('(e {} {})', combinations(variables(size), 2))})"


def clique_of_facts(size: int) -> str:
    """Return the same with facts of a state."""
    conditions = _joined("(true (f {} {}))", combinations(variables(size), 2))
    return f"{_edges(12)} {EDGES_OF_A_STATE} (<= (next won) {conditions})"


def clique_in_play(size: int) -> str:
    """Return the same with facts that may change, so that they are not read from the first state."""
    conditions = _joined("(true (f {} {}))", combinations(variables(size), 2))
    changes = "(<= (init (f ?a ?b)) (e ?a ?b)) (<= (next (f ?a ?b)) (true (f ?a ?b)) (does x (go ?c)))"
    return f"{_edges(60)} {changes} (<= (next won) {conditions})"


def chain(size: int) -> str:
    """Return a rule with a long chain of joins."""
    names = variables(size)
    return f"{_edges(12)} (<= (next (reached ?v0 {names[-1]})) {_joined('(e {} {})', pairwise(names))})"


def chain_of_facts(size: int) -> str:
    """Return the same with facts of a state."""
    return f"{_edges(12)} {EDGES_OF_A_STATE} (<= (next won) {_joined('(true (f {} {}))', pairwise(variables(size)))})"


def chain_in_head(size: int) -> str:
    """Return a chain of joins whose variables are all in the head."""
    names = variables(size)
    way = f"(way {' '.join(names)})"
    return f"{_edges(12)} (<= {way} {_joined('(e {} {})', pairwise(names))}) (<= (next won) {way})"


def pairs_of_edges(size: int) -> str:
    """Return a join of two relations without a common variable, with a single result."""
    return f"{_edges(size)} (<= won (e ?a ?b) (e ?c ?d) (e ?a ?c)) (<= (next won) won)"


def roles(size: int) -> str:
    """Return many roles that all move."""
    return " ".join(f"(role r{i})" for i in range(size)) + "(<= (legal ?r n) (role ?r)) (<= (goal ?r 0) (role ?r))"


def board(size: int) -> str:
    """Return a board on which any blank cell can be marked."""
    return f"""{numbers(size)}
        (<= (init (cell ?x ?y b)) (n ?x) (n ?y))
        (<= (legal x (mark ?x ?y)) (true (cell ?x ?y b)))
        (<= (next (cell ?x ?y x)) (does x (mark ?x ?y)))
        (<= (next (cell ?x ?y ?v)) (true (cell ?x ?y ?v)) (does x (mark ?a ?b)) (distinct ?x ?a))
        (<= (next (cell ?x ?y ?v)) (true (cell ?x ?y ?v)) (does x (mark ?a ?b)) (distinct ?y ?b))"""


def successors(size: int) -> str:
    """Return a fact that grows in each step."""
    return f"{numbers(size)} (init (c z)) (<= (next (c (s ?x))) (true (c ?x)))"


def pairs_in_play(size: int) -> str:
    """Return facts whose number squares in each step."""
    return f"{numbers(size)} (init (c a)) (init (c b)) (<= (next (c (f ?x ?y))) (true (c ?x)) (true (c ?y)))"


def lists(size: int) -> str:
    """Return walks over a graph that keep the list of visited nodes."""
    return f"""{_edges(size)}
        (<= (walk ?a ?b (cons ?a (cons ?b nil))) (e ?a ?b))
        (<= (walk ?a ?c (cons ?c ?way)) (walk ?a ?b ?way) (e ?b ?c) (not (member ?c ?way)))
        (<= (member ?a (cons ?a ?way)) (walk ?b ?c (cons ?a ?way)))
        (<= (member ?a (cons ?b ?way)) (walk ?c ?d (cons ?b ?way)) (member ?a ?way))
        (<= (next (far ?a ?b)) (walk ?a ?b ?way))"""


def orders(size: int) -> str:
    """Return a relation with all ordered choices of numbers, as lists."""
    return f"""{numbers(size)} (<= (order nil 0))
        (<= (order (cons ?x ?rest) (s ?length)) (order ?rest ?length) (n ?x) (not (in ?x ?rest)))
        (<= (in ?x (cons ?x ?rest)) (order (cons ?x ?rest) ?length))
        (<= (in ?x (cons ?y ?rest)) (order (cons ?y ?rest) ?length) (in ?x ?rest))
        (<= (next (best ?order)) (order ?order ?length) (true (step ?k)))"""


def joined_lists(size: int) -> str:
    """Return a relation that joins any two lists of some numbers."""
    return f"""{numbers(size)} (list nil) (<= (list (cons ?x ?rest)) (list ?rest) (n ?x))
        (<= (append nil ?list ?list) (list ?list))
        (<= (append (cons ?x ?rest) ?list (cons ?x ?end)) (append ?rest ?list ?end) (n ?x))
        (<= (legal x (join ?a ?b)) (append ?a ?b ?c))"""


def closure(size: int) -> str:
    """Return the transitive closure of a relation of the state."""
    return f"""{numbers(size)} (<= (e ?a ?b) (n ?a) (n ?b)) {EDGES_OF_A_STATE}
        (<= (joined ?a ?b) (true (f ?a ?b)))
        (<= (joined ?a ?c) (joined ?a ?b) (true (f ?b ?c)))
        (<= (next (seen ?a ?b)) (joined ?a ?b))"""


def counter(size: int) -> str:
    """Return a fact with a binary number, which may change to any other number."""
    value = f"(value {' '.join(variables(size))})"
    conditions = " ".join(f"(bit {name})" for name in variables(size))
    start = f"(bit z) (bit o) (init (value{' z' * size}))"
    return f"{start} (<= (next {value}) {conditions} (not (true {value})))"


def rules(size: int) -> str:
    """Return many rules with three conditions on facts."""
    texts = (
        f"(<= (next (p{i} ?x)) (true (p{(i + 1) % size} ?x)) (not (true (p{(i + 2) % size} ?x))) (n ?x))"
        for i in range(size)
    )
    return f"{numbers(3)} (init (p0 1)) {' '.join(texts)}"


def branches(size: int) -> str:
    """Return a rule with many alternatives of two conditions each."""
    return "(<= (next won) " + " ".join(f"(or (true (a{i})) (true (b{i})))" for i in range(size)) + ")"


def goals(size: int) -> str:
    """Return a goal that needs several different facts."""
    facts = " ".join(f"(true (f {name} {name}))" for name in variables(size))
    different = _joined("(distinct {} {})", combinations(variables(size), 2))
    return f"{numbers(10)} (<= (e ?a ?a) (n ?a)) {EDGES_OF_A_STATE} (<= (goal x 100) {facts} {different})"


def moves(size: int) -> str:
    """Return moves with many independent arguments."""
    conditions = " ".join(f"(n {name})" for name in variables(size))
    return f"{numbers(10)} (<= (legal x (pick {' '.join(variables(size))})) {conditions})"


def deep_terms(size: int) -> str:
    """Return terms whose number squares with each level."""
    levels = " ".join(f"(<= (l{i + 1} (g ?x ?y)) (l{i} ?x) (l{i} ?y))" for i in range(size))
    return f"(l0 a) (l0 b) {levels} (<= (next won) (l{size} ?x))"


def wide_growth(size: int) -> str:
    """Return a function of many arguments that are all the same growing term."""
    return f"(init (p a)) (<= (next (p (f{' ?x' * size}))) (true (p ?x)))"


def doubling_terms(size: int) -> str:
    """Return equalities of each variable with a term in which the one before occurs twice."""
    equal = " ".join(f"(q ?v{i + 1}) (not (distinct ?v{i + 1} (f ?v{i} ?v{i})))" for i in range(size))
    return f"(q a) (<= (next (won ?v0)) (true (step ?v0)) {equal})"


def doubling_facts(size: int) -> str:
    """Return the same in the other direction, with facts of a state."""
    equal = " ".join(f"(not (distinct ?v{i} (f ?v{i + 1} ?v{i + 1}))) (true (q ?v{i + 1}))" for i in range(size))
    return f"(init (q a)) (<= (next (q ?v0)) (true (q ?v0)) {equal})"


def comparisons(size: int) -> str:
    """Return a rule with many comparisons that hold."""
    return f"(<= (next won) (true (step 0)){' (distinct a b)' * size})"


def equal_variables(size: int) -> str:
    """Return a rule with many variables that equal a constant."""
    equal = " ".join(f"(n {name}) (not (distinct {name} 1))" for name in variables(size))
    return f"{numbers(2)} (<= (next won) (true (step 0)) {equal})"


def different_variables(size: int) -> str:
    """Return more variables than values, all of which must differ."""
    different = _joined("(distinct {} {})", combinations(variables(size), 2))
    return f"{numbers(3)} (<= (next won) {' '.join(f'(n {name})' for name in variables(size))} {different})"


def branches_beside_conditions(size: int) -> str:
    """Return a rule of 4,096 conjunctions that all have many conditions."""
    branches = " ".join(f"(or (true (a {i})) (true (b {i})))" for i in range(12))
    return f"(<= (next won) {branches} {' '.join(f'(true (c {i}))' for i in range(size))})"


def conditions(size: int) -> str:
    """Return one rule with many conditions."""
    return f"(<= (next won) {' '.join(f'(true (c {i}))' for i in range(size))})"


def star(size: int) -> str:
    """Return a rule with many variables that are all joined with the same one."""
    return f"{_edges(30)} (<= (next won) (true (step 0)) {' '.join(f'(e ?c {name})' for name in variables(size))})"


def star_in_head(size: int) -> str:
    """Return the same with facts that may change, and all variables in the head: more atoms than a float can count."""
    changes = "(<= (init (f ?a ?b)) (e ?a ?b)) (<= (next (f ?a ?b)) (true (f ?a ?b)) (does x (go ?c)))"
    joined = " ".join(f"(true (f ?c {name}))" for name in variables(size))
    return f"{_edges(30)} {changes} (<= (next (all {' '.join(variables(size))})) {joined})"


def row_of_relations(size: int) -> str:
    """Return relations each of which reads the one before, and the last of which reads a fact."""
    row = " ".join(f"(<= (r{i} ?x) (r{i + 1} ?x))" for i in range(size))
    return f"{row} (r{size} b) (<= (next (won ?x)) (r0 ?x))"


def row_in_play(size: int) -> str:
    """Return relations of a state each of which reads the one after it in the text."""
    row = " ".join(f"(<= (r{i + 1} ?x ?y) (r{i} ?x ?z) (true (f ?z ?y)))" for i in reversed(range(size)))
    end = f"(<= (next (f ?x ?y)) (r{size} ?x ?y))"
    return f"{numbers(60)} (<= (init (f ?x ?y)) (n ?x) (n ?y)) {end} {row} (<= (r0 ?x ?y) (true (f ?x ?y)))"


def row_of_negations(size: int) -> str:
    """Return relations each of which is the negation of the next one."""
    row = " ".join(f"(<= r{i} (not r{i + 1}))" for i in range(size))
    return f"{row} (<= r{size} (true (step 0))) (<= (next won) r0)"


def readers_of_moves(size: int) -> str:
    """Return a row of relations that ends in a move, and what must not depend on it, though it reads the row."""
    row = " ".join(f"(<= (r{i} ?x) (r{i + 1} ?x))" for i in range(size))
    readers = " ".join(f"(<= terminal (r{i} a)) (<= (init (w ?x)) (r{i} ?x))" for i in range(60))
    return f"{row} (<= (r{size} ?x) (does x (go ?x))) {readers}"


def wide_atoms(size: int) -> str:
    """Return a fact with many arguments, all of which may change."""
    names = " ".join(variables(size))
    return f"(init (p{' a' * size})) (<= (next (p {names})) (true (p {names})))"


def arities(size: int) -> str:
    """Return a name with many numbers of arguments."""
    return " ".join(f"(p{' a' * (i + 1)})" for i in range(size))


def comments(size: int) -> str:
    """Return comments with a parenthesis that is never closed."""
    return "; (\n" * size + "(z a) (<= (next (q ?x)) (z ?x))"


def one_line(size: int) -> str:
    """Return many mistakes in a single line."""
    return "(<= (p ?X) (q ?x))" * size


def numbers_in_goals(size: int) -> str:
    """Return moves and facts that are declared, and as many numbers as may be goals."""
    declared = "(base (step 0)) (input x (go a)) (<= (base (c ?x)) (n ?x))"
    return f"{numbers(size)} {declared} (init (c 1)) (<= (next (c ?x)) (n ?x)) (<= (goal x ?x) (n ?x) (true (c ?x)))"


EXPLOSIONS: dict[str, tuple[Callable[[int], str], int]] = {
    "cross join": (cross_join, 40),
    "clique": (clique, 24),
    "clique of facts": (clique_of_facts, 24),
    "clique in play": (clique_in_play, 7),
    "chain": (chain, 1000),
    "chain of facts": (chain_of_facts, 1000),
    "chain in a head": (chain_in_head, 60),
    "pairs of edges": (pairs_of_edges, 250),
    "roles": (roles, 20_000),
    "board": (board, 300),
    "successors": (successors, 1),
    "pairs in play": (pairs_in_play, 1),
    "lists": (lists, 12),
    "orders": (orders, 12),
    "joined lists": (joined_lists, 3),
    "closure": (closure, 200),
    "counter": (counter, 40),
    "rules": (rules, 100_000),
    "branches": (branches, 60),
    "goals": (goals, 9),
    "moves": (moves, 9),
    "deep terms": (deep_terms, 8),
    "wide growth": (wide_growth, 20),
    "doubling terms": (doubling_terms, 40),
    "doubling facts": (doubling_facts, 30),
    "comparisons": (comparisons, 3000),
    "equal variables": (equal_variables, 1500),
    "different variables": (different_variables, 60),
    "branches beside conditions": (branches_beside_conditions, 5000),
    "conditions": (conditions, 2000),
    "long rule": (conditions, 200_000),
    "star": (star, 8000),
    "star in a head": (star_in_head, 300),
    "row of relations": (row_of_relations, 5000),
    "row in play": (row_in_play, 3000),
    "row of negations": (row_of_negations, 3000),
    "readers of moves": (readers_of_moves, 20_000),
    "wide atoms": (wide_atoms, 30_000),
    "arities": (arities, 1500),
    "comments": (comments, 40_000),
    "one line": (one_line, 30_000),
    "numbers in goals": (numbers_in_goals, 32_768),
}
"""Name -> function that makes the rules, and the size at which they explode."""


def explosion(name: str) -> str:
    """Return the rulesheet of an explosion in its full size."""
    make, size = EXPLOSIONS[name]
    return BEGIN + make(size)
