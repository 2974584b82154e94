"""The plain reasoner: moves, goals and successors straight from the rules, by clingo. Any game; slow; the oracle.

It shares the parser and the names with the circuit, and nothing else. A whole batch is answered by one clingo call:
every relation that depends on `true` or `does` gets one more argument in front, the number of the state that it
speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import GDLSemanticError, GroundingError
from .gdl import Atom, Rulesheet
from .ground import Budget, GroundTerm, Limits, Literal, Names, Translator, conjunctions, ground_within

Facts: TypeAlias = frozenset[GroundTerm]
Joint: TypeAlias = Mapping[GroundTerm, GroundTerm]


@dataclass(slots=True)
class Answer:
    """What the rules say of one state: role -> moves, role -> goal values, whether it is terminal."""

    legal: dict[GroundTerm, list[GroundTerm]]
    goals: dict[GroundTerm, list[int]]
    terminal: bool = False


class Reasoner:
    """`answers` and `successors` of states, given as sets of ground terms."""

    def __init__(self, sheet: Rulesheet, limits: Limits | None = None) -> None:
        self.sheet = sheet
        self.limits = limits or Limits()
        self.names = Names(sheet)
        self.translator = _BatchTranslator(self.names, _dynamic_relations(sheet))
        self.state_rules = "\n".join(self.translator.rules_for(sheet, {"legal", "goal", "terminal"}))
        self.next_rules = "\n".join(self.translator.rules_for(sheet, {"next"}))
        self.roles, self.initial = self._start()

    def _start(self) -> tuple[list[GroundTerm], Facts]:
        rules = "\n".join(self.translator.rules_for(self.sheet, {"role", "init"}))
        found: dict[str, list[GroundTerm]] = {"role": [], "init": []}
        for symbol in _solve(rules, {"role": 1, "init": 1}, self.limits):
            found[symbol.name].append(self.translator.term_of(symbol.arguments[0]))
        return sorted(found["role"], key=self.names.place_of_role), frozenset(found["init"])

    def answers(self, states: Sequence[Facts]) -> list[Answer]:
        """Legal moves (in the order of actions), goals and end of each state."""
        answers = [Answer({role: [] for role in self.roles}, {role: [] for role in self.roles}) for _ in states]
        term = self.translator.term_of
        program = self.state_rules + self._given(states)
        for symbol in _solve(program, {"legal": 3, "goal": 3, "terminal": 1}, self.limits.times(len(states))):
            answer = answers[symbol.arguments[0].number]
            if symbol.name == "terminal":
                answer.terminal = True
                continue
            role, value = term(symbol.arguments[1]), term(symbol.arguments[2])
            if role not in answer.legal:
                continue  # a sentence about somebody who does not play; the check reports it
            if symbol.name == "legal":
                answer.legal[role].append(value)
            elif (goal := self.names.goal_value(value)) is not None and goal not in answer.goals[role]:
                answer.goals[role].append(goal)
        for answer in answers:
            for moves in answer.legal.values():
                moves.sort()
        return answers

    def successors(self, states: Sequence[Facts], joint_moves: Sequence[Joint]) -> list[Facts]:
        """The state after each joint move; legality is not looked at."""
        does = (
            f"does({number},{self.translator.ground(role)},{self.translator.ground(move)})."
            for number, joint in enumerate(joint_moves)
            for role, move in joint.items()
        )
        following: list[set[GroundTerm]] = [set() for _ in states]
        program = self.next_rules + self._given(states) + "\n".join(does)
        for symbol in _solve(program, {"next": 2}, self.limits.times(len(states))):
            following[symbol.arguments[0].number].add(self.translator.term_of(symbol.arguments[1]))
        return [frozenset(facts) for facts in following]

    def _given(self, states: Sequence[Facts]) -> str:
        facts = (
            f"true({number},{self.translator.ground(fact)})."
            for number, facts in enumerate(states)
            for fact in sorted(facts)
        )
        return f"\nstate(0..{len(states) - 1}).\n" + "\n".join(facts) + "\n"


class _BatchTranslator(Translator):
    """Puts the number of the state before the arguments of relations that depend on it."""

    def __init__(self, names: Names, dynamic: set[str]) -> None:
        super().__init__(names)
        self.dynamic = dynamic

    def atom(self, atom: Atom) -> str:
        if atom.name not in self.dynamic:
            return super().atom(atom)
        return f"{self.relation(atom.name)}({','.join(['State', *map(self.term, atom.args)])})"

    def rules_for(self, sheet: Rulesheet, wanted: set[str]) -> Iterator[str]:
        """The rules that the wanted relations depend on."""
        needed = _depending(sheet, wanted, downwards=True)
        for rule in sheet.rules:
            if rule.head.name not in needed:
                continue
            for body in conjunctions(rule, sheet.path):
                conditions = [self.literal(literal) for literal in body]
                if rule.head.name in self.dynamic:
                    conditions.append("state(State)")
                head = self.atom(rule.head)
                yield f"{head} :- {', '.join(conditions)}." if conditions else f"{head}."


def _dynamic_relations(sheet: Rulesheet) -> set[str]:
    """Relations that depend on the state; the words of GDL that speak of one always do."""
    spoken = {"true", "does", "legal", "goal", "terminal", "next"}
    return spoken | _depending(sheet, {"true", "does"}, downwards=False)


def _depending(sheet: Rulesheet, relations: set[str], downwards: bool) -> set[str]:
    """What the relations depend on (downwards), or what depends on them; themselves included."""
    edges: dict[str, set[str]] = {}
    for rule in sheet.rules:
        for name in _names_in(literal for body in conjunctions(rule, sheet.path) for literal in body):
            source, target = (rule.head.name, name) if downwards else (name, rule.head.name)
            edges.setdefault(source, set()).add(target)
    found: set[str] = set()
    stack = list(relations)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += edges.get(name, ())
    return found


def _names_in(literals: Iterable[Literal]) -> Iterator[str]:
    for literal in literals:
        if isinstance(literal.sentence, Atom):
            yield literal.sentence.name


def _solve(program: str, shown: Mapping[str, int], limits: Limits) -> list[Any]:
    """The shown atoms of the only model.

    Raises GDLSemanticError where there is none or more than one, GroundingError over the limits.
    """
    import clingo

    control = clingo.Control(["--warn=none", "--models=2"], message_limit=0)
    shows = "\n".join(f"#show {name}/{arity}." for name, arity in shown.items())
    control.add("base", [], f"{program}\n#show.\n{shows}\n")
    budget = Budget(limits)
    if not ground_within(control, budget):
        raise GroundingError(
            f"expected the rules to be worked out within {budget.exceeded} in a state, but they go on. Remedy: "
            "bound the terms that a recursive rule builds (`gamelore check` names it), or raise the limit"
        )
    models: list[list[Any]] = []
    control.solve(on_model=lambda model: models.append(list(model.symbols(shown=True))))
    if len(models) != 1:
        raise GDLSemanticError(
            "no perfect model: a relation depends on its own negation in this state",
            remedy="break the cycle; `gamelore check` names it",
        )
    return models[0]
