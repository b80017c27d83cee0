"""An explanation is an identity: its parts add up, and where entries are weights it is dense."""

import numpy as np
import pytest

import sidelight as sl
from sidelight.posterior import factor_support, mean_support
from sidelight.problem import Factors, Problem

ROWS, COLS = 5, 3
RNG = np.random.default_rng(5)
RING = np.roll(np.eye(ROWS), 1, axis=0) + np.roll(np.eye(ROWS), -1, axis=0)
X = RNG.normal(size=(COLS, 2))
CELLS = np.argwhere(np.ones((ROWS, COLS)))
PAIRS = np.array([[0, 0], [0, 2], [1, 1], [2, 0], [2, 1], [4, 2], [2, 1], [0, 0]])  # two twice
Y = RNG.normal(size=len(PAIRS))
WEIGHTS = RNG.uniform(0.5, 2, size=len(PAIRS))
TRANSPOSED = PAIRS[:, ::-1]


def sides():
    return sl.Diffusion(RING, 1.2, 0.4), sl.Features(X, "rbf")


def added(support):
    return support.amounts.sum() + (support.elsewhere or 0.0) + support.untraced


def listed(told):
    """Return the amounts by (row, column, value)."""
    return {(r.row.id, r.col.id, r.value): r.amount for r in told.entries}


def test_entries_of_the_process_are_the_dense_product():
    model = sl.MVGP(*sides(), sigma2=0.3, tol=1e-12).fit(PAIRS, Y, WEIGHTS)
    C, D = (side.dense() for side in sides())
    K = np.array([[C[m, i] * D[n, j] for i, j in PAIRS] for m, n in PAIRS])
    alpha = np.linalg.solve(K + np.diag(0.3 / WEIGHTS), Y)
    for m, n in CELLS:
        amounts = [a * C[m, i] * D[j, n] for a, (i, j) in zip(alpha, PAIRS, strict=True)]
        found = listed(model.explain(m, n, len(PAIRS)))
        expected = {(str(i), str(j), y): a for (i, j), y, a in zip(PAIRS, Y, amounts, strict=True)}
        assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: sl.ConstrainedMVGP(*sides(), sigma2=0.2, lam=0.4, mean="biases"),
        lambda: sl.ConstrainedMVGP(*sides(), sigma2=0.2, lam=0.4, tol=0.9),
        lambda: sl.ConstrainedMVGP(*sides(), sigma2=0.2, lam=0.4, unobserved_weight=0.3),
        lambda: sl.TraceGP(*sides(), sigma2=0.2, lam=0.4, refit=True),
        lambda: sl.TraceGP(*sides(), sigma2=0.2, lam=0.4, refit=True, unobserved_weight=0.3),
        lambda: sl.KPMF(*sides(), n_factors=2, sigma2=0.2, tol=0.5, mean="graph-biases"),
        lambda: sl.MVGP(*sides(), sigma2=0.2, mean="graph-biases"),
    ],
    ids=["biases", "early", "whole", "refit", "refit whole", "kpmf", "mvgp"],
)
def test_parts_add_up(make, weights):
    model = make().fit(PAIRS, Y, weights)
    new = {"new_rows": RING[[3]], "new_cols": X[[1]] + 0.1}
    cells = [*CELLS, (ROWS, 1), (3, COLS), (ROWS, COLS)]
    for m, n in cells:
        told = model.explain(m, n, len(PAIRS), **new)
        assert "not traced" not in told.parts
        assert sum(told.parts.values()) == pytest.approx(model.predict([[m, n]], **new)[0], 1e-8)
        assert sum(r.amount for r in told.entries) == pytest.approx(told.parts["entries"], 1e-8)
        assert sum(r.share for r in told.entries) == pytest.approx(1)


