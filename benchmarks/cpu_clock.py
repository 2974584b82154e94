"""Let gamelore take its own CPU time for the time of day. Import this before any module of gamelore.

Limits in seconds then hold for the CPU time of this process, so that other work on the machine does not matter. That is
of use in processes that neither wait for others nor have other threads.
"""

from __future__ import annotations

import time

time.monotonic = time.process_time
