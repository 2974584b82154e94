"""Random small rulesheets, as text: what evaluators must agree on.

Every sheet has a perfect model, is safe and finite, and gives its roles something to do. What keeps it finite: each
term has a *sort*, the first letter of a variable is its sort, and no sort is made of itself.

    n numbers   c colours   p pairs of these   x any of the three   l lists   r roles   m moves   f facts   g goals

The rest is left to chance, with a weight on what rewriting rules can get wrong: long bodies with variables that nothing
else needs, relations of which few atoms are asked for (counters, lists, closures; positive, negated and through
negation), relations that never change, facts that once true stay, frame axioms, conditions that no variable joins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")
Fill = Callable[[str], str]  # sort -> a term

MOVES = ("noop", "(go {n})", "(put {n} {c})", "(say {p})", "(take {x})", "(swap {n} {n})")
FACTS = ("flag", "(step {n})", "(cell {n} {c})", "(at {p})", "(last {r} {m})", "(holds {x})", "(nest (in {n} {p}))")
LISTS = ("nil", "(cons w nil)", "(cons b (cons w nil))", "(cons b (cons b (cons w nil)))")
MADE_OF_OTHERS = {"x": "ncpx"}  # sorts whose terms are those of several sorts
DOMAINS = {"n": "num", "c": "colour", "r": "role", "l": "list"}  # relations that hold of all terms of a sort
ARGUMENTS = "nnncccpxrlm"  # the sorts of arguments of random relations, as often as they are to come up
# Recursive relations as public rulesheets have them: name -> sorts of its arguments, rules.
COUNTERS = {
    "less": ("nn", "(<= (less ?x ?y) (succ ?x ?y)) (<= (less ?x ?z) (succ ?x ?y) (less ?y ?z))"),
    "plus": ("nnn", "(<= (plus 0 ?x ?x) (num ?x)) (<= (plus ?y ?z ?w) (succ ?x ?y) (plus ?x ?z ?v) (succ ?v ?w))"),
    "even": ("n", "(even 0) (<= (even ?y) (succ ?x ?y) (not (even ?x)))"),
    "elem": (
        "cl",
        "(<= (elem ?x (cons ?x ?l)) (list (cons ?x ?l))) (<= (elem ?x (cons ?y ?l)) (list (cons ?y ?l)) (elem ?x ?l))",
    ),
}
COUNTERS_OF_A_STATE = {
    "count": (
        "nn",
        "(count 0 0) (<= (count ?l ?m) (succ ?k ?l) (count ?k ?m) (not (marked ?k)))"
        " (<= (count ?l ?n) (succ ?k ?l) (marked ?k) (count ?k ?m) (succ ?m ?n))",
    ),
    "joined": (
        "nn",
        "(<= (joined ?x ?x) (marked ?x)) (<= (joined ?x ?z) (joined ?x ?y) (succ ?y ?z) (marked ?z))"
        " (<= (joined ?x ?y) (joined ?y ?x))",
    ),
    "safe": ("n", "(<= (safe 0) (not (marked 0))) (<= (safe ?y) (succ ?x ?y) (not (safe ?x)))"),
}


# How the king moves; the first two let there be one.
KINGS = (
    "(<= (next (king ?y)) (true (king ?x)) (succ ?x ?y)) (<= (next (king {first})) (true (king {last})))",
    "(<= (next (king ?y)) (does {role} (go ?y))) (<= (next (king ?x)) (true (king ?x)) (does {role} noop))",
    "(<= (next (king ?y)) (does ?r (go ?y))) (<= (next (king ?x)) (true (king ?x)) (does {role} noop))",
    "(<= (next (king ?x)) (true (king ?x))) (<= (next (king ?y)) (true (king ?x)) (succ ?x ?y))",
)


class Positive(NamedTuple):
    """A condition that binds variables, and which."""

    text: str
    bound: tuple[str, ...]


def rulesheet(random: Random) -> str:
    """The text of a random rulesheet, one rule a line."""
    return Writer(random).sheet()


def variables(*texts: str) -> tuple[str, ...]:
    """The variables of texts, each once, in order."""
    return tuple(dict.fromkeys(re.findall(r"\?\w+", " ".join(texts))))


class Writer:
    """Writes one rulesheet."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        numbers = list(map(str, range(self.number(5, 8) if self.chance(10) else self.number(2, 4))))
        self.roles = ["a", "b", "c"][: self.number(1, 3)]
        self.terms: dict[str, Sequence[str]] = {
            "n": numbers,
            "c": ["w", "b", "e"][: self.number(2, 3)],
            "p": ["(p {n} {c})"],
            "x": ["0", "w", "p", "(p {n} {c})"],
            "l": LISTS[: self.number(1, 4)],
            "r": [*self.roles, *(["nobody"] if self.chance(5) else [])],
            "m": self.some(MOVES, 1, 4),
            "f": self.some(FACTS, 1, 4),
            "g": ["0", "50", "100"],
        }
        self.sorts = {"true": "f", "does": "rm", "legal": "rm", "terminal": "", "goal": "rg", "next": "f", "init": "f"}

    # ---- choices

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def chance(self, percent: int) -> bool:
        return self.random.random() * 100 < percent

    def choose(self, items: Sequence[Item]) -> Item:
        return self.random.choice(items)

    def some(self, items: Sequence[Item], low: int, high: int) -> list[Item]:
        """Different items, at least one of each number from low to high."""
        return self.random.sample(items, self.number(low, min(high, len(items))))

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        return self.random.sample(items, len(items))

    # ---- terms and atoms

    def fill(self, sort: str, inner: Fill) -> str:
        return filled(self.choose(self.terms[sort]), inner)

    def ground(self, sort: str) -> str:
        return self.fill(sort, self.ground)

    def pattern(self, sort: str) -> str:
        """A term that may bind variables."""
        if self.chance(70 if sort == "f" else 20):
            return self.fill(sort, self.pattern)
        return f"?{sort}{self.choose([1, 1, 2, 2, 3])}"

    def known(self, bound: Sequence[str]) -> Fill:
        """Terms with no variables but bound ones."""

        def term(sort: str) -> str:
            own = [name for name in bound if name[1] in MADE_OF_OTHERS.get(sort, sort)]
            return self.choose(own) if own and not self.chance(20) else self.fill(sort, term)

        return term

    def atom(self, relation: str, term: Fill) -> str:
        """An atom of a relation; `name/2` is another one called `name`."""
        name = relation.partition("/")[0]
        arguments = [term(sort) for sort in self.sorts[relation]]
        return f"({' '.join([name, *arguments])})" if arguments else name

    # ---- conditions

    def positive(self, usable: Sequence[str]) -> Positive:
        text = self.atom(self.choose(usable), self.pattern)
        one = Positive(text, variables(text))
        if not self.chance(12):
            return one
        other = self.positive(usable)
        if self.chance(25):
            return Positive(f"(and {one.text} {other.text})", variables(*one.bound, *other.bound))
        return Positive(f"(or {one.text} {other.text})", tuple(name for name in one.bound if name in other.bound))

    def test(self, negatable: Sequence[str], bound: Sequence[str]) -> str:
        """A condition that binds nothing, of bound variables only."""
        known = self.known(bound)
        kind = self.number(0, 99)
        if kind < 50:
            return f"(not {self.atom(self.choose(negatable), known)})"
        if kind < 80:
            sort = self.choose([name[1] for name in bound] or ["n"])
            left, right = known(sort), known(self.choose([sort, sort, "x"]))
            return f"(distinct {left} {right if right != left or self.chance(20) else self.ground('x')})"
        if kind < 90:
            return f"(not {self.test(negatable, bound)})"
        parts = [self.test(negatable, bound) for _ in range(self.number(0, 2))]
        parts += [self.atom(self.choose(negatable), known)] * self.number(0, 1)
        return f"({' '.join([self.choose(['or', 'and']), *parts])})"

    def rule(
        self, head: str, usable: Sequence[str], negatable: Sequence[str], first: str = "", *, short: bool = False
    ) -> None:
        """Writes a rule; `head` is its head with sorts in braces, or has its variables bound by `first`."""
        num_positive = self.choose([0, 0, 1] if short else [0, 1, 1, 1, 2, 2, 3, 4, 5, 7])
        num_tests = self.choose([0, 1] if short else [0, 0, 0, 1, 1, 2, 3])
        positive = [Positive(first, variables(first))] if first else []
        positive += [self.positive(usable) for _ in range(num_positive)]
        bound = variables(*(name for part in positive for name in part.bound))
        tests = [self.test(negatable, bound) for _ in range(num_tests)]
        body = self.shuffled([*(part.text for part in positive), *tests])
        sentence = filled(head, self.known(bound))
        self.lines.append(f"(<= {' '.join([sentence, *body])})" if body else sentence)

    # ---- the sheet, part by part

    def sheet(self) -> str:
        fixed = self.constants() + self.tables() + self.counters(COUNTERS, 40)
        fixed += self.relations("s", fixed, self.number(0, 2))
        self.first_state(fixed)
        here = [*fixed, *["true"] * len(fixed)]
        here += 2 * self.counters_of_a_state()
        here += 2 * self.relations("d", here, self.number(0, 3))
        here += self.tangle(here) if self.chance(30) else []
        here += self.sole(here) if self.chance(40) else []
        here += self.words(here)
        given = [*here, *["does"] * len(fixed)]
        given += self.relations("e", given, self.number(0, 2))
        self.following(given)
        for name in dict.fromkeys(given):
            if name not in ("true", "does") and self.chance(50 if name[0] in "dez" else 10):
                self.observe(name)
        if self.chance(20) and "nobody" not in self.terms["r"]:
            self.bounds()
        return "\n".join(self.shuffled(self.lines) if self.chance(10) else self.lines)

    def constants(self) -> list[str]:
        """The roles, and relations that list what there is."""
        if self.chance(10):
            self.lines += [*(f"(player {role})" for role in self.roles), "(<= (role ?x) (player ?x))"]
        else:
            self.lines += [f"(role {role})" for role in self.roles]
        numbers = self.terms["n"]
        self.lines += [f"(num {number})" for number in numbers]
        self.lines += [f"(succ {x} {y})" for x, y in pairwise(numbers)]
        self.lines += [f"(colour {colour})" for colour in self.terms["c"]]
        self.lines += [f"(list {items})" for items in self.terms["l"]]
        new = {"num": "n", "succ": "nn", "colour": "c", "role": "r", "list": "l"}
        self.sorts |= new
        return ["num", "succ", "succ", "colour", "role", "list"]

    def tables(self) -> list[str]:
        """Relations given by facts; one without a fact is never derived."""
        names = [f"t{number}" for number in range(self.number(1, 3))]
        for name in names:
            self.sorts[name] = self.signature()
            self.lines += dict.fromkeys(self.atom(name, self.ground) for _ in range(self.choose([3, 2, 4, 6, 0])))
        return names

    def signature(self) -> str:
        return "".join(self.choose(ARGUMENTS) for _ in range(self.choose([0, 1, 1, 2, 2, 2, 3, 3])))

    def counters(self, library: dict[str, tuple[str, str]], percent: int) -> list[str]:
        names = [name for name in library if self.chance(percent)]
        for name in names:
            self.sorts[name], rules = library[name]
            self.lines.append(rules)
        return names

    def counters_of_a_state(self) -> list[str]:
        if "(cell {n} {c})" not in self.terms["f"] or not self.chance(60):
            return []
        self.sorts["marked"] = "n"
        self.lines.append(f"(<= (marked ?x) (true (cell ?x {self.choose(['?c', self.terms['c'][0]])})))")
        return ["marked", *self.counters(COUNTERS_OF_A_STATE, 50)]

    def relations(self, letter: str, usable: Sequence[str], groups: int) -> list[str]:
        """Groups of relations: rules of a group use the group itself, but negate only what came before."""
        found: list[str] = []
        for group in range(groups):
            names = [f"{letter}{group}{member}" for member in "uv"[: self.choose([1, 1, 2])]]
            self.sorts.update({name: self.signature() for name in names})
            if len(self.sorts[names[0]]) != len(other := self.signature()) and self.chance(20):
                names.append(f"{names[0]}/{len(other)}")
                self.sorts[names[-1]] = other
            for name in names:
                self.rules(name, [*usable, *found, *names], [*usable, *found], self.number(1, 3))
            found += names
        return found

    def tangle(self, usable: Sequence[str]) -> list[str]:
        """Small relations that rest on each other in many ways."""
        names = [f"z{number}" for number in range(self.number(3, 6))]
        self.sorts.update({name: self.choose(["", "n", "n"]) for name in names})
        for name in names:
            self.rule(self.head(name), usable, usable, f"(true {self.fill('f', self.pattern)})", short=True)
            for _ in range(self.number(1, 3)):
                first = self.atom(self.choose(names), self.pattern)
                self.rule(self.head(name), [*names, "succ", "true"], usable, first, short=True)
        return names

    def sole(self, usable: Sequence[str]) -> list[str]:
        """A fact of which one holds at most, unless chance has it otherwise, and a relation that asks about it."""
        numbers, role = self.terms["n"], self.terms["r"][0]
        self.lines += dict.fromkeys(f"(init (king {self.choose(numbers)}))" for _ in range(self.choose([1, 1, 1, 2])))
        self.lines.append(self.choose(KINGS).format(role=role, first=numbers[0], last=numbers[-1]))
        if self.chance(20):
            self.terms["f"] = [*self.terms["f"], "(king {n})"]
        self.sorts["asked"] = "nc"
        for _ in range(3):
            self.rule(self.head("asked"), usable, usable, "(true (king ?n1))")
        return ["asked"]

    def rules(self, name: str, usable: Sequence[str], negatable: Sequence[str], number: int) -> None:
        for _ in range(number):
            self.rule(self.head(name), usable, negatable)

    def head(self, name: str) -> str:
        return self.atom(name, "{{{}}}".format)

    def first_state(self, fixed: Sequence[str]) -> None:
        for fact in self.terms["f"]:
            if fact == "(step {n})":
                self.lines.append("(init (step 0))")
                continue
            self.lines += dict.fromkeys(f"(init {filled(fact, self.ground)})" for _ in range(self.choose([1, 2, 0, 3])))
            if self.chance(20):
                self.rule(f"(init {fact})", fixed, fixed)

    def words(self, here: list[str]) -> list[str]:
        """legal, terminal and goal; each may use those before, and itself."""
        if self.chance(90):
            self.terms["m"] = list(dict.fromkeys(["noop", *self.terms["m"]]))
            self.lines.append("(<= (legal ?r noop) (role ?r))")
        for move in self.terms["m"]:
            self.moves(move, here)
        if "(step {n})" in self.terms["f"]:
            self.lines.append(f"(<= terminal (true (step {self.terms['n'][-1]})))")
        if "(step {n})" not in self.terms["f"] or self.chance(30):
            here = [*here, "legal"]
            end = self.fill("f", self.ground if self.chance(70) else self.pattern)
            self.rule("terminal", here, here, f"(true {end})", short=self.chance(50))
        here = [*here, "legal", "terminal"]
        for _ in range(self.number(1, 4)):
            self.rule("(goal {r} {g})", [*here, "goal"], here, f"(true {self.pattern('f')})", short=self.chance(50))
        return ["legal", "terminal", "goal"]

    def moves(self, move: str, here: list[str]) -> None:
        """Rules that make a move legal: to anybody with any arguments, or as chance has it."""
        if self.chance(60):
            sentence, domains = self.spread(f"(legal {{r}} {move})")
            tests = [self.test(here, variables(sentence)) for _ in range(self.choose([0, 1, 1, 2]))]
            self.lines.append(f"(<= {' '.join([sentence, *self.shuffled([*domains, *tests])])})")
        if self.chance(60):
            first = f"(true {self.pattern('f')})" if self.chance(50) else ""
            self.rule(f"(legal {{r}} {move})", [*here, "legal"], here, first, short=bool(first))

    def spread(self, text: str) -> tuple[str, list[str]]:
        """The text with a variable in the place of every sort, and conditions that list the values of each."""
        domains: list[str] = []

        def term(sort: str) -> str:
            if sort not in DOMAINS:
                return self.fill(sort, term)
            name = f"?{sort}{len(domains) + 1}"
            domains.append(f"({DOMAINS[sort]} {name})")
            return name

        return filled(text, term), domains

    def bounds(self) -> None:
        """`base` and `input`, as wide as the sorts are."""
        for word, text in [
            *(("base", fact) for fact in self.terms["f"]),
            *(("input", move) for move in self.terms["m"]),
        ]:
            for shape in self.shapes(f"({word} {text})" if word == "base" else f"(input {{r}} {text})"):
                sentence, domains = self.spread(shape)
                self.lines.append(f"(<= {' '.join([sentence, *domains])})" if domains else sentence)

    def shapes(self, text: str) -> list[str]:
        """The texts that result where sorts that no relation lists are replaced by all that they are made of."""
        hole = next((hole for hole in re.findall(r"\{(\w)\}", text) if hole not in DOMAINS), None)
        if hole is None:
            return [text]
        parts = ["p", "{n}", "{c}", "{p}"] if hole == "x" else self.terms[hole]
        return [shape for part in parts for shape in self.shapes(text.replace(f"{{{hole}}}", part, 1))]

    def following(self, usable: Sequence[str]) -> None:
        """The next state: clocks, effects of moves, anything else, and what stays."""
        if "(step {n})" in self.terms["f"]:
            self.lines.append("(<= (next (step ?y)) (true (step ?x)) (succ ?x ?y))")
        for fact in self.terms["f"]:
            if self.chance(70):
                self.frame(filled(fact, self.pattern), usable)
            if self.chance(70):
                self.rule(f"(next {fact})", usable, usable, self.atom("does", self.pattern), short=True)
            if self.chance(50):
                self.rule(f"(next {fact})", usable, usable)
        if self.chance(15):
            self.frame("?f1", usable)

    def observe(self, name: str) -> None:
        """Keeps some atoms of a relation in the next state, or that one is missing: what nobody reads tests nothing."""
        if self.chance(20):
            missing = f"lacks_{name.replace('/', '_')}"
            self.terms["f"] = [*self.terms["f"], missing]
            self.lines.append(f"(<= (next {missing}) (not {self.atom(name, self.ground)}))")
            return
        atom = self.atom(name, self.pattern)
        shown = variables(atom)
        words = [f"saw_{name.replace('/', '_')}", *shown]
        fact = f"({' '.join(words)})" if shown else words[0]
        self.lines.append(f"(<= (next {fact}) {atom})")
        self.terms["f"] = [*self.terms["f"], re.sub(r"\?(\w)\w*", r"{\1}", fact)]

    def frame(self, fact: str, usable: Sequence[str]) -> None:
        """What holds stays: always, if a condition on the moves holds, or if anything else does."""
        kind = self.number(0, 99)
        if kind < 30:
            self.lines.append(f"(<= (next {fact}) (true {fact}))")
        elif kind < 60:
            does = self.atom("does", self.pattern)
            bound = variables(fact, does)
            tests = [self.test(usable, bound) for _ in range(self.number(0, 2))]
            self.lines.append(f"(<= {' '.join([f'(next {fact})', *self.shuffled([f'(true {fact})', does, *tests])])})")
        else:
            self.rule(f"(next {fact})", usable, usable, f"(true {fact})")


def filled(text: str, term: Fill) -> str:
    """The text with a term in the place of every sort in braces."""
    return re.sub(r"\{(\w)\}", lambda hole: term(hole[1]), text)
