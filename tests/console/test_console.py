"""The console on a real broker: what it answers, and what it refuses."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from console.reading.tails import QUEUE_ROWS
from millstream.testing import LocalBroker
from tests.lib.local_console import ConsoleCalls, LocalConsole, events, streamed
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

EXACT = 9_007_199_254_740_993
HOSTILE = "<img src=x onerror=alert(1)>"
RECORDS = 300


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(num_partitions=3) as running:
        yield running


@pytest.fixture(scope="module")
def orders(broker: LocalBroker) -> str:
    """A topic with records whose times go across its partitions."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for index in range(RECORDS):
        producer.produce(
            "orders",
            key=f"k{index}",
            value=json.dumps({"id": EXACT + index, "email": "a@b", "html": HOSTILE}),
            headers={"trace": f"t{index}"},
            timestamp=1_700_000_000_000 + 1000 * index,
        )
    producer.flush()
    return "orders"


@pytest.fixture(scope="module")
def console(broker: LocalBroker) -> Iterator[LocalConsole]:
    with LocalConsole(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def calls(console: LocalConsole) -> ConsoleCalls:
    return ConsoleCalls(console.url)


def all_pages(calls: ConsoleCalls, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor = ""
    while True:
        answer = calls.get(f"{path}&cursor={cursor}" if cursor else path)
        assert answer.status == 200, answer
        rows += answer.body["rows"]
        cursor = answer.body["cursor"]
        if not cursor:
            return rows


def test_records_come_newest_first_across_partitions_and_each_once(
    calls: ConsoleCalls, orders: str
) -> None:
    rows = all_pages(calls, f"/api/topics/{orders}/records?count=40")
    assert [row["key"]["text"] for row in rows] == [f"k{n}" for n in reversed(range(RECORDS))]
    assert rows[0]["value"]["text"].startswith(f'{{"id": {EXACT + RECORDS - 1},')
    assert isinstance(rows[0]["offset"], str)


def test_records_come_from_a_time_on(calls: ConsoleCalls, orders: str) -> None:
    at = 1_700_000_000_000 + 1000 * (RECORDS - 5)
    rows = all_pages(calls, f"/api/topics/{orders}/records?from=time&time={at}&count=2")
    assert [row["key"]["text"] for row in rows] == [f"k{n}" for n in range(RECORDS - 5, RECORDS)]


def test_a_search_says_how_far_it_is_and_goes_on_where_it_stopped(
    console: LocalConsole, orders: str
) -> None:
    path = f"/api/topics/{orders}/search?kind=path&q=id%20%3E%3D%20{EXACT + 100}"
    found = events(console.url, path)
    last = [data for name, data in found if name == "progress"][-1]
    assert last["is_done"]
    assert (last["total"], last["read"], last["records"]) == (str(RECORDS),) * 3
    rows = [data for name, data in found if name == "row"]
    assert len(rows) == RECORDS - 100
    first = events(console.url, path + "&max=1")
    stopped = [data for name, data in first if name == "progress"][-1]
    positions = ",".join(f"{each}:{at}" for each, at in stopped["positions"].items())
    rest = events(console.url, f"{path}&positions={positions}")
    places = [
        (data["partition"], data["offset"]) for name, data in [*first, *rest] if name == "row"
    ]
    assert sorted(places) == sorted((row["partition"], row["offset"]) for row in rows)


def test_an_empty_topic_is_searched_at_once(broker: LocalBroker, console: LocalConsole) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("empty", 50, 1)])["empty"].result()
    found = events(console.url, "/api/topics/empty/search?q=x")
    assert [name for name, _ in found] == ["begin", "progress", "end"]
    assert found[1][1]["is_done"]


