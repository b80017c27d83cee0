import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import io, sparse

from sidelight.data import read_dataset

TRUTH = {("r1", "c1"): 5.0, ("r1", "c3"): 0.25, ("r5", "c2"): -3.0, ("r3", "c1"): 4.5}
ROWS, COLS = ("r1", "r2", "r3", "r4", "r5"), ("c3", "c2", "c1")


def write(folder, **files):
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8", newline="")
    return folder


def lines(*records, sep="\t", end="\n"):
    return "".join(sep.join(map(str, record)) + end for record in records)


def entries(data):
    return {
        (data.row_ids[i], data.col_ids[j]): value
        for (i, j), value in zip(data.pairs.tolist(), data.values.tolist(), strict=True)
    }


@pytest.fixture
def folder(tmp_path):
    return write(
        tmp_path,
        entries_tsv=lines(("row", "col", "value"), *((*k, v) for k, v in TRUTH.items())),
        rows_tsv=lines(("id", "name"), *((r, f"name of {r}") for r in ROWS)),
        cols_tsv=lines(("id",), *((c,) for c in COLS)),
    )


def test_index_sets_come_in_file_order(folder):
    data = read_dataset(folder)
    assert (data.row_ids, data.col_ids) == (ROWS, COLS)
    assert entries(data) == TRUTH
    assert data.rows.names == tuple(f"name of {r}" for r in ROWS)
    assert not data.one_class
    assert data.notes == ()


def test_first_appearance_without_index_sets(tmp_path):
    write(
        tmp_path,
        entries_tsv=lines(("row", "col"), ("b", "y"), ("a", "x")),
        row_edges_tsv=lines(("a", "b"), ("c", "b")),
    )
    data = read_dataset(tmp_path)
    assert (data.row_ids, data.col_ids) == (("b", "a", "c"), ("y", "x"))
    assert data.one_class
    assert data.values.tolist() == [1.0, 1.0]
    assert data.rows.graph.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


PLAIN = lines(("row", "col", "value"), *((*pair, value) for pair, value in TRUTH.items()))
MOVED = lines(("col", "value", "row"), *((c, value, r) for (r, c), value in TRUTH.items()))
WRITTEN = {
    "crlf": ("tsv", PLAIN.replace("\n", "\r\n")),
    "byte order mark": ("tsv", "\ufeff" + PLAIN),
    "other order": ("tsv", MOVED),
    "own names": ("tsv", PLAIN.replace("row\tcol\tvalue", "disease\tgene\tscore")),
    "spaces": ("tsv", PLAIN.replace("\t", " \t ")),
    "blank lines": ("tsv", PLAIN.replace("\nr5", "\n\nr5") + "\n\n"),
    "no last line end": ("tsv", PLAIN.rstrip("\n")),
    "csv": ("csv", PLAIN.replace("\t", ",")),
    "quoted": ("csv", '"' + PLAIN.replace("\t", '","').replace("\n", '"\n"')[:-1]),
}