def test_at_the_optimum_the_factors_amounts_are_the_spectrums():
    """There ``K = diag(lam + h s)``, so that an amount is known without it."""
    lam = 0.4
    model = sl.ConstrainedMVGP(*sides(), sigma2=0.2, lam=lam, tol=1e-12).fit(PAIRS, Y)
    s, P, Q = model.singular_values_, model.row_factors_, model.col_factors_
    assert len(s) > 1
    alpha, (i, j) = (Y - model.predict(PAIRS)) / 0.2, PAIRS.T
    by_row, by_col = (P[i] / (lam + s)) @ P[3], (Q[j] / s) @ Q[1]
    row_first, col_first = (P[i] / s) @ P[3], (Q[j] / (lam + s)) @ Q[1]
    amounts = alpha * (by_row * by_col + row_first * col_first) / 2
    found = model._support(3, 1, model._rows(), model._cols()).amounts
    np.testing.assert_allclose(found, amounts, atol=1e-5)


def test_a_vanishing_lam_leaves_the_processs_amounts():
    row_cov, col_cov = sl.Diffusion(RING, 1.2, 0.4), sl.Features(RNG.normal(size=(ROWS, 3)), "rbf")
    pairs = np.argwhere(np.ones((ROWS, ROWS)))[::2]
    y = RNG.normal(size=len(pairs))
    constrained = sl.ConstrainedMVGP(row_cov, col_cov, sigma2=0.2, lam=1e-7, tol=1e-10)
    assert len(constrained.fit(pairs, y).singular_values_) == ROWS  # they span both axes
    process = sl.MVGP(row_cov, col_cov, sigma2=0.2, tol=1e-12).fit(pairs, y)
    found, expected = (listed(m.explain(3, 1, len(pairs))) for m in (constrained, process))
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("unobserved", [0.0, 0.3])
def test_a_transposed_table_is_explained_alike(unobserved):
    settings = {"sigma2": 0.2, "lam": 0.4, "unobserved_weight": unobserved, "tol": 0.5}
    row_cov, col_cov = sides()
    model = sl.ConstrainedMVGP(row_cov, col_cov, **settings).fit(PAIRS, Y)
    problem = model._problem(PAIRS, Y, WEIGHTS)
    turned = Problem(TRANSPOSED, Y, WEIGHTS / 0.2, col_cov, row_cov, w0=unobserved)
    a, b = RNG.normal(size=(ROWS, 2)), RNG.normal(size=(COLS, 2))  # far from the optimum
    factors = Factors.make(a, b, row_cov, col_cov)
    other = Factors.make(b, a, col_cov, row_cov)
    p, q, s = factors.p[3], factors.q[1], np.array([2.0, 0.5])
    first = factor_support(PAIRS, Y, problem, factors, s, p, q)
    second = factor_support(TRANSPOSED, Y, turned, other, s, q, p)
    assert added(first) == pytest.approx(p @ q, abs=1e-12)
    assert first.untraced == 0
    np.testing.assert_allclose(first.amounts, second.amounts, atol=1e-12)
    np.testing.assert_allclose(first.row_weights, second.col_weights, atol=1e-12)


def test_what_no_entry_brings_is_said():
    row_cov, col_cov = sl.Identity(ROWS), sl.Identity(COLS)
    problem = Problem(PAIRS, Y, WEIGHTS, row_cov, col_cov)
    a, b = np.zeros((ROWS, 2)), np.zeros((COLS, 2))
    a[0, 0] = b[0, 0] = 1.0
    a[3, 1] = b[1, 1] = 1.0  # row 3 has no entry: nothing holds this factor up
    factors = Factors.make(a, b, row_cov, col_cov)
    found = factor_support(PAIRS, Y, problem, factors, np.ones(2), factors.p[3], factors.q[1])
    assert found.total == found.untraced == 1.0
    assert not found.amounts.any()


def test_a_mean_of_rank_nought():
    model = sl.ConstrainedMVGP(*sides(), lam=1e3, mean="global").fit(PAIRS, Y)
    assert len(model.singular_values_) == 0
    told = model.explain(3, 1)
    assert told.parts == {"constant": pytest.approx(Y.mean()), "entries": 0.0}
    assert told.entries == told.rows.items == ()
    assert told.rest_count == len(PAIRS)


