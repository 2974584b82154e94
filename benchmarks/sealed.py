"""Group rulesheets into families, and seal a fifth of the families by lot: `python benchmarks/sealed.py FOLDER`.

FOLDER has the public rulesheets as NAME.kif. The result is `src/gamelore/lab/families.toml`, which is committed before
any search is tuned. Games of sealed families measure playing strength once, at the end; until then `gamelore duel`
refuses them. Tests of the rules (traces, perft counts) may use them. `--check` compares the file and writes nothing.

Two sheets are in one family if one of these links, or a chain of them, joins them (single linkage):

- Their rules have a similarity of at least THRESHOLD. The *shape* of a rule is its text with relations (except keywords
  of GDL), functions, constants and variables numbered by their first appearance. A sheet is the set of the shapes of
  its rules without its facts, which mostly say how large a board is. The similarity of two sheets is the weight of the
  shapes in both divided by the weight of those in either (Jaccard). The weight of a shape is log(sheets / sheets with
  the shape): many sheets have `(<= (legal ?p noop) (true (control ?q)))`, so it hardly links them.
- Their names share LETTERS letters in a row, or the name of one with at least SHORTEST letters is part of the other's;
  digits, signs and the words COMMON do not count. Some variants were written anew, from other rules than their model.

THRESHOLD was chosen by looking at the families: 0.3 splits the variants of tic-tac-toe, 0.15 joins breakthrough, the
skirmishes and a free-for-all, which share little more than a board and captures. Links by name also join some games
that have only a word in common (knightThrough and knightsTour; amazonsTorus and checkersTorus). This does no harm: no
game of a family is played before the end unless all may be.

A family with one of the games NAMED is not in the lot, since it is played while the search is tuned. The lot orders the
other families by SHA-256 of COMMIT and the family's first name, and seals the first fifth of them.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from gamelore.gdl.syntax import FORM, And, Atom, Condition, Constant, Distinct, Not, Or, Rule, Term, Variable, parse

FAMILIES = Path(__file__).parents[1] / "src" / "gamelore" / "lab" / "families.toml"
COMMIT = "32e7b0a8c5060a642c892386581b555da8969e92"  # main, before the first change to the search
THRESHOLD = 0.2
LETTERS = 6
SHORTEST = 4
COMMON = re.compile(r"\d*(parallel|serial|simultaneous|simul|player|suicide|small|medium|large|[^a-z])")
SHARE = 5  # one of so many families is sealed
NAMED = {  # by the issue on the search: its points, its text, and what it quotes from earlier trials
    *("connectFour", "breakthroughSmall", "breakthrough", "knightThrough", "reversi", "englishDraughts", "pentago"),
    *("checkers", "chess", "ticTacToeParallel", "nim1", "nim4", "chomp", "double_tictactoe_dengji"),
}
HEAD = """\
# Families of similar rulesheets of the public repository. Made by benchmarks/sealed.py, which says how; not by hand.
# "named": played while the search is tuned, never sealed. "sealed": drawn by the lot, closed until the end.
"""


def shape(rule: Rule) -> str:
    """Return a rule as text, with all names but keywords numbered by their first appearance."""
    numbers: dict[tuple[str, str], str] = {}

    def number(kind: str, name: str) -> str:
        return numbers.setdefault((kind, name), f"{kind}{sum(other == kind for other, _ in numbers)}")

    def term(part: Term) -> str:
        if isinstance(part, Constant | Variable):
            return number("?" if isinstance(part, Variable) else "c", part.name)
        return listed(number("f", part.name), map(term, part.args))

    def condition(part: Condition) -> str:
        match part:
            case Atom():
                return listed(part.name if part.name in FORM else number("r", part.name), map(term, part.args))
            case Distinct():
                return listed("distinct", (term(part.left), term(part.right)))
            case Not():
                return listed("not", (condition(part.condition),))
            case Or():
                return listed("or", map(condition, part.branches))
            case And():
                return listed("and", map(condition, part.parts))

    return listed("<=", map(condition, (rule.head, *rule.body)))


def listed(first: str, others: Iterable[str]) -> str:
    return f"({' '.join((first, *others))})"


def shapes(path: Path) -> frozenset[str]:
    rules = parse(path.read_text(encoding="utf-8", errors="replace"), path).rules
    return frozenset(shape(rule) for rule in rules if rule.body)


def similarity(sheets: Mapping[str, frozenset[str]]) -> Callable[[str, str], float]:
    """Return the weighted Jaccard similarity of two sheets as a function of their names."""
    counts = Counter(text for sheet in sheets.values() for text in sheet)

    def weight(texts: frozenset[str]) -> float:
        return math.fsum(math.log(len(sheets) / counts[text]) for text in texts)

    def similar(left: str, right: str) -> float:
        either = weight(sheets[left] | sheets[right])
        return weight(sheets[left] & sheets[right]) / either if either else 0.0

    return similar


def have_like_names(left: str, right: str) -> bool:
    """Return whether two names of sheets share LETTERS letters in a row, or one is part of the other."""
    short, long = sorted((COMMON.sub("", left.lower()), COMMON.sub("", right.lower())), key=len)
    parts = [short[i : i + LETTERS] for i in range(len(short) - LETTERS + 1)]
    return short == long or (len(short) >= SHORTEST and short in long) or any(part in long for part in parts)


def families(sheets: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the families, each sorted, in the order of their first names."""
    similar = similarity(sheets)
    family = {name: {name} for name in sheets}
    for left, right in combinations(sheets, 2):
        if family[left] is not family[right] and (have_like_names(left, right) or similar(left, right) >= THRESHOLD):
            joined = family[left] | family[right]
            family |= dict.fromkeys(joined, joined)
    return sorted({id(names): sorted(names) for names in family.values()}.values())


