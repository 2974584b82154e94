"""`gamelore.learn` and what learners have learned."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import gamelore
from gamelore import GameloreError, Knowledge, KnowledgeError, Learned, Position


def first(position: Position, role: str) -> str:
    return position.legal[role][0]


@pytest.fixture(scope="module")
def learned() -> Learned:
    return gamelore.learn("tictactoe", matches=60, seed=3)


def test_what_a_learner_in_memory_has_learned(learned: Learned) -> None:
    assert (learned.role, learned.kind, learned.num_matches) == ("xplayer", "baseline", 60)
    assert learned.rewards.shape == learned.plies.shape == (60,)
    assert set(learned.rewards.tolist()) <= {0.0, 50.0, 100.0}
    assert learned.mean_reward == pytest.approx(learned.rewards.mean())
    assert learned.rows[0] == {"match": 0, "reward": learned.rewards[0], "plies": learned.plies[0]}
    assert {visits > 0 for _, visits in learned.features.values()} == {True}
    assert repr(learned).startswith("<Learned tictactoe: xplayer against egreedy:filler=")


def test_a_learner_is_the_same_in_memory_and_in_a_store(learned: Learned, tmp_path: Path) -> None:
    stored = gamelore.learn("tictactoe", matches=60, seed=3, store=tmp_path / "k.db")
    assert np.array_equal(stored.rewards, learned.rewards)
    assert stored.features == learned.features


def test_a_study_goes_on_where_it_ended(learned: Learned, tmp_path: Path) -> None:
    store = Knowledge(tmp_path / "k.db")
    half = gamelore.learn("tictactoe", matches=25, seed=3, store=store)
    whole = gamelore.learn("tictactoe", matches=60, seed=3, store=store)
    assert (half.number, len(store)) == (whole.number, 1)
    assert np.array_equal(whole.rewards, learned.rewards)
    assert gamelore.learn("tictactoe", matches=10, seed=3, store=store).num_matches == 60


def test_any_player_is_an_opponent() -> None:
    class Last(gamelore.PositionPlayer):
        def move(self, position: Position, role: str) -> str:
            return position.legal[role][-1]

    for opponent, name in ((first, "first"), (Last(), "Last"), ("uct:simulations=5", "uct:simulations=5")):
        learned = gamelore.learn("connect3", opponent=opponent, matches=4)
        assert (learned.opponent, len(learned.rewards)) == (name, 4)
    named = gamelore.learn("tictactoe3p", opponent={"oplayer": first, "zplayer": "random"}, matches=2)
    assert named.opponent == "oplayer first, zplayer random"


def test_an_opponent_that_is_given_as_an_object_plays_as_by_its_name(learned: Learned) -> None:
    by_object = gamelore.learn("tictactoe", opponent=gamelore.player("egreedy"), matches=60, seed=3)
    assert np.array_equal(by_object.rewards, learned.rewards)


def test_learners_play_against_themselves(tmp_path: Path) -> None:
    store = Knowledge(tmp_path / "k.db")
    x = gamelore.learn("tictactoe", opponent="self", matches=30, store=store)
    gamelore.learn("tictactoe", "baseline", role="oplayer", opponent="self", matches=50, store=store)
    both = {learner.role: learner for learner in store}
    assert both.keys() == {"xplayer", "oplayer"}
    assert np.array_equal(both["xplayer"].rewards[:30], x.rewards)
    assert np.array_equal(both["xplayer"].rewards + both["oplayer"].rewards, np.full(50, 100.0))
    whole = gamelore.learn("tictactoe", opponent="self", matches=50)
    assert np.array_equal(both["xplayer"].rewards, whole.rewards)


def test_knowledge_of_other_games(learned: Learned, tmp_path: Path) -> None:
    carried = gamelore.learn("connect3", "transfer", sources=learned, matches=5)
    assert carried.sources == ["tictactoe"]
    store = Knowledge(tmp_path / "k.db")
    learned.save(store.path)
    for sources in (["tictactoe"], None):
        again = gamelore.learn("connect3", "transfer", sources=sources, store=store, matches=5)
        assert np.array_equal(again.rewards, carried.rewards)
    more = gamelore.learn("connect3", "transfer", store=store, matches=8)
    assert more.number == again.number


def test_all_other_games_are_sources_as_they_are_asked_for(learned: Learned, tmp_path: Path) -> None:
    """By their opponent, and combined by the rule; a learner with other sources is another one."""
    store = Knowledge(tmp_path / "k.db")
    learned.save(store.path)
    gamelore.learn("tictactoe", opponent="weak", matches=20, store=store)
    asked = {"source_opponent": "weak", "combine": "mean"}
    against_weak = gamelore.learn("connect3", "transfer", store=store, matches=5, **asked)
    (source,) = against_weak.stored.sources
    assert (source["game"], source["num_matches"]) == ("tictactoe", 20), "and not the one with 60 against egreedy"
    assert against_weak.stored.settings["sources"] == {
        "games": ["tictactoe"],
        "opponent": "weak",
        "role": None,
        "rule": "mean",
    }
    assert gamelore.learn("connect3", "transfer", store=store, matches=6, **asked).number == against_weak.number
    assert gamelore.learn("connect3", "transfer", store=store, matches=6).number != against_weak.number


def test_whole_numbers_and_others_are_one_setting(tmp_path: Path) -> None:
    store = Knowledge(tmp_path / "k.db")
    first = gamelore.learn("tictactoe", gamma=1, matches=2, store=store)
    assert gamelore.learn("tictactoe", gamma=1.0, matches=3, store=store).number == first.number
    assert gamelore.learn("tictactoe", matches=4, store=store).number == first.number


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ("tictactoe", "transfer"),
            {},
            "expected knowledge of other games for a transfer learner of tictactoe, got no",
        ),
        (("tictactoe",), {"sources": ["connect3"]}, "expected sources only for the learner transfer, got sources for"),
        (("tictactoe", "transfer"), {"sources": ["conect3"]}, "did you mean connect3"),
        (("tictactoe", "basline"), {}, "did you mean baseline"),
        (("tictactoe",), {"alhpa": 0.1}, "did you mean alpha"),
        (("tictactoe",), {"cycles": 3}, "expected parameters of this kind of learner, got cycles"),
        (("tictactoe", "sequences"), {"role": "xplayer"}, "expected parameters of this kind of learner, got role"),
        (("tictactoe",), {"role": "xplayr"}, "did you mean xplayer"),
        (("tictactoe",), {"opponent": "egredy"}, "did you mean egreedy"),
        (("tictactoe",), {"opponent": {"oplayr": "random"}}, "did you mean oplayer"),
        (("tictactoe",), {"opponent": {"xplayer": "random"}}, "expected opponents for oplayer, got some for xplayer"),
        (("tictactoe",), {"opponents": "random"}, "did you mean opponent"),
        (("tictactoe",), {"kind": "transfer"}, "got kind=; write learn"),
        (("tictactoe", "transfer"), {"sources": []}, "expected sources, got an empty list"),
        (("tictactoe", "sequences"), {"tests": -1}, "expected a number of tests from 0, got -1"),
        (("tictactoe", "sequences"), {"length": 3}, "did you mean lengths"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], options: dict[str, object], message: str) -> None:
    with pytest.raises(GameloreError, match=message):
        gamelore.learn(*arguments, matches=1, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize("matches", [0, -5, 2.5])
def test_a_number_of_matches_is_whole(matches: float) -> None:
    with pytest.raises(GameloreError, match="expected a whole number of matches from 1"):
        gamelore.learn("tictactoe", matches=matches)  # type: ignore[call-overload]


def test_opponents_in_a_store_have_names(learned: Learned, tmp_path: Path) -> None:
    store = Knowledge(tmp_path / "k.db")
    with pytest.raises(GameloreError, match="expected an opponent with a name for a store, got a lambda"):
        gamelore.learn("tictactoe", opponent=lambda position, role: position.legal[role][0], store=store)
    for matches in (60, 70):
        rival = gamelore.learn("tictactoe", matches=matches, seed=3).player()
        gamelore.learn("tictactoe", role="oplayer", opponent=rival, matches=2, store=store)
    assert len({learner.opponent for learner in store}) == 2


def test_sources_are_in_memory_or_in_the_store(learned: Learned, tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match="expected sources that were learned without a store"):
        gamelore.learn("connect3", "transfer", sources=[learned], store=tmp_path / "k.db")


@pytest.mark.parametrize("opponent", ["egreedy", "self"])
def test_sources_in_memory_have_features_of_the_same_depth(opponent: str) -> None:
    shallow = gamelore.learn("tictactoe", matches=5, depth=1)
    message = "expected features of depth 2 in tictactoe, got features of depth 1; learn these games with depth=2"
    with pytest.raises(KnowledgeError, match=message):
        gamelore.learn("connect3", "transfer", sources=shallow, opponent=opponent, matches=2)
    deeper = gamelore.learn("connect3", "transfer", sources=shallow, opponent=opponent, depth=1, matches=2)
    assert deeper.sources == ["tictactoe"]


def test_the_player_makes_the_moves_with_the_best_values(learned: Learned) -> None:
    start = learned.game.start()
    moves = learned.moves(start).moves["xplayer"]
    best = {move.move for move in moves if move.mean == moves[0].mean}
    (match,) = gamelore.play("tictactoe", {"xplayer": learned.player(), "oplayer": "random"})
    assert match.moves[0]["xplayer"] in best
    assert sum(move.visits for move in moves) == 60
    with pytest.raises(
        GameloreError, match=r"expected xplayer of tictactoe, which learner \d+ has learned, got oplayer"
    ):
        gamelore.play("tictactoe", {"oplayer": learned.player(), "xplayer": "random"})
    with pytest.raises(GameloreError, match="expected a position of tictactoe, got one of connect3"):
        learned.moves(gamelore.load("connect3").start())


def test_learned_values_draw_themselves(learned: Learned) -> None:
    moves = learned.moves(learned.game.start())
    assert "learned values; in brackets the visits, 60 together" in str(moves)
    assert moves._repr_svg_().startswith("<svg")
    assert "mean reward" in str(learned)
    assert learned._repr_html_().count("<svg") == 2


def test_what_was_learned_is_pickled(learned: Learned) -> None:
    again = pickle.loads(pickle.dumps(learned))
    assert np.array_equal(again.rewards, learned.rewards)
    assert again.features == learned.features


def test_players_that_are_watched_have_names_of_their_own() -> None:
    first, last = (lambda position: position.legal["xplayer"][0]), (lambda position: position.legal["xplayer"][-1])
    with pytest.raises(GameloreError, match="expected players with different names, got two with the name <lambda>"):
        gamelore.learn("losetictactoe", "sequences", expert=first, against=[last], matches=1)


def test_sequences_of_an_expert(tmp_path: Path) -> None:
    learned = gamelore.learn("losetictactoe", "sequences", matches=10, cycles=1, tests=10, store=tmp_path / "k.db")
    assert (learned.num_matches, len(learned.tests), learned.kind) == (40, 6, "sequences")
    assert learned.pairs[0].weight == max(learned.weights)
    assert sum(pairs for _, pairs in learned.weight_classes()) == len(learned.rows)
    assert repr(learned) == f"<LearnedSequences losetictactoe: {len(learned.pairs)} pairs, 40 matches watched>"
    assert "losetictactoe: the best 10 of" in str(learned)
    assert learned._repr_html_().count("<svg") == 1
    assert len(gamelore.play("losetictactoe", {"xplayer": learned.player(), "oplayer": "random"}, matches=2)) == 2
    assert pickle.loads(pickle.dumps(learned)).rows == learned.rows


def test_an_expert_may_be_a_function() -> None:
    learned = gamelore.learn("tictactoe", "sequences", expert=first, against=["random", first], matches=3, tests=2)
    assert learned.opponent == "2 x 3 matches each of first with random, first"


def test_a_store_lists_its_learners(learned: Learned, tmp_path: Path) -> None:
    store = Knowledge(tmp_path / "k.db")
    assert (len(store), list(store), repr(store)) == (0, [], f"<Knowledge {store.path}: 0 learners>")
    gamelore.learn("tictactoe", matches=3, store=store)
    gamelore.learn("connect3", opponent="random", matches=2, store=store)
    assert [row["game"] for row in store.rows] == ["tictactoe", "connect3"]
    assert [learner.stored.game for learner in store.learners(opponent="random")] == ["connect3"]
    assert store[-1].num_matches == 2
    assert store.learners(game=gamelore.load("connect3"))[0].number == 2
    store[0].save(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().startswith("match,reward,plies\n")
    assert pickle.loads(pickle.dumps(store)).rows == store.rows
    assert "<td>connect3</td>" in store._repr_html_()
    assert store.check() == []
    assert store.export(tmp_path / "all.json") == 2
    assert [deleted.game for deleted in store.delete(1)] == ["tictactoe"]
    assert store.add(tmp_path / "all.json") == 1
    assert len(store) == 2
    with pytest.raises(KnowledgeError, match="expected the number of a learner in this store"):
        store.delete(99)
    with pytest.raises(KnowledgeError, match="learner"):
        store.export(tmp_path / "none.json", [99])
