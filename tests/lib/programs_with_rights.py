"""Programs beside the pipeline do what they need their rights for, on a pipeline's cluster."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp

from common.credentials.access import KafkaAccess
from demo.pipeline.observing import Observer
from demo.pipeline.registry import RegistryReader
from demo.pipeline.topics import publish_catalogue, publish_customers, wait_for_keys
from millstream.launch import program_environment
from millstream.processes.settings_files import properties_text
from spark_analytics.jobs.input_topics import InputTopics
from spark_analytics.jobs.publishing import ResultsPublisher
from spark_analytics.jobs.topics import INPUTS, RESULTS
from spark_analytics.serving.writer import ServingWriter
from spark_analytics.source import range_reader
from spark_analytics.source.kafka_client import TopicOffsets
from spark_analytics.source.offsets import OffsetRange
from spark_analytics.source.options import parse_source_options
from spark_analytics.source.range_reader import RangeReader
from tests.lib.pipeline_processes import Pipeline, Program
from tests.lib.waiting import until

ROOT = Path(__file__).parents[2]
AccessOf = Callable[[str], KafkaAccess]
_FILE = "org.apache.kafka.connect.file.FileStream"
_WITH_KEYS = {
    # A compacted topic takes no record without one.
    "transforms": "hoist,key",
    "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.key.fields": "line",
}
_TEXT = "org.apache.kafka.connect.storage.StringConverter"


def start_streams(run: Pipeline) -> None:
    registry = ("--registry-url", run.urls["registry"])
    run.add("streams", "streams", *registry, "--data-dir", str(run.folder / "streams"))


def load_command(run: Pipeline, file: str) -> list[str]:
    """Return the arguments that send a few orders, with their products and poison."""
    told = {
        "--command-config": file,
        "--bootstrap-servers": run.bootstrap_servers,
        "--orders-url": run.urls["orders"],
        "--registry-url": run.urls["registry"],
        "--rate": "5",
        "--seconds": "1",
        "--poison": "1",
    }
    return [*(part for pair in told.items() for part in pair), "--catalogue"]


def run_load(run: Pipeline, file: str) -> None:
    """Send a few orders, with their products and a record that nobody can read."""
    done = subprocess.run(
        [sys.executable, "-m", "millstream", "load", *load_command(run, file)],
        env={**program_environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)


def watch_as_the_demo(run: Pipeline, access: KafkaAccess) -> None:
    """Make a product and a customer known, and follow the topics, as `millstream demo` does."""

    async def watch() -> None:
        async with aiohttp.ClientSession() as session:
            registry = RegistryReader(run.urls["registry"], session)
            await publish_catalogue(access, registry, {"of-the-demo": ("x", 1)})
            await publish_customers(access, registry, ["of-the-demo"])
            topics = ("products", "warehouse-inventory", "customers")
            await wait_for_keys(access, {topic: ["of-the-demo"] for topic in topics})
            observer = Observer(access, registry)
            observing = asyncio.ensure_future(observer.run())
            (order_id,) = list(run.documents())[:1]
            await observer.wait_finished(order_id)
            observing.cancel()

    asyncio.run(watch())


def connectors_command(run: Pipeline, file: str, folder: Path) -> list[str]:
    """Return the arguments of a worker with connectors of the demo's names.

    They write and read its topics; their files are in `folder`, which is made.
    """
    folder.mkdir()
    worker = {
        "bootstrap.servers": run.bootstrap_servers,
        "listeners": "http://127.0.0.1:0",
        "key.converter": _TEXT,
        "value.converter": _TEXT,
        "offset.storage.file.filename": str(folder / "offsets"),
        "file.allowed.directories": str(folder),
        "topic.creation.enable": "false",
    }
    (folder / "worker.properties").write_text(properties_text(worker))
    connectors = []
    for topic in ("products", "warehouse-inventory", "customers"):
        (folder / topic).write_text("a line\n")
        told = {"topic": topic, "file": topic, **_WITH_KEYS}
        connectors.append(_connector(folder, f"shop-{topic}", "Source", told))
    connectors += [
        _connector(folder, name, "Sink", {"topics": "orders", "file": name}) for name in SINKS
    ]
    return ["start", "--command-config", file, str(folder / "worker.properties"), *connectors]


SINKS = ("orders-to-parquet", "orders-to-elasticsearch")


def run_connectors(run: Pipeline, file: str) -> None:
    """Run the worker until its connectors have done their work."""
    folder = run.folder / "connect"
    program = Program(folder.with_suffix(".log"), "connect", *connectors_command(run, file, folder))
    try:
        until(
            lambda: (
                all((folder / name).exists() and (folder / name).read_bytes() for name in SINKS)
                and all(_has_line(run, topic) for topic in ("products", "customers"))
            ),
            shown=folder.with_suffix(".log").read_text,
        )
    finally:
        program.end(kill=True)


def _has_line(run: Pipeline, topic: str) -> bool:
    return any(b"a line" in (record.value or b"") for record in run.read(topic))


def _connector(folder: Path, name: str, kind: str, told: dict[str, str]) -> str:
    told["file"] = str(folder / told["file"])
    path = folder / f"{name}.properties"
    path.write_text(
        properties_text({"name": name, "connector.class": f"{_FILE}{kind}Connector", **told})
    )
    return str(path)


def read_as_spark(run: Pipeline, access: KafkaAccess) -> None:
    """Read the job's topics with its source, and publish its results, without Spark itself."""
    assert InputTopics(access).absent() == []
    options = {f"kafka.{name}": value for name, value in access.java().items()}
    found = parse_source_options({**options, "subscribe": ",".join(INPUTS)}, is_stream=True)
    topics = TopicOffsets(found)
    keys = topics.partitions()
    ends, starts = topics.latest(keys), topics.earliest(keys)
    ranges = [OffsetRange(*key, starts[key], ends[key]) for key in keys if ends[key]]
    assert {each.topic for each in ranges} == set(INPUTS)
    reader = RangeReader(found.client, False, False, 30_000)
    assert sum(batch.num_rows for batch in reader.read(ranges))
    while range_reader._idle:
        range_reader._idle.popitem()[1].consumer.close()
    store = ServingWriter(run.folder / "serving.sqlite")
    publisher = ResultsPublisher(access, store, 1)
    producer = publisher._connected()
    producer.produce(RESULTS, b"{}", b"key")
    assert producer.flush(30) == 0
    store.close()
