import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sidelight as sl
from sidelight.app import printing
from sidelight.app.cli import app
from sidelight.data import sample_unknown
from sidelight.models import BY_NAME

RATINGS = """row\tcol\tvalue
a\tx\t1
a\ty\t2
b\tx\t3
c\tz\t-1.5
d\ty\t0.5
e\tz\t2.5
"""
ROWS = "id\tname\na\tAda\nb\tBen\nc\tCy\nd\tben\ne\tEve\n"
EDGES = "a\tb\tweight\na\tb\t1\nb\tc\t2\nd\te\t0.5\n"
FEATURES = "id\tage\theight\na\t1\t2\nb\t0\t1\nc\t-1\t0.5\nd\t2\t2\ne\t1\t-1\n"


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.tsv").write_text(text)
    return folder


@pytest.fixture
def ratings(tmp_path):
    return write(tmp_path / "ratings", entries=RATINGS, rows=ROWS, row_edges=EDGES)


@pytest.fixture
def positives(tmp_path):
    rng = np.random.default_rng(0)
    cells = np.argwhere(rng.random((30, 20)) < 0.15)
    entries = "row\tcol\n" + "".join(f"r{m}\tc{n}\n" for m, n in cells)
    rows = "id\n" + "".join(f"r{m}\n" for m in range(30))
    cols = "id\n" + "".join(f"c{n}\n" for n in range(20))
    ring = "a\tb\n" + "".join(f"r{m}\tr{(m + 1) % 30}\n" for m in range(30))
    return write(tmp_path / "pos", entries=entries, rows=rows, cols=cols, row_edges=ring)


def call(*args):
    return CliRunner().invoke(app, list(map(str, args)))


def call_well(*args):
    answer = call(*args)
    assert answer.exit_code == 0, answer.output
    assert answer.stderr == ""
    return answer.stdout


def refusal(*args, code=2):
    answer = call(*args)
    assert answer.exit_code == code, answer.output
    assert answer.stdout == ""
    assert answer.stderr.startswith("sidelight: ")
    assert answer.stderr.count("\n") == 1
    return answer.stderr.removeprefix("sidelight: ").removesuffix("\n")


@pytest.fixture
def model(ratings, tmp_path):
    out = tmp_path / "model.safetensors"
    call_well("fit", ratings, "--out", out, "--sigma2", 0.1, "--lam", 0.5, "--mean", "global")
    return out


def library(folder, make=sl.ConstrainedMVGP, **settings):
    data = sl.read_dataset(folder)
    return make(*sl.covariances(data), **settings).fit(data)


EVERY_PAIR = np.argwhere(np.ones((5, 3)))


