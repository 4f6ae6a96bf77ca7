"""What this machine is, how busy it was, and what a process on it has used."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def described() -> str:
    """Return a sentence on the machine and the day."""
    system = f"{platform.system()} {platform.machine()}"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} processors ({processor()}), {system}, "
        f"Python {platform.python_version()}."
    )


def processor() -> str:
    """Return the name that the kernel has for the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "of no name"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "of no name"


def load() -> str:
    """Return the load of the last 1, 5 and 15 minutes."""
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def can_look_into_processes() -> bool:
    """Whether the kernel tells what a process has used."""
    return Path("/proc/self/stat").exists()


def cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used in all its threads."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS


def resident(pid: int) -> float:
    """Return the MB of memory that a process has in use now."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"the kernel does not tell the memory of process {pid}")
