"""Topics that are created one after the other while a cluster is disturbed; pauses are measured."""

import threading
import time

import confluent_kafka
import confluent_kafka.admin


class TopicCreator(threading.Thread):
    """Creates topics until `end`, and measures how long each takes."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        self._is_over = threading.Event()
        self.created: list[str] = []
        self.pauses: list[tuple[float, int]] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._is_over.is_set():
                self.create_one()
        except BaseException as error:
            self.error = error
            raise

    def create_one(self) -> None:
        name = f"topic-{len(self.created)}"
        began = time.monotonic()
        topic = confluent_kafka.admin.NewTopic(name, 1, 1)
        for created in self._admin.create_topics([topic], request_timeout=30).values():
            try:
                created.result(30)
            except confluent_kafka.KafkaException as error:
                # A broker asks again when it has lost the controller, which had created it.
                if error.args[0].code() != confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        self.pauses.append((time.monotonic() - began, len(self.created)))
        self.created.append(name)

    def end(self) -> None:
        self._is_over.set()
        self.join(60)
        assert self.error is None, self.error

    def found(self) -> set[str]:
        return {name for name in self._admin.list_topics(timeout=30).topics if "topic" in name}
