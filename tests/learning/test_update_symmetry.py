"""One value for all afterstates that the symmetries of a game make of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamelore import load
from gamelore.analysis.symmetry import symmetries
from gamelore.errors import GameloreError
from gamelore.learning.sources import computed_features, enrol
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import Afterstate, StoredLearner
from gamelore.learning.study import study
from gamelore.learning.td.afterstates import Representatives, afterstate_facts, own_afterstates
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.learner import Learner
from gamelore.learning.td.series import Series, extract, learned_features, play_series
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.player import TERMINAL, Finished
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from learning.plain_learner import Facts, PlainGame, PlainLearner
from learning.small_games import PENNIES, PENNIES_TWICE, SIDES

MERGING = LearnerSettings(symmetry="all")
RANDOM = OpponentSettings("random")
GREEDY = OpponentSettings("egreedy", "first")
TAUGHT = FeatureValues({"L": (41.0, 1), "{W}": (72.0, 1), "{n,W}": (66.0, 1), "L,{n,W}": (45.0, 1)})


# the symmetries once more, over facts as text


def board_images(facts: Facts) -> Iterator[Facts]:
    """The 8 images of a position of 3 x 3 cells, by turning and reflecting the board."""
    for turned in range(8):
        yield frozenset(_turned(fact, turned) for fact in facts)


def _turned(fact: str, how: int) -> str:
    name, *arguments = fact.strip("()").split()
    if name != "cell":
        return fact
    x, y = int(arguments[0]), int(arguments[1])
    x, y = (4 - x if how & 1 else x), (4 - y if how & 2 else y)
    x, y = (y, x) if how & 4 else (x, y)
    return f"(cell {x} {y} {arguments[2]})"


def images_of(name: str) -> Callable[[Facts], Iterator[Facts]]:
    """The images of a position under all symmetries found."""
    game = load(name)
    group = symmetries(game)
    texts = [game.fact_text(bit) for bit in range(group.facts.shape[1])]
    mappings = [dict(zip(texts, (texts[image] for image in row), strict=True)) for row in group.facts.tolist()]
    return lambda facts: (frozenset(mapping[fact] for fact in facts) for mapping in mappings)


def least(images: Callable[[Facts], Iterator[Facts]]) -> Callable[[Facts], Facts]:
    """One image for all of a class: the first by its sorted facts."""
    return cache(lambda facts: min(images(facts), key=sorted))


LEAST = least(board_images)


# matches by hand


def played(graph: PositionGraph, moves: Sequence[str]) -> Finished:
    """A finished match of a game that takes turns, of lane 0; moves are those of whose turn it is."""
    rows, choices = [graph.start], []
    for move in moves:
        row = rows[-1]
        joint = [0] * graph.game.num_roles
        (role,) = np.flatnonzero(graph.acting[row]).tolist()
        joint[role] = graph.legal(row, role).tolist().index(graph.game.action(role, move))
        choices.append(joint)
        rows.append(int(graph.successor([row], [joint])[0]))
    goals, zero = graph.goals[rows[-1:]], np.zeros(1, np.int64)
    plies, ends = np.array([len(moves)], np.int32), np.full(1, TERMINAL, np.uint8)
    return Finished(graph, zero, zero, plies, np.array([rows], np.int32), np.array([choices], np.int32), goals, ends)


WON = [(1, 1), (2, 2), (1, 2), (3, 3), (1, 3)]  # x takes the first row, o has two on the diagonal


def marks(places: Sequence[tuple[int, int]]) -> list[str]:
    return [f"(mark {x} {y})" for x, y in places]


def test_a_match_and_its_mirror_image_by_hand() -> None:
    # Match 1: sigma = A, B, C, all 50, and 100 at the end. t = 3: delta = 50: C = 65, B = 60.5, A = 50 + 7.35 = 57.35.
    # Match 2, its mirror image. t = 1: delta = 3.15: A = 58.295. t = 2: delta = 4.5: A = 59.24, B = 61.85.
    #   t = 3: delta = 35: A = 59.24 + 0.147 * 35 = 64.385, B = 61.85 + 7.35 = 69.2, C = 65 + 10.5 = 75.5
    graph = PositionGraph(load("tictactoe"))
    learner = Learner(graph, 0, [MERGING])
    learner.end(0, played(graph, marks(WON)))
    learner.end(0, played(graph, marks([(y, x) for x, y in WON])))
    found = learner.afterstates(0)
    assert [one.visits for one in found] == [2, 2, 2]
    assert sorted(one.q for one in found) == pytest.approx([64.385, 69.2, 75.5])


def test_the_8_images_of_a_match_are_one_match_8_times() -> None:
    graph = PositionGraph(load("tictactoe"))
    learner, plain = (Learner(graph, 0, [one]) for one in (MERGING, LearnerSettings()))
    for turned in range(8):
        moves = [_turned(f"(cell {x} {y} x)", turned).replace("cell", "mark").replace(" x)", ")") for x, y in WON]
        learner.end(0, played(graph, moves))
        plain.end(0, played(graph, marks(WON)))
    found = {LEAST(one.facts): (one.q, one.visits) for one in learner.afterstates(0)}
    assert found == {LEAST(one.facts): (one.q, one.visits) for one in plain.afterstates(0)}
    assert len(found) == learner.table.size == 3


def test_two_of_one_class_in_one_match_are_one_entry_visited_twice() -> None:
    # To a side, to the other, and cut off: sigma = S, S, and nothing paid. t = 1: delta = Q(S) - Q(S) = 0;
    # t = 2: delta = -50, for S at age 1 and at age 0: 50 + 0.3 * 0.7 * -50 + 0.3 * -50 = 24.5
    series = play_series(load(SIDES), 0, [MERGING], None, [RANDOM], 1, [(0, 0, "test")], max_plies=2)
    (only,) = series.learner.afterstates(0)
    assert (only.visits, only.q) == (2, pytest.approx(24.5))


# representatives


def test_one_image_stands_for_all_whichever_was_met_first() -> None:
    stands = []
    for forwards in (True, False):
        graph = PositionGraph(load("tictactoe"))
        rows = np.array([graph.start], np.int32)
        for _ in range(3):
            rows = graph.children(rows)
        rows = rows if forwards else np.ascontiguousarray(rows[::-1])
        found = graph.memo(Representatives).of(0, rows)
        stands.append(dict(zip(map(graph.facts, rows.tolist()), afterstate_facts(graph, 0, found), strict=True)))
        assert (graph.memo(Representatives).of(0, found) == found).all()
    assert stands[0] == stands[1]
    for facts, representative in stands[0].items():
        assert {stands[0][image] for image in board_images(facts)} == {representative}
        assert representative in set(board_images(facts))
    assert len(set(stands[0].values())) == len(set(map(LEAST, stands[0]))) == 38


def test_pairs_of_position_and_move_are_merged_together() -> None:
    game = load(PENNIES_TWICE)
    assert symmetries(game).num == 2
    graph = PositionGraph(game)
    rows = np.concatenate([[graph.start], graph.children([graph.start])]).astype(np.int32)
    graph.expand(rows)
    pairs = own_afterstates(rows, 0, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
    assert (len(pairs), pairs.max()) == (10, -1)
    found = graph.memo(Representatives).of(0, pairs)
    stands = dict(zip(afterstate_facts(graph, 0, pairs), afterstate_facts(graph, 0, found), strict=True))
    swapped = {"heads": "tails", "tails": "heads"}

    def other(facts: Facts) -> Facts:
        return frozenset("".join(swapped.get(word, word) for word in _words(fact)) for fact in facts)

    for facts, representative in stands.items():
        assert representative in (facts, other(facts))
        assert stands[other(facts)] == representative
    assert len(set(stands.values())) == 5


def _words(fact: str) -> list[str]:
    return fact.replace("heads", "|heads|").replace("tails", "|tails|").split("|")


def test_pairs_are_learned_as_one() -> None:
    learner = replace(MERGING, epsilon=1.0)
    series = play_series(load(PENNIES), 0, [learner] * 4, None, [RANDOM] * 4, 10, [(i, 0, "test") for i in range(4)])
    known = [{one.facts: one.visits for one in series.learner.afterstates(lane)} for lane in range(4)]
    pairs = [{facts: visits for facts, visits in one.items() if "open" in facts} for one in known]
    assert [list(one.values()) for one in pairs] == [[10]] * 4
    assert len({facts for one in pairs for facts in one}) == 1
    assert all(one.keys() - pairs[0].keys() <= {frozenset({"same"}), frozenset({"unlike"})} for one in known)


# whole series


def test_there_are_at_most_as_many_entries_as_classes() -> None:
    game = load("tictactoe")
    learners = [replace(one, epsilon=1.0) for one in (MERGING, LearnerSettings())]
    series = play_series(game, 0, learners, None, [RANDOM] * 2, 2000, [(1, 0, "test")] * 2)
    graph = PositionGraph(game)
    rows, after = np.array([graph.start], np.int32), []
    while rows.size:
        graph.expand(rows)
        every = {int(row) for one in rows for row in graph.successors[graph.succ_start[one] :][: graph.num_joint[one]]}
        after += [row for row in every if graph.terminal[row] or graph.acting[row, 1]]
        rows = graph.children(rows)
    classes = {LEAST(graph.facts(row)) for row in set(after)}
    merged, apart = ([one.facts for one in series.learner.afterstates(lane)] for lane in (0, 1))
    assert set(map(LEAST, merged)) <= classes
    assert len(set(map(LEAST, merged))) == len(merged)
    assert len(merged) <= len(classes) < len(apart)
    assert series.rewards[0].tolist() == series.rewards[1].tolist()  # nobody ever looks at a value
    assert set(map(LEAST, apart)) == set(map(LEAST, merged))


KINDS = [
    LearnerSettings(kind, heuristic, initialisation, epsilon=0.1, ties=ties, symmetry="all")  # type: ignore[arg-type]
    for kind, heuristic in (("baseline", "minimax"), ("transfer", "minimax"), ("lookahead", "avgmax"))
    for initialisation, ties in (("lazy", "random"), ("siblings", "first"), ("eager", "random"))
]


@pytest.mark.parametrize(
    ("name", "role", "images"),
    [
        ("tictactoe", 0, board_images),
        ("tictactoe", 1, board_images),
        ("capturego3", 0, images_of("capturego3")),
        ("othello4", 1, images_of("othello4")),
    ],
)
def test_learners_do_what_plain_ones_do_that_see_canonical_afterstates_only(
    name: str, role: int, images: Callable[[Facts], Iterator[Facts]]
) -> None:
    game, canonical = load(name), least(images)
    plain, num_matches = PlainGame(game), 8
    opponents = [OpponentSettings(("egreedy", "random", "weak")[i % 3], epsilon=0.1) for i in range(len(KINDS))]
    seeds = [(5, i, "target") for i in range(len(KINDS))]
    values = [TAUGHT if one.kind == "transfer" else None for one in KINDS]
    series = play_series(game, role, KINDS, values, opponents, num_matches, seeds)
    for lane, one in enumerate(KINDS):
        learner, rewards = PlainLearner(plain, role, one, values[lane], canonical), []

        def note(finished: Finished, rewards: list[float] = rewards) -> None:
            rewards.append(float(max(finished.goals[0, role], 0)))

        seats: list[Any] = [Opponent(opponents[lane])] * game.num_roles
        seats[role] = learner
        run_lockstep(PositionGraph(game), seats, [stream(*seeds[lane])], num_matches, on_end=note)
        assert series.rewards[lane].tolist() == rewards
        known = series.learner.afterstates(lane)
        assert {canonical(one.facts): one.visits for one in known} == learner.visits
        assert len(known) == len(learner.visits)
        assert {canonical(one.facts): one.q for one in known} == pytest.approx(learner.q, rel=1e-12)


def test_a_lane_is_the_same_alone_and_beside_others_that_do_not_merge() -> None:
    learners = [one for kind in KINDS for one in (kind, replace(kind, symmetry="none"))]
    values = [TAUGHT if one.kind == "transfer" else None for one in learners]
    seeds = [(3, i // 2, "x") for i in range(len(learners))]
    game, against = load("connect3"), [GREEDY] * len(learners)

    def series(lanes: slice) -> Series:
        return play_series(game, 0, learners[lanes], values[lanes], against[lanes], 6, seeds[lanes])

    among = series(slice(None))
    for lane in range(len(learners)):
        alone = series(slice(lane, lane + 1))
        assert alone.rewards[0].tolist() == among.rewards[lane].tolist()
        assert set(alone.learner.afterstates(0)) == set(among.learner.afterstates(lane))
        assert dict(extract(alone, 0)) == dict(extract(among, lane))


@pytest.mark.parametrize(("name", "engine"), [("goofspiel", "native"), ("tictactoe", "reasoner")])
def test_where_there_are_no_symmetries_nothing_changes(name: str, engine: Any) -> None:
    learners = [LearnerSettings(initialisation="siblings"), LearnerSettings("lookahead", initialisation="eager")]
    learners += [replace(one, symmetry="all") for one in learners]
    game, seeds = load(name, engine=engine), [(1, i % 2, "x") for i in range(4)]
    series = play_series(game, 0, learners, None, [RANDOM] * 4, 4, seeds)
    assert series.rewards[:2].tolist() == series.rewards[2:].tolist()
    for lane in range(2):
        assert set(series.learner.afterstates(lane)) == set(series.learner.afterstates(lane + 2))


def test_features_count_a_class_once() -> None:
    graph = PositionGraph(load("tictactoe"))
    learners = [Learner(graph, 0, [one]) for one in (MERGING, LearnerSettings())]
    for learner in learners:
        learner.end(0, played(graph, marks(WON)))
        learner.end(0, played(graph, marks([(y, x) for x, y in WON])))
    # Of A, B and C only B, two in a row, has a feature: 69.2 in two visits, as above. Apart B and its image have 60.5,
    # each from its own match.
    merged, apart = (dict(learned_features(learner, 0)) for learner in learners)
    assert merged.keys() == apart.keys() == {"{n},{n,W}"}
    assert merged["{n},{n,W}"] == (pytest.approx(69.2), 2)
    assert apart["{n},{n,W}"] == (pytest.approx(60.5), 2)


# the store


def everything(knowledge: KnowledgeStore, learner: StoredLearner) -> tuple[object, ...]:
    return knowledge.matches(learner), set(knowledge.afterstates(learner)), dict(knowledge.feature_values(learner))


@pytest.mark.parametrize(
    "settings",
    [
        MERGING,
        LearnerSettings(initialisation="siblings", epsilon=0.3, symmetry="all"),
        LearnerSettings("lookahead", initialisation="eager", symmetry="all"),
    ],
)
def test_a_stopped_learner_becomes_what_it_would_have_become(tmp_path: Path, settings: LearnerSettings) -> None:
    game = load("tictactoe")
    with KnowledgeStore(tmp_path / "whole.db") as whole, KnowledgeStore(tmp_path / "parts.db") as parts:
        one = study(whole, game, "xplayer", settings, GREEDY, 40, seed=5)
        for num_matches in (1, 17, 40):
            other = study(parts, game, "xplayer", settings, GREEDY, num_matches, seed=5)
        assert everything(whole, one) == everything(parts, other)
        classes = [LEAST(known.facts) for known in whole.afterstates(one)]
        assert len(classes) == len(set(classes)) > 20
        parts.store_features(other, computed_features(parts, other))
        assert everything(whole, one) == everything(parts, other)


def test_a_learner_of_an_older_store_is_still_found(tmp_path: Path) -> None:
    settings = {
        "kind": "baseline", "heuristic": "minimax", "initialisation": "lazy", "alpha": 0.3, "gamma": 1.0, "lam": 0.7,
        "epsilon": 0.01, "depth": 2, "default": 50.0, "ties": "random", "equivalence": None, "control": None,
    }  # fmt: skip
    assert LearnerSettings().described() == settings
    assert MERGING.described() == settings | {"symmetry": "all"}
    game = load("tictactoe")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        old = knowledge.learner(game, "xplayer", opponent="random", settings=settings, seed=0)
        assert enrol(knowledge, game, "xplayer", LearnerSettings(), RANDOM).id == old.id
        merging = enrol(knowledge, game, "xplayer", MERGING, RANDOM)
        assert merging.id != old.id
        assert merging.settings == settings | {"symmetry": "all", "symmetries": 8}
        assert enrol(knowledge, game, "xplayer", MERGING, RANDOM).id == merging.id
        reasoned = enrol(knowledge, load("tictactoe", engine="reasoner"), "xplayer", MERGING, RANDOM)
        assert reasoned.settings["symmetries"] == 1


def test_more_symmetries_than_their_tables_have_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamelore.learning.td.afterstates.MOST_TABLES", 4 * 8 * 256 * 8)  # of four, for one word
    game = load("tictactoe")
    num = Representatives(PositionGraph(game)).symmetries.num
    assert 1 < num <= 4
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        learner = study(knowledge, game, "xplayer", MERGING, GREEDY, 5)
        assert learner.settings["symmetries"] == num


def test_of_two_stored_for_one_class_the_one_with_more_visits_counts() -> None:
    graph = PositionGraph(load("tictactoe"))
    first = list(map(graph.facts, graph.children([graph.start]).tolist()))
    corners = [facts for x in "13" for y in "13" for facts in first if f"(cell {x} {y} x)" in facts]
    learner = Learner(graph, 0, [MERGING])
    learner.load(0, [Afterstate(facts, 10.0 * i, i) for i, facts in zip((2, 4, 3, 1), corners, strict=True)])
    assert [(one.q, one.visits) for one in learner.afterstates(0)] == [(40.0, 4)]


def test_another_word_is_refused() -> None:
    with pytest.raises(GameloreError, match=r"expected the setting symmetry to be all or none, got 'some'"):
        LearnerSettings(symmetry="some")  # type: ignore[arg-type]
