"""Every compiled kernel beside its plain twin, and the pattern's products beside dense ones."""

import numpy as np
import pytest

from sidelight.problem import Pattern, kernels

SHAPE = (5, 3)
PATTERNS = {
    "empty rows and columns": [(0, 2), (3, 0), (3, 2)],
    "one entry": [(4, 1)],
    "nothing": np.zeros((0, 2), int),
    "duplicates": [(1, 1), (4, 0), (1, 1), (0, 2), (1, 1)],
    "full": np.argwhere(np.ones(SHAPE)),
}
DTYPES = {np.float64: 1e-14, np.float32: 2e-6}

patterns = pytest.mark.parametrize("pairs", PATTERNS.values(), ids=PATTERNS)
dtypes = pytest.mark.parametrize("dtype", DTYPES)


class Table:
    """A pattern with values and factors on it; ``dense`` writes values out."""

    def __init__(self, pairs, shape=SHAPE, rank=4, dtype=np.float64):
        rng = np.random.default_rng(1)
        self.pattern, self.shape = Pattern(np.asarray(pairs), shape), shape
        self.weights, self.y, self.e = rng.uniform(0.5, 2, (3, len(pairs))).astype(dtype)
        self.P, self.dP = rng.normal(size=(2, shape[0], rank)).astype(dtype)
        self.Q, self.dQ = rng.normal(size=(2, shape[1], rank)).astype(dtype)

    def dense(self, values):
        table = np.zeros(self.shape)
        np.add.at(table, (self.pattern.rows, self.pattern.cols), values)
        return table

    def picked(self, table):
        return table[self.pattern.rows, self.pattern.cols]

    @property
    def by_row(self):
        starts = np.searchsorted(self.pattern.rows, np.arange(self.shape[0] + 1))
        return starts, self.pattern.cols

    @property
    def by_column(self):
        order = np.argsort(self.pattern.cols, kind="stable")
        starts = np.searchsorted(self.pattern.cols[order], np.arange(self.shape[1] + 1))
        return starts, self.pattern.rows[order], order


def close(made, truth, dtype=np.float64):
    scale = np.max(np.abs(truth), initial=1.0)
    np.testing.assert_allclose(made, truth, rtol=0, atol=DTYPES[dtype] * scale)


def unset(shape, dtype):
    """Return what a kernel must overwrite."""
    return np.full(shape, np.pi * 1e6, dtype)


@patterns
@dtypes
def test_sampled_product_equals_its_twin(pairs, dtype):
    t = Table(pairs, dtype=dtype)
    out = unset(len(pairs), dtype)
    kernels.sampled_product(0, 5, *t.by_row, t.P, t.Q, out)
    close(out, kernels.sampled_product_plain(*t.by_row, t.P, t.Q), dtype)


@patterns
@dtypes
def test_sparse_product_equals_its_twin(pairs, dtype):
    t = Table(pairs, dtype=dtype)
    out = unset(t.Q.shape[:1] + t.P.shape[1:], dtype)
    kernels.sparse_product(0, 3, *t.by_column, t.e, t.P, out)
    close(out, kernels.sparse_product_plain(*t.by_column, t.e, t.P), dtype)


@patterns
@dtypes
def test_residual_product_equals_its_twin(pairs, dtype):
    t = Table(pairs, dtype=dtype)
    residual, out = unset(len(pairs), dtype), unset(t.P.shape, dtype)
    kernels.residual_product(0, 5, *t.by_row, t.weights, t.y, t.P, t.Q, residual, out)
    twin = kernels.residual_product_plain(*t.by_row, t.weights, t.y, t.P, t.Q)
    close(residual, twin[0], dtype)
    close(out, twin[1], dtype)


@patterns
@dtypes
def test_curvature_product_equals_its_twin(pairs, dtype):
    t = Table(pairs, dtype=dtype)
    change, out = unset(len(pairs), dtype), unset(t.P.shape, dtype)
    given = (*t.by_row, t.weights, t.e, t.P, t.Q, t.dP, t.dQ)
    kernels.curvature_product(0, 5, *given, change, out)
    twin = kernels.curvature_product_plain(*given)
    close(change, twin[0], dtype)
    close(out, twin[1], dtype)


