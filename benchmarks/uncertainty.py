"""How right the intervals are, and what standard deviations cost at real sizes.

    SIDELIGHT_DATA=DIR python -m benchmarks.uncertainty [NAME ...]

Prints one Markdown row for each part, each measured in its own process; without names, all parts.

- *sbc*: tables from the prior; the truth's ranks among the posterior's draws, against the 95% band
  of true posteriors (below 1 is inside), and the share of the true values that the latent 90%
  intervals cover.
- *shrinkage*: tables from the prior, and 90% intervals of a mean that the nuclear norm shrinks.
- *conformal*: a fifth of a set's ratings is held out as test, a fifth of the rest calibrates,
  ``lam`` is chosen on an inner split of what is left. 90% intervals; the postdata's are those of
  500 test entries, with their seconds.
- *medline*: standard deviations of the best genes of some diseases, the fit not counted: neither
  its seconds, nor its memory, for it has a process of its own. ``SIDELIGHT_MODEL`` names a file
  that keeps the fitted model, or has it already.

Coverage has its standard error: over tables or splits, or over the rows of the test entries.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

import sidelight as sl
from benchmarks.parts import run
from sidelight.evaluation import coverage, known_entries, rmse

Array = NDArray[Any]

COLUMNS = ("conformal", "postdata", "found", "seconds")
LEVEL = 0.9
SHAPE, NEW, SIGMA2 = (30, 20), 2, 0.5  # of the tables that sbc draws
TABLES, DRAWS, SELECTIONS, CELLS = 1000, 99, 1000, 6
SHRUNK = (60, 40)  # of the tables that shrinkage draws
SAMPLE = 500  # test entries with a standard deviation
TAUS, NOISE = (20.0, 14.0, 10.0, 7.0), 0.1  # of the ratings' models: lam is tau / noise
TOP = 20


def graph(size: int, links: float, rng: np.random.Generator) -> Array:
    """Draw a graph with so many links at a node on average."""
    upper = np.triu(rng.random((size, size)) < links / size, k=1).astype(float)
    return np.asarray(upper + upper.T)


def told(numbers: Array, error: float | None = None, digits: int = 4) -> str:
    """Say a mean with its standard error, that of independent numbers where none is given."""
    spread = np.std(numbers, ddof=1) / np.sqrt(len(numbers)) if error is None else error
    return f"{np.mean(numbers):.{digits}f} ± {spread:.{digits}f}"


def by_rows(covered: Array, rows: Array) -> str:
    """Say a share of entries with the standard error that dependence within rows leaves."""
    sums = np.bincount(np.unique(rows, return_inverse=True)[1], covered - covered.mean())
    return told(covered, float(np.linalg.norm(sums) / len(covered)), 3)


def sbc() -> list[str]:
    """Rank the truth among the posterior's draws, table after table, new rows included."""
    rng, start = np.random.default_rng(0), time.perf_counter()
    row_cov = sl.Diffusion(graph(SHAPE[0], 4, rng), a=1.5, b=0.1)
    col_cov = sl.Diffusion(graph(SHAPE[1], 4, rng), a=1.0, b=0.2)
    links = (rng.random((NEW, SHAPE[0])) < 0.15).astype(float)
    cross = row_cov.cross(links)
    beside = cross.apply(np.eye(SHAPE[0]))
    G = np.linalg.cholesky(np.block([[row_cov.dense(), beside.T], [beside, cross.block()]]))
    H = np.linalg.cholesky(col_cov.dense())
    cells = np.argwhere(np.ones((len(G), len(H))))
    old = np.flatnonzero(cells[:, 0] < SHAPE[0])
    asked = np.r_[rng.choice(old, CELLS, replace=False), len(cells) - 1 - np.arange(NEW)]
    ranks, covered = [], []
    for _ in range(TABLES):
        z = (G @ rng.standard_normal((len(G), len(H))) @ H.T).ravel()
        seen = old[rng.random(len(old)) < 0.4]
        y = z[seen] + np.sqrt(SIGMA2) * rng.standard_normal(len(seen))
        model = sl.MVGP(row_cov, col_cov, sigma2=SIGMA2, tol=1e-10).fit(cells[seen], y)
        found = model.postdata_
        drawn = np.vstack([z, found.sample(cells, DRAWS, rng, new_rows=links)])
        misfit = np.sum((drawn[:, seen] - y) ** 2, axis=1)  # tells who ignores the entries
        numbers = np.column_stack([drawn[:, asked], drawn.mean(axis=1), misfit])
        ranks.append(numbers.argsort(axis=0).argsort(axis=0))
        ends = found.interval(cells, LEVEL, noise=False, new_rows=links)
        covered.append(coverage(z, *ends).mean())
    stray = excursion(np.array(ranks), rng)
    text = f"{TABLES:,} tables, {DRAWS} draws: largest excursion {stray:.2f} of the band"
    return ["", told(np.array(covered)), text, f"{time.perf_counter() - start:.0f}"]


