"""Variants of a game: a map from the names of one rulesheet to those of another that resembles it, with its score.

Two sheets are *variants* if most of their rules agree up to names: another size of the board, another start, one rule
changed, or losing instead of winning. An isomorphism (see isomorphism.py) does not exist then, so names are matched by
the places where they occur.

Each occurrence of a name has a *context*: the whole rule as a row of tokens, in which this occurrence is marked. A name
that is matched already appears in a context by the number of its match, another name only by its kind (relation,
function, constant or role) and the number of its arguments. Variables are numbered by first appearance. The similarity
of two names is the Jaccard similarity of their multisets of contexts. Names that are each other's best, without a tie,
are matched. Then contexts say more, and the next round matches more. When only ties are left, the first pair of the
most similar is matched: of names that are spelled alike, if there is one. (This is individualisation and refinement, as
for the isomorphism of graphs, with similar instead of equal colours. Kuhlmann & Stone 2007 compare rule graphs too.)

Most variants spell their names alike. So names that both sheets have are matched first, if the rules without their
names are similar enough. This stays if it agrees in as many rules as any map could, which these rules tell, too.

The score of the map is the Jaccard similarity of the rules of both sheets after it, apart from facts, which mostly say
how large a board is. A rule that occurs several times counts so often.

In *misère play*, who would win loses. It is told by the rules about goals that agree apart from the goal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import product
from math import inf, nan
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..gdl import syntax
from ..gdl.limits import processor_time
from ..gdl.syntax import KEYWORD_ARITY
from ..ground.program import Words, mixed

_LEAST = 0.1  # similarity of names that can be matched
_LEAST_SHARED = 0.15  # similarity of sheets in which the same spelling may mean the same
_CLEAR = 1e-9  # difference of similarities that is no tie
_BASE = np.uint64(0x9E3779B97F4A7C15 | 1)  # of the polynomial that hashes a row of tokens
_MARK = "here"
_EVEN = 50.0  # goal of a draw

Kind: TypeAlias = tuple[str, int]
"""What a name is ("relation", "function", "constant" or "role"), and its number of arguments."""
Name: TypeAlias = tuple[Kind, str]


class _Token(NamedTuple):
    """A token of a rule: its own code, or the number of a name; and its goal if it is one, see `_Tokens`."""

    code: int = 0
    name: int = -1
    goal: float = nan


class _Tokens(NamedTuple):
    """A sheet as rows of tokens, one row for each rule.

    codes    uint64[tokens], for tokens that are no names
    names    int64[tokens], the number of the name of a token, or -1
    powers   uint64[tokens], the factor of the token in the hash of its rule
    goals    float64[tokens], the goal that a token is, 0 to 100; NaN for other tokens
    rules    int64[rules], the first token of each rule
    is_fact  bool[rules]
    """

    codes: Words
    names: NDArray[np.int64]
    powers: Words
    goals: NDArray[np.float64]
    rules: NDArray[np.int64]
    is_fact: NDArray[np.bool_]


@cache
def _code(text: str) -> int:
    """Return a number for a token, the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


