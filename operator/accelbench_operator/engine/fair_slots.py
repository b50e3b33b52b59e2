"""Share a number of slots among groups, such as namespaces: groups whose tasks wait for a slot take turns."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

Group = TypeVar("Group", bound=Hashable)


class FairSlots(Generic[Group]):
    """Limit how many tasks do something at once. A group without waiting tasks leaves its share to the others."""

    def __init__(self, count: int) -> None:
        """Start with `count` free slots."""
        self._free = count
        self._waiting: dict[Group, deque[asyncio.Future[None]]] = {}
        """The futures of the tasks that wait for a slot, by group; the group that was served last is at the end."""

    @asynccontextmanager
    async def slot(self, group: Group) -> AsyncIterator[None]:
        """Hold a slot within the `async with` block; wait for one first if none is free."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(group)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, group: Group) -> None:
        """Wait until another task hands over its slot, when it is the turn of this task's group."""
        handed_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(handed_over)
        try:
            await handed_over
        except asyncio.CancelledError:
            # The slot can arrive together with the cancellation: then pass it on.
            if handed_over.done() and not handed_over.cancelled():
                self._release()
            raise

    def _release(self) -> None:
        """Hand a slot over to a waiting task of the next group; if no task waits, the slot becomes free."""
        while self._waiting:
            group = next(iter(self._waiting))
            futures = self._waiting.pop(group)
            handed_over = futures.popleft()
            if futures:
                self._waiting[group] = futures  # at the end: the other groups come first
            if not handed_over.done():  # else its task was cancelled and waits no more
                handed_over.set_result(None)
                return
        self._free += 1
