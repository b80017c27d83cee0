"""Splits, per-row metrics and the rankings that any model has to beat."""

from sidelight.evaluation.baselines import neighbour_voting, popularity
from sidelight.evaluation.coverage import calibration_table, coverage, crps, row_means
from sidelight.evaluation.metrics import (
    KS,
    RowMetrics,
    ScoreRows,
    hits_at,
    indicator,
    measure_rows,
    precision_at,
    recall_at,
    rmse,
)
from sidelight.evaluation.splits import known_entries, new_rows

__all__ = [
    "KS",
    "RowMetrics",
    "ScoreRows",
    "calibration_table",
    "coverage",
    "crps",
    "hits_at",
    "indicator",
    "known_entries",
    "measure_rows",
    "neighbour_voting",
    "new_rows",
    "popularity",
    "precision_at",
    "recall_at",
    "rmse",
    "row_means",
]