class TestFit:
    def test_is_the_librarys(self, ratings, model):
        expected = library(ratings, sigma2=0.1, lam=0.5, mean="global", random_state=0)
        found = sl.load(model)
        np.testing.assert_array_equal(found.predict(EVERY_PAIR), expected.predict(EVERY_PAIR))
        assert found.row_names_ == ("Ada", "Ben", "Cy", "ben", "Eve")

    @pytest.mark.parametrize(
        ("kind", "made"),
        [
            ("constrained", sl.ConstrainedMVGP),
            ("trace", sl.TraceGP),
            ("mvgp", sl.MVGP),
        ],
    )
    def test_json(self, ratings, tmp_path, kind, made):
        out = tmp_path / "m"
        text = call_well("fit", ratings, "--model", kind, "--tol", 1e-6, "--out", out, "--json")
        expected = library(ratings, made, tol=1e-6)
        report, proof = json.loads(text), asdict(expected.certificate_)
        found = report.pop("certificate")
        assert report == {
            "model": str(out),
            "kind": made.__name__,
            "shape": [5, 3],
            "entries": 6,
            "calibration": None,
            "negatives": None,
            "seed": 0,
            "mean": 0.0,
            "value": None,
            "samples": None,
            "refit": None,
            "learnt": None,
            "notes": [],
        }
        for name in ("status", "reason", "objective", "dual", "relative_gap", "rank", "bound"):
            assert found[name] == proof[name]

    def test_text(self, ratings, tmp_path):
        out = tmp_path / "m"
        text = call_well("fit", ratings, "--out", out)
        proof = sl.load(out).certificate_
        assert text.splitlines() == [
            "5 rows x 3 columns, 6 known entries",
            "certified: the relative gap is at most tol = 0.0001",
            f"rank {proof.rank}, relative gap {proof.relative_gap:.2e}, bound {proof.bound:.2e}",
            f"{proof.seconds:.2f} seconds; the model is in {out}",
        ]

    def test_known_positives(self, positives, tmp_path):
        out = tmp_path / "m"
        text = call_well(
            "fit", positives, "--negatives", 0.5, "--seed", 3, "--lam", 2, "--out", out
        )
        data = sl.read_dataset(positives)
        drawn = sample_unknown(data.pairs, (30, 20), round(0.5 * len(data.pairs)), 3)
        assert f"{len(drawn)} unknown cells, drawn with seed 3, were taken as 0" in text
        pairs = np.concatenate([data.pairs, drawn])
        values = np.repeat([1.0, 0.0], [len(data.pairs), len(drawn)])
        expected = sl.ConstrainedMVGP(*sl.covariances(data), lam=2, random_state=3)
        expected.fit(pairs, values)
        every = np.argwhere(np.ones((30, 20)))
        np.testing.assert_array_equal(sl.load(out).predict(every), expected.predict(every))

    def test_known_positives_have_as_many_negatives(self, positives, tmp_path):
        report = json.loads(call_well("fit", positives, "--out", tmp_path / "m", "--json"))
        assert report["negatives"] == report["entries"]

    def test_heat(self, ratings, tmp_path):
        out = tmp_path / "m"
        call_well("fit", ratings, "--row-a", 2, "--row-b", 0.25, "--out", out)
        data = sl.read_dataset(ratings)
        expected = sl.Diffusion(data.rows.graph, 2, 0.25).dense()
        np.testing.assert_array_equal(sl.load(out).row_cov_.dense(), expected)

    def test_files_given_one_by_one(self, ratings, tmp_path):
        sides = ("--rows", ratings / "rows.tsv", "--row-edges", ratings / "row_edges.tsv")
        call_well("fit", ratings / "entries.tsv", *sides, "--out", tmp_path / "one")
        call_well("fit", ratings, "--out", tmp_path / "two")
        one, two = (sl.load(tmp_path / name).predict(EVERY_PAIR) for name in ("one", "two"))
        np.testing.assert_array_equal(one, two)

    def test_interrupted_is_saved(self, positives, tmp_path, monkeypatch):
        solve = sl.ConstrainedMVGP.fit

        def interrupted(self, *args, watch):
            os.kill(os.getpid(), signal.SIGINT)
            return solve(self, *args, watch=watch)

        monkeypatch.setattr(sl.ConstrainedMVGP, "fit", interrupted)
        text = call_well("fit", positives, "--samples", 3, "--out", tmp_path / "m")
        assert "stopped (interrupted): NOT certified" in text
        assert len(sl.load(tmp_path / "m").models_) == 1
        assert sl.load(tmp_path / "m").certificate_.reason == "interrupted"

    @pytest.mark.parametrize("kind", BY_NAME)
    def test_every_model_of_known_positives(self, positives, tmp_path, kind):
        out = tmp_path / "m"
        told = json.loads(call_well("fit", positives, "--model", kind, "--out", out, "--json"))
        assert told["kind"] == BY_NAME[kind].__name__
        alone = kind in ("popularity", "propagation")  # positives are enough
        assert (told["negatives"] is None) == alone
        assert (told["certificate"] is None) == (alone or kind == "bias")
        assert told["value"] == (None if alone else -1.0 if kind == "prodige" else 0.0)
        text = call_well("rank", out, "r3", "--top", 4)
        assert len(text.splitlines()) == 5
        assert text.splitlines()[1].startswith("1\tc")

    def test_settings_reach_the_model(self, positives, tmp_path):
        out = tmp_path / "m"
        args = ["--unobserved-weight", 0.1, "--refit", "--lam", 2, "--mean", "zero"]
        told = json.loads(call_well("fit", positives, *args, "--out", out, "--json"))
        assert told["negatives"] is None
        model = sl.load(out)
        assert (model.unobserved_weight, model.refit, model.mean) == (0.1, True, "zero")
        assert told["refit"]["rank"] == model.refit_.rank
        args = ["--model", "kpmf", "--factors", 2, "--restarts", 2, "--samples", 2]
        text = call_well("fit", positives, *args, "--shared-entries", 0.3, "--out", out)
        assert "the scores are averages over 2 such samples" in text
        assert "stationary point of rank 2" in text
        first = sl.load(out).models_[0]
        assert (first.n_factors, first.restarts) == (2, 2)
        assert repr(first.row_cov_).startswith("0.7 * Diffusion")
        args = ["--model", "propagation", "--alpha", 0.3, "--over", "rows"]
        text = call_well("fit", positives, *args, "--out", out)
        assert "a baseline without a certificate" in text
        assert sl.load(out).row_cov_.alpha == 0.3

    def test_values_that_are_all_alike_are_refused(self, positives, tmp_path):
        ones = tmp_path / "ones.tsv"
        ones.write_text("row\tcol\tvalue\na\tx\t1\nb\ty\t1\n")
        said = refusal("fit", ones, "--out", tmp_path / "m")
        assert "all entries have the value 1, which teaches nothing; leave the value column" in said
        said = refusal("fit", positives, "--negatives", 0, "--out", tmp_path / "m")
        assert said.startswith("--negatives 0 leaves known positives alone")
        args = ["--unobserved-weight", 0.1, "--samples", 2]
        said = refusal("fit", positives, *args, "--out", tmp_path / "m")
        assert said == "--samples is given, and this model draws no negatives; leave it out."

    @pytest.mark.parametrize("kind", ["pmf", "popularity", "propagation"])
    def test_sides_that_a_model_does_not_use_are_refused(self, positives, tmp_path, kind):
        for args in (["--row-a", 2], ["--shared-entries", 0.5]):
            said = refusal("fit", positives, "--model", kind, *args, "--out", tmp_path / "m")
            assert said.startswith(f"{args[0]} is given and {kind} has no use for it")

    def test_a_new_row_of_a_model_without_a_graph(self, positives, tmp_path):
        out = tmp_path / "m"
        call_well("fit", positives, "--model", "pmf", "--out", out)
        said = refusal("rank", out, "new", "--new-links", "r1")
        assert "--new-links is given, and the model's rows have no graph" in said

    def test_a_new_row_of_a_model_with_shared_entries(self, positives, tmp_path):
        out = tmp_path / "m"
        call_well("fit", positives, "--shared-entries", 0.5, "--lam", 0.5, "--out", out)
        told = call_well("rank", out, "new", "--new-links", "r1,r2", "--json")
        links = np.zeros((1, 30))
        links[0, [1, 2]] = 1
        expected = sl.load(out).rank(30, new_rows=[links, np.zeros((1, 20))])
        assert json.loads(told)["ranking"] == expected.records()

    def test_calibrate(self, ratings, tmp_path):
        out = tmp_path / "m"
        args = ["--calibrate", 0.34, "--seed", 5, "--shared-entries", 0.5, "--out", out]
        told = call_well("fit", ratings, *args)
        assert "2 of them, drawn with seed 5, calibrate the intervals and were not fitted" in told
        told = json.loads(call_well("fit", ratings, *args, "--json"))
        assert (told["entries"], told["calibration"]) == (6, 2)
        data = sl.read_dataset(ratings)
        held = np.random.default_rng(5).permutation(6)[:2]
        kept = np.setdiff1d(np.arange(6), held)
        train = data.with_entries(data.pairs[kept], data.values[kept])
        covs = sl.covariances(train, shared_entries=0.5)  # not of what was held out
        expected = sl.ConstrainedMVGP(*covs, random_state=5).fit(train)
        expected.calibrate(data.pairs[held], data.values[held])
        model = sl.load(out)
        np.testing.assert_array_equal(model.predict(EVERY_PAIR), expected.predict(EVERY_PAIR))
        for mine, theirs in zip(
            model.predict_interval(EVERY_PAIR, 0.5, "conformal"),
            expected.predict_interval(EVERY_PAIR, 0.5, "conformal"),
            strict=True,
        ):
            np.testing.assert_array_equal(mine, theirs)

    @pytest.mark.parametrize("share", [0, 1, -0.2, 1.5, 0.01, 0.99])
    def test_calibrate_leaves_entries_on_both_sides(self, ratings, tmp_path, share):
        said = refusal("fit", ratings, f"--calibrate={share}", "--out", tmp_path / "m")
        assert said == (
            f"--calibrate {share:g} of 6 entries leaves none on one side; give a share between 0"
            " and 1, such as 0.2."
        )

    def test_known_positives_do_not_calibrate(self, positives, tmp_path):
        said = refusal("fit", positives, "--calibrate", 0.2, "--out", tmp_path / "m")
        assert "known positives alone have no values to calibrate on; leave it out." in said

    def test_replaces_a_model_and_nothing_else(self, ratings, model, tmp_path):
        before = model.read_bytes()
        call_well("fit", ratings, "--lam", 3, "--out", model)
        assert model.read_bytes() != before
        thesis = tmp_path / "thesis.tex"
        thesis.write_text("years")
        assert "is no sidelight model" in refusal("fit", ratings, "--out", thesis)
        assert thesis.read_text() == "years"

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            (["--row-edges", "none.tsv"], "none.tsv: there is no such file; check the path."),
            (["--col-a", "2"], "--col-a is given and the cols have no graph"),
            (["--negatives", "1"], "the entries have values, and --negatives is for known"),
            (["--model", "mvgp", "--lam", "1"], "--lam is given and mvgp has no use for it"),
            (["--sigma2", "-1"], "sigma2 is -1.0; choose a positive finite number"),
        ],
    )
    def test_refusals(self, ratings, tmp_path, args, said):
        assert said in refusal("fit", ratings, "--out", tmp_path / "m", *args)
        assert not (tmp_path / "m").exists()

    def test_remedies_are_options(self, ratings, tmp_path):
        entries = ratings / "entries.tsv"
        entries.write_text(RATINGS + "q\tx\t1\n")
        said = refusal("fit", ratings, "--out", tmp_path / "m")
        assert said == (
            f"{entries}, line 8, column 'row': the id 'q' is not known; correct it, add it to the"
            " index set, or read with --unknown drop."
        )
        report = call_well("fit", ratings, "--unknown", "drop", "--json", "--out", tmp_path / "m")
        assert json.loads(report)["notes"] == ["entries.tsv: 1 entries with unknown ids dropped"]

    def test_too_many_negatives(self, positives, tmp_path):
        said = refusal("fit", positives, "--negatives", 100, "--out", tmp_path / "m")
        data = sl.read_dataset(positives)
        most = float(said.split("draw ")[1].split(" ")[0])
        assert round(most * len(data.pairs)) <= 600 - len(data.pairs)
        call_well("fit", positives, "--negatives", most, "--lam", 5, "--out", tmp_path / "m")

    def test_no_folder_is_said_before_the_work(self, tmp_path):
        said = refusal("fit", tmp_path / "nothing", "--out", tmp_path / "no" / "m")
        assert said.startswith(f"there is no folder {tmp_path / 'no'}")


