"""The knowledge store, and what a learner in it has learned: `Knowledge`, `Learned` and `LearnedSequences`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..drawing.thought import MoveThought, Thought
from ..errors import GameloreError, KnowledgeError, counted
from ..game.game import Game, Position, make
from .rows import save_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..lab.sequence_text import LearnedPair
    from ..learning.sequences.seqlearner import SeqLearner
    from ..learning.session import StoredValuePlayer
    from ..learning.store.features import FeatureValues
    from ..learning.store.knowledge import DeletedLearner
    from ..learning.store.knowledge import KnowledgeStore as Store
    from ..learning.store.schema import StoredLearner
    from ..players.player import Player
    from ..players.position_graph import PositionGraph
    from .game_lessons import GameLesson, LessonSummary

BEST_PAIRS = 10  # pairs of a learner of sequences that are drawn


class LearnedMoves(Thought):
    """What a learner has learned about the moves of a position; a picture in notebooks, text with `print`.

    `moves` has for its role each move with `mean` (the learned value, in points) and `visits`.
    """

    @property
    def effort(self) -> str:
        """What the values come from, as text."""
        return f"learned values; in brackets the visits, {self.simulations:,} together"

    def warmth(self, moves: Sequence[MoveThought]) -> list[float]:
        """Return how strongly the place of each move is shaded: 0 for the lowest value, 1 for the highest."""
        values = [move.mean or 0.0 for move in moves]
        low, high = min(values), max(values)
        return [(value - low) / (high - low) if high > low else 0.5 for value in values]

    def badge(self, move: MoveThought, total: int) -> tuple[str, ...]:
        """Return what stands on the board about a move: its value, and its number of visits."""
        return move.value, f"{move.visits:,}x"


@dataclass(frozen=True)
class Home:
    """Where a learner is: the file of its store, or the bytes of a store in memory, and its number there."""

    store: Path | bytes
    number: int

    @contextmanager
    def open(self, *, writable: bool = False) -> Iterator[tuple[Store, StoredLearner]]:
        """Open the store, and yield it with the learner."""
        from ..learning.store.knowledge import KnowledgeStore as Store
        from ..learning.store.schema import IN_MEMORY

        if isinstance(self.store, Path):
            with Store(self.store, create=False, writable=writable) as store:
                yield store, store.find(self.number)
        else:
            with Store(IN_MEMORY) as store:
                store.fill(self.store)
                yield store, store.find(self.number)


class _Remembered(ABC):
    """What all learners of a store have in common.

    What they have learned is read from the store when it is first asked for.
    """

    def __init__(self, home: Home, stored: StoredLearner, game: Game | None = None) -> None:
        self._home = home
        self.stored = stored
        if game is not None:
            self.game = game

    @cached_property
    def game(self) -> Game:
        """The game that was learned."""
        from ..gdl.syntax import parse

        with self._home.open() as (store, stored):
            return make(parse(store.rules(stored)), stored.game)

    @property
    def number(self) -> int:
        """Its number in the store."""
        return self.stored.id

    @property
    def kind(self) -> str:
        """The kind of learner, such as "transfer"."""
        return str(self.stored.settings.get("kind", "?"))

    @property
    def opponent(self) -> str:
        """The opponents from which it has learned."""
        return self.stored.opponent

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return self.stored.seed

    @property
    def settings(self) -> dict[str, Any]:
        """All settings."""
        return dict(self.stored.settings)

    @property
    def sources(self) -> list[str]:
        """The games from which it had knowledge at its begin."""
        return list(dict.fromkeys(source["game"] for source in self.stored.sources))

    @property
    def num_matches(self) -> int:
        """Number of matches from which it has learned."""
        return self.stored.num_matches

    @cached_property
    def _matches(self) -> NDArray[np.float64]:
        """float64[matches, 2]: reward and length of each match."""
        with self._home.open() as (store, stored):
            matches = [(match.reward, match.length) for match in store.matches(stored)[: self.num_matches]]
        return np.array(matches, np.float64).reshape(-1, 2)

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Rewards, float64[matches], 0 to 100; for a learner of sequences those of the player that it watched."""
        return self._matches[:, 0]

    @property
    def plies(self) -> NDArray[np.int64]:
        """Lengths of the matches in plies, int64[matches]."""
        return self._matches[:, 1].astype(np.int64)

    def save(self, path: str | Path) -> None:
        """Write what was learned: as an export if the file ends in .json, else into the knowledge store in this file.

        A file that ends in .csv gets the rows.

        Raises:
            KnowledgeError: the store has a learner with the same identity, but other matches.
        """
        from ..learning.exchange import export_learners, import_learners
        from ..learning.store.knowledge import KnowledgeStore as Store

        if Path(path).suffix == ".csv":
            return save_rows(path, self.rows)
        with self._home.open() as (store, stored), TemporaryDirectory() as folder:
            is_export = Path(path).suffix == ".json"
            file = Path(path) if is_export else Path(folder, "learner.json")
            export_learners(store, file, [stored.id])
            if not is_export:
                with Store(path) as other:
                    import_learners(other, file)

    @property
    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """What was learned as rows."""

    @property
    def row(self) -> dict[str, Any]:
        """The learner as a row of `Knowledge.rows`."""
        return {
            "number": self.number,
            "game": self.stored.game,
            "role": self.stored.role,
            "kind": self.kind,
            "opponent": self.opponent,
            "sources": ", ".join(self.sources),
            "matches": self.num_matches,
            "seed": self.seed,
            "since": self.stored.created[:10],
        }


