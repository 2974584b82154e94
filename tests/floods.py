"""Large rulesheets with one thing many times: reading and checking them takes time and text in proportion."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

from gamelore.gdl.lint import CHECKS, MOST_FINDINGS, lint_text
from parsing import num_calls

BEGIN = "(role x) (init a) (<= (legal x n) (role x)) (<= (goal x 50) (role x)) (<= terminal (true b))\n"
LONGEST = 2_000  # characters of a finding
BYTES = 500  # of memory for each character of a rulesheet

FLOODS: dict[str, Callable[[int, str], str]] = {
    "facts": lambda n, end: end.join(f"(f {i} {i + 1})" for i in range(n)),
    "rules": lambda n, end: end.join(f"(<= (p{i} ?x) (q{i} ?x) (not (r{i} ?x)))" for i in range(n)),
    "chain": lambda n, end: end.join(f"(<= (p{i} ?x) (p{i + 1} ?x))" for i in range(n)),
    "cycle with not": lambda n, end: end.join(f"(<= (p{i} ?x) (not (p{(i + 1) % n} ?x)))" for i in range(n)),
    "does below terminal": lambda n, end: (
        "(<= p0 (does x n))" + end.join(f"(<= p{i + 1} p{i}) (<= terminal p{i})" for i in range(n))
    ),
    "unsafe": lambda n, end: f"(<= (p ?x) {end.join(f'(distinct ?v{i} a)' for i in range(n))})",
    "unsafe with an or": lambda n, end: f"(<= (p ?x) {end.join(f'(or (distinct ?v{i} a))' for i in range(n))})",
    "conditions": lambda n, end: f"(<= (p ?x) {end.join(f'(q ?v{i})' for i in range(n))})",
    "branches": lambda n, end: f"(<= (p ?x) (or {end.join(f'(q ?v{i})' for i in range(n))}))",
    "deep branches": lambda n, end: _nested("(or (and ", n, end, 90, "))"),
    "empty branches": lambda n, end: f"(<= (p ?x) {end.join(f'(q ?v{i}) (or)' for i in range(n))})",
    "branches of nothing": lambda n, end: f"(<= (p ?x) {end.join(f'(q ?v{i}) (or (or) (or))' for i in range(n))})",
    "deep conjunctions": lambda n, end: _nested("(and ", n, end, 150, ")"),
    "two branches": lambda n, end: _nested("(or (q ?x) (and ", n, end, 60, "))"),
    "not of or": lambda n, end: f"(<= (p ?x) {end.join(f'(not (or (q ?v{i})))' for i in range(n))})",
    "recursion with terms": lambda n, end: f"(<= (p ?y) {end.join(f'(p (s ?x{i}))' for i in range(n))})",
    "wide recursion": lambda n, end: (
        f"(<= (p {end.join(f'?a{i}' for i in range(n))}) (p {end.join(f'(s ?a{i})' for i in range(n))}))"
    ),
    "empty parentheses": lambda n, end: end.join(["()"] * n),
    "open parentheses": lambda n, end: "(" * 150 + end.join(["(a)"] * n),
    "roles": lambda n, end: end.join(f"(role r{i}) (<= (legal s{i} n) (true b))" for i in range(n)),
    "spellings": lambda n, end: end.join(f"(f {_spelling(i)} ?{_spelling(i)})" for i in range(n)),
    "arities": lambda n, end: end.join(f"(f{' a' * (i % 40)})" for i in range(n)),
    "deep terms": lambda n, end: end.join("(f " + "(s " * 190 + "a" + ")" * 190 + ")" for i in range(n // 20)),
    "parenthesised": lambda n, end: end.join(f"(<= (p{i}) (q{i}) (r (c{i})))" for i in range(n)),
}


def _nested(opening: str, size: int, end: str, depth: int, closing: str) -> str:
    """Return a rule with many conditions inside many others."""
    return f"(<= (p ?x) {opening * depth}{end.join(f'(q ?v{i})' for i in range(size))}{closing * depth})"


def _spelling(number: int) -> str:
    """Return one of the spellings of the same name."""
    letters = "abcdefghijklmnop"
    return "".join(letter.upper() if number >> i & 1 else letter for i, letter in enumerate(letters))


def drawn(random: Random) -> dict[str, Any]:
    """Draw a flood, or two of them in one rulesheet."""
    kinds = random.sample(sorted(FLOODS), random.randint(1, 2))
    return {"kinds": kinds, "size": random.randint(50, 400), "end": random.choice([" ", "\n", "\n\n  "])}


def text_of(kinds: list[str], size: int, end: str) -> str:
    """Return the rulesheet of a flood."""
    return BEGIN + end.join(FLOODS[kind](size, end) for kind in kinds)


def assert_in_proportion(example: dict[str, Any]) -> None:
    """Assert that a flood of twice the size takes about twice the calls, and that the findings are cut."""
    sizes = example["size"], 2 * example["size"]
    some, twice = (num_calls(lint_text, text_of(**{**example, "size": size})) for size in sizes)
    assert twice <= 2.3 * some + 5_000, f"{some} calls, and {twice} for twice the size"
    tracemalloc.start()
    text = text_of(**example)
    findings = lint_text(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most <= BYTES * len(text) + 1_000_000, f"{most:,} bytes of memory for {len(text):,} characters"
    assert len(findings) <= (len(CHECKS) + 1) * (MOST_FINDINGS + 1)
    assert max((len(str(finding)) for finding in findings), default=0) <= LONGEST
