"""Hints: good moves in a position, each with the reason for it, for the page of a match.

Each source of hints knows something else about a position. They are asked in this order, the most certain first:

exact      values of all positions, if the game is so small that it is solved in a few seconds, and a line of best play
search     what the player gamelore thinks after a second, and the line that it expects; not asked if the game is solved
values     learned values of positions (Banerjee & Stone 2007), and the feature of the position after the move
sequences  learned sequences (Lock & Epstein 2004) whose contexts hold, and which vote for their first moves
lesson     weights of facts that the player gamelore has learned about the game
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...api.exact import Solved
from ...api.memory import Home, Knowledge, Learned, LearnedMoves
from ...api.opinion import Opinion
from ...drawing.board import Boards, Place
from ...drawing.position import Mark
from ...drawing.thought import MoveThought, Thought, facts_after, telling, way_of
from ...drawing.weights import weights_svg
from ...errors import GameloreError, counted
from ...game.game import Game, Position
from ...lab.feature_trees import feature_svg, feature_words
from ...lab.sequence_text import Branch, Effects
from ...learning.sequences.contexts import ContextPairs
from ...learning.sequences.extraction import NO_MOVE, SOLO
from ...learning.sequences.patterns import image, padded
from ...learning.sequences.seqplayer import TIERS, Advice, SeqPlayer, consult
from ...learning.session import load_learner
from ...learning.store.features import Equivalence, FeatureValues
from ...learning.store.knowledge import KnowledgeStore
from ...learning.store.lesson_rows import Lessons, StoredLesson
from ...learning.store.schema import StoredLearner
from ...learning.td.afterstates import own_afterstates
from ...learning.td.discovery import FIRST_SET, feature_space
from ...players.player import Turn
from ...players.position_graph import PositionGraph
from ...search.startclock import Solving, may_be_solved
from ...solver.statespace import is_native

HintKind: TypeAlias = Literal["exact", "search", "values", "sequences", "lesson"]
"""Where a hint comes from, see the module."""
Line: TypeAlias = Sequence[Sequence[str]]
"""Joint moves."""
Read = TypeVar("Read")

SOLVE_SECONDS = 2.0  # in which a game is solved for a hint; the next hint goes on from there
SOLVER_MEMORY = 512 << 20  # bytes
MOST_GATES = 10_000  # of the circuit of a puzzle that is solved for a hint
SEARCH_SECONDS = 1.0
MOST_LINE, MOST_ARROWS = 9, 3  # plies of a line, and of one that is drawn with arrows
MOST_LEARNERS = 3  # of each kind that give hints, those with the most matches
MOST_BELOW = 20_000  # positions that may lie below a position whose feature is computed, if all have as many moves
MOST_LETTERS = 120  # of a feature that is drawn, and told in words
MOST_FACTS = 4  # facts of a context or a lesson that are told
MOST_MOVES = 1000  # legal moves of which a lesson is asked
POINTS = 100
CONTEXT_HEAT = 0.35  # shade of the places of a context
GOOD_GUIDE = 0.5  # least share of the results of searches that a good lesson explains
_log = logging.getLogger(__name__)


class Draw(Protocol):
    """Draws a position with marks, and with places shaded; see `drawing.position.state_svg`."""

    def __call__(
        self, position: Position, marks: Sequence[Mark] = ..., heat: Mapping[Place, float] | None = ...
    ) -> str:
        """Return SVG text."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A good move, and the reason for it.

    title     where the hint comes from, in words
    reason    sentences
    svg       the position with the move, and what is expected after it
    pictures  further pictures that belong to the reason: (what it shows, SVG)
    """

    role: str
    move: str
    kind: HintKind
    title: str
    reason: str
    svg: str
    pictures: tuple[tuple[str, str], ...] = ()


class Hints:
    """All sources of hints about a game. They keep what they have read and computed.

    Args:
        game: the game
        boards: its boards
        draw: draws its positions
    """

    def __init__(self, game: Game, boards: Boards, draw: Draw) -> None:
        self._game = game
        self._pictures = HintPictures(boards, draw)
        self._exact = ExactHints(game, self._pictures)
        self._learners = StoredLearners(game)

    def of(self, position: Position, opinion: Callable[[], Opinion], store: Path) -> list[Hint]:
        """Return the hints for all roles that have a choice in a position, the most certain first.

        Args:
            position: a position in which the match goes on
            opinion: returns the search of the position
            store: file of a knowledge store; it need not exist
        """
        roles = choosers(position)
        if not roles:
            return []
        exact = list(self._exact.of(position))
        hints = exact or [*search_hints(opinion().go_on(seconds=SEARCH_SECONDS), self._pictures)]
        for source in (self._of_values, self._of_sequences, self._of_lessons):
            try:
                hints += (
                    self._exact.judged(hint, position) for role in roles for hint in source(position, role, store)
                )
            except GameloreError as error:  # what is stored is damaged, or the game is too large for it
                _log.warning("no hints of this kind: %s", error)
        return hints

    def learned(
        self, position: Position, store: Path, number: int | None = None
    ) -> tuple[LearnedMoves, list[Learned], int]:
        """Return what a learner has learned about the moves in a position, all that could be asked, and its number.

        Args:
            position: a position in which the match goes on
            store: file of a knowledge store
            number: number of the learner in the store; None for the one with the most matches

        Raises:
            GameloreError: there is no such learner
        """
        roles = choosers(position)
        learners = [learner for role in roles for learner in self._learners.of_values(store, role)]
        chosen = next((learner for learner in learners if number in (None, learner.number)), None)
        if chosen is None:
            raise GameloreError(
                f"expected a learner that knows {self._game.name} as {' or '.join(roles) or 'a role'}, got none yet; "
                "watch one learn it and keep it, or take a player into the match that remembers"
            )
        return chosen.moves(position), learners, chosen.number

    def _of_values(self, position: Position, role: str, store: Path) -> Iterator[Hint]:
        for learner in self._learners.of_values(store, role)[:MOST_LEARNERS]:
            yield from value_hints(learner, self._learners.inherited(store, learner), position, self._pictures)

    def _of_sequences(self, position: Position, role: str, store: Path) -> Iterator[Hint]:
        for stored, pairs in self._learners.of_sequences(store)[:MOST_LEARNERS]:
            yield from sequence_hints(stored, pairs, position, role, self._pictures)

    def _of_lessons(self, position: Position, role: str, store: Path) -> Iterator[Hint]:
        lesson = self._learners.lesson(store)
        if lesson is not None and len(choosers(position)) == 1:
            yield from lesson_hints(lesson, position, role, self._pictures)


def choosers(position: Position) -> list[str]:
    """Return the roles that have several moves."""
    return [role for role, legal in position.legal.items() if len(legal) > 1]


def learner_text(learner: Learned) -> str:
    """Return what a learner is, in words, such as "transfer learner of xplayer, 400 matches against egreedy"."""
    source = f" that began with {' and '.join(learner.sources)}" if learner.sources else ""
    opponent = learner.opponent.partition(":")[0]
    matches = counted(learner.num_matches, "match", "matches")
    return f"{learner.kind} learner of {learner.role}{source}, {matches} against {opponent}"


# ---- pictures ---------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A move on a board: the place that it fills, the place that it empties, and the number of the move."""

    target: Place
    source: Place | None
    number: int


