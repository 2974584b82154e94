"""gamelore: a general game player that remembers.

It reads the rules of a game in GDL, compiles them, plays the game, learns, and uses the learned knowledge in new games.

    game = gamelore.load("tictactoe")             # a shipped name, a path or GDL text
    position = game.start().play({"xplayer": "(mark 2 2)", "oplayer": "noop"})
    matches = gamelore.play(game, {"xplayer": "gamelore", "oplayer": my_function}, matches=100)

The package consists of rooms, from `gdl` to `cli` (see docs/architecture.md). These are its terms, in the order in
which the rooms need them. Names of counts begin with `num_`. Docstrings state the shapes of arrays, such as
`[batch, words]`.

    game          the rules of a game; `Game`
    rulesheet     the text of a game's rules in GDL, the Game Description Language
    role          one of the parties of a game, such as `xplayer`; a player plays a role
    fact          a term that is true in a state: `(cell 1 1 b)`
    state         the facts that hold at one moment; in arrays uint64[batch, words], which only the Game can interpret
    position      a state with its game, where facts and moves are text; `Position`
    move          a term of GDL, such as `(mark 2 2)` or `noop`
    action        the integer for a move of a role; both engines have the same order of actions
    joint move    one move of every role, made at the same time; in games with turns all roles but one do nothing
    legal         a move is legal if the rules allow it for a role in a state
    terminal      a state is terminal if the match is over in this state
    goal          the value of a state for a role, 0 to 100; None if the rules give no value or several values
    stuck         a match is stuck if it is not over, but a role has no legal move
    engine        the evaluator of the rules: `native` (machine code) or `reasoner` (clingo; slow, but for any game)
    perft         the number of sequences of joint moves of each length from the start; used to test engines
    playout       a match of uniformly random moves, of which only the result is counted
    player        chooses moves for a role; an opponent is a player that does not learn
    match         one play of a game from its start to its end, stored as a match record (Lock & Epstein: a contest)
    ply           one joint move of a match
    lane          the place of one match among many matches that are played in lockstep
    afterstate    the position after a role's own move, before any reply; learners value these
    reward        the goal that a learner receives at the end of a match; a missing goal counts as 0
    feature       the game tree below an afterstate, reduced to its pattern of outcomes (Banerjee & Stone 2007)
    source        the game in which features and values are learned; they are used in another game, the target
    knowledge     learned values with their provenance: game, opponent, settings, seed, matches and visits
    startclock    the time for preparation before a match
    playclock     the time for one move
    reading       an interpretation of a point that a paper leaves open: `text` or `figures`
    sequence      consecutive moves of a match; a duet has moves of both roles, a solo has moves of only one role
    context       the pattern of the states in which a sequence began (Lock & Epstein 2004)
    context pair  a context with its sequence

All errors that gamelore raises on purpose are subclasses of `GameloreError`; errors.py shows the hierarchy.
"""

from .analysis.symmetry import Symmetries
from .api.competition import Tournament, tournament
from .api.exact import Solved, solve
from .api.feature_census import Features, features
from .api.game_lessons import AdviceTest, GameLesson, LessonSummary, study
from .api.inventor import GameReport, report
from .api.learn import learn
from .api.memory import Knowledge, Learned, LearnedMoves, LearnedSequences
from .api.opinion import think
from .api.playing import AnyPlayer, ListedPlayer, Match, Matches, list_players, play, player, replay
from .api.recognition import RecognisedOpponent, recognise
from .api.rules import Checked, ListedGame, check, list_games, symmetries
from .api.transfer_experiment import TransferExperiment, transfer
from .drawing.thought import MoveThought, Thought
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
from .game.game import Game, Position
from .gdl.limits import Limits
from .players.player import Player, PositionPlayer
from .rulesheets import load

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
    # rules and games
    "load",
    "Limits",
    "Game",
    "Position",
    # players
    "Player",
    "PositionPlayer",
    "AnyPlayer",
    # api.rules
    "list_games",
    "ListedGame",
    "check",
    "Checked",
    "symmetries",
    "Symmetries",
    # api.inventor
    "report",
    "GameReport",
    # api.playing
    "play",
    "replay",
    "Matches",
    "Match",
    "player",
    "list_players",
    "ListedPlayer",
    # api.recognition
    "recognise",
    "RecognisedOpponent",
    # api.competition
    "tournament",
    "Tournament",
    # api.exact
    "solve",
    "Solved",
    # api.feature_census
    "features",
    "Features",
    # api.learn, api.memory
    "learn",
    "Learned",
    "LearnedMoves",
    "LearnedSequences",
    "Knowledge",
    # api.game_lessons
    "study",
    "GameLesson",
    "LessonSummary",
    "AdviceTest",
    # api.transfer_experiment
    "transfer",
    "TransferExperiment",
    # api.opinion
    "think",
    "Thought",
    "MoveThought",
    "__version__",
]
