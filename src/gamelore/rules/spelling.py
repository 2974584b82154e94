"""What can be wrong with the names of a rulesheet: functions as in `flaws`, for the table of `check`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from . import relations
from .flaws import Flaw, Sheet
from .gdl import KEYWORD_ARITY, LOGICAL_WORDS, Atom, Constant, Function, Location, Rule, Variable

USUAL_NAME = re.compile(r"[A-Za-z0-9_+.-]+")


def keyword_as_name(sheet: Sheet) -> Iterator[Flaw]:
    seen: set[str] = set()
    for rule, term in sheet.names():
        if term.name in KEYWORD_ARITY.keys() | LOGICAL_WORDS and term.name not in seen:
            seen.add(term.name)
            what = "function" if isinstance(term, Function) else "constant"
            remedy = "rename it, or close the parenthesis before it"
            yield Flaw(term.location, f"the word '{term.name}' of GDL as a {what}", remedy, rule)


def several_arities(sheet: Sheet) -> Iterator[Flaw]:
    uses = [(rule, "relation", atom.name, len(atom.args), atom.location) for rule, atom in sheet.atoms()]
    for rule, term in sheet.names():
        if isinstance(term, Function):
            uses.append((rule, "function", term.name, len(term.args), term.location))
    arities: dict[tuple[str, str], list[int]] = {}
    for rule, what, name, arity, location in uses:
        known = arities.setdefault((what, name), [arity])
        if arity not in known:
            known.append(arity)
            message = f"the {what} '{name}' with {_arguments(arity)} here and {_arguments(known[0])} before"
            remedy = "add or remove arguments, or rename one of them: they never match each other"
            yield Flaw(location, message, remedy, rule)


def _arguments(number: int) -> str:
    return f"{number} argument{'s' * (number != 1)}"


def several_spellings(sheet: Sheet) -> Iterator[Flaw]:
    """Names are compared over the whole sheet, variables within their rule."""
    spellings: dict[str, list[str]] = {}
    for rule in sheet.rules:
        names = (written for written in _written_names(rule) if written.name not in KEYWORD_ARITY)
        yield from _differing(rule, names, spellings)
        yield from _differing(rule, _written_variables(sheet, rule), {})


def _differing(rule: Rule, written: Iterable[_Written], spellings: dict[str, list[str]]) -> Iterator[Flaw]:
    for name, spelling, location in written:
        known = spellings.setdefault(name, [spelling])
        if spelling not in known:
            known.append(spelling)
            message = f"'{spelling}' here and '{known[0]}' before: one name in several capitalisations"
            remedy = "write it the same everywhere; other systems may tell them apart, gamelore does not"
            yield Flaw(location, message, remedy, rule)


class _Written(NamedTuple):
    """A name in lower case, and how and where it is written."""

    name: str
    spelling: str
    location: Location


def _written_names(rule: Rule) -> Iterator[_Written]:
    for sentence in relations.sentences(rule):
        if isinstance(sentence, Atom):
            yield _Written(sentence.name, sentence.spelling, sentence.location)
        for term in relations.terms(sentence):
            if not isinstance(term, Variable):
                yield _Written(term.name, term.spelling, term.location)


def _written_variables(sheet: Sheet, rule: Rule) -> Iterator[_Written]:
    """The variables of a rule; where it was not parsed from its text, in lower case."""
    for variable in relations.variables(*relations.sentences(rule)):
        yield _Written(variable.name, sheet.written(variable), variable.location)


def unusual_characters(sheet: Sheet) -> Iterator[Flaw]:
    seen: set[str] = set()
    for rule in sheet.rules:
        for name, spelling, location in chain(_written_names(rule), _written_variables(sheet, rule)):
            bare = spelling.removeprefix("?")
            if name not in seen and not USUAL_NAME.fullmatch(bare):
                seen.add(name)
                unusual = USUAL_NAME.sub("", bare)[0]
                remedy = "use letters, digits, '_', '-', '+' and '.'; other systems may not read the rest"
                yield Flaw(location, f"the unusual character {unusual!r} in the name {spelling}", remedy, rule)


def relation_and_function(sheet: Sheet) -> Iterator[Flaw]:
    seen: set[str] = set()
    relation_names = sheet.heads | sheet.used
    for rule, term in sheet.names():
        if isinstance(term, Function) and term.name in relation_names - KEYWORD_ARITY.keys() and term.name not in seen:
            seen.add(term.name)
            remedy = "rename one of them; inside true, next and does it is a function, as a condition a relation"
            yield Flaw(term.location, f"the name '{term.name}' is both a function and a relation", remedy, rule)


def parenthesised(sheet: Sheet) -> Iterator[Flaw]:
    propositions = ((rule, "proposition", atom) for rule, atom in sheet.atoms() if not atom.args)
    constants = ((rule, "constant", term) for rule, term in sheet.names() if isinstance(term, Constant))
    seen: set[tuple[str, str]] = set()
    for rule, what, named in chain[tuple[Rule, str, Atom | Constant]](propositions, constants):
        if (what, named.name) not in seen and sheet.opens(named.location):
            seen.add((what, named.name))
            remedy = f"write {named}: some systems hold the two for different {what}s"
            yield Flaw(named.location, f"parentheses around the {what} {named}", remedy, rule)
