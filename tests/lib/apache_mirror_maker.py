"""Apache's MirrorMaker 2, run from its jars, to compare with Millstream's mirror."""

import json
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.lib.java import JAVA, archive_listed, fetched_libs, java_program, java_that_lists
from tests.lib.mirror_process import MirrorProcess


def mirror_libs() -> Path:
    """Return the folder of the jars; skip the test if they cannot be had."""
    return fetched_libs("mirror", "connect-mirror-4*.jar")


def ask_classes(libs: Path, asked: dict[str, Any]) -> Any:
    """Run MirrorMaker 2's classes on requests; see RunMirrorClasses.java."""
    command = java_program(libs, JAVA / "RunMirrorClasses.java")
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class ApacheMirrorMaker(MirrorProcess):
    """Owns the process, which has no HTTP interface."""

    def __init__(self, properties: Path, libs: Path) -> None:
        super().__init__(properties)
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        self._libs, self._listed = libs, properties.with_suffix(".classes")
        options = java_that_lists(libs, self._listed, "-Xmx256m")
        self._command = [*options, main, str(properties)]

    def start(self) -> Self:
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                self._command, stdout=subprocess.DEVNULL, stderr=log, text=True
            )
        return self

    def stop(self) -> int:
        status = super().stop()
        archive_listed(self._libs, self._listed)
        return status

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
