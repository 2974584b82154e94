"""Tests of a group run on one worker, so that what they share is started once."""

import pytest


@pytest.mark.xdist_group("alone")
def test_groups_reach_the_scheduler(request: pytest.FixtureRequest) -> None:
    """Otherwise they are ignored in silence, see conftest.py."""
    assert request.node.nodeid.endswith("@alone") == request.config.getoption("loadgroup", False)
