"""The rules of the shipped games, position by position, with the naive evaluator."""

from __future__ import annotations

from itertools import product

import pytest

from pictures import State, board, cells, dropped, naive, play, random_states, winners


def test_pictures() -> None:
    assert board("B. .W", "black") == {
        "(cell 1 1 black)",
        "(cell 1 2 b)",
        "(cell 2 1 b)",
        "(cell 2 2 white)",
        "(control black)",
    }
    assert cells(dropped("Y. R.", "red")) == {"(cell 1 1 red)", "(cell 1 2 yellow)", "(cell 2 1 b)", "(cell 2 2 b)"}


# ---- lines ----


@pytest.mark.parametrize(
    "picture", ["xxx oo. ...", "xo. xo. x..", "xo. ox. ..x", "oox .x. x..", "... ... xxx", "..x o.x o.x"]
)
def test_tictactoe_lines(picture: str) -> None:
    state = board(picture, "oplayer")
    assert winners("tictactoe", state) == {"xplayer": 100, "oplayer": 0}
    assert winners("losetictactoe", state) == {"xplayer": 0, "oplayer": 100}


@pytest.mark.parametrize("name", ["tictactoe", "losetictactoe"])
def test_tictactoe_full_board_is_a_draw(name: str) -> None:
    assert winners(name, board("xox xox oxo", "oplayer")) == {"xplayer": 50, "oplayer": 50}
    assert not naive(name).terminal(board("xox xox ox.", "oplayer"))


CONNECT3_LINES = {
    "across": "..... ..... ..... ..... ..RRR",
    "down": "R.... R.... R.... Y.... Y....",
    "rising": "..... ..... ..R.. .RY.. RYY..",
    "falling": "..... ..... R.... YR... YYR.R",
}


@pytest.mark.parametrize("picture", CONNECT3_LINES.values(), ids=CONNECT3_LINES)
def test_connect3_lines(picture: str) -> None:
    assert winners("connect3", dropped(picture, "yellow")) == {"red": 100, "yellow": 0}


def test_connect3_needs_three_without_a_gap_and_does_not_wrap() -> None:
    for picture in ("..... ..... ..... ..... RR.RR", "..... ..... ..... R.... Y..RR", "R.... R.... Y.... R.... R...."):
        assert not naive("connect3").terminal(dropped(picture, "yellow"))


def test_connect3_gravity_and_full_columns() -> None:
    state = dropped("Y.... R.... Y.... R.... YR...", "red")
    assert naive("connect3").legal(state) == {
        "red": ["(drop 2)", "(drop 3)", "(drop 4)", "(drop 5)"],
        "yellow": ["noop"],
    }
    after = play("connect3", state, "(drop 2)")
    assert after - state == {"(cell 2 2 red)", "(control yellow)"}
    assert state - after == {"(cell 2 2 b)", "(control red)"}


def test_connect3_full_board_is_a_draw() -> None:
    full = "RRYYR YYRRY RRYYR YYRRY RRYYR"
    assert winners("connect3", dropped(full, "red")) == {"red": 50, "yellow": 50}


CONNECTFOUR_LINES = {
    "across": "....... ....... ....... ....... ....... ...RRRR",
    "down": "....... ....... ......R ......R ......R ......R",
    "rising": "....... ....... ...R... ..RY... .RYY... RYYR...",
    "falling": "....... ....... R...... YR..... YYR.... YYYR.RR",
}


@pytest.mark.parametrize("picture", CONNECTFOUR_LINES.values(), ids=CONNECTFOUR_LINES)
def test_connectfour_lines(picture: str) -> None:
    assert winners("connectfour", dropped(picture, "yellow")) == {"red": 100, "yellow": 0}


def test_connectfour_three_are_not_enough() -> None:
    assert not naive("connectfour").terminal(dropped("....... ....... ....... R...... R...... R..RRR.", "yellow"))


# ---- three players ----


def test_three_players_take_turns() -> None:
    state = naive("tictactoe3p").initial
    for move in ("(mark 1 1)", "(mark 2 2)", "(mark 4 4)"):
        state = play("tictactoe3p", state, move)
    assert cells(state) == cells(board("x... .o.. .... ...z"))
    assert "(control xplayer)" in state


