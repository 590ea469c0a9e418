"""A streams group of which another broker takes over the disk, with a member that stays.

Every broker in turn finds the member where it was, with all its tasks. An epoch may begin, for the
other implementation hashes topics in another way. A second member then comes, gets its share of the
tasks and goes.
"""

from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import committed_offsets
from common.kafka.admin.settings import AdminSettings
from common.kafka.errors import ErrorCode
from common.kafka.topics import TopicPartition
from tests.lib.raw_kafka import RawConnection
from tests.lib.streams_member import ALL_TASKS, GROUP, StreamsMember
from tests.lib.transactional_clients import GIVE_UP_SECONDS
from tests.lib.waiting import until

LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


class StreamsGroupTakenOver:
    """Goes with a folder from one broker to the next; it reads a topic `orders`."""

    def __init__(self, bootstrap: str) -> None:
        self._stays = StreamsMember(bootstrap, "stays")
        self._committed = 0

    def go_on(self, bootstrap: str, run: int) -> None:
        """Find the group as the broker before has left it, and change it for the next."""
        stays = self._stays
        if run:
            stays.connection = RawConnection(bootstrap, GIVE_UP_SECONDS)
            stays.connection.find_coordinator(GROUP)
            epoch = stays.epoch
            until(lambda: stays.beat().error_code not in LOADING)
            assert stays.beat().error_code == ErrorCode.NONE
            assert stays.epoch in (epoch, epoch + 1)
            assert stays.active == ALL_TASKS
            assert _committed_offset(bootstrap) == self._committed
        with StreamsMember(bootstrap, "goes") as goes:

            def is_shared() -> bool:
                stays.beat()
                goes.beat()
                return len(stays.active) == len(goes.active) == len(ALL_TASKS) / 2

            until(is_shared)
            goes.leave()
        until(stays.has_all)
        self._committed = run + 1
        stays.commit("orders", 0, self._committed)
        until(lambda: not _has_target_to_come(stays))
        stays.connection.socket.close()


def _has_target_to_come(member: StreamsMember) -> bool:
    before = member.epoch
    member.beat()
    return member.epoch != before


def _committed_offset(bootstrap: str) -> int:
    with AdminClient(AdminSettings.of(bootstrap)) as admin:
        return committed_offsets(admin, GROUP)[TopicPartition("orders", 0)].offset
