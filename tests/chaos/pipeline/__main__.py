"""`python -m tests.chaos.pipeline --minutes N --orders N --seed S`: orders under faults.

Three brokers, the registry, the eight services, the streams and, with `--spark`, Spark. Orders are
placed, cancelled and shipped over REST while all of these are killed or frozen. Afterwards the
checker accounts for every order, payment, mail, document, total and unit of stock. The exit status
is 1 if it finds an anomaly.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console

from millstream.testing import LocalCluster
from tests.chaos.pipeline.breaking import PipelineChaos
from tests.chaos.pipeline.checker import Anomaly, Facts, check
from tests.chaos.pipeline.facts import VIEWS, collect
from tests.chaos.pipeline.shop import CUSTOMERS, STOCK, Shop
from tests.chaos.run import settings_of
from tests.lib.pipeline_processes import SERVICES, Pipeline

REPLICAS = 3
FINISH_SECONDS, REST_SECONDS, LOOK_SECONDS = 180.0, 240.0, 3.0
SHOWN = 20
# The coordinator looks for transactions of lost instances at this interval.
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}


def start_services(pipeline: Pipeline) -> None:
    """Start all services, with products and customers."""
    pipeline.start_all("--replication-factor", str(REPLICAS))
    pipeline.put_stock(STOCK)
    pipeline.put_customers(CUSTOMERS)


def start_views(pipeline: Pipeline, folder: Path, *, has_spark: bool) -> list[str]:
    """Start the streams and Spark, which keep totals; return the names of the started programs."""
    registry = ("--registry-url", pipeline.urls["registry"])
    where = (*registry, "--replication-factor", str(REPLICAS))
    data = ("--data-dir", str(folder / "streams"), "--session-timeout-ms", "6000")
    pipeline.add("streams", "streams", *where, *data)
    if not has_spark:
        return ["streams"]
    pipeline.add("spark", "spark_analytics.jobs", *where, "--store", str(folder / VIEWS))
    return ["streams", "spark"]


def wait_for_rest(
    pipeline: Pipeline, shop: Shop, folder: Path, console: Console
) -> tuple[Facts, list[Anomaly]]:
    """Collect and check the facts until there is no anomaly, or until a deadline."""
    deadline = time.monotonic() + REST_SECONDS
    while True:
        facts = collect(pipeline, folder, shop.placed, STOCK)
        anomalies = check(facts)
        if not anomalies or time.monotonic() > deadline:
            return facts, anomalies
        console.print(f"not at rest: {_count(anomalies)}")
        time.sleep(LOOK_SECONDS)


def _count(anomalies: list[Anomaly]) -> str:
    counts = Counter(one.rule for one in anomalies)
    return ", ".join(f"{count} x {rule}" for rule, count in counts.items()) or "none"


def tell(console: Console, facts: Facts, shop: Shop, breaking: PipelineChaos) -> None:
    """Print the faults and the outcome of the orders."""
    console.print(f"suffered: {dict(breaking.counts)}")
    ends = Counter(facts.final().values())
    console.print(f"orders: {len(facts.placed)} acknowledged, ends {dict(sorted(ends.items()))}")
    held = [one.amount for one in facts.charges.values() if not one.is_refunded]
    console.print(
        f"charges: {len(facts.charges)}, of which kept {len(held)} of {sum(held)}; "
        f"mails: {len(facts.mails)}; documents: {len(facts.documents)}; retries: {shop.retries}; "
        f"products in the streams' view: {len(facts.products or ())}; Spark: {facts.spark}"
    )
    console.print(
        "stock: "
        + ", ".join(
            f"{one} {before} -> {facts.stock.get(one)} ({facts.reserved.get(one, 0)} reserved)"
            for one, before in facts.stock_before.items()
        )
    )


def main(arguments: list[str]) -> int:
    """Run once; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.pipeline", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="how long things break")
    parser.add_argument("--orders", type=int, default=5_000, help="placed in that time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true", help="with Spark's views, killed too")
    parsed = parser.parse_args(arguments)
    seconds = parsed.minutes * 60
    folder = Path(tempfile.mkdtemp(prefix="millstream-pipeline-"))
    console = Console(highlight=False, width=140)
    console.print(f"seed {parsed.seed}, {parsed.orders} orders in {seconds:.0f} s")
    with LocalCluster(has_links=False, **settings_of(REPLICAS), **SETTINGS) as cluster:
        try:
            with Pipeline(cluster.bootstrap_servers, folder) as pipeline:
                start_services(pipeline)
                views = start_views(pipeline, folder, has_spark=parsed.spark)
                victims = ["registry", *SERVICES, *views]
                shop = Shop(pipeline, parsed.orders, seconds, parsed.seed)
                source = random.Random(parsed.seed)
                with PipelineChaos(cluster, pipeline, victims, source, console) as breaking:
                    shop.open()
                    try:
                        breaking.go_on(seconds, lambda: f"{len(shop.placed)} orders")
                        console.print("all is whole again")
                        is_finished = shop.finish(FINISH_SECONDS)
                    finally:
                        shop.close()
                    facts, anomalies = wait_for_rest(pipeline, shop, folder, console)
        finally:
            for node_id in cluster.node_ids:
                (folder / f"node-{node_id}.log").write_text(cluster.log(node_id))
    tell(console, facts, shop, breaking)
    problems = breaking.problems + shop.surprises
    if not is_finished:
        problems.append(f"not all was placed and shipped within {FINISH_SECONDS:.0f} s")
    for one in anomalies[:SHOWN]:
        console.print(f"[red]{one.rule}[/] {one.about}: {one.detail}")
    for problem in problems[:SHOWN]:
        console.print(f"[red]problem[/] {problem}", markup=True)
    console.print(f"anomalies: {_count(anomalies)}; problems: {len(problems)}; logs in {folder}")
    return 1 if anomalies or problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
