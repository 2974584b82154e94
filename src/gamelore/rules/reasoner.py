"""The plain reasoner: moves, goals and successors straight from the rules, by clingo. Any game; slow; the oracle.

It shares the parser and the names with the circuit, and nothing else, where it is given the rules as they are written:
then it is the oracle. On rules that are rewritten for a state it is fast enough to play what is too large to compile.
Relations that depend on `true` or `does` get one more argument in front, the number of the state that they speak of.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import GDLSemanticError, GroundingError
from . import relations
from .asp import Budget, Limits, Translator, control, ground_within, terms_of
from .clauses import Literal, Signature, signature
from .gdl import KEYWORD_ARITY, Atom, Rule, Rulesheet
from .names import GroundTerm, Names
from .stratification import reachable

Facts: TypeAlias = frozenset[GroundTerm]
Joint: TypeAlias = Mapping[GroundTerm, GroundTerm]
AT_ONCE = 256  # states that one call of clingo answers for


@dataclass(slots=True)
class Answer:
    """What the rules say of one state: role -> moves, role -> goal values, whether it is terminal."""

    legal: dict[GroundTerm, list[GroundTerm]]
    goals: dict[GroundTerm, list[int]]
    terminal: bool = False


class Reasoner:
    """`answers` and `successors` of states, given as sets of ground terms.

    names: those of the rules as somebody wrote them, where the sheet is rewritten; they decide the order of moves.
    """

    def __init__(self, sheet: Rulesheet, limits: Limits | None = None, names: Names | None = None) -> None:
        self.limits = limits or Limits()
        self.names = names or Names(sheet)
        self.names.add_relations(sheet)
        self.translator = _StateTranslator(self.names, _dynamic_relations(sheet))
        self.roles, self.initial = self._start(sheet)
        self._of_states = self._questions(sheet, {"legal": 2, "goal": 2, "terminal": 0})
        self._of_moves = self._questions(sheet, {"next": 1})

    def _questions(self, sheet: Rulesheet, shown: Mapping[str, int]) -> _Questions:
        fixed, of_a_state = self.translator.programs(sheet, set(shown.items()))
        return _Questions(fixed, of_a_state, {name: arity + 1 for name, arity in shown.items()}, self.limits)

    def _start(self, sheet: Rulesheet) -> tuple[list[GroundTerm], Facts]:
        fixed, _ = self.translator.programs(sheet, {("role", 1), ("init", 1)})
        found: dict[str, list[GroundTerm]] = {"role": [], "init": []}
        for symbol in _Questions(fixed, "", {"role": 1, "init": 1}, self.limits).fixed():
            found[symbol.name].append(terms_of(symbol)[0])
        return sorted(found["role"], key=self.names.place_of_role), frozenset(found["init"])

    def answers(self, states: Sequence[Facts]) -> list[Answer]:
        """Legal moves (in the order of actions), goals and end of each state."""
        answers = [Answer({role: [] for role in self.roles}, {role: [] for role in self.roles}) for _ in states]
        for place, name, terms in self._of_states.answers(list(map(self._given, states))):
            answer = answers[place]
            if name == "terminal":
                answer.terminal = True
                continue
            role, value = terms
            if role not in answer.legal:
                continue  # a sentence about somebody who does not play; the check reports it
            if name == "legal":
                answer.legal[role].append(value)
            elif (goal := self.names.goal_value(value)) is not None and goal not in answer.goals[role]:
                answer.goals[role].append(goal)
        for answer in answers:
            for moves in answer.legal.values():
                moves.sort()
        return answers

    def successors(self, states: Sequence[Facts], joint_moves: Sequence[Joint]) -> list[Facts]:
        """The state after each joint move; legality is not looked at."""
        given = [self._given(facts) + self._moves(joint) for facts, joint in zip(states, joint_moves, strict=True)]
        following: list[set[GroundTerm]] = [set() for _ in states]
        for place, _, (fact,) in self._of_moves.answers(given):
            following[place].add(fact)
        return [frozenset(facts) for facts in following]

    def _given(self, facts: Facts) -> str:
        return "".join(f"true(state,{self.translator.ground(fact)})." for fact in sorted(facts))

    def _moves(self, joint: Joint) -> str:
        moves = ((self.translator.ground(role), self.translator.ground(move)) for role, move in joint.items())
        return "".join(f"does(state,{role},{move})." for role, move in moves)


class _Questions:
    """One clingo program, asked about state after state: rules that depend on none are worked out once.

    It keeps all that it has derived, and gets slower by that. So it is begun anew when this has cost as much time as
    beginning does. What it answers does not depend on that.

    `of_a_state` is a program part that is grounded once for all states `State` that are asked about in a batch;
    `shown` are the relations that answer.
    """

    def __init__(self, fixed: str, of_a_state: str, shown: Mapping[str, int], limits: Limits) -> None:
        shows = "\n".join(f"#show {name}/{arity}." for name, arity in shown.items())
        self.program = f"{fixed}\n#show.\n{shows}\n#program rules(batch).\n{of_a_state}\n"
        self.limits = limits
        self.begun_in, self.first_in = 0.0, math.inf  # seconds, for the first answer those of one state
        self.lost = math.inf  # seconds that later ones took longer

    def answers(self, given: Sequence[str]) -> Iterator[tuple[int, str, list[GroundTerm]]]:
        """The shown atoms: the place of the text of facts that each follows from, its name, its other arguments.

        Raises GDLSemanticError where there is no model or more than one, GroundingError over the limits.
        """
        for start in range(0, len(given), AT_ONCE):
            part = given[start : start + AT_ONCE]
            if self.lost >= self.begun_in:
                self._begin()
            first = self.num_asked
            for symbol in self._answer(part):
                (number, _), *terms = terms_of(symbol)
                if number >= first:
                    yield start + number - first, symbol.name, terms

    def fixed(self) -> list[Any]:
        """The shown atoms that depend on no state."""
        self._begin()
        return self._model()

    def _begin(self) -> None:
        import clingo

        start = time.thread_time()
        self.budget = Budget(self.limits)
        self.control = control(self.program, self.budget, "--models=2", solves=True)
        self._number = clingo.Number
        self._ground([("base", ())])
        self.begun_in, self.first_in = time.thread_time() - start, math.inf
        self.lost, self.num_asked = 0.0, 0

    def _answer(self, given: Sequence[str]) -> list[Any]:
        """The shown atoms of the states asked about since it was begun, these now being the last of them."""
        start, lost = time.thread_time(), self.lost
        self.lost = math.inf  # should this fail, the control is of no use any more
        self.budget.renew(self.limits.times(len(given)))
        parts: list[tuple[str, Sequence[Any]]] = []
        for number, facts in enumerate(given, start=self.num_asked):
            self.control.add(f"facts{number}", ["state"], f"asked({self.num_asked},state).{facts}")
            parts.append((f"facts{number}", (self._number(number),)))
        self._ground([*parts, ("rules", (self._number(self.num_asked),))])
        self.num_asked += len(given)
        model = self._model()
        seconds = (time.thread_time() - start) / len(given)
        self.first_in = min(seconds, self.first_in)
        self.lost = lost + (seconds - self.first_in) * len(given)
        return model

    def _ground(self, parts: Sequence[tuple[str, Sequence[Any]]]) -> None:
        if not ground_within(self.control, self.budget, parts):
            raise GroundingError(
                f"expected the rules to be worked out within {self.budget.exceeded} in a state, but they go on. "
                "Remedy: bound the terms that a recursive rule builds (`gamelore check` names it), or raise the limit"
            )

    def _model(self) -> list[Any]:
        models: list[list[Any]] = []
        self.control.solve(on_model=lambda model: models.append(list(model.symbols(shown=True))))
        if len(models) != 1:
            raise GDLSemanticError(
                "no perfect model: a relation depends on its own negation in this state",
                remedy="break the cycle; `gamelore check` names it",
            )
        return models[0]


class _StateTranslator(Translator):
    """Puts the number of the state before the arguments of relations that depend on it."""

    def __init__(self, names: Names, dynamic: set[Signature]) -> None:
        super().__init__(names)
        self.dynamic = dynamic

    def atom(self, atom: Atom) -> str:
        if signature(atom) not in self.dynamic:
            return super().atom(atom)
        name = self.relation(atom.name)
        if atom.name not in KEYWORD_ARITY:
            name = f"state_{name}"  # r(a) of a state is not r(a,b) of all states
        return f"{name}({','.join(['State', *map(self.term, atom.args)])})"

    def conditions(self, rule: Rule, body: Iterable[Literal]) -> list[str]:
        asked = ["asked(batch,State)"] if signature(rule.head) in self.dynamic else []
        return asked + super().conditions(rule, body)

    def programs(self, sheet: Rulesheet, wanted: set[Signature]) -> tuple[str, str]:
        """The rules that the wanted relations depend on: those that hold in every state, and those of one."""
        needed = _depending(sheet, wanted, downwards=True)
        texts: dict[bool, list[str]] = {False: [], True: []}
        for rule in sheet.rules:
            if signature(rule.head) in needed:
                texts[signature(rule.head) in self.dynamic] += self.of_rule(rule, sheet.path)
        return "\n".join(texts[False]), "\n".join(texts[True])


def _dynamic_relations(sheet: Rulesheet) -> set[Signature]:
    """Relations that depend on the state; the words of GDL that speak of one always do."""
    spoken = {("true", 1), ("does", 2), ("legal", 2), ("goal", 2), ("terminal", 0), ("next", 1)}
    return _depending(sheet, spoken, downwards=False)


def _depending(sheet: Rulesheet, names: set[Signature], downwards: bool) -> set[Signature]:
    """What the relations depend on (downwards), or what depends on them; themselves included."""
    edges: dict[Signature, set[Signature]] = {}
    for rule in sheet.rules:
        for atom in relations.body_atoms(rule):
            source, target = signature(rule.head), signature(atom)
            edges.setdefault(source if downwards else target, set()).add(target if downwards else source)
    return reachable(edges, names)
