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
import hostile_pages
import hostile_rivals
import hostile_sheets
import message_grammar
import page_grammar
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
from visitors import Address
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


# ---- pages ------------------------------------------------------------------------------------------------------

ADDRESS = Address(8460)
HANDSHAKE = "GET / HTTP/1.1\r\nHost: {}\r\nOrigin: {}\r\n\r\n"
OPENED = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"


def test_all_kinds_of_steps_texts_and_pages_are_drawn() -> None:
    steps = [step for seed in range(200) for step in page_grammar.drawn(Random(seed))["steps"]]
    assert {step["kind"] for step in steps} == page_grammar.STEPS.keys()
    assert {step["page"] for step in steps if step["kind"] == "events"} == page_grammar.PAGES.keys()
    assert {text["text"] for step in steps for text in step.get("texts", ())} == set(page_grammar.TEXTS)
    assert {step["fault"] for step in steps if "fault" in step} == {"none", *page_grammar.FORM_FAULTS}


@pytest.mark.parametrize("kind", page_grammar.TEXTS)
def test_a_text_is_the_same_from_the_same_recipe(kind: str) -> None:
    recipe = {"text": kind, "size": 3, "seed": 5}
    assert page_grammar.text_of(recipe) == page_grammar.text_of(recipe)


@pytest.mark.parametrize("fault", ["none", *page_grammar.FORM_FAULTS])
def test_only_a_sound_form_says_how_long_it_is(fault: str) -> None:
    step = {"name": "a.kif", "content": "zeros", "size": 100, "seed": 1, "fault": fault}
    body, fields = page_grammar.form_of(step)
    assert (f"Content-Length: {len(body)}" in fields) == (fault not in ("longer", "shorter", "chunked"))


@pytest.mark.parametrize(
    ("host", "origin", "is_allowed"),
    [
        ("127.0.0.1:8460", "http://127.0.0.1:8460", True),
        ("127.0.0.1:8460", "http://evil.example", False),
        ("evil.example", "http://evil.example", False),
        ("127.0.0.1:8460\r\nHost: evil.example", "http://127.0.0.1:8460", False),
        ("127.0.0.1:8460", "http://127.0.0.1:8460\r\nOrigin: null", False),
    ],
)
def test_a_websocket_for_another_page_is_found(host: str, origin: str, is_allowed: bool) -> None:
    sent = HANDSHAKE.format(host, origin).encode()
    with nullcontext() if is_allowed else pytest.raises(AssertionError, match="another page"):
        hostile_pages.assert_allowed(sent, OPENED, ADDRESS)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 Internal Server Error\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nTraceback (most recent call last):",
        b"HTTP/1.1 200 OK\r\n\r\n" + hostile_pages.CANARY.encode(),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 502 Bad Gateway\r\n\r\n",
        b"HTTP/7",
    ],
    ids=["error", "traceback", "file from outside", "second error", "no reply"],
)
def test_wrong_replies_of_the_pages_are_found(answer: bytes) -> None:
    with pytest.raises(AssertionError):
        hostile_pages.assert_allowed(b"", answer, ADDRESS)


TRACEBACK = """refused
Traceback (most recent call last):
  File "/venv/nicegui/events.py", line 500, in handle_event
    result = handler(arguments)
  File "{}", line 1, in _moved
    value[0]
{}
refused
"""


@pytest.mark.parametrize(
    ("file", "error", "is_made_up"),
    [
        ("/venv/nicegui/elements/select.py", "KeyError: 'value'", True),
        ("/venv/nicegui/elements/select.py", "OSError: the disk is full", False),
        ("/gamelore/web/pages/play_page.py", "KeyError: 'value'", False),
    ],
)
def test_tracebacks_of_ours_are_found(file: str, error: str, is_made_up: bool) -> None:
    (text,) = hostile_pages.tracebacks(TRACEBACK.format(file, error))
    assert text.endswith(error)
    assert hostile_pages.is_made_up(text) == is_made_up


def test_a_file_beside_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile_pages.PageServer, "_started", lambda self, code: None)
    monkeypatch.setattr(hostile_pages.PageServer, "_port", lambda self: 1)
    server = hostile_pages.PageServer(tmp_path)
    (server.folder / "drafts").mkdir()
    server.assert_nothing_else_is_written()
    (tmp_path / "home" / "x").touch()
    with pytest.raises(AssertionError, match="home/x"):
        server.assert_nothing_else_is_written()
    (tmp_path / "home" / "x").unlink()
    (server.folder / "x").touch()
    with pytest.raises(AssertionError, match="'x'"):
        server.assert_nothing_else_is_written()


FOREIGN = page_grammar.handshake_step("$HOST", "http://evil.example")
DOCS = {"kind": "request", "sent": "GET /docs HTTP/1.1\r\nHost: $HOST\r\nConnection: close\r\n\r\n"}
BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "no websocket for another page": ("guard._check_origin = lambda *_, **__: None", FOREIGN),
    "expected a refusal": ("guard._check_path = lambda path, _: 1 / (path != '/docs')", {**DOCS, "way": "whole"}),
    "no traceback": ("guard._check_path = lambda path, _: 1 / (path != '/docs')", {**DOCS, "way": "unread"}),
    "the start page within": ("import time; guard._log = lambda *_: time.sleep(9)", FOREIGN),
    "no change outside": ("guard._log = lambda *_: open('../x', 'w').close()", FOREIGN),
    "at most 300 MiB": ("kept = []; guard._log = lambda *_: kept.append(b'x' * (300 << 20))", FOREIGN),
    ".+": ("import os; guard._log = lambda *_: os._exit(3)", FOREIGN),
}
"""What is found, after what is broken in the guard, by which step."""


@pytest.mark.long
@pytest.mark.parametrize("told", BROKEN)
def test_a_broken_guard_is_found(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, step = BROKEN[told]
    monkeypatch.setattr(hostile_pages, "SERVER_MEMORY", 300 << 20)
    monkeypatch.setattr(hostile_pages, "PATIENCE", 20.0)
    code = f"from gamelore.web.service import guard; {broken}; {hostile_pages.GAMELORE}"
    with hostile_pages.session(code) as check, pytest.raises((AssertionError, OSError), match=told):
        check({"steps": [step]})


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
