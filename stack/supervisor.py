"""Start the programs of a stack, restart those that die, and write their states to a file."""

import asyncio
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from common.credentials.access import VARIABLE
from common.process.tasks import spawn
from millstream.processes import program_arguments as programs
from millstream.processes.child_processes import Child
from millstream.processes.cluster_layout import node_settings, replication_settings
from millstream.processes.forked_process import STACK
from millstream.processes.switchboard import READY, state_of, switch, write_whole
from stack.place import Place
from stack.plan import bootstrap_servers, security_folder, url_of
from stack.ports import BROKER, CONNECT, CONSOLE, REGISTRY, REST_PROXY
from stack.security import broker_file, client_file
from stack.shown import HANGS

_SECONDS: Final = 5.0
_REQUEST: Final = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_MISSES: Final = 2
"""So many in a row: after one the machine may only have slept."""


class Health:
    """Remembers how many questions each part has left without an answer."""

    def __init__(self) -> None:
        self._misses: dict[str, int] = {}

    async def ask(self, ports: Mapping[str, int]) -> None:
        """Ask each part at its port of HTTP; it takes five seconds at most."""
        answers = await asyncio.gather(*(_is_live(port) for port in ports.values()))
        self._misses = {
            name: 0 if is_live else self._misses.get(name, 0) + 1
            for name, is_live in zip(ports, answers, strict=True)
        }

    def hangs(self, name: str) -> bool:
        """Return whether a part has not answered lately."""
        return self._misses.get(name, 0) >= _MISSES


async def _is_live(port: int) -> bool:
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_REQUEST)
                return b" 200 " in await reader.readline()
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError):
        return False


log = logging.getLogger(__name__)

_READY_SECONDS: Final = 120.0
_MAX_REPLICAS: Final = 3
_WATCH_SECONDS: Final = 0.2
_HEALTH_SECONDS: Final = 2.0
SETTINGS: Final = {
    # Kafka waits three seconds for more members of a new group; here most groups have one.
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    # Kafka's default, so that a topic with one replica accepts records in a cluster of three.
    "min.insync.replicas": "1",
}


class _Seeding(Child):
    """A program that ends by itself."""

    server = STACK


class _Part(_Seeding):
    """A program of the stack."""

    is_kept = True


