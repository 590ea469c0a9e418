"""Docker Compose, in the one of its two forms that is installed."""

import shutil
import subprocess


def compose_command() -> list[str] | None:
    """Return the first words of the command; None if Docker Compose is not installed."""
    for command in (["docker-compose"], ["docker", "compose"]):
        if shutil.which(command[0]):
            version = subprocess.run([*command, "version"], capture_output=True)
            if version.returncode == 0:
                return command
    return None
