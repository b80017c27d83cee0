import json
import sys
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from scipy.sparse import csr_array

from sidelight.app import demo
from sidelight.app.hpo import DiseaseGenes
from sidelight.errors import MissingExtraError
from sidelight.evaluation import measure_rows, new_rows, popularity


@pytest.fixture
def data(monkeypatch):
    """Twelve diseases around a ring, each with the gene of its third; 12 x 5."""
    ring = np.roll(np.eye(12), 1, axis=1)
    diseases = np.arange(12)
    table = DiseaseGenes(
        disease_ids=np.array([f"OMIM:{i}" for i in diseases]),
        disease_names=np.array([f"Disease {i}" for i in diseases]),
        gene_ids=np.arange(5),
        gene_symbols=np.array([f"GEN{i}" for i in range(5)]),
        pairs=np.column_stack([diseases, diseases // 3]),
        phenotypes=csr_array(np.tile([1.0, 1.0, 0.0], (12, 1))),
        phenotype_names=np.array(["Wide face", "Wide head", "Unseen"]),
        adjacency=csr_array(0.5 * (ring + ring.T)),
    )
    monkeypatch.setattr(demo, "load_disease_genes", lambda: table)
    monkeypatch.setattr(demo, "SHOWN_PHENOTYPES", 2)
    return table


@pytest.fixture
def console():
    return Console(record=True, width=200, file=StringIO())


def test_what_is_written_is_what_is_returned(data, tmp_path, console):
    results = demo.run(tmp_path / "new" / "folder", seed=1, console=console)
    written = json.loads((tmp_path / "new" / "folder" / demo.RESULTS).read_text(encoding="utf-8"))
    assert written == results
    picture = (tmp_path / "new" / "folder" / demo.PICTURE).read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")


def test_curves_are_means_over_folds(data, tmp_path, console):
    curves = demo.run(tmp_path, seed=1, console=console)["curves"]["new_rows"]
    folds = [
        measure_rows(
            popularity(data.pairs[train], (12, 5)), data.pairs[test], data.pairs[train], (12, 5)
        )
        for train, test in new_rows(data.pairs, demo.FOLDS, 1)
    ]
    expected = np.mean([fold.recall.mean(axis=0) for fold in folds], axis=0)
    np.testing.assert_array_equal(curves[demo.POPULARITY]["recall"], expected)
    for method in demo.COLOURS:  # five genes: a list of twenty holds them all
        np.testing.assert_allclose(curves[method]["recall"][4:], 1.0, rtol=1e-15)
        np.testing.assert_allclose(curves[method]["precision"][19], 1 / 20, rtol=1e-15)


def test_the_example_names_its_gene_neighbours_and_phenotypes(data, tmp_path, console):
    example = demo.run(tmp_path, seed=1, console=console)["example"]
    row = int(example["disease"]["id"].removeprefix("OMIM:"))
    assert [gene["symbol"] for gene in example["genes"] if gene["true"]] == [f"GEN{row // 3}"]
    assert {near["id"] for near in example["nearest_diseases"]} == {
        f"OMIM:{(row + step) % 12}" for step in (-1, 1)
    }
    assert example["phenotypes"] == ["Wide face", "Wide head"]
    scores = [gene["score"] for gene in example["genes"]]
    assert scores == sorted(scores, reverse=True)
    printed = console.export_text()
    assert f"Disease {row}" in printed
    assert "true gene" in printed


def test_the_seed_decides_everything(data, tmp_path, console):
    first, second = (demo.run(tmp_path, seed=3, console=console) for _ in range(2))
    for results in (first, second):
        del results["fits"]  # holds times
    assert first == second


def test_a_missing_matplotlib_is_named_with_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sidelight\[demo\]'"):
        demo.draw(tmp_path / "picture.png", {})
