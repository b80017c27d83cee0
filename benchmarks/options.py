"""What refits, whole-matrix losses and the pair machine do at real sizes.

    SIDELIGHT_DATA=DIR python -m benchmarks.options [NAME ...]

Prints one Markdown row for each part, each measured in its own process; without names, all parts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sidelight as sl
from benchmarks.parts import run
from sidelight.evaluation import known_entries, measure_rows, rmse

COLUMNS = ("found", "status", "rank", "seconds")
SIZE, RANK, NOISE, KNOWN, HELD = 5000, 10, 0.3, 200_000, 50_000


def synthetic(kind: Any, sigma2: float, tau: float, refit: bool) -> list[str]:
    """Find a planted mean: the error is against the truth without noise, elsewhere."""
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((2, SIZE, RANK)) * 10**-0.25
    cells = rng.choice(SIZE**2, KNOWN + HELD, replace=False)
    pairs = np.column_stack(np.divmod(cells, SIZE))
    truth = np.einsum("lr,lr->l", U[pairs[:, 0]], V[pairs[:, 1]])
    noisy = truth[:KNOWN] + NOISE * rng.standard_normal(KNOWN)
    sides = sl.Identity(SIZE), sl.Identity(SIZE)
    start = time.perf_counter()
    model = kind(*sides, sigma2=sigma2, lam=tau / sigma2, refit=refit).fit(pairs[:KNOWN], noisy)
    seconds = time.perf_counter() - start
    error = rmse(truth[KNOWN:], model.predict(pairs[KNOWN:]))
    proof, rank = model.certificate_, len(model.singular_values_)
    return [f"RMSE {error:.4f}", proof.status, f"{proof.rank} -> {rank}", f"{seconds:.1f}"]


def medline(make: Callable[[Any, Any], Any], graphs: bool = False) -> list[str]:
    """Rank the withheld fifth of the sparse set's entries."""
    folder = Path(os.environ["SIDELIGHT_DATA"]) / "medline"
    data = sl.read_dataset(folder, entries="entries_sparse")
    train, test = next(known_entries(data.pairs, 5, 0))
    sides = sl.covariances(data) if graphs else [sl.Identity(size) for size in data.shape]
    start = time.perf_counter()
    model = make(*sides).fit(data.pairs[train])
    seconds = time.perf_counter() - start
    known, hidden = data.pairs[train], data.pairs[test]
    recall = measure_rows(model.scores, hidden, known, data.shape, (20,)).recall.mean()
    proof = model.certificate_
    told = ["", ""] if proof is None else [proof.status, str(proof.rank)]
    return [f"R@20 {recall:.4f}", *told, f"{seconds:.1f}"]


def machine() -> list[str]:
    """Train ProDiGe on all of the sparse set and as many negatives, with both diffusions."""
    folder = Path(os.environ["SIDELIGHT_DATA"]) / "medline"
    data = sl.read_dataset(folder, entries="entries_sparse")
    model = sl.ProDiGe(*sl.covariances(data), C=1.0)
    bag = sl.Bagged(model, sl.Negatives(value=-1.0), n=1).fit(data.pairs)
    proof, count = bag.certificate_, len(bag.models_[0].pairs_)
    found = f"{count:,} pairs, gap {proof.relative_gap:.1e}"
    return [found, proof.status, "", f"{proof.seconds:.1f}"]


def _constrained(lam: float, weight: float) -> Callable[[Any, Any], Any]:
    def make(row_cov: Any, col_cov: Any) -> Any:
        return sl.ConstrainedMVGP(row_cov, col_cov, lam=lam, unobserved_weight=weight, tol=1e-3)

    return make


def _sampled(lam: float, samples: int) -> Callable[[Any, Any], Any]:
    made = _constrained(lam, 0.0)
    return lambda row_cov, col_cov: sl.Bagged(made(row_cov, col_cov), n=samples)


PARTS: dict[str, Callable[[], list[str]]] = {
    "synthetic, trace, tau=12": lambda: synthetic(sl.TraceGP, 1.0, 12.0, refit=False),
    "synthetic, trace, tau=12, refit": lambda: synthetic(sl.TraceGP, 1.0, 12.0, refit=True),
    "synthetic, constrained, tau=12, refit": lambda: synthetic(
        sl.ConstrainedMVGP, 0.01, 12.0, refit=True
    ),
    "synthetic, constrained, tau=9, refit": lambda: synthetic(
        sl.ConstrainedMVGP, 0.01, 9.0, refit=True
    ),
    "medline, popularity": lambda: medline(sl.Popularity),
    **{
        f"medline, identity, lam={lam:g}, {how}": lambda make=make: medline(make)
        for lam in (10.0, 3.0)
        for how, make in (
            ("every unobserved cell, 0.1", _constrained(lam, 0.1)),
            ("one set of sampled zeros", _sampled(lam, 1)),
        )
    },
    "medline, identity, lam=10, five sets of sampled zeros": lambda: medline(_sampled(10.0, 5)),
    "medline, ProDiGe, both diffusions": machine,
}


if __name__ == "__main__":
    run("benchmarks.options", PARTS, COLUMNS)
