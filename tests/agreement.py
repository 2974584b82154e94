"""What all evaluators must agree on: states and steps that random play of the rules reaches, and how matches end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from random import Random
from typing import Any, NamedTuple

from evaluators import (
    EVALUATORS,
    Answer,
    Evaluator,
    Joint,
    Make,
    Plainly,
    Played,
    State,
    Unfit,
    native_game,
    within_limits,
)
from gamelore.gdl import syntax
from gamelore.gdl.limits import Limits
from gamelore.ground.program import ground

FIT = Limits(seconds=600, literals=30_000)  # of rules that are an example
MAX_JOINT_MOVES = 40  # of one state, where all of them are followed
MAX_FOLLOWED = 300  # joint moves of all states of one sheet


class Walk(NamedTuple):
    """Reachable states, and steps from some of them: the state's number, the joint move."""

    states: list[State]
    steps: list[tuple[int, Joint]]


def walk(game: Plainly, most_states: int = 12, joint_moves: int = 3) -> Walk:
    """Breadth first along some joint moves of each state; not beyond the end of a match."""
    random = Random(0)
    found = Walk([game.initial], [])
    for number, state in enumerate(found.states):
        legal = game.answer(state).legal
        if not all(legal.values()):
            continue
        for _ in range(joint_moves):
            joint = {role: random.choice(moves) for role, moves in legal.items()}
            found.steps.append((number, joint))
            after = game.naive.next(state, joint)
            if after not in found.states and len(found.states) < most_states:
                found.states.append(after)
    return found


class Disagreement(AssertionError):
    """An evaluator and the naive one differ, or the evaluator failed."""


def assert_agreement(text: str, evaluators: Mapping[str, Make] = EVALUATORS) -> None:
    """Holds every evaluator against the naive one, on states and joint moves that random play of the rules reaches.

    Raises Disagreement, or Unfit for rules that the limits do not allow.
    """
    sheet = syntax.parse(text)
    with within_limits():
        ground(sheet, FIT)
    naive = Plainly(sheet)
    walked = walk(naive)
    expected = _said(naive, walked)
    for name, make in evaluators.items():
        try:
            said = _said(make(sheet), walked)
        except Unfit:
            continue
        except Exception as error:
            raise Disagreement(f"{name}: {type(error).__name__}: {error}") from error
        for question, answer in expected.items():
            if said[question] != answer:
                raise Disagreement(f"{name}: {question}: expected {answer}, got {said[question]}")


def _said(evaluator: Evaluator, walked: Walk) -> dict[str, Any]:
    """Everything that an evaluator says on a walk, by a text of the question."""
    states, steps = walked
    said: dict[str, Any] = {"roles": sorted(evaluator.roles), "first state": sorted(evaluator.initial)}
    for state, answer in zip(states, evaluator.answers(states), strict=True):
        said |= {f"{word} in {sorted(state)}": part for word, part in zip(Answer._fields, answer, strict=True)}
    origins, joints = [states[number] for number, _ in steps], [joint for _, joint in steps]
    successors = evaluator.successors(origins, joints) if steps else []
    for state, joint, after in zip(origins, joints, successors, strict=True):
        said[f"after {joint} in {sorted(state)}"] = sorted(after)
    return said


def assert_possible_matches(text: str, max_steps: int = 3) -> None:
    """Random matches of the native engine from reachable states end as some match of the naive evaluator does.

    Raises Disagreement, or Unfit for rules that the limits do not allow or that give too many joint moves.
    """
    sheet = syntax.parse(text)
    naive = Plainly(sheet)
    with within_limits():
        game = native_game(sheet)
    played = Played(game)
    states = [state for state in walk(naive).states for _ in range(20)]
    rollouts = game.rollouts(played.pack(states), seed=0, threads=1, max_steps=max_steps)
    ends = Ends(naive)
    for state, goals, steps in zip(states, rollouts.goals.tolist(), rollouts.steps.tolist(), strict=True):
        by_role = dict(zip(played.roles, goals, strict=True))
        end = tuple(by_role[role] for role in naive.roles), steps
        possible = ends.of(state, max_steps)
        if end not in possible:
            raise Disagreement(f"a match from {sorted(state)}: expected goals and steps from {possible}, got {end}")


class Ends:
    """How matches can end: the goals of all roles, -1 for none, and the number of steps."""

    def __init__(self, game: Plainly) -> None:
        self.game, self.num_followed = game, 0
        self.known: dict[tuple[State, int], set[tuple[tuple[int, ...], int]]] = {}

    def of(self, state: State, max_steps: int) -> set[tuple[tuple[int, ...], int]]:
        """All ends of matches from a state that are cut after so many steps."""
        if (state, max_steps) not in self.known:
            self.known[state, max_steps] = self._of(state, max_steps)
        return self.known[state, max_steps]

    def _of(self, state: State, max_steps: int) -> set[tuple[tuple[int, ...], int]]:
        answer = self.game.answer(state)
        if answer.terminal:
            return {(tuple(-1 if goal is None else goal for goal in answer.goals.values()), 0)}
        if not max_steps or not all(answer.legal.values()):
            return {((-1,) * len(self.game.roles), 0)}
        num_joint = prod(map(len, answer.legal.values()))
        self.num_followed += num_joint
        if num_joint > MAX_JOINT_MOVES or self.num_followed > MAX_FOLLOWED:
            raise Unfit("too many joint moves to follow them all")
        joints = (dict(zip(answer.legal, moves, strict=True)) for moves in product(*answer.legal.values()))
        after = {self.game.naive.next(state, joint) for joint in joints}
        return {(goals, steps + 1) for following in after for goals, steps in self.of(following, max_steps - 1)}
