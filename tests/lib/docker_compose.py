"""Docker Compose, in whichever of its two forms this machine has it."""

import shutil
import subprocess


def compose_command() -> list[str] | None:
    """Return the command's first words, None when there is no Docker Compose."""
    for command in (["docker-compose"], ["docker", "compose"]):
        if shutil.which(command[0]):
            version = subprocess.run([*command, "version"], capture_output=True)
            if version.returncode == 0:
                return command
    return None