@pytest.mark.parametrize(
    "picture", ["zzz. xoxo .... ....", ".... ..z. .z.. z...", "...x ...z ...z ...z", "z... .z.. ..z. ...."]
)
def test_three_in_a_line_win_alone(picture: str) -> None:
    assert winners("tictactoe3p", board(picture, "xplayer")) == {"xplayer": 0, "oplayer": 0, "zplayer": 100}


def test_a_draw_of_three_pays_a_third() -> None:
    goals = winners("tictactoe3p", board("xxoo zzxx ooxz zzoo", "zplayer"))
    assert goals == {"xplayer": 33, "oplayer": 33, "zplayer": 33}


# ---- Othello ----


def othello_flips(cells: dict[tuple[int, int], str], x: int, y: int, own: str) -> set[tuple[int, int]]:
    """The discs that a new one would turn over, by walking from it in each direction."""
    flips: set[tuple[int, int]] = set()
    for dx, dy in product((-1, 0, 1), repeat=2):
        run, place = [], (x + dx, y + dy)
        while cells.get(place, "b") not in ("b", own):
            run.append(place)
            place = (place[0] + dx, place[1] + dy)
        if cells.get(place) == own:
            flips.update(run)
    return flips


def contents(state: State) -> dict[tuple[int, int], str]:
    words = [fact.strip("()").split() for fact in cells(state)]
    return {(int(x), int(y)): content for _, x, y, content in words}


def test_othello_start() -> None:
    state = naive("othello4").initial
    assert state == board(".... .WB. .BW. ....", "black")
    assert naive("othello4").legal(state)["black"] == ["(place 1 2)", "(place 2 1)", "(place 3 4)", "(place 4 3)"]
    assert play("othello4", state, "(place 1 2)") == board(".B.. .BB. .BW. ....", "white")


def test_othello_turns_runs_in_several_directions_and_stops_at_the_first_own_disc() -> None:
    state = board("BWW. WW.. WBW. B..B", "black")
    assert play("othello4", state, "(place 1 4)") == board("BBBB WW.. WBW. B..B", "white")
    state = board(".WWB W... W..W BWWB", "black")
    assert play("othello4", state, "(place 1 1)") == board("BBBB B... B..W BWWB", "white")
    state = board(".WBW W... .... ...W", "black")  # the run down ends at a blank cell
    assert play("othello4", state, "(place 1 1)") == board("BBBW W... .... ...W", "white")


def test_othello_pass() -> None:
    state = board("BBW. BBBB BBBB BBBB", "white")  # black could take 1 4, white can enclose nothing
    assert naive("othello4").legal(state) == {"black": ["noop"], "white": ["noop"]}
    assert not naive("othello4").terminal(state)
    after = play("othello4", state, "noop")
    assert after == board("BBW. BBBB BBBB BBBB", "black")
    assert naive("othello4").legal(after) == {"black": ["(place 1 4)"], "white": ["noop"]}


@pytest.mark.parametrize(
    ("picture", "black"),
    [
        ("BBBB BBBB WWWW WWWW", 50),
        ("BBBB BBBB BWWW WWWW", 100),
        ("BBB. .... .... ....", 100),
        (".... .... .... ...W", 0),
    ],
)
def test_othello_more_discs_win(picture: str, black: int) -> None:
    assert winners("othello4", board(picture, "black")) == {"black": black, "white": 100 - black}


def test_othello_against_a_walk_in_each_direction() -> None:
    game = naive("othello4")
    for state in random_states("othello4", seed=4, matches=4):
        here = contents(state)
        mover, waiting = ("black", "white") if "(control black)" in state else ("white", "black")
        turned = {(x, y): othello_flips(here, x, y, mover) for (x, y), content in here.items() if content == "b"}
        moves = [f"(place {x} {y})" for (x, y), flips in turned.items() if flips]
        assert not game.terminal(state) or not moves
        if game.terminal(state):
            continue
        assert game.legal(state)[mover] == (sorted(moves) or ["noop"])
        for (x, y), flips in turned.items():
            if flips:
                after = contents(game.next(state, {mover: f"(place {x} {y})", waiting: "noop"}))
                assert after == here | dict.fromkeys([(x, y), *flips], mover)


# ---- CaptureGo ----


