"""The hostile fuzzers draw what they shall, and find what is planted."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import hostile_kills
import hostile_messages
import hostile_rivals
import hostile_sheets
import message_grammar
import processes
from fuzz.hostile import HOSTILE
from gamelore.errors import ProtocolError
from gamelore.gdl.clauses import MAX_CONJUNCTIONS, conjunctions
from gamelore.gdl.lint import lint_text
from gamelore.gdl.syntax import parse
from gamelore.net import messages
from hostile_constructs import CONSTRUCTS
from hostile_kills import Killing
from restarted_server import Kill
from scripted_manager import Match
from wire import PATIENCE, Scripted, reply, request

REFUSAL = b"HTTP/1.0 400 Bad Request\r\nContent-length: 2\r\n\r\nno"


@pytest.mark.parametrize("name", HOSTILE)
def test_an_example_is_the_same_from_the_same_seed_and_after_it_was_stored(name: str) -> None:
    draw = HOSTILE[name].draw
    example = draw(Random(5))
    assert example == draw(Random(5)) == json.loads(json.dumps(example))
    assert any(draw(Random(seed)) != example for seed in range(6, 10))


# ---- messages ---------------------------------------------------------------------------------------------------


def test_all_kinds_of_messages_are_drawn_and_half_of_them_are_messages() -> None:
    steps = [step for seed in range(100) for step in message_grammar.drawn(Random(seed))["steps"]]
    assert {step["way"] for step in steps} == message_grammar.WAYS.keys() == hostile_messages.SENDING.keys()
    assert {step["waits"] for step in steps} == {False, True}
    kinds = [kind_of(step["sent"].encode("latin-1")) for step in steps]
    assert set(kinds) == {"Info", "Preview", "Start", "Play", "Stop", "Abort", "refused", "no proper head"}
    assert kinds.count("refused") + kinds.count("no proper head") < len(kinds) / 2


def kind_of(sent: bytes) -> str:
    body = sent.partition(b"\r\n\r\n")[2]
    if sent != request(body):
        return "no proper head"
    try:
        return type(messages.parse(body.decode("utf-8", "replace"))).__name__
    except ProtocolError:
        return "refused"


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("( INFO )", reply("( ( name gamelore ) ( status available ) )")),
        ("( PLAY m NIL )", reply("(mark 1 1)")),
        ("( PLAY m NIL )", reply("busy")),
        ("( STOP m NIL )", reply("done")),
        ("( PLAY m", REFUSAL),
    ],
)
def test_replies_of_the_protocol_are_known(body: str, answer: bytes) -> None:
    hostile_messages.assert_known(request(body), "whole", answer)


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("( INFO )", b""),
        ("( INFO )", b"( ( name gamelore ) )"),
        ("( INFO )", reply("ready")),
        ("( INFO )", b"HTTP/1.0 500 Internal Server Error\r\nContent-length: 2\r\n\r\nno"),
        ("( INFO )", REFUSAL),
        ("( PLAY m NIL )", reply("(mark 1 1) (mark 2 2)")),
        ("( PLAY m NIL )", reply("")),
        ("( STOP m NIL )", reply("ready")),
        ("( ABORT m )", reply("nil")),
        ("( PLAY m", reply("busy")),
        ("( INFO )", b"HTTP/1.0 200 OK\r\nContent-length: 3\r\n\r\n( ( name gamelore ) )"),
    ],
)
def test_other_replies_are_found(body: str, answer: bytes) -> None:
    with pytest.raises((AssertionError, ProtocolError)):
        hostile_messages.assert_known(request(body), "whole", answer)


INFO = "( ( name gamelore ) ( status available ) )"


def ask_slow_server(monkeypatch: pytest.MonkeyPatch, waiting: Any) -> hostile_messages.Figures:
    """Send INFO for a while to a server that replies after twice the limit, and has waited for a processor."""
    monkeypatch.setattr(hostile_messages, "INFO_SECONDS", 0.05)
    monkeypatch.setattr(hostile_messages, "waited", waiting)
    monkeypatch.setattr(hostile_messages, "Delays", lambda: nullcontext(SimpleNamespace(seconds=0.0)))
    asked, figures = threading.Event(), hostile_messages.Figures()

    def answer(body: str) -> bytes:
        time.sleep(0.1)
        asked.set()
        return reply(INFO)

    with Scripted(answer) as player, hostile_messages.info_is_asked(player.port, 0, figures):
        assert asked.wait(PATIENCE)
    return figures


def test_a_slow_info_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match=r"expected a reply to INFO within 0\.05 s"):
        ask_slow_server(monkeypatch, lambda pid: 0.0)


def test_a_server_without_a_processor_is_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count(step=3600.0)
    figures = ask_slow_server(monkeypatch, lambda pid: next(seconds))
    assert figures.infos > 0
    assert figures.slowest_info >= 0.1
    assert figures.slowest_server == 0.0


def test_delays_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0
    monkeypatch.setattr(processes.time, "monotonic", lambda: now)
    delays, wakes = processes.Delays(), iter([0.05, 0.25, 0.06])

    def wait(seconds: float) -> bool:
        nonlocal now
        now += (sleeps := next(wakes, 0.0))
        return not sleeps

    monkeypatch.setattr(delays._over, "wait", wait)
    delays._tick()
    assert delays.seconds == pytest.approx(0.21)
    now += 1.05
    assert delays.seconds == pytest.approx(1.21)


def test_a_sequence_is_cut_down_to_the_messages_that_are_needed() -> None:
    steps = [{"sent": text, "way": "whole", "waits": True} for text in "abcdef"]

    def fails(example: dict[str, Any]) -> bool:
        return {"b", "e"} <= {step["sent"] for step in example["steps"]}

    smaller = hostile_messages.fewer_steps({"steps": steps}, fails)
    assert [step["sent"] for step in smaller["steps"]] == ["b", "e"]


# ---- kills ------------------------------------------------------------------------------------------------------


class Manager:
    """A manager whose matches are those that begin with m."""

    @staticmethod
    def may_have(match: str) -> bool:
        return match.startswith("m")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Assert about matches and kills, as if the store had these matches."""

    def assert_once(stored: dict[str, int], matches: list[Match], kills: list[Kill]) -> None:
        with (tmp_path / "log").open("w") as log:
            killing = Killing(tmp_path, log)
        monkeypatch.setattr(hostile_kills, "stored_matches", lambda store: dict.fromkeys("mno", 0) | stored)
        monkeypatch.setattr(killing, "_assert_whole", lambda: None)
        killing._assert_each_once(matches, kills, Manager())  # type: ignore[arg-type]

    return assert_once


