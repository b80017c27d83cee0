"""Covariances from the features of the items."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Covariance, Cross, Index, Operator
from sidelight.covariance.dense import Given, drawn, eigen, factored, limited, root_of
from sidelight.covariance.inputs import columns, frozen, is_sparse, matrix, picked, settled, whole
from sidelight.covariance.slopes import Entries, Product
from sidelight.errors import InputError

_SAMPLE = 1000  # items whose pairwise distances give the median
_LANDMARKS = 500
_ROUNDING = np.finfo(np.float64).eps


class Features(Covariance):
    """Items are alike when their features are.

    ======================  ===================================
    kernel                  covariance of ``x`` and ``z``
    ======================  ===================================
    ``"linear"``            ``x'z``
    ``"cosine"``            ``x'z / (|x| |z|)``, 0 for ``x = 0``
    ``"rbf"``               ``exp(-|x - z|_2^2 / (2 l^2))``
    ``"laplacian"``         ``exp(-|x - z|_1 / l)``
    ======================  ===================================

    Parameters
    ----------
    X
        Features, items by features, dense or sparse. For ``"linear"`` and ``"cosine"`` the
        (scaled) features are the root itself: sparse features stay sparse, at any size.
    kernel
        One of the above.
    length_scale
        ``l``, or ``"median"``: the median distance between 1,000 items (all, if fewer), in the
        kernel's own norm.
    method
        ``"exact"`` (dense for ``"rbf"`` and ``"laplacian"``, at most 20,000 items) or
        ``"nystrom"``: the covariance then *is* ``G G'`` with ``G = K_nz K_zz^(-1/2)`` for
        landmarks ``z`` among the items.
    landmarks
        Number of landmarks; 500 when not given, never more than the items.
    choose
        Landmarks by ``"k-means++"`` or at ``"random"``.
    random_state
        Seed of the sample and of the landmarks.
    """

    def __init__(
        self,
        X: Any,
        kernel: Literal["linear", "cosine", "rbf", "laplacian"] = "linear",
        *,
        length_scale: float | Literal["median"] = 1.0,
        method: Literal["exact", "nystrom"] = "exact",
        landmarks: int | None = None,
        choose: Literal["k-means++", "random"] = "k-means++",
        random_state: int = 0,
    ) -> None:
        _known(kernel, "kernel", ("linear", "cosine", *_NORMS))
        _known(method, "method", ("exact", "nystrom"))
        _known(choose, "choose", ("k-means++", "random"))
        if method == "nystrom" and kernel not in _NORMS:
            raise InputError(
                f'method="nystrom" has no use for the {kernel} kernel, whose root is the features',
                remedy='use method="exact"',
            )
        features, scale, chosen = matrix(X, "features"), 1.0, None
        if kernel in _NORMS:
            scale = _length_scale(features, kernel, length_scale, random_state)
        if method == "nystrom":
            count = _LANDMARKS if landmarks is None else whole(landmarks, "landmarks", least=1)
            chosen = _choose(features, min(count, features.shape[0]), choose, random_state)
        self._build(features, kernel, scale, chosen)

    def _build(self, X: Any, kernel: str, length_scale: float, landmarks: Index | None) -> None:
        self.kernel, self.length_scale = kernel, length_scale
        self.landmarks = None if landmarks is None else frozen(landmarks.copy())
        self._X, self.size = settled(X), int(X.shape[0])
        if kernel in _NORMS and landmarks is None:
            limited(self.size, 'use method="nystrom"')

    @property
    def _dense(self) -> bool:
        """Whether the covariance is a dense kernel rather than its root."""
        return self.kernel in _NORMS and self.landmarks is None

    @cached_property
    def _matrix(self) -> Array:
        return frozen(self._similarity(self._X, self._X))

    @cached_property
    def _root(self) -> Any:
        return frozen(root_of(self._matrix, self._rounding)) if self._dense else self._map(self._X)

    @cached_property
    def _triangle(self) -> Array:
        return factored(self._matrix, self._rounding)

    @property
    def _rounding(self) -> float:
        return self.size * _ROUNDING * float(self._matrix.sum(axis=1).max(initial=0.0))

    @cached_property
    def _whitening(self) -> Array:
        """``K_zz^(-1/2)``, one column for each eigenvalue above rounding."""
        z = self._X[self.landmarks]
        values, vectors = eigen(self._similarity(z, z))
        keep = values > len(values) * _ROUNDING * values[-1]
        return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))

    def _similarity(self, A: Any, B: Any) -> Array:
        """Return the ``"rbf"`` or ``"laplacian"`` kernel of two sets of features."""
        distance = _NORMS[self.kernel](A, B) / self.length_scale
        np.exp(-(distance**2) / 2 if self.kernel == "rbf" else -distance, out=distance)
        if A is B:
            distance = (distance + distance.T) / 2
            np.fill_diagonal(distance, 1.0)
        return distance

    def _similarity_slope(self, A: Any, B: Any) -> Array:
        """Differentiate ``_similarity`` by the length scale."""
        distance = _NORMS[self.kernel](A, B) / self.length_scale
        power = distance**2 if self.kernel == "rbf" else distance
        slope = self._similarity(A, B) * power / self.length_scale
        return np.asarray((slope + slope.T) / 2 if A is B else slope)

    def _map(self, X: Any) -> Any:
        """Return the rows of the root that belong to features ``X``."""
        if self.kernel == "linear":
            return X
        if self.kernel == "cosine":
            return _unit(X)
        return self._similarity(X, self._X[self.landmarks]) @ self._whitening

    @property
    def width(self) -> int:
        """Count the features."""
        return int(self._X.shape[1])

    @property
    def root_size(self) -> int:  # type: ignore[override]
        """Columns of the root."""
        return int(self._root.shape[1])

    def apply(self, X: Array) -> Array:
        """Multiply ``C @ X``."""
        if self._dense:
            return np.asarray(self._matrix @ columns(X, self.size))
        return self.root(self.root_t(X))

    def root(self, X: Array) -> Array:
        """Multiply ``G @ X``."""
        return np.asarray(self._root @ columns(X, self.root_size))

    def root_t(self, X: Array) -> Array:
        """Multiply ``G' @ X``."""
        return np.asarray(self._root.T @ columns(X, self.size))

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return independent draws of ``N(0, C)``, one in each column, to rounding."""
        return drawn(self._triangle, count, rng) if self._dense else super().draw(count, rng)

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the prior variances."""
        index = np.arange(self.size) if index is None else picked(index, self.size)
        return np.ones(len(index)) if self._dense else _square_lengths(self._root[index])

    def rows(self, index: Index) -> Array:
        """Return ``C[index]``."""
        index = picked(index, self.size)
        return self._matrix[index] if self._dense else _product(self._root[index], self._root)

    def cross(self, new: Any) -> Cross:
        """Place new items by their own features.

        Parameters
        ----------
        new
            Features, new items by the features given at construction.
        """
        X = matrix(new, "features", self._X.shape[1])
        if self._dense:
            return Given(self._similarity(X, self._X), self._similarity(X, X), self)
        return Mapped(self._map(X), self._root)

    def parameters(self) -> dict[str, float]:
        """Return the length scale, where the kernel has one."""
        return {"length_scale": self.length_scale} if self.kernel in _NORMS else {}

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return three decades on each side of the present length scale."""
        return {name: (1e-3 * here, 1e3 * here) for name, here in self.parameters().items()}

    def _changed(self, values: dict[str, float]) -> Self:
        scale = _length_scale(self._X, self.kernel, values["length_scale"], 0)
        made = type(self).__new__(type(self))
        made._build(self._X, self.kernel, scale, self.landmarks)
        return made

    def _slope(self, name: str) -> Operator:
        """Return ``dC / dl``, of twice the root's rank with landmarks.

        There ``C = K_nz W`` with ``W = K_zz^+ K_zn``, and ``dC = dK_nz W + W' dK_zn - W' dK_zz W``.
        With ``H`` the whitening and ``G = K_nz H`` the root, ``W = H G'``, so that
        ``dC = P G' + G P'`` with ``P = dK_nz H - G (H' dK_zz H) / 2``.
        """
        if self._dense:
            return Entries(self._similarity_slope(self._X, self._X))
        z, root, H = self._X[self.landmarks], self._root, self._whitening
        among = H.T @ self._similarity_slope(z, z) @ H
        return Product(self._similarity_slope(self._X, z) @ H - root @ among / 2, root)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the kernel, its length scale, the features and the landmarks."""
        settings = {"kind": "Features", "kernel": self.kernel, "length_scale": self.length_scale}
        arrays: dict[str, NDArray[Any]] = {}
        if self.landmarks is not None:
            arrays["landmarks"] = self.landmarks
        if not is_sparse(self._X):
            return settings, {"X": self._X, **arrays}
        settings["width"] = self._X.shape[1]
        sparse = {name: getattr(self._X, name) for name in ("data", "indices", "indptr")}
        return settings, {**sparse, **arrays}

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""
        made = cls.__new__(cls)
        made._build(
            _restored(settings, arrays),
            settings["kernel"],
            float(settings["length_scale"]),
            arrays.get("landmarks"),
        )
        return made

    def __repr__(self) -> str:
        landmarks = "" if self.landmarks is None else f", {len(self.landmarks)} landmarks"
        items = f"{self.size} items x {self.width}"
        return f"{type(self).__name__}({items}, {self.kernel}{landmarks})"


class Mapped(Cross):
    """New items with rows of the root of their own."""

    def __init__(self, new: Any, known: Any) -> None:
        self._new, self._known = new, known
        self.size, self.known = new.shape[0], known.shape[0]

    def apply(self, X: Array) -> Array:
        """Multiply ``G_new G' @ X``."""
        return np.asarray(self._new @ (self._known.T @ columns(X, self.known)))

    def rows(self, index: Index) -> Array:
        """Return ``(G_new G')[index]``."""
        return _product(self._new[picked(index, self.size)], self._known)

    def block(self) -> Array:
        """Return ``G_new G_new'``."""
        return _product(self._new, self._new)

    def diagonal(self) -> Array:
        """Return the prior variances of the new items."""
        return _square_lengths(self._new)

    def loadings(self) -> tuple[Array, Array]:
        """Return the new rows of the root, dense, which leave nothing."""
        new = self._new.toarray() if is_sparse(self._new) else self._new.copy()
        return new, np.zeros((self.size, self.size))


def _euclidean(A: Any, B: Any) -> Array:
    from sklearn.metrics.pairwise import euclidean_distances

    if is_sparse(B):
        return np.asarray(euclidean_distances(A, B))
    centre = B.mean(axis=0) if len(B) else 0.0  # far from the origin, short distances would cancel
    return np.asarray(euclidean_distances(A - centre, B - centre))


def _manhattan(A: Any, B: Any) -> Array:
    from sklearn.metrics.pairwise import manhattan_distances

    return np.asarray(manhattan_distances(A, B))


_NORMS: dict[str, Callable[[Any, Any], Array]] = {"rbf": _euclidean, "laplacian": _manhattan}


def _known(value: Any, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name}={value!r} is unknown", remedy=f"use one of {', '.join(choices)}")


def _length_scale(X: Any, kernel: str, given: Any, seed: int) -> float:
    if given == "median":
        given = _median_distance(X, kernel, seed)
    if isinstance(given, str) or not (np.isfinite(given) and given > 0):
        raise InputError(
            f"length_scale must be a finite number > 0, found {given!r}",
            remedy='give one, or "median" for features that differ',
        )
    return float(given)


def _median_distance(X: Any, kernel: str, seed: int) -> float:
    """Return the median distance between different items of a seeded sample."""
    chosen = np.random.default_rng(seed).permutation(X.shape[0])[:_SAMPLE]
    sample = X[np.sort(chosen)]
    above = np.triu_indices(len(chosen), k=1)
    return float(np.median(_NORMS[kernel](sample, sample)[above])) if len(chosen) > 1 else 1.0


def _choose(X: Any, count: int, choose: str, seed: int) -> Index:
    if choose == "random":
        return np.sort(np.random.default_rng(seed).permutation(X.shape[0])[:count])
    from sklearn.cluster import kmeans_plusplus

    return np.unique(kmeans_plusplus(X, count, random_state=seed)[1])


def _square_lengths(X: Any) -> Array:
    squares = X.multiply(X) if is_sparse(X) else X * X
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()


def _unit(X: Any) -> Any:
    lengths = np.sqrt(_square_lengths(X))
    shrink = np.divide(1.0, lengths, where=lengths > 0, out=np.zeros(len(lengths)))
    return sp.csr_array(sp.diags_array(shrink) @ X) if is_sparse(X) else X * shrink[:, None]


def _product(A: Any, B: Any) -> Array:
    product = A @ B.T
    return np.asarray(product.toarray() if is_sparse(product) else product)


def _restored(settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    if "width" not in settings:
        return arrays["X"].copy()
    shape = (len(arrays["indptr"]) - 1, settings["width"])
    return sp.csr_array(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape, copy=True
    )