class HintPictures:
    """Pictures of positions with moves."""

    def __init__(self, boards: Boards, draw: Draw) -> None:
        self.boards = boards
        self._draw = draw

    def move(self, position: Position, role: str, move: str) -> str:
        """Draw a move of a role."""
        return self.line(position, [joint_with(position, role, move)])

    def line(self, position: Position, line: Line) -> str:
        """Draw the moves of a line; only the first ones, if they have arrows."""
        steps, here = list[Step](), position
        for number, joint in enumerate(line, start=1):
            after = here.play(list(joint))
            laid = self.boards.lay(here.facts), self.boards.lay(after.facts)
            ways = (way_of(self.boards, *laid, move) for move in telling(joint))
            steps += (Step(way.target, way.source, number) for way in ways if way is not None)
            here = after
        most = MOST_ARROWS if any(step.source for step in steps) else MOST_LINE
        return self.steps(position, [step for step in steps if step.number <= most])

    def steps(self, position: Position, steps: Sequence[Step], heat: Mapping[Place, float] | None = None) -> str:
        """Draw moves, of which the first stands out, with their numbers if they are several."""
        laid, numbers = self.boards.lay(position.facts), dict[Place, list[str]]()
        for step in steps if len(steps) > 1 else ():
            numbers.setdefault(step.target, []).append(str(step.number))
        marks = []
        for step in steps:
            texts = (",".join(numbers.pop(step.target)),) if step.target in numbers else ()
            is_first, is_beside = step.number == steps[0].number, not self.boards.is_empty(laid, step.target)
            marks.append(Mark(step.target, step.source, texts, 1.0, is_first, is_beside))
        return self._draw(position, marks[::-1], heat)