def test_those_who_watch_share_the_reads(
    broker: LocalBroker, console: LocalConsole, calls: ConsoleCalls
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("watched", value=b"before")
    producer.flush()
    got: list[list[Any]] = [[] for _ in range(5)]

    def watch(number: int) -> None:
        got[number] = events(console.url, "/api/topics/watched/tail?q=now", limit=2)

    watchers = [threading.Thread(target=watch, args=(number,)) for number in range(5)]
    for each in watchers:
        each.start()
    until(lambda: "tail_viewers 5.0" in str(calls.get("/metrics").body))

    def all_have_it() -> bool:
        producer.produce("watched", value=b"now")
        producer.produce("watched", value=b"other")
        producer.flush()
        return not any(each.is_alive() for each in watchers)

    until(all_have_it)
    for found in got:
        assert [name for name, _ in found] == ["begin", "row"]
        assert found[1][1]["value"]["text"] == "now"
    assert QUEUE_ROWS < 1_000  # What a slow viewer may have waiting is bounded.


def test_a_transaction_is_seen_in_every_state(broker: LocalBroker, calls: ConsoleCalls) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("moves", 1, 1)])["moves"].result()
    producer = Producer({**servers, "transactional.id": "mover"})
    producer.init_transactions()
    for value, end in (("kept", "commit"), ("gone", "abort"), ("open", "")):
        producer.begin_transaction()
        producer.produce("moves", value=value)
        producer.flush()
        if end:
            getattr(producer, f"{end}_transaction")()
    seen = all_pages(calls, "/api/topics/moves/records?from=oldest")
    assert [row["value"]["text"] for row in seen] == ["kept"]
    seen = all_pages(calls, "/api/topics/moves/records?from=oldest&all=1")
    assert [row["state"] for row in seen] == ["committed", "marker", "aborted", "marker", "open"]
    open_ones = calls.get("/api/transactions").body["open"]
    assert [each["id"] for each in open_ones] == ["mover"]
    producer.abort_transaction()


def test_a_large_value_is_loaded_on_demand(broker: LocalBroker, calls: ConsoleCalls) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("large", value=b"x" * 900_000, partition=0)
    producer.flush()
    (row,) = calls.get("/api/topics/large/records").body["rows"]
    assert (row["value"]["kind"], row["value"]["size"]) == ("large", 900_000)
    whole = calls.get(f"/api/topics/large/records/0/{row['offset']}").body
    assert len(whole["value"]["text"]) == 900_000


def test_groups_have_their_lag_and_a_reset_is_shown_before_it_is_made(
    broker: LocalBroker, calls: ConsoleCalls, orders: str
) -> None:
    group = f"g/1 {HOSTILE}"
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([orders])
    assert consumer.consume(1, 30)
    at = [TopicPartition(orders, number, 10) for number in range(3)]
    consumer.commit(offsets=at, asynchronous=False)
    path = f"/api/groups/{quote(group, safe='')}"
    found = calls.get(path).body
    assert sum(int(each["lag"]) for each in found["partitions"]) == RECORDS - 30
    assert all(int(each["age_ms"]) > 0 for each in found["partitions"])
    (listed,) = calls.get(f"/api/groups?q={quote(group)}").body["groups"]
    oldest = max(int(each["age_ms"]) for each in found["partitions"])
    assert int(listed["age_ms"]) == pytest.approx(oldest, abs=60_000)
    refused = calls.change("POST", f"{path}/offsets", {"offsets": {f"{orders}:0": "5"}})
    assert refused.status == 409
    assert "is active" in refused.body["detail"]
    consumer.close()
    preview = calls.get(f"{path}/reset?to=shift&by=-3").body["partitions"]
    assert [each["new"] for each in preview] == ["7"] * 3
    offsets = {f"{each['topic']}:{each['partition']}": each["new"] for each in preview}
    assert calls.change("POST", f"{path}/offsets", {"offsets": offsets}).status == 200
    found = calls.get(path).body
    assert [each["committed"] for each in found["partitions"]] == ["7"] * 3
    assert calls.change("DELETE", path, {"name": group}).status == 200
    assert calls.get(path).status == 404


def test_topics_are_created_changed_and_deleted(calls: ConsoleCalls) -> None:
    body = {"name": "made", "partitions": 2, "settings": {"retention.ms": "1000"}}
    assert calls.change("POST", "/api/topics", body).status == 201
    assert calls.change("POST", "/api/topics", body).status == 409
    assert calls.change("POST", "/api/topics/made/partitions", {"count": 4}).status == 200
    settings = {"settings": {"retention.ms": None, "cleanup.policy": "compact"}}
    assert calls.change("PATCH", "/api/topics/made/settings", settings).status == 200
    made = calls.get("/api/topics/made").body
    own = {each["name"]: each["value"] for each in made["settings"] if each["is_own"]}
    assert (made["partitions"], own) == (4, {"cleanup.policy": "compact"})
    wrong = calls.change("DELETE", "/api/topics/made", {"name": "other"})
    assert wrong.status == 422
    assert calls.change("DELETE", "/api/topics/made", {"name": "made"}).status == 200
    assert calls.get("/api/topics/made").status == 404