@pytest.mark.parametrize(("suffix", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_same_entries_however_written(tmp_path, suffix, text):
    write(tmp_path, **{f"entries_{suffix}": text})
    assert entries(read_dataset(tmp_path)) == TRUTH
    assert entries(read_dataset(tmp_path / f"entries.{suffix}")) == TRUTH


def test_gzip(folder):
    path = folder / "entries.tsv"
    with gzip.open(folder / "entries.tsv.gz", "wb") as packed:
        packed.write(path.read_bytes())
    path.unlink()
    assert entries(read_dataset(folder)) == TRUTH


def test_parquet(folder):
    (folder / "entries.tsv").unlink()
    (r, c), v = zip(*TRUTH, strict=True), list(TRUTH.values())
    table = pyarrow.table({"row": pyarrow.array(r).dictionary_encode(), "col": c, "value": v})
    parquet.write_table(table, folder / "entries.parquet")
    assert entries(read_dataset(folder)) == TRUTH


def test_csv_ids_with_commas_quotes_and_line_ends(tmp_path):
    write(tmp_path, entries_csv='row,col,value\n"a, ""b""\nc",x,1\nd,y,2\n')
    assert entries(read_dataset(tmp_path)) == {('a, "b"\nc', "x"): 1.0, ("d", "y"): 2.0}


def test_tsv_keeps_quotes(tmp_path):
    write(tmp_path, entries_tsv='row\tcol\n"a"\t5\'-x"\n')
    assert entries(read_dataset(tmp_path)) == {('"a"', "5'-x\""): 1.0}


def test_matrix_market_has_line_numbers_for_ids(tmp_path):
    matrix = sparse.coo_array(([2.5, -1.0, 4.0], ([0, 4, 2], [2, 0, 1])), shape=(5, 3))
    io.mmwrite(tmp_path / "entries.mtx", matrix, symmetry="general")
    data = read_dataset(tmp_path)
    assert (data.row_ids, data.col_ids) == (tuple("12345"), tuple("123"))
    assert entries(data) == {("1", "3"): 2.5, ("5", "1"): -1.0, ("3", "2"): 4.0}
    named = read_dataset(tmp_path, rows=list(ROWS), cols=COLS)
    assert entries(named) == {("r1", "c1"): 2.5, ("r5", "c3"): -1.0, ("r3", "c2"): 4.0}


def test_matrix_market_pattern_sides(tmp_path):
    io.mmwrite(tmp_path / "entries.mtx", sparse.coo_array(np.eye(5, 3)), field="pattern")
    ring = np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), -1, axis=1)
    io.mmwrite(tmp_path / "row_edges.mtx", sparse.coo_array(ring), symmetry="symmetric")
    features = sparse.random_array((3, 7), density=0.4, rng=np.random.default_rng(0))
    io.mmwrite(tmp_path / "col_features.mtx", features, precision=17)
    data = read_dataset(tmp_path)
    assert data.one_class
    assert np.array_equal(data.rows.graph.toarray(), ring)
    assert np.array_equal(data.cols.features.toarray(), features.toarray())


def test_weighted_links_once_or_in_both_directions(folder):
    write(
        folder,
        row_edges_tsv=lines(
            ("a", "b", "weight"), ("r1", "r5", 2), ("r5", "r1", 2), ("r2", "r3", 0.5)
        ),
    )
    data = read_dataset(folder)
    truth = np.zeros((5, 5))
    truth[0, 4] = truth[4, 0] = 2
    truth[1, 2] = truth[2, 1] = 0.5
    assert np.array_equal(data.rows.graph.toarray(), truth)
    assert data.notes == ("row_edges.tsv: 1 links listed again merged",)


def test_features_and_kernel_follow_the_index_set(folder):
    write(
        folder,
        row_features_tsv=lines(
            ("id", "u", "v"), *((r, k, -k) for k, r in reversed(list(enumerate(ROWS))))
        ),
        col_kernel_csv="id,c2,c1,c3\nc1,12,11,13\nc2,22,12,23\nc3,23,13,33\n",
    )
    data = read_dataset(folder)
    assert data.rows.features.tolist() == [[k, -k] for k in range(5)]
    assert data.rows.feature_names == ("u", "v")
    assert data.cols.similarity.tolist() == [[33, 23, 13], [23, 22, 12], [13, 12, 11]]


def test_kernel_then_features_give_the_index_set(folder):
    write(
        folder,
        col_kernel_csv="id,c1,c2,c3\nc1,1,2,3\nc2,2,4,5\nc3,3,5,6\n",
        row_features_tsv=lines(("id", "u"), *((r, 1) for r in reversed(ROWS))),
    )
    (folder / "rows.tsv").unlink()
    (folder / "cols.tsv").unlink()
    data = read_dataset(folder)
    assert (data.row_ids, data.col_ids) == (ROWS[::-1], ("c1", "c2", "c3"))
    assert entries(data) == TRUTH