def test_a_row_without_entries_is_explained_by_its_neighbours():
    model = sl.MVGP(sl.Diffusion(RING, 1.0, 0.0), sl.Identity(COLS)).fit([[2, 1]], [1.0])
    told = model.explain(3, 1)
    assert [reason.row.id for reason in told.entries] == ["2"]
    assert told.rows.items[0].id == "2"
    assert model.explain(3, 0).entries == ()


def test_the_top_are_the_largest_and_the_rest_is_counted():
    model = sl.MVGP(*sides(), sigma2=0.3).fit(PAIRS, Y)
    everything, some = model.explain(1, 0, 99), model.explain(1, 0, 3)
    sizes = [abs(reason.amount) for reason in everything.entries]
    assert sizes == sorted(sizes, reverse=True)
    assert some.entries == everything.entries[:3]
    assert (some.rest_count, everything.rest_count) == (len(PAIRS) - 3, 0)
    assert some.rest == pytest.approx(sum(r.amount for r in everything.entries[3:]))
    assert model.explain(1, 0, 0).rest == pytest.approx(model.predict([[1, 0]])[0])


def test_ids_names_and_records():
    data = sl.Dataset(
        tuple("abcde"), ("x", "y", "z"), PAIRS[:6], Y[:6], rows=sl.Side(names=tuple("ABCDE"))
    )
    model = sl.MVGP(*sides()).fit(data)
    told = model.explain("d", "y", 2)
    assert told == model.explain(3, 1, 2)
    assert (told.row.id, told.row.name, told.col.id, told.col.name) == ("d", "D", "y", None)
    record = next(iter(told))
    assert list(record) == ["row", "row_name", "col", "col_name", "value", "amount", "share"]
    cell = data.row_index(record["row"]), data.col_index(record["col"])
    assert record["value"] == Y[np.flatnonzero((PAIRS[:6] == cell).all(axis=1))[0]]
    assert model.explain(ROWS, 1, new_rows=RING[[3]]).row.id == "new row 0"
    with pytest.raises(sl.InputError, match="there is no column with the id 'w'"):
        model.explain("d", "w")
    with pytest.raises(sl.InputError, match="column 3 at position 0 is not in"):
        model.explain(0, COLS)
    with pytest.raises(sl.InputError, match=r"1\.5 is not a column number"):
        model.explain(0, 1.5)
    with pytest.raises(sl.InputError, match="top is -1"):
        model.explain(0, 0, -1)


def test_a_bag_is_the_mean_of_its_models_by_pair():
    positives = PAIRS[:6]
    bag = sl.Bagged(sl.MVGP(*sides(), mean="global"), sl.Negatives(seed=2), n=3).fit(positives)
    told = bag.explain(3, 1, 99)
    one = [model.explain(3, 1, 99) for model in bag.models_]
    expected: dict[tuple[str, str], float] = {}
    for each in one:
        for reason in each.entries:
            cell = reason.row.id, reason.col.id
            expected[cell] = expected.get(cell, 0.0) + reason.amount / 3
    assert {(r.row.id, r.col.id): r.amount for r in told.entries} == pytest.approx(expected)
    assert told.prediction == pytest.approx(np.mean([each.prediction for each in one]))
    assert {r.value for r in told.entries} == {0.0, 1.0}
    support = bag.models_[0]._support(3, 1, bag._rows(), bag._cols())
    alone = mean_support([support])
    assert alone.amounts.sum() == pytest.approx(support.amounts.sum())


def test_propagation_is_explained_by_its_entries():
    model = sl.Propagation(sl.Diffusion(RING), sl.Identity(COLS)).fit(PAIRS[:6])
    walk = sl.RandomWalk(RING, 0.8).dense()
    found = {(r.row.id, r.col.id): r.amount for r in model.explain(3, 1, 99).entries}
    assert found == pytest.approx({("1", "1"): walk[3, 1], ("2", "1"): walk[3, 2]})
