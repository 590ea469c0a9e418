"""Which processes there are below one, though threads of it end meanwhile."""

import subprocess
import sys

from tests.lib.process_tree import processes_below

PARENT = """
import subprocess, threading, time

def start():
    with subprocess.Popen(["sleep", "60"]) as child:
        print(child.pid, flush=True)

for number in range(300):
    threading.Thread(target=time.sleep, args=(0.2 + number / 1000,)).start()
threading.Thread(target=start).start()
"""


def test_a_child_is_there_though_threads_that_began_before_its_own_end() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        missing = sum(pid not in processes_below(parent.pid) for _ in range(200))
        subprocess.run(["kill", str(pid)], check=True)
    assert missing == 0