class _Reader:
    """Reader of the rules of a sheet into tokens.

    names   the names of the sheet, in order of first appearance, with their numbers
    """

    def __init__(self, sheet: syntax.Rulesheet) -> None:
        self.names: dict[Name, int] = {}
        self._roles = set(sheet.roles)
        self._row: list[_Token] = []
        self._variables: dict[str, int] = {}
        rows = [self._rule(rule) for rule in sheet.rules]
        lengths = np.array([len(row) for row in rows], np.int64)
        tokens = [token for row in rows for token in row]
        places = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        self.tokens = _Tokens(
            np.array([token.code for token in tokens], np.uint64),
            np.array([token.name for token in tokens], np.int64),
            _powers(int(lengths.max(initial=0)))[places],
            np.array([token.goal for token in tokens], np.float64),
            np.cumsum(lengths) - lengths,
            np.array([not rule.body for rule in sheet.rules], np.bool_),
        )

    def _rule(self, rule: syntax.Rule) -> list[_Token]:
        """Return the row of a rule; its conditions are ordered by what they are without names."""
        self._row, self._variables = [], {}
        self._atom(rule.head)
        for condition in sorted(rule.body, key=_skeleton):
            self._condition(condition)
        return self._row

    def _put(self, text: str) -> None:
        self._row.append(_Token(_code(text)))

    def _goal(self, text: str) -> None:
        self._row.append(_Token(_code(f"goal {text}"), goal=float(text) if text.isdecimal() else nan))

    def _name(self, kind: Kind, name: str) -> None:
        self._row.append(_Token(name=self.names.setdefault((kind, name), len(self.names))))

    def _condition(self, condition: syntax.Condition) -> None:
        match condition:
            case syntax.Atom():
                self._atom(condition)
            case syntax.Distinct(left, right):
                self._put("distinct")
                self._term(left)
                self._term(right)
            case syntax.Not(inner):
                self._put("not")
                self._condition(inner)
            case syntax.Or(parts) | syntax.And(parts):
                self._put(f"{type(condition).__name__} {len(parts)}")
                for part in sorted(parts, key=_skeleton):
                    self._condition(part)

    def _atom(self, atom: syntax.Atom) -> None:
        if atom.name in KEYWORD_ARITY:
            self._put(atom.name)
        else:
            self._name(("relation", len(atom.args)), atom.name)
        for number, term in enumerate(atom.args):
            if atom.name == "goal" and number == 1 and isinstance(term, syntax.Constant):
                self._goal(term.name)  # its meaning does not depend on names
            else:
                self._term(term)

    def _term(self, term: syntax.Term) -> None:
        match term:
            case syntax.Variable():
                self._put(f"?{self._variables.setdefault(term.name, len(self._variables))}")
            case syntax.Constant():
                self._name(("role" if term.name in self._roles else "constant", 0), term.name)
            case syntax.Function():
                self._name(("function", len(term.args)), term.name)
                for part in term.args:
                    self._term(part)


def _powers(count: int) -> Words:
    powers = np.full(count, _BASE)
    return np.multiply.accumulate(powers) if count else powers


def _skeleton(condition: syntax.Condition) -> str:
    """Return a condition as text without its names, except keywords."""
    match condition:
        case syntax.Atom():
            name = condition.name if condition.name in KEYWORD_ARITY else "*"
            return f"{name}({','.join(map(_outline, condition.args))})"
        case syntax.Distinct(left, right):
            return f"distinct({_outline(left)},{_outline(right)})"
        case syntax.Not(inner):
            return f"not({_skeleton(inner)})"
        case syntax.Or(parts) | syntax.And(parts):
            return f"{type(condition).__name__}({','.join(sorted(map(_skeleton, parts)))})"


def _outline(term: syntax.Term) -> str:
    """Return a term as text without its names."""
    match term:
        case syntax.Function():
            return f"*({','.join(map(_outline, term.args))})"
        case syntax.Variable():
            return "?"
        case _:
            return "*"


@dataclass(frozen=True)
class NameMap:
    """A map from names of a target sheet to names of a source sheet.

    score    from 0 to 1, see the module; 1 if all rules agree
    sources  the name in the source sheet, by kind and name in the target sheet; names are in lower case
    is_same_board  whether the facts of the sheets agree, too
    is_misere  whether to win in one game corresponds to losing in the other: so it is in misère play, and also where a
               map of games that are hardly alike crosses the roles, but not their pieces
    """

    score: float
    sources: Mapping[Name, str]
    is_same_board: bool = False
    is_misere: bool = False

    def source(self, kind: Kind, name: str) -> str | None:
        """Return the name in the source sheet; None for a name without a match."""
        return self.sources.get((kind, name.lower()))


def rule_shapes(sheet: syntax.Rulesheet) -> Words:
    """Return a hash of each rule with a body, without its names: uint64[rules]. Equal rules have different hashes."""
    reader = _Reader(sheet)
    return _rule_items(reader.tokens, _kind_codes(reader))


def shape_similarities(own: Words, others: Sequence[Words]) -> NDArray[np.float64]:
    """Return the Jaccard similarity of a set to each of the others, float64[others], 0 to 1.

    For the shapes of the rules of two sheets, this is the highest score that a map between them can have.
    """
    lengths = np.array([len(other) for other in others], np.int64)
    is_shared = np.isin(np.concatenate(others), own) if len(others) else np.zeros(0, np.bool_)
    shared = np.bincount(np.repeat(np.arange(len(others)), lengths)[is_shared], minlength=len(others))
    either = lengths + len(own) - shared
    similar: NDArray[np.float64] = np.divide(shared, either, out=np.zeros(len(others)), where=either > 0)
    return similar


