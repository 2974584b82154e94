"""Exact values of all positions of a solvable game: enumeration of states, retrograde analysis, perfect play."""
