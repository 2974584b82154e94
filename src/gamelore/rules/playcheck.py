"""What playing shows wrong with a rulesheet: findings with a place, a remedy, and the moves that lead there.

    error    no-legal-move      a role has no move in a state that is not terminal
    error    no-goal            a role has no goal at the end
    error    several-goals      a role has several goals at the end
    error    goal-out-of-range  a goal is no whole number from 0 to 100
    error    unknown-role       a `legal` or a `goal` of somebody who is no role
    error    outside-base       a fact that `base` does not name, where the sheet has `base`
    error    outside-input      a legal move that `input` does not name, where the sheet has `input`
    error    no-perfect-model   a relation depends on its own negation in some state
    error    unplayable         it cannot even be loaded, on the engine that was asked for
    warning  no-end             a match need not end, or did not within the largest number of steps
    warning  too-large          what holds in some state is more than the limits allow to work out

An error leaves players or a referee without an answer, or misleads a system that believes the declarations. That a
match need not end does neither, and public puzzles are so: a warning.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..errors import GameloreError, GDLError, GDLSemanticError, GroundingError
from . import query
from .asp import Limits
from .check import Finding, Moves, Severity, placed
from .game import EngineName, Game, make
from .gdl import Function, Location, Rule, Rulesheet, Term, Variable, parse_term
from .relations import variables_of
from .tryout import Effort, Tryout, try_out
from .watch import Declared, Incident, Joints, Kind, Sample

QUESTION_LIMITS = Limits(seconds=5.0)  # for each question besides playing: `base` and `input`, the goals of a state


class Size(NamedTuple):
    """How large a compiled game is."""

    num_facts: int
    num_actions: int
    num_gates: int


@dataclass(frozen=True, slots=True)
class PlayReport:
    """What was played on which engine, and what it showed.

    reason: why the engine is not the native one; empty where it is. make_seconds: wall clock, to ground and compile.
    num_states: visited by the walk, all that are reachable where `all_states`; longest_match: in moves, None where
    unknown or without limit. Of `num_matches` random ones, of `num_steps` joint moves, some ended, some got stuck, some
    were cut after the largest number of moves, and the rest were going on when time was up. The means leave out rounds
    of matches that did not finish; None where nothing is left. remarks: what could not be looked at.
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


def play_check(
    sheet: Rulesheet, name: str, effort: Effort, engine: EngineName = "auto", limits: Limits | None = None
) -> PlayReport:
    """Plays a rulesheet that loads, and reports. Raises as `make` does."""
    start = time.monotonic()
    game = make(sheet, name, engine, limits)
    made = time.monotonic()
    remarks: list[str] = []
    tryout = try_out(game, effort, _declared(game, remarks))
    findings = sorted(_Findings(game, tryout, remarks).all(), key=lambda finding: (finding.line, finding.column))
    return _report(game, made - start, tryout, findings, remarks)


def _report(game: Game, make_seconds: float, tryout: Tryout, findings: list[Finding], remarks: list[str]) -> PlayReport:
    tally = tryout.tally
    return PlayReport(
        findings=findings,
        engine=game.engine,
        reason=game.engine_reason,
        size=_size(game),
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
        mean_goals={name: tally.mean_goal(role) for role, name in enumerate(game.roles)},
        remarks=remarks,
        interrupted=tryout.interrupted,
    )


def unplayable(error: GameloreError, path: Path | None) -> Finding:
    """The finding that a rulesheet cannot even be loaded, from what `play_check` raised."""
    if isinstance(error, GDLError):
        place = (error.line, error.column, error.rule, error.remedy)
        return Finding("error", "unplayable", error.message, path, *place)
    message, _, remedy = str(error).partition(". Remedy: ")
    return Finding("error", "unplayable", message, path, 1, 1, "", remedy or "raise the limits")


def _size(game: Game) -> Size | None:
    circuit = game.circuit
    return Size(circuit.num_facts, circuit.num_actions, circuit.num_gates) if circuit else None


