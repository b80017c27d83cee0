import gzip

import pyarrow
import pytest
from pyarrow import parquet

from sidelight.data import read_dataset
from sidelight.errors import InputError

GOOD = "row\tcol\tvalue\nr1\tc1\t1\nr5\tc3\t2\n"
ROWS = "id\nr1\nr2\nr3\nr4\nr5\n"
COLS = "id\nc1\nc2\nc3\n"


def refused(folder, **options):
    with pytest.raises(InputError) as caught:
        read_dataset(folder, **options)
    return caught.value


def write(folder, files):
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)


# what is wrong: the file, its content, the line, the column, a part of the problem, of the remedy
BAD_ENTRIES = {
    "unknown row": ("row\tcol\nr1\tc1\nr6\tc1\n", 3, "row", "'r6' is not known", "unknown="),
    "unknown column": ("row\tcol\n\nr1\tc4\n", 3, "col", "'c4' is not known", "unknown='drop'"),
    "duplicate": (
        GOOD + "r1\tc1\t1\n",
        4,
        None,
        "row 'r1' and column 'c1' was there",
        "duplicates=",
    ),
    "nan": (GOOD + "r1\tc2\tNaN\n", 4, "value", "'NaN' is not a finite number", "leave out"),
    "inf": (GOOD + "r1\tc2\t-inf\n", 4, "value", "'-inf' is not a finite number", "leave out"),
    "overflow": (GOOD + "r1\tc2\t1e999\n", 4, "value", "'1e999' is not a finite", "leave out"),
    "word": (GOOD + "r1\tc2\thigh\n", 4, "value", "'high' is not a number", "3.5"),
    "underscore": (GOOD + "r1\tc2\t1_0\n", 4, "value", "'1_0' is not a number", "3.5"),
    "decimal comma": (GOOD + "r1\tc2\t3,5\n", 4, "value", "'3,5' has a decimal comma", "write 3.5"),
    "no value": (
        "row\tcol\tvalue\nr1\tc1\t\nr2\tc1\t\n",
        2,
        "value",
        "no value",
        "no value column",
    ),
    "empty id": (GOOD + " \tc2\t1\n", 4, "row", "the id is empty", "write an id"),
    "short line": (GOOD + "r1\tc2\n", 4, None, "2 fields, the header 3", "tabs"),
    "long line": (GOOD + "\nr1\tc2\t1\t\n", 5, None, "4 fields, the header 3", "tabs"),
    "empty file": ("", None, None, "empty", "header"),
    "empty line": ("\n" + GOOD, 1, None, "the line is empty", "make it the header"),
    "header only": ("row\tcol\n", None, None, "a header and nothing else", "add data"),
    "no header": (
        "r1\tc1\t1\nr5\tc3\t2\n",
        1,
        None,
        "is no header",
        "make the first line row, col",
    ),
    "no header, pairs": (
        "r1\tc1\nr5\tc3\n",
        1,
        None,
        "is no header",
        "make the first line row, col",
    ),
    "quoted": ('"row"\t"col"\n"r1"\t"c1"\n', 1, None, "is no header", "without quotes"),
    "commas": (GOOD.replace("\t", ","), 1, None, "is no header", "tabs between them in .tsv"),
    "no header, no number": ("r1\tc1\tNA\nr5\tc3\t2\n", 1, None, "is no header", "first line row"),
    "no header, comma": ("r1\tc1\t3,5\nr5\tc3\t2\n", 1, None, "is no header", "first line row"),
    "label twice": ("row\trow\tcol\n1\t2\t3\n", 1, None, "'row' occurs twice", "name each"),
    "which value": ("row\tcol\ta\tb\nr1\tc1\t1\t2\n", 1, None, "no column 'value'", "'value' or"),
    "utf-16": (GOOD.encode("utf-16"), 1, None, "UTF-16", "save it as UTF-8"),
    "utf-16 without mark": (GOOD.encode("utf-16-le"), 1, None, "NUL", "save it as UTF-8"),
    "nul": (GOOD + "r1\tc\0\t1\n", 4, None, "a NUL byte", "save it as UTF-8"),
    "latin-1": ((GOOD + "r1\té\t1\n").encode("latin-1"), 4, None, "0xe9 is not UTF-8", "as UTF-8"),
    "old mac": (GOOD.replace("\n", "\r"), 1, None, "carriage return", "LF or CRLF"),
}