def map_names(source: syntax.Rulesheet, target: syntax.Rulesheet, seconds: float = inf) -> NameMap:
    """Match the names of two sheets; see the module.

    The score is 0 if that takes more processor time than so many seconds, as it does with hundreds of names that play
    the same part.
    """
    end = processor_time() + seconds
    readers = _Reader(source), _Reader(target)
    matching = _Matching(*readers)
    most = matching.score
    if most >= _LEAST_SHARED:
        matching.match_alike()
    return (matching if matching.score >= most else _Matching(*readers)).result(end)


class _Matching:
    """The matches of two sheets so far. `matches` are pairs (name of the source, name of the target), by number."""

    def __init__(self, source: _Reader, target: _Reader) -> None:
        self._sides = source, target
        self._lists = [list(side.names) for side in self._sides]
        kinds = [_kind_codes(side) for side in self._sides]
        self._are_of_a_kind = kinds[0][:, None] == kinds[1][None]
        self._codes = kinds
        self.matches: list[tuple[int, int]] = []
        self._is_free = [np.ones(len(names), np.bool_) for names in self._lists]

    def result(self, end: float) -> NameMap:
        """Match names until no pair is similar enough; return the map. Give up at the end of a time."""
        while pairs := self._next_pairs():
            if processor_time() > end:
                return NameMap(0.0, {})
            for left, right in pairs:
                self._match(left, right)
        sources, targets = self._lists
        own, other = map(np.sort, self._items(are_facts=True))
        matches = {targets[theirs]: sources[ours][1] for ours, theirs in self.matches}
        return NameMap(self.score, matches, np.array_equal(own, other), self._is_misere)

    def match_alike(self) -> None:
        """Match the names of a kind that both sides spell alike."""
        left, right = (side.names for side in self._sides)
        for name, number in left.items():
            if name in right:
                self._match(number, right[name])

    def _match(self, left: int, right: int) -> None:
        code = _code(f"match {len(self.matches)}")
        self._codes[0][left], self._codes[1][right] = code, code
        self._is_free[0][left], self._is_free[1][right] = False, False
        self.matches.append((left, right))

    def _next_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of free names that are each other's best without a tie; else the first of the best."""
        lefts, rights = (np.flatnonzero(is_free) for is_free in self._is_free)
        similarity = self._similarities(lefts, rights)
        if not similarity.size or similarity.max() < _LEAST:
            return []
        best, rivals = similarity.max(axis=1), similarity.argmax(axis=1)
        least = best - _CLEAR
        is_only = (similarity >= least[:, None]).sum(axis=1) == 1  # in its row, and the next line in its column
        is_only &= (similarity[:, rivals] >= least).sum(axis=0) == 1
        clear = np.flatnonzero(is_only & (best >= _LEAST))
        if not len(clear):
            return [self._first_of_the_best(similarity, lefts, rights)]
        return list(zip(lefts[clear].tolist(), rights[rivals[clear]].tolist(), strict=True))

    def _first_of_the_best(
        self, similarity: NDArray[np.float64], lefts: NDArray[np.intp], rights: NDArray[np.intp]
    ) -> tuple[int, int]:
        """Return the first of the most similar pairs, one that is spelled alike if there is one."""
        rows, columns = np.nonzero(similarity >= similarity.max() - _CLEAR)
        tied = list(zip(lefts[rows].tolist(), rights[columns].tolist(), strict=True))
        left, right = self._lists
        alike = ((ours, theirs) for ours, theirs in tied if left[ours][1] == right[theirs][1])
        return next(alike, tied[0])

    def _similarities(self, lefts: NDArray[np.intp], rights: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the similarity of each free name of the source and the target; 0 if a match is impossible."""
        (own, left_contexts), (other, right_contexts) = (self._contexts(side) for side in (0, 1))
        own, other = np.searchsorted(lefts, own), np.searchsorted(rights, other)
        sizes = np.bincount(own, minlength=len(lefts)), np.bincount(other, minlength=len(rights))
        shared = _num_shared(own, left_contexts, other, right_contexts, (len(lefts), len(rights)))
        either = sizes[0][:, None] + sizes[1][None] - shared
        may_match = self._are_of_a_kind[np.ix_(lefts, rights)] & (either > 0)
        similar: NDArray[np.float64] = np.divide(shared, either, out=np.zeros(shared.shape), where=may_match)
        return similar

    def _contexts(self, side: int) -> tuple[NDArray[np.int64], Words]:
        """Return (name, context) for each occurrence of a free name of a side; see `_numbered` for equal contexts."""
        tokens = self._sides[side].tokens
        codes = _token_codes(tokens, self._codes[side])
        hashes = _hashes(tokens, codes)
        lengths = np.diff(np.append(tokens.rules, len(codes)))
        whole = np.repeat(hashes, lengths)
        at = np.flatnonzero(tokens.names >= 0)
        at = at[self._is_free[side][tokens.names[at]]]
        marked = whole[at] + (np.uint64(_code(_MARK)) - codes[at]) * tokens.powers[at]
        return tokens.names[at], _numbered(tokens.names[at], mixed(marked))

    @property
    def score(self) -> float:
        """Share of the rules that agree so far; before the first match, the highest score of any map."""
        own, other = self._items()
        return float(shape_similarities(own, [other])[0])

    def _items(self, *, are_facts: bool = False) -> list[Words]:
        """Return the hashes of the rules of each side, see `_rule_items`."""
        sides = zip(self._sides, self._codes, strict=True)
        return [_rule_items(side.tokens, codes, are_facts=are_facts) for side, codes in sides]

    @property
    def _is_misere(self) -> bool:
        """Whether low goals correspond to high ones, on the whole, in rules that agree apart from the goal."""
        sides = zip(self._sides, self._codes, strict=True)
        own, other = (_rules_without_goals(side.tokens, codes) for side, codes in sides)
        alike = own.keys() & other.keys()
        return sum((own[rule] - _EVEN) * (other[rule] - _EVEN) for rule in alike) < 0.0


def _num_shared(
    lefts: NDArray[np.int64],
    left_contexts: Words,
    rights: NDArray[np.int64],
    right_contexts: Words,
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    """Return the number of contexts that each left name shares with each right name, int64[shape].

    Contexts are sorted on both sides, and each left one is paired with the range of equal right ones.
    """
    order = np.argsort(right_contexts)
    ordered, rights = right_contexts[order], rights[order]
    first = np.searchsorted(ordered, left_contexts, "left")
    counts = np.searchsorted(ordered, left_contexts, "right") - first
    ends = np.cumsum(counts)
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts - first, counts)
    pairs = np.repeat(lefts, counts) * shape[1] + rights[places]
    return np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)


def _kind_codes(reader: _Reader) -> Words:
    """Return a number for the kind of each name of a sheet, uint64[names]."""
    return np.array([_code(f"{kind}") for kind, _ in reader.names], np.uint64)


def _token_codes(tokens: _Tokens, names: Words) -> Words:
    """Return the code of each token: its own, or that of its name."""
    codes: Words = np.where(tokens.names >= 0, names[tokens.names], tokens.codes) if len(names) else tokens.codes
    return codes


def _rule_items(tokens: _Tokens, names: Words, *, are_facts: bool = False) -> Words:
    """Return a hash of each rule with a body, or each fact, from the codes of the names; equal ones differ in it."""
    hashes = _hashes(tokens, _token_codes(tokens, names))[tokens.is_fact == are_facts]
    return _numbered(np.zeros(len(hashes), np.int64), mixed(hashes))


def _rules_without_goals(tokens: _Tokens, names: Words) -> dict[int, float]:
    """Return the goal of each rule that has one, by a hash of the rule without it; equal rules have different hashes.

    The higher goal comes first where rules differ in nothing else, as those about roles without a match.
    """
    at = np.flatnonzero(~np.isnan(tokens.goals))
    rules = np.searchsorted(tokens.rules, at, "right") - 1
    order = np.argsort(-tokens.goals[at], kind="stable")
    codes: Words = np.where(np.isnan(tokens.goals), _token_codes(tokens, names), np.uint64(_code("goal")))
    hashes = _numbered(np.zeros(len(at), np.int64), mixed(_hashes(tokens, codes)[rules[order]]))
    return dict(zip(hashes.tolist(), tokens.goals[at[order]].tolist(), strict=True))


def _hashes(tokens: _Tokens, codes: Words) -> Words:
    """Return the hash of each rule, uint64[rules]."""
    if not len(tokens.rules):
        return np.zeros(0, np.uint64)
    hashes: Words = np.add.reduceat(codes * tokens.powers, tokens.rules)
    return hashes


def _numbered(groups: NDArray[np.int64], items: Words) -> Words:
    """Make equal items of a group differ: the first ones are alike in all groups, the second ones, and so on."""
    order = np.lexsort((items, groups))
    is_new = np.ones(len(items), np.bool_)
    is_new[1:] = (groups[order][1:] != groups[order][:-1]) | (items[order][1:] != items[order][:-1])
    firsts = np.maximum.accumulate(np.where(is_new, np.arange(len(items)), 0))
    numbers = np.empty(len(items), np.uint64)
    numbers[order] = (np.arange(len(items)) - firsts).astype(np.uint64)
    numbered: Words = mixed(items ^ mixed(numbers + np.uint64(1)))
    return numbered


_FEWEST_IN_ORDER = 3  # constants in a row that are mapped by their place in it

Shape: TypeAlias = tuple[Name | None, ...]
"""The functions of a fact in preorder, None for each constant; a fact that is a constant has its name."""
Shares: TypeAlias = list[tuple[str, float]]
_Place: TypeAlias = tuple[list[str] | set[str], list[str] | set[str]]


@dataclass(frozen=True)
class FactMap:
    """What the facts of a target game correspond to in a source game.

    rows     int64[n], numbers of facts of the target
    columns  int64[n], numbers of facts of the source
    shares   float64[n], the share of the latter in the former. The shares of a fact of the target add up to 1, or there
             are none
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    shares: NDArray[np.float64]

    def carried(self, weights: NDArray[np.float32], num_facts: int) -> NDArray[np.float32]:
        """Return the weights of the facts of the target, float32[roles, num_facts], from those of the source."""
        carried = np.zeros((len(weights), num_facts))
        for role, own in enumerate(weights):
            np.add.at(carried[role], self.rows, self.shares * own[self.columns])
        return carried.astype(np.float32)

    def one_to_one(self) -> dict[int, int]:
        """Return the fact of the target for each fact of the source that corresponds to this one only, and wholly."""
        whole = self.shares == 1.0
        columns, first, counts = np.unique(self.columns[whole], return_index=True, return_counts=True)
        rows = self.rows[whole][first]
        return dict(zip(columns[counts == 1].tolist(), rows[counts == 1].tolist(), strict=True))


def map_facts(
    names: NameMap,
    source: syntax.Rulesheet,
    target: syntax.Rulesheet,
    source_facts: Sequence[str],
    target_facts: Sequence[str],
) -> FactMap:
    """Map the facts of a target game to those of a source game.

    A fact of the same form is looked up with the names of the source. On another board, constants that follow each
    other in the rules, as rows and columns do, are mapped by their place: the first to the first, the last to the last,
    and those between to the two that are nearest, in shares.
    """
    return _FactMatching(names, _Facts(source, source_facts), _Facts(target, target_facts)).result()


_WORDS = re.compile(r"[()]|[^\s()]+")


def _shape_of(fact: str) -> tuple[Shape, tuple[str, ...]]:
    """Return (functions, constants) of a fact, given as text."""
    words = _WORDS.findall(fact.lower())
    if words[0] != "(":
        return ((("constant", 0), words[0]),), ()
    shape: list[Name | None] = []
    leaves: list[str] = []
    open_terms: list[list[int]] = []  # place in the shape, and number of arguments so far
    for before, word in zip(["", *words], words, strict=False):
        if word == ")":
            place, count = open_terms.pop()
            name = shape[place]
            assert name is not None
            shape[place] = ("function", count), name[1]
            continue
        if open_terms and before != "(":
            open_terms[-1][1] += 1
        if before == "(":
            open_terms.append([len(shape), 0])
            shape.append((("function", 0), word))
        elif word != "(":
            shape.append(None)
            leaves.append(word)
    return tuple(shape), tuple(leaves)


class _Facts:
    """The facts of a game by their form, and the constants in each of their places.

    numbers  the number of each fact, by form and constants
    places   for each form, the constants in each place
    """

    def __init__(self, sheet: syntax.Rulesheet, facts: Sequence[str]) -> None:
        self.roles = set(sheet.roles)
        self.terms = [_shape_of(fact) for fact in facts]
        self.numbers = {term: number for number, term in enumerate(self.terms)}
        self._chains, self.places = list(_chains(sheet)), dict[Shape, list[set[str]]]()
        for shape in dict.fromkeys(shape for shape, _ in self.terms):
            rows = zip(*(leaves for own, leaves in self.terms if own == shape), strict=True)
            self.places[shape] = list(map(set, rows))

    def orders(self, constants: set[str]) -> list[tuple[str, list[str]]]:
        """Return constants in the order of each chain that has all of them, with its relation; "" for whole numbers."""
        if len(constants) < _FEWEST_IN_ORDER:
            return []
        chains = ((name, chain) for name, chain in self._chains if constants <= chain.keys())
        orders = [(name, sorted(constants, key=chain.__getitem__)) for name, chain in chains]
        if not orders and all(name.isdecimal() for name in constants):
            orders = [("", sorted(constants, key=int))]
        return orders


def _chains(sheet: syntax.Rulesheet) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the chains of a sheet: relations whose facts lead from one constant to the next, with their places."""
    after: dict[str, dict[str, str]] = {}
    for rule in sheet.rules:
        if not rule.body and len(rule.head.args) == 2 and rule.head.name not in KEYWORD_ARITY:
            first, second = (str(term).lower() for term in rule.head.args)
            after.setdefault(rule.head.name, {}).setdefault(first, second)
    for relation, following in after.items():
        starts = following.keys() - following.values()
        for start in sorted(starts):
            chain, name = {start: 0}, following.get(start)
            while name is not None and name not in chain:
                chain[name] = len(chain)
                name = following.get(name)
            if len(chain) >= _FEWEST_IN_ORDER:
                yield relation, chain


class _FactMatching:
    """The facts of the target and the source, and the names by which they correspond."""

    def __init__(self, names: NameMap, source: _Facts, target: _Facts) -> None:
        self._names, self._source, self._target = names, source, target

    def result(self) -> FactMap:
        entries: list[tuple[int, int, float]] = []
        forms = {shape: self._shape(shape) for shape in self._target.places}
        places = {own: self._places(own, other) for own, other in forms.items() if other in self._source.places}
        for row, (shape, leaves) in enumerate(self._target.terms):
            if shape in places:
                columns = self._columns(places[shape], forms[shape], leaves)
                entries += [(row, column, share) for column, share in columns]
        flat = np.array(entries, np.float64).reshape(-1, 3)
        return FactMap(flat[:, 0].astype(np.int64), flat[:, 1].astype(np.int64), flat[:, 2].copy())

    def _shape(self, shape: Shape) -> Shape:
        """Return the form in the source; a function without a match keeps its name."""
        return tuple(part and (part[0], self._names.source(*part) or part[1]) for part in shape)

    def _places(self, shape: Shape, theirs: Shape) -> list[_Place]:
        """Return the constants in each place of a form on both sides; in order, if they are mapped by that."""
        places = zip(self._target.places[shape], self._source.places[theirs], strict=True)
        return [self._in_order(own, other) for own, other in places]

    def _in_order(self, own: set[str], other: set[str]) -> _Place:
        """Return constants of both sides in the orders of relations that correspond, or of the first ones.

        On the same board, they stay without order: the source may lack facts with a constant, which moves the others.
        """
        if self._names.is_same_board:
            return own, other
        pairs = list(product(self._target.orders(own), self._source.orders(other)))
        alike = (pair for pair in pairs if self._names.source(("relation", 2), pair[0][0]) == pair[1][0])
        pair = next(alike, pairs[0] if pairs else None)
        return (own, other) if pair is None else (pair[0][1], pair[1][1])

    def _columns(self, places: Sequence[_Place], theirs: Shape, leaves: Sequence[str]) -> list[tuple[int, float]]:
        """Return the facts of the source that correspond to a fact, with shares that add up to 1; [] for none."""
        rows: list[tuple[tuple[str, ...], float]] = [((), 1.0)]
        for leaf, (own, other) in zip(leaves, places, strict=True):
            shares = self._shares(leaf, own, other)
            rows = [((*names, name), share * part) for names, share in rows for name, part in shares]
        numbers = self._source.numbers
        columns = [(numbers[theirs, names], share) for names, share in rows if (theirs, names) in numbers]
        total = sum(share for _, share in columns)
        return [(column, share / total) for column, share in columns] if total else []

    def _shares(self, name: str, own: list[str] | set[str], other: list[str] | set[str]) -> Shares:
        """Return the constants of the source that correspond to a constant in a place of a form, with their shares."""
        if isinstance(own, list) and isinstance(other, list):
            place = own.index(name) * (len(other) - 1) / (len(own) - 1)
            low = int(place)
            nearest = [(other[low], 1.0 - (place - low)), (other[min(low + 1, len(other) - 1)], place - low)]
            return [(constant, share) for constant, share in nearest if share > 0.0]
        kind = ("role" if name in self._target.roles else "constant", 0)
        match = self._names.source(kind, name)
        if match is None and name in other:
            match = name
        return [(match, 1.0)] if match is not None and match in other else []