MATCH = Match("m", (), False, 10.0, 12.0, 13.0)
FINISHED = Match("m", (), True, 10.0, 12.0, 13.0)


@pytest.mark.parametrize(
    ("stored", "match", "kills"),
    [
        ({"m": 1}, MATCH, []),
        ({"m": 0}, MATCH, [Kill("server", 12.5, 12.6)]),
        ({"m": 0}, Match("m", ("nil",), False, 10.0, 12.0, 13.0), []),
        ({"m": 1, "x": 1}, MATCH, [Kill("worker", 12.5, 12.6)]),
    ],
)
def test_matches_that_are_stored_as_they_should_be(
    judge: Callable[..., None], stored: dict[str, int], match: Match, kills: list[Kill]
) -> None:
    judge(stored, [match], kills)


@pytest.mark.parametrize(
    ("stored", "kills", "told"),
    [
        ({"m": 2}, [], "twice"),
        ({"m": 0}, [], "lost"),
        ({"m": 0}, [Kill("worker", 12.5, 12.6)], "lost"),
        ({"m": 0}, [Kill("server", 11.0, 11.5), Kill("server", 14.0, 14.1)], "lost"),
        ({"m": 1, "m2": 1}, [], "only matches that were played"),
    ],
)
def test_lost_and_double_matches_are_found(
    judge: Callable[..., None], stored: dict[str, int], kills: list[Kill], told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        judge(stored, [MATCH], kills)


def test_a_match_whose_end_the_server_has_acknowledged_is_never_cut_off(judge: Callable[..., None]) -> None:
    with pytest.raises(AssertionError, match="lost"):
        judge({"m": 0}, [FINISHED], [Kill("server", 12.5, 12.6)])


# ---- rivals -----------------------------------------------------------------------------------------------------

KILLED = [Kill("server", 11.0, 11.1)]


@pytest.mark.parametrize(
    ("stored", "match", "kills"),
    [({"m": 1}, FINISHED, []), ({"m": 1}, MATCH, KILLED), ({}, MATCH, KILLED), ({"m": 1}, FINISHED, KILLED)],
)
def test_the_account_of_two_servers_is_right(stored: dict[str, int], match: Match, kills: list[Kill]) -> None:
    hostile_rivals.assert_each_once(Counter(stored), [([], KILLED), ([match], kills)])


@pytest.mark.parametrize(
    ("stored", "match", "kills", "told"),
    [
        ({"m": 2}, FINISHED, [], "once in the store, got 2"),
        ({"m": 2}, MATCH, KILLED, "once in the store, got 2"),
        ({}, FINISHED, KILLED, "it is lost"),
        ({}, MATCH, [], "an answer to STOP"),
        ({"m": 1}, MATCH, [Kill("server", 14.0, 14.1)], "an answer to STOP"),
        ({"m": 1, "other": 1}, FINISHED, [], "only matches that were played"),
    ],
)
def test_a_wrong_account_of_two_servers_is_found(
    stored: dict[str, int], match: Match, kills: list[Kill], told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        hostile_rivals.assert_each_once(Counter(stored), [([match], kills), ([], KILLED)])


def test_everything_is_killed_sometimes() -> None:
    examples = [hostile_kills.drawn(Random(seed)) for seed in range(100)]
    victims = {kill["whom"] for example in examples for kill in example["kills"]}
    assert victims == hostile_kills.VICTIMS.keys()
    assert {example["manager"] for example in examples} == hostile_kills.MANAGERS.keys()


# ---- sheets -----------------------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {"messages": [], "seconds": 1.0, "memory": 1 << 20, "slowness": 1.0}
EXAMPLE = {"parts": [["many", 5, 1]]}


def measured(monkeypatch: pytest.MonkeyPatch, *answers: list[Any]) -> None:
    """Check a sheet of 1,000 characters as if these were measured, one after the other."""
    measuring, coming = hostile_sheets.Measuring(), iter(answers)
    monkeypatch.setattr(measuring, "_measured", lambda example: [1000, *next(coming)])
    measuring(EXAMPLE)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"memory": 1 << 30}, "MiB"),
        ({"messages": ["x" * 10_000]}, "too much"),
        ({"messages": ["expected a, got b"]}, "expected a, got b"),
        ({"messages": ["Remedy: a", "Remedy: b"]}, "Remedy"),
    ],
)
def test_sheets_beyond_the_limits_are_found(monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any], told: str) -> None:
    measured(monkeypatch, [GOOD, GOOD])
    with pytest.raises(AssertionError, match=told):
        measured(monkeypatch, [GOOD | fault, GOOD])


