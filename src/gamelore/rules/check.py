"""placeholder until the checker lands"""
from .gdl import Rulesheet


def refuse(sheet: Rulesheet) -> None:
    """Being written."""
