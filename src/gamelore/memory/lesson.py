"""Lessons between the search and the store: facts by number in a game, facts by text in the store.

The value of a lesson has its facts as texts, so it can be read with other versions of gamelore and with other names. A
network has its facts as texts, too, and its arrays as an npz file; its entries are rounded to float16 there.
The rest of the state of a teacher (sums of regressions, matches under way) is an npz file, and so is that of self-play
(the network, with the sums for its step sizes). It is used only if the facts of the game are numbered and tied
as they were; otherwise the present generation goes on without its samples so far, or its sums for step sizes.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..learning.store.lesson_rows import StoredLesson
from ..learning.store.taught_rows import NOTHING, StoredNetwork, StoredValue
from ..networks.network import MOST_TUPLES, Network
from ..networks.self_play import SelfPlayState, played_positions
from ..networks.tuples import Tuples
from ..search.settings import TeachingSettings
from ..search.teaching import ForecastSums, Running, Samples, Sums, TeachingState, fact_classes
from ..search.value import LinearValue

if TYPE_CHECKING:
    from ..game.game import Game

_BYTES_OF_CHANGED, _BYTES_OF_ROUNDED = 20, 6  # of an entry of self-play in the store, see packed_play
_MOST_PLAY_BYTES = 32 << 20
_LARGEST_ENTRY = 60_000  # of a network in the store; float16 ends there
FIRST_STATE_SECONDS = 20.0
"""CPU time of self-play before the first state of a network; after half of that, one that began empty is of no use."""
NEXT_STATE = 1.5  # a network is a state of its lesson again after so many times the teaching of the last one
_NUM_POSITIONS, _RIDGE = 10_000, 1e-3  # of a surrogate; penalty of squared weights for each position, as in teaching
MOST_BYTES = 8 << 20  # of the sums of a generation under way; where they take more, only whole generations are stored


def is_large(state: TeachingState) -> bool:
    """Return whether the sums of a state are too large for the store."""
    return state.progress is not None and state.progress[0].moments.nbytes > MOST_BYTES


def stored(game: Game, state: TeachingState, seconds: float, informed: float | None) -> StoredLesson:
    """Return the lesson of a game for the store.

    The sums of a large state are left out. Then the lesson is that at the beginning of the present generation, and the
    next teacher finds out anew whether goals add up.

    Args:
        state: of the teacher
        seconds: CPU seconds of all teaching so far
        informed: share of informed playouts that a trial has decided for; None without a decision
    """
    walks, progress = (state.begins, b"") if is_large(state) else (state.walks, _packed(game, state))
    value = stored_value(game, state.value, informed)
    return StoredLesson(state.generation, state.rounds, walks, seconds, value, progress)


def stored_value(game: Game, value: LinearValue | None, informed: float | None) -> StoredValue:
    """Return a value of a game for the store."""
    if value is None:
        return NOTHING._replace(informed=informed)
    bits = np.flatnonzero(value.weights.any(axis=0)).tolist()
    weights = {game.fact_text(bit): tuple(value.weights[:, bit].tolist()) for bit in bits}
    numbers = value.determination, value.foresight, informed, tuple(value.constants.tolist())
    return StoredValue(*numbers, weights, None if value.network is None else stored_network(game, value.network))


def restored(game: Game, lesson: StoredLesson) -> TeachingState:
    """Return the state of a teacher from which it goes on with a lesson. Facts that the game lacks are left out."""
    value, (progress, as_assumed) = restored_value(game, lesson.value), _unpacked(game, lesson.progress) or (None, True)
    return TeachingState(lesson.generation, lesson.rounds, lesson.walks, value, progress, as_assumed=as_assumed)


def begun_anew(lesson: StoredLesson) -> StoredLesson:
    """Return a lesson at the beginning of its present generation, for a game in which the sums of this are of no use.

    Without them, its walks would end the generation with hardly any samples. A network goes on from its newest state.
    """
    if lesson.value.network is not None:
        return replace(lesson, progress=b"")
    begins = TeachingSettings().first * (2 ** min(lesson.generation, 53) - 1)  # with more, the number is damaged
    return replace(lesson, walks=min(lesson.walks, begins), progress=b"")


def restored_value(game: Game, stored: StoredValue) -> LinearValue | None:
    """Return a stored value for a game; None if there is none for its roles. Facts that the game lacks are left out.

    Another sheet of the same game may spell its names with other letter case. A value without facts has no effect.
    """
    if len(stored.constants) != game.num_roles:
        return None
    value, weights = LinearValue.zero(game), {fact.lower(): own for fact, own in stored.weights.items()}
    for bit, fact in enumerate(game.fact_texts):
        if fact.lower() in weights:
            value.weights[:, bit] = weights[fact.lower()]
    value.constants[:] = stored.constants
    determination = stored.determination if value.weights.any() else 0.0
    network = None if stored.network is None else restored_network(game, stored.network)
    return LinearValue(value.weights, value.constants, determination, stored.foresight, network)


def surrogate(game: Game, network: Network, num: int = _NUM_POSITIONS) -> LinearValue:
    """Return the linear value that is nearest to a network, by least squares.

    Nobody can read the entries of a network, but one weight for each fact says on average what it adds. The positions
    are those of matches that the network plays against itself. Facts that a symmetry exchanges share a weight. The last
    tenth of the positions is not fitted: the determination is the share of the variance of the network's values there
    that the linear value explains.

    Args:
        game: game of the network
        network: the network
        num: number of positions
    """
    states, movers = played_positions(game, network, np.uint64(0), num)
    values, samples, fitted = network(states, movers.astype(np.int64)), Samples(game), len(states) * 9 // 10
    for role in range(game.num_roles):
        own = np.flatnonzero(movers[:fitted] == role)
        samples.add_positions(role, states[own], values[own], np.ones(len(own)))
    while samples.absorb():
        pass
    nearest = samples.fit(None, _RIDGE)
    for role in np.unique(movers[fitted:]).tolist():
        own = fitted + np.flatnonzero(movers[fitted:] == role)
        samples.measure(nearest, role, states[own], values[own], np.ones(len(own)))
    return replace(nearest, determination=samples.determination)


def stored_network(game: Game, network: Network) -> StoredNetwork:
    """Return a network of a game for the store."""
    bits = np.flatnonzero(network.strides.any(axis=1)).tolist()
    entries = _half(network.entries)
    packed = _npz({"strides": network.strides[bits], "offsets": network.offsets, "entries": entries})
    return StoredNetwork(tuple(map(game.fact_text, bits)), packed)


def restored_network(game: Game, stored: StoredNetwork) -> Network | None:
    """Return a stored network for a game; None if its arrays are damaged, or not for the roles of the game.

    Facts that the game lacks are left out.
    """
    arrays = network_arrays(stored)
    if arrays is None:
        return None
    strides, offsets, entries = arrays
    if (len(entries), len(strides)) != (game.num_roles, len(stored.facts)):
        return None
    numbers = {fact.lower(): number for number, fact in enumerate(stored.facts)}
    rows = np.array([numbers.get(fact.lower(), -1) for fact in game.fact_texts], np.int64)
    own = np.where(rows[:, None] >= 0, strides[rows], np.int32(0)).astype(np.int32)
    return Network(own, offsets, entries[:, : Tuples(own, offsets, 0).room].astype(np.float32))


def carried_network(
    stored: StoredNetwork, facts: Sequence[str | None], roles: Sequence[int], *, is_turned: bool
) -> StoredNetwork | None:
    """Return a stored network of another game for a game; None if it is damaged. It is not compressed, see `_npz`.

    Args:
        stored: network of the other game
        facts: what the facts of the network are called in the game; None if it lacks them
        roles: the role of the other game that each role corresponds to
        is_turned: whether what was good for a role is bad for it here
    """
    arrays = network_arrays(stored)
    if arrays is None or len(arrays[0]) != len(facts) or len(arrays[2]) <= max(roles):
        return None
    strides, offsets, entries = arrays
    strides = strides[[fact is not None for fact in facts]]
    entries = entries[roles, : Tuples(strides, offsets, 0).room]
    entries = -entries if is_turned else entries
    own: dict[str, NDArray[Any]] = {"strides": strides, "offsets": offsets, "entries": entries}
    return StoredNetwork(tuple(fact for fact in facts if fact is not None), _npz(own, compressed=False))


def network_arrays(stored: StoredNetwork) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float16]] | None:
    """Return the arrays of a stored network: strides of its facts, offsets and entries; None if they are damaged."""
    try:
        with np.load(io.BytesIO(stored.packed), allow_pickle=False) as arrays:
            strides, offsets, entries = (arrays[name] for name in ("strides", "offsets", "entries"))
    except Exception:  # damaged bytes make zipfile, zlib and numpy raise errors of many kinds
        return None
    if entries.ndim != 2 or entries.dtype != np.float16 or not np.isfinite(entries).all():
        return None
    return (strides, offsets, entries) if _are_tuples(strides, offsets, entries.shape[1]) else None


class PlayProgress(NamedTuple):
    """Self-play in a lesson, see memory/tuition.py.

    state  what it has learned
    due    CPU seconds of teaching after which the network becomes the next state of the lesson, counted anew where
           self-play goes on from a network without its progress
    as_assumed  False if goals were different from those of random playouts, see `growth.as_assumed`
    """

    state: SelfPlayState
    due: float
    as_assumed: bool


def packed_play(game: Game, progress: PlayProgress) -> bytes:
    """Return self-play as an npz file; b"" if that is too large for the store.

    Of the arrays, it has the entries that have learned something. If these are too large, it has all entries as
    float16: to begin anew from the last state of the lesson would cost more than their last digits.
    """
    network, sums, changes, matches, positions = progress.state
    strides = network.strides
    # without changes, there are entries that came with the lesson, see `restored_play`
    changed = np.flatnonzero((changes != 0) | (network.entries != 0))
    if _BYTES_OF_CHANGED * len(changed) <= _MOST_PLAY_BYTES:
        learned = np.stack([array.ravel()[changed] for array in (network.entries, sums, changes)])
        kept: dict[str, NDArray[Any]] = {"changed": changed, "learned": learned}
    elif _BYTES_OF_ROUNDED * changes.size <= _MOST_PLAY_BYTES:
        kept = {"learned": _rounded(progress.state)}
    else:
        return b""
    kept |= {
        "layout": _layout(game),
        "shape": np.array([*strides.shape, *changes.shape], np.int64),
        "places": np.flatnonzero(strides),
        "strides": strides[strides != 0],
        "offsets": network.offsets,
        "numbers": np.array([matches, positions, progress.as_assumed], np.int64),
        "due": np.array(progress.due),
    }
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **kept)
    return file.getvalue()


def _rounded(state: SelfPlayState) -> NDArray[np.float16]:
    """Return the entries, sums and changes of self-play, float16[3, entries].

    Large sums and changes are scaled down, each pair by the same factor, so that their ratio is the same.
    """
    scale = _LARGEST_ENTRY / np.maximum(state.changes, _LARGEST_ENTRY)
    arrays = state.network.entries, state.sums * scale, state.changes * scale
    return np.stack([_half(array).ravel() for array in arrays])


def _half(numbers: NDArray[np.floating[Any]]) -> NDArray[np.float16]:
    """Return numbers as float16, those beyond its range as the largest ones that the store has."""
    half: NDArray[np.float16] = np.clip(numbers, -_LARGEST_ENTRY, _LARGEST_ENTRY).astype(np.float16)
    return half


def restored_play(game: Game, lesson: StoredLesson) -> PlayProgress | None:
    """Return the self-play of a lesson; None if it has none.

    Where its progress cannot be used, it goes on from the network that is the newest state of the lesson, but the step
    sizes begin anew.
    """
    progress = _unpacked_play(game, lesson.progress)
    if progress is not None or lesson.value.network is None:
        return progress
    network = restored_network(game, lesson.value.network)
    if network is None:
        return None
    sums, changes = np.zeros_like(network.entries), np.zeros_like(network.entries)
    due = max(FIRST_STATE_SECONDS, NEXT_STATE * lesson.seconds)
    return PlayProgress(SelfPlayState(network, sums, changes, 0, 0), due, True)


def is_as_assumed(lesson: StoredLesson) -> bool:
    """Return the flag of this name of the progress of a lesson, see `PlayProgress` and `TeachingState`.

    The large arrays are not read, and the layout is not compared. Where the flag cannot be read, it is True.
    """
    try:
        with np.load(io.BytesIO(lesson.progress), allow_pickle=False) as arrays:
            return bool(arrays["numbers"][2] if "numbers" in arrays else arrays.get("as_assumed", True))
    except Exception:  # see `_unpacked_play`
        return True


def _unpacked_play(game: Game, packed: bytes) -> PlayProgress | None:
    """Return the self-play in an npz file; None if it has none, or is of another layout, or damaged."""
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            if not np.array_equal(arrays["layout"], _layout(game)):
                return None
            num_facts, num_tuples, num_roles, room = arrays["shape"].tolist()
            if (num_facts, num_roles) != (len(game.fact_texts), game.num_roles) or num_tuples > MOST_TUPLES:
                return None
            strides = np.zeros((num_facts, num_tuples), np.int32)
            strides.ravel()[arrays["places"]] = arrays["strides"]
            if not _are_tuples(strides, arrays["offsets"], room):
                return None
            learned = arrays["learned"].astype(np.float32, copy=False)  # entries, sums and changes
            if not np.isfinite(learned).all() or min(learned[2].min(initial=0.0), *arrays["numbers"]) < 0:
                return None
            entries, sums, changes = whole = np.zeros((3, num_roles, room), np.float32)
            whole.reshape(3, -1)[:, arrays["changed"] if "changed" in arrays else slice(None)] = learned
            if not isfinite(arrays["due"]):
                return None
            matches, positions, as_assumed = arrays["numbers"].tolist()
            state = SelfPlayState(Network(strides, arrays["offsets"], entries), sums, changes, matches, positions)
            return PlayProgress(state, float(arrays["due"]), bool(as_assumed))
    except Exception:  # damaged bytes make zipfile, zlib and numpy raise errors of many kinds
        return None


def _are_tuples(strides: NDArray[Any], offsets: NDArray[Any], room: int) -> bool:
    """Return whether arrays are those of tuples whose kernels need this room, see `Tuples.room`."""
    if (strides.ndim, offsets.ndim) != (2, 1) or not 0 < len(offsets) <= MOST_TUPLES:
        return False
    if not strides.dtype == offsets.dtype == np.int32 or strides.shape[1] != len(offsets):
        return False
    return min(strides.min(initial=0), offsets.min()) >= 0 and Tuples(strides, offsets, 0).room == room


def _npz(arrays: Mapping[str, NDArray[Any]], *, compressed: bool = True) -> bytes:
    """Return arrays as an npz file. To compress a network takes a tenth of a second, too long for some startclocks."""
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _packed(game: Game, state: TeachingState) -> bytes:
    """Return the progress of a state as an npz file. Symmetric matrices are stored by their upper halves."""
    if state.progress is None:
        return b""
    sums, forecasts, matches = state.progress
    upper = np.triu_indices(sums.moments.shape[1])
    arrays: dict[str, NDArray[Any]] = {
        "layout": _layout(game),
        "num": np.array([sums.num, forecasts.num], np.int64),
        "moments": sums.moments[:, upper[0], upper[1]] if sums.num else np.zeros((len(sums.moments), 0)),
        "targets": sums.targets,
        "squares": sums.squares,
        "forecast_moments": forecasts.moments,
        "forecast_results": forecasts.results,
        "notes": forecasts.notes,
        "as_assumed": np.array(state.as_assumed),
        **matches._asdict(),
    }
    return _npz(arrays)


def _unpacked(game: Game, packed: bytes) -> tuple[tuple[Sums, ForecastSums, Running], bool] | None:
    """Return (progress, `TeachingState.as_assumed`) in an npz file; None if it is of another layout, or damaged."""
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            if not np.array_equal(arrays["layout"], _layout(game)):
                return None
            num_samples, num_matches = arrays["num"].tolist()
            sums = Sums(num_samples, _symmetric(arrays), arrays["targets"], arrays["squares"])
            forecasts = ForecastSums(
                arrays["forecast_moments"], arrays["forecast_results"], num_matches, arrays["notes"]
            )
            matches = Running(arrays["states"], arrays["plies"], arrays["openings"])
            as_assumed = bool(arrays.get("as_assumed", True))  # older versions did not store it
            return ((sums, forecasts, matches), as_assumed) if _fit(game, sums, forecasts, matches) else None
    except Exception:  # damaged bytes make zipfile, zlib and numpy raise errors of many kinds
        return None


def _fit(game: Game, sums: Sums, forecasts: ForecastSums, matches: Running) -> bool:
    """Return whether arrays have the shapes and values that a teacher of a game needs."""
    size, num = int(fact_classes(game).max()) + 2, TeachingSettings().matches
    shapes = [
        (sums.targets, (game.num_roles, size)),
        (sums.squares, (4,)),
        (forecasts.moments, (3, 3)),
        (forecasts.results, (3,)),
        (forecasts.notes, (len(forecasts.notes), 4)),
    ]
    lanes = forecasts.notes[:, :2] if forecasts.notes.ndim == 2 else np.zeros((0, 2))
    return (
        all(array.shape == shape and array.dtype == np.float64 for array, shape in shapes)
        and all(np.isfinite(array).all() for array in (*sums[1:], *forecasts[:2], forecasts.notes))
        and matches.states.shape == (num, game.num_words)
        and matches.states.dtype == np.uint64
        and all(array.shape == (num,) and array.dtype == np.int32 for array in matches[1:])
        and bool(((lanes >= 0) & (lanes < [num, game.num_roles])).all())
    )


def _symmetric(arrays: np.lib.npyio.NpzFile) -> NDArray[np.float64]:
    """Return symmetric matrices, float64[roles, n, n], from their upper halves; zeros if these are empty."""
    (roles, size), upper = arrays["targets"].shape, arrays["moments"]
    moments = np.zeros((roles, size, size))
    if upper.shape[1]:
        rows, columns = np.triu_indices(size)
        moments[:, rows, columns] = moments[:, columns, rows] = upper
    return moments


def _layout(game: Game) -> NDArray[np.uint8]:
    """Return a hash of the order of the facts and of the classes that share a weight, uint8[32]."""
    digest = hashlib.sha256("\n".join(game.fact_texts).lower().encode() + fact_classes(game).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