def _declared(game: Game, remarks: list[str]) -> Declared:
    """What `base` and `input` say, and a remark where that is too much to be worked out."""
    heads = {rule.head.name for rule in game.rulesheet.rules}
    words = [word for word in ("base", "input") if word in heads]
    try:
        found = query.sentences(game.rulesheet, words, limits=QUESTION_LIMITS)
    except (GroundingError, GDLSemanticError) as error:
        remarks.append(f"what {' and '.join(words)} declare was not compared: {error}")
        return Declared()
    base = frozenset(fact for (fact,) in found["base"]) if "base" in words else None
    if "input" not in words:
        return Declared(base)
    return Declared(base, tuple(frozenset(move for who, move in found["input"] if who == role) for role in game.roles))


class _Findings:
    """The incidents of a tryout as findings."""

    def __init__(self, game: Game, tryout: Tryout, remarks: list[str]) -> None:
        self.game, self.sheet, self.tryout, self.remarks = game, game.rulesheet, tryout, remarks

    def all(self) -> Iterator[Finding]:
        for role, name in enumerate(self.game.roles):
            yield from self._no_legal_move(role, name)
            yield from self._unclear_goals(role, name)
            yield from self._large_goals(role, name)
        yield from self._outside_base()
        for role, name in enumerate(self.game.roles):
            yield from self._outside_input(role, name)
        yield from self._unknown_roles()
        yield from self._no_end()
        yield from self._unplayable()

    def _finding(
        self, severity: Severity, code: str, message: str, remedy: str, rule: Rule | None, joints: Joints
    ) -> Finding:
        place = rule.location if rule else Location(1, 1)
        return Finding(severity, code, message, self.sheet.path, *place, str(rule or ""), remedy, self._moves(joints))

    def _moves(self, joints: Joints) -> Moves:
        text = self.game.move_text
        return tuple(tuple(text(role, action) for role, action in enumerate(joint)) for joint in joints)

    def _incidents(self, kind: Kind, role: int = -1) -> list[tuple[str, Incident]]:
        """What the incidents of a kind are about, the nearest to the start first."""
        found = [
            (key.what, incident)
            for key, incident in self.tryout.watch.incidents.items()
            if (key.kind, key.role) == (kind, role)
        ]
        return sorted(found, key=lambda entry: entry[1].samples[0].depth)

    def _often(self, incident: Incident, what: str, num_walked: int, num_matches: int) -> str:
        """In how many of the states that were walked and of the random matches."""
        walked, matches = incident.counts["walk"], incident.counts["matches"]
        if self.tryout.complete:
            return f"in {walked} of all {num_walked} reachable {what}"
        parts = [f"in {walked} of the {num_walked} {what} nearest the start"] * (walked > 0)
        parts += [f"in {matches} of {num_matches} random matches"] * (matches > 0)
        return " and ".join(parts)

    def _no_legal_move(self, role: int, name: str) -> Iterator[Finding]:
        for _, incident in self._incidents("no-legal-move", role):
            often = self._often(incident, "states", self.tryout.num_states, self.tryout.tally.num_matches)
            message = f"{name} has no legal move in a state that is not terminal, {often}"
            remedy = f"add a rule as (<= (legal {name} noop) ..) that holds there, or let 'terminal' hold"
            rule = self._rule("legal", name)
            yield self._finding("error", "no-legal-move", message, remedy, rule, incident.samples[0].joints)

    def _unclear_goals(self, role: int, name: str) -> Iterator[Finding]:
        """Goals that are none, several or no number: one finding for each of these that the samples show."""
        deadline = time.monotonic() + QUESTION_LIMITS.seconds
        for _, incident in self._incidents("unclear-goal", role):
            often = self._often(incident, "terminal states", self.tryout.num_terminal, self.tryout.tally.num_ended)
            found: dict[str, Finding] = {}
            for sample in incident.samples:
                for finding in self._unclear_goal(name, sample, often):
                    found.setdefault(finding.code, finding)
                if time.monotonic() > deadline:
                    break
            yield from found.values()

    def _unclear_goal(self, name: str, sample: Sample, often: str) -> Iterator[Finding]:
        found = self._ask(["goal"], sample)
        values = [value for who, value in found["goal"] if who == name] if found else []
        if len(values) == 1:
            yield from self._out_of_range(name, values[0], sample)
        elif values:
            rules = [self._rule("goal", name, value) for value in values]
            message = f"{name} has the goals {' and '.join(values)} at the end; not exactly one {often}"
            remedy = f"let only one of them hold there: see {_lines(rules)}"
            yield self._finding("error", "several-goals", message, remedy, rules[0], sample.joints)
        else:
            message = f"{name} has no goal{'' if found else ' or several'} at the end; not exactly one {often}"
            remedy = f"add a rule as (<= (goal {name} 0) terminal ..) that holds there"
            yield self._finding("error", "no-goal", message, remedy, self._rule("goal", name), sample.joints)

    def _large_goals(self, role: int, name: str) -> Iterator[Finding]:
        for value, incident in self._incidents("goal-out-of-range", role):
            yield from self._out_of_range(name, value, incident.samples[0])

    def _out_of_range(self, name: str, value: str, sample: Sample) -> Iterator[Finding]:
        """A goal that a variable brings; of one that stands in the text the text shows it."""
        rule = self._rule("goal", name, value)
        if rule and isinstance(rule.head.args[1], Variable):
            message = f"expected a goal of {name} that is a whole number from 0 to 100, got {value}"
            remedy = "scale the goals of all roles to 0..100"
            yield self._finding("error", "goal-out-of-range", message, remedy, rule, sample.joints)

    def _outside_base(self) -> Iterator[Finding]:
        for name, found in _by_name(self._incidents("outside-base")).items():
            fact, incident = found[0]
            maker = self._rule("next" if incident.samples[0].depth else "init", fact)
            message = f"the fact {fact} is not in 'base'{_others(found, name)}"
            remedy = f"add (base {fact}), or correct {_lines([maker])}"
            rule = self._rule("base", fact)
            yield self._finding("error", "outside-base", message, remedy, rule, incident.samples[0].joints)

    def _outside_input(self, role: int, role_name: str) -> Iterator[Finding]:
        for name, found in _by_name(self._incidents("outside-input", role)).items():
            move, incident = found[0]
            maker = self._rule("legal", role_name, move)
            message = f"the legal move {move} of {role_name} is not in 'input'{_others(found, name)}"
            remedy = f"add (input {role_name} {move}), or correct {_lines([maker])}"
            rule = self._rule("input", role_name, move)
            yield self._finding("error", "outside-input", message, remedy, rule, incident.samples[0].joints)

    def _unknown_roles(self) -> Iterator[Finding]:
        """In the first state and in a terminal one; of a role that stands in the text the text shows it."""
        by_variable = [rule for rule in self.sheet.rules if rule.head.name in ("legal", "goal") and _role_is_open(rule)]
        seen: set[tuple[str, str]] = set()
        end = self.tryout.watch.end
        samples = (Sample([], self.game.initial), *((end,) if end else ()))
        for sample in samples if by_variable else ():
            found = self._ask(["legal", "goal"], sample)
            for word, name, what in ((word, *row) for word, rows in (found or {}).items() for row in rows):
                rule = self._rule(word, name, what)
                if name not in self.game.roles and (word, name) not in seen and rule in by_variable:
                    seen.add((word, name))
                    message = f"'{word}' of {name}, which is no role, holds"
                    remedy = f"declare it, or add the condition (role {rule.head.args[0]})"
                    yield self._finding("error", "unknown-role", message, remedy, rule, sample.joints)

    def _no_end(self) -> Iterator[Finding]:
        endless, tally = self.tryout.endless, self.tryout.tally
        if endless is None:
            return
        messages = []
        if endless.back_to is not None:
            after = f"after {_moves(endless.back_to)}" if endless.back_to else "at the start"
            messages = [f"a match need not end: after {_moves(len(endless.joints))} everything is as {after}"]
        if tally.num_cut:
            cut = f"{tally.num_cut} of {tally.num_matches} random matches"
            messages.append(f"{cut} had not ended after {_moves(self.tryout.effort.max_steps)}")
        remedy = "count the moves in a fact as (step ?n), and let 'terminal' hold at the last one"
        rule = self._rule("terminal")
        yield self._finding("warning", "no-end", "; ".join(messages), remedy, rule, endless.joints)

    def _unplayable(self) -> Iterator[Finding]:
        for message, incident in self._incidents("no-perfect-model"):
            error = placed(GDLSemanticError(message), self.sheet, "negation-in-cycle")
            rule = next((rule for rule in self.sheet.rules if str(rule) == error.rule), None)
            remedy = "write the rules of the cycle without what they define"
            yield self._finding("error", "no-perfect-model", message, remedy, rule, incident.samples[0].joints)
        for text, incident in self._incidents("too-large"):
            message, _, remedy = text.partition(". Remedy: ")
            remedy = remedy or "bound the terms that a recursive rule builds, or raise the limits"
            yield self._finding("warning", "too-large", message, remedy, None, incident.samples[0].joints)

    def _ask(self, words: Sequence[str], sample: Sample) -> query.Sentences | None:
        """What holds in a state; None, and a remark, where that is too much to be worked out."""
        try:
            return query.sentences(self.sheet, words, self.game.facts(sample.state), QUESTION_LIMITS)
        except (GroundingError, GDLSemanticError) as error:
            self.remarks.append(f"{' and '.join(words)} were not worked out for a state: {error}")
            return None

    def _rule(self, word: str, *arguments: str) -> Rule | None:
        """The first rule whose head may give this, else one whose arguments begin alike, else one with this word."""
        terms = [parse_term(argument) for argument in arguments]
        rules = [rule for rule in self.sheet.rules if rule.head.name == word]
        for fits in (_may_be, _alike):
            for rule in rules:
                binding: dict[str, Term] = {}
                if all(fits(pattern, term, binding) for pattern, term in zip(rule.head.args, terms, strict=False)):
                    return rule
        return rules[0] if rules else None