def test_a_record_is_written_and_written_again_byte_for_byte(calls: ConsoleCalls) -> None:
    body = {
        "key": {"kind": "text", "text": "k"},
        "value": {"kind": "json", "text": f'{{"id": {EXACT}, "x": 1.10}}'},
        "headers": {"h": "v"},
    }
    calls.change("POST", "/api/topics", {"name": "copies", "partitions": 1})
    calls.change("POST", "/api/topics", {"name": "written", "partitions": 1})
    made = calls.change("POST", "/api/topics/written/records", body)
    assert (made.status, made.body["offset"]) == (201, "0")
    again = calls.change("POST", "/api/topics/written/records/0/0/again", {"topic": "copies"})
    assert again.status == 201
    (row,) = calls.get("/api/topics/copies/records").body["rows"]
    assert row["value"]["text"] == f'{{"id": {EXACT}, "x": 1.10}}'
    assert (row["key"]["text"], row["headers"][0]["name"]) == ("k", "h")
    for wrong in (
        {"value": {"kind": "json", "text": "{"}},
        {"value": {"kind": "hex", "text": "0"}},
        {"value": {"kind": "schema", "text": "{}", "subject": "s"}},
        {"value": {"kind": "pickle", "text": ""}},
    ):
        assert calls.change("POST", "/api/topics/written/records", wrong).status == 422
    binary = {"value": {"kind": "hex", "text": "00 ff"}, "key": {"kind": "null"}}
    assert calls.change("POST", "/api/topics/written/records", binary).status == 201


def test_records_are_exported(calls: ConsoleCalls, orders: str) -> None:
    calls.change("POST", "/api/topics", {"name": "sheet", "partitions": 1})
    body = {"value": {"kind": "text", "text": "=cmd()"}}
    calls.change("POST", "/api/topics/sheet/records", body)
    with urlopen(f"{calls.url}/api/topics/sheet/export?format=csv") as answer:
        assert b",'=cmd()," in answer.read()
    with urlopen(f"{calls.url}/api/topics/{orders}/export?max=250") as answer:
        lines = [json.loads(line) for line in answer]
    assert len(lines) == 250
    assert str(EXACT) in lines[0]["value"]["text"]


def test_a_group_and_a_record_are_explained(calls: ConsoleCalls, orders: str) -> None:
    found = calls.get(f"/api/topics/{orders}/explain?partition=0&offset=1")
    assert found.status == 200, found.body
    assert found.body["findings"]
    assert all(each["sentence"] for each in found.body["findings"])
    for path in ("groups/none/explain", "transactions/none/explain", "producers/7/explain"):
        answer = calls.get(f"/api/{path}")
        assert (answer.status, answer.body["problems"]) == (200, 1), answer
    assert calls.get("/api/explain").body["subject"] == "The cluster"
    assert calls.get("/api/producers/x/explain").status == 422


def test_a_text_is_followed_through_topics(console: LocalConsole, calls: ConsoleCalls) -> None:
    def send(topic: str, value: str) -> None:
        body = {"key": {"kind": "text", "text": value}, "value": {"kind": "text", "text": "v"}}
        assert calls.change("POST", f"/api/topics/{topic}/records", body).status == 201

    for topic in ("first", "second"):
        calls.change("POST", "/api/topics", {"name": topic, "partitions": 2})
    send("first", "order-77")
    send("second", "order-78")
    found = streamed(console.url, "/api/follow?q=order-77")
    seen: list[str] = []
    with closing(found):
        for name, data in found:
            if name == "row":
                seen.append(data["topic"])
                if len(seen) == 2:
                    break
                send("second", "order-77")
    assert seen == ["first", "second"]
    assert calls.get("/api/follow").status == 422


def test_users_and_subscriptions_to_metrics_are_made_and_removed(calls: ConsoleCalls) -> None:
    user = {"name": "alice", "mechanism": "SCRAM-SHA-512"}
    assert calls.change("POST", "/api/users", {**user, "password": "secret"}).status == 200
    (found,) = calls.get("/api/users").body["users"]
    assert found == {"name": "alice", "credentials": ["SCRAM-SHA-512=iterations=4096"]}
    assert calls.change("POST", "/api/users", {**user, "password": None}).status == 200
    assert calls.get("/api/users").body["users"] == []
    assert calls.change("POST", "/api/users", {"name": "a", "mechanism": "PLAIN"}).status == 422

    wanted = {"name": "all", "settings": {"metrics": "*", "interval.ms": "60000"}}
    assert calls.change("POST", "/api/client-metrics", wanted).status == 200
    until(lambda: bool(calls.get("/api/client-metrics").body["subscriptions"]))
    (made,) = calls.get("/api/client-metrics").body["subscriptions"]
    own = {each["name"]: each["value"] for each in made["settings"] if each["is_own"]}
    assert (made["name"], own) == ("all", wanted["settings"])
    assert calls.change("DELETE", "/api/client-metrics", {"name": "all"}).status == 200
    until(lambda: calls.get("/api/client-metrics").body["subscriptions"] == [])
    assert calls.change("DELETE", "/api/client-metrics", {"name": "all"}).status == 404


