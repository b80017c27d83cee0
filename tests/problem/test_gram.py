"""The covariance between the entries is the same by every way of working it out."""

import numpy as np
import pytest

import sidelight as sl
from sidelight.problem import Pattern, gram, gram_product


def made(kind, shape, rng, entries):
    """Covariances, a pattern with an empty row, an empty column and a pair twice, and the truth."""
    rows, cols = shape
    graph = np.triu(rng.random((rows, rows)) < 0.4, k=1).astype(float)
    row_cov = sl.Diffusion(graph + graph.T)
    col_cov = sl.Features(rng.normal(size=(cols, 2)), "rbf")
    if kind == "identity rows":
        row_cov = sl.Identity(rows)
    if kind == "identity columns":
        col_cov = sl.Identity(cols)
    cells = rng.choice((rows - 1) * (cols - 1), entries, replace=False)
    pairs = np.column_stack(np.divmod(cells, cols - 1))
    pairs = np.vstack([pairs, pairs[:1]])
    pattern = Pattern(pairs, shape)
    C, H = row_cov.dense(), col_cov.dense()
    m, n = pattern.rows, pattern.cols
    return pattern, row_cov, col_cov, C[np.ix_(m, m)] * H[np.ix_(n, n)]


@pytest.mark.parametrize("kind", ["identity rows", "identity columns", "graph and features"])
@pytest.mark.parametrize(
    ("shape", "entries"), [((5, 3), 6), ((3, 5), 6), ((40, 9), 20), ((9, 40), 250)]
)
@pytest.mark.parametrize("limits", [{}, {"_KEEP": 0, "_EXPLICIT": 0, "_BLOCK": 4}, {"_TABLE": 50}])
def test_every_way_equals_the_dense_product(kind, shape, entries, limits, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(gram, name, value)
    rng = np.random.default_rng(0)
    pattern, row_cov, col_cov, truth = made(kind, shape, rng, entries)
    product = gram_product(pattern, row_cov, col_cov)
    V = rng.normal(size=(pattern.size, 3))
    np.testing.assert_allclose(product(V), truth @ V, atol=1e-12)
    np.testing.assert_allclose(product(V[:, 0]), truth @ V[:, 0], atol=1e-12)


@pytest.mark.parametrize("sampled", [0.0, 1e9], ids=["whole", "sampled"])
@pytest.mark.parametrize("shape", [(7, 4), (4, 7)])
def test_whole_tables_and_observed_places_alone_agree(sampled, shape, monkeypatch):
    monkeypatch.setattr(gram, "_SAMPLED", sampled)
    rng = np.random.default_rng(1)
    pattern, row_cov, col_cov, truth = made("graph and features", shape, rng, 9)
    product = gram.dense_product(pattern, row_cov.dense(), col_cov.dense())
    V = rng.normal(size=(pattern.size, 2))
    np.testing.assert_allclose(product(V), truth @ V, atol=1e-12)