def excursion(ranks: Array, rng: np.random.Generator) -> float:
    """How far the ranks of the first stray from uniform, in units of the band.

    The band is that of Säilynoja, Bürkner and Vehtari (2022), for all ranks and all quantities at
    once: its level is found by letting some draw of each table play the truth, which keeps the
    dependence between quantities. ``ranks`` are tables by the truth and its draws by quantities.
    """
    tables, size, _ = ranks.shape
    at = np.arange(1, size)[:, None]
    law, middle, counts = binom(tables, at / size), tables * at / size, np.arange(tables + 1)
    tail = np.minimum(law.cdf(counts), law.sf(counts - 1))

    def below(chosen: Array) -> Array:
        return np.asarray(np.sum(ranks[np.arange(tables), None, chosen] < at, axis=0))

    selections = rng.integers(size, size=(SELECTIONS, tables))
    edge = np.quantile([tail[at - 1, below(each)].min() for each in selections], 0.05)
    edge *= 1 - 1e-9  # the edge itself is inside
    off = below(np.zeros(tables, dtype=int)) - middle
    outside = np.where(off > 0, law.isf(edge) + 1, law.ppf(edge) - 1)
    return float(np.max(off / (outside - middle)))


def shrinkage(lam: float, tables: int = 100) -> list[str]:
    """Cover observations of cells that were neither fitted nor calibrated on, and true values."""
    start, found = time.perf_counter(), []
    m, n = SHRUNK
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        row_cov, col_cov = (_unit(sl.Diffusion(graph(s, 4, rng), 3.0, 0.0)) for s in SHRUNK)
        z = row_cov.root(col_cov.root(rng.standard_normal((n, m))).T).ravel()
        y = z + rng.standard_normal(m * n)
        order = rng.permutation(m * n)
        fitted, held, test = np.split(order, [round(0.4 * m * n), round(0.5 * m * n)])
        cells = np.column_stack(np.divmod(np.arange(m * n), n))
        if lam:
            model = sl.ConstrainedMVGP(row_cov, col_cov, sigma2=1.0, lam=lam)
        else:
            model = sl.MVGP(row_cov, col_cov, sigma2=1.0)
        model.fit(cells[fitted], y[fitted]).calibrate(cells[held], y[held])
        pairs = cells[test]
        ends = [model.predict_interval(pairs, LEVEL, kind) for kind in ("conformal", "postdata")]
        latent = model.postdata_.interval(pairs, LEVEL, noise=False)
        shares = [coverage(y[test], *each).mean() for each in ends]
        found.append([*shares, coverage(z[test], *latent).mean()])
    held_out, own, true = (told(each, digits=3) for each in np.transpose(found))
    text = f"{tables} tables, postdata of true values {true}"
    return [held_out, own, text, f"{time.perf_counter() - start:.0f}"]


def _unit(cov: sl.Covariance) -> sl.Covariance:
    """Scale to a mean variance of 1."""
    return cov * (1 / float(cov.diagonal().mean()))


def conformal(name: str, splits: int = 1) -> list[str]:
    """Cover the test entries; of one split say more, of several the coverage over splits."""
    start = time.perf_counter()
    found = [_covered(name, seed) for seed in range(splits)]
    if splits == 1:
        return [*found[0][1:], f"{time.perf_counter() - start:.0f}"]
    shares = np.array([share for share, *_ in found])
    text = f"over {splits} splits, conformal {shares[:, 0].min():.4f} to {shares[:, 0].max():.4f}"
    return [*map(told, shares.T), text, f"{time.perf_counter() - start:.0f}"]


