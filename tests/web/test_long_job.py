"""What long jobs share: a thread whose outcome is always told."""

import pytest

from gamelore.errors import GameloreError
from gamelore.web.children.long_job import Computation, Stopped


def computed(result: object) -> Computation:
    """A computation that has ended with this result, or with this error."""

    def compute() -> object:
        if isinstance(result, BaseException):
            raise result
        return result

    computation = Computation(compute, "test", "expected less; choose less")
    computation.begin()
    computation.wait(60)
    assert not computation.is_alive
    return computation


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (GameloreError("expected a, got b"), "expected a, got b"),
        (MemoryError(), "expected less; choose less"),
        (SystemExit(3), "expected a result, got SystemExit: 3; begin it again"),
    ],
)
def test_every_end_has_an_outcome(error: BaseException, message: str) -> None:
    computation = computed(error)
    assert computation.outcome == {"error": "GameloreError", "message": message}
    assert not computation.is_stopped


def test_a_result_and_a_stopped_computation() -> None:
    assert computed(3).outcome == {"ok": 3}
    stopped = computed(Stopped())
    assert (stopped.outcome, stopped.is_stopped) == (None, True)