class Learned(_Remembered):
    """What a learner of values has learned (Banerjee & Stone 2007). `print` shows its features.

    Its attributes are `game`, `role`, `kind`, `opponent`, `sources`, `settings`, `seed`, `num_matches`, and the arrays
    `rewards` and `plies`. In notebooks it draws its rewards and its features.
    """

    @property
    def role(self) -> str:
        """The role that it has learned."""
        return self.stored.role

    @property
    def mean_reward(self) -> float:
        """Mean reward of all matches; NaN without a match."""
        return float(self.rewards.mean()) if len(self.rewards) else float("nan")

    @cached_property
    def feature_values(self) -> FeatureValues:
        """The features with their values and visits, as a transfer learner gets them (Banerjee & Stone, Table 1)."""
        from ..learning.sources import computed_features

        with self._home.open() as (store, stored):
            is_current = stored.features_at == stored.num_matches
            return store.feature_values(stored) if is_current else computed_features(store, stored)

    @property
    def features(self) -> dict[str, tuple[float, int]]:
        """Feature -> (its value in points, number of visits)."""
        return dict(self.feature_values)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each match: its number, reward and length."""
        return [
            {"match": number, "reward": reward, "plies": plies}
            for number, (reward, plies) in enumerate(zip(self.rewards.tolist(), self.plies.tolist(), strict=True))
        ]

    @cached_property
    def _values(self) -> StoredValuePlayer:
        from ..learning.session import StoredValuePlayer

        with self._home.open() as (store, stored):
            return StoredValuePlayer(store, stored, self.game)

    @cached_property
    def _graph(self) -> PositionGraph:
        from ..players.position_graph import PositionGraph

        return PositionGraph(self.game)

    def player(self) -> Player:
        """Return a player that makes the moves with the best learned values, and neither learns nor explores."""
        return self._values

    def moves(self, position: Position) -> LearnedMoves:
        """Return what it has learned about its moves in a position.

        Raises:
            GameloreError: the position is one of another game, or the match is over.
        """
        state = self.game.state_of(position)
        if position.is_terminal:
            raise GameloreError("expected a position in which the match goes on, got the end of a match")
        graph, values = self._graph, self._values
        row = graph.intern(state[None])
        graph.list_moves(row)
        _, q, visits = values.on(graph).estimates(0, row)
        role = position.game.roles[values.role]
        moves = [
            MoveThought(index, move, int(n), float(value), 0, 100, None, False)
            for index, (move, value, n) in enumerate(zip(position.legal[role], q, visits, strict=True))
        ]
        moves.sort(key=lambda move: -(move.mean or 0.0))
        return LearnedMoves(position, {role: moves}, (), int(visits.sum()), 0.0, 0, False)

    def plot(self) -> Figure:
        """Return a matplotlib figure: the mean reward of the matches so far, and of the last hundred."""
        from ..lab.figures import rewards_figure

        return rewards_figure(self.rewards)

    def plot_features(self) -> Figure:
        """Return a matplotlib figure of the features with their values, as in the paper (Figure 2 and Table 1)."""
        from ..lab.feature_trees import drawable, features_figure, labelled

        values = ((text, {self.opponent.partition(":")[0]: value}) for text, (value, _) in self.features.items())
        return features_figure(drawable(labelled(values)), title=f"{self.stored.game}, {self.role}")

    def __repr__(self) -> str:
        about = f"{self.stored.game}: {self.role} against {self.opponent}, {self.kind}"
        return f"<Learned {about}, {counted(self.num_matches, 'match', 'matches')}, mean reward {self.mean_reward:.1f}>"

    def __str__(self) -> str:
        from ..lab.feature_trees import drawable, feature_sheet, labelled

        values = ((text, {"value": value, "visits": visits}) for text, (value, visits) in self.features.items())
        return f"{self!r}\n\n{feature_sheet(drawable(labelled(values)), 100)}"

    def _repr_html_(self) -> str:
        from ..lab.figures import svg_text

        return f"<p>{escape(repr(self))}</p>{svg_text(self.plot())}{svg_text(self.plot_features())}"


class LearnedSequences(_Remembered):
    """What a learner of sequences has learned (Lock & Epstein 2004). `print` draws its best pairs.

    Its attributes are `game`, `opponent` (whom it watched), `settings`, `seed`, `num_matches`, and the arrays `rewards`
    and `plies`. In notebooks it draws its best pairs.

    Attributes:
        tests: for each match-up of a test its players and results, if the learner was tested.
    """

    def __init__(
        self, home: Home, stored: StoredLearner, game: Game | None = None, tests: Sequence[dict[str, Any]] = ()
    ) -> None:
        super().__init__(home, stored, game)
        self.tests = list(tests)

    @cached_property
    def _learner(self) -> SeqLearner:
        from ..learning.session import load_learner

        with self._home.open() as (store, stored):
            return load_learner(store, stored, self.game)

    @property
    def num_sequences(self) -> int:
        """Number of sequences that it has met."""
        return len(self._learner.table)

    @property
    def num_with_context(self) -> int:
        """Number of these sequences that have a context."""
        return len(self._learner.repeated)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the pairs, float64[pairs], 0 to 1."""
        return self._learner.pairs.weights

    def weight_classes(self) -> list[tuple[float, int]]:
        """Return classes of weights as (lowest weight, number of pairs), the class of the highest weights first."""
        from ..learning.sequences.seqplayer import weight_classes

        return weight_classes(self.weights)

    @cached_property
    def pairs(self) -> list[LearnedPair]:
        """All pairs of a context with its sequences, those with the highest weights first."""
        from ..lab.sequence_text import best

        pairs = self._learner.pairs
        return best(pairs, len(pairs))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each pair, with its role, context, sequences, weight, and the counts of its advice."""
        return [pair.as_json() for pair in self.pairs]

    def player(self, **options: object) -> Player:
        """Return SeqPlayer with these pairs.

        Args:
            options: see `gamelore players`, such as `version=2`.
        """
        from ..learning.sequences.seqplayer import SeqPlayer, SeqPlayerSettings

        return SeqPlayer(self._learner.pairs, SeqPlayerSettings(**options))  # type: ignore[arg-type]

    def plot(self, top: int = BEST_PAIRS) -> Figure:
        """Return a matplotlib figure of the best pairs on boards, as in the paper (Figures 5 to 7)."""
        from ..lab.sequence_pictures import pairs_figure

        best = [drawn for label, pair in enumerate(self.pairs[:top], 1) for drawn in pair.drawn(str(label))]
        return pairs_figure(self.game, best, self._title(top))

    def _title(self, top: int) -> str:
        num = len(self.pairs)
        return f"{self.stored.game}: the best {min(top, num)} of {counted(num, 'pair')}"

    def __repr__(self) -> str:
        watched = f"{counted(self.num_matches, 'match', 'matches')} watched"
        return f"<LearnedSequences {self.stored.game}: {counted(len(self.pairs), 'pair')}, {watched}>"

    def __str__(self) -> str:
        from ..lab.sequence_text import pairs_text

        best = [drawn for label, pair in enumerate(self.pairs[:BEST_PAIRS], 1) for drawn in pair.drawn(str(label))]
        return f"{self._title(BEST_PAIRS)}\n\n{pairs_text(self.game, best, 100)}"

    def _repr_html_(self) -> str:
        from ..lab.figures import svg_text

        return f"<p>{escape(repr(self))}</p>{svg_text(self.plot())}"


class Knowledge(Sequence[Learned | LearnedSequences]):
    """A knowledge store: a file with everything that learners have learned, as a sequence of learners.

    Indices count from 0, the oldest learner first; `export` and `delete` take the numbers of learners (`number`).

    The store is opened for each access, so several programs may use it at once. A missing file is created when
    something is learned.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        """Name a store.

        Args:
            path: the file; None for the user's own store, to which `gamelore learn` writes.
        """
        from ..learning.store.knowledge import default_path

        self.path = default_path() if path is None else Path(path).expanduser()

    def learners(
        self, *, game: Game | str | None = None, role: str | None = None, opponent: str | None = None
    ) -> list[Learned | LearnedSequences]:
        """Return the learners that fulfil all conditions, the oldest first.

        Args:
            game: their game, its name, or the hash of its rules.
            role: their role; learners of sequences learn for all roles.
            opponent: their opponent, with options, or its kind.

        Raises:
            KnowledgeError: the file is not a store, or is damaged.
        """
        if not self.path.exists():
            return []
        source = game.rules_hash if isinstance(game, Game) else game
        with self._open() as store:
            return [
                (LearnedSequences if stored.has_sequences else Learned)(Home(self.path, stored.id), stored)
                for stored in store.learners(source=source, role=role, opponent=opponent)
            ]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each learner."""
        return [learner.row for learner in self]

    def export(self, path: str | Path, numbers: Sequence[int] | None = None) -> int:
        """Write learners with these numbers, or all, into a JSON file; return how many were written."""
        from ..learning.exchange import export_learners

        with self._open() as store:
            return export_learners(store, Path(path), numbers)

    def add(self, path: str | Path) -> int:
        """Add the learners of a file that `export` wrote; return how many are new or have new matches.

        Raises:
            KnowledgeError: the file is no export, or something in it is wrong; nothing is added then.
        """
        from ..learning.exchange import import_learners
        from ..learning.store.knowledge import KnowledgeStore as Store
        from ..learning.store.schema import IN_MEMORY

        if not self.path.exists():
            with Store(IN_MEMORY) as rehearsal:  # a wrong file makes no store
                import_learners(rehearsal, Path(path))
        with Store(self.path) as store:
            return import_learners(store, Path(path))

    def check(self) -> list[str]:
        """Return what is wrong with the file, its games, learners or lessons, a text for each; [] if all is well."""
        from ..learning.exchange import problems

        with self._open() as store:
            return list(problems(store))

    def delete(self, *numbers: int) -> list[DeletedLearner]:
        """Delete the learners with these numbers, with all that they have learned; return them as they were.

        Raises:
            KnowledgeError: the store does not have one of them; nothing is deleted then.
        """
        from ..learning.store.knowledge import KnowledgeStore as Store

        with Store(self.path, create=False) as store:
            return store.delete(numbers)

    def lessons(self) -> list[LessonSummary]:
        """Return a summary of each lesson about a game that searches have given, see `study`; the oldest first.

        A lesson that cannot be read has a summary with the text `damage`.

        Raises:
            KnowledgeError: the file is not a store, or is damaged.
        """
        from ..learning.store.lesson_rows import Lessons
        from .game_lessons import readable_summary_of

        if not self.path.exists():
            return []
        with self._open() as store:
            lessons = Lessons(store)
            return [readable_summary_of(lessons, row) for row in lessons.games()]

    def lesson(self, game: Game | str | Path) -> GameLesson:
        """Return the lesson about a game.

        Args:
            game: a game, or what `load` takes.

        Raises:
            GameloreError: the store has no lesson about it.
        """
        from ..learning.store.lesson_rows import Lessons
        from ..rulesheets import loaded
        from .game_lessons import lesson_of

        rules = loaded(game)
        with self._open() as store:
            return lesson_of(rules, Lessons(store))

    def ledger(self) -> list[dict[str, Any]]:
        """Return which advice won or lost in which games, in tests against the same player without it.

        Returns:
            A dictionary for each game, kind of advice and rival: `game`; `advice`, which is "lesson", "variant",
            "openings" or a parameter of the search; `against`, see `AdviceTest`; `rounds` of matches with sides
            swapped; and the mean `score` in them, 0 to 100. A game with damaged tests is left out; `lessons` and
            `gamelore lessons list` tell of it.
        """
        from ..learning.store.lesson_rows import Lessons

        if not self.path.exists():
            return []
        with self._open() as store:
            rows = Lessons(store).ledger()
        return [
            {
                "game": row.name,
                "advice": row.advice,
                "against": row.against,
                "rounds": row.num,
                "score": 100 * row.total / row.num,
            }
            for row in rows
        ]

    def export_lessons(self, path: str | Path, games: Iterable[Game | str | Path] | None = None) -> int:
        """Write the lessons about some games, or all, into a JSON file; return how many were written."""
        from ..learning.exchange import check_lesson
        from ..learning.lesson_exchange import export_lessons
        from ..learning.store.lesson_rows import Lessons
        from ..rulesheets import loaded

        given = None if games is None else [loaded(game) for game in games]
        with self._open() as store:
            lessons = Lessons(store)
            chosen = lessons.games() if given is None else given
            for row in chosen:
                if lessons.state(row.rules_hash) is None:
                    raise KnowledgeError(
                        f"{self.path}: expected a lesson about {row.name}, got none; gamelore lessons list shows all"
                    )
                check_lesson(lessons, row.rules_hash, row.name)
            return export_lessons(lessons, Path(path), [row.rules_hash for row in chosen])

    def add_lessons(self, path: str | Path) -> int:
        """Add the lessons of a file that `export_lessons` wrote; return how many are new, or were taught longer.

        Raises:
            KnowledgeError: the file is no export, or something in it is wrong; nothing is added then.
        """
        from ..learning.lesson_exchange import read_lessons
        from ..learning.store.knowledge import KnowledgeStore as Store
        from ..learning.store.lesson_rows import Lessons

        lessons = read_lessons(Path(path))  # a wrong file makes no store
        with Store(self.path) as store:
            return Lessons(store).add(lessons)

    def delete_lesson(self, game: Game | str | Path) -> bool:
        """Delete the lesson about a game, with its openings, tests and matches; return whether there was one."""
        from ..learning.store.knowledge import KnowledgeStore as Store
        from ..learning.store.lesson_rows import Lessons
        from ..rulesheets import loaded

        with Store(self.path, create=False) as store:
            return Lessons(store).delete(loaded(game).rules_hash)

    def save(self, path: str | Path) -> None:
        """Write the rows into a file that ends in .csv or .json; `export` writes what was learned."""
        save_rows(path, self.rows)

    @contextmanager
    def _open(self) -> Iterator[Store]:
        from ..learning.store.knowledge import KnowledgeStore as Store

        with Store(self.path, create=False, writable=False) as store:
            yield store

    def __getitem__(self, index: Any) -> Any:
        return self.learners()[index]

    def __iter__(self) -> Iterator[Learned | LearnedSequences]:
        return iter(self.learners())

    def __len__(self) -> int:
        if not self.path.exists():
            return 0
        with self._open() as store:
            return len(store.numbers())

    def __repr__(self) -> str:
        return f"<Knowledge {self.path}: {counted(len(self), 'learner')}>"

    def _repr_html_(self) -> str:
        rows = self.rows
        head = "".join(f"<th>{name}</th>" for name in (rows[0] if rows else ()))
        body = "".join(f"<tr>{''.join(f'<td>{escape(str(x))}</td>' for x in row.values())}</tr>" for row in rows)
        return f"<p>{escape(repr(self))}</p><table><tr>{head}</tr>{body}</table>"
