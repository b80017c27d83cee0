"""Certified fits at real sizes: rank, gap, seconds and peak memory of each, in its own process.

    SIDELIGHT_DATA=DIR python -m benchmarks.core [NAME ...]

Prints one Markdown row for each part; without names, all parts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sidelight as sl
from benchmarks.parts import run
from sidelight.data import sample_unknown

COLUMNS = ("status", "relative gap", "rank", "seconds")


def _data(name: str, **options: str) -> sl.Dataset:
    return sl.read_dataset(Path(os.environ["SIDELIGHT_DATA"]) / name, **options)


def _row(model: sl.ConstrainedMVGP | sl.TraceGP) -> list[str]:
    proof = model.certificate_
    return [proof.status, f"{proof.relative_gap:.1e}", str(proof.rank), f"{proof.seconds:.1f}"]


def epinions(tau: float, graph: bool, kind: type = sl.ConstrainedMVGP) -> list[str]:
    """Fit ratings less their mean at sigma2 = 0.01 and ``sigma2 lam = tau``."""
    data = _data("epinions")
    rows, cols = sl.covariances(data)
    rows = rows if graph else sl.Identity(data.shape[0])
    return _row(kind(rows, cols, sigma2=0.01, lam=tau / 0.01, mean="global").fit(data))


def medline(lam: float) -> list[str]:
    """Fit the sparse set with as many sampled zeros, both diffusions, sigma2 = 1."""
    data = _data("medline", entries="entries_sparse")
    zeros = sample_unknown(data.pairs, data.shape, len(data.pairs), seed=0)
    pairs = np.vstack([data.pairs, zeros])
    y = np.repeat([1.0, 0.0], len(zeros))
    return _row(sl.ConstrainedMVGP(*sl.covariances(data), sigma2=1.0, lam=lam).fit(pairs, y))


def million() -> list[str]:
    """Apply the root of a Diffusion on a million nodes with ten million links to 16 vectors."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 10**6, (2, 10_000_000))
    ends = ends[:, ends[0] != ends[1]]
    links = sp.coo_array((np.ones(ends.shape[1]), ends), shape=(10**6, 10**6)).tocsr()
    links = links + links.T
    links.data[:] = 1.0
    cov = sl.Diffusion(links)
    X = rng.standard_normal((10**6, 16))
    cov.root(X[:, :1])  # compiles
    start = time.perf_counter()
    cov.root(X)
    return ["", "", "", f"{time.perf_counter() - start:.1f}"]


PARTS: dict[str, Callable[[], list[str]]] = {
    **{
        f"epinions {cov} tau={tau}": lambda tau=tau, cov=cov: epinions(tau, cov == "diffusion")
        for cov in ("identity", "diffusion")
        for tau in (20, 10, 5)
    },
    "epinions identity tau=10, trace": lambda: epinions(10, False, sl.TraceGP),
    "medline lam=10": lambda: medline(10.0),
    "medline lam=3": lambda: medline(3.0),
    "root, a million nodes": million,
}


if __name__ == "__main__":
    run("benchmarks.core", PARTS, COLUMNS)
