"""Make .venv ready for `make run` or `make test`: the pinned packages, checked by hash, and ourselves.

Needs nothing but Python 3.11 with venv. Once a stamp in .venv matches the locks, it returns at once and never
touches the network, so everything afterwards works offline.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
INSIDE = VENV / "bin" / "python"
LOCKS = {
    "run": ("requirements.lock", "requirements-build.lock"),
    "test": ("requirements-dev.lock",),
}
# Compiling everything at once takes half the time of the set-up. Python compiles what it imports anyway, once; but
# where it may keep nothing (PYTHONDONTWRITEBYTECODE), it would do so at every start.
COMPILING = ("--compile",) if sys.dont_write_bytecode else ("--no-compile",)
PIP = ("--disable-pip-version-check", "--no-input", *COMPILING, "--progress-bar", "off")
PACKAGE = re.compile(
    r"(?:Collecting |Requirement already satisfied: |Processing \S*/)([\w.]+(?:-[a-z][\w.]*)*)"
)
NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"
NO_PIP = (
    "This Python cannot make a virtual environment of its own (the module ensurepip is missing).\n"
    "On Debian or Ubuntu:  sudo apt install python3-venv      then try again."
)


def main() -> int:
    """Set up what the one argument names; return the exit status, 0 also when there was nothing to do."""
    purpose = sys.argv[1]
    if any(is_ready(kind) for kind in {purpose, "test"}):
        return 0
    began = time.monotonic()
    print(
        f"Setting up .venv with Python {sys.version.split()[0]}, once; later starts need no network.",
        flush=True,
    )
    if not make_environment():
        print(NO_PIP, file=sys.stderr)
        return 1
    locks = [argument for name in LOCKS[purpose] for argument in ("-r", str(ROOT / name))]
    total = sum(pins(ROOT / name) for name in LOCKS[purpose])
    if not show(install("--require-hashes", *locks), total):
        return 1
    if not show(install("--no-deps", "--no-build-isolation", "--editable", str(ROOT)), 0):
        return 1
    stamp(purpose).write_text(digest(purpose))
    print(f"Ready after {time.monotonic() - began:.0f} s.", flush=True)
    return 0


def stamp(purpose: str) -> Path:
    return VENV / f".ready-for-{purpose}"


def digest(purpose: str) -> str:
    """Return what must not have changed: the locks, our own metadata, the place, and the Python inside."""
    sum_ = hashlib.sha256(f"{VENV}\n{INSIDE.resolve()}\n".encode())
    for name in (*LOCKS[purpose], "pyproject.toml"):
        sum_.update((ROOT / name).read_bytes())
    return sum_.hexdigest()


def is_ready(purpose: str) -> bool:
    return stamp(purpose).exists() and INSIDE.exists() and stamp(purpose).read_text() == digest(purpose)


def make_environment() -> bool:
    """Make .venv unless a usable one stands there; False when this Python has no pip to give it."""
    borrowed_pip = importlib.util.find_spec("pip") is not None
    if INSIDE.exists() and runs(NEW_ENOUGH) and (borrowed_pip or runs("import pip")):
        return True
    own_pip = importlib.util.find_spec("ensurepip") is not None
    if not own_pip and not borrowed_pip:
        return False
    venv.EnvBuilder(clear=VENV.exists(), with_pip=own_pip, symlinks=True).create(VENV)
    return True


def runs(code: str) -> bool:
    return subprocess.run([str(INSIDE), "-c", code], capture_output=True, check=False).returncode == 0


def install(*arguments: str) -> subprocess.Popen[str]:
    """Start pip on .venv, with the environment's own pip or, where it has none, with this Python's."""
    pip = [str(INSIDE), "-m", "pip"]
    if not runs("import pip"):
        pip = [sys.executable, "-m", "pip", "--python", str(INSIDE)]
    command = [*pip, "install", *PIP, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=environment()
    )


def environment() -> dict[str, str]:
    """Return ours without what would put packages elsewhere than .venv."""
    elsewhere = {"PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PYTHONPATH", "PYTHONHOME"}
    return {name: value for name, value in os.environ.items() if name not in elsewhere}


def pins(lock: Path) -> int:
    return len(re.findall(r"(?m)^[A-Za-z0-9._-]+==(?!.*win32)", lock.read_text()))


def show(pip: subprocess.Popen[str], total: int) -> bool:
    """Turn pip's talk into a line of progress; show its last words when it fails."""
    assert pip.stdout is not None
    said: list[str] = []
    seen: set[str] = set()
    for line in pip.stdout:
        said.append(line)
        if found := PACKAGE.match(line):
            seen.add(found[1])
            tell(f"  {min(len(seen), total)} of {total}  {found[1]}", total > 0 and len(seen) % 20 == 0)
        elif line.startswith("Installing collected packages") and total:
            tell(f"  unpacking {len(seen)} packages ...", True)
    if sys.stdout.isatty():
        print("\r\033[K", end="", flush=True)
    if pip.wait() == 0:
        return True
    print("".join(said[-20:]), end="", file=sys.stderr)
    print("Installing failed; pip's last words are above. The same command tries again.", file=sys.stderr)
    return False


def tell(text: str, weighty: bool) -> None:
    """Rewrite one line on a terminal; elsewhere print only what is worth a line in a log."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)
    elif weighty:
        print(text, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped; the same command goes on from here.")
