"""What is handed out: the wheel has the user interface and the licences, or there is no wheel."""

import asyncio
import email
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import pytest

from tests.engine import until
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
WITHIN_S = 300


@dataclass(frozen=True)
class Distributions:
    source: Path
    wheel: Path


def build(folder: Path, out: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *options],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """A source distribution, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    done = build(ROOT, out)
    assert done.returncode == 0, done.stdout + done.stderr
    [source], [wheel] = out.glob("*.tar.gz"), out.glob("*.whl")
    return Distributions(source, wheel)


@pytest.fixture(scope="module")
def installed(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `foliot` command of an environment that has the wheel, and Foliot from nowhere else.

    Its dependencies are those of the environment that runs the tests: only Foliot itself is under test.
    """
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = ["--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", *install, str(distributions.wheel)], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    # A path file is not read in a folder that is itself named by one: the editable install stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    where = subprocess.run(
        [str(python), "-c", "import foliot; print(foliot.__file__)"],
        cwd=folder,
        env=_plain(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(packages)
    return folder / "bin" / "foliot"


def _plain() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FOLIOT_") and name != "PYTHONPATH"
    }


async def test_the_wheel_serves_the_page_and_its_licences(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    log = tmp_path / "log"
    with log.open("wb") as output:
        up = await asyncio.create_subprocess_exec(
            *(str(installed), "up", "--port", str(port)),
            cwd=tmp_path,
            env=_plain() | {"FOLIOT_LOG_FORMAT": "json"},
            stdout=output,
            stderr=output,
        )
    try:
        await until(lambda: asyncio.to_thread(_answers, port), within_s=120)
        page = await asyncio.to_thread(_get, port, "/")
        assert '<div id="root">' in page, page
        [script] = [part for part in page.split('"') if part.startswith("/assets/index-") and "js" in part]
        assert len(await asyncio.to_thread(_get, port, script)) > 100_000
        listed = await asyncio.to_thread(_get, port, "/THIRD_PARTY_LICENSES.txt")
        assert "\nreact " in listed
    finally:
        if up.returncode is None:
            up.terminate()
        await up.wait()


def _answers(port: int) -> bool:
    try:
        _get(port, "/healthz")
    except OSError:
        return False
    return True


def _get(port: int, path: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def test_the_metadata_names_the_licence_and_the_authors(distributions: Distributions) -> None:
    metadata = _metadata(distributions.wheel)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Author"] == "The Foliot authors"
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])
    with zipfile.ZipFile(distributions.wheel) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith("/licenses/LICENSE")]
        licence = wheel.read(name).decode()
    assert "Copyright 2026 The Foliot authors" in licence
    assert "SPDX-License-Identifier: Apache-2.0" in licence


def _metadata(wheel_file: Path) -> Message:
    with zipfile.ZipFile(wheel_file) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(wheel.read(name))


def test_what_the_ui_contains_is_listed_with_its_licences(distributions: Distributions) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        listed = wheel.read("foliot/web_dist/THIRD_PARTY_LICENSES.txt").decode()
    sections = [part.strip().splitlines() for part in listed.split("-" * 80)[1:]]
    found = {section[0].rpartition(" ")[0]: section[1] for section in sections if len(section) > 1}
    for name, licence in {
        "react": "MIT",
        "react-dom": "MIT",
        "@radix-ui/react-dialog": "MIT",
        "@tanstack/query-core": "MIT",
        "tailwindcss": "MIT",
        "uplot": "MIT",
        "@fontsource-variable/geist": "OFL-1.1",
    }.items():
        assert found.get(name) == f"License: {licence}", name
    for only_for_the_build in ("typescript", "openapi-typescript", "@vitejs/plugin-react"):
        assert only_for_the_build not in found
    assert "Permission is hereby granted" in listed


def test_the_source_distribution_has_the_ui_and_what_it_is_built_from(distributions: Distributions) -> None:
    with tarfile.open(distributions.source) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"LICENSE", "hatch_build.py", "web/package-lock.json", "web/src/main.tsx"} <= names
    assert {"src/foliot/web_dist/index.html", "src/foliot/web_dist/THIRD_PARTY_LICENSES.txt"} <= names
    assert not [name for name in names if "node_modules" in name]


@pytest.fixture
def without_ui(tmp_path: Path) -> Path:
    """The project as git has it, as far as a wheel needs it."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("web_dist*", "__pycache__"))
    shutil.copytree(ROOT / "web", folder / "web", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("kind", ["--wheel", "--sdist"])
def test_without_the_ui_and_without_node_the_build_fails_and_says_why(
    without_ui: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    done = build(without_ui, out, kind, PATH=str(tmp_path))
    assert done.returncode != 0
    assert "The user interface is not built" in done.stdout + done.stderr
    assert not list(out.glob("*"))


def test_an_editable_install_needs_no_ui(without_ui: Path, tmp_path: Path) -> None:
    code = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=without_ui,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / done.stdout.strip()).suffix == ".whl"
