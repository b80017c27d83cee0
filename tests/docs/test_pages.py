"""Every Python block and command that the documentation shows runs; every link leads somewhere."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.name for page in PAGES]
COMMAND = Path(sys.executable).with_name("sidelight")


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    fence = rf"^```{language}\n(.*?)^```"
    return re.findall(fence, page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    lines = "".join(blocks(page, "console")).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ sidelight")]


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Work beside a copy of the documentation's data, as one does in a clone."""
    shutil.copytree(ROOT / "docs" / "films", tmp_path / "docs" / "films")
    shutil.copytree(ROOT / "docs" / "films", tmp_path / "my_set")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def in_memory():
    """Return the objects that the page on data calls the reader's own."""
    ratings = pd.read_csv(ROOT / "docs" / "films" / "entries.tsv", sep="\t")
    ratings.columns = pd.Index(["user", "film", "stars"])
    return {
        "ratings": ratings,
        "friends": pd.read_csv(ROOT / "docs" / "films" / "row_edges.tsv", sep="\t"),
        "matrix": sparse.csr_array(np.array([[5.0, 0, 3], [0, 4, 0]])),
        "users": ["ana", "ben"],
        "films": ["alien", "brazil", "dune"],
    }


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_blocks_run_from_top_to_bottom(page, clone, in_memory):
    code = blocks(page, "python")
    if not code:
        pytest.skip("the page has no Python")
    exec(compile("\n".join(code), str(page), "exec"), dict(in_memory))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_run_in_their_order(page, clone):
    lines = commands(page)
    if not lines:
        pytest.skip("the page has no commands")
    for line in lines:
        done = subprocess.run([COMMAND, *shlex.split(line)[1:]], capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_the_readme_shows_both_ways():
    assert len(blocks(ROOT / "README.md", "python")) == 1
    assert len(commands(ROOT / "README.md")) == 3


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    files = {target.partition("#")[0] for target in targets} - {""}
    assert [name for name in sorted(files) if not (page.parent / name).exists()] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^  - .*: (\S+\.md)$", navigation, flags=re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in PAGES[1:])