@pytest.mark.parametrize(
    ("text", "line", "column", "problem", "remedy"), BAD_ENTRIES.values(), ids=BAD_ENTRIES.keys()
)
def test_entries(tmp_path, text, line, column, problem, remedy):
    write(tmp_path, {"rows.tsv": ROWS, "cols.tsv": COLS, "entries.tsv": text})
    error = refused(tmp_path)
    assert error.path == tmp_path / "entries.tsv"
    assert (error.line, error.column) == (line, column)
    assert problem in error.problem
    assert remedy in error.remedy


BAD_SIDES = {
    "self-link": ("row_edges.tsv", "a\tb\nr1\tr2\nr3\tr3\n", 3, None, "'r3' is linked to itself"),
    "weights differ": (
        "row_edges.csv",
        "a,b,weight\nr1,r2,1\nr3,r4,1\nr2,r1,2\n",
        4,
        "weight",
        "the link of 'r2' and 'r1' has the weight 2 here and 1 before",
    ),
    "negative": (
        "row_edges.csv",
        "a,b,weight\nr1,r2,-1\n",
        2,
        "weight",
        "weight -1 is not positive",
    ),
    "zero": ("row_edges.csv", "a,b,weight\nr1,r2,0\n", 2, "weight", "weight 0 is not positive"),
    "unknown end": ("row_edges.tsv", "a\tb\nr1\tr2\nr3\tr7\n", 3, "b", "'r7' is not known"),
    "edge header": ("row_edges.tsv", "r1\tr2\nr3\tr4\n", 1, None, "is no header"),
    "double id": ("rows.tsv", ROWS + "r2\n", 7, "id", "'r2' occurs twice"),
    "same but for spaces": ("rows.tsv", ROWS + " r2\n", 7, "id", "'r2' occurs twice"),
    "id header": ("rows.tsv", "r1\nr2\n", 1, None, "no column 'id'"),
    "no features": ("row_features.tsv", "id\nr1\n", 1, None, "no features"),
    "feature text": ("row_features.tsv", "id\tu\tv\nr1\t1\t2\nr2\t1\tx\n", 3, "v", "'x' is not a"),
    "lost features": (
        "col_features.csv",
        "id,u\nc1,1\nc3,1\n",
        None,
        None,
        "no line for the id 'c2'",
    ),
    "strange features": ("col_features.csv", "id,u\nc1,1\nc9,1\n", 3, "id", "'c9' is not known"),
    "asymmetric": (
        "col_kernel.csv",
        "id,c1,c3,c2\nc1,1,.5,0\nc2,0,.25,1\nc3,.5,1,.3\n",
        4,
        "c2",
        "the similarity of 'c3' and 'c2' is 0.3 here and 0.25 in the line of 'c2'",
    ),
    "kernel header": (
        "col_kernel.csv",
        "id,c1,c2,c4\nc1,1,0,0\nc2,0,1,0\nc3,0,0,1\n",
        1,
        None,
        "'c4'",
    ),
    "kernel line": (
        "col_kernel.csv",
        "id,c1,c2\nc1,1,0\nc2,0,1\nc3,0,0\n",
        4,
        "id",
        "'c3' is not in",
    ),
    "open quote": ("cols.csv", 'id,name\nc1,"a\nc2,b\nc3,c\n', 4, None, "cannot be split"),
    "text after quote": ("cols.csv", 'id,name\nc1,a\nc2,"b"b\n', 3, None, "cannot be split"),
    "after line ends": (
        "cols.csv",
        'id,name\nc1,"a\n\nb"\nc2,b,b\n',
        5,
        None,
        "3 fields, the header 2",
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "line", "column", "problem"), BAD_SIDES.values(), ids=BAD_SIDES.keys()
)
def test_sides(tmp_path, name, text, line, column, problem):
    files = {"entries.tsv": GOOD, "rows.tsv": ROWS, "cols.tsv": COLS}
    stem = name.partition(".")[0]
    write(tmp_path, {k: v for k, v in files.items() if not k.startswith(f"{stem}.")} | {name: text})
    error = refused(tmp_path)
    assert error.path == tmp_path / name
    assert (error.line, error.column) == (line, column)
    assert problem in error.problem


