"""`gamelore web` at the command line: its address, mistakes, and its end."""

import json
import signal
import socket
import subprocess
import sys
from importlib import util
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from urllib.request import urlopen

import pytest

from commands import run

pytest.importorskip("nicegui", reason="the web page needs NiceGUI: pip install 'gamelore[web]'")
WEB = (sys.executable, "-c", "from gamelore.cli import main; main()", "web", "--no-browser")


def test_the_page_is_served_until_ctrl_c(tmp_path: Path) -> None:
    command = [*WEB, "--port", "0", "--json", "--folder", str(tmp_path / "web"), "--knowledge", str(tmp_path / "k.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        with urlopen(url) as reply:
            assert b"gamelore" in reply.read()
        server.send_signal(signal.SIGINT)
        _, told = server.communicate(timeout=60)
    assert server.returncode == 130, told
    assert "Traceback" not in told
    assert [path.name for path in tmp_path.iterdir()] == ["web"]  # nothing in the working directory


def test_a_browser_that_does_not_return_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, is_over = SimpleQueue[str](), Event()

    def hold(url: str) -> None:
        opened.put(url)
        is_over.wait()

    monkeypatch.setattr("webbrowser.open", hold)
    monkeypatch.setattr("gamelore.web.server.serve_pages", lambda settings, on_ready: on_ready("http://here/"))
    assert run("web", "--folder", tmp_path).stdout == "gamelore is at http://here/; Ctrl-C stops it\n"
    assert opened.get(timeout=60) == "http://here/"
    is_over.set()


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("web", "--no-browser", "--port", port, "--folder", tmp_path, code=1)
    assert f"expected to listen at 127.0.0.1, port {port}, got " in result.stderr


def test_mistakes_in_options(tmp_path: Path) -> None:
    run("web", "--port", 70000, code=2)
    assert "expected a folder of rulesheets" in run("web", "--games", tmp_path / "none", "--port", 0, code=1).stderr
    message = run("web", "--allow-host", "two words", "--port", 0, "--folder", tmp_path, code=1).stderr
    assert "expected the name of a host" in message


def test_without_nicegui_the_command_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    monkeypatch.setattr("gamelore.cli.web_command.find_spec", lambda name: None)
    assert "pip install 'gamelore[web]'" in run("web", code=1).stderr


def test_the_settings_name_every_folder() -> None:
    """No default is the working directory."""
    from gamelore.web.server import WebSettings

    with pytest.raises(TypeError, match="folder"):
        WebSettings(store=Path("k.db"), port=0)
    with pytest.raises(TypeError, match="store"):
        WebSettings(folder=Path("web"), port=0)
