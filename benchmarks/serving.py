"""A player server in a process of its own, for the benchmarks of the network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import IO

SERVE = (sys.executable, "-c", "from gamelore.cli import main; main()", "serve", "--port", "0", "--json")


@contextmanager
def serving(player: str, *options: str, errors: int | IO[str], has_cache: bool) -> Iterator[str]:
    """Run a player with a knowledge store of its own; yield its URL.

    errors     where its messages go, see `subprocess.Popen`
    has_cache  whether it uses the machine's cache of compiled games, and not an empty one
    """
    with TemporaryDirectory() as folder:
        environment = dict(os.environ) if has_cache else {**os.environ, "GAMELORE_CACHE": f"{folder}/cache"}
        command = [*SERVE, "--player", player, "--knowledge", f"{folder}/k.db", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
