"""Changed exports of knowledge: an import refuses them whole, or what comes in does no harm."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from gamelore import load
from gamelore.errors import GameloreError, KnowledgeError
from gamelore.game.game import Game
from gamelore.learning.exchange import export_learners, import_learners, problems
from gamelore.learning.session import ValueSession, load_learner
from gamelore.learning.store.knowledge import Knowledge
from gamelore.learning.store.schema import StoredLearner
from gamelore.learning.td.initial_values import LearnerSettings
from learning.small_stores import fill_all

OLD = Path(__file__).parent / "learning" / "stores" / "format3.json"
NUMBERS = [5, -1, 10**9, 2**31, 2**40, 2**70, 1e300, 0.5]
FOREIGN = [None, [], {}, True, *NUMBERS, "", "x", "x\n", "\x1b[2J", [None], [[[]]], {"a": {}}]
"""Values that take the place of a value of a valid export."""


@cache
def exports() -> list[dict[str, Any]]:
    """Valid exports, of this version and of an older one."""
    with TemporaryDirectory() as folder, Knowledge(Path(folder) / "k.db") as knowledge:
        fill_all(knowledge)
        export_learners(knowledge, Path(folder) / "k.json")
        return [json.loads(path.read_text(encoding="utf-8")) for path in (Path(folder) / "k.json", OLD)]


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
    """Return a valid export with a few changes at random places."""
    changed = copy.deepcopy(random.choice(exports()))
    for _ in range(random.randint(1, 4)):
        holder, key = random.choice(list(_places(changed)))
        others = [*FOREIGN, holder[key], [holder[key]] * random.choice([2, 300]), random.choice(list(_values(changed)))]
        holder[key] = copy.deepcopy(random.choice(others))
    return changed


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a JSON value: the dictionary or list that holds it, and its key or index."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _values(value: Any) -> Iterator[Any]:
    return (holder[key] for holder, key in _places(value))


def assert_import_does_no_harm(content: Any) -> str:
    """Return "refused" or "imported". After a refusal the store is empty, otherwise everything in it can be used."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "k.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        with Knowledge(Path(folder) / "k.db") as knowledge:
            try:
                number = import_learners(knowledge, file)
            except KnowledgeError:
                assert (knowledge.learners(), knowledge.games()) == ([], [])
                return "refused"
            assert list(problems(knowledge)) == []
            for stored in knowledge.learners():
                _use(knowledge, stored)
            knowledge.features()
            export_learners(knowledge, file)
            with Knowledge(Path(folder) / "again.db") as again:
                assert import_learners(again, file) == number
    return "imported"


def _use(knowledge: Knowledge, stored: StoredLearner) -> None:
    """Read all of a learner, and begin a session if its game is a shipped one."""
    knowledge.learned(stored)
    knowledge.trajectories(stored)
    knowledge.inherited(stored)
    knowledge.feature_values(stored)
    knowledge.matches(stored)
    assert (stored.depth >= 0, isinstance(stored.created[:10], str)) == (True, True)
    assert all(isinstance(source["game"], str) for source in stored.sources)
    if (game := _shipped().get(stored.rules_hash)) is not None:
        with suppress(GameloreError):  # facts or moves that the game does not have, settings that do not fit the game
            if stored.has_sequences:
                load_learner(knowledge, stored, game)
            else:
                ValueSession.of(knowledge, stored, game, msgspec.convert(stored.settings, LearnerSettings))


@cache
def _shipped() -> dict[str, Game]:
    return {game.rules_hash: game for game in map(load, ("tictactoe", "connect3", "losetictactoe"))}