def joint_with(position: Position, role: str, move: str) -> list[str]:
    """Return the joint move with a move of a role; all other roles make their first moves."""
    return [move if name == role else legal[0] for name, legal in position.legal.items()]


def line_text(game: Game, line: Line) -> str:
    """Return the moves of a line in words, with their numbers and roles."""
    told = []
    for number, joint in enumerate(line, start=1):
        moves = [f"{role} {move}" for role, move in zip(game.roles, joint, strict=True) if move in telling(joint)]
        told.append(f"{number}. {' and '.join(moves)}")
    return ", ".join(told)


# ---- exact values -----------------------------------------------------------------------------------------------


class ExactHints:
    """Hints from the solution of a game, if it is so small that it is solved while one waits."""

    def __init__(self, game: Game, pictures: HintPictures) -> None:
        self._game = game
        self._pictures = pictures
        self._solving: Solving | None = None
        self._solved: Solved | None = None

    def of(self, position: Position) -> Iterator[Hint]:
        """Yield the hint for a position. A game that is not solved is solved on for SOLVE_SECONDS."""
        self._solve_on()
        rows = self._rows(position)
        if rows:
            row = next(row for row in rows if row["best"])
            line = self._best_line(position)
            counter = [_NO_COUNTER] if self._solved is not None and self._solved.left_out else []
            parts = [self._promise(row), _others_text(rows), f"Best play: {line_text(self._game, line)}.", *counter]
            reason = " ".join(parts)
            svg = self._pictures.line(position, line)
            yield Hint(row["role"], row["move"], "exact", "Exact values: the game is solved", reason, svg)

    def judged(self, hint: Hint, position: Position) -> Hint:
        """Add to a hint what the exact values say about its move, if they are known."""
        goal = f"goal_{hint.role}"
        goals = {row["move"]: row[goal] for row in self._rows(position) if row["role"] == hint.role}
        if not goals:
            return hint
        loss = max(goals.values()) - goals[hint.move]
        verdict = f"disagree: this move gives away {counted(loss, 'point')}" if loss else "agree: no move is better"
        return replace(hint, reason=f"{hint.reason} The exact values {verdict}.")

    def _rows(self, position: Position) -> list[dict[str, Any]]:
        """Return the exact values of the moves, see `Solved.moves`; none if the game is not solved yet."""
        return self._solved.moves(position) if self._solved is not None and choosers(position) else []

    def _solve_on(self) -> None:
        """Go on with the solution for some seconds, unless it is known or given up."""
        if self._solving is None and _may_be_solved(self._game):
            self._solving = Solving(self._game, SOLVER_MEMORY)
            weakref.finalize(self, self._solving.close)
        if self._solving is not None and not self._solving.is_done:
            self._solving.run(monotonic() + SOLVE_SECONDS)
            if self._solving.solution is not None:
                self._solved = Solved(self._game, self._solving.solution)

    def _promise(self, row: Mapping[str, Any]) -> str:
        """Say what a best move leads to."""
        role, value = row["role"], row[f"goal_{row['role']}"]
        goals = self._game.goal_values[self._game.roles.index(role)]
        end = "" if row["plies"] is None else f" in {counted(row['plies'] + 1, 'ply', 'plies')}"
        if self._game.num_roles == 1:
            return f"{role} can reach {counted(value, 'point')}{end}, and not more."
        if value == max(goals):
            return f"{role} wins{end}, whatever the opponent does."
        if value == min(goals):
            return f"Against best play every move of {role} loses; this one loses last{end and f',{end}'}."
        name = "a draw, " if 2 * value == sum(row[f"goal_{name}"] for name in self._game.roles) else ""
        return f"If both play their best from here, the match ends in {name}{counted(value, 'point')} for {role}."

    def _best_line(self, position: Position) -> Line:
        """Return a line of best play from a position."""
        line, here = list[list[str]](), position
        while len(line) < MOST_LINE and not here.is_terminal and all(here.legal.values()):
            assert self._solved is not None
            row = next(row for row in self._solved.moves(here) if row["best"])
            line.append(joint_with(here, row["role"], row["move"]))
            here = here.play(line[-1])
        return line


