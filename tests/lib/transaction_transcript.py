"""Transcripts of requests to a transaction coordinator, and their effects.

A line is a command; the indented lines under it are its effects. Effects are written by a run of
the transcript with `REWRITE=1`, and must be read before they are committed.

    init a                     initializes a producer; later commands use its id and epoch
    init a again               requests the next epoch, with the current one (KIP-360)
    add a t-0 t-1              partitions, by the producer (v3)
    add a t-0 v=5              by a leader on its behalf; `verify` only verifies
    offsets a                  the offsets of its group
    end a commit v=5           v4 keeps the epoch, v5 raises it and returns it
    end a commit v=5 at=0      the same with another epoch: late, or repeated
    lost ...                   any command whose answer is lost, so the producer does not change
    written t-0                the markers of these partitions are written; without names, all
    wait 90                    seconds pass
    reload                     the coordinator is killed; another one loads the log
    forget                     its last record was not replicated when it was killed

All producers use the transactional id `copier`. A producer without `init` uses an unknown producer
id. `Asked` shows only the answers, with producer ids by their order, so that its transcripts can be
recorded from a broker.
"""

from typing import Any

from broker.model import TopicPartition
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from common.kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from common.kafka.protocol.messages.end_txn import EndTxnRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.lib.raw_kafka import RawConnection
from tests.lib.transaction_scenario import Scenario
from tests.lib.waiting import until

NOBODY = (999_999, 0)