class Supervisor:
    """Owns the programs of one stack."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._plan = place.plan()
        self._children: dict[str, Child] = {}
        self._health = Health()
        self._doing = ""
        self._is_ready = False
        self._written: dict[str, Any] = {}
        place.write_stopped({})

    async def run(self) -> None:
        """Run until cancelled; raise ChildDiedError if a program does not start, or OSError."""
        self._make_children()
        self._write_state()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch_state())
                group.create_task(self._watch_health())
                await self._start()
                for child in self._children.values():
                    group.create_task(child.watch())
                await self._seed()
                self._is_ready = True
                self._write_state()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            await self._stop()

    # --- state ---

    def state(self) -> dict[str, Any]:
        """Return the states of the programs, for commands and the console."""
        parts = {
            name: {"state": self._state_of(name, child), "pid": child.pid, "address": child.address}
            for name, child in self._children.items()
        }
        is_ready = self._is_ready and all(each["state"] == READY for each in parts.values())
        return {"pid": os.getpid(), "is_ready": is_ready, "doing": self._doing, "parts": parts}

    async def _watch_state(self) -> None:
        while True:
            self._follow_stopped()
            self._write_state()
            await asyncio.sleep(_WATCH_SECONDS)

    def _follow_stopped(self) -> None:
        """Stop, pause and start the parts that the commands and the console name."""
        stopped = self._place.stopped() if self._is_ready else {}
        for child, is_killed in switch(self._children, stopped):
            log.info("part is stopped name=%s killed=%s", child.name, is_killed)
            spawn(child.stop_until_wanted(is_killed=is_killed))

    async def _watch_health(self) -> None:
        http = {
            f"{BROKER}-{number}": port for number, port in self._plan["broker_http_ports"].items()
        }
        while True:
            await asyncio.sleep(_HEALTH_SECONDS)
            ready = [name for name, child in self._children.items() if child.is_ready]
            await self._health.ask(
                {each: http.get(each, self._plan["ports"][each]) for each in ready}
            )

    def _state_of(self, name: str, child: Child) -> str:
        state = state_of(child)
        return HANGS if state == READY and self._health.hangs(name) else state

    def _write_state(self) -> None:
        state = self.state()
        if state == self._written:
            return
        try:
            self._place.write(self._place.state_file, state)
            self._written = state
        except OSError as error:
            # The brokers report a full disk; the console still shows the last one.
            log.warning("state not written error=%s", error)

    # --- starting and stopping ---

    def _make_children(self) -> None:
        for name in self._plan["ports"]:
            self._children[name] = self._child(name)

    def _child(self, name: str) -> Child:
        is_broker = name.startswith(f"{BROKER}-")
        log_file = self._place.log_folder / f"{name}.log"
        log_file.unlink(missing_ok=True)
        return _Part(
            name,
            log_file,
            environment=self._cluster() if is_broker else self._client(),
        )

    def _client(self) -> dict[str, str]:
        """Return the variable by which programs connect to secured brokers."""
        folder = security_folder(self._plan)
        return {} if folder is None else {VARIABLE: client_file(folder)}

    def _cluster(self) -> dict[str, str]:
        return {
            "CLUSTER_ID": self._plan["cluster_id"],
            "INITIAL_CONTROLLERS": self._plan["initial_controllers"],
        }

    async def _start(self) -> None:
        """Start all programs at once: the others load their modules while the brokers start."""
        brokers = [name for name in self._children if name.startswith(f"{BROKER}-")]
        async with asyncio.TaskGroup() as group:
            started = [group.create_task(self._start_broker(name)) for name in brokers]
            for name, starting in (
                (REST_PROXY, self._start_rest_proxy),
                (REGISTRY, self._start_registry),
                (CONNECT, self._start_connect),
                (CONSOLE, self._start_console),
            ):
                if name in self._children:
                    group.create_task(starting(started))

    async def _start_broker(self, name: str) -> None:
        node_id = int(name.rpartition("-")[2])
        controllers = {int(key): port for key, port in self._plan["controller_ports"].items()}
        settings = {
            **node_settings(
                node_id,
                client_port=self._plan["ports"][name],
                controller_port=controllers[node_id],
                controllers=controllers,
            ),
            "http.listener": f"127.0.0.1:{self._plan['broker_http_ports'][str(node_id)]}",
            "log.dirs": str(Path(self._plan["data_folder"]) / name),
            **replication_settings(self._plan["brokers"]),
            **SETTINGS,
        }
        folder = security_folder(self._plan)
        file = []
        if folder is not None:
            file = [broker_file(folder)]
            settings["listeners"] = settings["listeners"].replace("PLAINTEXT://", "SASL_SSL://")
        overrides = (f"{key}={value}" for key, value in settings.items())
        arguments = (part for override in overrides for part in ("--override", override))
        testing = ["--testing"] if self._plan.get("is_testing") else []
        await self._run(name, "broker", "start", *testing, *file, *arguments)

    async def _start_rest_proxy(self, _: Sequence[asyncio.Task[None]]) -> None:
        servers = bootstrap_servers(self._plan)
        arguments = programs.rest_proxy_arguments(
            servers,
            url_of(self._plan, REGISTRY),
            self._plan["ports"][REST_PROXY],
            {"neighbours": self._neighbours()},
        )
        await self._run(REST_PROXY, programs.REST_PROXY, *arguments)

    async def _start_registry(self, brokers: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.gather(*brokers)
        port = self._plan["ports"][REGISTRY]
        arguments = programs.registry_arguments(
            bootstrap_servers(self._plan), port, self._replicas()
        )
        neighbours = ("--neighbours", self._neighbours())
        await self._run(REGISTRY, programs.REGISTRY, *arguments, *neighbours)

    async def _start_connect(self, brokers: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.gather(*brokers)
        files = Path(self._plan["data_folder"]) / "connect-files"
        files.mkdir(parents=True, exist_ok=True)
        properties = self._place.folder / "connect.properties"
        write_whole(
            properties,
            programs.connect_properties(
                bootstrap_servers(self._plan),
                url_of(self._plan, REGISTRY),
                self._plan["ports"][CONNECT],
                self._replicas(),
                {"file.allowed.directories": str(files)},
            ),
        )
        await self._run(CONNECT, programs.CONNECT, "start", str(properties))

    async def _start_console(self, _: Sequence[asyncio.Task[None]]) -> None:
        connect = url_of(self._plan, CONNECT)
        arguments = [
            *("--bootstrap-server", bootstrap_servers(self._plan)),
            *("--port", str(self._plan["ports"][CONSOLE])),
            *("--schema-registry", url_of(self._plan, REGISTRY)),
            *(("--connect", connect) if connect else ()),
            *("--stack", str(self._place.folder)),
            *("--neighbours", self._neighbours()),
        ]
        await self._run(CONSOLE, programs.CONSOLE, *arguments)

    async def _run(self, name: str, module: str, *arguments: str) -> None:
        await self._children[name].start(module, *arguments, ready_seconds=_READY_SECONDS)
        log.info("part ready name=%s", name)

    def _replicas(self) -> int:
        return min(_MAX_REPLICAS, int(self._plan["brokers"]))

    def _neighbours(self) -> str:
        parts = (CONSOLE, REGISTRY, REST_PROXY, CONNECT)
        urls = {name: url_of(self._plan, name) for name in parts}
        return ",".join(f"{name}={url}/" for name, url in urls.items() if url)

    async def _seed(self) -> None:
        """Run the program that creates the seeds, and wait for its end."""
        if not any(self._plan["seeds"].get(part) for part in ("topics", "schemas")):
            return
        self._doing = "seeding topics, schemas and records"
        self._write_state()
        log_file = self._place.log_folder / "seeding.log"
        log_file.unlink(missing_ok=True)
        seeding = _Seeding("seeding", log_file)
        try:
            await seeding.start("stack.seeding", str(self._place.plan_file))
        finally:
            await seeding.stop()
        self._doing = ""

    async def _stop(self) -> None:
        """Stop the brokers last: the others commit and leave their groups first."""
        self._is_ready = False
        brokers = [child for name, child in self._children.items() if name.startswith(BROKER)]
        others = [child for child in self._children.values() if child not in brokers]
        await asyncio.gather(*(child.stop() for child in others))
        await asyncio.gather(*(child.stop() for child in brokers))
        self._place.state_file.unlink(missing_ok=True)
        if self._plan["is_ephemeral"]:
            shutil.rmtree(self._plan["data_folder"], ignore_errors=True)


def _first(errors: BaseExceptionGroup) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
