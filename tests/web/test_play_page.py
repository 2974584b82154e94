"""Games played in a real browser, by clicking the board, as people do."""

import json
import re
from pathlib import Path

import pytest

import gamelore

GAMES = Path(__file__).resolve().parents[3] / "shared" / "games"
STATUS = '[data-testid="status"]'


def start(page, web_url: str, game: str, **seats: str) -> None:
    """Begin a match in which people play all roles, but for those in `seats`."""
    page.goto(f"{web_url}/?game={game}")
    page.get_by_test_id("start").wait_for()
    for role in gamelore.load(game.partition("/")[2]).roles:
        field, player = page.get_by_role("combobox", name=role, exact=True), seats.get(role, "person")
        if field.input_value() != player:
            field.click()
            field.fill(player)
            page.get_by_role("option", name=player, exact=True).last.click()
    page.get_by_test_id("start").click()
    page.wait_for_url("**/play/*")


def click(page, *labels: str) -> None:
    """Click places of the board by their labels, such as "2 3"."""
    for label in labels:
        page.locator(f'rect.gl-next[aria-label^="{label}"]').first.click()


def status(page, text: str) -> None:
    """Wait until the status contains a text."""
    page.locator(STATUS, has_text=text).wait_for()


def test_tictactoe_between_two_people_with_undo_and_replay(page, web_url: str) -> None:
    start(page, web_url, "shipped/tictactoe")
    status(page, "xplayer is to move")
    for number, place in enumerate(["1 1", "2 2", "1 2", "3 3"]):
        click(page, place)
        status(page, f"{('oplayer', 'xplayer')[number % 2]} is to move")
    page.get_by_test_id("undo").click()
    status(page, "oplayer is to move")
    click(page, "2 1")
    status(page, "xplayer is to move")
    click(page, "1 3")
    status(page, "xplayer wins: xplayer 100, oplayer 0")
    page.get_by_label("first position").click()
    status(page, "Position after 0 plies of 5")
    page.get_by_label("one ply on").click()
    status(page, "Position after 1 ply of 5")
    page.get_by_role("button", name="Play from here").click()
    page.wait_for_url(lambda url: True)
    status(page, "oplayer is to move")


def test_a_match_survives_a_lost_page_and_shows_in_a_second_tab(page, web_url: str) -> None:
    start(page, web_url, "shipped/tictactoe")
    click(page, "2 2")
    status(page, "oplayer is to move")
    second = page.context.new_page()
    second.goto(page.url)
    status(second, "oplayer is to move")
    click(second, "1 1")
    status(page, "xplayer is to move")  # the first tab sees the move of the second one
    page.reload()
    status(page, "xplayer is to move")
    page.goto(web_url)
    page.get_by_role("link", name=re.compile("tictactoe: person - person, 2 plies")).first.wait_for()


def test_connect_four_against_a_player_by_clicks_and_its_record(page, web_url: str, tmp_path: Path) -> None:
    start(page, web_url, "shipped/connectfour", yellow="random")
    for ply in (1, 3, 5):
        status(page, "red is to move")
        click(page, "4 ")
        page.get_by_text(f"{ply + 1}. yellow (drop ").wait_for()
    status(page, "red is to move")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save record").click()
    download.value.save_as(tmp_path / "match.json")
    (match,) = gamelore.replay(tmp_path / "match.json", "connectfour")
    assert [joint["red"] for joint in match.moves][::2] == ["(drop 4)"] * 3
    assert json.loads((tmp_path / "match.json").read_text())["gamelore"]["players"] == ["person", "random"]


def test_othello_by_clicks(page, web_url: str) -> None:
    start(page, web_url, "shipped/othello4")
    position = gamelore.load("othello4").start()
    for _ in range(2):
        (role,) = (name for name, legal in position.legal.items() if len(legal) > 1)
        status(page, f"{role} is to move")
        move = position.legal[role][0]
        click(page, " ".join(re.findall(r"\w+", move)[1:]))
        position = position.play([move if name == role else legal[0] for name, legal in position.legal.items()])
    page.get_by_text(re.compile(r"^2\. ")).wait_for()


def test_checkers_by_clicks_from_source_to_target(page, web_url: str) -> None:
    if not (GAMES / "checkers.kif").is_file():
        pytest.skip("needs ../shared/games")
    page.goto(f"{web_url}/?game=folder0/checkers")
    page.get_by_test_id("start").click()
    status(page, "red is to move")
    click(page, "b 3", "a 4")
    page.get_by_text("1. red (move wp b 3 a 4)").wait_for()
    status(page, "red is to move")  # the player gamelore has answered
    page.get_by_text(re.compile(r"^2\. black \(move ")).wait_for()