class Player:
    """Runs a transcript against a new shard."""

    def __init__(self, scenario: Any = None) -> None:
        self.scenario = scenario or Scenario()
        self.producers: dict[str, tuple[int, int]] = {}
        self._marker_count = 0
        self._log_length = 0

    def play(self, text: str) -> str:
        """Return the transcript with the effects of this run."""
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith("    "):
                continue
            lines.append(line)
            if line and not line.startswith("#"):
                lines += [f"    {happened}" for happened in self._play(line.split())]
        return "\n".join(lines) + "\n"

    def _play(self, words: list[str]) -> list[str]:
        is_lost = words[0] == "lost"
        if is_lost:
            words = words[1:]
        options = dict(word.split("=") for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        self._log_length = len(self.scenario.log)
        self._marker_count = len(self.scenario.markers)
        known = dict(self.producers)
        told = getattr(self, f"_{plain[0]}")(plain[1:], options)
        if is_lost:
            self.producers, told = known, f"({told})"
        return ([told] if told else []) + self._happened()

    def _happened(self) -> list[str]:
        scenario = self.scenario
        sent = [
            f"markers {'commit' if each.is_commit else 'abort'} {names_of(each.partitions)} "
            f"id={each.producer_id} epoch={each.producer_epoch}"
            for each in scenario.markers[self._marker_count :]
        ]
        if len(scenario.log) <= self._log_length:
            return sent
        found = scenario.transaction()
        state = f"{found.state.value} id={found.producer_id} epoch={found.producer_epoch}"
        partitions = f" {names_of(found.partitions)}" if found.partitions else ""
        return [f"now {state}{partitions}", *sent]

    # --- commands ---

    def _init(self, words: list[str], options: dict[str, str]) -> str:
        before = self.producers.get(words[0], (-1, -1)) if "again" in words else (-1, -1)
        if "at" in options:
            before = before[0], int(options["at"])
        if "half" in words:
            before = 5, -1
        answer = self.scenario.init(before, timeout_ms=int(options.get("timeout", 60_000)))
        if answer.error_code == ErrorCode.NONE:
            self.producers[words[0]] = answer.producer_id, answer.producer_epoch
        return f"{named(answer.error_code)} {self._identity(answer)}"

    def _add(self, words: list[str], options: dict[str, str]) -> str:
        partitions = [partition_of(word) for word in words[1:] if word != "verify"]
        codes = self.scenario.add(
            self._producer(words[0], options),
            *partitions,
            version=int(options.get("v", 3)),
            verify_only="verify" in words,
        )
        return " ".join(named(code) for code in sorted(codes))

    def _offsets(self, words: list[str], options: dict[str, str]) -> str:
        return named(self.scenario.add_offsets(self._producer(words[0], options)))

    def _end(self, words: list[str], options: dict[str, str]) -> str:
        version = int(options.get("v", 4))
        code = self.scenario.end(
            self._producer(words[0], options), commit=words[1] == "commit", version=version
        )
        if version < 5 or code != ErrorCode.NONE:
            return named(code)
        answer = self.scenario.answer
        self.producers[words[0]] = answer.producer_id, answer.producer_epoch
        return f"NONE {self._identity(answer)}"

    def _identity(self, answer: Any) -> str:
        return f"id={answer.producer_id} epoch={answer.producer_epoch}"

    def _written(self, words: list[str], options: dict[str, str]) -> None:
        scenario = self.scenario
        named_here = {partition_of(word) for word in words}
        markers, scenario.markers = scenario.markers, []
        self._marker_count = 0
        for each in markers:
            written = named_here.intersection(each.partitions) if words else each.partitions
            scenario.take(scenario.shard.markers_written(each, written, scenario.now))
            if words:
                scenario.markers.insert(0, each)
                self._marker_count = 1

    def _wait(self, words: list[str], options: dict[str, str]) -> None:
        self.scenario.advance(int(words[0]) * 1_000)

    def _reload(self, words: list[str], options: dict[str, str]) -> None:
        self._marker_count = 0
        self.scenario.reload()

    def _forget(self, words: list[str], options: dict[str, str]) -> None:
        self.scenario.log.pop()
        self._reload(words, options)

    def _producer(self, name: str, options: dict[str, str]) -> tuple[int, int]:
        producer_id, epoch = self.producers.get(name, NOBODY)
        return producer_id, int(options.get("at", epoch))


class Asked(Player):
    """Shows only the answers, which can also be recorded from a broker."""

    def __init__(self, scenario: Any = None) -> None:
        super().__init__(scenario)
        self._ids: dict[int, int] = {-1: -1}

    def _happened(self) -> list[str]:
        return []

    def _written(self, words: list[str], options: dict[str, str]) -> None:
        self.scenario.write_markers()

    def _identity(self, answer: Any) -> str:
        number = self._ids.setdefault(answer.producer_id, len(self._ids))
        return f"id={number} epoch={answer.producer_epoch}"


class BrokerScenario:
    """A broker, with the interface of a `Scenario`."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self.connection = RawConnection(bootstrap)
        self._name = transactional_id
        self.log: list[object] = []
        self.markers: list[object] = []
        self.answer: Any = None

    def _ask(self, api_key: ApiKey, version: int, request: Any) -> Any:
        self.answer = self.connection.ask(api_key, version, request)
        return self.answer

    def init(self, producer: tuple[int, int], *, timeout_ms: int) -> Any:
        request = InitProducerIdRequest(
            transactional_id=self._name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        return self._ask(ApiKey.INIT_PRODUCER_ID, 5, request)

    def add(
        self,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        version: int,
        verify_only: bool,
    ) -> set[int]:
        topics = [
            AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        if version > 3:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=self._name,
                producer_id=producer[0],
                producer_epoch=producer[1],
                verify_only=verify_only,
                topics=topics,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
        results = answer.results_by_topic_v3_and_below
        if version > 3:
            results = answer.results_by_transaction[0].topic_results
        return {
            each.partition_error_code for topic in results for each in topic.results_by_partition
        }

    def add_offsets(self, producer: tuple[int, int]) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id="g",
        )
        return int(self._ask(ApiKey.ADD_OFFSETS_TO_TXN, 4, request).error_code)

    def end(self, producer: tuple[int, int], *, commit: bool, version: int) -> int:
        request = EndTxnRequest(
            transactional_id=self._name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        return int(self._ask(ApiKey.END_TXN, version, request).error_code)

    def write_markers(self) -> None:
        """Wait until the broker has written the markers."""
        request = DescribeTransactionsRequest(transactional_ids=[self._name])

        def is_complete() -> bool:
            answer: Any = self.connection.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
            return str(answer.transaction_states[0].transaction_state).startswith("Complete")

        until(is_complete)

    def close(self) -> None:
        self.connection.socket.close()


def partition_of(name: str) -> TopicPartition:
    """Parse `t-0`."""
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def names_of(partitions: object) -> str:
    """Return partitions as sorted text."""
    assert isinstance(partitions, tuple | frozenset)
    return " ".join(str(each) for each in sorted(partitions))


def named(code: int) -> str:
    """Return the name of an error."""
    return ErrorCode(code).name
