"""Matches that pages share: seats, hidden choices, undo, branches, and what happens when pages close."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gamelore.errors import GameloreError
from gamelore.web.service import watchers
from gamelore.web.service.archive import Archive
from gamelore.web.service.rule_processes import Rules
from gamelore.web.service.shared_match import MatchPace, SharedMatch, TakenSeat, joint_text

RULES = Rules("(role left) (role right)", "counting")
LENGTH = 6
AT_ONCE = MatchPace(0.0, 0.0, 0.0)


class Counting:
    """Processes that play a game of six plies, in which left and right say `a` or `b` in turn.

    With `together`, both choose at every ply.
    """

    def __init__(self, together: bool = False) -> None:
        self.together = together
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.may_choose = asyncio.Event()
        self.may_choose.set()

    async def ask(self, rules: Rules, do: str, *, lane: str = "positions", time_limit: float, **given: Any) -> Any:
        assert rules == RULES
        assert lane == ("players" if do in ("choose", "finish", "leave") else "positions")
        assert time_limit > 0
        self.asked.append((do, given))
        await asyncio.sleep(0)
        return await getattr(self, f"_{do}")(**given)

    async def _open(self) -> dict[str, Any]:
        return {"roles": ["left", "right"], "name": RULES.name}

    async def _view(self, plies: Sequence[Sequence[str]]) -> dict[str, Any]:
        is_over = len(plies) >= LENGTH
        moves = ["a", "b"]
        turn = len(plies) % 2
        legal = {
            role: [] if is_over else moves if self.together or number == turn else ["noop"]
            for number, role in enumerate(("left", "right"))
        }
        return {"svg": str(len(plies)), "is_terminal": is_over, "goals": {"left": 100, "right": 0}, "legal": legal}

    async def _choose(self, **given: Any) -> str:
        await self.may_choose.wait()
        return "b"

    async def _finish(self, **given: Any) -> int:
        return 1

    async def _leave(self, **given: Any) -> None:
        return

    def has(self, rules: Rules, lane: str) -> bool:
        return True


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not happen")


def played(
    test: Callable[[SharedMatch, Counting], Awaitable[None]], together: bool = False, **seats: TakenSeat
) -> None:
    """Run a test with a match that one page watches."""

    async def run() -> None:
        processes = Counting(together)
        match = SharedMatch(processes, RULES, "knowledge.db", seats=seats, pace=AT_ONCE)  # type: ignore[arg-type]
        await match.open()
        leave = match.watch(lambda: None)
        await test(match, processes)
        match.stop()
        leave()

    asyncio.run(run())


def test_two_people_at_one_board_move_in_turn() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        for ply, role in enumerate(["left", "right", "left"]):
            await until(lambda ply=ply: len(match.plies) == ply and bool(match.waiting))
            assert match.waiting == [role]
            match.submit(role, "a")
        await until(lambda: len(match.plies) == 3)
        assert match.plies == [["a", "noop"], ["noop", "a"], ["a", "noop"]]
        assert match.choosers == [["left"], ["right"], ["left"]]

    played(test)


def test_a_choice_stays_hidden_until_all_have_chosen() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        await until(lambda: bool(match.waiting))
        assert match.is_simultaneous
        match.submit("right", "b")
        assert (match.waiting, match.plies) == (["left"], [])
        assert "b" not in json.dumps([match.as_json()["plies"], match.view["svg"]])  # type: ignore[index]
        match.submit("left", "a")
        await until(lambda: len(match.plies) == 1)
        assert match.plies == [["a", "b"]]

    played(test, together=True)


def test_a_late_click_changes_nothing() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        await until(lambda: bool(match.waiting))
        match.submit("left", "a", ply=0)
        await until(lambda: match.waiting == ["right"])
        match.submit("right", "a", ply=0)
        await asyncio.sleep(0.01)
        assert match.waiting == ["right"]

    played(test)


@pytest.mark.parametrize(("role", "move"), [("right", "a"), ("left", "c"), ("nobody", "a")])
def test_wrong_moves_are_refused(role: str, move: str) -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        await until(lambda: bool(match.waiting))
        with pytest.raises(GameloreError, match="expected"):
            match.submit(role, move)
        assert match.chosen == {"right": "noop"}

    played(test)


def test_undo_goes_back_to_the_last_choice_of_a_person() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        for ply in (0, 2):
            await until(lambda ply=ply: match.waiting == ["left"] and len(match.plies) == ply)
            match.submit("left", "a")
        await until(lambda: len(match.plies) == 4)
        match.undo()
        assert match.plies == [["a", "noop"], ["noop", "b"]]
        await until(lambda: match.waiting == ["left"])
        match.undo()
        assert match.plies == []

    played(test, right=TakenSeat("uct"))


def test_undo_stops_a_player_that_thinks() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        processes.may_choose.clear()
        await until(lambda: bool(match.waiting))
        match.submit("left", "a")
        await until(lambda: match.thinking == {"right"})
        match.undo()
        assert (match.plies, match.thinking) == ([], set())
        await until(lambda: match.waiting == ["left"])

    played(test, right=TakenSeat("uct"))


def test_players_play_to_the_end_and_those_that_remember_learn_once() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        await until(lambda: match.is_over and not match.thinking)
        await until(lambda: any(do == "finish" for do, _ in processes.asked))
        match.watch(lambda: None)  # a second page does not let them learn again
        await asyncio.sleep(0.02)
        finished = [given for do, given in processes.asked if do == "finish"]
        assert len(match.plies) == LENGTH
        assert [(given["role"], given["player"]) for given in finished] == [("right", "transfer")]
        assert finished[0]["options"]["knowledge"] == "knowledge.db"
        assert finished[0]["options"]["opponent"] == "uct"
        assert finished[0]["options"]["seed"] == 0  # as in its other matches

    played(test, left=TakenSeat("uct"), right=TakenSeat("transfer", remembers=True))


def test_a_match_that_is_played_again_is_another_one_for_those_that_learn() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        def names(request: str) -> list[str]:
            return [given["match"] for do, given in processes.asked if do == request]

        for number in (1, 2):
            await until(lambda number=number: match.as_json()["round"] == number)
            match.restart()
        assert names("finish") == [match.id, f"{match.id}-1"]
        assert names("leave") == names("finish"), "what the players have used is freed"

    played(test, left=TakenSeat("uct"), right=TakenSeat("transfer", remembers=True))


def test_what_could_not_be_learned_is_learned_later() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        async def refuse(**given: Any) -> int:
            raise GameloreError("expected a free process, got none; try again")

        finish, processes._finish = processes._finish, refuse  # type: ignore[method-assign]
        await until(lambda: bool(match.error))
        assert match.as_json()["learned"] == -1
        processes._finish = finish  # type: ignore[method-assign]
        match.try_again()
        await until(lambda: match.as_json()["learned"] == LENGTH)
        assert match.error == ""

    played(test, left=TakenSeat("uct"), right=TakenSeat("transfer", remembers=True))


def test_the_result_is_kept_and_a_deleted_match_is_not(tmp_path: Path) -> None:
    async def run() -> None:
        archive = Archive(tmp_path, Counting(), "k.db")  # type: ignore[arg-type]
        seats = {"left": TakenSeat("uct"), "right": TakenSeat("uct")}
        match = archive.new(rules=RULES, seats=seats, pace=AT_ONCE)
        await match.open()
        match.watch(lambda: None)
        await until(lambda: any(kept.result for kept in archive.kept()))
        assert [kept.result for kept in archive.kept()] == ["left wins: left 100, right 0"]
        archive.delete(match.id)
        assert match.error.startswith("the match was deleted")
        match.try_again()
        match.undo()
        await asyncio.sleep(0.01)
        assert [*archive.kept()] == []

    asyncio.run(run())


def test_an_error_of_a_player_is_told_and_another_one_takes_the_seat() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        async def refuse(**given: Any) -> str:
            raise GameloreError("expected a small game, got a large one; choose another player")

        choose, processes._choose = processes._choose, refuse  # type: ignore[method-assign]
        match.take_seat("left", TakenSeat("perfect"))
        await until(lambda: bool(match.error))
        assert match.error.startswith("expected a small game")
        processes._choose = choose  # type: ignore[method-assign]
        match.take_seat("left", TakenSeat("uct"))
        await until(lambda: bool(match.plies))
        assert match.error == ""

    played(test)


def test_a_branch_begins_with_the_first_plies_and_leaves_the_match_alone() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        await until(lambda: match.is_over)
        branch = match.branch(3)
        assert branch.plies == match.plies[:3]
        assert branch.id != match.id
        branch.take_seat("left", TakenSeat())
        assert (len(match.plies), match.seats["left"].player) == (LENGTH, "uct")

    played(test, left=TakenSeat("uct"), right=TakenSeat("uct"))


def test_players_stop_when_the_last_page_closes_and_go_on_when_one_opens(monkeypatch) -> None:
    monkeypatch.setattr(watchers, "GRACE", 0.01)

    async def run() -> None:
        processes = Counting()
        processes.may_choose.clear()
        match = SharedMatch(processes, RULES, "", seats={"left": TakenSeat("uct")}, pace=AT_ONCE)  # type: ignore[arg-type]
        await match.open()
        leave = [match.watch(lambda: None) for _ in range(2)]
        await until(lambda: match.thinking == {"left"})
        leave[0]()
        await asyncio.sleep(0.05)
        assert match.thinking == {"left"}
        leave[1]()
        leave[1]()  # NiceGUI may tell twice that a page has closed
        await until(lambda: not match.thinking)
        processes.may_choose.set()
        await asyncio.sleep(0.05)
        assert match.plies == []
        leave[0] = match.watch(lambda: None)
        await until(lambda: len(match.plies) == 1)
        match.stop()

    asyncio.run(run())


def test_a_pause_holds_players_until_it_ends() -> None:
    async def test(match: SharedMatch, processes: Counting) -> None:
        match.pause(True)
        number = len(match.plies)
        await asyncio.sleep(0.02)
        assert len(match.plies) == number
        match.pause(False)
        await until(lambda: match.is_over)

    played(test, left=TakenSeat("uct"), right=TakenSeat("uct"))


def test_a_match_is_kept_after_every_ply_and_can_be_opened_again(tmp_path: Path) -> None:
    async def run() -> None:
        processes = Counting()
        archive = Archive(tmp_path, processes, "k.db")  # type: ignore[arg-type]
        match = archive.new(rules=RULES, seats={"left": TakenSeat("uct"), "right": TakenSeat()}, pace=AT_ONCE)
        await match.open()
        leave = match.watch(lambda: None)
        await until(lambda: match.waiting == ["right"])
        leave()
        match.stop()
        again = Archive(tmp_path, processes, "k.db")  # type: ignore[arg-type]
        ((kept,),) = [[*again.kept()]]
        assert (kept.id, kept.game, kept.players, kept.num_plies) == (match.id, "counting", ("uct", "person"), 1)
        opened = await again.find(match.id)
        assert opened.as_json() == match.as_json()
        again.delete(match.id)
        assert [*again.kept()] == []

    asyncio.run(run())


@pytest.mark.parametrize("match_id", ["", "..", "../secret", "x" * 100, "no-such-match", "a/b"])
def test_only_ids_of_kept_matches_open(tmp_path: Path, match_id: str) -> None:
    (tmp_path / "secret.json").write_text("{}")
    archive = Archive(tmp_path / "matches", Counting(), "")  # type: ignore[arg-type]
    with pytest.raises(GameloreError, match="expected the address of a match"):
        asyncio.run(archive.find(match_id))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"id": 1}', "null", '{"seats": 3}'])
def test_damaged_files_are_told_and_not_listed(tmp_path: Path, content: str) -> None:
    (tmp_path / "damaged.json").write_text(content)
    archive = Archive(tmp_path, Counting(), "")  # type: ignore[arg-type]
    with pytest.raises(GameloreError, match="delete the file"):
        asyncio.run(archive.find("damaged"))
    assert [*archive.kept()] == []


@pytest.mark.parametrize("times", [(-1, 0, 0), (0, 1e9, 0), (0, 0, float("nan"))])
def test_times_have_bounds(times: tuple[float, float, float]) -> None:
    with pytest.raises(GameloreError, match="choose another time"):
        MatchPace(*times)


def test_joint_moves_leave_out_waiting_roles() -> None:
    assert joint_text(("red", "blue"), ("noop", "(drop 3)")) == "blue (drop 3)"
    assert joint_text(("red", "blue"), ("noop", "noop")) == "noop, noop"
