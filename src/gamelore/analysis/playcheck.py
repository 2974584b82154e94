"""The whole check of a rulesheet: findings in its text, and faults that only play shows, with moves that lead to them.

Findings of play:

    error    no-legal-move      a role has no move in a state that is not terminal
    error    no-goal            a role has no goal at the end
    error    several-goals      a role has several goals at the end
    error    unclear-goal       a role has no goal or several goals at the end; the limits did not suffice to tell which
    error    goal-out-of-range  a goal is not a whole number from 0 to 100
    error    unknown-role       a `legal` or `goal` atom holds whose first argument is not a role
    error    outside-base       a fact is reached that `base` does not declare; only if the sheet has `base`
    error    outside-input      a move is legal that `input` does not declare; only if the sheet has `input`
    error    no-perfect-model   a relation depends on its own negation in some state
    error    unplayable         the sheet cannot be loaded on the requested engine
    error    too-large          the text cannot be checked within the limits
    warning  no-end             a match can go on forever, or it did not end within the largest number of steps
    warning  too-large          a step of play exceeds the limits

An error leaves players or a referee without an answer, or misleads a system that trusts the declarations. An endless
match is only a warning: it causes neither of these problems, and some public puzzles have endless matches.

The check of the text and loading share one budget of time and memory. Play has its own time (`Effort.seconds`), and
shares the memory. Questions about `base`, `input`, roles and goals have little time of their own, see `_questions`. So
the whole check ends soon after the sum of the two limits of time, whatever the sheet. The report says what was cut.
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ..errors import GameloreError, GDLError, GDLSemanticError, GroundingError, shortened
from ..game.compile import rulesheet_findings
from ..game.game import EngineName, Game, make
from ..gdl.limits import Limits, check, exceeds, resident_memory, within
from ..gdl.lint import CHECK, MEND_FIRST, MORE, MOST_FINDINGS, REFUSED, Finding, Moves, Severity, findings_of
from ..gdl.syntax import Function, Location, Rule, Rulesheet, Term, Variable, parse, parse_term, variables_of
from ..ground import clingo
from ..ground.clingo import LongJoins
from ..ground.domains import long_joins
from ..ground.optimize import changing_bounds
from .explore import Declared, Effort, Incident, Joints, Kind, Sample, Tryout, try_out

NOT_PLAYED = REFUSED | {"syntax", "no-perfect-model"}  # kinds of errors after which a sheet is not played
FOR_QUESTIONS = 5.0  # seconds, at most, for the extra queries before play, and again after play
OF_THE_LIMITS = 1 / 8  # part, at most, of the limits of time for these queries
BEFORE_PLAY = 1 / 2  # part of the budget of loading for the check of the text, if the sheet is also played
MOST_REMARKS = 20
MORE_REMARKS = "further questions were not answered, either"
NAMED_GOALS = 8  # of a role with several goals at the end


class Size(NamedTuple):
    """Size of a compiled game."""

    num_facts: int
    num_actions: int
    num_gates: int


@dataclass(frozen=True, slots=True)
class PlayReport:
    """The result of a play check: the findings, the engine, and statistics of the walk and of the random matches.

    reason: why the engine is not the native one; empty if it is native. make_seconds: the wall-clock time to ground and
    compile the rules. num_states: the number of states that the walk visited; these are all reachable states if
    `all_states` is true. longest_match: the number of moves of the longest possible match; None if it is unknown or
    unlimited.

    `num_matches` random matches were played, with `num_steps` joint moves in total. Of these matches, `num_ended`
    ended, `num_stuck` got stuck, and `num_cut` were cut after the largest number of moves. The other matches were
    unfinished when time was up. Matches are played in rounds, see explore.py. The means `mean_length` and `mean_goals`
    leave out all rounds with unfinished matches; a mean is None if it has no values. remarks: the queries that exceeded
    the limits, at most MOST_REMARKS and one that tells that there are more.
    """

    findings: list[Finding]
    engine: str
    reason: str
    size: Size | None
    make_seconds: float
    play_seconds: float
    num_states: int
    all_states: bool
    longest_match: int | None
    num_matches: int
    num_steps: int
    num_ended: int
    num_stuck: int
    num_cut: int
    mean_length: float | None
    mean_goals: dict[str, float | None]
    remarks: list[str]
    interrupted: bool


@dataclass
class CheckedSheet:
    """A checked rulesheet: its findings, and the report of play or the reason why the sheet was not played.

    game: the name of the game with the chosen options. interrupted: whether Ctrl-C ended the check. make_seconds: see
    PlayReport.
    """

    path: Path | None
    game: str
    findings: list[Finding] = field(default_factory=list)
    report: PlayReport | None = None
    not_played: str = ""
    interrupted: bool = False
    make_seconds: float = 0.0

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings in the order of the text."""
        self.findings = sorted([*self.findings, *findings], key=lambda finding: (finding.line, finding.column))

    @property
    def title(self) -> str:
        """The path, or the name of the game, followed by the chosen options."""
        name, colon, options = self.game.partition(":")
        return f"{self.path or name}{colon}{options}"