def test_unknown_ids_are_dropped_and_counted(folder):
    with (folder / "entries.tsv").open("a") as file:
        file.write("r9\tc1\t1\nr2\tc9\t1\nr2\tc2\t7\n")
    write(
        folder,
        row_edges_tsv=lines(("a", "b"), ("r1", "r2"), ("r9", "r8")),
        row_features_tsv=lines(("id", "u"), ("r9", 0), *((r, 1) for r in ROWS)),
    )
    data = read_dataset(folder, unknown="drop")
    assert entries(data) == {**TRUTH, ("r2", "c2"): 7.0}
    assert data.rows.graph.nnz == 2
    assert data.notes == (
        "entries.tsv: 2 entries with unknown ids dropped",
        "row_edges.tsv: 1 links with unknown ids dropped",
        "row_features.tsv: 1 lines with unknown ids dropped",
    )


@pytest.mark.parametrize(
    ("rule", "value"), [("first", 1), ("last", 6), ("mean", 4), ("sum", 12), ("max", 6)]
)
def test_duplicates(tmp_path, rule, value):
    write(
        tmp_path,
        entries_tsv=lines(
            ("row", "col", "value"),
            ("b", "x", 1),
            ("a", "x", 9),
            ("b", "x", 5),
            ("a", "y", -2),
            ("b", "x", 6),
        ),
    )
    data = read_dataset(tmp_path, duplicates=rule)
    assert list(entries(data).items()) == [(("b", "x"), value), (("a", "x"), 9), (("a", "y"), -2)]
    assert data.notes == (f"entries.tsv: 2 duplicate entries merged ({rule})",)


def test_one_class_duplicates_stay_ones(tmp_path):
    write(tmp_path, entries_tsv=lines(("row", "col"), ("b", "x"), ("a", "y"), ("b", "x")))
    assert read_dataset(tmp_path, duplicates="sum").values.tolist() == [1.0, 1.0]


def test_another_stem_and_sides_by_keyword(folder):
    write(folder, train_csv="row,col,value\nr4,c2,1\n", links_tsv=lines(("a", "b"), ("r1", "r4")))
    data = read_dataset(folder, entries="train", row_edges=folder / "links.tsv")
    assert entries(data) == {("r4", "c2"): 1.0}
    assert data.rows.graph.toarray()[0, 3] == 1.0


def test_further_columns_are_noted(tmp_path):
    write(tmp_path, entries_csv="time,row,value,col\n7,a,2,x\n")
    data = read_dataset(tmp_path)
    assert entries(data) == {("a", "x"): 2.0}
    assert data.notes == ("entries.csv: columns 'time' ignored",)


def test_blocks_join_without_a_seam(tmp_path, monkeypatch):
    records = [(f"r{k}", f"c{k % 7}", k / 8) for k in range(500)]
    write(tmp_path, entries_csv=lines(("row", "col", "value"), *records, sep=",") + '"q\n",x,1\n')
    monkeypatch.setattr("sidelight.data.text._BLOCK", 40)
    assert entries(read_dataset(tmp_path)) == {(r, c): v for r, c, v in records} | {("q", "x"): 1.0}


SETS = {
    "omim": ((3161, 12331), 3653, 4218, 366918),
    "medline": ((4663, 21693), 558275, 7217, 467552),
    "epinions": ((5000, 5000), 134517, 214680, None),
    "ciaodvd": ((4658, 5000), 24806, 33116, None),
    "flixster_monti": ((3000, 3000), 26173, 29677, 25459),
    "filmtrust": ((1642, 2071), 35494, 1309, None),
    "ml100k": ((943, 1682), 100000, None, None),
    "ml1m": ((6040, 3706), 1000209, None, None),
    "hetionet": ((137, 5392), 12623, 543, 31155),
    "davis": ((68, 442), 30056, None, None),
}


@pytest.mark.skipif("SIDELIGHT_DATA" not in os.environ, reason="SIDELIGHT_DATA is not set")
@pytest.mark.parametrize("name", SETS)
def test_real_sets(name):
    shape, count, *links = SETS[name]
    data = read_dataset(Path(os.environ["SIDELIGHT_DATA"]) / name)
    assert data.shape == shape
    assert len(data.values) == count
    assert [
        s.graph if s.graph is None else s.graph.nnz // 2 for s in (data.rows, data.cols)
    ] == links
    assert data.one_class == (name in {"omim", "medline", "hetionet"})
    assert (data.cols.similarity is not None) == (name == "davis")
    assert data.notes == ()
