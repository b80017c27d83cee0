"""From a dataset's side information to covariances."""

from __future__ import annotations

from sidelight.covariance import Covariance, Dense, Diffusion, Features, Identity, Sum
from sidelight.data import Dataset, Side


def covariances(
    data: Dataset,
    *,
    row_heat: tuple[float, float] = (1.0, 1.0),
    col_heat: tuple[float, float] = (1.0, 1.0),
) -> tuple[Covariance, Covariance]:
    """Return the row and column covariance that a dataset's side information suggests.

    A graph becomes a Diffusion with the ``(a, b)`` of its axis, a similarity a Dense, features a
    linear Features; several become their sum, nothing an Identity.
    """
    rows, cols = data.shape
    return _covariance(data.rows, rows, row_heat), _covariance(data.cols, cols, col_heat)


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
