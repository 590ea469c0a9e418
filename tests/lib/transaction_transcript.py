"""Conversations with a transaction coordinator as text: requests of producers, what came of them.

A line is a command; the indented lines under it are what it caused. Those are written by running
the transcript (`REWRITE=1`), and read before they are committed.

    init a                     a producer begins; its id and epoch are used from then on
    init a again               it asks for its next epoch, with those it has (KIP-360)
    add a t-0 t-1              partitions, by the producer (v3)
    add a t-0 v=5              by a leader on its behalf; `verify` only asks
    offsets a                  the offsets of its group
    end a commit v=5           v4 keeps the epoch, v5 raises and answers it
    end a commit v=5 at=0      the same, sent with another epoch: late, or repeated
    lost ...                   whatever it is, its answer is lost: the producer learns nothing
    written t-0                markers that their leaders have written; without names, all
    wait 90                    seconds pass
    reload                     the coordinator is killed; another one loads the log
    forget                     its last record was not replicated when it was killed

All use the transactional id `copier`.
"""

from broker.errors import ErrorCode
from broker.model import TopicPartition
from tests.lib.transaction_scenario import Scenario


class Player:
    """Runs a transcript against a shard of its own."""

    def __init__(self) -> None:
        self.scenario = Scenario()
        self.producers: dict[str, tuple[int, int]] = {}
        self._marker_count = 0
        self._log_length = 0

    def play(self, text: str) -> str:
        """Return the transcript with what happens now."""
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
        answer = self.scenario.init(before)
        if answer.error_code == ErrorCode.NONE:
            self.producers[words[0]] = answer.producer_id, answer.producer_epoch
        return f"{named(answer.error_code)} id={answer.producer_id} epoch={answer.producer_epoch}"

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
        return f"NONE id={answer.producer_id} epoch={answer.producer_epoch}"

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
        producer_id, epoch = self.producers[name]
        return producer_id, int(options.get("at", epoch))


def partition_of(name: str) -> TopicPartition:
    """Read `t-0`."""
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def names_of(partitions: object) -> str:
    """Write partitions in their order."""
    assert isinstance(partitions, tuple | frozenset)
    return " ".join(str(each) for each in sorted(partitions))


def named(code: int) -> str:
    """Give the name of an error."""
    return ErrorCode(code).name
