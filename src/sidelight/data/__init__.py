"""Tables of known entries and what is known about their rows and columns.

A set is a folder:

- ``entries``: ``row``, ``col`` and ``value``; without ``value``, a set of known positives;
- ``rows``, ``cols``: ``id`` and, if there are any, ``name``: the index sets, in their order;
- ``row_edges``, ``col_edges``: ``a``, ``b`` and, if there are any, ``weight``: undirected links;
- ``row_features``, ``col_features``: ``id`` and one column for each feature;
- ``row_kernel``, ``col_kernel``: ``id`` and one column for each id: a symmetric matrix.

All but the entries may be missing. Each is a ``.tsv``, ``.csv``, ``.mtx`` or ``.parquet`` file; the
first three may be packed as ``.gz``. Without ``rows``, the ids are those of the kernel, else those
of the features, else those of the entries and edges in the order of first appearance.
"""

from sidelight.data.dataset import Dataset, Side
from sidelight.data.negatives import Negatives, sample_unknown
from sidelight.data.readers import Sides, dataset_from_frame, dataset_from_sparse, read_dataset

__all__ = [
    "Dataset",
    "Negatives",
    "Side",
    "Sides",
    "dataset_from_frame",
    "dataset_from_sparse",
    "read_dataset",
    "sample_unknown",
]
