"""Drawings of positions as text and as SVG. Both use the same description of the boards of a game.

No module of this package imports numba or matplotlib, so that terminals and notebooks show positions without delay.
"""
