"""The reproduction of Lock & Epstein 2004.

plan.py       the printed tables, and the experiments
runs.py       one run: training, testing, and their results
measures.py   numbers computed from the results of all runs, and the claims
tables.py     the tables of the report; exact baselines and sequence classes, which need no runs
page.py       the report: figures and text
"""

from .page import reproduce
from .plan import SEED

__all__ = ["SEED", "reproduce"]