_NO_COUNTER = "This leaves out that the rules end the match after some number of plies."


def _may_be_solved(game: Game) -> bool:
    """Return whether a game has a form that can be solved: that of a small puzzle, or see `search.startclock`."""
    is_puzzle = game.num_roles == 1 and game.circuit is not None and game.circuit.num_gates <= MOST_GATES
    return may_be_solved(game) or (is_puzzle and is_native(game))


def _others_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say how many of the moves are worse than the best ones."""
    goals = [row[f"goal_{row['role']}"] for row in rows]
    worse = sum(goal < max(goals) for goal in goals)
    if not worse:
        return "All moves have the same value."
    return f"Of the {counted(len(rows), 'move')}, {worse} {'is' if worse == 1 else 'are'} worse."


# ---- search -----------------------------------------------------------------------------------------------------


def search_hints(thought: Thought, pictures: HintPictures) -> Iterator[Hint]:
    """Yield for each role the best move of a search, with the line that it expects."""
    position, line = thought.position, thought.line[:MOST_LINE]
    for role, moves in thought.moves.items():
        best = moves[0]
        parts = [_search_text(role, best, moves, thought)]
        fits = bool(line) and line[0][position.game.roles.index(role)] == best.move
        if fits:
            parts.append(f"The line that it expects: {line_text(position.game, line)}.")
        svg = pictures.line(position, line) if fits else pictures.move(position, role, best.move)
        yield Hint(role, best.move, "search", "A search of the player gamelore", " ".join(parts), svg)


def _search_text(role: str, best: MoveThought, moves: Sequence[MoveThought], thought: Thought) -> str:
    tried = f"{thought.simulations:,} simulated matches"
    if best.proved:
        end = "" if best.plies is None else f" in {counted(best.plies, 'ply', 'plies')}"
        return f"The search has proved that {role} gets {counted(best.low, 'point')}{end} with best play ({tried})."
    if best.share is not None:
        return (
            f"Several roles choose at once here, so it is best to be unpredictable: after {tried}, the search makes "
            f"this move with a probability of {best.share:.0%}."
        )
    expected = min(max(best.mean or 0.0, best.low), best.high)
    told = f"After {tried} the search expects {expected:.0f} of {POINTS} points for {role} with this move"
    if len(moves) > 1 and moves[1].mean is not None:
        told += f", and {moves[1].mean:.0f} with {moves[1].move}"
    return f"{told}. {best.visits / max(1, sum(move.visits for move in moves)):.0%} of them made this move."


# ---- what is stored ---------------------------------------------------------------------------------------------


class StoredLearners:
    """The learners of a game in knowledge stores. They are read again when they have learned more."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._read: dict[tuple[str, Path, int], tuple[int, Any]] = {}

    def of_values(self, store: Path, role: str) -> list[Learned]:
        """Return the learners of values of a role, those with the most matches first."""

        def read(stored: StoredLearner) -> Learned:
            return Learned(Home(store, stored.id), stored, self._game)

        learners = [stored for stored in self._stored(store) if stored.role.lower() == role.lower()]
        return [self._kept("values", store, stored, read) for stored in learners]

    def inherited(self, store: Path, learner: Learned) -> FeatureValues | None:
        """Return the feature values with which a learner began; None if it began without any."""

        def read(stored: StoredLearner) -> FeatureValues | None:
            with Home(store, stored.id).open() as (knowledge, again):
                return knowledge.inherited(again)

        return self._kept("inherited", store, learner.stored, read)

    def of_sequences(self, store: Path) -> list[tuple[StoredLearner, ContextPairs]]:
        """Return the learners of sequences with their pairs of high weights, see `SeqPlayer`."""

        def read(stored: StoredLearner) -> ContextPairs:
            with Home(store, stored.id).open() as (knowledge, again):
                return SeqPlayer(load_learner(knowledge, again, self._game, only_pairs=True).pairs).pairs

        learners = [stored for stored in self._stored(store) if stored.has_sequences]
        return [(stored, self._kept("sequences", store, stored, read)) for stored in learners]

    def lesson(self, store: Path) -> StoredLesson | None:
        """Return the lesson of the player gamelore about the game; None if there is no value in it."""
        if not store.exists():
            return None
        with KnowledgeStore(store, create=False, writable=False) as knowledge:
            lesson = Lessons(knowledge).find(self._game.rules_hash)
        return lesson if lesson is not None and lesson.value.weights else None

    def _stored(self, store: Path) -> list[StoredLearner]:
        """Return the learners of the game that have learned something, those with the most matches first."""
        learners = (learner.stored for learner in Knowledge(store).learners(game=self._game))
        return sorted((stored for stored in learners if stored.num_matches), key=lambda stored: -stored.num_matches)

    def _kept(self, what: str, store: Path, stored: StoredLearner, read: Callable[[StoredLearner], Read]) -> Read:
        """Return what was read of a learner; read it again if it has learned since then."""
        key = what, store, stored.id
        if key not in self._read or self._read[key][0] != stored.num_matches:
            self._read[key] = stored.num_matches, read(stored)
        value: Read = self._read[key][1]
        return value


