"""Let gamelore take its own CPU time for the time of day. Import this before any module of gamelore.

Limits in seconds then hold for the CPU time of this process, so that other work on the machine does not matter. That is
of use in processes that do not wait for others. The time of all threads counts, also of the one that chooses the tuples
of a network for some tenths of a second.
"""

from __future__ import annotations

import time

time.monotonic = time.process_time