def test_three_players(page, web_url: str) -> None:
    start(page, web_url, "shipped/tictactoe3p")
    roles = gamelore.load("tictactoe3p").roles
    for number, place in enumerate(["1 1", "2 2", "3 3"]):
        status(page, f"{roles[number]} is to move")
        click(page, place)
    status(page, f"{roles[0]} is to move")


def test_choices_at_the_same_time_stay_hidden(page, web_url: str) -> None:
    start(page, web_url, "shipped/goofspiel")
    first, second = gamelore.load("goofspiel").roles
    status(page, f"{first} is to move (your choice stays hidden until all have chosen)")
    click(page, f"{first} 3")
    status(page, f"{second} is to move")
    page.get_by_test_id("moves").get_by_text("Moves of").click()
    assert "(bid 3)" not in page.locator("text=Moves so far").locator("xpath=..").inner_text().split("Moves so far")[1]
    page.get_by_role("button", name="(bid 2)").click()
    status(page, f"{first} is to move")
    page.get_by_text(f"1. {first} (bid 3), {second} (bid 2)").wait_for()


def test_the_board_is_played_by_keyboard(page, web_url: str) -> None:
    start(page, web_url, "shipped/tictactoe")
    status(page, "xplayer is to move")
    page.locator('rect.gl-next[aria-label^="1 1"]').focus()
    for key in ("ArrowRight", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.get_by_text("1. xplayer (mark 2 2)").wait_for()
    status(page, "oplayer is to move")
    page.wait_for_function("document.activeElement.matches('rect.gl-next')")  # the focus stays on the board
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"^2\. oplayer \(mark ")).wait_for()


@pytest.mark.long
def test_the_first_click_is_kept_while_a_search_draws(page, web_url: str) -> None:
    start(page, web_url, "shipped/breakthrough")
    status(page, "is to move")
    page.get_by_test_id("think").click()
    thoughts = page.get_by_test_id("thoughts")
    thoughts.get_by_text("simulations").wait_for()
    click(page, "1 1")
    before = thoughts.inner_text()
    page.wait_for_function(
        "before => document.querySelector('[data-testid=thoughts]').innerText !== before", arg=before
    )
    page.locator('rect.gl-clicked[aria-label^="1 1"]').wait_for()
    click(page, "1 2")
    page.get_by_text(re.compile(r"^1\. \w+ \(move 1 1 1 2\)")).wait_for()


@pytest.mark.long
def test_a_name_that_was_typed_is_taken_and_colours_stay(page, web_url: str) -> None:
    page.goto(web_url)
    page.get_by_test_id("start").wait_for()
    page.get_by_test_id("game").fill("tictactoe")
    page.keyboard.press("Enter")
    page.get_by_role("combobox", name="xplayer", exact=True).wait_for()  # there are several games with this word
    for colours in ("automatic", "dark"):
        page.get_by_role("button", name=f"colours: {colours}").click()
    page.get_by_role("button", name="colours: light").wait_for()
    page.get_by_role("link", name="Rulesheets").click()
    page.wait_for_url("**/rulesheets")
    page.get_by_role("button", name="colours: light").wait_for()
    page.goto(web_url)
    page.get_by_role("combobox", name="xplayer", exact=True).wait_for()  # the game, too


def test_exact_values_are_shown_or_stopped(page, web_url: str) -> None:
    start(page, web_url, "shipped/tictactoe")
    status(page, "xplayer is to move")
    page.get_by_test_id("exact").click()
    page.get_by_test_id("thoughts").get_by_text("exact values; the game has 5,478 positions").wait_for()
    start(page, web_url, "shipped/connectfour")
    status(page, "red is to move")
    page.get_by_test_id("exact").click()
    page.get_by_test_id("thoughts").get_by_text("Solving the game: ").wait_for()
    page.get_by_test_id("exact").filter(has_text="Stop").click()
    page.get_by_test_id("exact").filter(has_text="Exact values").wait_for()
    assert page.get_by_test_id("thoughts").inner_text() == ""


def test_what_the_search_thinks_is_on_the_board(page, web_url: str) -> None:
    start(page, web_url, "shipped/tictactoe")
    status(page, "xplayer is to move")
    page.get_by_test_id("think").click()
    page.get_by_test_id("thoughts").get_by_text("simulations").wait_for()
    page.locator(".gl-board svg text", has_text="%").first.wait_for()


@pytest.mark.parametrize("address", ["/play/none", "/play/no.such.match"])
def test_an_unknown_match_is_told(page, web_url: str, address: str) -> None:
    page.goto(f"{web_url}{address}")
    page.get_by_text("expected the address of a match").wait_for()
