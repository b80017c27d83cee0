import numpy as np
import pytest
from scipy import sparse

from sidelight.data import Dataset, Side
from sidelight.errors import InputError

ROWS, COLS = tuple("abcde"), tuple("xyz")
PAIRS = np.array([[0, 2], [4, 0], [1, 1], [4, 2]])
VALUES = np.array([1.0, -2.0, 0.5, 3.0])


def dataset(**changes):
    given = {"row_ids": ROWS, "col_ids": COLS, "pairs": PAIRS, "values": VALUES} | changes
    return Dataset(**given)


def ring(n):
    return sparse.csr_array(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))


def test_shape_and_density():
    data = dataset()
    assert data.shape == (5, 3)
    assert data.density == 4 / 15
    assert dataset(pairs=np.empty((0, 2), int), values=[]).density == 0.0


def test_arrays_are_read_only_copies():
    pairs, values = PAIRS.copy(), VALUES.copy()
    data = dataset(pairs=pairs, values=values, rows=Side(features=np.ones((5, 2)), graph=ring(5)))
    pairs[:], values[:] = 0, 0
    assert np.array_equal(data.pairs, PAIRS)
    assert np.array_equal(data.values, VALUES)
    for array in (data.pairs, data.values, data.rows.features, data.rows.graph.data):
        assert not array.flags.writeable


def test_with_entries_shares_what_does_not_change():
    data = dataset(pairs=PAIRS, values=np.ones(4), one_class=True, rows=Side(graph=ring(5)))
    part = data.with_entries(data.pairs[:2], np.ones(2))
    assert part.one_class
    assert np.shares_memory(part.rows.graph.data, data.rows.graph.data)
    assert np.array_equal(part.pairs, PAIRS[:2])
    assert not data.with_entries(PAIRS, [1, 1, 0, 0]).one_class


def test_index_and_hint():
    data = dataset(row_ids=("gene1", "gene2", "b", "c", "d"))
    assert data.row_index("gene2") == 1
    assert data.col_index("z") == 2
    with pytest.raises(InputError, match=r"no row 'gene3' \(did you mean 'gene2' or 'gene1'\?\)"):
        data.row_index("gene3")
    with pytest.raises(InputError, match="no column 'gene1';"):
        data.col_index("gene1")


def test_describe_counts_everything():
    side = Side(
        names=ROWS, graph=sparse.csr_array(np.diag([1.0, 0, 0, 0], 1) + np.diag([1.0, 0, 0, 0], -1))
    )
    text = dataset(
        rows=side, cols=Side(features=np.ones((3, 7))), notes=("one dropped",)
    ).describe()
    assert text == (
        "5 rows x 3 columns with 4 values from -2 to 3 (density 0.267); 2 rows and 0 columns have"
        " none. Rows: names, a graph of 1 links (3 items have none). Columns: 7 features."
        " Note: one dropped."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_ids": tuple("abcda")}, "row id 'a' occurs twice"),
        ({"col_ids": ("x", "", "z")}, "col ids that are not text or are empty"),
        ({"pairs": PAIRS[:, ::-1]}, r"the pair \(0, 4\) lies outside the \(5, 3\) table"),
        ({"pairs": PAIRS - 1}, r"the pair \(-1, 1\) lies outside"),
        ({"pairs": PAIRS[[0, 1, 2, 0]]}, r"the pair \(0, 2\) occurs twice"),
        ({"pairs": PAIRS.astype(float)}, "type float64"),
        ({"pairs": PAIRS.T}, r"shape \(2, 4\)"),
        ({"values": VALUES[:3]}, r"shape \(3,\) for 4 pairs"),
        ({"values": [1, 2, np.nan, 4]}, "value at position 2 is nan"),
        ({"one_class": True}, "value other than 1"),
        (
            {"rows": Side(features=np.ones((3, 2)))},
            "row features describe 3 items, the table has 5",
        ),
        ({"cols": Side(graph=ring(5))}, "column graph describes 5 items, the table has 3 columns"),
    ],
)
def test_dataset_refuses(changes, message):
    with pytest.raises(InputError, match=message):
        dataset(**changes)


@pytest.mark.parametrize(
    ("side", "message"),
    [
        ({"graph": sparse.csr_array(np.ones((5, 3)))}, r"shape \(5, 3\)"),
        ({"graph": sparse.csr_array(np.eye(5))}, "self-link at position 0"),
        ({"graph": sparse.csr_array(np.eye(5, k=1))}, "links 0 to 1 and 1 to 0 differ"),
        ({"graph": -ring(5)}, "not positive and finite"),
        ({"features": np.full((5, 2), np.inf)}, "not finite"),
        ({"features": np.ones(5)}, "1 dimensions"),
        ({"similarity": np.ones((5, 3))}, r"shape \(5, 3\)"),
        ({"similarity": np.eye(5) + np.eye(5, k=-2) / 2}, r"at \(2, 0\) is 0.5, at \(0, 2\) 0"),
        ({"similarity": np.full((5, 5), np.nan)}, "not finite"),
        ({"features": np.ones((5, 2)), "feature_names": ("u",)}, "1 feature names for 2 features"),
        ({"feature_names": ("u",)}, "1 feature names for no features"),
    ],
)
def test_side_refuses(side, message):
    with pytest.raises(InputError, match=message):
        Side(**side)