def _may_be(pattern: Term, term: Term, binding: dict[str, Term]) -> bool:
    """Whether a ground term is an instance of a pattern."""
    if isinstance(pattern, Variable):
        return binding.setdefault(pattern.name, term) == term
    if isinstance(pattern, Function) and isinstance(term, Function) and len(pattern.args) == len(term.args):
        pairs = zip(pattern.args, term.args, strict=True)
        return pattern.name == term.name and all(_may_be(inner, part, binding) for inner, part in pairs)
    return pattern == term


def _alike(pattern: Term, term: Term, binding: dict[str, Term]) -> bool:
    """Whether a ground term has the name of a pattern."""
    return isinstance(pattern, Variable) or pattern.name == term.name


def _role_is_open(rule: Rule) -> bool:
    return bool(variables_of(rule.head.args[0]))


def _by_name(incidents: Sequence[tuple[str, Incident]]) -> dict[str, list[tuple[str, Incident]]]:
    """Incidents about terms, by the terms' names."""
    found: dict[str, list[tuple[str, Incident]]] = {}
    for text, incident in incidents:
        found.setdefault(parse_term(text).name, []).append((text, incident))
    return found


def _others(found: Sequence[object], name: str) -> str:
    number = len(found) - 1
    return f", nor {'is another' if number == 1 else f'are {number} others'} of '{name}'" if number else ""


def _lines(rules: Sequence[Rule | None]) -> str:
    """Where rules stand: "the rules in lines 5 and 7"."""
    numbers = [str(line) for line in sorted({rule.location.line for rule in rules if rule})]
    plural = "s" * (len(numbers) > 1)
    return f"the rule{plural} in line{plural} {' and '.join(numbers)}"


def _moves(number: int) -> str:
    return f"{number} move{'s' * (number != 1)}"