def liberties(cells: dict[tuple[int, int], str], point: tuple[int, int]) -> int:
    """The number of liberties of the group of the stone at a point, by flooding."""
    group, free, new = {point}, set(), [point]
    while new:
        x, y = new.pop()
        for near in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
            if cells.get(near) == "b":
                free.add(near)
            elif cells.get(near) == cells[point] and near not in group:
                group.add(near)
                new.append(near)
    return len(free)


def go_result(cells: dict[tuple[int, int], str], point: tuple[int, int], mover: str) -> str:
    """Whose stones a placement would capture: the other's first, else its own (suicide), else nobody's."""
    after = cells | {point: mover}
    dead = {colour for place, colour in after.items() if colour != "b" and not liberties(after, place)}
    return next(iter(dead - {mover} or dead), "")


@pytest.mark.parametrize("name", ["capturego3", "capturego3_suicide"])
def test_capturego_against_flooding(name: str) -> None:
    game = naive(name)
    for state in random_states(name, seed=5, matches=6):
        if game.terminal(state):
            continue
        here = contents(state)
        mover, waiting = ("black", "white") if "(control black)" in state else ("white", "black")
        results = {point: go_result(here, point, mover) for point, content in here.items() if content == "b"}
        if name == "capturego3":
            results = {point: dead for point, dead in results.items() if dead != mover}
        assert game.legal(state)[mover] == (sorted(f"(place {x} {y})" for x, y in results) or ["noop"])
        for (x, y), dead in results.items():
            after = game.next(state, {mover: f"(place {x} {y})", waiting: "noop"})
            assert {fact for fact in after if "captured" in fact} == ({f"(captured {dead})"} if dead else set())
            assert contents(after) == here | {(x, y): mover}
            assert game.terminal(after) == bool(dead)
            assert not dead or game.goals(after) == {role: 100 * (role != dead) for role in game.roles}


@pytest.mark.parametrize("name", ["capturego3", "capturego3_suicide"])
@pytest.mark.parametrize(
    ("picture", "move"),
    [
        ("WB. .WB ...", "(place 2 1)"),  # one stone in a corner
        ("WWB .WB BB.", "(place 2 1)"),  # a group of three around its last liberty
        (".WB WB. B..", "(place 1 1)"),  # no liberty of its own: capturing comes first
    ],
)
def test_capture_wins(name: str, picture: str, move: str) -> None:
    after = play(name, board(picture, "black"), move)
    assert "(captured white)" in after
    assert winners(name, after) == {"black": 100, "white": 0}


SUICIDE = board(".B. BWB .W.", "white")


def test_suicide_is_illegal() -> None:
    assert naive("capturego3").legal(SUICIDE)["white"] == ["(place 3 1)", "(place 3 3)"]
    assert len(naive("capturego3_suicide").legal(SUICIDE)["white"]) == 4


def test_suicide_loses_in_the_variant() -> None:
    after = play("capturego3_suicide", SUICIDE, "(place 1 1)")
    assert after == board("WB. BWB .W.", "black") | {"(captured white)"}
    assert winners("capturego3_suicide", after) == {"black": 100, "white": 0}


def test_joining_a_group_without_another_liberty_is_suicide() -> None:
    state = board(".WB WWB BB.", "white")
    assert naive("capturego3").legal(state)["white"] == ["(place 3 3)"]


TWO_EYES = board(".BB B.B WWB", "white")


def test_a_player_without_a_placement_passes() -> None:
    """Each empty point is an eye of black's group, which has another."""
    assert naive("capturego3").legal(TWO_EYES) == {"black": ["noop"], "white": ["noop"]}
    assert not naive("capturego3").terminal(TWO_EYES)
    after = play("capturego3", TWO_EYES, "noop")
    assert after == board(".BB B.B WWB", "black")
    assert naive("capturego3").legal(after)["black"] == ["(place 1 1)", "(place 2 2)"]
    assert naive("capturego3_suicide").legal(TWO_EYES)["white"] == ["(place 1 1)", "(place 2 2)"]


