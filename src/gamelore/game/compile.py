"""Pipeline from a rulesheet to an engine: native engines, bounded engines, and findings that need grounding.

    rulesheet -> rewritten rules -> ground program -> circuit -> tapes -> machine code

`native_engine` runs all steps. Each step is a function of another package. The cache stores compiled games. It also
stores the refusals of games that are too large.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..circuit import cache
from ..circuit.aig import Circuit
from ..circuit.tape import record_circuit
from ..circuit.translate import NegationInCycleError, build
from ..errors import GDLSemanticError, GroundingError
from ..gdl import lint
from ..gdl.limits import Limits, enforced, within, working_on
from ..gdl.syntax import Rulesheet, parse
from ..ground import optimize
from ..ground.clingo import Names
from ..ground.program import GroundProgram, ground
from .engines import BoundedEngine, NativeEngine, ReasonerEngine

ONLY_BOUNDED = "the whole game is too large, so only the states within `base` and `input` are compiled"
# Parts of the limits, so that something is left for the next attempt: of the whole game, where bounds are declared and
# where they are not, and of the game within its bounds. The reasoner gets the rest.
BEFORE_BOUNDS, WITHOUT_BOUNDS, WITHIN_BOUNDS = 0.6, 0.85, 0.25


def native_engine(rules: Rulesheet, sheet: Rulesheet, limits: Limits, rewrite: bool) -> NativeEngine:
    """Compile rules to a native engine: every step from the rules to machine code.

    Args:
        rules: the rules to compile: the sheet itself, or the sheet bounded by its `base` and `input`.
        sheet: the rulesheet whose lines and columns appear in error messages.
        limits: the limits of compiling.
        rewrite: whether to rewrite the rules before grounding. The answers are the same, but the ground program is
            smaller.

    Raises:
        GroundingError: the ground program or the circuit exceeds the limits.
        GDLSemanticError: an atom depends on its own negation.
    """
    working_on("looking for the compiled game")
    names = Names(rules)
    key = cache.key(rules, limits.literals, rewrite)
    compiled = cache.load(key)
    if compiled is not None:
        return NativeEngine(names, *compiled)
    refusal = cache.refusal(key, limits)
    if refusal is not None:
        raise refusal
    try:
        with within(limits) as budget:
            if rewrite:
                rules = optimize.rewrite(rules)  # equivalent rules with a smaller ground program
            program = ground(rules, limits, names)  # rules without variables, over integer atoms
            # An and-inverter graph. Its inputs are facts and actions; its outputs are legal moves, goals, next facts.
            circuit = _circuit(sheet, program)
            tapes = record_circuit(circuit)  # the gates as numbers, in evaluation order
    except GroundingError as error:
        # Other threads may have used the memory, calls around this one the nesting, and steps before it the time.
        if not (budget.steps.are_out_of_memory or budget.steps.are_nested_too_deeply or budget.is_cut):
            cache.store_refusal(key, limits, error)
        raise
    cache.store(key, program.roles, circuit, tapes)
    return NativeEngine(names, program.roles, circuit, tapes)  # the engine loads the machine code that runs the tapes


def bounded_engine(
    sheet: Rulesheet, inside: Rulesheet | None, limits: Limits, rewrite: bool, part: float = WITHIN_BOUNDS
) -> BoundedEngine:
    """Return an engine that is compiled within the bounds that the sheet declares by `base` and `input`.

    inside: the rules within these bounds, see `optimize.within_bounds`.
    part: the part of the limits that compiling may use.

    Raises GroundingError if there are no such rules, or if the bounded game is still too large.
    """
    if inside is None:
        raise GroundingError("expected a rulesheet with bounds that can be applied, got none", "use another engine")
    native = native_engine(inside, sheet, limits.share(part), rewrite)
    return BoundedEngine(sheet, native, partial(ReasonerEngine, sheet, limits, rewrite, native.names))


def compiled_engine(sheet: Rulesheet, limits: Limits, rewrite: bool) -> tuple[NativeEngine | BoundedEngine, str]:
    """Return a native engine and "". If the game is too large, return a bounded engine and the reason.

    Raises GroundingError if the bounded game is too large as well.
    """
    inside = optimize.within_bounds(sheet)
    try:
        part = WITHOUT_BOUNDS if inside is None else BEFORE_BOUNDS
        return native_engine(sheet, sheet, limits.share(part), rewrite), ""
    except GroundingError as error:
        # The tracebacks of the error and of its causes hold the ground program in memory.
        too_large = GroundingError(error.message, error.remedy)
    try:
        bounded = bounded_engine(sheet, inside, limits, rewrite)
    except GroundingError:
        raise too_large from None
    return bounded, f"{ONLY_BOUNDED}: {too_large.message}"


def rulesheet_findings(text: str, path: Path | None = None, limits: Limits | None = None) -> list[lint.Finding]:
    """Return the findings of `lint_text`; check cycles of relations with negation by grounding.

    For `lint_text`, such a cycle is a warning, because the game may still have a perfect model. If ground atoms form a
    cycle with negation as well, this function replaces the warning by an error. Other such warnings stay, and all of
    them if the sheet exceeds the limits, or if it is refused for another reason.

    Both have one budget. If it ends in `lint_text`, the findings until then are returned, and one that says so.
    """
    limits = limits or Limits()
    with within(limits, lint.CHECK):
        findings = lint.lint_text(text, path, limits)
        codes = {finding.code for finding in findings}
        if "negation-in-cycle" not in codes or not codes.isdisjoint(lint.REFUSED | {"too-large"}):
            return findings
        try:
            error = enforced(partial(_negation_in_cycle, text, path, limits), limits, lint.CHECK)
        except (GroundingError, GDLSemanticError):
            return findings
    if error:
        place = error.line, error.column
        findings = [f for f in findings if f.code != "negation-in-cycle" or (f.line, f.column) != place]
        location = (error.path, error.line, error.column, error.rule, error.remedy)
        findings.append(lint.Finding("error", "no-perfect-model", error.message, *location))
    return sorted(findings, key=lambda finding: (finding.line, finding.column))


def _negation_in_cycle(text: str, path: Path | None, limits: Limits) -> GDLSemanticError | None:
    """Return the error that ground atoms form a cycle with negation; None if they do not."""
    sheet = parse(text, path)
    program = ground(sheet, limits)
    try:
        _circuit(sheet, program)
    except GDLSemanticError as error:
        return error
    return None


def _circuit(sheet: Rulesheet, program: GroundProgram) -> Circuit:
    """Build the circuit. An error about negation gets its place in the sheet."""
    try:
        return build(program)
    except NegationInCycleError as error:
        raise lint.placed(error, sheet, error.head, error.negated) from None
