"""Fences the producers of earlier tasks, on this worker or through the leader (KIP-618).

A transactional producer is fenced when another producer initializes with its id. So the leader
initializes one producer for the id of every earlier task, and then writes the new number of tasks
to the config topic. A worker that waits for the fencing continues when it reads that record.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aiohttp import ClientError

from common.process.clock import now_ms
from common.process.tasks import spawn
from connect.herder import effects, requests
from connect.herder.names import ElsewhereError, RefusalError, TaskId, conflict
from connect.worker.client_settings import TRANSACTION_DEFAULTS
from connect.worker.transactions import begin_transactions, transactional_id
from connect.worker.worker import Worker
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_TIMEOUT_MS: Final = 90_000
_AT_ONCE: Final = 8
_RETRY_SECONDS: Final = 1.0
_AGAIN: Final = (409, 503)

Effect = effects.FenceTasks | effects.AskForFencing
Ask = Callable[[str, str], Awaitable[tuple[int, str]]]
"""Asks the worker at a URL to fence a connector; returns the HTTP status and the body."""


class Fencing:
    """Owns the running fencings, at most one per connector; a newer one cancels the older."""

    def __init__(self, worker: Worker, catch_up: Callable[[], Awaitable[int]], ask: Ask) -> None:
        self._worker = worker
        self._catch_up = catch_up
        self._ask = ask
        self._running: dict[str, asyncio.Task[Exception | None]] = {}

    def perform(self, effect: Effect) -> None:
        before = self._running.pop(effect.connector, None)
        if before is not None:
            before.cancel()
        self._running[effect.connector] = spawn(self._performed(effect))

    def stop(self) -> None:
        for running in self._running.values():
            running.cancel()

    async def fence(self, name: str) -> None:
        """Fence on another worker's request; returns when the fencing's record is written.

        Raises RefusalError, ElsewhereError or ConnectException.
        """
        log.info("earlier tasks are to be fenced, as is asked connector=%s", name)
        # The worker that asks has read the records of the new tasks; this one must, too.
        await self._catch_up()
        herder = self._worker.herder
        if not requests.require_fencing(herder, name):
            return
        herder.request_fencing(name)
        self._worker.pump()
        running = self._running[name]
        await asyncio.wait([running])
        if running.cancelled():
            raise conflict("Failed to complete zombie fencing because of new task configurations")
        error = running.result()
        if error is not None:
            raise error

    async def _performed(self, effect: Effect) -> Exception | None:
        name, failed = effect.connector, None
        try:
            if isinstance(effect, effects.FenceTasks):
                await self._fence(effect)
            else:
                await self._have_fenced(effect)
        except (ConnectException, RefusalError, ElsewhereError) as error:
            log.warning("earlier tasks are not fenced connector=%s error=%s", name, error)
            failed = error
        trace = None if failed is None else "".join(traceback.format_exception(failed))
        self._worker.herder.fencing_ended(name, effect.generation, trace, now_ms())
        self._worker.pump()
        return failed

    async def _fence(self, effect: effects.FenceTasks) -> None:
        name = effect.connector
        if effect.producers:
            await asyncio.to_thread(self._shut_out, effect)
            log.info("earlier tasks fenced connector=%s tasks=%d", name, effect.producers)
        await self._catch_up()
        await self._worker.write(requests.fenced(self._worker.herder, name, effect.generation))

    def _shut_out(self, effect: effects.FenceTasks) -> None:
        environment = self._worker.environment
        # With the settings of the tasks' producers, whose connector may name another cluster.
        own = {**TRANSACTION_DEFAULTS, "client.id": f"connector-worker-{effect.connector}"}
        client = environment.client("producer", environment.resolve(effect.config), **own)
        tasks = [TaskId(effect.connector, number) for number in range(effect.producers)]
        ids = [transactional_id(environment.settings, task) for task in tasks]
        until_ms = now_ms() + _TIMEOUT_MS

        def shut_out(each: str) -> None:
            begin_transactions(client, each, lambda: now_ms() < until_ms)

        with ThreadPoolExecutor(min(_AT_ONCE, len(ids))) as pool:
            for done in [pool.submit(shut_out, each) for each in ids]:
                done.result()

    async def _have_fenced(self, effect: effects.AskForFencing) -> None:
        """Ask the leader to fence, until it has done so or refuses."""
        herder, name = self._worker.herder, effect.connector
        while herder.is_fencing(name, effect.generation):
            try:
                status, said = await self._ask(effect.leader_url or "", name)
            except (ClientError, OSError, TimeoutError, ValueError) as error:
                status, said = 503, repr(error)
            if status < 300:
                break
            if status not in _AGAIN:
                raise ConnectException(f"Failed to perform round of zombie fencing: {said}")
            log.info("leader does not fence yet connector=%s said=%s", name, said)
            await asyncio.sleep(_RETRY_SECONDS)
        await self._catch_up()
        is_pending = name in herder.config.pending_fencing
        if is_pending and herder.is_fencing(name, effect.generation):
            raise ConnectException("the leader has fenced other tasks than those that wait")
        log.info("leader has fenced earlier tasks connector=%s", name)