class TestLearn:
    def test_noise_and_heat_are_learnt_and_told(self, ratings, tmp_path):
        out = tmp_path / "m"
        options = ["--mean", "global", "--sigma2", "learn", "--learn", "rows"]
        report = json.loads(call_well("fit", ratings, *options, "--out", out, "--json"))
        model = sl.load(out)
        assert report["learnt"]["values"] == model.learnt_.values
        assert report["learnt"]["values"]["sigma2"] == model.sigma2_
        said = call_well("fit", ratings, *options, "--out", out)
        assert f"sigma2 {model.sigma2_:.3g} (+-" in said

    def test_refusals(self, ratings, tmp_path):
        said = refusal("fit", ratings, "--sigma2", "much", "--out", tmp_path / "m")
        assert said == "--sigma2 is 'much'; give a positive number, or learn."
        said = refusal(
            "fit", ratings, "--model", "trace", "--sigma2", "learn", "--out", tmp_path / "m"
        )
        assert "nothing can be learnt here" in said


class TestRank:
    def test_lines_have_all_digits(self, model):
        lines = [line.split("\t") for line in call_well("rank", model, "b").splitlines()]
        expected = sl.load(model).rank("b")
        assert lines[0] == [
            "rank", "id", "name", "mean", "std", "low", "high", "observed", "ties", "bound",
        ]  # fmt: skip
        assert [line[1] for line in lines[1:]] == list(expected.ids)
        assert [float(line[3]) for line in lines[1:]] == expected.means.tolist()
        assert [float(line[4]) for line in lines[1:]] == expected.stds.tolist()
        assert [float(line[9]) for line in lines[1:]] == expected.bounds.tolist()

    @pytest.mark.parametrize("row", ["a", "ada", "ADA"])
    def test_json(self, model, row):
        answer = json.loads(call_well("rank", model, row, "--top", 2, "--all", "--json"))
        expected = sl.load(model).rank("a", 2, exclude_observed=False)
        assert answer == {"row": "a", "name": "Ada", "ranking": expected.records()}

    @pytest.mark.parametrize("intervals", ["auto", "postdata", "none"])
    def test_intervals(self, model, intervals):
        args = ["--intervals", intervals, "--level", 0.5, "--json"]
        answer = json.loads(call_well("rank", model, "b", *args))
        expected = sl.load(model).rank("b", intervals=intervals, level=0.5)
        assert answer["ranking"] == expected.records()
        assert (answer["ranking"][0]["low"] is None) == (intervals == "none")

    def test_conformal_intervals_need_a_calibrated_model(self, ratings, model, tmp_path):
        said = refusal("rank", model, "b", "--intervals", "conformal")
        assert said == (
            "the model is not calibrated for conformal intervals; fit it with --calibrate, or call"
            " calibrate in Python."
        )
        out = tmp_path / "calibrated"
        call_well("fit", ratings, "--calibrate", 0.5, "--out", out)
        args = ["--intervals", "conformal", "--level", 0.5, "--json"]
        answer = json.loads(call_well("rank", out, "a", *args))
        expected = sl.load(out).rank("a", intervals="conformal", level=0.5)
        low = [None if np.isinf(low) else low for low in expected.low.tolist()]
        assert [record["low"] for record in answer["ranking"]] == low

    def test_a_level_is_a_probability(self, model):
        assert "level is 1.5; choose a" in refusal("rank", model, "b", "--level", 1.5)

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ("BEN", "2 rows have the name 'BEN'; use an id: b, d."),
            ("Adda", "there is no row 'Adda' (did you mean 'Ada'?); give the id"),
        ],
    )
    def test_unclear_names(self, model, row, said):
        assert refusal("rank", model, row).startswith(said)

    def test_new_row_by_its_neighbours(self, model):
        answer = json.loads(
            call_well("rank", model, "patient", "--new-links", "a, Eve", "--top", 3, "--json")
        )
        new = np.array([[1.0, 0, 0, 0, 1]])
        expected = sl.load(model).rank(5, 3, new_rows=new)
        assert answer == {"row": "patient", "name": None, "ranking": expected.records()}

    def test_new_row_by_neighbours_and_features(self, ratings, tmp_path):
        write(ratings, row_features=FEATURES)
        out = tmp_path / "m"
        call_well("fit", ratings, "--out", out)
        args = ("rank", out, "new", "--new-links", "b", "--new-features", "1,-0.5")
        fitted = sl.load(out)
        described = [np.array([[0, 1.0, 0, 0, 0]]), np.array([[1, -0.5]])]
        expected = fitted.rank(5, new_rows=described).records()
        assert json.loads(call_well(*args, "--json"))["ranking"] == expected
        assert "--new-features is missing; give --new-features" in refusal(*args[:5])
        assert "'tall' is not a finite number" in refusal(*args[:6], "1,tall")
        assert refusal(*args[:6], "1,2,3").startswith("features")

    def test_a_new_row_needs_what_the_model_knows(self, model):
        said = refusal("rank", model, "new", "--new-features", "1,2")
        assert "by their graph, and --new-links is missing" in said

    def test_table_on_a_terminal(self, model, capsys, monkeypatch):
        records = sl.load(model).rank("a", exclude_observed=False).records()
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        printing.print_ranking("a: [Ada]", records)
        shown = capsys.readouterr().out
        assert "a: [Ada]" in shown
        for record in records:
            assert f"{record['mean']:.4g}" in shown


