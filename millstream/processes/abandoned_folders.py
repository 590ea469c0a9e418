"""The temporary folders of processes whose starter ended without removing them.

A test that is killed cannot remove the folder of its broker. The fork server knows the folder and
the processes that use it. It outlives the test, so it can kill these processes and remove the
folder. Only Linux has a fork server.
"""

import os
import select
import shutil
import signal
from collections.abc import Iterable
from contextlib import suppress


class TemporaryFolders:
    """Folders, each with the running processes that use it."""

    def __init__(self) -> None:
        self._users: dict[str, set[int]] = {}

    def add(self, folder: str, pid: int) -> None:
        """Record that a process uses a folder."""
        self._users = {
            each: users for each, users in self._users.items() if users or os.path.isdir(each)
        }
        self._users.setdefault(folder, set()).add(pid)

    def on_end(self, pid: int) -> None:
        """Record that a process has ended, because its id can be used again."""
        for users in self._users.values():
            users.discard(pid)

    def existing(self) -> list[str]:
        """Return the folders that are not removed yet."""
        return [folder for folder in self._users if os.path.isdir(folder)]

    def users(self) -> list[int]:
        """Return the ids of the running processes."""
        return sorted(set().union(*self._users.values()))


def remove_after_end(folders: Iterable[str], client: int | None, users: Iterable[int]) -> None:
    """Wait until the client has ended, kill the users of the folders, and remove the folders.

    The processes are given as descriptors (`pidfd_open`); the client is None if it has ended.
    """
    if client is not None:
        _wait_for_end(client)
    for user in users:
        # A clean stop would only complete files that are removed.
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(user, signal.SIGKILL)
        _wait_for_end(user)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_end(process: int) -> None:
    ended = select.poll()
    ended.register(process, select.POLLIN)
    ended.poll()
