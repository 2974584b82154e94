"""The reproduction of Banerjee & Stone 2007.

plan.py       the readings, the figures, the settings of all experiments, the printed values, and the claims
measures.py   the numbers computed from the trials
page.py       the report: tables, figures and text
"""

from .page import demo, reproduce
from .plan import READINGS, SEED

__all__ = ["READINGS", "SEED", "demo", "reproduce"]