@patterns
@dtypes
def test_transposed_curvature_product_equals_its_twin(pairs, dtype):
    t = Table(pairs, dtype=dtype)
    out = unset(t.Q.shape, dtype)
    given = (*t.by_column, t.e, t.y, t.P, t.dP)
    kernels.curvature_product_t(0, 3, *given, out)
    close(out, kernels.curvature_product_t_plain(*given), dtype)


@patterns
@dtypes
def test_a_kernel_leaves_the_rows_of_others_alone(pairs, dtype):
    t = Table(pairs, dtype=dtype)
    out = unset(t.P.shape, dtype)
    order = np.arange(len(pairs))
    kernels.sparse_product(1, 4, *t.by_row, order, t.e, t.Q, out)
    whole = kernels.sparse_product_plain(*t.by_row, order, t.e, t.Q)
    close(out[1:4], whole[1:4], dtype)
    assert np.all(out[[0, 4]] == unset((), dtype))


def large():
    rng = np.random.default_rng(0)
    pairs = np.column_stack([rng.integers(0, 300, 9_000), rng.integers(0, 200, 9_000)])
    return Table(pairs, (300, 200), rank=30)  # 270,000 multiply-adds


TABLES = {name: (lambda p=p: Table(p)) for name, p in PATTERNS.items()} | {"large": large}


@pytest.fixture(params=TABLES.values(), ids=TABLES)
def table(request, monkeypatch):
    monkeypatch.setenv("SIDELIGHT_THREADS", "3")
    return request.param()


def test_products_equal_the_dense_ones(table):
    t = table
    close(t.pattern.product(t.P, t.Q), t.picked(t.P @ t.Q.T))
    close(t.pattern.times(t.e, t.Q), t.dense(t.e) @ t.Q)
    close(t.pattern.times_t(t.e, t.P), t.dense(t.e).T @ t.P)


def test_products_take_views_that_are_not_contiguous(table):
    t = table
    close(t.pattern.product(t.P[:, ::2], t.Q[:, ::2]), t.picked(t.P[:, ::2] @ t.Q[:, ::2].T))
    close(t.pattern.times(t.e, t.Q[:, ::2]), t.dense(t.e) @ t.Q[:, ::2])


def test_residual_equals_the_dense_one(table):
    t = table
    e, by_row = t.pattern.residual(t.weights, t.y, t.P, t.Q)
    truth = t.weights * (t.picked(t.P @ t.Q.T) - t.y)
    close(e, truth)
    close(by_row, t.dense(truth) @ t.Q)


def test_curvature_equals_the_dense_one(table):
    t = table
    by_row, by_column = t.pattern.curvature(t.weights, t.e, t.P, t.Q, t.dP, t.dQ)
    change = t.dense(t.weights * t.picked(t.dP @ t.Q.T + t.P @ t.dQ.T))
    close(by_row, change @ t.Q + t.dense(t.e) @ t.dQ)
    close(by_column, change.T @ t.P + t.dense(t.e).T @ t.dP)


def test_order_leads_from_the_callers_order_to_the_rows(table):
    order = table.pattern.order
    assert sorted(order) == list(range(table.pattern.size))
    assert np.all(np.diff(table.pattern.rows) >= 0)


@patterns
def test_outer_products(pairs):
    t = Table(pairs)
    values = np.random.default_rng(2).normal(size=(len(pairs), 2))
    made = t.pattern.outer(values, t.P)
    truth = np.zeros((t.P.shape[1], SHAPE[1], 2))
    for j in range(2):
        truth[:, :, j] = (t.dense(values[:, j]).T @ t.P).T
    close(made, truth)
    starts, rows, order = t.by_column
    close(made, kernels.outer_product_plain(starts, rows, order, values, t.P))
