"""Misère play of a game: who would win loses."""

import re


def misere(text: str) -> str:
    """Return rules in which each goal that is a number is turned around: 100 becomes 0, 0 becomes 100."""
    return re.sub(r"\(goal (\S+) (\d+)\)", lambda goal: f"(goal {goal[1]} {100 - int(goal[2])})", text)