def test_what_is_wrong_is_said_and_not_an_error_of_the_program(calls: ConsoleCalls) -> None:
    for path, status in (
        ("/api/topics/none/records", 404),
        ("/api/topics/none/tail", 404),
        ("/api/topics/none/search?q=x", 404),
        ("/api/topics/a%2Fb", 422),
        ("/api/topics/orders/search?kind=regex&q=(", 422),
        ("/api/topics/orders/search?kind=groovy&q=1", 422),
        ("/api/topics/orders/records?cursor=x", 422),
        ("/api/topics/orders/records?count=100000", 422),
        ("/api/topics/orders/records?partition=77", 404),
        ("/api/topics/orders/records/0/99999999", 404),
        ("/api/topics/orders/records/0/99999999999999999999", 422),
        ("/api/topics/orders/records?from=here", 422),
        ("/api/groups/none", 404),
        ("/api/brokers/77", 422),
        ("/api/nothing", 404),
        ("/page/..%2Fsettings.py", 404),
    ):
        assert calls.get(path).status == status, path


def test_the_page_has_no_text_from_outside(calls: ConsoleCalls) -> None:
    answer = calls.get(f"/topics/{quote(HOSTILE, safe='')}", Accept="text/html")
    assert answer.status == 200
    assert "onerror" not in str(answer.body)
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
    ],
)
def test_other_sites_change_nothing(
    calls: ConsoleCalls, headers: dict[str, str], status: int
) -> None:
    answer = calls.change("POST", "/api/topics", {"name": "evil"}, **headers)
    assert answer.status == status
    assert calls.get("/api/topics/evil").status == 404


def test_a_change_is_json_or_nothing(calls: ConsoleCalls) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = calls.call("POST", "/api/topics", b'{"name": "evil"}', kind)
        assert answer.status == 415
    assert calls.change("POST", "/api/topics", b"[1]").status == 400
    assert calls.change("POST", "/api/topics", b'{"name": 7}').status == 422


def test_a_console_that_only_reads_and_hides_does_so_on_every_path(
    broker: LocalBroker, orders: str
) -> None:
    options = ("--read-only", "--mask", "ord*:value.email", "--mask", "*:header.trace")
    with LocalConsole(broker.bootstrap_servers, *options) as running:
        calls = ConsoleCalls(running.url)
        for method, path in (
            ("POST", "/api/topics"),
            ("DELETE", f"/api/topics/{orders}"),
            ("POST", f"/api/topics/{orders}/partitions"),
            ("PATCH", f"/api/topics/{orders}/settings"),
            ("POST", f"/api/topics/{orders}/records"),
            ("POST", "/api/groups/g/offsets"),
            ("DELETE", "/api/groups/g"),
        ):
            answer = calls.change(method, path, {"name": orders})
            assert answer.status in (403, 405), (method, path)
        texts = [
            json.dumps(calls.get(f"/api/topics/{orders}/records?{query}").body)
            for query in ("", "from=oldest", "from=oldest&all=1")
        ]
        texts.append(json.dumps(calls.get(f"/api/topics/{orders}/records/0/0").body))
        texts.append(json.dumps(events(running.url, f"/api/topics/{orders}/search?q=k")))
        for text in texts:
            assert "a@b" not in text
            assert '"text": "t' not in text
        with urlopen(f"{running.url}/api/topics/{orders}/export") as exported:
            assert b"a@b" not in exported.read()
        # A search must not tell what is hidden.
        found = events(running.url, f"/api/topics/{orders}/search?q=a@b")
        assert not [name for name, _ in found if name == "row"]
        assert calls.get("/api/overview").body["is_read_only"]


def test_a_copy_of_a_record_with_hidden_parts_is_refused(broker: LocalBroker, orders: str) -> None:
    with LocalConsole(broker.bootstrap_servers, "--mask", "orders:value.email") as running:
        path = f"/api/topics/{orders}/records/0/0/again"
        assert ConsoleCalls(running.url).change("POST", path, {"topic": "seen"}).status == 403


def test_it_lives_while_kafka_is_away_and_ends_on_a_signal() -> None:
    with LocalConsole("127.0.0.1:1") as running:
        calls = ConsoleCalls(running.url)
        assert calls.get("/health/live").status == 200
        assert calls.get("/health/ready").status == 503
        answer = calls.get("/api/topics")
        assert answer.status == 503
        assert "127.0.0.1:1" in answer.body["detail"]
        process = running._process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        running._release()
