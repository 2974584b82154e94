"""Learning: `learn` lets a learner of values play matches, or a learner of sequences watch them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

from ..errors import GameloreError, check_count, check_seed, one_of
from ..game.game import Game
from ..rulesheets import loaded
from .memory import Home, Knowledge, Learned, LearnedSequences
from .playing import name_of, others_of, player_of
from .progress import Progress, displayed

if TYPE_CHECKING:
    from ..learning.sequences.seqlearner import Curriculum, SeqLearner
    from ..learning.sources import Enrolment, Sources, TaughtValues
    from ..learning.store.knowledge import KnowledgeStore as Store
    from ..learning.store.schema import StoredLearner
    from ..learning.study import Opposition
    from ..matches.opponents import OpponentSettings
    from ..players.player import Player
    from ..solver.solution import Solution
    from .playing import AnyPlayer

ValueKind: TypeAlias = Literal["baseline", "transfer", "lookahead", "oracle"]
Combination: TypeAlias = Literal["visits", "mean", "first", "most"]
MATCHES, TOURNAMENT = 100, 20  # default number of matches of a series, and of a tournament
TESTS = 50  # matches of each test of a learner of sequences


@overload
def learn(
    game: Game | str | Path,
    learner: ValueKind = "baseline",
    *,
    role: str | None = None,
    opponent: AnyPlayer | Mapping[str, AnyPlayer] = "egreedy",
    matches: int | None = None,
    sources: Sequence[str | Learned] | None = None,
    source_opponent: str | None = None,
    source_role: str | None = None,
    combine: Combination = "visits",
    store: Knowledge | str | Path | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Learned: ...
@overload
def learn(
    game: Game | str | Path,
    learner: Literal["sequences"],
    *,
    expert: AnyPlayer = "perfect",
    against: Sequence[AnyPlayer] | None = None,
    cycles: int = 2,
    matches: int | None = None,
    tests: int = TESTS,
    symmetry: Literal["all", "none"] = "all",
    store: Knowledge | str | Path | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> LearnedSequences: ...
def learn(
    game: Game | str | Path,
    learner: str = "baseline",
    *,
    matches: int | None = None,
    store: Knowledge | str | Path | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Learned | LearnedSequences:
    """Let a learner play a game, or watch matches of it, and return what it has learned.

    With a store, the learner is kept there after each match or tournament. The same call again continues it, and does
    nothing if it has all its matches.

    Args:
        game: a game, or what `load` takes.
        learner: a learner of values: "baseline", "transfer", "lookahead" or "oracle" (Banerjee & Stone 2007), which
            differ in the initial values; or "sequences" (Lock & Epstein 2004).
        matches: number of matches, 100 if it is None; for a learner of sequences, number in each tournament, 20 if it
            is None.
        store: a knowledge store, or its file. If it is None, the learner is only in memory; `save` of the result stores
            it.
        seed: seed of all random numbers.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).
        role: the role of a learner of values; the first one if it is None.
        opponent: its opponent: a name, a `Player`, or a function, as for `play`; or "self": a learner of the same kind
            for each other role. In games with more roles it plays all others; a mapping role -> player names each.
        sources: for "transfer": what was learned in other games, or the names of these games in the store; with a
            store, all others that were learned against this opponent, if it is None.
        source_opponent: the opponent in the sources that are given by name; this opponent if it is None.
        source_role: the role in these sources; every role if it is None.
        combine: how the values of several sources are combined: "visits" (weighted by visits), "mean", "first" or
            "most" (that with most visits).
        expert: whom a learner of sequences watches: a name, a `Player` or a function.
        against: the opponents of the expert, which plays a tournament against each; if it is None, those of the paper,
            or a random player and the expert itself for another expert than "perfect".
        cycles: number of tournaments against each opponent.
        tests: number of matches of each test after learning.
        symmetry: for sequences, whether symmetric sequences are one: "all" or "none".
        settings: further settings of the learner, such as `alpha=0.1` or `lengths=(3, 5)`; `gamelore learn --help`
            lists them.

    Returns:
        What was learned.

    Raises:
        GameloreError: a name or a setting is unknown, or the game is too large for the learner.
        KnowledgeError: the store cannot be written, or the sources have no knowledge.
    """
    one_of(learner, (*get_args(ValueKind), "sequences"), "a learner")
    if matches is not None:
        check_count("matches", matches)
    check_seed(seed)
    if "kind" in options:
        raise GameloreError("expected the kind of learner as the second argument, got kind=; write learn(game, kind)")
    rules = loaded(game)
    if learner == "sequences":
        return _learn_sequences(rules, matches or TOURNAMENT, store, seed, progress, **options)
    return _learn_values(rules, learner, matches or MATCHES, store, seed, progress, **options)


@contextmanager
def _opened(store: Knowledge | str | Path | None) -> Iterator[Store]:
    """Open a store; one in memory for None."""
    from ..learning.store.knowledge import KnowledgeStore as Store
    from ..learning.store.schema import IN_MEMORY

    path = IN_MEMORY if store is None else store.path if isinstance(store, Knowledge) else Path(store)
    with Store(path) as opened:
        yield opened


def _home(store: Store, stored: StoredLearner) -> Home:
    """Return where a learner is after its study."""
    from ..learning.store.schema import IN_MEMORY

    return Home(store.as_bytes() if store.path == IN_MEMORY else store.path, stored.id)


_PARAMETERS = (
    *("role", "opponent", "sources", "source_opponent", "source_role", "combine"),
    *("expert", "against", "cycles", "tests", "symmetry", "matches", "store", "seed", "progress"),
)


def _settings(kind: type[Any], options: Mapping[str, Any]) -> Any:
    """Return the settings of a learner. Raise GameloreError for a name that is none of them."""
    names = [field.name for field in fields(kind)]
    for name in options:
        one_of(name, [*names, *_PARAMETERS], "a parameter of learn or a setting of the learner")
        if name not in names:
            raise GameloreError(
                f"expected parameters of this kind of learner, got {name} of another kind; leave it out"
            )
    return kind(**options)


# learners of values


def _learn_values(
    game: Game,
    kind: str,
    matches: int,
    store: Knowledge | str | Path | None,
    seed: int,
    progress: Progress | bool | None,
    *,
    role: str | None = None,
    opponent: AnyPlayer | Mapping[str, AnyPlayer] = "egreedy",
    sources: Sequence[str | Learned] | None = None,
    source_opponent: str | None = None,
    source_role: str | None = None,
    combine: Combination = "visits",
    **settings: Any,
) -> Learned:
    from ..learning.sources import Enrolment, Sources
    from ..learning.study import SELF, study, study_self
    from ..learning.td.initial_values import LearnerSettings

    learner = one_of(role or game.roles[0], game.roles, f"a role of {game.name}")
    chosen = _settings(LearnerSettings, {"kind": kind, **settings})
    against = _opponent(game, learner, opponent, seed) if opponent != SELF else None
    if store is not None and against is not None and "<lambda>" in _opponent_name(against):
        raise GameloreError("expected an opponent with a name for a store, got a lambda; define a function with a name")
    with _opened(store) as opened, displayed(progress) as tell:
        about: dict[str, Any] = {"seed": seed, "progress": lambda done: tell("matches", done, matches)}
        if sources is not None or chosen.needs_values:
            enrolment = Enrolment(game, learner, chosen, _opponent_name(against), seed, None)
            how = Sources((), source_opponent, source_role, combine)
            about["sources"], about["taught_by"] = _sources(opened, enrolment, sources, how)
        if against is None:
            stored = study_self(opened, game, chosen, matches, **about)[game.roles.index(learner)]
        else:
            stored = study(opened, game, learner, chosen, against, matches, **about)
        return Learned(_home(opened, stored), stored, game)


def _opponent(
    game: Game, role: str, given: AnyPlayer | Mapping[str, AnyPlayer], seed: int
) -> OpponentSettings | Opposition:
    """Return the opponents of a learner that has this role."""
    from ..learning.session import known_opponent
    from ..learning.study import Opposition

    if isinstance(given, str) and (settings := known_opponent(given)):
        return settings
    if not isinstance(given, Mapping):
        return Opposition(name_of(given), [player_of(given, seed=seed) for _ in game.roles])
    named = others_of(game, role, given)
    players = [player_of(named.get(name, "random"), seed=seed) for name in game.roles]
    return Opposition(", ".join(f"{name} {name_of(each)}" for name, each in named.items()), players)


def _opponent_name(against: OpponentSettings | Opposition | None) -> str:
    """Return the name of the opponents in the identity of a learner."""
    from ..learning.study import SELF, Opposition
    from ..matches.opponents import opponent_text

    if against is None:
        return SELF
    return against.name if isinstance(against, Opposition) else opponent_text(against)


def _sources(
    store: Store, learner: Enrolment, given: Sequence[str | Learned] | None, how: Sources
) -> tuple[Sources, TaughtValues | None]:
    """Return the sources of a transfer learner, and their knowledge if they are not in the store.

    how: how sources are selected and combined; its games do not count
    """
    from ..learning.sources import ANYONE, check_games, other_games, sources_of
    from ..learning.store.features import combine
    from ..learning.store.schema import IN_MEMORY

    game, settings = learner.game, learner.settings
    if settings.kind != "transfer":
        raise GameloreError(f"expected sources only for the learner transfer, got sources for {settings.kind}")
    if isinstance(given, str | Learned):
        given = [given]
    if given is not None and not given:
        raise GameloreError("expected sources, got an empty list; leave it out to take all in the store")
    learned = [each for each in given or () if isinstance(each, Learned)]
    if learned and (how.role or how.opponent):
        raise GameloreError(
            "expected source_role and source_opponent only for sources that are given by name; choose what was learned"
        )
    if learned:
        if len(learned) < len(given or ()) or store.path != IN_MEMORY:
            raise GameloreError(
                "expected sources that were learned without a store, or names of games in it, got both; leave the "
                "store out, and save the result, or name the games"
            )
        values = combine([each.feature_values for each in learned], how.rule)
        games = tuple(each.game.rules_hash for each in learned)
        return replace(how, games=games, opponent=ANYONE), ([each.stored for each in learned], values)
    if given is not None:
        named = replace(how, games=tuple(map(str, given)))
        check_games(store, named)
        return named, None
    stored = learner.find(store, any_sources=True)
    before = sources_of(stored) if stored else None
    if before is not None and how in (replace(before, games=()), replace(before, games=(), opponent=None)):
        return before, None
    sources = other_games(store, game, how.opponent or learner.opponent, settings.depth)
    if not sources:
        raise GameloreError(
            f"expected knowledge of other games for a transfer learner of {game.name}, got none; learn another game "
            'first, and give it as sources=[..], or give a store: store="knowledge.db"'
        )
    return replace(how, games=sources.games, opponent=how.opponent or sources.opponent), None


# learners of sequences


def _learn_sequences(
    game: Game,
    matches: int,
    store: Knowledge | str | Path | None,
    seed: int,
    progress: Progress | bool | None,
    *,
    expert: AnyPlayer = "perfect",
    against: Sequence[AnyPlayer] | None = None,
    cycles: int = 2,
    tests: int = TESTS,
    symmetry: Literal["all", "none"] = "all",
    **settings: Any,
) -> LearnedSequences:
    from ..learning.sequences.seqlearner import Curriculum, SequenceSettings
    from ..learning.session import load_learner
    from ..learning.study import study_sequences

    chosen = _settings(SequenceSettings, settings)
    if tests < 0:
        raise GameloreError(f"expected a number of tests from 0, got {tests}")
    opponents = [against] if isinstance(against, str) or callable(against) else against
    names: dict[str, AnyPlayer] = {}
    for each in (expert, *(opponents or ())):
        if names.setdefault(name_of(each), each) is not each and not isinstance(each, str):
            raise GameloreError(
                f"expected players with different names, got two with the name {name_of(each)}; name them"
            )
    told = None if opponents is None else list(map(name_of, opponents))
    watched = Curriculum.of(name_of(expert), told, cycles, matches)
    player = _player_by_name(names)
    with displayed(progress) as tell:
        solution = _solve_for(game, watched, player, tell)  # players share it while there is a reference to it
    with _opened(store) as opened, displayed(progress) as tell:
        total = len(watched.tournaments)
        stored = study_sequences(
            opened,
            game,
            chosen,
            watched,
            player=player,
            symmetry=symmetry,
            seed=seed,
            progress=lambda done: tell("tournaments", done, total),
        )
        learner = load_learner(opened, stored, game)
        results = list(_tested(learner, watched.expert, tests, player, seed, tell))
        del solution
        return LearnedSequences(_home(opened, stored), stored, game, results)


def _player_by_name(given: Mapping[str, AnyPlayer]) -> Callable[[str], Player]:
    """Return the function that makes a player from its name; objects and functions have theirs."""
    return lambda name: player_of(given.get(name, name))


def _solve_for(game: Game, watched: Curriculum, player: Callable[[str], Player], tell: Progress) -> Solution | None:
    """Solve the game if one of the players needs the solution; otherwise return None."""
    from ..learning.study import cannot_play
    from ..matches.opponents import XReasonable
    from ..solver.perfect import Perfect
    from ..solver.solution import solve

    names = (watched.expert, *watched.opponents)
    needing = next((name for name in names if isinstance(player(name), Perfect | XReasonable)), None)
    if needing is None:
        return None
    try:
        return solve(game, progress=tell)
    except GameloreError as error:
        raise cannot_play(game, needing, error) from error


def _tested(
    learner: SeqLearner, expert: str, matches: int, player: Callable[[str], Player], seed: int, tell: Progress
) -> Iterator[dict[str, Any]]:
    """Yield the tests of a learner of sequences: the players, the results, and an interval of their reliability."""
    from ..lab.stats import share_interval
    from ..learning.study import num_tests, score_versions

    total = num_tests(expert) if matches else 0
    for done, (name, opponent, result) in enumerate(score_versions(learner, expert, matches, player=player, seed=seed)):
        tell("tests", done + 1, total)
        interval = share_interval(result.wins + result.draws, result.matches)
        yield {
            "player": name,
            "against": opponent,
            **asdict(result),
            "reliability": result.reliability,
            "interval": None if interval.too_few else [100 * interval.low, 100 * interval.high],
        }
