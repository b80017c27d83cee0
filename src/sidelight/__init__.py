"""Predict the missing entries of a table from the known ones and from side information."""

from sidelight.covariance import Covariance, Dense, Diffusion, Features, Identity, Sum
from sidelight.data import (
    Dataset,
    Negatives,
    Side,
    dataset_from_frame,
    dataset_from_sparse,
    read_dataset,
)
from sidelight.errors import InputError, MissingExtraError, SidelightError
from sidelight.models import (
    KPMF,
    MVGP,
    PMF,
    ConstrainedMVGP,
    Ranking,
    TraceGP,
    covariances,
    load,
    regularization_path,
)

__version__ = "0.1.0"

__all__ = [
    "KPMF",
    "MVGP",
    "PMF",
    "ConstrainedMVGP",
    "Covariance",
    "Dataset",
    "Dense",
    "Diffusion",
    "Features",
    "Identity",
    "InputError",
    "MissingExtraError",
    "Negatives",
    "Ranking",
    "Side",
    "SidelightError",
    "Sum",
    "TraceGP",
    "__version__",
    "covariances",
    "dataset_from_frame",
    "dataset_from_sparse",
    "load",
    "read_dataset",
    "regularization_path",
]
