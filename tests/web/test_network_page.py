"""Player servers and hosted series in a real browser: started, watched to their end, and stepped through."""


def shows(page, test_id: str, text: str) -> None:
    """Wait until an element contains a text."""
    page.get_by_test_id(test_id).filter(has_text=text).wait_for()


def choose(page, test_id: str, typed: str, option: str) -> None:
    """Choose an option in a field, by typing a part of its text."""
    page.get_by_test_id(test_id).fill(typed)
    page.get_by_role("option", name=option).first.click()


def test_a_server_plays_a_hosted_series_that_is_watched_and_stepped_through(page, web_url: str) -> None:
    page.goto(f"{web_url}/network")
    choose(page, "player-Player", "random", "random")
    page.get_by_test_id("start-server").click()
    shows(page, "server-state", "Ready, 0 matches running; 0 matches played")
    address = page.get_by_test_id("address").inner_text()
    assert address.startswith("http://127.0.0.1:")

    choose(page, "player-xplayer", "server", f"the player server random at {address}")
    choose(page, "player-oplayer", "minimax", "minimax")
    page.get_by_test_id("matches").fill("2")
    page.get_by_test_id("pause").fill("0.1")
    page.get_by_test_id("begin-series").click()
    page.wait_for_url("**/network/series/*")
    shows(page, "where", "Match ")
    page.get_by_test_id("board").locator("svg").wait_for()
    shows(page, "state", "The series is over; 2 of 2 matches played")
    shows(page, "standings", f"random at {address}")

    page.get_by_test_id("match").click()
    page.get_by_role("option", name="match 1: ").click()
    shows(page, "where", "Match 1, after 0 moves of ")
    page.get_by_test_id("step-on").click()
    shows(page, "where", "Match 1, after 1 move of ")
    page.get_by_test_id("step-last").click()
    shows(page, "where", "Match 1 is over: xplayer ")
    page.get_by_test_id("step-back").click()
    shows(page, "where", "Match 1, after ")
    assert page.get_by_test_id("moves").inner_text().startswith("1. xplayer (mark ")
    with page.expect_download() as saved:
        page.get_by_test_id("save-all").click()
    assert saved.value.path().read_text().count('"isCompleted": true') == 2

    second = page.context.new_page()
    second.goto(f"{web_url}/network")
    shows(second, "server-state", "Ready, 0 matches running; 2 matches played")
    shows(second, "series-list", "The series is over; 2 of 2 matches played")
    second.get_by_test_id("stop-server").click()
    shows(second, "server-state", "Ended; 2 matches played")

    page.get_by_test_id("step-first").click()
    shows(page, "where", "after 0 moves")
    page.get_by_test_id("branch").click()
    page.wait_for_url("**/play/*")
    page.locator('[data-testid="status"]', has_text="xplayer is to move").wait_for()


def test_an_address_that_is_no_player_is_told(page, web_url: str) -> None:
    page.goto(f"{web_url}/network")
    choose(page, "player-xplayer", "another", "a player at another address")
    for address, complaint in (
        ("ftp://127.0.0.1:9147", "expected the address of a player, got 'ftp://127.0.0.1:9147'; write http://ADDRESS"),
        ("http://127.0.0.1:1", "expected a player at http://127.0.0.1:1, got no connection"),
    ):
        page.get_by_test_id("address-xplayer").fill(address)
        page.get_by_test_id("begin-series").click()
        page.get_by_role("alert").filter(has_text=complaint).wait_for()
