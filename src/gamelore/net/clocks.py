"""How long there is to answer. All times are seconds, all deadlines are of `time.monotonic`.

A clock of the protocol runs until the answer has arrived, so a margin stays for the way of the message. Half of it goes
to ourselves: a player has to stop thinking so much earlier than the answer has to go out, with its move or without.
Without a margin it still has to stop a little earlier, or its move would always be late.
"""

from __future__ import annotations

import time

MARGIN = 0.5  # of every clock, unless told otherwise
LEAST = 0.2  # for an answer where a clock is zero, as happens; managers wait for a second more than they say


def thinking_time(clock: float, margin: float = MARGIN) -> float:
    """How long a player may think: all but the margin, half of the clock where that is more; never up to the answer."""
    return max(answer_time(clock, margin) - max(margin, LEAST) / 2, clock / 2, LEAST / 2)


def answer_time(clock: float, margin: float = MARGIN) -> float:
    """After how long the answer goes out, whatever it is: all but half of the margin, or 3/4 of the clock."""
    return max(clock - margin / 2, clock * 3 / 4, LEAST)


def left(deadline: float) -> float:
    """How long it is to a deadline, 0 when it is over."""
    return max(0.0, deadline - time.monotonic())