class TestPredict:
    PAIRS = "row\tcol\nb\ty\ne\tx\na\tx\n"
    INDEX = ((1, 1), (4, 0), (0, 0))

    def pairs(self, tmp_path, text=PAIRS):
        path = tmp_path / "pairs.tsv"
        path.write_text(text)
        return path

    def expected(self, model):
        return sl.load(model).predict(np.array(self.INDEX)).tolist()

    def test_lines_have_all_digits(self, model, tmp_path):
        lines = call_well("predict", model, self.pairs(tmp_path)).splitlines()
        found = [f"{k}\t{v!r}" for k, v in zip(self.ids(), self.expected(model), strict=True)]
        assert lines == ["row\tcol\tprediction", *found]

    def ids(self):
        return self.PAIRS.splitlines()[1:]

    def test_intervals(self, ratings, tmp_path):
        out, pairs, index = tmp_path / "m", self.pairs(tmp_path), np.array(self.INDEX)
        call_well("fit", ratings, "--calibrate", 0.5, "--out", out)
        model, args = sl.load(out), ["--level", 0.5, "--json", "--intervals"]
        low, high = model.predict_interval(index, 0.5)
        records = json.loads(call_well("predict", out, pairs, *args, "postdata"))["predictions"]
        assert [r["std"] for r in records] == model.postdata_.std(index).tolist()
        assert [r["low"] for r in records] == low.tolist()
        assert [r["high"] for r in records] == high.tolist()
        low, high = model.predict_interval(index, 0.5, "conformal")
        lines = call_well("predict", out, pairs, "--level", 0.5, "--intervals", "conformal")
        lines = [line.split("\t") for line in lines.splitlines()]
        assert lines[0] == ["row", "col", "prediction", "low", "high"]
        assert [float(line[3]) for line in lines[1:]] == low.tolist()
        assert [float(line[4]) for line in lines[1:]] == high.tolist()

    def test_intervals_that_the_model_does_not_have(self, ratings, model, tmp_path):
        out, pairs = tmp_path / "m", self.pairs(tmp_path)
        said = refusal("predict", model, pairs, "--intervals", "conformal")
        assert "is not calibrated for conformal intervals" in said
        call_well("fit", ratings, "--model", "trace", "--out", out)
        said = refusal("predict", out, pairs, "--intervals", "postdata")
        assert said.startswith("TraceGP has no postdata: without a prior there is no covariance;")

    def test_out(self, model, tmp_path):
        pairs, out = self.pairs(tmp_path), tmp_path / "out.tsv"
        text = call_well("predict", model, pairs)
        assert call_well("predict", model, pairs, "--out", out) == ""
        assert out.read_text() == text
        assert "is the file of pairs itself" in refusal("predict", model, pairs, "--out", pairs)
        assert pairs.read_text() == self.PAIRS
        nowhere = tmp_path / "no" / "out.tsv"
        assert "there is no folder" in refusal("predict", model, pairs, "--out", nowhere)

    def test_json(self, model, tmp_path):
        answer = json.loads(call_well("predict", model, self.pairs(tmp_path), "--json"))
        values = [record["prediction"] for record in answer["predictions"]]
        assert values == self.expected(model)
        assert [f"{r['row']}\t{r['col']}" for r in answer["predictions"]] == self.ids()

    @pytest.mark.parametrize(
        ("text", "place", "said"),
        [
            ("row\tcol\na\tx\naa\tx\n", "line 3, column 'row'", "the id 'aa' is not known"),
            ("row\tcol\n\na\tw\n", "line 3, column 'col'", "the id 'w' is not known"),
            ("row\tcol\na\t\n", "line 2, column 'col'", "the id is empty; write an id."),
        ],
    )
    def test_unknown_ids(self, model, tmp_path, text, place, said):
        path = self.pairs(tmp_path, text)
        assert refusal("predict", model, path).startswith(f"{path}, {place}: {said}")

    def test_missing_files(self, model, tmp_path):
        gone = tmp_path / "gone.tsv"
        assert refusal("predict", model, gone) == f"{gone}: there is no such file; check the path."
        assert refusal("rank", gone, "a").startswith(f"{gone}: there is no such file")