def drawn(candidates: Iterable[list[str]]) -> list[list[str]]:
    """Return the families that the lot seals."""
    lots = sorted(candidates, key=lambda names: hashlib.sha256(f"{COMMIT} {names[0]}".encode()).digest())
    return sorted(lots[: round(len(lots) / SHARE)])


def text(folder: Path) -> str:
    """Return the contents of families.toml for a folder of rulesheets."""
    paths = {path.stem: path for path in sorted(folder.glob("*.kif"))}
    groups = families({name: shapes(path) for name, path in paths.items()})
    sealed = drawn(names for names in groups if not NAMED.intersection(names))
    lines = [HEAD, f'commit = "{COMMIT}"', f"threshold = {THRESHOLD}", f"sheets = {len(paths)}", ""]
    lines += ["[sealed]  # the hash of the rules of each sealed game"]
    lines += [f'"{name}" = "{rules_hash(paths[name])}"' for names in sealed for name in names]
    for names in groups:
        kind = "sealed" if names in sealed else "named" if NAMED.intersection(names) else "open"
        lines += [
            "",
            "[[family]]",
            f'kind = "{kind}"',
            f"games = [{', '.join(f'{chr(34)}{name}{chr(34)}' for name in names)}]",
        ]
    return "\n".join(lines) + "\n"


def rules_hash(path: Path) -> str:
    """Return `Game.rules_hash` of a sheet, without making a game of it."""
    return parse(path.read_text(encoding="utf-8", errors="replace"), path).rules_hash


def main(
    folder: Annotated[Path, typer.Argument(help="folder of the public rulesheets")],
    check: Annotated[bool, typer.Option("--check", help="compare the file, and write nothing")] = False,
) -> None:
    """Draw the lot that seals a fifth of the families, or compare the file with it."""
    new = text(folder)
    if not check:
        FAMILIES.write_text(new, encoding="ascii")
    elif FAMILIES.read_text(encoding="ascii") != new:
        sys.exit(
            f"expected {FAMILIES} to be what this script makes of {folder}, got another text; the lot is drawn once"
        )


if __name__ == "__main__":
    typer.run(main)
