"""Lock & Epstein 2004, whole.

printed.py     the paper's numbers
plan.py        the experiments, and the settings that they need
strategies.py  the strategies of Figures 5 to 7, found among learned pairs
observing.py   how good advice is, by the solution
runs.py        one run: training, testing, and what is to be known of both
speed.py       how long decisions take
store.py       every finished run, in one file
study.py       results as numbers by run
claims.py      what the paper says, with claims.toml
findings.py    every claim judged
classes.py     the classes of sequences that lose tic-tac-toe allows
exact.py       its baselines without sampling
tables.py      Tables 1 and 2, variants, claims
learned.py     the tables of what was learned
pictures.py    the figures
page.py        the report's words
run.py         from the plan to the report
"""

from .plan import SEED
from .run import reproduce

__all__ = ["SEED", "reproduce"]