class TestExplain:
    def test_lines_have_all_digits(self, model):
        lines = [line.split("\t") for line in call_well("explain", model, "EVE", "y").splitlines()]
        told = sl.load(model).explain("e", "y")
        assert lines[0] == [
            "part", "row", "row_name", "col", "col_name", "value", "amount", "share",
        ]  # fmt: skip
        assert lines[1] == ["prediction", *[""] * 5, repr(told.prediction), ""]
        parts = {line[0]: float(line[6]) for line in lines[2:4]}
        assert parts == told.parts
        assert list(parts) == ["constant", "entries"]
        entries = [line for line in lines if line[0] == "entry"]
        assert [float(line[6]) for line in entries] == [r.amount for r in told.entries]
        assert sum(float(line[6]) for line in entries) == pytest.approx(parts["entries"])
        for axis in ("row", "col"):
            carried = [float(line[6]) for line in lines if line[0].startswith(f"{axis} ")]
            assert sum(carried) == pytest.approx(parts["entries"])

    def test_json(self, model):
        answer = json.loads(call_well("explain", model, "Ada", "z", "--top", 2, "--json"))
        told = sl.load(model).explain("a", "z", 2)
        assert answer == json.loads(json.dumps(asdict(told)))
        assert answer["row"] == {"id": "a", "name": "Ada"}
        assert len(answer["entries"]) == 2
        assert answer["rest_count"] == 4

    def test_the_rest_is_told(self, model):
        lines = [
            line.split("\t")
            for line in call_well("explain", model, "a", "z", "--top", 1).splitlines()
        ]
        told = sl.load(model).explain("a", "z", 1)
        rest = next(line for line in lines if line[0] == "5 other entries")
        assert float(rest[6]) == told.rest

    def test_a_new_row(self, model):
        args = ("patient", "y", "--new-links", "a, Eve")
        answer = json.loads(call_well("explain", model, *args, "--json"))
        told = sl.load(model).explain(5, "y", new_rows=np.array([[1.0, 0, 0, 0, 1]]))
        assert answer["row"] == {"id": "patient", "name": None}
        assert answer["prediction"] == told.prediction
        assert {each["id"] for each in answer["rows"]["items"]} <= {"a", "e"}

    def test_a_terminal_shows_tables(self, model, capsys, monkeypatch):
        told = sl.load(model).explain("a", "z", 2)
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        printing.print_explanation(told)
        text = capsys.readouterr().out
        for said in ("a: Ada, z", "entries", "carried to the row", "carried to the column"):
            assert said in text

    def test_refusals(self, model, ratings, tmp_path):
        said = refusal("explain", model, "a", "w")
        assert said.startswith("there is no column 'w'; give the id or the whole name of a column")
        out = tmp_path / "bias"
        call_well("fit", ratings, "--model", "bias", "--out", out)
        said = refusal("explain", out, "a", "x")
        assert said.startswith("Bias has no explanations: it is no product of covariances;")