# ---- learned values ---------------------------------------------------------------------------------------------


def value_hints(
    learner: Learned, inherited: FeatureValues | None, position: Position, pictures: HintPictures
) -> Iterator[Hint]:
    """Yield the move with the best learned value, and the feature of the position after it.

    Args:
        learner: a learner of values of a role that has a choice
        inherited: the feature values with which it began; None for none
        position: a position in which the match goes on
        pictures: draws positions
    """
    ((role, moves),) = learner.moves(position).moves.items()
    best, values = moves[0], [move.mean or 0.0 for move in moves]
    if values[0] == values[1] and not best.visits:
        return  # it has learned nothing about the best moves
    parts = [
        f"The learner expects {values[0]:.0f} of {POINTS} points after this move, {values[1]:.0f} after the next best.",
        f"It has met the position after it {counted(best.visits, 'time')}." if best.visits else _UNMET,
    ]
    feature = feature_after(learner, inherited, position, role, best.index)
    drawn: tuple[tuple[str, str], ...] = ()
    if feature:
        parts.append(_feature_text(learner, inherited, feature, position.game))
        drawn = ((f"The feature {feature}: what may follow the move", feature_svg(feature)),)
    title, svg = f"What was learned: {learner_text(learner)}", pictures.move(position, role, best.move)
    yield Hint(role, best.move, "values", title, " ".join(parts), svg, drawn)


_UNMET = "It has never met the position after it, so this is a guess with which it begins."


