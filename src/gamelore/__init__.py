"""gamelore: a general game player that remembers.

Give it the rules of a game in GDL; it compiles them, plays, learns, and carries what it learned into the next game.

    game = gamelore.load("tictactoe")             # a shipped name, a path or GDL text
    position = game.start().play({"xplayer": "(mark 2 2)", "oplayer": "noop"})

The words of this package, in the order in which its rooms (rules, games, play, learn, lab, cli) need them. A count is
`num_*`; arrays state their shape in the docstring, `[batch, words]`.

    game          the rules; `Game`. One play of them is a match
    rulesheet     the text of a game's rules in GDL, the Game Description Language
    role          one of the parties of a game, such as `xplayer`; a player plays a role
    fact          one thing that is true of a state: `(cell 1 1 b)`
    state         the facts that hold at one moment; in arrays uint64[batch, words], which only the Game reads
    position      a state with its game, everything as text; `Position`
    move          what a role may do, a term of GDL: `(mark 2 2)`, `noop`
    action        the integer that stands for a role's move; its order is the same on both engines
    joint move    one move of every role, made at the same time; in games that take turns all but one of them wait
    legal         of a move: the rules allow it to this role in this state
    terminal      of a state: the match is over there
    goal          what a state gives a role, 0 to 100; None where the rules give it no value or several
    stuck         of a match: it is not over, and a role has no legal move
    engine        who answers for the rules: `native` (machine code) or `reasoner` (clingo, slow, for any game)
    perft         the number of sequences of joint moves of each length from the start; tests engines
    playout       a match of uniformly random moves, counted and not kept
    player        whoever chooses moves for a role; an opponent is a player that does not learn
    match         one play of a game from the start to its end (Lock & Epstein say contest); a match record tells it
    ply           one joint move of a match
    lane          one of many matches that are played side by side, in lockstep
    afterstate    the position that a role leaves behind by its move; learners value these
    reward        the goal as a learner receives it at the end of a match; a missing goal counts 0
    feature       the game tree below an afterstate, reduced to its pattern of outcomes (Banerjee & Stone 2007)
    source        the game from which features and their values come; they are used in the target
    knowledge     learned values with their provenance: game, opponent, settings, seed, matches and visits
    startclock    the time before a match, in which learners work out what they need
    playclock     the time for one move
    reading       one way to take a point that a paper leaves open: `text` or `figures`
    sequence      moves of a match that follow each other; a duet has moves of both roles, a solo those of one
    context       the pattern of the states in which a sequence began; with it, a context pair (Lock & Epstein 2004)

Whatever is raised on purpose is a `GameloreError`; errors.py draws the tree.
"""

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
__all__ = [  # noqa: RUF022 - in the order of the rooms
    # errors
    "GameloreError",
    "GDLError",
    "GDLSyntaxError",
    "GDLSemanticError",
    "GroundingError",
    "IllegalMoveError",
    "ProtocolError",
    "KnowledgeError",
    "ExperimentError",
    # rules
    "Game",
    "Position",
    # games
    "load",
    "__version__",
]