def check_sheet(
    path: Path | None,
    text: str,
    name: str,
    effort: Effort | None = None,
    engine: EngineName = "auto",
    limits: Limits | None = None,
) -> CheckedSheet:
    """Return the findings in the text of a rulesheet and, if `effort` is given, the findings of play.

    `path`, `text` and `name` are those that `rulesheets.sheet_or_text` returns. A sheet that cannot be loaded gets a
    finding. Ctrl-C ends the check, and keeps the findings until then.
    """
    checked = CheckedSheet(path, name)
    limits, memory = limits or Limits(), resident_memory()
    try:
        with within(limits, CHECK):
            game = _loaded(checked, text, engine, limits, effort is not None)
        if game is not None and effort is not None:
            checked.report = _played(game, effort, limits, memory, checked.make_seconds)
            checked.add(checked.report.findings)
            checked.interrupted = checked.report.interrupted
    except KeyboardInterrupt:
        checked.interrupted, checked.not_played = True, "the check was interrupted"
    return checked


def _loaded(checked: CheckedSheet, text: str, engine: EngineName, limits: Limits, is_played: bool) -> Game | None:
    """Add the findings in the text to `checked`, and load the game. Return None if it is not to be played."""
    checked.add(rulesheet_findings(text, checked.path, limits.share(BEFORE_PLAY) if is_played else limits))
    if not is_played:
        return None
    errors = {finding.code for finding in checked.findings if finding.severity == "error"}
    if "too-large" in errors:
        checked.not_played = "its text cannot be checked within the limits"
        return None
    if not NOT_PLAYED.isdisjoint(errors):
        checked.not_played = "it has errors that must be corrected first"
        return None
    start = time.monotonic()
    try:
        game = make(parse(text, checked.path), checked.game, engine, limits)
    except GameloreError as error:
        checked.add([unplayable(error, checked.path)])
        checked.not_played = "it cannot be loaded"
        return None
    checked.make_seconds = time.monotonic() - start
    return game


def play_check(
    sheet: Rulesheet, name: str, effort: Effort, engine: EngineName = "auto", limits: Limits | None = None
) -> PlayReport:
    """Load and play a rulesheet and return a report. If the sheet cannot be loaded, raise the error of `make`."""
    limits, memory, start = limits or Limits(), resident_memory(), time.monotonic()
    game = make(sheet, name, engine, limits)
    return _played(game, effort, limits, memory, time.monotonic() - start)


