"""What sets the three learners apart: the initial values of each kind.

baseline   the default
lookahead  what a search below the afterstate finds
transfer   the value of the feature that the afterstate matches; the true reward of a terminal one
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import GameloreError
from .coalesce import FIRST_SET
from .features import Equivalence, FeatureValues
from .initial import InitialValues, LookaheadSpace
from .settings import LearnerSettings
from .trees import FeatureSpace, feature_space

if TYPE_CHECKING:
    from ..play.graph import Graph

NO_GROUP = -1


def initial_group(
    initial: InitialValues,
    graph: Graph,
    role: int,
    settings: LearnerSettings,
    values: FeatureValues | None,
    run: tuple[int, int],
) -> int:
    """The group of initial values of a learner, NO_GROUP for the default alone.

    Raises GameloreError where a transfer learner has no feature values, or those of another depth.
    """
    if settings.kind == "lookahead":
        return _lookahead_group(initial, graph, role, settings)
    if settings.control == "terminal":
        return _terminal_group(initial, graph, role, settings.default)
    if settings.kind == "transfer":
        return _transfer_group(initial, graph, role, settings, _checked(settings, values, run))
    return NO_GROUP


def _lookahead_group(initial: InitialValues, graph: Graph, role: int, settings: LearnerSettings) -> int:
    depth, heuristic, default = how = (settings.depth, settings.heuristic, settings.default)
    space = initial.space(LookaheadSpace(graph, role, *how), how, f"{heuristic} of depth {depth}")
    looked = initial.spaces[space].space
    assert isinstance(looked, LookaheadSpace)

    def worth(number: int) -> float:
        return looked.value(number) if number >= FIRST_SET else _reward(number, default)

    return initial.group(space, (), worth)


def _terminal_group(initial: InitialValues, graph: Graph, role: int, default: float) -> int:
    space = _feature_space(initial, feature_space(graph, role, 0))
    return initial.group(space, default, lambda number: _reward(number, default))


def _transfer_group(
    initial: InitialValues, graph: Graph, role: int, settings: LearnerSettings, values: FeatureValues
) -> int:
    equivalence = _equivalence(settings, graph.game.goal_values[role], values)
    features = feature_space(graph, role, settings.depth, equivalence)
    known = {text: equivalence.back(value) for text, (value, _) in values.items()}
    default, sees_end = settings.default, settings.control != "features"

    def worth(number: int) -> float:
        if number < FIRST_SET:
            return _reward(number, default) if sees_end else default
        return known.get(features.feature(number) or "", default)

    space = _feature_space(initial, features)
    return initial.group(space, (default, sees_end, tuple(known.items())), worth)


def _feature_space(initial: InitialValues, space: FeatureSpace) -> int:
    depth = space.depth
    return initial.space(space, space, f"features of depth {depth}" if depth else "terminal check")


def _equivalence(settings: LearnerSettings, target: tuple[int, ...], values: FeatureValues) -> Equivalence:
    if settings.equivalence is None:
        return Equivalence.default(target, values.outcomes)
    return Equivalence.given(dict(settings.equivalence), target)


def _checked(settings: LearnerSettings, values: FeatureValues | None, run: tuple[int, int]) -> FeatureValues:
    if values is None or values.depth != settings.depth:
        found = f"those of depth {values.depth}" if values is not None else "none"
        raise GameloreError(
            f"expected feature values of depth {settings.depth} for a transfer learner, got {found}; learn them "
            "in a source game, or set control to terminal"
        )
    return values.shuffled(*run) if settings.control == "shuffled" else values


def _reward(number: int, default: float) -> float:
    """The true reward of a class of terminal afterstates, the default of others."""
    return float(number - 1) if 0 < number < FIRST_SET else default
