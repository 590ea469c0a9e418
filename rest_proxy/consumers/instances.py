"""All instances: found by group and name, limited in number, closed after a time without calls."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from rest_proxy.consumers.instance import Instance, InstanceSettings
from rest_proxy.consumers.state import InstanceState
from rest_proxy.refusals import RestError, instance_exists, instance_not_found

log = logging.getLogger(__name__)

_SWEEP_SECONDS: Final = 1.0
_TOO_MANY: Final = 42901


class Instances:
    """Owns the instances. Invariant: at most `limit`, and each is closed exactly once."""

    def __init__(
        self,
        client_settings: Mapping[str, Any],
        *,
        timeout_seconds: float,
        limit: int,
        now_seconds: Callable[[], float],
    ) -> None:
        self._client_settings = client_settings
        self._timeout_seconds = timeout_seconds
        self._limit = limit
        self._now_seconds = now_seconds
        self._instances: dict[tuple[str, str], Instance] = {}

    def __len__(self) -> int:
        return len(self._instances)

    def create(self, settings: InstanceSettings) -> Instance:
        """Make an instance. Raises RestError, 40902 or 42901."""
        key = (settings.group_id, settings.name)
        if key in self._instances:
            raise instance_exists(*key)
        if len(self._instances) >= self._limit:
            raise RestError(
                _TOO_MANY,
                f"There are {self._limit} consumer instances, which is the limit "
                "(consumer.instances.max): delete some, or wait until some expire.",
            )
        expires_at = self._now_seconds() + self._timeout_seconds
        state = InstanceState(self._timeout_seconds, expires_at)
        made = Instance(settings, self._client_settings, state, self._now_seconds)
        self._instances[key] = made
        return made

    @asynccontextmanager
    async def use(self, group_id: str, name: str) -> AsyncIterator[Instance]:
        """Lend an instance to one call, which extends its life. Raises RestError, 40403."""
        found = self._instances.get((group_id, name))
        if found is None:
            raise instance_not_found(group_id, name)
        found.state.begin_call()
        try:
            yield found
        finally:
            found.state.end_call(self._now_seconds())

    async def delete(self, group_id: str, name: str) -> None:
        """Close an instance. Raises RestError, 40403."""
        found = self._instances.pop((group_id, name), None)
        if found is None:
            raise instance_not_found(group_id, name)
        await found.close()

    async def sweep(self) -> None:
        """Close expired instances, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                now = self._now_seconds()
                for key, each in list(self._instances.items()):
                    if each.state.is_expired(now):
                        del self._instances[key]
                        log.info("consumer instance expired group=%s instance=%s", *key)
                        group.create_task(_close(each))

    async def close(self) -> None:
        """Close all."""
        instances = list(self._instances.values())
        self._instances.clear()
        await asyncio.gather(*map(_close, instances))


async def _close(instance: Instance) -> None:
    """Close an instance outside of a call; an error is logged, and the others go on."""
    try:
        await instance.close()
    # The outermost edge of a task.
    except Exception:
        log.exception("consumer instance not closed group=%s", instance.settings.group_id)