def _covered(name: str, seed: int) -> tuple[Array, str, str, str]:
    """Split, choose, fit, calibrate and cover; return both shares, and the cells of a row."""
    data = sl.read_dataset(Path(os.environ["SIDELIGHT_DATA"]) / name)
    rest, test = next(known_entries(data.pairs, 5, seed))
    part, held = next(known_entries(data.pairs[rest], 5, seed))
    fitted, held = _some(data, rest[part]), rest[held]
    model = _model(data, _chosen(fitted)).fit(fitted)
    model.calibrate(data.pairs[held], data.values[held])
    pairs, y = data.pairs[test], data.values[test]
    low, high = model.predict_interval(pairs, LEVEL, "conformal")
    assert model.calibration_ is not None
    inside, groups = coverage(y, low, high), model.calibration_.groups
    codes = groups.of(pairs[:, 0])
    each = [
        f"{label}: {by_rows(inside[codes == code], pairs[codes == code, 0])}"
        for code, label in enumerate(groups.labels)
        if (codes == code).any()
    ]
    some = np.random.default_rng(seed).choice(len(y), SAMPLE, replace=False)
    start = time.perf_counter()
    ends = model.predict_interval(pairs[some], LEVEL, "postdata")
    seconds, beside = time.perf_counter() - start, coverage(y[some], *ends)
    error = rmse(y, model.predict(pairs))
    return (
        np.array([inside.mean(), beside.mean()]),
        f"{by_rows(inside, pairs[:, 0])}, width {np.mean(high - low):.2f}",
        f"{by_rows(beside, pairs[some, 0])}, width {np.mean(ends[1] - ends[0]):.2f},"
        f" {seconds:.1f} s",
        f"lam {model.lam:g}, RMSE {error:.4f}; " + "; ".join(each),
    )


def _model(data: sl.Dataset, lam: float) -> sl.ConstrainedMVGP:
    sides = sl.covariances(data)
    return sl.ConstrainedMVGP(*sides, sigma2=NOISE, lam=lam, tol=1e-3, mean="biases")


def _some(data: sl.Dataset, entries: Array) -> sl.Dataset:
    return data.with_entries(data.pairs[entries], data.values[entries])


def _chosen(fitted: sl.Dataset) -> float:
    """Choose ``lam`` on an inner split."""
    train, test = next(known_entries(fitted.pairs, 5, 1))
    lams = [tau / NOISE for tau in TAUS]
    path = sl.regularization_path(_model(fitted, lams[0]), _some(fitted, train), lams=lams)
    pairs, values = fitted.pairs[test], fitted.values[test]
    return min((rmse(values, model.predict(pairs)), model.lam) for model in path)[1]


def medline(count: int, precision: float) -> list[str]:
    """Find the standard deviations of the best genes of some diseases with known genes."""
    data = _medline()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(os.environ.get("SIDELIGHT_MODEL", f"{folder}/medline.model"))
        if not path.exists():
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                pool.submit(_fit_medline, path).result()
        model = sl.load(path).models_[0]
    rows = np.random.default_rng(0).choice(np.unique(data.pairs[:, 0]), 10, replace=False)[:count]
    best = [model.rank(row, TOP, intervals="none").cols for row in rows]
    postdata, seconds, found = model.postdata(precision), [], []
    for row, cols in zip(rows, best, strict=True):
        start = time.perf_counter()
        found.append(postdata.std(np.column_stack([np.full(len(cols), row), cols])))
        seconds.append(time.perf_counter() - start)
    text = (
        f"{len(model.pairs_):,} entries, {count} x {TOP} pairs at precision {precision:g}:"
        f" sd {np.min(found):.4f} to {np.max(found):.4f}, residual {postdata.residual:.1e},"
        f" error <= {postdata.error:.1e}, {max(seconds):.0f} s at most"
    )
    return ["", "", text, f"{sum(seconds):.1f}"]


def _medline() -> sl.Dataset:
    folder = Path(os.environ["SIDELIGHT_DATA"]) / "medline"
    return sl.read_dataset(folder, entries="entries_sparse")


def _fit_medline(path: Path) -> None:
    data = _medline()
    model = sl.ConstrainedMVGP(*sl.covariances(data), sigma2=1.0, lam=10.0, tol=1e-3)
    sl.Bagged(model, n=1).fit(data).save(path)


PARTS: dict[str, Callable[[], list[str]]] = {
    "sbc": sbc,
    **{f"shrinkage, lam={lam:g}": partial(shrinkage, lam) for lam in (0.0, 5.0, 10.0, 20.0)},
    "conformal, ml100k": lambda: conformal("ml100k"),
    "conformal, ml100k, five splits": lambda: conformal("ml100k", 5),
    "conformal, epinions": lambda: conformal("epinions"),
    "medline, deviations": lambda: medline(10, 1e-6),
    "medline, deviations, closer": lambda: medline(1, 1e-12),
}


if __name__ == "__main__":
    run("benchmarks.uncertainty", PARTS, COLUMNS)