def _played(game: Game, effort: Effort, limits: Limits, memory: int, make_seconds: float) -> PlayReport:
    """Play a game and return a report. `memory`: the memory of the process before the game was loaded, in bytes."""
    remarks = _Remarks()
    ceiling = max(memory + limits.memory, resident_memory() + limits.memory // 2)
    with _questions(effort, limits, ceiling):
        declared = _declared(game, remarks)
    tryout = try_out(game, replace(effort, memory=ceiling - resident_memory()), declared)
    with _questions(effort, limits, ceiling):
        findings = sorted(_Findings(game, tryout, remarks).all(), key=lambda finding: (finding.line, finding.column))
    circuit, tally = game.circuit, tryout.tally
    return PlayReport(
        findings=findings,
        engine=game.engine,
        reason=game.engine_reason,
        size=Size(circuit.num_facts, circuit.num_actions, circuit.num_gates) if circuit else None,
        make_seconds=make_seconds,
        play_seconds=tryout.seconds,
        num_states=tryout.num_states,
        all_states=tryout.complete,
        longest_match=tryout.longest,
        num_matches=tally.num_matches,
        num_steps=tally.num_steps,
        num_ended=tally.num_ended,
        num_stuck=tally.num_stuck,
        num_cut=tally.num_cut,
        mean_length=tally.mean_length(),
        mean_goals=dict(zip(game.roles, tally.mean_goals(game.num_roles), strict=True)),
        remarks=remarks.texts,
        interrupted=tryout.interrupted,
    )


@contextmanager
def _questions(effort: Effort, limits: Limits, ceiling: int) -> Iterator[None]:
    """Open the budget of the extra queries before or after play. `ceiling`: largest memory of the process, in bytes."""
    seconds = OF_THE_LIMITS * (limits.seconds + (limits.seconds if effort.seconds is None else effort.seconds))
    memory = max(ceiling - resident_memory(), limits.memory // 16)
    with within(Limits(min(FOR_QUESTIONS, seconds), memory=memory), "the questions about states to be answered"):
        yield


def unplayable(error: GameloreError, path: Path | None) -> Finding:
    """Return the finding that a rulesheet cannot be loaded; `error` is the exception that `play_check` raised."""
    if isinstance(error, GDLError):
        place = (error.line, error.column, error.rule, error.remedy)
        return Finding("error", "unplayable", error.message, path, *place)
    message, remedy = (error.message, error.remedy) if isinstance(error, GroundingError) else (str(error), "")
    return Finding("error", "unplayable", message, path, 1, 1, "", remedy or "raise the limits")


class _Remarks:
    """The remarks of a report, limited in number and length. Equal remarks are one."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        text = shortened(text)
        if text not in self.texts and len(self.texts) <= MOST_REMARKS:
            self.texts.append(text if len(self.texts) < MOST_REMARKS else MORE_REMARKS)


def _declared(game: Game, remarks: _Remarks) -> Declared:
    """Return the declarations of `base` and `input`, but not those that depend on the state.

    If they exceed the limits, add a remark and return none.
    """
    heads = {rule.head.name for rule in game.rulesheet.rules} - changing_bounds(game.rulesheet)
    words = [word for word in ("base", "input") if word in heads]
    try:
        sentences = clingo.state_sentences(game.rulesheet, words, long_joins=long_joins(game.rulesheet))
    except (GroundingError, GDLSemanticError) as error:
        remarks.add(f"facts and moves were not compared with {' and '.join(words)}: {error}")
        return Declared()
    base = frozenset(fact for (fact,) in sentences["base"]) if "base" in words else None
    if "input" not in words:
        return Declared(base)
    inputs: dict[str, set[str]] = {role: set() for role in game.roles}
    for role, move in sentences["input"]:
        if role in inputs:
            inputs[role].add(move)
    return Declared(base, tuple(map(frozenset, inputs.values())))


class _Findings:
    """Converter from the incidents of a tryout to findings.

    Its budget may end at any time. From then on findings lack their rules or their moves, and what needs an answer to a
    question is left out; remarks tell it.
    """

    def __init__(self, game: Game, tryout: Tryout, remarks: _Remarks) -> None:
        self.game, self.sheet, self.tryout, self.remarks = game, game.rulesheet, tryout, remarks
        self._num_findings: Counter[str] = Counter()  # of each code
        self._has_ended = False  # whether the budget has
        self.by_role: dict[tuple[Kind, int], list[tuple[str, Incident]]] = {}
        for key, incident in tryout.watch.incidents.items():
            self.by_role.setdefault((key.kind, key.role), []).append((key.what, incident))

    def all(self) -> Iterator[Finding]:
        """Yield the findings, at most MOST_FINDINGS of each kind, and then one that tells that there are more."""
        for finding in self._each():
            self._num_findings[finding.code] += 1
            if self._num_findings[finding.code] <= MOST_FINDINGS:
                yield finding
            elif self._num_findings[finding.code] == MOST_FINDINGS + 1:
                place = finding.line, finding.column
                yield Finding(finding.severity, finding.code, MORE, self.sheet.path, *place, "", MEND_FIRST)

    def _is_full(self, code: str) -> bool:
        """Return whether no more findings of a kind are shown; to make them would take time for each role or fact."""
        return self._num_findings[code] > MOST_FINDINGS

    def _each(self) -> Iterator[Finding]:
        for role, name in enumerate(self.game.roles):
            yield from self._no_legal_move(role, name)
            yield from self._unclear_goals(role, name)
            for value, incident in self._incidents("goal-out-of-range", role):
                yield from self._out_of_range(name, value, incident.samples[0])
        yield from self._undeclared("outside-base")
        for role in range(self.game.num_roles):
            yield from self._undeclared("outside-input", role)
        yield from self._unknown_roles()
        yield from self._no_end()
        yield from self._unplayable()

    def _finding(
        self, severity: Severity, code: str, message: str, remedy: str, rule: Rule | None, joints: Joints
    ) -> Finding:
        place = rule.location if rule else Location(1, 1)
        return Finding(severity, code, message, self.sheet.path, *place, str(rule or ""), remedy, self._moves(joints))

    def _moves(self, joints: Joints) -> Moves | None:
        """Return joint moves as text. If this takes too long, as with thousands of roles, return None."""
        try:
            return tuple(map(self._joint, joints))
        except GroundingError:
            return None

    def _joint(self, joint: Sequence[int]) -> tuple[str, ...]:
        self._check()
        return tuple(self.game.move_text(role, action) for role, action in enumerate(joint))

    def _incidents(self, kind: Kind, role: int = -1) -> list[tuple[str, Incident]]:
        """Return (subject, incident) for each incident of a kind and role; incidents nearest the start come first."""
        return sorted(self.by_role.get((kind, role), ()), key=lambda entry: entry[1].samples[0].depth)

    def _often(self, incident: Incident, what: str, num_walked: int, num_matches: int) -> str:
        """Return a text that says in how many states of the walk and in how many matches the incident occurred."""
        walked, matches = incident.counts["walk"], incident.counts["matches"]
        if self.tryout.complete:
            return f"in {walked} of all {num_walked} reachable {what}"
        parts = [f"in {walked} of the {num_walked} {what} nearest the start"] * (walked > 0)
        parts += [f"in {matches} of {num_matches} random matches"] * (matches > 0)
        return " and ".join(parts)

    def _no_legal_move(self, role: int, name: str) -> Iterator[Finding]:
        if self._is_full("no-legal-move"):
            return
        for _, incident in self._incidents("no-legal-move", role):
            often = self._often(incident, "states", self.tryout.num_states, self.tryout.tally.num_matches)
            message = f"{name} has no legal move in a state that is not terminal; this happens {often}"
            remedy = (
                f"add a rule such as (<= (legal {name} noop) ...) that holds in this state, or make the state terminal"
            )
            rule = self._rule("legal", name)
            yield self._finding("error", "no-legal-move", message, remedy, rule, incident.samples[0].joints)

    def _unclear_goals(self, role: int, name: str) -> Iterator[Finding]:
        """Yield one finding for each fault in the goals of the samples: no goal, several goals, or not a number."""
        for _, incident in self._incidents("unclear-goal", role):
            often = self._often(incident, "terminal states", self.tryout.num_terminal, self.tryout.tally.num_ended)
            findings: dict[str, Finding] = {}
            answered = [(sample, goals) for sample in incident.samples if (goals := self._ask(["goal"], sample))]
            for sample, goals in answered:
                values = [value for who, value in goals["goal"] if who == name]
                for finding in self._unclear_goal(name, values, sample, often):
                    findings.setdefault(finding.code, finding)
            yield from findings.values()
            if not answered and not self._is_full("unclear-goal"):
                yield self._unanswered_goal(name, incident.samples[0], often)

    def _unanswered_goal(self, name: str, sample: Sample, often: str) -> Finding:
        message = f"{name} has no goal or several goals at the end, not exactly one goal; this happens {often}"
        remedy = "raise the limits to see which of the two it is, and make exactly one goal hold in this state"
        return self._finding("error", "unclear-goal", message, remedy, self._rule("goal", name), sample.joints)

    def _unclear_goal(self, name: str, values: Sequence[str], sample: Sample, often: str) -> Iterator[Finding]:
        if len(values) == 1:
            yield from self._out_of_range(name, values[0], sample)
        elif self._is_full("several-goals" if values else "no-goal"):
            return
        elif values:
            rules = [self._rule("goal", name, value) for value in values[:NAMED_GOALS]]
            more = f" and {len(values) - NAMED_GOALS} more" if len(values) > NAMED_GOALS else ""
            goals = f"{' and '.join(values[:NAMED_GOALS])}{more}"
            message = f"{name} has the goals {goals} at the end, not exactly one goal; this happens {often}"
            remedy = f"make only one of these goals hold in this state: see {_lines(rules)}"
            yield self._finding("error", "several-goals", message, remedy, rules[0], sample.joints)
        else:
            message = f"{name} has no goal at the end, not exactly one goal; this happens {often}"
            remedy = f"add a rule such as (<= (goal {name} 0) terminal ...) that holds in this state"
            yield self._finding("error", "no-goal", message, remedy, self._rule("goal", name), sample.joints)

    def _out_of_range(self, name: str, value: str, sample: Sample) -> Iterator[Finding]:
        """Yield a finding if the rule for this goal has a variable as value; `gdl.lint` reports all other values."""
        rule = None if self._is_full("goal-out-of-range") else self._rule("goal", name, value)
        if rule and isinstance(rule.head.args[1], Variable):
            message = f"expected a goal of {name} that is a whole number from 0 to 100, got {value}"
            remedy = "scale the goals of all roles to the range from 0 to 100"
            yield self._finding("error", "goal-out-of-range", message, remedy, rule, sample.joints)

    def _undeclared(self, kind: Kind, role: int = -1) -> Iterator[Finding]:
        """Yield one finding for each name of undeclared facts (kind outside-base) or moves (kind outside-input)."""
        word, roles = kind.removeprefix("outside-"), () if role < 0 else (self.game.roles[role],)
        for name, incidents in _by_name(self._incidents(kind, role)).items():
            if self._is_full(kind):
                return
            text, incident = incidents[0]
            first = incident.samples[0]
            maker = self._rule("legal" if roles else "next" if first.depth else "init", *roles, text)
            subject = f"the legal move {text} of {roles[0]}" if roles else f"the fact {text}"
            message = f"{subject} is not in '{word}'{_others(incidents, name, kind in self.tryout.watch.left_out)}"
            remedy = f"add ({' '.join((word, *roles, text))}), or correct {_lines([maker])}"
            yield self._finding("error", kind, message, remedy, self._rule(word, *roles, text), first.joints)

    def _unknown_roles(self) -> Iterator[Finding]:
        """Yield a finding for each unknown role in the first state or in one terminal state.

        Only rules with a variable as role are examined; `gdl.lint` reports unknown roles that the text names.
        """
        heads = [rule for rule in self.sheet.rules if rule.head.name in ("legal", "goal")]
        roles = set(self.game.roles)
        seen: set[tuple[str, str]] = set()
        end = self.tryout.watch.end
        samples = (Sample([], self.game.initial), *((end,) if end else ()))
        for sample in samples if any(variables_of(rule.head.args[0]) for rule in heads) else ():
            sentences = self._ask(["legal", "goal"], sample) or {}
            for word, name, what in ((word, *row) for word, rows in sentences.items() for row in rows):
                if name in roles or (word, name) in seen or self._is_full("unknown-role"):
                    continue
                rule = self._rule(word, name, what)
                if rule and variables_of(rule.head.args[0]):
                    seen.add((word, name))
                    message = f"'{word}' holds for {name}, but {name} is not declared as a role"
                    remedy = f"add (role {name}), or add the condition (role {rule.head.args[0]}) to this rule"
                    yield self._finding("error", "unknown-role", message, remedy, rule, sample.joints)

    def _no_end(self) -> Iterator[Finding]:
        endless, tally = self.tryout.endless, self.tryout.tally
        if endless is None:
            return
        messages = []
        if endless.back_to is not None:
            before = f"after {_moves(endless.back_to)}" if endless.back_to else "at the start"
            messages = [f"a match may never end: after {_moves(len(endless.joints))} the state is the same as {before}"]
        if tally.num_cut:
            cut = f"{tally.num_cut} of {tally.num_matches} random matches"
            messages.append(f"{cut} had not ended after {_moves(self.tryout.effort.max_steps)}")
        remedy = "count the moves in a fact such as (step ?n), and make the state after the last one terminal"
        rule = self._rule("terminal")
        yield self._finding("warning", "no-end", "; ".join(messages), remedy, rule, endless.joints)

    def _unplayable(self) -> Iterator[Finding]:
        for message, incident in self._incidents("no-perfect-model"):
            rules = self._negating_rules()
            remedy = "remove the negation from the cycle" + f"; one of {_lines(rules)} has it" * (len(rules) > 1)
            rule = next(iter(rules), None)
            yield self._finding("error", "no-perfect-model", message, remedy, rule, incident.samples[0].joints)
        for message, incident in self._incidents("too-large"):
            remedy = "limit the terms that a recursive rule builds, or raise the limits"
            yield self._finding("warning", "too-large", message, remedy, None, incident.samples[0].joints)
        if self.tryout.cut:
            cut, path = self.tryout.cut, self.sheet.path
            yield Finding("warning", "too-large", cut, path, 1, 1, "", "raise the limit of memory")

    def _ask(self, words: Sequence[str], sample: Sample) -> clingo.Sentences | None:
        """Return the sentences of these relations that hold in a state. At the limits, add a remark and return None."""
        self._has_ended = self._has_ended or bool(exceeds())
        if self._has_ended:
            self.remarks.add(f"{' and '.join(words)} could not be computed in some states within the limits")
            return None
        try:
            facts = self.game.facts(sample.state)
            return clingo.state_sentences(self.sheet, words, facts, long_joins=self._long_joins)
        except (GroundingError, GDLSemanticError) as error:
            self.remarks.add(f"{' and '.join(words)} could not be computed in a state: {error}")
            return None

    @cached_property
    def _long_joins(self) -> LongJoins:
        return long_joins(self.sheet)

    def _rule(self, word: str, *arguments: str) -> Rule | None:
        """Return the rule that fits an atom best; None if no rule defines its relation.

        The first choice is a rule whose head matches the atom, the second a rule whose arguments have the same names,
        and the third any rule for the relation. After the end of the budget, add a remark and return None.
        """
        try:
            self._check()
            terms = [parse_term(argument) for argument in arguments]
            for fits in (_may_be, _alike):
                for _, rule in self._candidates(word, terms):
                    self._check()
                    binding: dict[str, Term] = {}
                    if all(fits(pattern, term, binding) for pattern, term in zip(rule.head.args, terms, strict=False)):
                        return rule
        except GroundingError:
            self._has_ended = True
            self.remarks.add("the rules of some findings were not looked up within the limits")
            return None
        return next((rule for _, rule in self._rules.get((word, None), ())), None)

    @cached_property
    def _rules(self) -> dict[tuple[str, str | None], list[tuple[int, Rule]]]:
        """The rules and their places in the text, by the names of their relation and first argument, see `_first`.

        With None in place of an argument: the first rule of the relation.
        """
        rules: dict[tuple[str, str | None], list[tuple[int, Rule]]] = {}
        for place, rule in enumerate(self.sheet.rules):
            rules.setdefault((rule.head.name, None), [(place, rule)])
            rules.setdefault((rule.head.name, _first(rule.head.args)), []).append((place, rule))
        return rules

    def _candidates(self, word: str, terms: Sequence[Term]) -> Iterator[tuple[int, Rule]]:
        """Return the rules whose first argument fits, in the order of the text."""
        names = {"", _first(terms)}
        return heapq.merge(*(self._rules.get((word, name), []) for name in names), key=lambda entry: entry[0])

    def _negating_rules(self) -> list[Rule]:
        """Return the rules with a negation in a cycle. After the end of the budget, return none."""
        try:
            self._check()
            flaws = findings_of(self.sheet, "negation-in-cycle")
        except GroundingError:
            return []
        places = [rule.location for rule in self.sheet.rules]  # ascending, as in the text
        numbers = {bisect_right(places, (flaw.line, flaw.column)) - 1 for flaw in flaws}
        return [self.sheet.rules[number] for number in sorted(numbers)]

    def _check(self) -> None:
        """Raise GroundingError if the budget has ended, from then on at once."""
        try:
            check()
        except GroundingError:
            self._has_ended = True
        if self._has_ended:
            raise GroundingError("expected the findings to be made within the limits, but they were not")


def _first(terms: Sequence[Term]) -> str:
    """Return the name of the first term; "" if it is a variable, or if there is none."""
    return "" if not terms or isinstance(terms[0], Variable) else terms[0].name


def _may_be(pattern: Term, term: Term, binding: dict[str, Term]) -> bool:
    """Return whether a ground term is an instance of a pattern."""
    if isinstance(pattern, Variable):
        return binding.setdefault(pattern.name, term) == term
    if isinstance(pattern, Function) and isinstance(term, Function) and len(pattern.args) == len(term.args):
        pairs = zip(pattern.args, term.args, strict=True)
        return pattern.name == term.name and all(_may_be(inner, part, binding) for inner, part in pairs)
    return pattern == term


def _alike(pattern: Term, term: Term, binding: dict[str, Term]) -> bool:
    """Return whether a ground term and a pattern have the same name; a variable matches every name."""
    return isinstance(pattern, Variable) or pattern.name == term.name


def _by_name(incidents: Sequence[tuple[str, Incident]]) -> dict[str, list[tuple[str, Incident]]]:
    """Group incidents about facts or moves by the name of the fact or move."""
    groups: dict[str, list[tuple[str, Incident]]] = {}
    for text, incident in incidents:
        groups.setdefault(parse_term(text).name, []).append((text, incident))
    return groups


def _others(incidents: Sequence[object], name: str, are_more: bool) -> str:
    """Return a text with the number of further incidents with this name; empty if there are none.

    are_more: whether not all incidents were recorded.
    """
    number = len(incidents) - 1
    least = "at least " if are_more else ""
    others = "the same is true of one more" if number == 1 else f"the same is true of {least}{number} more"
    return f", and {others} with the name '{name}'" if number else ""


def _lines(rules: Sequence[Rule | None]) -> str:
    """Return the line numbers of rules as text, such as "the rules in lines 5 and 7"."""
    numbers = [str(line) for line in sorted({rule.location.line for rule in rules if rule})]
    if not numbers:
        return "its rules"
    plural = "s" * (len(numbers) > 1)
    return f"the rule{plural} in line{plural} {' and '.join(numbers)}"


def _moves(number: int) -> str:
    return f"{number} move{'s' * (number != 1)}"
