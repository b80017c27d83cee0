"""A covariance given as a matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Protocol, Self

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sidelight.covariance.base import Array, Covariance, Cross, Index
from sidelight.covariance.inputs import columns, frozen, is_sparse, matrix, picked
from sidelight.errors import InputError

MOST_ITEMS = 20_000
_ASYMMETRY = 1e-8
_STRIP = 1024
_SINGLE = 1e-6  # what may be off in new covariances: they may come in single precision


class Dense(Covariance):
    """A covariance given as a matrix of at most 20,000 items.

    The root comes from the eigenvectors, is worked out when it is first asked for and has one
    column for each eigenvalue that is not zero to rounding.

    Parameters
    ----------
    matrix
        Symmetric (to 1e-8 of its largest entry; what is left is averaged out) and positive
        semidefinite to the rounding of its own floating-point type.
    repair
        ``"clip"`` sets negative eigenvalues to 0 and leaves the rest as they are.
    """

    def __init__(self, matrix: Any, repair: Literal["clip"] | None = None) -> None:
        if repair not in (None, "clip"):
            raise InputError(f"repair={repair!r} is unknown", remedy='use None or "clip"')
        C = _symmetrised(matrix)
        rounding = _rounding(C, matrix)
        if triangle(C, rounding) is None:
            C = _clipped(C, rounding, repair)
        self._build(C, rounding)

    def _build(self, C: Array, rounding: float) -> None:
        self._matrix, self._rounding = frozen(C), rounding
        self.size = len(C)

    @cached_property
    def _root(self) -> Array:
        return frozen(root_of(self._matrix, self._rounding))

    @cached_property
    def _triangle(self) -> Array:
        return factored(self._matrix, self._rounding)

    @property
    def root_size(self) -> int:  # type: ignore[override]
        """Columns of the root: the rank."""
        return int(self._root.shape[1])

    def apply(self, X: Array) -> Array:
        """Multiply ``C @ X``."""
        return np.asarray(self._matrix @ columns(X, self.size))

    def root(self, X: Array) -> Array:
        """Multiply ``G @ X``."""
        return np.asarray(self._root @ columns(X, self.root_size))

    def root_t(self, X: Array) -> Array:
        """Multiply ``G' @ X``."""
        return np.asarray(self._root.T @ columns(X, self.size))

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return independent draws of ``N(0, C)``, one in each column, to rounding."""
        return drawn(self._triangle, count, rng)

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the prior variances."""
        found = self._matrix.diagonal()
        return found.copy() if index is None else found[picked(index, self.size)]

    def rows(self, index: Index) -> Array:
        """Return ``C[index]``."""
        return self._matrix[picked(index, self.size)]

    def cross(self, new: Any) -> Given:
        """Place new items by their covariances.

        Parameters
        ----------
        new
            Covariances of the new items with the known ones (new by known), or a pair: those and
            the covariances among the new (new by new).
        """
        if not isinstance(new, tuple):
            return Given(_rectangle(new, self.size), None, self)
        if len(new) != 2:
            raise InputError(
                f"expected a pair, found {len(new)} arrays",
                remedy="give (new by known, new by new) covariances",
            )
        links = _rectangle(new[0], self.size)
        return Given(links, _symmetrised(new[1], len(links)), self)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the matrix."""
        return {"kind": "Dense", "rounding": self._rounding}, {"matrix": self._matrix}

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""
        made = cls.__new__(cls)
        made._build(np.array(arrays["matrix"], dtype=np.float64), float(settings["rounding"]))
        return made

    def __repr__(self) -> str:
        return f"Dense({self.size} items)"


class Rooted(Protocol):
    """A covariance whose root is made of the eigenvectors of its matrix."""

    @property
    def _root(self) -> Array: ...

    @property
    def _rounding(self) -> float: ...


class Given(Cross):
    """New items whose covariances were given as arrays."""

    def __init__(self, links: Array, among: Array | None, covariance: Rooted) -> None:
        self.size, self.known = links.shape
        self._links, self._among, self._covariance = links, among, covariance

    def apply(self, X: Array) -> Array:
        """Multiply ``C(new, known) @ X``."""
        return np.asarray(self._links @ columns(X, self.known))

    def rows(self, index: Index) -> Array:
        """Return ``C(new, known)[index]``."""
        return self._links[picked(index, self.size)]

    def block(self) -> Array:
        """Return ``C(new, new)``, where it was given."""
        if self._among is None:
            raise InputError(
                "the covariances among the new items were not given",
                remedy="pass the pair (new by known, new by new) to cross",
            )
        return self._among.copy()

    def diagonal(self) -> Array:
        """Return the prior variances of the new items, where they were given."""
        return self.block().diagonal().copy()

    def loadings(self) -> tuple[Array, Array]:
        """Return ``C(new, known) G`` over the eigenvalues, and what it leaves of ``C(new, new)``.

        An eigenvalue that is lost in the known matrix's rounding may be the square of a loading:
        arrays that disagree by more than the root of that do not belong to one covariance, and are
        refused.
        """
        among, root = self.block(), self._covariance._root
        loadings = self._links @ root / np.einsum("ij,ij->j", root, root)
        largest = max(float(np.abs(C).max(initial=0.0)) for C in (among, self._links))
        rounding = max(np.sqrt(self._covariance._rounding * largest), _SINGLE * largest)
        _refuse_misfit(np.abs(loadings @ root.T - self._links).max(initial=0.0), rounding)
        values, vectors = eigen(among - loadings @ loadings.T)
        _refuse_misfit(-values.min(initial=0.0), rounding)
        return loadings, (vectors * np.maximum(values, 0.0)) @ vectors.T


def _refuse_misfit(found: float, rounding: float) -> None:
    if found > rounding:
        raise InputError(
            f"the new items' covariances do not go with those of the known items (by {found:.6g})",
            remedy="give blocks of one positive semidefinite matrix",
        )


def triangle(C: Array, rounding: float) -> Array | None:
    """Return the lower factor of ``C + rounding I``; None if an eigenvalue is below minus that."""
    shifted = C.copy()
    shifted[np.diag_indices_from(shifted)] += rounding
    try:
        with threadpool_limits(1):  # OpenBLAS can crash in a threaded factor of a large matrix
            found = sl.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except sl.LinAlgError:
        return None
    return np.asarray(found)


def factored(C: Array, rounding: float) -> Array:
    """Return the lower factor of a covariance, with as little on the diagonal as it takes."""
    while (found := triangle(C, rounding)) is None:
        rounding *= 10
    return frozen(found)


def drawn(lower: Array, count: int, rng: np.random.Generator) -> Array:
    """Return ``N(0, L L')`` draws, one in each column."""
    return np.asarray(lower @ rng.standard_normal((len(lower), count)))


def eigen(C: Array) -> tuple[Array, Array]:
    """Return eigenvalues, smallest first, and eigenvectors, in one thread."""
    if len(C) == 0:
        return np.zeros(0), C.copy()
    with threadpool_limits(1):
        values, vectors = sl.eigh(C, check_finite=False)
    return values, vectors


def root_of(C: Array, rounding: float) -> Array:
    """Return ``G`` with ``C = G G'``, without the eigenvalues up to ``rounding``."""
    values, vectors = eigen(C)
    keep = values > rounding
    return np.ascontiguousarray(vectors[:, keep] * np.sqrt(values[keep]))


def limited(size: int, remedy: str) -> None:
    """Refuse a dense matrix of too many items."""
    if size > MOST_ITEMS:
        raise InputError(
            f"a dense covariance takes at most {MOST_ITEMS} items, found {size}", remedy=remedy
        )


def _clipped(C: Array, rounding: float, repair: str | None) -> Array:
    values, vectors = eigen(C)
    if repair is None and values[0] < -rounding:
        raise InputError(
            f"the matrix is not positive semidefinite: its smallest eigenvalue is {values[0]:.6g}",
            remedy='correct it, or pass repair="clip" to set negative eigenvalues to 0',
        )
    below = values < 0
    return C - (vectors[:, below] * values[below]) @ vectors[:, below].T


def _rounding(C: Array, given: Any) -> float:
    """Bound the rounding of the eigenvalues: size, largest row sum and the type's precision."""
    kind = getattr(given, "dtype", None)
    single = kind is not None and np.issubdtype(kind, np.floating)
    precision = max(np.finfo(kind if single else np.float64).eps, np.finfo(np.float64).eps)
    return float(len(C) * precision * np.abs(C).sum(axis=1).max(initial=0.0))


def _rectangle(new: Any, known: int) -> Array:
    """Return finite covariances of new with known items, dense."""
    links = matrix(new, "covariances", known)
    return frozen(links.toarray() if is_sparse(links) else links)


def _symmetrised(given: Any, size: int | None = None) -> Array:
    C = matrix(given, "covariance", size)
    if C.shape[0] != C.shape[1]:
        raise InputError(
            f"covariance: expected a square matrix, found shape {C.shape}",
            remedy="give one row and one column for each item",
        )
    limited(len(C) if not is_sparse(C) else C.shape[0], "use Diffusion or Features instead")
    C = C.toarray() if is_sparse(C) else C
    _refuse_asymmetry(C)
    return np.asarray((C + C.T) / 2)


def _refuse_asymmetry(C: Array) -> None:
    allowed = _ASYMMETRY * np.abs(C).max(initial=0.0)
    for start in range(0, len(C), _STRIP):  # in strips, for the sake of memory
        strip = np.s_[start : start + _STRIP]
        difference = np.abs(C[strip] - C[:, strip].T)
        if difference.max() > allowed:
            row, column = divmod(int(difference.argmax()), len(C))
            _refuse_entry(C, start + row, column)


def _refuse_entry(C: Array, row: int, column: int) -> None:
    raise InputError(
        f"covariance: entry ({row}, {column}) is {C[row, column]:.6g} "
        f"but ({column}, {row}) is {C[column, row]:.6g}",
        remedy="give a symmetric matrix, for instance (C + C.T) / 2",
    )
