"""Search of puzzles, games with one role: a portfolio of methods, and the best solution that they have found.

Reading order: `outlook` (what positions promise), `factored` (sums of puzzles), `portfolio` (the methods and their
turns).
"""
