"""The pages that watch something on the server: all are told of changes, and it stops when the last one has left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

GRACE = 15.0  # seconds after the last page has closed, until what it watched stops
log = logging.getLogger(__name__)

Watcher = TypeVar("Watcher")


class Watchers(Generic[Watcher]):
    """All pages that watch something, or functions to be called after changes.

    Args:
        on_alone: called GRACE after the last page has left, unless another one comes
    """

    def __init__(self, on_alone: Callable[[], None]) -> None:
        self._on_alone = on_alone
        self._watchers: dict[object, Watcher] = {}
        self._closing: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        return bool(self._watchers)

    def __iter__(self) -> Iterator[Watcher]:
        return iter(list(self._watchers.values()))

    def add(self, watcher: Watcher) -> Callable[[], None]:
        """Add a page, until the returned function is called."""
        key = object()
        self._watchers[key] = watcher
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

        def leave() -> None:
            if self._watchers.pop(key, None) is not None:
                self.end_unless_watched()

        return leave

    def end_unless_watched(self) -> None:
        """Call `on_alone` after GRACE, unless a page watches by then."""
        if not self and self._closing is None:
            self._closing = asyncio.get_running_loop().call_later(GRACE, self._end)

    def tell(self, show: Callable[[Watcher], object]) -> None:
        """Call a function with each page. One that fails does not keep the others from being told."""
        for watcher in self:
            try:
                show(watcher)
            except Exception:
                log.exception("a page could not show a change")

    def _end(self) -> None:
        self._closing = None
        self._on_alone()
