from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gamelore import GameloreError
from gamelore.catalogue import play_matches, player
from gamelore.matches import lockstep
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.match import MatchState
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.player import CAP, STUCK, TERMINAL, Finished, Player, Started, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import extend, stream

Story = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...], int]


def stories(graph: PositionGraph, seats, keys, num_matches, **options) -> dict[tuple[int, int], Story]:
    """What happened, by lane and match, told without row numbers: state keys, choices, goals, end."""
    told: dict[tuple[int, int], Story] = {}

    def on_end(finished: Finished) -> None:
        for i, lane in enumerate(finished.lanes.tolist()):
            plies = int(finished.plies[i])
            told[lane, int(finished.matches[i])] = (
                tuple(finished.graph.keys[finished.rows[i, : plies + 1]].tolist()),
                tuple(map(tuple, finished.choices[i, :plies].tolist())),
                tuple(finished.goals[i].tolist()),
                int(finished.ends[i]),
            )

    run_lockstep(graph, seats, keys, num_matches, on_end=on_end, **options)
    return told


def keys_of(runs: int) -> np.ndarray:
    return np.array([stream(5, run, "test") for run in range(runs)], np.uint64)


SEATS = {
    "tictactoe": ["egreedy:epsilon=0.1", "weak:filler=hashed,hash_key=3"],
    "othello4": ["random", "egreedy:filler=first"],
    "goofspiel": ["minimax:depth=1", "random"],
    "pegsolitaire": ["random"],
    "tictactoe3p": ["egreedy", "random", "avgmax:depth=1"],
}


@pytest.mark.parametrize("name", SEATS)
def test_every_lane_plays_exactly_its_matches(graph_of, name: str) -> None:
    told = stories(graph_of(name), [player(spec) for spec in SEATS[name]], keys_of(7), 5)
    assert sorted(told) == [(lane, match) for lane in range(7) for match in range(5)]
    assert {story[3] for story in told.values()} == {TERMINAL}


@pytest.mark.parametrize("name", SEATS)
def test_a_lane_is_the_same_alone_among_others_and_in_any_order(graph_of, name: str) -> None:
    seats = [player(spec) for spec in SEATS[name]]
    keys = keys_of(6)
    together = stories(graph_of(name), seats, keys, 3)
    backwards = stories(graph_of(name), seats, keys[::-1], 3)
    for lane in range(6):
        alone = stories(graph_of(name), seats, keys[lane : lane + 1], 3)
        for match in range(3):
            assert together[lane, match] == alone[0, match] == backwards[5 - lane, match]


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "pegsolitaire"])
def test_both_engines_play_the_same(graph_of, name: str) -> None:
    seats = [player(spec) for spec in SEATS[name]]
    native, reasoner = (stories(graph_of(name, engine), seats, keys_of(3), 1) for engine in ("native", "reasoner"))
    assert native == reasoner


def test_a_stopped_run_goes_on_where_it_was(graph_of) -> None:
    seats = [player(spec) for spec in SEATS["tictactoe"]]
    whole = stories(graph_of("tictactoe"), seats, keys_of(4), 6)
    first = stories(graph_of("tictactoe"), seats, keys_of(4), 2)
    rest = stories(graph_of("tictactoe"), seats, keys_of(4), 4, first_match=2)
    assert whole == first | rest


def test_lanes_may_play_different_numbers_of_matches(graph_of) -> None:
    seats = [player("random"), player("random")]
    told = stories(graph_of("tictactoe"), seats, keys_of(3), [2, 0, 1], first_match=[0, 5, 7])
    assert sorted(told) == [(0, 0), (0, 1), (2, 7)]


@pytest.mark.parametrize("name", SEATS)
def test_one_match_at_a_time_is_the_same(graph_of, name: str) -> None:
    """The path of the host: a MatchState asks the same players with the same streams."""
    seats = [player(spec) for spec in SEATS[name]]
    keys = keys_of(3)
    told = stories(graph_of(name), seats, keys, 2)
    for (lane, number), (state_keys, choices, goals, _) in told.items():
        match = MatchState(graph_of(name))
        while match.end is None:
            key = extend(keys[lane], number)
            for role in match.pending():
                choice = 0
                if match.has_choice(role):
                    choice = int(seats[role].choose(match.turn(role, extend(key, role)[()]))[0])
                match.submit(role, choice)
        finished = match.finished()
        assert match.graph.keys[finished.rows[0]].tolist() == list(state_keys)
        assert tuple(map(tuple, finished.choices[0].tolist())) == choices
        assert tuple(finished.goals[0].tolist()) == goals


def test_whole_and_single_successors_play_the_same(graph_of, monkeypatch) -> None:
    seats = [player("random"), player("random")]
    whole = stories(graph_of("goofspiel"), seats, keys_of(4), 3)
    monkeypatch.setattr("gamelore.matches.lockstep.EXPAND_UP_TO", 0)
    graph = graph_of("goofspiel")
    assert stories(graph, seats, keys_of(4), 3) == whole
    assert not graph.expanded.any()