def feature_after(
    learner: Learned, inherited: FeatureValues | None, position: Position, role: str, choice: int
) -> str | None:
    """Return the feature that the position after a move matches, as the learner looks at it.

    Return None if there is none, such as after the last move of a match, if the learner looks further than one feature,
    or if the feature is too large to be computed or to be shown.

    Args:
        learner: a learner of this game
        inherited: the feature values with which it began
        position: a position
        role: the role that moves
        choice: index of its move
    """
    depth = learner.stored.depth
    if learner.settings.get("turns") or not depth or len(position.legal[role]) ** depth > MOST_BELOW:
        return None
    graph, number = PositionGraph(position.game), position.game.roles.index(role)
    row = graph.intern(position.state[None])
    graph.expand(row)
    own = own_afterstates(row, number, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
    space = feature_space(graph, number, depth, _equivalence(learner, inherited))
    (tree,) = space.ids(own[[choice]]).tolist()
    feature = space.feature(tree) if tree >= FIRST_SET else None
    return feature if feature is not None and len(feature) <= MOST_LETTERS else None


def _equivalence(learner: Learned, inherited: FeatureValues | None) -> Equivalence | None:
    """Return how a learner translates the outcomes of its game to those of its sources; None if it does not."""
    if inherited is None:
        return None
    outcomes, given = learner.stored.outcomes, learner.settings.get("equivalence")
    return Equivalence.given(dict(given), outcomes) if given else Equivalence.default(outcomes, inherited.outcomes)


def _feature_text(learner: Learned, inherited: FeatureValues | None, feature: str, game: Game) -> str:
    """Say what a feature means, and what it was worth where it was learned."""
    told = f"Why: {feature_words(feature, learner.role, _others_name(game))}. This is the feature {feature}"
    sources, equivalence = " and ".join(learner.sources), _equivalence(learner, inherited)
    if inherited is not None and equivalence is not None and feature in inherited:
        value, visits = inherited[feature]
        return (
            f"{told}. In {sources} such positions were worth {equivalence.back(value):.0f} points (met "
            f"{counted(visits, 'time')}): with this value the learner began here."
        )
    if inherited is not None:
        return f"{told}, which {sources} has not taught."
    if learner.stored.features_at == learner.num_matches and feature in learner.features:
        value, visits = learner.features[feature]
        return f"{told}; such positions were worth {value:.0f} points (met {counted(visits, 'time')})."
    return f"{told}."


def _others_name(game: Game) -> str:
    return {1: "the game", 2: "the opponent"}.get(game.num_roles, "the others")


# ---- learned sequences ------------------------------------------------------------------------------------------


def sequence_hints(
    stored: StoredLearner, pairs: ContextPairs, position: Position, role: str, pictures: HintPictures
) -> Iterator[Hint]:
    """Yield the move for which the learned sequences vote, with the strongest of them.

    Args:
        stored: the learner of sequences
        pairs: its pairs with high weights, sorted by descending weight
        position: a position in which the match goes on
        role: a role that has a choice
        pictures: draws positions
    """
    advice = _advice(pairs, position, role) if len(pairs) else None
    if advice is None or advice.choices[0] < 0:
        return
    strongest = min(advice.pairs.tolist(), key=lambda pair: (-pairs.weights[pair], pair))
    vote = advice.pairs.tolist().index(strongest)
    context, sequence = _turned(pairs, advice, vote)
    says = f"{_context_text(context, pictures.boards)}, play {_sequence_text(sequence)}"
    reason = _votes_text(pairs, np.unique(advice.pairs), strongest, says, _expert(stored))
    is_solo = bool(pairs.kinds[advice.branches[vote]] == SOLO)
    svg = _sequence_svg(position, context, sequence, is_solo, pictures)
    title = f"Learned sequences, from {counted(stored.num_matches, 'match', 'matches')} of the player {_expert(stored)}"
    yield Hint(role, position.legal[role][int(advice.choices[0])], "sequences", title, reason, svg)


def _votes_text(pairs: ContextPairs, voters: NDArray[np.int32], strongest: int, says: str, expert: str) -> str:
    """Say how many patterns vote for a move, what the strongest of them says, and why it has its weight."""
    votes = "votes for this move," if len(voters) == 1 else "vote for this move, together"
    record = pairs.record
    comments, agreements = (round(float(column[strongest])) for column in (record.comments, record.agreements))
    return (
        f"{counted(len(voters), 'learned pattern')} {votes} with a weight of {pairs.weights[voters].sum():.2f}. The "
        f"strongest, with a weight of {pairs.weights[strongest]:.2f} of at most 1, says: {says}. In {agreements} of "
        f"{counted(comments, 'position')} in which it advised a move, the player {expert} made that move."
    )


def _advice(pairs: ContextPairs, position: Position, role: str) -> Advice:
    """Return what the pairs advise, in the tiers of SeqPlayer."""
    graph = PositionGraph(position.game)
    row = graph.intern(position.state[None])
    graph.list_moves(row)
    lane, number = np.zeros(1, np.int64), position.game.roles.index(role)
    turn = Turn(graph, number, lane, row, np.zeros(1, np.uint64), np.zeros(1, np.int32))
    return consult(pairs, turn, np.array(TIERS[2]), np.ones(len(position.legal[role]), np.bool_))


def _turned(pairs: ContextPairs, advice: Advice, vote: int) -> tuple[frozenset[str], Branch]:
    """Return the context and the sequence of a vote, turned by the symmetry under which they fit the position."""
    patterns, branch = pairs.patterns, pairs.moves[advice.branches[vote]]
    inverse = int(patterns.symmetries.inverse[advice.symmetries[vote]])
    (context,) = padded(pairs.contexts[advice.pairs[vote]][None], patterns.num_words)
    turned = np.empty_like(context)
    image(context, inverse, patterns.byte_tables, turned)
    images = patterns.move_images(branch)[inverse]
    moves = (patterns.move_text(int(images[move])) for move in branch.tolist() if move != NO_MOVE)
    return patterns.facts(turned), tuple((patterns.game.roles[role], move) for role, move in moves)


def _context_text(context: frozenset[str], boards: Boards) -> str:
    """Return a context in words. Its places are shaded in the picture."""
    others = sorted(fact for fact in context if boards.place_of(fact) is None)
    places, parts = len(context) - len(others), list[str]()
    if places:
        parts.append(f"the {counted(places, 'shaded place')} {'is' if places == 1 else 'are'} as now")
    if others:
        parts.append(f"{' and '.join(others[:MOST_FACTS])} {'holds' if len(others) == 1 else 'hold'}")
    return f"when {' and '.join(parts)}" if parts else "at any time"


def _sequence_text(sequence: Branch) -> str:
    (_, first), *rest = sequence
    return ", then ".join([first, *(f"{role} {move}" for role, move in rest)])


def _expert(stored: StoredLearner) -> str:
    """Return the name of the player that a learner of sequences has watched."""
    watched = stored.settings.get("curriculum")
    return str(watched["expert"]) if isinstance(watched, dict) and "expert" in watched else "its expert"


def _sequence_svg(
    position: Position, context: frozenset[str], sequence: Branch, is_solo: bool, pictures: HintPictures
) -> str:
    """Draw the moves of a sequence in a position, with the places of its context shaded."""
    effects = Effects(position.game, pictures.boards).of(position.facts, sequence, solo=is_solo, whole=True)
    between, steps = position.game.num_roles if is_solo else 1, list[Step]()
    for number, effect in enumerate(effects):
        ways = [*((place, None) for place in effect.placed), *((target, source) for source, target in effect.moved)]
        steps += (Step(target, source, 1 + number * between) for target, source in ways)
    lying = filter(None, map(pictures.boards.place_of, context))
    return pictures.steps(position, steps, {place: CONTEXT_HEAT for place, _ in lying})


# ---- the lesson of the player gamelore --------------------------------------------------------------------------


def lesson_hints(lesson: StoredLesson, position: Position, role: str, pictures: HintPictures) -> Iterator[Hint]:
    """Yield the move whose facts have the largest sum of weights.

    Args:
        lesson: a lesson that has a value
        position: a position in which only the role has a choice
        role: a role
        pictures: draws positions
    """
    number, legal = position.game.roles.index(role), position.legal[role][:MOST_MOVES]
    weights = {fact: POINTS * own[number] for fact, own in lesson.value.weights.items() if own[number]}
    afterwards = list(facts_after(position, role, range(len(legal))))
    values = [sum(weights.get(fact, 0.0) for fact in facts) for facts in afterwards]
    best = max(range(len(legal)), key=values.__getitem__)
    if round(values[best] - min(values)) == 0:
        return
    reason = (
        f"In its searches, the player gamelore has learned how many points a fact is worth after a move of {role}. "
        f"This move is {values[best] - sum(values) / len(values):.1f} points better than the mean of all moves: "
        f"{_weighty(afterwards, best, weights)}. These points explain {lesson.value.determination:.0%} of what its "
        f"searches find, so they are {'a good' if lesson.value.determination >= GOOD_GUIDE else 'only a rough'} guide."
    )
    drawn = weights_svg(pictures.boards, {role: weights})
    title, svg = "The memory of the player gamelore", pictures.move(position, role, legal[best])
    yield Hint(role, legal[best], "lesson", title, reason, svg, (("What facts are worth, in points", drawn),))


def _weighty(afterwards: Sequence[frozenset[str]], best: int, weights: Mapping[str, float]) -> str:
    """Return the facts by which the value of a move differs the most from the mean of all moves, with their points.

    A fact adds its weight if it holds after the move, less the share of all moves after which it holds.
    """
    shares = {fact: sum(fact in facts for facts in afterwards) / len(afterwards) for fact in weights}
    added = {fact: weights[fact] * ((fact in afterwards[best]) - share) for fact, share in shares.items()}
    largest = sorted(added, key=lambda fact: (-abs(added[fact]), fact))[:MOST_FACTS]
    return ", ".join(
        f"{'' if fact in afterwards[best] else 'no '}{fact} {added[fact]:+.1f}" for fact in largest if added[fact]
    )
