"""Changed exports of knowledge: an import refuses them whole, or what comes in does no harm."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from typer.testing import CliRunner

from gamelore import load
from gamelore.catalogue import player
from gamelore.cli import app
from gamelore.errors import GameloreError, KnowledgeError
from gamelore.game.game import Game
from gamelore.gdl.syntax import parse
from gamelore.learning.exchange import export_learners, import_learners, problems
from gamelore.learning.sequences.seqlearner import Curriculum, Tournaments, watch
from gamelore.learning.session import STAGE, Session, ValueSession, load_learner, match_rows
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import StoredLearner
from gamelore.learning.study import study
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.series import learned_features
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.player import Player
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from learning.small_stores import fill_all

OLD = Path(__file__).parent / "learning" / "stores" / "format3.json"
GREEDY = OpponentSettings("egreedy", "first")
NUMBERS = [5, -1, 10**9, 2**31, 2**40, 2**70, 1e300, 0.5]
FOREIGN = [None, [], {}, True, *NUMBERS, "", "x", "x\n", "\x1b[2J", [None], [[[]]], {"a": {}}]
"""Values that take the place of a value of a valid export."""
LIMITS = [0, 1, 2, 100, 2**31 - 2, 2**31 - 1, 2**53, -(2**63), 1e9, -1e9, 0.1]
"""Numbers at the bounds of the schema."""


@cache
def exports() -> list[dict[str, Any]]:
    """Valid exports, of this version and of an older one."""
    with TemporaryDirectory() as folder, KnowledgeStore(Path(folder) / "k.db") as knowledge:
        fill_all(knowledge)
        export_learners(knowledge, Path(folder) / "k.json")
        with KnowledgeStore(Path(folder) / "played.db") as played:
            study(played, load("tictactoe"), "xplayer", LearnerSettings(), GREEDY, 12)
            export_learners(played, Path(folder) / "played.json")
        paths = Path(folder) / "k.json", OLD, Path(folder) / "played.json"
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def mutants(value: Any) -> Iterator[Any]:
    """Yield this JSON value with one of its parts replaced, removed or doubled; of lists only the last member."""
    yield from (foreign for foreign in FOREIGN if foreign != value)
    if isinstance(value, dict):
        for key in value:
            yield {other: value[other] for other in value if other != key}
            yield from ({**value, key: mutant} for mutant in mutants(value[key]))
    if isinstance(value, list) and value:
        yield value[1:]
        yield [value[0], *value]
        for mutant in mutants(value[-1]):
            yield [*value[:-1], mutant]


def mutated(random: Random) -> dict[str, Any]:
    """Return a valid export with a few changes at random places; half of them keep the types of all values."""
    changed = copy.deepcopy(random.choice(exports()))
    is_alike = random.random() < 0.5
    for number in range(random.randint(1, 4)):
        places = list(_places(changed))
        holder, key = random.choice(places)
        values = [other[place] for other, place in places]
        many = [holder[key]] * random.choice([2, 2 if number else 300])  # not several times, one in the other
        others = [*FOREIGN, holder[key], many, random.choice(values)]
        new = random.choice(_alike(holder[key], values) if is_alike else others)
        # A list may contain all these rows: with a copy of it in each row, it would double with each.
        in_all_rows = is_alike and not isinstance(new, list | dict) and random.random() < 0.5
        for row in _siblings(holder, places) if in_all_rows else [holder]:
            if isinstance(row, type(holder)) and key in (row if isinstance(row, dict) else range(len(row))):
                row[key] = copy.deepcopy(new)
    return changed


def _siblings(value: Any, places: list[tuple[Any, Any]]) -> list[Any]:
    """Return the members of the list in which a value lies, such as all rows of a table; else the value alone."""
    lists = (holder for holder, key in places if holder[key] is value and isinstance(holder, list))
    return next(lists, [value])


def _alike(value: Any, values: list[Any]) -> list[Any]:
    """Return what may take the place of a value, of the same type: limits, spellings, and other values."""
    others = [other for other in values if type(other) is type(value)]
    if isinstance(value, str):
        return [value.upper(), value.title(), f"{value} ", *others]
    return [*LIMITS, *others] if isinstance(value, int | float) else others


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a JSON value: the dictionary or list that holds it, and its key or index."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def assert_import_does_no_harm(content: Any) -> str:
    """Return "refused" or "imported", as `outcomes` of a single export."""
    (outcome,) = outcomes([content])
    return outcome


def outcomes(contents: Iterable[Any]) -> Iterator[str]:
    """Yield "refused" or "imported" for each export. After a refusal the store is empty, and the next export gets it.

    Otherwise everything in the store can be used, and the next export gets a new one.
    """
    left = iter(contents)
    for first in left:
        with TemporaryDirectory() as folder, KnowledgeStore(Path(folder) / "k.db") as knowledge:
            for content in chain([first], left):
                is_imported = _import(content, knowledge, Path(folder))
                yield "imported" if is_imported else "refused"
                if is_imported:
                    break


def _import(content: Any, knowledge: KnowledgeStore, folder: Path) -> bool:
    """Import an export into an empty store; return whether it was not refused.

    Each learner is shown, and learns on if its game is a shipped one. After both the store is as sound as before.
    """
    file = folder / "k.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    try:
        number = import_learners(knowledge, file)
    except KnowledgeError:
        assert (knowledge.learners(), knowledge.games()) == ([], [])
        return False
    assert list(problems(knowledge)) == []
    export_learners(knowledge, file)
    for stored in knowledge.learners():
        _read(knowledge, stored)
        _show(knowledge, stored)
        _learn_on(knowledge, stored)
    knowledge.features()
    assert list(problems(knowledge)) == []
    with KnowledgeStore(folder / "again.db") as again:
        assert import_learners(again, file) == number
    return True


def _read(knowledge: KnowledgeStore, stored: StoredLearner) -> None:
    knowledge.learned(stored)
    knowledge.trajectories(stored)
    knowledge.inherited(stored)
    knowledge.feature_values(stored)
    knowledge.matches(stored)
    assert (stored.depth >= 0, isinstance(stored.created[:10], str)) == (True, True)
    assert all(isinstance(source["game"], str) for source in stored.sources)
    roles = {row.role.lower() for row in (*knowledge.sequences(stored), *knowledge.pairs(stored))}
    assert roles <= {role.lower() for role in _roles(knowledge, stored)}


def _roles(knowledge: KnowledgeStore, stored: StoredLearner) -> list[str]:
    rules = parse(knowledge.rules(stored)).rules
    return [str(rule.head.args[0]) for rule in rules if rule.head.name == "role"]


def _show(knowledge: KnowledgeStore, stored: StoredLearner) -> None:
    """Show a learner as `gamelore knowledge show` does; features that are not up to date are computed and stored."""
    shown = CliRunner().invoke(app, ["knowledge", "show", str(stored.id), "--knowledge", str(knowledge.path)])
    if isinstance(shown.exception, Exception):
        raise shown.exception
    if shown.exit_code:
        _assert_unknown_to_a_schema(shown.output)


def _learn_on(knowledge: KnowledgeStore, stored: StoredLearner) -> None:
    """Let a learner of a shipped game learn from two more matches."""
    game = _shipped().get(stored.rules_hash)
    if game is not None:
        try:
            (_watch_more if stored.has_sequences else _play_more)(knowledge, knowledge.find(stored.id), game)
        except GameloreError as error:
            _assert_unknown_to_a_schema(str(error))


def _play_more(knowledge: KnowledgeStore, stored: StoredLearner, game: Game) -> None:
    session = ValueSession.of(knowledge, stored, game, msgspec.convert(stored.settings, LearnerSettings))
    seats: list[Player] = [Opponent(GREEDY)] * game.num_roles
    seats[session.learner.role] = session
    run_lockstep(session.learner.graph, seats, [stream(stored.seed, 0, STAGE)], 2, first_match=stored.num_matches)
    knowledge.store_features(stored, learned_features(session.learner, 0, stored.depth))


def _watch_more(knowledge: KnowledgeStore, stored: StoredLearner, game: Game) -> None:
    session = Session(load_learner(knowledge, stored, game), (knowledge, stored))
    tournaments = Tournaments(PositionGraph(game), (stored.seed, 0), player)
    watched = watch(session.learner, tournaments, Curriculum("random", ("random",), 1, 2), 0)
    session.record([row for seated in watched for row in match_rows(seated.finished, 0)])


UNKNOWN_TO_A_SCHEMA = [
    "expected at least one rule for 'legal', got none",  # in a game of `exports`
    r"expected facts that \w+ can reach, got",
    r"expected facts of \w+, got",
    r"expected moves of \w+, got",
    r"expected afterstates of \w+, got others: .* is not legal there",
    r"expected afterstates of \w+, got others: \(does .*\) is no move of ",
    r"expected afterstates of \w+, got others: \(does .*\) are several moves",
    r"expected a role of \w+ \(.*\), got .*; this knowledge may come from other rules",  # in a move
    "expected the opponent of an oracle",
    "expected an opponent with filler=random for an oracle",
    "expected feature values of depth",
    "expected an equivalence for every outcome",
    "expected the opponents' replies in the source",
    "expected learners with features or pairs in .*, got none",
]
"""Errors of learners that pass `knowledge check`: their facts and moves are terms, but not those of the game, or their
settings do not fit their opponent or what they began with.
"""


def _assert_unknown_to_a_schema(told: str) -> None:
    """Assert that an error is one that only the play of the game can find."""
    line = " ".join(told.split())
    assert any(re.search(known, line) for known in UNKNOWN_TO_A_SCHEMA), line


@cache
def _shipped() -> dict[str, Game]:
    return {game.rules_hash: game for game in map(load, ("tictactoe", "connect3", "losetictactoe"))}