def test_a_sheet_is_too_slow_if_it_always_is(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = [GOOD | {"seconds": 9.0}, GOOD]
    measured(monkeypatch, slow, slow, [GOOD, GOOD])
    with pytest.raises(AssertionError, match="load took 9"):
        measured(monkeypatch, slow, slow, slow)
    with pytest.raises(AssertionError, match="check took 9"):
        measured(monkeypatch, slow[::-1], slow[::-1], slow[::-1])


def test_a_slow_machine_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = [GOOD | {"seconds": 3.5, "slowness": 3.0}] * 2
    measured(monkeypatch, slow)
    with pytest.raises(AssertionError, match=r"load took 4\.5"):
        measured(monkeypatch, *[[GOOD | {"seconds": 4.5, "slowness": 3.0}, GOOD]] * 3)


def test_a_child_that_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile_sheets, "__file__", "no such file")
    with pytest.raises(AssertionError, match="expected an answer, got exit code 2"):
        hostile_sheets.Measuring()(EXAMPLE)


@pytest.mark.parametrize("kind", hostile_sheets.KINDS)
def test_every_kind_of_sheet_is_one(kind: str) -> None:
    """Each can be small, too; the largest ones are for `make hostile`."""
    text = hostile_sheets.text_of({"parts": [[kind, 3, 1]]})
    assert all(finding.code != "syntax" for finding in lint_text(text))


@pytest.mark.parametrize("kind", CONSTRUCTS)
def test_every_shape_of_a_construct_is_a_rulesheet(kind: str) -> None:
    """A mistake in the form of a rule would end loading before anything can explode."""
    texts = {hostile_sheets.text_of({"parts": [[kind, 7, seed]]}) for seed in range(25)}
    assert len(texts) > 1
    for text in texts:
        parse(text)


def test_alternatives_are_within_the_conjunctions_of_one_rule() -> None:
    texts = [hostile_sheets.text_of({"parts": [["random alternatives", 5, seed]]}) for seed in range(40)]
    longest = max(len(list(conjunctions(rule))) for text in texts for rule in parse(text).rules)
    assert 100 < longest <= MAX_CONJUNCTIONS


def test_a_sheet_is_cut_down_to_the_part_and_the_size_that_are_needed() -> None:
    def fails(example: dict[str, Any]) -> bool:
        return any(kind == "roles" and size > 28 for kind, size, _ in example["parts"])

    example = {"parts": [["deep", 100, 1], ["roles", 400, 2]]}
    assert hostile_sheets.smaller(example, fails) == {"parts": [["roles", 32, 2]]}
