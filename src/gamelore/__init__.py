"""gamelore: a general game player that remembers."""

from .errors import (
    ExperimentError,
    GameloreError,
    GDLError,
    GDLSemanticError,
    GDLSyntaxError,
    GroundingError,
    IllegalMoveError,
    KnowledgeError,
    ProtocolError,
)
from .games import load
from .rules.game import Game, Position

__version__ = "0.1.0"
__all__ = [
    "ExperimentError",
    "GDLError",
    "GDLSemanticError",
    "GDLSyntaxError",
    "Game",
    "GameloreError",
    "GroundingError",
    "IllegalMoveError",
    "KnowledgeError",
    "Position",
    "ProtocolError",
    "__version__",
    "load",
]
