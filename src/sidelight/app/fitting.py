"""A fit as the command line asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sidelight.app.options import Kind
from sidelight.covariance import Covariance, Diffusion, Sum
from sidelight.data import Dataset
from sidelight.errors import InputError
from sidelight.evaluation import sample_unknown
from sidelight.models import MVGP, ConstrainedMVGP, TraceGP, covariances, load

MODELS: dict[Kind, Any] = {
    Kind.CONSTRAINED: ConstrainedMVGP,
    Kind.TRACE: TraceGP,
    Kind.MVGP: MVGP,
}


def check_out(path: Path) -> None:
    """Refuse, before the work, a place where the model cannot go."""
    if not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent}", remedy="make it, or choose another --out"
        )
    if path.exists() and not _is_model(path):
        raise InputError(
            "this is there already and is no sidelight model",
            remedy="remove it, or choose another --out",
            path=path,
        )


def _is_model(path: Path) -> bool:
    try:
        load(path)
    except (InputError, IsADirectoryError):
        return False
    return True


def with_negatives(data: Dataset, ratio: float | None, seed: int) -> Dataset:
    """Add unknown cells of value 0 to known positives: all ones would teach nothing.

    Parameters
    ----------
    data
        Any dataset; one that is not one-class comes back as it is.
    ratio
        Cells to draw for each known positive; None is 1.
    seed
        Decides which.
    """
    if not data.one_class:
        if ratio is not None:
            raise InputError(
                "the entries have values, and --negatives is for known positives alone",
                remedy="leave it out",
            )
        return data
    count = round(len(data.pairs) * (1.0 if ratio is None else ratio))
    _check_count(data, count)
    drawn = sample_unknown(data.pairs, data.shape, count, seed)
    values = np.repeat([1.0, 0.0], [len(data.pairs), count])
    return data.with_entries(np.concatenate([data.pairs, drawn]), values)


def _check_count(data: Dataset, count: int) -> None:
    unknown = data.shape[0] * data.shape[1] - len(data.pairs)
    if count > unknown:
        most = np.floor(1000 * unknown / len(data.pairs)) / 1000
        raise InputError(
            f"{count:,} negatives cannot be drawn from {unknown:,} unknown cells",
            remedy=f"give --negatives {most:g} or less",
        )


def make_model(
    kind: Kind,
    data: Dataset,
    settings: dict[str, Any],
    rows: dict[str, float],
    cols: dict[str, float],
) -> Any:
    """Assemble the model of a dataset.

    Parameters
    ----------
    kind
        Which model.
    data
        Where the covariances come from.
    settings
        The model's parameters, as far as they were given.
    rows, cols
        ``a`` and ``b`` of the diffusions, as far as they were given.
    """
    if kind is Kind.MVGP:
        _refuse(settings, "lam", "--lam")
        _refuse(settings, "max_rank", "--max-rank")
    row_cov, col_cov = covariances(data)
    return MODELS[kind](_diffused(row_cov, rows, "row"), _diffused(col_cov, cols, "col"), **settings)


def _refuse(settings: dict[str, Any], name: str, option: str) -> None:
    if name in settings:
        raise InputError(
            f"{option} has no meaning for mvgp, which has no nuclear norm",
            remedy="leave it out, or choose --model constrained",
        )


def _diffused(covariance: Covariance, given: dict[str, float], axis: str) -> Covariance:
    """Set ``a`` and ``b`` of the diffusion in a covariance."""
    if not given:
        return covariance
    parts = covariance.parts if isinstance(covariance, Sum) else (covariance,)
    if not any(isinstance(part, Diffusion) for part in parts):
        raise InputError(
            f"--{axis}-{min(given)} is given and the {axis}s have no graph",
            remedy=f"give --{axis}-edges, or leave it out",
        )
    made = [_reset(part, given) if isinstance(part, Diffusion) else part for part in parts]
    return Sum(made, covariance.weights) if isinstance(covariance, Sum) else made[0]


def _reset(diffusion: Diffusion, given: dict[str, float]) -> Diffusion:
    return Diffusion(diffusion.graph, **{"a": diffusion.a, "b": diffusion.b, **given})
