"""Banerjee & Stone 2007, whole.

plan.py       the readings, the figures, and the settings that they need
study.py      one reading's results
pictures.py   its figures
tables.py     its tables
page.py       the report's words
run.py        from the grid to the report
"""

from .plan import READINGS, SEED
from .run import reproduce

__all__ = ["READINGS", "SEED", "reproduce"]
