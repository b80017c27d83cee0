import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from sidelight.data import dataset_from_frame, dataset_from_sparse
from sidelight.errors import InputError

ENTRIES = {"row": ["e", "a", "c"], "col": ["x", "z", "x"], "value": [0.5, -1.0, 2.0]}
ROWS, COLS = list("abcde"), list("xyz")
FRAMES = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


def refused(function, *args, **options):
    with pytest.raises(InputError) as caught:
        function(*args, **options)
    return caught.value


@FRAMES
def test_frame(library):
    data = dataset_from_frame(library.DataFrame(ENTRIES), rows=ROWS, cols=np.array(COLS))
    assert data.shape == (5, 3)
    assert data.pairs.tolist() == [[4, 0], [0, 2], [2, 0]]
    assert data.values.tolist() == ENTRIES["value"]
    assert not data.one_class


@FRAMES
def test_own_names_whole_numbers_and_one_class(library):
    frame = library.DataFrame({"user": [7, 3], "item": [1, 2], "when": ["now", "then"]})
    data = dataset_from_frame(frame, row="user", col="item", value=None)
    assert (data.row_ids, data.col_ids) == (("7", "3"), ("1", "2"))
    assert data.one_class


@FRAMES
def test_sides_as_frames_with_a_column_of_ids(library):
    features = library.DataFrame({"id": ROWS[::-1], "u": range(5), "v": [0.5] * 5})
    kernel = library.DataFrame(
        {"z": [2, 1, 4], "x": [3, 2, 1], "id": ["x", "z", "y"], "y": [1, 4, 9]}
    )
    edges = library.DataFrame({"from": ["a", "e"], "to": ["b", "a"], "strength": [2, 3]})
    data = dataset_from_frame(
        library.DataFrame(ENTRIES),
        rows=ROWS,
        cols=COLS,
        row_features=features,
        col_kernel=kernel,
        row_edges=edges,
    )
    assert data.rows.features[:, 0].tolist() == [4, 3, 2, 1, 0]
    assert data.rows.feature_names == ("u", "v")
    assert data.cols.similarity.tolist() == [[3, 1, 2], [1, 9, 4], [2, 4, 1]]
    assert sparse.find(sparse.triu(data.rows.graph))[2].tolist() == [2, 3]
    assert data.rows.graph[[0], [4]].tolist() == [3]


def test_pandas_index_gives_the_ids():
    features = pd.DataFrame({"u": [1.0, 2.0]}, index=["e", "c"])
    kernel = pd.DataFrame(np.array([[1, 2], [2, 3]]), index=[10, 20], columns=[10, 20])
    frame = pd.DataFrame({"row": ["c"], "col": [20], "value": [1]})
    data = dataset_from_frame(frame, row_features=features, col_kernel=kernel)
    assert (data.row_ids, data.col_ids) == (("e", "c"), ("10", "20"))
    assert data.pairs.tolist() == [[1, 1]]
    assert data.cols.similarity.tolist() == [[1, 2], [2, 3]]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_networkx(kind):
    graph = kind()
    graph.add_edge("a", "e", weight=2.5)
    graph.add_edge("b", "c")
    data = dataset_from_frame(pd.DataFrame(ENTRIES), rows=ROWS, row_edges=graph)
    truth = np.zeros((5, 5))
    truth[0, 4] = truth[4, 0] = 2.5
    truth[1, 2] = truth[2, 1] = 1.0
    assert np.array_equal(data.rows.graph.toarray(), truth)


def test_sparse_matrix_with_matrices_beside_it():
    matrix = sparse.csr_matrix(([1.0, 0.0, 3.0], ([4, 1, 0], [0, 2, 1])), shape=(5, 3))
    graph = sparse.csr_array(np.eye(5, k=1) + np.eye(5, k=-1))
    data = dataset_from_sparse(
        matrix,
        row_edges=graph,
        row_features=np.arange(10).reshape(5, 2),
        col_kernel=np.eye(3),
        col_features=sparse.csr_array(np.eye(3)),
    )
    assert (data.row_ids, data.col_ids) == (tuple("01234"), tuple("012"))
    assert dict(zip(map(tuple, data.pairs.tolist()), data.values.tolist(), strict=True)) == {
        (0, 1): 3.0,
        (1, 2): 0.0,
        (4, 0): 1.0,
    }
    assert (data.rows.graph != graph).nnz == 0
    assert data.rows.features.tolist() == np.arange(10).reshape(5, 2).tolist()
    assert sparse.issparse(data.cols.features)
    assert matrix.data.flags.writeable


