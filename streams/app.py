"""The Faust app: its settings, its tables, its topologies.

`build_app` returns a new app each time, so that the process can replace a crashed app and each test
can have its own. Faust's web server is off, because it shows all data of tables; `streams.web`
serves the views. Faust's `exactly_once` is not used, because it writes to topics that it does not
read outside of its transactions; `streams.around_faust.writer` has the transactions.
"""

from dataclasses import dataclass
from typing import Any, cast

import faust
from yarl import URL

from common.kafka.consumer import METADATA_MAX_AGE_MS
from common.kafka.topics import PARTITION_COUNT
from streams.around_faust.delivery import Delivery
from streams.around_faust.log_reader import LogReader
from streams.around_faust.tables import ROCKSDB_OPTIONS, ChangelogTable, Tables
from streams.around_faust.transport import CommittedApp, credentials_of
from streams.around_faust.writer import Writer
from streams.codec import Codec
from streams.settings import Settings
from streams.telemetry import Metrics
from streams.topics import wanted_topics
from streams.topologies import TABLES, add_topologies
from streams.topology import check_created


@dataclass(frozen=True)
class Topologies:
    """One app with its delivery and its tables."""

    app: faust.App
    delivery: Delivery
    tables: dict[str, ChangelogTable]


def build_app(
    settings: Settings, own_url: str, metrics: Metrics, *, replication_factor: int = 1
) -> Topologies:
    """Declare all tables and agents; start nothing and open no connection.

    Raise UndeclaredTopicError if an agent uses a topic that the program does not create.
    """
    session_seconds = settings.session_timeout_ms / 1000
    app = CommittedApp(
        settings.application_id,
        broker=[URL(f"kafka://{one}") for one in settings.bootstrap_servers.split(",")],
        broker_credentials=credentials_of(settings.kafka),
        store="rocksdb://?driver=rocksdict",
        datadir=settings.data_dir,
        Table=ChangelogTable,
        TableManager=Tables,
        topic_partitions=PARTITION_COUNT,
        topic_replication_factor=replication_factor,
        topic_disable_leader=True,
        table_standby_replicas=settings.standby_replicas,
        processing_guarantee="at_least_once",
        producer_acks=-1,
        producer_linger=0,
        broker_session_timeout=session_seconds,
        broker_heartbeat_interval=min(3.0, session_seconds / 3),
        # This must be longer than the session, or Faust aborts its own fetches.
        broker_request_timeout=max(20.0, session_seconds + 5),
        producer_request_timeout=10.0,
        consumer_metadata_max_age_ms=METADATA_MAX_AGE_MS,
        stream_wait_empty=False,
        # Faust would end the app if a store is ahead of its changelog (another cluster, a recreated
        # changelog); `tables` makes every store equal to its changelog.
        recovery_consistency_check=False,
        web_enabled=False,
        web_tables_enabled=False,
        canonical_url=own_url,
        worker_redirect_stdouts=False,
    )
    delivery = Delivery(
        app,
        Codec(settings.registry_url, settings.kafka.registry),
        metrics,
        LogReader(settings.kafka),
        Writer(
            settings.kafka,
            settings.application_id,
            timeout_ms=settings.session_timeout_ms,
        ),
        settings.batch_interval_ms,
    )
    tables = {name: _table(app, name, delivery, settings) for name in TABLES}
    add_topologies(delivery, tables, settings)
    created = [topic.name for topic in wanted_topics(settings.application_id)]
    check_created(delivery.topics_of_agents(), created)

    async def on_revoked(*_: Any, **__: Any) -> None:
        await delivery.commit()
        delivery.close()

    app.on_partitions_revoked.connect(on_revoked, weak=False)
    return Topologies(app, delivery, tables)


def _table(app: faust.App, name: str, delivery: Delivery, settings: Settings) -> ChangelogTable:
    table = cast(
        ChangelogTable,
        app.Table(
            name,
            partitions=PARTITION_COUNT,
            key_type=bytes,
            value_type=bytes,
            options=dict(ROCKSDB_OPTIONS),
        ),
    )
    table.log_reader = delivery.log_reader
    table.fence = delivery.fence
    table.generation = lambda: delivery.generation
    table.restored = delivery.table_restored
    return table
