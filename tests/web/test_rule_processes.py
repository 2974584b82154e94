"""The processes of the pages: which of them answers, when one begins and ends, and what happens if it dies."""

import asyncio

import pytest

from gamelore.net.pool import WorkerDied
from gamelore.web.service import rule_processes
from gamelore.web.service.rule_processes import RuleProcesses, SharedProcess


class NumberedProcess:
    """A process that answers with its number; the first one may die."""

    def __init__(self, number: int) -> None:
        self.number, self.is_alive, self.num_working = number, True, 0

    @property
    def is_idle(self) -> bool:
        return not self.num_working

    async def ask(self, do: str, seconds: float, *, death: str = "") -> int:
        self.num_working += 1
        await asyncio.sleep(0.03 if do == "wait" else 0)
        self.num_working -= 1
        if death and self.number == 1:
            self.is_alive = False
            raise WorkerDied("killed", is_mine=death == "mine")
        return self.number

    def end(self) -> None:
        assert self.is_idle
        self.is_alive = False


class Processes:
    """A shared process, and all processes that it has started."""

    def __init__(self) -> None:
        self.all: list[NumberedProcess] = []
        self.shared = SharedProcess(self._started)  # type: ignore[arg-type]

    def _started(self) -> NumberedProcess:
        self.all.append(NumberedProcess(len(self.all) + 1))
        return self.all[-1]

    async def wait_for_end(self) -> None:
        while any(process.is_alive for process in self.all):
            await asyncio.sleep(0.005)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    monkeypatch.setattr(rule_processes, "IDLE_SECONDS", 0.01)
    return Processes()


def test_all_pages_share_a_process_that_ends_when_it_is_idle(processes: Processes) -> None:
    async def run() -> None:
        ask = processes.shared.ask
        assert await asyncio.gather(ask("wait", 1.0), ask("check", 1.0)) == [1, 1], (
            "the first request outlasts the pause"
        )
        await processes.wait_for_end()
        assert await ask("check", 1.0) == 2

    asyncio.run(run())


def test_a_request_that_another_one_has_killed_is_repeated(processes: Processes) -> None:
    async def run() -> None:
        assert await processes.shared.ask("check", 1.0, death="other") == 2
        assert [process.is_alive for process in processes.all] == [False, True]

    asyncio.run(run())


def test_a_request_that_was_too_much_is_not_repeated(processes: Processes) -> None:
    async def run() -> None:
        with pytest.raises(WorkerDied, match="killed"):
            await processes.shared.ask("check", 1.0, death="mine")
        assert await processes.shared.ask("check", 1.0) == 2

    asyncio.run(run())
    assert len(processes.all) == 2


def test_the_start_form_does_not_wait_for_the_player_to_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[NumberedProcess] = []

    def start(_: RuleProcesses, module: str) -> NumberedProcess:
        started.append(NumberedProcess(len(started) + 1))
        return started[-1]

    monkeypatch.setattr(RuleProcesses, "_started", start)

    async def run() -> None:
        rules = RuleProcesses()
        warming, answer = asyncio.create_task(rules.warm_up()), rules.ask(None, "players", time_limit=1.0)
        await asyncio.sleep(0)
        assert await answer == 2
        await warming

    asyncio.run(run())
