"""A saved model is the model: whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import sidelight as sl

FEATURES = np.random.default_rng(0).standard_normal((5, 2))
GRAPH = np.array([[0, 1, 0], [1, 0, 3], [0, 3, 0]], float)
KINDS = [sl.ConstrainedMVGP, sl.TraceGP, sl.MVGP]


def fitted(kind):
    data = sl.Dataset(
        row_ids=("ü", "b", "c c", "d", "e"), col_ids=("x", "y", "z"),
        pairs=np.array([[0, 0], [1, 2], [4, 1], [3, 0]]), values=np.array([1.0, 2.0, -1.0, 0.5]),
        rows=sl.Side(names=("first", "", "third", "naïve", "fifth")),
    )  # fmt: skip
    rows = sl.Features(FEATURES, kernel="rbf") + 0.5 * sl.Identity(5)
    return kind(rows, sl.Diffusion(GRAPH), mean="global").fit(data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_answers_alike_bit_for_bit(kind, tmp_path):
    model, cells = fitted(kind), np.argwhere(np.ones((7, 4)))
    model.save(tmp_path / "model")
    loaded = sl.load(tmp_path / "model")
    new = {"new_rows": [FEATURES[:2] + 1, 2], "new_cols": [[1.0, 0, 0]]}
    np.testing.assert_array_equal(loaded.predict(cells, **new), model.predict(cells, **new))
    assert loaded.rank("c c").records() == model.rank("c c").records()
    assert loaded.certificate_ == model.certificate_
    assert loaded.row_names_ == model.row_names_
    assert loaded.col_names_ is None
    mine, theirs = model.get_params(), loaded.get_params()
    assert {k: v for k, v in mine.items() if "_cov" not in k} == {
        k: v for k, v in theirs.items() if "_cov" not in k
    }


def test_covariances_not_given_stay_not_given(tmp_path):
    sl.ConstrainedMVGP().fit([[4, 2]], [1.0]).save(tmp_path / "model")
    loaded = sl.load(tmp_path / "model")
    assert loaded.row_cov is None
    assert loaded.scores([0]).shape == (1, 3)


def test_the_file_is_safetensors_with_json(tmp_path):
    fitted(sl.MVGP).save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        settings = json.loads(file.metadata()["sidelight"])
    assert settings["kind"] == "MVGP"


def test_foreign_damaged_and_missing_files_are_refused(tmp_path):
    save_file({"a": np.zeros(2)}, tmp_path / "foreign")
    (tmp_path / "text").write_text("row\tcol\n")
    fitted(sl.MVGP).save(tmp_path / "cut")
    whole = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    for name in ("foreign", "text", "cut", "missing"):
        with pytest.raises(sl.InputError, match=name):
            sl.load(tmp_path / name)
    with pytest.raises(sl.InputError, match="no such folder"):
        fitted(sl.MVGP).save(tmp_path / "nowhere" / "model")


SAVER = """
import sys
import numpy as np
import sidelight as sl
rng = np.random.default_rng(int(sys.argv[2]))
X = np.argwhere(np.ones((400, 300)))
model = sl.MVGP(sl.Dense(np.eye(400)), sl.Dense(np.eye(300))).fit(X, rng.standard_normal(len(X)))
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
"""


def test_kill_during_save_leaves_a_whole_file(tmp_path):
    """Killed at many moments of an endless loop of saves, the place holds a whole model or none."""
    target = tmp_path / "model"
    with subprocess.Popen(
        [sys.executable, "-c", SAVER, str(target), "1"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGSTOP)
        for moment in range(25):  # look at what a kill at this moment would leave
            process.send_signal(signal.SIGCONT)
            time.sleep(0.001 + 0.003 * (moment % 7))
            process.send_signal(signal.SIGSTOP)
            if target.exists():
                assert sl.load(target).scores([0]).shape == (1, 300)
        os.kill(process.pid, signal.SIGKILL)
    if target.exists():
        assert sl.load(target).certificate_.status == "certified"
    else:
        pytest.fail("no save finished in time: the test has shown nothing")


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    model, target = fitted(sl.MVGP), tmp_path / "model"
    model.save(target)
    before = target.read_bytes()

    def full(_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        fitted(sl.ConstrainedMVGP).save(target)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
