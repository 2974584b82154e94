"""Well-formedness of a rulesheet: findings, each with its place, its rule and a remedy.

`check` looks at the text only; what shows in play alone (a role without a move, a match without end) `playcheck` finds.
Negation inside a cycle of relations is a warning; of ground atoms, where there is no perfect model, `game.findings`
makes it an error.
The definitions are those of Love, Hinrichs, Haley, Schkufza and Genesereth, "General Game Playing: Game Description
Language Specification" (2008). Some that it holds for errors are warnings here: public rulesheets have them and play.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ..errors import GDLSemanticError
from . import flaws, spelling
from .flaws import Flaw, Sheet
from .gdl import Rulesheet, parse_around_errors

Severity: TypeAlias = Literal["error", "warning"]
Moves: TypeAlias = tuple[tuple[str, ...], ...]
"""Joint moves from the start; of each the moves of the roles, in their order."""
SHOWN_MOVES = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a place: `line` and `column` from 1, `rule` the text of the rule or empty.

    witness: the moves that lead to it, of what shows in play only.
    """

    severity: Severity
    code: str
    message: str
    path: Path | None
    line: int
    column: int
    rule: str
    remedy: str
    witness: Moves | None = None

    def __str__(self) -> str:
        place = f"{self.path or '<text>'}:{self.line}:{self.column}"
        in_rule = f"\n  in {self.rule}" if self.rule else ""
        after = "" if self.witness is None else f"\n  {_after(self.witness)}"
        return f"{place}: {self.severity}: {self.message} [{self.code}]{in_rule}{after}\n  remedy: {self.remedy}"


def _after(moves: Moves) -> str:
    """The moves on one line, as `gamelore show` takes them; of many the first and the last."""
    if not moves:
        return "at the start"
    joint = [f"--play {shlex.quote(' '.join(move))}" for move in moves]
    if len(joint) > SHOWN_MOVES:
        joint[SHOWN_MOVES // 2 : -SHOWN_MOVES // 2] = [f".. {len(joint) - SHOWN_MOVES} more .."]
    return f"after {len(moves)} move{'s' * (len(moves) != 1)}: {' '.join(joint)}"


class Check(NamedTuple):
    """One check: the code and severity of its findings, whether loading refuses them, and who finds them."""

    code: str
    severity: Severity
    refuses: bool
    find: Callable[[Sheet], Iterator[Flaw]]


CHECKS = (
    Check("missing", "error", True, flaws.missing),
    Check("given-in-head", "error", True, flaws.given_in_head),
    Check("fixed-depends-on-state", "error", True, flaws.fixed_depends_on_state),
    Check("state-depends-on-moves", "error", True, flaws.state_depends_on_moves),
    Check("unsafe-variable", "error", True, flaws.unsafe),
    Check("variable-in-fact", "error", True, flaws.variable_in_fact),
    Check("output-in-body", "error", False, flaws.output_in_body),
    Check("keyword-as-name", "error", False, spelling.keyword_as_name),
    Check("not-a-sentence", "error", False, flaws.not_a_sentence),
    Check("unlimited-recursion", "error", False, flaws.unlimited_recursion),
    Check("goal-out-of-range", "error", False, flaws.goal_out_of_range),
    Check("unknown-role", "error", False, flaws.unknown_role),
    Check("several-spellings", "error", False, spelling.several_spellings),
    Check("several-arities", "warning", False, spelling.several_arities),
    Check("negation-in-cycle", "warning", False, flaws.negation_in_cycle),
    Check("unusual-character", "warning", False, spelling.unusual_characters),
    Check("never-derived", "warning", False, flaws.used_but_never_derived),
    Check("never-used", "warning", False, flaws.derived_but_never_used),
    Check("relation-and-function", "warning", False, spelling.relation_and_function),
    Check("few-branches", "warning", False, flaws.few_branches),
    Check("and", "warning", False, flaws.and_word),
    Check("not-distinct", "warning", False, flaws.not_distinct),
    Check("empty-body", "warning", False, flaws.empty_body),
    Check("parenthesised", "warning", False, spelling.parenthesised),
)

OF_THE_WHOLE_SHEET = frozenset({"missing", "unknown-role", "never-derived", "never-used", "negation-in-cycle"})
REFUSED = frozenset(check.code for check in CHECKS if check.refuses)


def check(rulesheet: Rulesheet) -> list[Finding]:
    """Everything that can be seen wrong in the text of a rulesheet, in the order of the text."""
    return _findings(rulesheet, CHECKS)


def check_text(text: str, path: Path | None = None) -> list[Finding]:
    """As `check`, and every rule that does not parse is a finding too (code "syntax").

    Where there is one, what can be seen in the whole sheet only is not looked for: the rule might be what is missing.
    """
    rulesheet, errors = parse_around_errors(text, path)
    syntax = [
        Finding("error", "syntax", error.message, path, error.line, error.column, error.rule, error.remedy)
        for error in errors
    ]
    found = _findings(rulesheet, [check for check in CHECKS if not errors or check.code not in OF_THE_WHOLE_SHEET])
    return sorted(syntax + found, key=lambda finding: (finding.line, finding.column))


def refuse(rulesheet: Rulesheet) -> None:
    """Raises GDLSemanticError at the first finding that leaves no perfect model or nothing to play."""
    for found in _findings(rulesheet, [check for check in CHECKS if check.code in REFUSED])[:1]:
        raise GDLSemanticError(
            found.message, path=found.path, line=found.line, column=found.column, rule=found.rule, remedy=found.remedy
        )


def placed(error: GDLSemanticError, rulesheet: Rulesheet, code: str) -> GDLSemanticError:
    """The same error at the place, if there is one, where the text shows what it is about."""
    for found in _findings(rulesheet, [check for check in CHECKS if check.code == code])[:1]:
        return GDLSemanticError(
            error.message,
            path=found.path,
            line=found.line,
            column=found.column,
            rule=found.rule,
            remedy=error.remedy,
        )
    return error


def _findings(rulesheet: Rulesheet, checks: Sequence[Check]) -> list[Finding]:
    sheet = Sheet(rulesheet)
    findings = [_finding(check, flaw, rulesheet.path) for check in checks for flaw in check.find(sheet)]
    return sorted(findings, key=lambda finding: (finding.line, finding.column))


def _finding(check: Check, flaw: Flaw, path: Path | None) -> Finding:
    rule = str(flaw.rule) if flaw.rule else ""
    return Finding(check.severity, check.code, flaw.message, path, *flaw.location, rule, flaw.remedy)