@pytest.mark.parametrize(
    ("picture", "black"),
    [
        ("BBB BBW WWW", 100),  # stones alone: 5 to 4
        (".BB BBW WWW", 100),  # 4 to 4, and the corner is black's
        ("BBB B.W WWW", 50),  # 4 to 4, and the point between them nobody's
        (".W. WWB BBB", 50),  # 3 to 4; one corner is white's, the other nobody's
        ("BB. BW. WW.", 50),  # one region of three points, on both sides' border
        ("B.. ... ...", 100),  # one region of eight points, all of it black's
        ("... .W. ...", 0),
        ("B.. ... ..W", 50),
    ],
)
def test_territory(picture: str, black: int) -> None:
    """Area: stones and the empty regions that border on one colour. (The goal, whether or not the match has ended.)"""
    assert naive("capturego3").goals(board(picture, "black")) == {"black": black, "white": 100 - black}


def test_capturego_always_ends_by_capture() -> None:
    """As the sheet argues. (All 5,476 positions were looked at once; here those of twenty random matches.)"""
    game = naive("capturego3")
    ends = [state for state in random_states("capturego3", seed=6, matches=20) if game.terminal(state)]
    assert len(ends) == 20
    assert all(any("captured" in fact for fact in state) for state in ends)


# ---- Goofspiel ----


def bid(state: State, red: int, blue: int) -> State:
    return naive("goofspiel").next(state, {"red": f"(bid {red})", "blue": f"(bid {blue})"})


def points(state: State) -> list[str]:
    return sorted(fact for fact in state if fact.startswith("(points"))


def test_goofspiel_rounds() -> None:
    game = naive("goofspiel")
    assert game.legal(game.initial) == {role: [f"(bid {card})" for card in range(1, 6)] for role in ("red", "blue")}
    state = bid(bid(bid(game.initial, 1, 2), 2, 1), 3, 3)  # blue gets 1, red gets 2, nobody gets 3
    assert points(state) == ["(points blue 1)", "(points red 2)"]
    assert "(prize 4)" in state
    assert game.legal(state) == {role: ["(bid 4)", "(bid 5)"] for role in ("red", "blue")}
    state = bid(bid(state, 4, 5), 5, 4)
    assert points(state) == ["(points blue 5)", "(points red 7)"]
    assert winners("goofspiel", state) == {"red": 100, "blue": 0}
    assert game.legal(state) == {"red": [], "blue": []}


def test_goofspiel_equal_bids_to_the_end_are_a_draw() -> None:
    state = naive("goofspiel").initial
    for card in (5, 3, 1, 2, 4):
        state = bid(state, card, card)
    assert points(state) == ["(points blue 0)", "(points red 0)"]
    assert winners("goofspiel", state) == {"red": 50, "blue": 50}


# ---- peg solitaire ----


def pegs(picture: str) -> State:
    return board(picture, names={"o": "peg"}) | {f"(pegs {picture.count('o')})"}


def test_peg_solitaire_jumps() -> None:
    game = naive("pegsolitaire")
    assert game.initial == pegs(". oo ooo oooo ooooo")
    assert game.legal(game.initial) == {"player": ["(jump 3 1 1 1)", "(jump 3 3 1 1)"]}
    after = game.next(game.initial, {"player": "(jump 3 3 1 1)"})
    assert after == pegs("o o. oo. oooo ooooo")


@pytest.mark.parametrize(
    ("picture", "hole", "targets"),
    [
        (". o. oo. oo.. .....", "3 1", ["1 1", "3 3", "5 1", "5 3"]),  # up, right, down, down and right
        (". .o .oo ..oo .....", "3 3", ["1 1", "3 1", "5 3", "5 5"]),  # up and left, left
        (". o. oo. oo.. o....", "3 1", ["1 1", "3 3", "5 3"]),  # not into a peg
        (". .. o.. oo.. .....", "3 1", ["5 1", "5 3"]),  # not over an empty hole
    ],
)
def test_peg_solitaire_directions(picture: str, hole: str, targets: list[str]) -> None:
    moves = naive("pegsolitaire").legal(pegs(picture))["player"]
    assert [move for move in moves if move.startswith(f"(jump {hole}")] == [f"(jump {hole} {to})" for to in targets]


@pytest.mark.parametrize(
    ("picture", "goal"),
    [
        ("o .. ... .... .....", 100),
        ("o .. ... .... o....", 75),
        ("o .. ... .... o...o", 50),
        ("o .. o.o .... o....", 25),
        ("o .. o.o .... o...o", 0),
    ],
)
def test_peg_solitaire_goals(picture: str, goal: int) -> None:
    assert winners("pegsolitaire", pegs(picture)) == {"player": goal}