class Listener(Player):
    """Takes the first move always and writes down what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int, int]] = []
        self.asked: Counter[tuple[int, int]] = Counter()

    def choose(self, turn: Turn) -> np.ndarray:
        self.asked.update((int(lane), int(ply)) for lane, ply in zip(turn.lanes, turn.plies, strict=True))
        return np.zeros(len(turn.lanes), np.int32)

    def begin(self, role: int, started: Started) -> None:
        self.hear("begin", role, started)

    def end(self, role: int, finished: Finished) -> None:
        self.hear("end", role, finished)

    def hear(self, what: str, role: int, event: Started | Finished) -> None:
        for lane, match in zip(event.lanes.tolist(), event.matches.tolist(), strict=True):
            self.heard.append((what, role, lane, match))


def test_players_hear_of_every_match_in_order(graph_of) -> None:
    both = Listener()
    run_lockstep(graph_of("tictactoe"), [both, both], keys_of(2), 2)
    for role in range(2):
        for lane in range(2):
            heard = [(what, match) for what, *seat, match in both.heard if seat == [role, lane]]
            assert heard == [("begin", 0), ("end", 0), ("begin", 1), ("end", 1)]


def test_only_whose_turn_it_is_is_asked(graph_of) -> None:
    first, second = Listener(), Listener()
    run_lockstep(graph_of("tictactoe"), [first, second], keys_of(1), 1)
    assert {ply % 2 for _, ply in first.asked} == {0}
    assert {ply % 2 for _, ply in second.asked} == {1}
    assert len(first.asked) + len(second.asked) == 7  # first free cell each: x ends 1 3 5 7 with a diagonal


def test_a_forced_pass_is_asked_for(graph_of) -> None:
    """In Othello a player that must pass has its turn, with one move."""
    forced = []

    class Random(Opponent):
        def choose(self, turn: Turn) -> np.ndarray:
            forced.extend(turn.graph.num_moves[turn.rows, turn.role].tolist())
            return super().choose(turn)

    players = [Random(OpponentSettings("random")) for _ in range(2)]
    run_lockstep(graph_of("othello4"), players, keys_of(20), 2)
    assert min(forced) == 1


def test_dead_ends_and_caps_are_told_apart(graph_of) -> None:
    told = stories(graph_of("walk"), [player("random")], keys_of(40), 3, max_plies=2)
    ends = Counter(story[3] for story in told.values())
    assert set(ends) == {TERMINAL, STUCK, CAP}
    assert sum(ends.values()) == 120
    for _, choices, goals, end in told.values():
        assert goals == (-1,)
        assert (len(choices) == 2) if end == CAP else (len(choices) <= 2)


def test_long_matches_are_written_down_whole(graph_of) -> None:
    told = stories(graph_of("walk"), [Listener()], keys_of(2), 2, max_plies=333)
    assert {(len(story[0]), len(story[1]), story[3]) for story in told.values()} == {(334, 333, CAP)}


def test_the_wrong_number_of_players_is_refused(graph_of) -> None:
    with pytest.raises(GameloreError, match="expected 2 players, one for each of xplayer, oplayer, got 1"):
        run_lockstep(graph_of("tictactoe"), [player("random")], keys_of(1), 1)


def test_an_impossible_choice_is_refused(graph_of) -> None:
    class Wrong(Listener):
        def choose(self, turn: Turn) -> np.ndarray:
            return np.full(len(turn.lanes), 9, np.int32)

    with pytest.raises(GameloreError, match="a player did not choose a legal move"):
        run_lockstep(graph_of("tictactoe"), [Wrong(), Listener()], keys_of(1), 1)


def test_random_tictactoe_has_the_known_value(graph_of) -> None:
    """Random play: xplayer wins 737/1260, oplayer 121/420 and 8/63 are draws (exact enumeration)."""
    told = stories(graph_of("tictactoe"), [player("random"), player("random")], keys_of(200), 50)
    goals = np.array([story[2][0] for story in told.values()])
    shares = [(goals == value).mean() for value in (100, 0, 50)]
    assert shares == pytest.approx([737 / 1260, 121 / 420, 8 / 63], abs=0.02)


@pytest.mark.parametrize(
    ("name", "players"),
    [
        ("tictactoe", ["egreedy", "weak"]),
        ("othello4", ["random", "egreedy:filler=first"]),
        ("goofspiel", ["egreedy", "maxmax"]),
        ("pegsolitaire", ["avgmax:depth=1"]),
        ("tictactoe3p", ["random", "weak", "egreedy"]),
    ],
)
def test_matches_between_named_players_replay(load, name: str, players: list[str]) -> None:
    game = load(name)
    records = play_matches(game, players, 6, seed=3)
    assert [record.key for record in records] == [(3, 0, "play", match) for match in range(6)]
    for record in records:
        assert record.players == tuple(players)
        assert record.replay(game).goals == record.goals


def test_a_match_is_the_same_however_many_are_played(load, monkeypatch) -> None:
    game, players = load("tictactoe"), ["egreedy", "random"]
    many = play_matches(game, players, 20, seed=1)
    assert play_matches(game, players, 5, seed=1) == many[:5]
    assert play_matches(game, players, 5, seed=2) != many[:5]
    monkeypatch.setattr(lockstep, "_SIDE_BY_SIDE", 3)
    monkeypatch.setattr(lockstep, "_MAX_GRAPH", 10)
    told: list[int] = []
    assert play_matches(game, players, 20, seed=1, on_progress=told.append) == many
    assert (told[-1], told) == (20, sorted(set(told)))


def test_wrong_names_are_refused(load) -> None:
    with pytest.raises(GameloreError, match="did you mean random"):
        play_matches(load("tictactoe"), ["random", "randon"], 1)
    with pytest.raises(GameloreError, match="expected 2 players"):
        play_matches(load("tictactoe"), ["random"], 1)
