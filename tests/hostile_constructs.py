"""Kinds of hostile sheets by the construct of GDL that they use in thousands: deep, wide, repeated or in cycles.

Each kind is a function of a size and of a random generator, which draws the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice, pairwise
from random import Random

from explosions import numbers, variables

DEEPEST = 190  # parentheses in parentheses that a sheet may have
MOST_CONJUNCTIONS = 4096  # of one rule, after its `or`s are multiplied out
SHAPES = ("{}", "(true {})")  # of a condition: static, and of a state


def _facts(shape: str, facts: Iterable[str]) -> str:
    """Return facts for conditions of this shape. Those of a state stay, and may change with a move."""
    if shape == "{}":
        return " ".join(facts)
    given = list(dict.fromkeys(facts))
    name = given[0].strip("()").partition(" ")[0]
    arguments = " ".join(variables(given[0].count(" ")))
    return " ".join(f"(init {fact})" for fact in given) + (
        f"(<= (next ({name} {arguments})) (true ({name} {arguments})) (does x (go ?any)))"
    )


def _nested(opening: str, inside: str, depth: int) -> str:
    return opening * depth + inside + ")" * ((opening.count("(") - opening.count(")")) * depth)


def _mixed(parts: Sequence[str], random: Random, between: str = " ") -> str:
    """Join parts in their order, in the other one, or in none."""
    order = random.choice(("as they are", "as they are", "reversed", "shuffled"))
    mixed = list(reversed(parts) if order == "reversed" else parts)
    if order == "shuffled":
        random.shuffle(mixed)
    return between.join(mixed)


def _branches(branches: Iterable[str]) -> str:
    return f"(or {' '.join(branches)})"


# ---- terms and comparisons ------------------------------------------------------------------------------------------


def _wide_growth(size: int, random: Random) -> str:
    """Return a recursion into a function of many arguments, of one variable or of several."""
    names = variables(random.choice((1, 1, 2, size)))
    grown = " ".join([*names, *(random.choice(names) for _ in range(size - len(names)))])
    grown = f"(f {grown})" if random.random() < 0.7 else f"(f {grown} (f {grown}))"
    condition, head, begin = random.choice(
        (("(true (p {}))", "(next (p {}))", "(init (p a))"), ("(p {})", "(p {})", "(p a)"))
    )
    seen = "" if "true" in condition else "(<= (next (w ?x)) (p ?x))"
    return f"{begin} (<= {head.format(grown)} {' '.join(condition.format(name) for name in names)}) {seen}"


def _equalities(size: int, random: Random) -> str:
    """Return a rule in which each variable equals a term of the next one, once or twice in it."""
    shape, term = random.choice(SHAPES), random.choice(("(f {0} {0})", "(f {0} {0})", "(f {0})", "(f {0} {1})", "{0}"))
    equal = random.choice(("(not (distinct {} {}))", "(not (distinct {} {}))", "(distinct {} {})"))
    names = variables(size + 1)
    parts = []
    for name, other in random.choice((pairwise(names), pairwise(reversed(names)))):
        wanted = term.format(name, random.choice(names))
        parts += [shape.format(f"(q {other})"), equal.format(*random.sample((other, wanted), 2))]
    head = random.choice((f"(next (q {random.choice(names)}))", "(next won)"))
    return f"{_facts(shape, ['(q a)', '(q (f a a))'])} (<= {head} (true (step {names[0]})) {_mixed(parts, random)})"


def _comparisons(size: int, random: Random) -> str:
    """Return a rule with many comparisons: of all pairs of variables, with constants, or without variables."""
    shape, values = random.choice(SHAPES), random.choice((1, 2, 3, 10))
    names = variables(max(2, min(size, round((2 * size) ** 0.5))))
    pairs = random.choice(
        (
            list(combinations(names, 2)),
            list(pairwise(names)),
            [("a", "b")] * size,
            [("a", "a")] * size,
            [(random.choice(names), random.choice("123")) for _ in range(size)],
            [(f"(f {random.choice(names)})", f"(f {random.choice(names)})") for _ in range(size)],
            [(random.choice(names), f"(f {random.choice(names)})") for _ in range(size)],
        )
    )
    text = random.choice(
        ("(distinct {} {})", "(distinct {} {})", "(not (distinct {} {}))", "(not (not (distinct {} {})))")
    )
    conditions = [shape.format(f"(m {name})") for name in names]
    cycle = random.choice(("", "", "(<= aa (true (step 0)) (not bb)) (<= bb (true (step 1)) (not aa))"))
    body = _mixed([*conditions, *(text.format(*pair) for pair in pairs)], random)
    return f"{_facts(shape, (f'(m {i})' for i in range(values)))} (<= (next won) {body}) {cycle}"


def _unifications(size: int, random: Random) -> str:
    """Return a relation of many arguments that is called with terms that share variables in pairs."""
    size = max(2, size)
    head = " ".join(variables(size))
    body = " ".join(f"({random.choice('ee')} {name})" for name in variables(size))
    called = [random.choice((f"(f ?w{i} ?w{i})", f"(f ?w{i} ?w{i + 1})", f"?w{i}")) for i in range(size)]
    other = [random.choice((f"(f ?w{i + 1} ?w{i + 1})", f"?w{i}", "a")) for i in range(size)]
    return f"""(e a) (e (f a a)) (<= (d {head}) {body}) (<= (next won) (d {" ".join(called)}))
        (<= (next lost) (true won) (d {" ".join(other)}))"""


def _deep_equality(size: int, random: Random) -> str:
    """Return a recursion through comparisons with deep terms."""
    depth = random.randint(1, min(size, DEEPEST - 5))
    deep = _nested("(f ", "{}", depth)
    compared = random.choice(("(not (distinct ?x {}))", "(distinct ?x {})", "(true (c {}))")).format(deep.format("?y"))
    return f"""(init (c a)) (init (c {deep.format("a")}))
        {
        " ".join(
            f"(<= (next (c {random.choice(('?x', deep.format('?y')))})) (true (c ?x)) (true (c ?y)) {compared})"
            for _ in range(max(1, size // DEEPEST))
        )
    }"""


# ---- rules ----------------------------------------------------------------------------------------------------------


def _alternatives(size: int, random: Random) -> str:
    """Return a rule with `or`s of up to 4,096 conjunctions, in a row or in each other, beside many conditions."""
    width = random.choice((2, 2, 4, 16, 64))
    count = random.randint(1, {2: 12, 4: 6, 16: 3, 64: 2}[width])
    names = variables(random.choice((0, 1, 10)))

    def condition(relation: str, number: int) -> str:
        return f"(true ({relation} {random.choice([str(number), *names])}))"

    ors = [_branches(condition(f"a{branch}", i) for branch in range(width)) for i in range(count)]
    kind = random.choice(("row", "row", "not", "deep", "deep not", "branch"))
    if kind == "not":
        ors = [f"(not {part})" for part in ors]
    if kind == "branch":
        ors = (
            [_branches((" ".join(("(and", *ors, ")")), condition("z", 0)))] if width**count < MOST_CONJUNCTIONS else ors
        )
    if kind in ("deep", "deep not"):
        opening = "(or {} " if kind == "deep" else "(not (or {} "
        ors = [_nested(opening.format(condition("z", 0)), condition("y", 1), random.randint(1, min(size, 60)))]
    bound = [f"(true (b {name}))" for name in names]
    body = _mixed([*bound, *ors, *(condition("c", i) for i in range(size))], random)
    return f"(init (b 1)) (<= (next (b ?x)) (true (b ?x))) (<= (next won) {body})"


def _long_rule(size: int, random: Random) -> str:
    """Return one rule with many conditions: static, of a state, negated, of moves or all of these, perhaps the same."""
    plain = ("(true (c {}))", "(k {})", "(not (true (c {})))", "(not (k {}))")
    kinds = random.choice(
        (
            *([condition] for condition in (*plain, "(does x (go {}))", "(k 0)")),
            [*plain, "(not (true (d {})))", "(distinct {} a)", "(or (k {}) (true (c 0)))"],
        )
    )
    body = " ".join(random.choice(kinds).format(i) for i in range(size))
    head = random.choice(
        ("(next won)", "(next won)", "won", "(legal x (go b))", "terminal", "(goal x 7)", "(base won)")
    )
    if head == "(base won)" or (head != "(next won)" and "does" in body):
        head = "(next won)"
    facts = " ".join(f"(k {i})" for i in range(min(size, random.choice((0, 10, size)))))
    return f"{facts} (<= {head} {body}) (<= (next (c ?x)) (true (c ?x)))"


def _many_variables(size: int, random: Random) -> str:
    """Return one rule with many variables: a star, a path, or alone, and perhaps all of them in the head."""
    shape, names = random.choice(SHAPES), variables(max(2, size))
    nodes = random.choice((2, 5, 30))
    body = random.choice(
        (
            [f"(e ?c {name})" for name in names],
            [f"(e {name} {other})" for name, other in pairwise(names)],
            [f"(e {name} {name})" for name in names],
            [f"(e {random.choice(names)} {name})" for name in names],
        )
    )
    head = random.choice(
        ("(next won)", "(next won)", f"(next (all {' '.join(names)}))", f"(next (e {names[0]} {names[-1]}))")
    )
    facts = [f"(e {i} {j})" for i in range(nodes) for j in range(nodes) if i == j or random.random() < 0.7]
    return f"{_facts(shape, facts)} (<= {head} {_mixed([shape.format(part) for part in body], random)})"


def _wide_atoms(size: int, random: Random) -> str:
    """Return atoms and terms with many arguments, as facts, conditions, moves, and heads."""
    names = variables(max(1, min(size, random.choice((1, 2, size)))))
    row = " ".join(names[i % len(names)] for i in range(size))
    facts = random.choice(("a " * size, " ".join(map(str, range(size)))))
    bound = " ".join(f"(true (v {name}))" for name in names)
    return random.choice(
        (
            f"(init (p {facts})) (<= (next (p {row})) (true (p {row})))",
            f"(init (p (f {facts}))) (<= (next (p (f {row}))) (true (p (f {row}))))",
            f"(p {facts}) (<= (next (w {names[-1]})) (p {row}))",
            f"(init (v 1)) (<= (next (v ?x)) (true (v ?x))) (<= (legal x (go {row})) {bound})",
            f"(init (v 1)) (<= (next (p {row})) {bound} (not (true (p {row})))) (<= (next (v ?x)) (true (v ?x)))",
            f"(<= (next (p {row})) (does x (go {row})))",
            f"(p {facts}) (p {facts} b) (<= (p {row}) (p {row} ?last))",
        )
    )


def _repeated(size: int, random: Random) -> str:
    """Return one fact, rule or condition again and again."""
    part = random.choice(
        (
            "(e a b)",
            "(init (c 1))",
            "(role x)",
            "(<= (next (c ?x)) (true (c ?x)))",
            "(<= terminal (true (c 5)))",
            "(<= (goal x 50) (true (c ?x)))",
            "(<= (legal x (go ?x)) (true (c ?x)))",
            "(<= (p ?x) (p ?x)) (<= (next (c ?x)) (p ?x))",
            "(<= (p ?x) (true (c ?x)) (not (q ?x))) (<= (q ?x) (true (c ?x)) (not (p ?x)))",
            "(base (c 1))",
            "(input x (go a))",
        )
    )
    return f"(init (c 1)) {part * size}"


# ---- relations ------------------------------------------------------------------------------------------------------


def _row_of_relations(size: int, random: Random) -> str:
    """Return relations each of which reads the next one, once or twice, in both orders of text."""
    rule = random.choice(
        (
            "(<= (r{0} ?x) (r{1} ?x))",
            "(<= (r{0} ?x) (not (r{1} ?x)) (k ?x))",
            "(<= (r{0} ?x) (r{1} ?x) (k ?x))",
            "(<= (r{0} ?x) (r{1} ?x) (true (c ?x)))",
            "(<= (r{0} ?x) (r{1} ?y) (true (d ?y ?x)))",
            "(<= (r{0} ?x) (r{1} ?y) (r{1} ?x) (distinct ?x ?y))",
            "(<= (r{0} ?x) (r{1} ?x)) (<= (r{0} ?x) (r{2} ?x))",
            "(<= (r{0} ?x) (or (r{1} ?x) (not (r{2} ?x))) (k ?x))",
        )
    )
    end = random.choice(
        ("(<= (r{0} ?x) (k ?x))", "(<= (r{0} ?x) (true (c ?x)))", "(<= (r{0} ?x) (does x (go ?x)))")
    ) + (" (<= (r{1} ?x) (k ?x))")
    readers = ["(<= (next (c ?x)) (r0 ?x))"]
    if "does" not in end:
        readers += ["(<= terminal (r0 b))", "(<= (goal x 1) (r0 b))", "(<= (legal x (go ?x)) (r0 ?x))"]
        readers += ["(<= (base (c ?x)) (r0 ?x))"] if "true" not in rule + end else []
    rules = [rule.format(i, i + 1, min(i + 2, size)) for i in range(size)]
    facts = "(k a) (k b) (init (c a)) (init (c b)) (init (d a b)) (<= (next (d ?x ?y)) (true (d ?x ?y)))"
    return f"{facts} {_mixed([*rules, end.format(size, size + 1), random.choice(readers)], random)}"


def _unfolding(size: int, random: Random) -> str:
    """Return definitions each of which uses the next one twice: written out, they double with each."""
    rule = random.choice(
        (
            "(<= (d{0} ?x ?y) (d{1} ?x ?z) (d{1} ?z ?y))",
            "(<= (d{0} ?x ?y) (d{1} ?x ?y)) (<= (d{0} ?x ?y) (d{1} ?y ?x))",
            "(<= (d{0} ?x ?y) (d{1} ?x ?y) (not (d{1} ?y ?x)))",
            "(<= (d{0} (f ?x ?y) ?x) (d{1} ?x ?y))",
            "(<= (d{0} ?x ?y) (or (d{1} ?x ?y) (d{1} ?y ?x)))",
        )
    )
    shape = random.choice(SHAPES)
    nodes = random.choice((2, 10, 60))
    facts = _facts(shape, (f"(e {i} {(i * 7 + 1) % nodes})" for i in range(nodes)))
    rules = [rule.format(i, i + 1) for i in range(size)] + [f"(<= (d{size} ?x ?y) {shape.format('(e ?x ?y)')})"]
    return f"{facts} {_mixed(rules, random)} (<= (next (seen ?x ?y)) (d0 ?x ?y))"


def _forbidden(size: int, random: Random) -> str:
    """Return many readers, which must not depend on a move or a state, of relations that do."""
    reader = random.choice(
        (
            *("(<= terminal (r{0} a))", "(<= (legal x (go b)) (r{0} a))", "(<= (goal x {0}) (r{0} a))"),
            *("(<= (init (w ?x)) (r{0} ?x))", "(<= (base (w ?x)) (r{0} ?x))", "(<= (role ?x) (r{0} ?x))"),
            "(<= terminal (r{0} a)) (<= (init (w ?x)) (r{0} ?x)) (<= (base (w ?x)) (r{0} ?x))",
        )
    )
    last = random.choice(
        ("(does x (go ?x))", "(true (c ?x))", "(next (c ?x))", "(legal x ?x)", "(init (c ?x))", "(goal x ?x)")
    )
    length = random.choice((1, 10, size))
    rules = [f"(<= (r{i} ?x) (r{i + 1} ?x))" for i in range(length)] + [f"(<= (r{length} ?x) {last})"]
    return _mixed([*rules, *(reader.format(i % (length + 1)) for i in range(random.choice((1, 60, size))))], random)


def _negative_cycles(size: int, random: Random) -> str:
    """Return cycles through negation: odd or even, of ground atoms or with variables, one long or many short ones."""
    length = random.choice((1, 2, 3, 7, size))
    arguments, bound = random.choice(
        (("", ""), ("", "(true (step 0))"), (" ?x", "(true (step ?x))"), (" ?x", "(k ?x)"))
    )
    rules = []
    for begin in range(0, size, length):
        for i in range(begin, begin + length):
            following = begin + (i + 1 - begin) % length
            denied = random.random() < 0.8
            condition = f"(n{following}{arguments})"
            rules.append(f"(<= (n{i}{arguments}) {bound} {f'(not {condition})' if denied else condition})")
    reader = "(<= (next (step 7)) (n0 0))" if arguments else "(<= (next (step 7)) n0)"
    return f"(k 0) (k 1) {_mixed(rules, random)} {reader}"


def _pigeons(size: int, random: Random) -> str:
    """Return the choice of a hole for each pigeon, through negation, with a contradiction if it cannot be made."""
    holes = max(1, size)
    pigeons = holes + random.choice((0, 1))
    return f"""{" ".join(f"(pigeon {i})" for i in range(pigeons))} {" ".join(f"(hole {i})" for i in range(holes))}
        (<= (in ?p ?h) (true (step 0)) (pigeon ?p) (hole ?h) (not (out ?p ?h)))
        (<= (out ?p ?h) (true (step 0)) (pigeon ?p) (hole ?h) (not (in ?p ?h)))
        (<= (some ?p) (in ?p ?h)) (<= bad (true (step 0)) (pigeon ?p) (not (some ?p)) (not bad))
        (<= bad (in ?p ?h) (in ?q ?h) (distinct ?p ?q) (not bad)) (<= (next won) bad)"""


def _arities(size: int, random: Random) -> str:
    """Return one name with many numbers of arguments, as a relation or a function, in rules that read each other."""
    form = random.choice(
        (
            *("(p {})", "(init (p {}))", "(init (q (p {})))", "(legal x (p {}))", "(base (p {})) (input x (p {}))"),
            *("(<= (next (p {})) (true (p {} a)))", "(<= (p {}) (p {} b))", "(<= (next (p {})) (does x (p {})))"),
        )
    )
    return "(init p) p " + " ".join(form.replace("{}", " ".join(["a"] * i)) for i in range(1, size + 1))


# ---- what the keywords mean -----------------------------------------------------------------------------------------


def _goal_values(size: int, random: Random) -> str:
    """Return goals of many values, which are facts or follow from facts, from the state or from moves."""
    values = range(random.choice((0, 32_760, -size)), 10**9)
    facts = " ".join(f"(n {i})" for i in islice(values, size))
    kind = random.choice(
        (
            "(<= (goal x ?n) (n ?n))",
            "(<= (goal x ?n) (true (c ?n))) (<= (base (c ?n)) (n ?n)) (init (c 1)) (input x (go a))",
            "(<= (goal ?r ?n) (role ?r) (n ?n) (true (c ?n)))",
            "(<= (goal x ?n) (n ?n) (not (true (c ?n))))",
            "(<= (goal ?n ?n) (n ?n))",
            "(<= (goal x (f ?n)) (n ?n))",
            "(<= (goal x ?n) (legal x (go ?n))) (<= (legal x (go ?n)) (n ?n))",
        )
    )
    return f"{facts} {kind} (<= (next (c ?n)) (n ?n)) (base (step 0))"


def _bounds(size: int, random: Random) -> str:
    """Return `base` and `input` declared in odd ways: without an end, too few, too many, in cycles, of nobody."""
    given = [f"(n {i})" for i in range(random.choice((2, 100, size)))]
    kinds = [
        "(base (f a)) (<= (base (f (s ?x))) (more ?x)) (more a) (<= (more (s ?x)) (more ?x))",
        "(base (f 0)) (<= (base (f ?x)) (base (f ?x)))",
        "(<= (base (f ?x ?y)) (n ?x) (n ?y)) (<= (init (f ?x ?x)) (n ?x)) (<= (next (f ?x ?y)) (true (f ?y ?x)))",
        "(<= (base (f ?x ?y ?z)) (n ?x) (n ?y) (n ?z)) (init (f 1 1 1)) (<= (next (f ?x ?y ?z)) (true (f ?y ?z ?x)))",
        "(<= (base ?x) (n ?x))",
        "(<= (base (f ?x)) (n ?x)) (<= (next (g ?x)) (n ?x))",
        "(<= (input ?r (go ?x ?y)) (role ?r) (n ?x) (n ?y)) (<= (legal x (go ?x ?y)) (n ?x) (true (step ?y)))",
        "(<= (input ?x ?y) (n ?x) (n ?y))",
        "(<= (input ?r ?m) (legal ?r ?m)) (<= (base ?f) (true ?f))",
        "(<= (input ?r ?m) (does ?r ?m)) (<= (base ?f) (next ?f))",
        "(<= (base (step ?x)) (n ?x)) (<= (next (step ?x)) (true (step ?y)) (n ?x) (not (base (step ?x))))",
        "(base (step 0)) (input x (go a))",
        "(base step) (input x x)",
    ]
    return f"{' '.join(given)} {' '.join(random.sample(kinds, random.randint(1, 4)))}"


def _strangers(size: int, random: Random) -> str:
    """Return moves and goals of unknown roles, roles by rules, and keywords with variables in odd places."""
    kinds = (
        "(<= (legal ?n (go ?n)) (n ?n))",
        "(<= (legal ?r (go ?n)) (n ?r) (n ?n))",
        "(<= (goal ?n 50) (n ?n))",
        "(<= (role ?n) (n ?n)) (<= (legal ?n wait) (role ?n)) (<= (goal ?n 0) (role ?n))",
        "(<= (role (f ?n)) (n ?n)) (<= (legal ?n wait) (role ?n))",
        "(<= (next (h ?r ?m)) (does ?r ?m))",
        "(<= (next (h ?m)) (does ?n ?m) (n ?n))",
        "(<= (next ?f) (true ?f)) (<= (next ?m) (does ?r ?m))",
        "(<= (next (know (true ?f))) (true ?f))",
        "(<= (init (legal ?n)) (n ?n)) (<= (legal x ?m) (true (legal ?m)))",
        "(<= (legal x ?m) (n ?m) (not (true (seen ?m)))) (<= (next (seen ?m)) (does ?r ?m))",
        "(<= (legal ?r (offer ?m)) (legal ?r ?m) (distinct ?m noop))",
        "(<= terminal (not (legal x ?m)) (n ?m)) (<= terminal (n ?n) (legal ?n ?n))",
        "(<= (goal ?r ?g) (goal ?s ?g) (role ?r))",
        "(<= (next (both ?a ?b)) (does ?r ?a) (does ?s ?b) (distinct ?r ?s))",
    )
    return f"{numbers(size)} {' '.join(random.sample(kinds, random.randint(1, 3)))}"


def _busy_roles(size: int, random: Random) -> str:
    """Return many roles that move, have goals, and are read together."""
    reader = random.choice(
        (
            "(<= (next (h ?r)) (does ?r a))",
            "(<= (next (h ?r ?m)) (does ?r ?m))",
            "(<= (next won) (does ?r a) (does ?s b))",
            "(<= (next (h ?r)) (does ?r a) (not (does ?s a)) (role ?s))",
            "(<= (next (h ?r)) (true (h ?r)) (does ?s a)) (<= (init (h ?r)) (role ?r))",
            "(<= (next won) " + " ".join(f"(does r{i} a)" for i in range(size)) + ")",
            "(<= (legal ?r c) (role ?r) (true (h ?r))) (<= (next (h ?s)) (does ?r ?m) (role ?s))",
        )
    )
    each = random.choice(
        (
            "(role r{0}) (<= (legal r{0} a) (role r{0})) (<= (legal r{0} b) (role r{0})) (goal r{0} 50)",
            "(role r{0}) (legal r{0} a) (legal r{0} b) (goal r{0} 1) (<= (goal r{0} 2) (true won))",
            "(role r{0}) (<= (legal r{0} (m {0} ?x)) (true (step ?x))) (<= (goal r{0} 2) (not (true (h r{0}))))",
        )
    )
    return f"{' '.join(each.format(i) for i in range(size))} {reader}"


def _computing(size: int, random: Random) -> str:
    """Return numbers that are counted, turned round, added or multiplied, in one step or from state to state."""
    bits = max(2, size % 64)
    row = variables(bits)
    ripple = " ".join(
        f"(<= (next (b {low} 1{' 0' * rest})) (true (b {low} 0{' 1' * rest})))"
        for low, rest in ((" ".join(row[:k]), bits - k - 1) for k in range(bits))
    )
    pairs = [(i, j) for i in range(size) for j in range(size)] if size <= 200 else []
    table = " ".join(f"(plus {i} {j} {(i + j) % size})" for i, j in pairs)
    start = " ".join("01"[i % 2] for i in range(bits))
    return random.choice(
        (
            f"(init (b{' 0' * bits})) {ripple}",
            f"(init (b {start})) (<= (next (b {' '.join(reversed(row))})) (true (b {' '.join(row)})))",
            f"""{table} {numbers(size)} (<= (init (a ?i)) (plus ?i ?i 0)) (<= (next (a ?i)) (sum ?i))
            (<= (sum ?k) (true (a ?i)) (true (b ?j)) (plus ?i ?j ?k)) (<= (next (b ?i)) (n ?i) (not (sum ?i)))""",
            f"""{table} {numbers(size)} (<= (times 0 ?i 0) (n ?i)) (<= (next (c ?m)) (times ?i ?j ?m))
            (<= (times ?k ?i ?m) (times ?j ?i ?l) (plus ?j 1 ?k) (plus ?l ?i ?m))""",
        )
    )


# ---- the text -------------------------------------------------------------------------------------------------------


def _comments(size: int, random: Random) -> str:
    """Return comments with parentheses, quotes and semicolons, between rules or inside of them."""
    odd = ("; (", ";;(", "; (a", ';"', "; )", ";;;;", "; ((((", "; (<= (p ?x)", ";| #|", "; '(", ";", "; ?x", "; (;(")
    chosen = random.sample(odd, random.choice((1, 1, 3)))
    end = random.choice(("\n", "\n", "\r\n", " \t\n"))
    comments = end.join(random.choice(chosen) for _ in range(size)) + "\n"
    return random.choice(
        (
            f"{comments}(z a) (<= (next (q ?x)) (z ?x))",
            f"(z a) (<= (next (q ?x))\n{comments} (z ?x))",
            f"(z a) (<= (next (q ?x)) (z ?x)) (\n{comments}role\n{comments}x)",
            comments.replace("\n", "\n(z a) "),
        )
    )


def _one_line(size: int, random: Random) -> str:
    """Return much in a single line, with mistakes that have to be told with their place."""
    part = random.choice(
        (
            "(<= (p ?X) (q ?x))",
            "(<= (p ?x) (not (q ?x)))",
            "(P a) (p a)",
            "(<= (next (Won ?x)) (true (won ?X)))",
            "(<= (p ?x) (q (p ?x)))",
            "(goal x 101) (goal y 1)",
            "(<= (p a) (init a))",
            "(<= (p (r)) (q (s)))",
            "(next a)",
            "(<= p (distinct ?a ?b))",
        )
    )
    spaces = random.choice(("", " ", " " * 50, "\t", "\n\n"))
    begin = _nested("(p ", "a", random.randint(1, DEEPEST)) if random.random() < 0.2 else ""
    return begin + spaces.join([part] * size)


def _long_names(size: int, random: Random) -> str:
    """Return names that are very long, or many that differ only at their end."""
    long = random.choice(("a", "é", "a-", "+", "x_1", "\U0001d538")) * size
    rules = random.choice(
        ("(init ({0})) (<= (next (q ?x)) (true (q ?x)))", "(role {0}) (<= (legal {0} {0}) (role {0}))")
    )
    many = "(init ({0} {0})) (<= (next ({0} ?{0})) (true ({0} ?{0}))) (<= (legal x ({0} ?{0})) (true ({0} ?{0})))"
    ends = " ".join(many.format(long[:1000] + str(i)) for i in range(max(1, size // 10_000)))
    return random.choice((rules.format(long), many.format(long), ends))


def _alternating_case(size: int, random: Random) -> str:
    """Return names and variables in many spellings, in one rule or in many."""
    spelt = ["".join(random.choice((c, c.upper())) for c in "averylongname") for _ in range(size)]
    return random.choice(
        (
            f"(<= (next won) {' '.join(f'(true (a ?{name}{i}))' for i, name in enumerate(spelt))})",
            f"(<= (next won) {' '.join(f'(true (a ?{name}))' for name in spelt)})",
            " ".join(f"(init ({name} {name}))" for name in spelt),
            " ".join(f"(<= (next ({name} ?{name})) (true ({name} ?{name})))" for name in spelt),
            " ".join(
                f"({keyword} (c {name}))" for name, keyword in zip(spelt, ("init", "INIT", "Init") * size, strict=False)
            ),
        )
    )


def _all_constructs(size: int, random: Random) -> str:
    """Return random rules in which every construct may stand in every other one where it is allowed."""
    relations = [(f"p{i}", random.randint(0, 3)) for i in range(random.randint(2, 8))]
    names = variables(random.randint(1, 6))
    rules = (_any_rule(relations, names, random) for _ in range(size))
    return f"(init (p0 a)) {' '.join(rules)}"


def _any_rule(relations: Sequence[tuple[str, int]], names: Sequence[str], random: Random) -> str:
    def term(depth: int) -> str:
        if depth and random.random() < 0.3:
            return f"(f {' '.join(term(depth - 1) for _ in range(random.randint(1, 3)))})"
        return random.choice((*names, *names, "a", "b", "7"))

    def sentence() -> str:
        name, arity = random.choice(relations)
        return f"({name} {' '.join(term(1) for _ in range(arity))})" if arity else name

    def condition(depth: int) -> str:
        kind = random.choice(("plain", "true", "true", "does", "not", "or", "distinct") if depth else ("true",))
        if kind == "or":
            return _branches(condition(depth - 1) for _ in range(random.randint(1, 3)))
        if kind == "distinct":
            return f"(distinct {term(1)} {term(1)})"
        forms = {"plain": "{}", "true": "(true {})", "does": f"(does x (go {term(1)}))"}
        return f"(not {condition(depth - 1)})" if kind == "not" else forms[kind].format(sentence())

    bound = " ".join(f"(true ({random.choice('km')} {name}))" for name in names)
    head = random.choice(("(next {})", "(next {})", "{}", "(legal x {})")).format(sentence())
    return f"(<= {head} {bound} {' '.join(condition(3) for _ in range(random.randint(0, 4)))})"


CONSTRUCTS: dict[str, tuple[Callable[[int, Random], str], int]] = {
    "random wide growth": (_wide_growth, 30),
    "random equalities": (_equalities, 60),
    "random comparisons": (_comparisons, 20_000),
    "random unifications": (_unifications, 40),
    "random deep equality": (_deep_equality, 3000),
    "random alternatives": (_alternatives, 20_000),
    "random long rule": (_long_rule, 200_000),
    "random many variables": (_many_variables, 20_000),
    "random wide atoms": (_wide_atoms, 100_000),
    "random repeated": (_repeated, 60_000),
    "random row of relations": (_row_of_relations, 30_000),
    "random unfolding": (_unfolding, 40),
    "random forbidden": (_forbidden, 30_000),
    "random negative cycles": (_negative_cycles, 10_000),
    "random pigeons": (_pigeons, 12),
    "random arities": (_arities, 1500),
    "random goal values": (_goal_values, 33_000),
    "random bounds": (_bounds, 1000),
    "random strangers": (_strangers, 20_000),
    "random busy roles": (_busy_roles, 10_000),
    "random computing": (_computing, 200),
    "random comments": (_comments, 200_000),
    "random one line": (_one_line, 60_000),
    "random long names": (_long_names, 300_000),
    "random spellings": (_alternating_case, 60_000),
    "random all constructs": (_all_constructs, 3000),
}
"""Name -> function that makes the rules, and the size at which they may explode."""