def test_sparse_matrix_one_class_ids_and_duplicates():
    matrix = sparse.coo_array((np.ones(3), ([4, 1, 4], [0, 2, 0])), shape=(5, 3))
    assert "row 'e' and column 'x'" in refused(dataset_from_sparse, matrix, ROWS, COLS).problem
    data = dataset_from_sparse(matrix, ROWS, COLS, one_class=True, duplicates="first")
    assert data.one_class
    assert data.pairs.tolist() == [[4, 0], [1, 2]]


def test_sparse_matrix_refusals():
    matrix = sparse.csr_array(np.eye(5, 3))
    assert "3 row ids for 5 rows" in refused(dataset_from_sparse, matrix, COLS).problem
    assert "ndarray" in refused(dataset_from_sparse, np.eye(5, 3)).problem
    assert "value other than 1" in refused(dataset_from_sparse, 2 * matrix, one_class=True).problem


BAD_COLUMNS = {
    "null id": ({"row": ["e", None, "c"]}, "row", "the id is missing"),
    "mixed ids": ({"row": ["e", 7, "c"]}, "row", "the id 7 is of type int"),
    "float ids": ({"row": [1.5, 2.5, 3.0]}, "row", "the id 1.5 is of type float"),
    "bool ids": ({"row": [True, False, True]}, "row", "the id True is of type bool"),
    "text values": ({"value": ["1", "2", "3"]}, "value", "'1' is of type str, not a number"),
    "mixed values": ({"value": [1.0, "2,5", 3]}, "value", "'2,5' is of type str, not a number"),
    "NA id": ({"row": ["e", pd.NA, "c"]}, "row", "the id is missing"),
    "nan": ({"value": [1.0, np.nan, 3]}, "value", "there is no value"),
    "NA": ({"value": [1.0, pd.NA, 3]}, "value", "there is no value"),
    "inf": ({"value": [1.0, -np.inf, 3]}, "value", "-inf is not a finite number"),
    "huge": ({"value": [1, 10**309, 3]}, "value", f"{10**309} is not a finite number"),
    "bools": ({"value": [True, True, True]}, "value", "True is of type bool, not a number"),
    "empty id": ({"col": ["x", " ", "y"]}, "col", "the id is empty"),
}


@pytest.mark.parametrize(
    ("change", "column", "problem"), BAD_COLUMNS.values(), ids=BAD_COLUMNS.keys()
)
def test_bad_columns(change, column, problem):
    frame = pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in (ENTRIES | change).items()})
    error = refused(dataset_from_frame, frame)
    place = 0 if "1.5" in problem or "True" in problem or "'1'" in problem else 1
    assert error.path == f"entries, position {place}"
    assert (error.column, error.problem) == (column, problem)


def test_polars_nulls():
    frame = pl.DataFrame(ENTRIES | {"value": [1.0, None, 2.0]})
    error = refused(dataset_from_frame, frame)
    assert (error.path, error.problem) == ("entries, position 1", "there is no value")


def test_frames_that_are_none():
    assert (
        "no column 'value'"
        in refused(dataset_from_frame, pd.DataFrame(ENTRIES).iloc[:, :2]).problem
    )
    assert "eager" in refused(dataset_from_frame, pl.LazyFrame(ENTRIES)).remedy
    double = pd.DataFrame([["a", "x", "y"]], columns=["row", "col", "col"])
    assert "distinct column names" in refused(dataset_from_frame, double, value=None).remedy
    assert "nothing else" in refused(dataset_from_frame, pd.DataFrame(ENTRIES).iloc[:0]).problem


def test_matrices_need_ids():
    frame = pd.DataFrame(ENTRIES)
    error = refused(dataset_from_frame, frame, row_features=np.ones((3, 2)))
    assert "nothing says which ids" in error.problem
    assert "row_edges is of type int" in refused(dataset_from_frame, frame, row_edges=3).problem


def test_unknown_entries_keep_their_place_in_errors():
    entries = ENTRIES | {"row": ["q", "a", "a"], "col": ["x", "z", "z"]}
    error = refused(dataset_from_frame, pd.DataFrame(entries), rows=ROWS, unknown="drop")
    assert error.path == "entries, position 2"
