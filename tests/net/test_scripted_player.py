"""The scripted player of examples/: its scripts, and the program."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from gamelore import load
from gamelore.net.http import Client
from gamelore.net.messages import Play, show
from scripted import PATH, ScriptedPlayer, read_script


def fits(script: str, kind: str, match: int, turn: int) -> bool:
    (step,) = read_script(script)
    return step.fits(kind, match, turn)  # type: ignore[no-any-return]


def test_steps_say_what_they_are_about() -> None:
    assert fits("play=ok", "play", 7, 3)
    assert not fits("play=ok", "stop", 7, 3)
    assert fits("any=ok", "info", -1, -1)
    assert [fits("play@3=ok", "play", 0, turn) for turn in (2, 3, 4)] == [False, True, False]
    assert [fits("play@3+=ok", "play", 0, turn) for turn in (2, 3, 4)] == [False, True, True]
    assert [fits("play#1@3=ok", "play", match, 3) for match in (0, 1, 2)] == [False, True, False]
    assert [fits("start#1+=ok", "start", match, -1) for match in (0, 1, 2)] == [False, True, True]


@pytest.mark.parametrize("script", ["play", "sing=ok", "play=well", "play=late", "play=ok:1", "play@x=ok", "=ok"])
def test_scripts_that_are_none(script: str) -> None:
    with pytest.raises(ValueError, match="expected a"):
        read_script(script)


def test_the_last_step_that_fits_counts() -> None:
    async def talk() -> list[str]:
        rules = str(load("tictactoe").rulesheet).replace("\n", " ")
        messages = [
            f"( START m oplayer ( {rules} ) 1 1 )",
            show(Play("m", None)),
            show(Play("m", ("(mark 2 2)", "noop"))),
        ]
        async with ScriptedPlayer("play=reply:(a b); play@1=ok") as player, Client() as client:
            return [await client.post(player.url, message, 10) for message in messages]

    assert asyncio.run(talk()) == ["ready", "(a b)", "(mark 1 1)"]


COUNTER = """(role robot) (init (at 0)) (succ 0 1) (succ 1 2) (succ 2 3) (succ 3 4)
    (<= (legal robot go) (true (at ?x))) (<= (legal robot (leave ?x)) (true (at ?x)))
    (<= (next (at ?y)) (true (at ?x)) (succ ?x ?y)) (<= terminal (true (at 4))) (goal robot 50)"""


def test_the_same_turn_again_and_the_same_move_again() -> None:
    async def talk() -> list[int]:
        turns = []
        async with ScriptedPlayer() as player, Client() as client:
            await client.post(player.url, f"( START m robot ( {COUNTER} ) 1 1 )", 10)
            for moves in (None, None, ("(leave 0)",), ("(leave 0)",), ("go",), ("go",)):
                assert await client.post(player.url, show(Play("m", moves)), 10) != "busy"
                turns.append(player.matches["m"].turn)
            assert "(at 3)" in player.matches["m"].position.facts
        return turns

    assert asyncio.run(talk()) == [0, 0, 1, 1, 2, 3]


def test_the_program() -> None:
    command = [sys.executable, str(PATH), "--port", "0", "--script", "info=reply:(hello you)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]

            async def talk() -> str:
                async with Client() as client:
                    return await client.post(url, "( INFO )", 10)

            assert asyncio.run(talk()) == "(hello you)"
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0
