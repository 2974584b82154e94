"""The plain reasoner: legal moves, goals and successors, derived from the rules by clingo. For any game; slow.

The reasoner shares only the parser and the names with the circuit. With the rules as written, tests use it as the
reference for the native engine. With rules rewritten for a state, it plays games that are too large to compile.

Relations that depend on `true` or `does` get an extra first argument: the number of a state. In this way one clingo
program gives the answers for many states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from ..errors import GroundingError
from ..gdl import syntax
from ..gdl.clauses import Literal, Signature, reachable, signature
from ..gdl.limits import Limits, check, processor_time, within, working_on
from ..gdl.syntax import KEYWORD_ARITY, Atom, Rule, Rulesheet
from ..ground.clingo import (
    BASE,
    Grounding,
    GroundTerm,
    LongJoins,
    Names,
    Part,
    Translator,
    control,
    ground_within,
    largest_part,
    only_model,
    terms_in,
    terms_of,
)
from ..ground.domains import long_joins
from ..ground.optimize import Rewritten
from ..ground.rehearsal import Text

Facts: TypeAlias = frozenset[GroundTerm]
Joint: TypeAlias = Mapping[GroundTerm, GroundTerm]
AT_ONCE = 256  # maximum number of states in one call of clingo
# Part of the limits of loading for one call of clingo. The first ply, which loading tries, and play get the same, so
# that what is loaded can answer in play: a sheet that needs more is refused at loading, with the reason. Play does not
# get the whole, because loading has to answer two questions, and to start clingo before each of them.
IN_PLAY = 0.3
TOGETHER = 0.1  # the same for several states at once
BATCH = 0.1  # part of the time of a call that its states are expected to take; the first call has one state
STATE_KEYWORDS = {("true", 1), ("does", 2), ("legal", 2), ("goal", 2), ("terminal", 0), ("next", 1)}


@dataclass(slots=True)
class StateAnswer:
    """Answer of the rules for one state.

    legal: role -> legal moves. goals: role -> goal values. terminal: whether the state is terminal.
    """

    legal: dict[GroundTerm, list[GroundTerm]]
    goals: dict[GroundTerm, list[int]]
    terminal: bool = False


class Reasoner:
    """Reasoner for states that are sets of ground terms: gives answers and successors.

    names: the names of the original rules if the sheet is rewritten. The names decide the order of moves.
    """

    def __init__(self, sheet: Rulesheet, limits: Limits | None = None, names: Names | None = None) -> None:
        self.limits = limits or Limits()
        self.names = names or Names(sheet)
        self.names.add_made_relations(sheet)
        working_on("the first state on the reasoner")
        long = sheet.long_joins if isinstance(sheet, Rewritten) else long_joins(sheet)
        self.translator = _StateTranslator(self.names, _depending(sheet, STATE_KEYWORDS, downwards=False), long)
        self.roles, self.initial = self._start(sheet)
        self._of_states = self._questions(sheet, {"legal": 2, "goal": 2, "terminal": 0})
        self._of_moves = self._questions(sheet, {"next": 1})

    def _questions(self, sheet: Rulesheet, shown: Mapping[str, int]) -> _Questions:
        program = self.translator.program(sheet, set(shown.items()))
        return self._questions_of(program, {name: arity + 1 for name, arity in shown.items()})

    def _questions_of(self, program: _Program, shown: Mapping[str, int]) -> _Questions:
        return _Questions(program, shown, self.limits, self.translator)

    def _start(self, sheet: Rulesheet) -> tuple[list[GroundTerm], Facts]:
        program = self.translator.program(sheet, {("role", 1), ("init", 1)})
        terms: dict[str, list[GroundTerm]] = {"role": [], "init": []}
        for symbol in self._questions_of(program, {"role": 1, "init": 1}).fixed():
            check()
            terms[symbol.name].append(terms_of(symbol)[0])
        return sorted(terms["role"], key=self.names.place_of_role), frozenset(terms["init"])

    def answers(self, states: Iterable[Facts]) -> Iterator[StateAnswer]:
        """Yield the answer for each state. The moves are sorted."""
        for atoms in self._of_states.answers(map(self._given, states)):
            answer = StateAnswer({role: [] for role in self.roles}, {role: [] for role in self.roles})
            for name, terms in atoms:
                if name == "terminal":
                    answer.terminal = True
                    continue
                role, value = terms
                if role not in answer.legal:
                    continue  # not a role of the game; `gamelore check` reports it
                if name == "legal":
                    answer.legal[role].append(value)
                elif (goal := self.names.goal_value(value)) is not None and goal not in answer.goals[role]:
                    answer.goals[role].append(goal)
            for moves in answer.legal.values():
                moves.sort()
            yield answer

    def successors(self, states: Iterable[Facts], joint_moves: Iterable[Joint]) -> Iterator[Facts]:
        """Yield the state after each joint move. The moves must be legal; this is not checked."""
        given = (self._given(facts) + self._moves(joint) for facts, joint in zip(states, joint_moves, strict=True))
        return (frozenset(fact for _, (fact,) in atoms) for atoms in self._of_moves.answers(given))

    def _given(self, facts: Facts) -> str:
        return "".join(f"true(state,{self.translator.ground(fact)})." for fact in sorted(facts))

    def _moves(self, joint: Joint) -> str:
        moves = ((self.translator.ground(role), self.translator.ground(move)) for role, move in joint.items())
        return "".join(f"does(state,{role},{move})." for role, move in moves)


class _Program(NamedTuple):
    """Translated rules, and those of them whose joins may be long.

    fixed: the rules that depend on no state.
    of_a_state: the rules that depend on a state, for the variable `State`.
    """

    fixed: str
    of_a_state: str
    long_joins: LongJoins


_Shown: TypeAlias = tuple[str, tuple[GroundTerm, ...]]
"""A shown atom of a state: the name of its relation, and its terms without the number of the state."""

MOST_KEPT, LONGEST_KEPT = 1 << 15, 100  # terms of texts, and characters of such a text; facts and moves come again
_kept_terms = lru_cache(MOST_KEPT)(terms_in)


def _terms(text: str) -> tuple[GroundTerm, ...]:
    """Return the terms of a text such as `c1,c2(c3)`."""
    return _kept_terms(f"({text})") if len(text) <= LONGEST_KEPT else terms_in(f"({text})")


class _Questions:
    """One clingo program that answers questions about many batches of states.

    Rules that depend on no state are ground once. clingo keeps all atoms that it has derived, so it gets slower with
    each batch. The *lost* time is the time that the slowdown has cost since the last start of clingo. As soon as the
    lost time is at least as long as the start took, clingo is started again. Such restarts do not change the answers.

    The states of a batch share the limits of one call, so that a state that exceeds them does not take the time of all
    others. Therefore the size of a batch depends on the time that the states before it took.

    program: the rules. Those that depend on a state are ground once for each batch, for all states of the batch.
    shown: the relations of the answers, name -> arity.
    """

    def __init__(self, program: _Program, shown: Mapping[str, int], limits: Limits, translator: Translator) -> None:
        shows = "\n".join(f"#show {name}/{arity}." for name, arity in shown.items())
        self.program = f"{program.fixed}\n#show.\n{shows}\n#program rules(batch).\n{program.of_a_state}\n"
        self.limits, self.translator, self.long_joins = limits, translator, program.long_joins
        # start_seconds: duration of the last start. least_seconds: shortest time for one state since that start.
        self.start_seconds, self.least_seconds = 0.0, math.inf
        self.lost = math.inf  # sum over all states since the start: seconds of the state minus least_seconds
        self.at_once = 1  # number of states in the next batch

    def answers(self, given: Iterable[str]) -> Iterator[list[_Shown]]:
        """Yield the shown atoms that follow from each text of facts.

        An atom is its name and its arguments without the number of the state.

        Raises GDLSemanticError if there is not exactly one model, and GroundingError if the limits are exceeded.
        """
        given = iter(given)
        while batch := list(islice(given, self.at_once)):
            if self.lost >= self.start_seconds:
                self._begin()
            try:
                with within(self._limits_of(batch), "the reasoner to answer"):
                    answers = self._batch(batch)
            except GroundingError:
                if len(batch) == 1:
                    raise
                self.at_once = 1
                for text in batch:
                    yield from self.answers([text])
            else:
                yield from answers

    def _limits_of(self, batch: Sequence[str]) -> Limits:
        """Return the limits of one call. Loading has tried single states; several that need more are asked alone."""
        return self.limits.share(IN_PLAY if len(batch) == 1 else TOGETHER).times(len(batch))

    def _batch(self, batch: Sequence[str]) -> list[list[_Shown]]:
        """Return the shown atoms for each text of a batch."""
        first = self.num_asked
        answers: list[list[_Shown]] = [[] for _ in batch]
        for symbol in self._answer(batch):
            name, _, arguments = str(symbol)[:-1].partition("(")
            number, _, terms = arguments.partition(",")
            if int(number) >= first:  # the others were read before
                answers[int(number) - first].append((name, _terms(terms)))
            check()
        return answers

    def fixed(self) -> list[Any]:
        """Return the shown atoms that depend on no state."""
        self._begin()
        return only_model(self.control)

    def _begin(self) -> None:
        import clingo

        start = processor_time()
        self.grounding = Grounding(self.limits, self.long_joins, self.translator.names.sizes())
        self.control = control(self.program, self.grounding, "--models=2", solves=True)
        self._number = clingo.Number
        self._ground(BASE)
        self.start_seconds, self.least_seconds = processor_time() - start, math.inf
        self.lost, self.num_asked = 0.0, 0

    def _answer(self, given: Sequence[str]) -> list[Any]:
        """Return the shown atoms of all states since the start. The states of this batch have the highest numbers."""
        start, lost = processor_time(), self.lost
        self.lost = math.inf  # after an error the next call starts clingo again
        self.grounding.renew(self._limits_of(given))
        added: list[Text] = []
        parts: list[Part] = []
        for number, facts in enumerate(given, start=self.num_asked):
            added.append((f"facts{number}", ["state"], f"asked({self.num_asked},state).{facts}"))
            parts.append((f"facts{number}", (self._number(number),)))
        self._ground([*parts, ("rules", (self._number(self.num_asked),))], added)
        self.num_asked += len(given)
        model = only_model(self.control)
        seconds = (processor_time() - start) / len(given)
        self.least_seconds = min(seconds, self.least_seconds)
        self.lost = lost + (seconds - self.least_seconds) * len(given)
        most = BATCH * TOGETHER * self.limits.seconds / max(seconds, 1e-6)
        self.at_once = max(1, int(min(AT_ONCE, self.at_once * (1 + (len(given) == self.at_once)), most)))
        return model

    def _ground(self, parts: Sequence[Part], added: Sequence[Text] = ()) -> None:
        if not ground_within(self.control, self.grounding, parts, added):
            raise GroundingError(
                f"expected the rules to be evaluated in a state within {self.grounding.exceeded}, but they were not"
                f"{largest_part(self.grounding, self.control, self.translator)}",
                "limit the terms that a recursive rule builds (`gamelore check` names the rule), or raise the limit",
            )


class _StateTranslator(Translator):
    """Translator that adds the number of a state as first argument to relations that depend on a state.

    dynamic: the relations that depend on a state, including the keywords of GDL about a state.
    long_joins: those of the sheet.
    """

    def __init__(self, names: Names, dynamic: set[Signature], long_joins: LongJoins) -> None:
        super().__init__(names)
        self.dynamic, self.long_joins = dynamic, long_joins

    def atom(self, atom: Atom) -> str:
        if signature(atom) not in self.dynamic:
            return super().atom(atom)
        name = self.relation(atom.name)
        if atom.name not in KEYWORD_ARITY:
            name = f"state_{name}"  # else r(a) with a state would collide with a static r(a,b)
        return f"{name}({','.join(['State', *map(self.term, atom.args)])})"

    def conditions(self, rule: Rule, body: Iterable[Literal]) -> list[str]:
        asked = ["asked(batch,State)"] if signature(rule.head) in self.dynamic else []
        return asked + super().conditions(rule, body)

    def program(self, sheet: Rulesheet, wanted: set[Signature]) -> _Program:
        """Return the rules on which the wanted relations depend."""
        needed = _depending(sheet, wanted, downwards=True)
        texts: dict[bool, list[str]] = {False: [], True: []}
        for rule in sheet.rules:
            if signature(rule.head) in needed:
                texts[signature(rule.head) in self.dynamic] += self.of_rule(rule, sheet.path)
        long = {rule: number for rule, number in self.long_joins.items() if signature(rule.head) in needed}
        return _Program("\n".join(texts[False]), "\n".join(texts[True]), long)


def _depending(sheet: Rulesheet, names: set[Signature], downwards: bool) -> set[Signature]:
    """Return the relations `names` and all relations connected to them by dependencies.

    If `downwards`, add the relations on which `names` depend. Otherwise add the relations that depend on `names`.
    """
    edges: dict[Signature, set[Signature]] = {}
    for rule in sheet.rules:
        for atom in syntax.body_atoms(rule):
            source, target = signature(rule.head), signature(atom)
            edges.setdefault(source if downwards else target, set()).add(target if downwards else source)
    return reachable(edges, names)
