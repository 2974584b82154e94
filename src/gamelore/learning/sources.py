"""Recognition of renamed or reordered games by their rules; source games and feature values for a transfer learner.

A recognised game is played with the rules of the known game, and names are translated (`analysis.isomorphism`).
Therefore all versions of a game have the same learner. The games shipped with gamelore are always known.

A transfer learner begins with the feature values of its sources. The sources are learners of other games in the store.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .. import rulesheets
from ..analysis.isomorphism import Renaming, find_renaming, shape_hash
from ..errors import GameloreError, GDLError, KnowledgeError, one_of
from ..gdl.syntax import Rulesheet, num_names, parse
from ..matches.opponents import OpponentSettings, opponent_text
from ..players.position_graph import PositionGraph
from ..rulesheets import load
from .store.features import FeatureValues, Rule, combine
from .store.knowledge import KnowledgeStore
from .store.schema import StoredLearner, to_json
from .td import series
from .td.afterstates import merging_symmetries, role_number
from .td.discovery import check_goals, feature_space
from .td.initial_values import LearnerSettings
from .td.learner import Learner

if TYPE_CHECKING:
    from ..game.game import Game
    from ..gdl.limits import Limits
    from .td.afterstates import Afterstates
    from .td.discovery import FeatureSpace

_log = logging.getLogger(__name__)


class KnownRules(NamedTuple):
    """A known game: its name, the hash of its rules (`Rulesheet.rules_hash`), and the text of its rules."""

    name: str
    rules_hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Recognised:
    """The game that was recognised for a given rulesheet.

    name      the name of the game
    sheet     the rulesheet to play with: that of the known game
    renaming  the renaming from `sheet` to the given rulesheet
    is_new    True: no known game is equal up to names and order; then `sheet` is the given rulesheet, and the renaming
              is the identity
    """

    name: str
    sheet: Rulesheet
    renaming: Renaming
    is_new: bool


class Recognition:
    """The known games. Parsed rules and hashes are cached, so the first call of `recognise` takes the longest time.

    games    games in addition to the shipped games. If several known games are versions of the same game, a rulesheet
             is recognised as the first of them; the games in `games` come before the shipped games
    seconds  time limit for the comparison of a rulesheet with the known games; after it, the game counts as new. Only
             games of the same number of names are parsed, so that large games in a store cost little
    """

    def __init__(self, games: Iterable[KnownRules] = (), seconds: float = 2.0) -> None:
        self.seconds = seconds
        self._known: dict[str, _KnownGame] = {}
        for rules in chain(games, _shipped()):
            self.add(rules)

    def add(self, rules: KnownRules) -> None:
        """Add a game, unless a game with the same rules is already known."""
        self._known.setdefault(rules.rules_hash, _KnownGame(rules))

    def recognise(self, sheet: Rulesheet) -> Recognised:
        """Return the known game of a rulesheet, or a new game.

        The name of a new game is "game-" and the first eight digits of its `shape_hash`. Equal rules are recognised
        at once. For other rules, the shape hash is computed, and then known games are compared for about `seconds`;
        the first one always is.
        """
        exact = self._known.get(sheet.rules_hash)
        if exact and (recognised := exact.recognised(sheet, self.seconds)):
            return recognised
        shape = shape_hash(sheet)
        size, end = num_names(str(sheet)), monotonic() + self.seconds
        for game in self._known.values():
            is_similar = game.size == size and len(game.sheet.rules) == len(sheet.rules) and game.shape == shape
            if is_similar and (recognised := game.recognised(sheet, end - monotonic())):
                return recognised
            if monotonic() > end:
                break
        return Recognised(f"game-{shape[:8]}", sheet, Renaming.identity(sheet), is_new=True)


class _KnownGame:
    """A known game. Its rulesheet and its shape hash are computed when they are used for the first time."""

    def __init__(self, rules: KnownRules) -> None:
        self.name, self._text = rules.name, rules.text

    @cached_property
    def sheet(self) -> Rulesheet:
        """The parsed rules. They are empty if the text cannot be parsed, so that no game is recognised as this game."""
        try:
            return parse(self._text)
        except GDLError as error:
            _log.warning("the rules of %s cannot be read, so this game cannot be recognised: %s", self.name, error)
            return Rulesheet((), "")

    @cached_property
    def size(self) -> int:
        """See `num_names`."""
        return num_names(self._text)

    @cached_property
    def shape(self) -> str:
        return shape_hash(self.sheet)

    def recognised(self, sheet: Rulesheet, seconds: float) -> Recognised | None:
        renaming = find_renaming(self.sheet, sheet, seconds)
        return None if renaming is None else Recognised(self.name, self.sheet, renaming, is_new=False)


@cache
def _shipped() -> tuple[KnownRules, ...]:
    texts = ((name, rulesheets.path(name).read_text(encoding="utf-8")) for name in rulesheets.names())
    return tuple(KnownRules(name, parse(text).rules_hash, text) for name, text in texts)


ANYONE = "*"  # value of `Sources.opponent`: the sources may have any opponent
QUICK = 0.1  # seconds; after a batch of afterstates that takes less time, the next batch is twice as large


@dataclass(frozen=True)
class Sources:
    """The learners whose features a transfer learner begins with.

    games     the names of the source games, or the hashes of their rules
    opponent  the opponent of the sources: its full text, its kind, or ANYONE; None: the opponent of the transfer
              learner
    role      the role of the sources; None: every role
    rule      rule by which the values of several sources are combined, see `features.combine`
    """

    games: tuple[str, ...]
    opponent: str | None = None
    role: str | None = None
    rule: Rule = "visits"


TaughtValues: TypeAlias = tuple[Sequence[StoredLearner], FeatureValues]
"""The sources of a learner, and their combined feature values."""


@dataclass(frozen=True)
class Enrolment:
    """The identity of a learner of values. `opponent` is the full text of its opponent."""

    game: Game
    role: str
    settings: LearnerSettings
    opponent: str
    seed: int
    sources: Sources | None

    def find(self, knowledge: KnowledgeStore, *, any_sources: bool = False) -> StoredLearner | None:
        """Return the stored learner with this identity, or None.

        any_sources  ignore the sources, and return the oldest learner whose identity is otherwise equal
        """
        ignored = {"sources"} if any_sources else set()
        wanted = self.opponent, self.seed, _identity(self.about, ignored)
        for stored in knowledge.learners(source=self.game.rules_hash, role=self.role, opponent=self.opponent):
            if (stored.opponent, stored.seed, _identity(stored.settings, ignored)) == wanted:
                return stored
        return None

    def make(
        self, knowledge: KnowledgeStore, teachers: Sequence[StoredLearner], values: FeatureValues | None
    ) -> StoredLearner:
        """Add a new learner to the store and return it. It begins with `values`, which come from `teachers`.

        Raises KnowledgeError if the features of the sources have another depth than those of the learner, or if it
        needs the replies of the sources' opponents, but they were not counted.
        """
        games = ", ".join(sorted({teacher.game for teacher in teachers}))
        if values is not None and values.depth != self.settings.depth:
            raise KnowledgeError(
                f"expected features of depth {self.settings.depth} in {games}, got features of depth {values.depth}; "
                f"learn these games with depth={self.settings.depth}, or choose depth={values.depth}"
            )
        num_matches = sum(teacher.num_matches for teacher in teachers)
        if self.settings.needs_replies and values is not None and not has_replies(values, num_matches):
            raise KnowledgeError(
                f"expected the opponents' replies in {games} for a learner with turns={self.settings.turns}, got "
                f"{_reply_words(values, num_matches)} in {knowledge.path}; learn more matches of these games first "
                "with `gamelore learn`, which counts replies (older versions did not, and players of single matches "
                "do not), or set control to minimax"
            )
        return knowledge.learner(
            self.game,
            self.role,
            opponent=self.opponent,
            settings=self.about,
            seed=self.seed,
            inherited=values,
            sources=teachers,
        )

    @property
    def about(self) -> dict[str, Any]:
        """The settings in the form in which they are stored.

        They include the number of symmetries that are used. On the reasoner a game has no symmetries, and learning
        without symmetries gives other values.
        """
        about = self.settings.described()
        if self.settings.symmetry == "all":
            about["symmetries"] = merging_symmetries(self.game).num
        return about | ({"sources": asdict(self.sources)} if self.sources else {})


def _identity(about: Mapping[str, Any], ignored: Set[str]) -> str:
    return to_json({key: about[key] for key in about.keys() - ignored})


def enrol(
    knowledge: KnowledgeStore,
    game: Game,
    role: str,
    settings: LearnerSettings,
    opponent: OpponentSettings | str,
    *,
    seed: int = 0,
    sources: Sources | None = None,
    taught_by: TaughtValues | None = None,
) -> StoredLearner:
    """Return the stored learner with this identity. If there is none, add a new learner to the store.

    A new learner begins with `taught_by` or, without it, with the current feature values of its sources. Raises
    KnowledgeError if a transfer learner has no sources, or if its sources have no feature values, and GameloreError for
    a game with goals above 100, from which no features can be learned.
    """
    number = role_number(game, role)
    check_goals(game, number, game.goal_values[number])
    if sources is None and settings.needs_values:
        raise KnowledgeError(
            "expected source games for a transfer learner, got none; name games that were learned before"
        )
    against = opponent if isinstance(opponent, str) else opponent_text(opponent)
    enrolment = Enrolment(game, role, settings, against, seed, sources)
    if (stored := enrolment.find(knowledge)) is not None:
        return stored
    if taught_by is not None:
        return enrolment.make(knowledge, *taught_by)
    beginning = taught(knowledge, sources, against, settings.depth) if sources else ((), None)
    return enrolment.make(knowledge, *beginning)


def check_games(knowledge: KnowledgeStore, sources: Sources) -> None:
    """Raise GameloreError if a source game is neither in the store nor shipped, since its name must be a mistake."""
    learners = knowledge.learners()
    names = sorted({learner.game for learner in learners} | set(rulesheets.names()))
    hashes = {learner.rules_hash for learner in learners}
    for name in sources.games:
        if name not in hashes:
            one_of(name, names, "a source game that was learned or is shipped")


def sources_of(stored: StoredLearner) -> Sources | None:
    """Return the sources with which a stored learner began, as they were named."""
    about = stored.settings.get("sources")
    return Sources(**{**about, "games": tuple(about["games"])}) if about else None


def other_games(knowledge: KnowledgeStore, game: Game, against: str, depth: int) -> Sources | None:
    """Return all other games that were learned against this opponent, as sources.

    If there are none, return all other games that were learned against any opponent. Without these, return None.
    """
    num_named = Counter(game.name for game in knowledge.games())
    for opponent in (None, ANYONE):
        teachers = _can_teach(knowledge.learners(opponent=None if opponent else against), depth)
        others = {teacher.rules_hash: teacher.game for teacher in teachers if teacher.rules_hash != game.rules_hash}
        if others:
            names = (name if num_named[name] == 1 else rules_hash for rules_hash, name in others.items())
            return Sources(tuple(names), opponent)
    return None


def _can_teach(learners: Sequence[StoredLearner], depth: int) -> list[StoredLearner]:
    """Return those of the learners that learn values, have played matches and have features of this depth."""
    return [
        learner for learner in learners if learner.num_matches and learner.depth == depth and not learner.has_sequences
    ]


ENOUGH_DECISIONS = 100  # of opponents, for a model of their replies, however many matches were not counted


def has_replies(values: FeatureValues, num_matches: int) -> bool:
    """Return whether the replies in the matches of a source were counted, or at least enough of them for a model.

    The number of counted matches is not stored. If there are fewer decisions than one in two matches, most matches were
    probably not counted.
    """
    decisions = sum(values.replies.values())
    return decisions >= ENOUGH_DECISIONS or 2 * decisions >= max(num_matches, 1)


def _reply_words(values: FeatureValues, num_matches: int) -> str:
    decisions = sum(values.replies.values())
    return f"{decisions} decisions in {num_matches} matches" if decisions else "none"


def taught(
    knowledge: KnowledgeStore,
    sources: Sources,
    against: str,
    depth: int,
    *,
    keep: bool = True,
    seconds: float | None = None,
    needs_replies: bool = False,
) -> TaughtValues:
    """Return the sources of a transfer learner against this opponent, and their combined feature values.

    keep           False: feature values that are computed here are not stored
    seconds        time limit for computing feature values. Sources that take longer, or that fail, are left out, and a
                   warning is logged. None: no limit, and no source is left out
    needs_replies  True: sources without the replies of their opponents are left out, too, see `has_replies`

    Raises KnowledgeError if the sources have no feature values.
    """
    end = None if seconds is None else monotonic() + seconds
    teachers = list(_teachers(knowledge, sources, against, depth))
    values = [_values(knowledge, teacher, keep, end) for teacher in teachers]
    if needs_replies:
        values = [_with_replies(own, teacher) for own, teacher in zip(values, teachers, strict=True)]
    combined = combine([own for own in values if own is not None], sources.rule) if any(values) else None
    if not combined:
        games = ", ".join(sorted({teacher.game for teacher in teachers}))
        raise KnowledgeError(
            f"expected feature values from {games}, got none in {knowledge.path}; learn more matches of these "
            "games first"
        )
    return [teacher for teacher, own in zip(teachers, values, strict=True) if own is not None], combined


def _with_replies(values: FeatureValues | None, teacher: StoredLearner) -> FeatureValues | None:
    """Return the values if they have the replies of the opponents. If not, log a warning and return None."""
    if values is None or has_replies(values, teacher.num_matches):
        return values
    _log.warning(
        "%s is left out as a source: expected the replies of its opponents, got %s; learn more matches of it with "
        "`gamelore learn`, which counts replies",
        teacher.game,
        _reply_words(values, teacher.num_matches),
    )
    return None


def _teachers(knowledge: KnowledgeStore, sources: Sources, against: str, depth: int) -> Iterator[StoredLearner]:
    """Yield the learners of the source games. Raise KnowledgeError for a game without such a learner."""
    opponent = sources.opponent or against
    for game in sources.games:
        of_opponent = None if opponent == ANYONE else opponent
        teachers = _can_teach(knowledge.learners(source=game, role=sources.role, opponent=of_opponent), depth)
        if not teachers:
            others = sorted({learner.opponent for learner in _can_teach(knowledge.learners(source=game), depth)})
            raise KnowledgeError(
                f"expected knowledge of {game} against {opponent}, got none in {knowledge.path} (opponents there: "
                f"{', '.join(others) or 'none'}); learn that game first, or choose another source opponent"
            )
        yield from teachers


def _values(knowledge: KnowledgeStore, learner: StoredLearner, keep: bool, end: float | None) -> FeatureValues | None:
    """Return the current feature values of a learner, or None if it must be left out as a source.

    It is left out if its values cannot be computed, or not before `end` (monotonic time). With end=None errors are
    raised instead.
    """
    if learner.features_at != learner.num_matches:
        try:
            values = computed_features(knowledge, learner, end)
        except (GameloreError, MemoryError, TimeoutError) as error:
            if end is None:
                raise
            _log.warning("%s is left out as a source: %s", learner.game, str(error) or type(error).__name__)
            return None
        if not keep:
            return values
        knowledge.store_features(learner, values)
    return knowledge.feature_values(learner)


def computed_features(
    knowledge: KnowledgeStore, stored: StoredLearner, end: float | None = None, limits: Limits | None = None
) -> FeatureValues:
    """Compute a learner's feature values from its stored afterstates, and return them without storing them.

    end     monotonic time; TimeoutError is raised after it
    limits  those of loading the learner's game
    """
    graph = PositionGraph(load(knowledge.rules(stored), limits=limits))
    settings = LearnerSettings(symmetry=stored.settings.get("symmetry", "none"))
    learner = Learner(graph, role_of(knowledge, stored, graph.game), [settings])
    knowledge.restore(stored, learner.restore)
    if end is not None:
        _look_into(feature_space(graph, learner.role, stored.depth), learner.table.lane(0)[0], end)
    return series.learned_features(learner, 0, stored.depth)


def role_of(knowledge: KnowledgeStore, stored: StoredLearner, game: Game) -> int:
    """Return the number of a learner's role in its game, whose rulesheet may spell it in another case."""
    roles = [role.lower() for role in game.roles]
    if stored.role.lower() not in roles:
        raise KnowledgeError(
            f"{knowledge.path}: expected learner {stored.id} in a role of {stored.game}, got {stored.role!r}; remove "
            f"it (gamelore knowledge delete {stored.id})"
        )
    return roles.index(stored.role.lower())


def _look_into(space: FeatureSpace, afterstates: Afterstates, end: float) -> None:
    """Compute the feature ids of these afterstates; the space keeps the ids. Raise TimeoutError after `end`."""
    done, size = 0, 1
    while done < len(afterstates):
        begin = monotonic()
        if begin >= end:
            raise TimeoutError(
                f"there was not enough time for {len(afterstates) - done} of {len(afterstates)} afterstates"
            )
        space.ids(afterstates[done : done + size])
        done, size = done + size, 2 * size if monotonic() - begin < QUICK else 1