class TestWhole:
    def test_a_bug_is_one_line(self, model, monkeypatch):
        def broken(model, row):
            raise RuntimeError("what\never")

        monkeypatch.setattr("sidelight.app.lookup.find_row", broken)
        said = refusal("rank", model, "a", code=1)
        assert said == "RuntimeError: what ever; this is a bug: run with --debug to see where"
        assert isinstance(call("--debug", "rank", model, "a").exception, RuntimeError)

    def test_version(self):
        assert call_well("--version") == f"sidelight {sl.__version__}\n"

    def test_every_option_is_documented(self):
        page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
        for command in ("fit", "rank", "predict", "explain", "demo"):
            section = page.split(f"\n## {command}\n")[1].split("\n## ")[0]
            options = set(re.findall(r"--[a-z][a-z0-9-]*", call_well(command, "--help")))
            assert options - {"--help"} <= set(re.findall(r"--[a-z][a-z0-9-]*", section))

    def test_demo(self, tmp_path, monkeypatch):
        asked = []
        monkeypatch.setattr("sidelight.app.demo.run", lambda *args: asked.append(args))
        call_well("demo", "--out", tmp_path, "--seed", 7)
        assert asked == [(tmp_path, 7)]

    def test_process(self, ratings, tmp_path):
        command = [sys.executable, "-m", "sidelight"]
        out = tmp_path / "m"
        made = subprocess.run(
            [*command, "fit", ratings, "--out", out, "--json"], capture_output=True, check=True
        )
        assert made.stderr == b""
        assert json.loads(made.stdout)["certificate"]["status"] == "certified"
        wrong = subprocess.run([*command, "rank", out, "zz"], capture_output=True, text=True)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert wrong.stderr.startswith("sidelight: there is no row 'zz'")
        assert wrong.stderr.count("\n") == 1

    @pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
    def test_ctrl_c_before_the_fit(self, tmp_path):
        out = tmp_path / "m"
        code = (
            "import os, signal, sidelight.data, sidelight.app.cli as cli\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it\n"
            "sidelight.data.read_dataset = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
            "cli.main()\n"
        )
        command = [sys.executable, "-c", code, "fit", "entries.tsv", "--out", str(out)]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 128 + signal.SIGINT
        assert ended.stderr == "sidelight: interrupted: nothing was written\n"
        assert not out.exists()


def test_json_says_null_for_what_is_not_finite(capsys):
    printing.print_json({"gap": float("inf"), "trace": [1.0, float("nan")]})
    assert json.loads(capsys.readouterr().out) == {"gap": None, "trace": [1.0, None]}
