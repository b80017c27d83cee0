"""From a dataset's side information to covariances."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from sidelight.covariance import (
    Covariance,
    Dense,
    Diffusion,
    Features,
    Identity,
    SharedEntries,
    Sum,
)
from sidelight.data import Dataset, Side
from sidelight.errors import InputError


def covariances(
    data: Dataset,
    *,
    row_heat: tuple[float, float] = (1.0, 1.0),
    col_heat: tuple[float, float] = (1.0, 1.0),
    shared_entries: float = 0.0,
) -> tuple[Covariance, Covariance]:
    """Return the row and column covariance that a dataset's side information suggests.

    A graph becomes a Diffusion with the ``(a, b)`` of its axis, a similarity a Dense, features a
    linear Features; several become their sum, nothing an Identity. With ``shared_entries``, that
    share of the whole, between 0 and 1, is SharedEntries instead: then give the data that the
    model is fitted on, without what is held out.
    """
    rows, cols = data.shape
    row_cov = _covariance(data.rows, rows, row_heat)
    col_cov = _covariance(data.cols, cols, col_heat)
    if not shared_entries:
        return row_cov, col_cov
    if not 0 < shared_entries <= 1:
        raise InputError(f"shared_entries is {shared_entries!r}", remedy="use a share from 0 to 1")
    known = csr_array((np.ones(len(data.pairs)), data.pairs.T), shape=data.shape)
    weights = [1 - shared_entries, shared_entries]
    return (
        Sum([row_cov, SharedEntries(known)], weights),
        Sum([col_cov, SharedEntries(known.T)], weights),
    )


def _covariance(side: Side, size: int, heat: tuple[float, float]) -> Covariance:
    parts: list[Covariance] = []
    if side.graph is not None:
        parts.append(Diffusion(side.graph, *heat))
    if side.similarity is not None:
        parts.append(Dense(side.similarity))
    if side.features is not None:
        parts.append(Features(side.features))
    if not parts:
        return Identity(size)
    return parts[0] if len(parts) == 1 else Sum(parts)
