"""The wheel holds all that the program needs, and the program runs from it in an empty folder."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests import needs
from tests.house import walk
from tests.house.manual import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout, with nothing fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel beside our dependencies and return the folder of its programs.

    The path file names the folder of the dependencies as it is, so the editable install in there, which is a
    path file too, is not followed.
    """
    if not has_pip():
        needs.give_up("There is no pip here to install the wheel with.")
    place = tmp_path_factory.mktemp("installed")
    venv.EnvBuilder(symlinks=True, with_pip=False).create(place)
    python = place / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-index", "--quiet", "--ignore-installed", str(wheel)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return python.parent


def has_pip() -> bool:
    tried = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    return tried.returncode == 0


def test_the_wheel_holds_what_lives_beside_the_package_in_a_checkout(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    for kind, inside in (("templates", "app/templates"), ("alembic", "app/alembic"), ("app", "app")):
        wanted = {
            f"{inside}/{path.relative_to(ROOT / kind)}"
            for path in (ROOT / kind).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert wanted <= held
    for name in ("templates/web/style.css", "locales/zh.po", "cli/samples/daily.txt", "alembic/env.py"):
        assert f"app/{name}" in held


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    held = zipfile.ZipFile(wheel).namelist()
    assert [name for name in held if not name.startswith(("app/", "broadsheet-"))] == []
    assert [name for name in held if "__pycache__" in name or name.endswith((".pyc", ".db", ".log"))] == []
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_the_wheel_is_what_is_imported(installed: Path, tmp_path: Path) -> None:
    code = "import app, app.core.paths as p; print(app.__file__, p.templates(), p.migrations(), sep='\\n')"
    done = subprocess.run(
        [installed / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert all(Path(line).is_relative_to(installed.parent) for line in done.stdout.split())


def test_it_runs_from_an_empty_folder_until_it_is_told_to_stop(installed: Path, tmp_path: Path) -> None:
    with walk.serving([str(installed / "broadsheet"), "run"], tmp_path) as place:
        form = walk.fetch(f"{place.base}/")
        assert 'action="' in form
        assert 'name="email"' in form
        assert "{" in walk.fetch(f"{place.base}/style.css")
        assert '"ready"' in walk.fetch(f"{place.base}/readyz")
    assert (tmp_path / "var" / "broadsheet.db").exists()


def test_the_samples_are_sent_from_it(installed: Path, tmp_path: Path) -> None:
    with walk.serving([str(installed / "broadsheet"), "run", "--demo"], tmp_path, "Ctrl-C") as place:
        assert "AI 技术日报" in walk.fetch(f"{place.base}/archive")