GENERAL = "%%MatrixMarket matrix coordinate real general\n"
PATTERN = GENERAL.replace("real", "pattern")
BAD_MATRICES = {
    "banner": ("1 2 3\n", 1, "no MatrixMarket header"),
    "array": ("%%MatrixMarket matrix array real general\n5 3\n", 1, "kind array real"),
    "complex": ("%%MatrixMarket matrix coordinate complex general\n", 1, "kind coordinate complex"),
    "skew": ("%%MatrixMarket matrix coordinate real skew-symmetric\n", 1, "skew-symmetric"),
    "symmetric": ("%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1 1\n", None, "symm"),
    "no sizes": (GENERAL + "% nothing\n", None, "no size line"),
    "sizes": (GENERAL + "%\n5 x 3\n", 3, "no size line"),
    "cut off": (GENERAL + "5 3 2\n1 1 1\n", None, "2 entries are"),
    "outside": (PATTERN + "%\n5 3 1\n1 4\n", 4, "'4' is not known"),
    "ids": (PATTERN + "4 3 1\n1 1\n", None, "4 rows are announced"),
}


@pytest.mark.parametrize(
    ("text", "line", "problem"), BAD_MATRICES.values(), ids=BAD_MATRICES.keys()
)
def test_matrix_market(tmp_path, text, line, problem):
    write(tmp_path, {"entries.mtx": text, "rows.tsv": ROWS, "cols.tsv": COLS})
    error = refused(tmp_path)
    assert error.path == tmp_path / "entries.mtx"
    assert error.line == line
    assert problem in error.problem


def test_missing_files(tmp_path):
    assert "looked for entries.tsv, entries.csv, entries.mtx" in refused(tmp_path).problem
    assert "looked for train.tsv" in refused(tmp_path, entries="train").problem
    assert refused(tmp_path / "a.tsv").problem == "there is no such file"
    assert refused(tmp_path / "a.tsv").path == tmp_path / "a.tsv"
    assert "suffix of a.xlsx" in refused(tmp_path / "a.xlsx").problem


def test_two_files_of_one_name(tmp_path):
    write(tmp_path, {"entries.tsv": GOOD, "entries.csv": GOOD})
    assert refused(tmp_path).problem == "there is both entries.tsv and entries.csv"


def test_damaged_gzip(tmp_path):
    write(tmp_path, {"entries.tsv.gz": gzip.compress(GOOD.encode() * 100)[:-12]})
    assert "damaged" in refused(tmp_path).problem
    write(tmp_path, {"entries.tsv.gz": GOOD})
    assert "damaged" in refused(tmp_path).problem


def test_parquet(tmp_path):
    path = tmp_path / "entries.parquet"
    parquet.write_table(pyarrow.table({"row": ["a", None], "col": ["x", "y"]}), path)
    error = refused(tmp_path)
    assert (error.path, error.column) == (f"{path}, position 1", "row")
    assert error.problem == "the id is missing"
    parquet.write_table(pyarrow.table({"row": ["a"], "col": ["x"], "value": [None]}), path)
    assert refused(tmp_path).problem == "there is no value"
    path.write_text(GOOD)
    assert "no Parquet file" in refused(tmp_path).problem


def test_place_beyond_the_first_block(tmp_path, monkeypatch):
    monkeypatch.setattr("sidelight.data.text._BLOCK", 64)
    lines = [f"r{k},c{k},1" for k in range(100)]
    lines[50] = '"r\n50",c50,1\n'  # one record on two lines and a blank line after it
    for bad, problem in (("r99,c99,x", "'x' is not"), ("r99,c99", "2 fields"), ("a\0,b,1", "NUL")):
        write(tmp_path, {"entries.csv": "\n".join(["row,col,value", *lines, bad])})
        error = refused(tmp_path)
        assert (error.line, problem in error.problem) == (104, True)


def test_options(tmp_path):
    write(tmp_path, {"entries.tsv": GOOD})
    assert "'error', 'drop'" in refused(tmp_path, unknown="ignore").remedy
    assert "'first'" in refused(tmp_path, duplicates="min").remedy
    with pytest.raises(TypeError, match="row_edgs"):
        read_dataset(tmp_path, row_edgs="x.tsv")
