"""What every covariance must do: supply an operator and its dense truth, inherit every check."""

import json
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from sklearn.base import clone

from sidelight.covariance import (
    Axis,
    Covariance,
    Dense,
    Diffusion,
    Features,
    Identity,
    RandomWalk,
    SharedEntries,
    Sum,
    covariance_from_state,
)
from sidelight.errors import InputError

NEW = 3


class Case(NamedTuple):
    covariance: Covariance
    truth: np.ndarray  # over the known items and the new ones after them
    new: object


def features(size, seed=0):
    return np.random.default_rng(seed).normal(size=(size, 3))


def graph(size, weighted):
    """Return a graph of several components with at least one isolated node."""
    rng = np.random.default_rng(size)
    upper = np.triu(rng.random((size, size)) < 3 / size, k=1) * rng.uniform(0.2, 4, (size, size))
    upper[:, size // 2] = upper[size // 2] = 0
    upper[0, 1] = 1.5
    adjacency = upper + upper.T
    return adjacency if weighted else (adjacency > 0).astype(float)


def heat_truth(adjacency, links, a, b):
    """Exponentiate the directed graph in which the new nodes listen to the known ones."""
    size, degree = len(adjacency), adjacency.sum(axis=1)
    scale = np.array([d**-0.5 if d > 0 else 0.0 for d in degree])
    K = np.zeros_like(links)
    for i, j in zip(*np.nonzero(links), strict=True):
        K[i, j] = links[i, j] / np.sqrt(links[i].sum() * max(degree[j], links[i, j]))
    L = np.eye(size + len(links))
    L[:size, :size] -= scale[:, None] * adjacency * scale
    L[size:, :size] = -K
    heat = sl.expm(-a / 2 * L)
    return heat @ heat.T + b * np.eye(len(L))


def walk_truth(adjacency, links, alpha):
    """Let the new nodes be ``alpha K`` of the known ones plus noise of their own."""
    size, degree = len(adjacency), adjacency.sum(axis=1)
    scale = np.array([d**-0.5 if d > 0 else 0.0 for d in degree])
    known = (1 - alpha) * np.linalg.inv(np.eye(size) - alpha * scale[:, None] * adjacency * scale)
    K = np.zeros_like(links)
    for i, j in zip(*np.nonzero(links), strict=True):
        K[i, j] = links[i, j] / np.sqrt(links[i].sum() * max(degree[j], links[i, j]))
    across = alpha * K @ known
    among = alpha * across @ K.T + (1 - alpha) * np.eye(len(links))
    return np.block([[known, across.T], [across, among]])


def listening(size):
    """Return links of three new nodes: some, one to the isolated node, none."""
    links = np.zeros((NEW, size))
    links[0, [0, 3]] = [2.0, 0.5]
    links[1, [1, size // 2]] = [1.0, 3.0]
    return links


CENTRAL = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
FORWARD = {0: -25 / 12, 1: 4, 2: -3, 3: 4 / 3, 4: -1 / 4}


def difference(C, name, X):
    """Differentiate ``C @ X`` by five points, on one side where the parameter is 0."""
    here, (_, high) = C.parameters()[name], C.ranges()[name]
    points = CENTRAL if here > 0 else FORWARD
    step = 1e-3 * min(1.0, here or 1.0, high - here)
    moved = {k: C.with_parameters({name: here + k * step}).apply(X) for k in points}
    return sum(weight * moved[k] for k, weight in points.items()) / step


@cache
def built(contract, size):
    """Make each case once: an operator that a test could change would fail the next one."""
    return contract().case(size)


class Contract:
    sizes = (5, 60)

    def case(self, size):
        raise NotImplementedError

    @pytest.fixture
    def case_(self, size):
        return built(type(self), size)

    @pytest.fixture(name="C")
    def covariance(self, case_):
        return case_.covariance

    @pytest.fixture
    def truth(self, case_, size):
        return case_.truth[:size, :size]

    @pytest.fixture(name="X")
    def some_columns(self, size):
        return np.random.default_rng(1).normal(size=(size, 4))

    def close(self, found, expected, scale=1e-12):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=0, atol=scale * max(1, self.top))

    @pytest.fixture(autouse=True)
    def measure(self, case_):
        self.top = np.abs(case_.truth).max()

    def test_equals_the_dense_truth(self, C, truth):
        self.close(C.dense(), truth)

    def test_is_symmetric(self, C):
        dense = C.dense()
        self.close(dense, dense.T)

    def test_is_positive_semidefinite(self, C):
        assert sl.eigvalsh(C.dense())[0] >= -1e-12 * max(1, self.top)

    def test_applies_to_matrix_and_vector(self, C, truth, X):
        self.close(C.apply(X), truth @ X, 1e-11)
        self.close(C.apply(X[:, 0]), truth @ X[:, 0], 1e-11)
        assert C.apply(X[:, :0]).shape == (len(X), 0)

    def test_applies_to_more_columns_than_a_block(self, C, truth):
        wide = np.random.default_rng(2).normal(size=(C.size, 70))
        self.close(C.apply(wide), truth @ wide, 1e-11)

    @pytest.mark.parametrize("name", ["apply", "root", "root_t"])
    @pytest.mark.parametrize(
        "view",
        [
            np.asfortranarray,
            lambda X: np.repeat(X, 2, axis=0)[::2],
            lambda X: np.repeat(X, 2, axis=1)[:, ::2],
            lambda X: X[::-1].copy()[::-1],
            lambda X: X.astype(np.float32),
            lambda X: X.astype(np.int64),
        ],
        ids=["fortran", "every-other-row", "every-other-column", "reversed", "float32", "int64"],
    )
    def test_takes_any_layout(self, C, name, view):
        rows = C.root_size if name == "root" else C.size
        X = np.random.default_rng(3).integers(-9, 9, size=(rows, 4)).astype(float)
        self.close(getattr(C, name)(view(X)), getattr(C, name)(X), 1e-11)

    @pytest.mark.parametrize("name", ["apply", "root", "root_t"])
    def test_never_writes_nor_shares_its_input(self, C, name):
        X = np.ones((C.root_size if name == "root" else C.size, 2))
        X.setflags(write=False)
        out = getattr(C, name)(X)
        assert not np.shares_memory(out, X)
        out[:] = 7.0
        assert (X == 1).all()

    def test_roots_are_adjoint(self, C, X):
        Z = np.random.default_rng(4).normal(size=(C.root_size, 4))
        left, right = np.sum(C.root(Z) * X), np.sum(Z * C.root_t(X))
        bound = np.linalg.norm(C.root(Z)) * np.linalg.norm(X)
        assert abs(left - right) <= 1e-13 * max(1, bound)

    def test_root_times_root_is_the_covariance(self, C, truth):
        self.close(C.root(C.root_t(np.eye(C.size))), truth)

    def test_root_takes_vectors(self, C):
        vector, wide = np.arange(C.root_size) * 1.0, np.arange(C.size) * 1.0
        self.close(C.root(vector), C.root(vector[:, None])[:, 0], 1e-11)
        self.close(C.root_t(wide), C.root_t(wide[:, None])[:, 0], 1e-11)

    def test_diagonal(self, C, truth):
        self.close(C.diagonal(), truth.diagonal())
        C.diagonal()[:] = -1.0
        self.close(C.diagonal(), truth.diagonal())

    def test_rows(self, C, truth):
        index = np.array([3, 0, 3], dtype=np.int32)
        self.close(C.rows(index), truth[index])
        assert C.rows(index[:0]).shape == (0, C.size)
        other = np.arange(C.size)[::-2]
        self.close(C.between(index, other), truth[np.ix_(index, other)])
        self.close(C.between(other, index[:1]), truth[np.ix_(other, index[:1])])
        assert C.between(index[:0], other).shape == (0, len(other))
        rough = C.rough_rows(index)
        assert rough.dtype == np.float32
        np.testing.assert_allclose(rough, truth[index], atol=1e-6 * np.abs(truth).max(initial=1))
        assert C.rough_rows(index[:0]).shape == (0, C.size)
        C.rows(index)[:] = -1.0
        self.close(C.rows(index), truth[index])

    def test_cross_equals_the_truth_on_the_union(self, case_, size, X):
        cross, joint = case_.covariance.cross(case_.new), case_.truth
        assert (cross.size, cross.known) == (NEW, size)
        self.close(cross.apply(np.eye(size)), joint[size:, :size])
        self.close(cross.apply(X), joint[size:, :size] @ X, 1e-11)
        self.close(cross.apply(X[:, 0]), joint[size:, :size] @ X[:, 0], 1e-11)
        self.close(cross.block(), joint[size:, size:])
        self.close(cross.diagonal(), joint.diagonal()[size:])

    def test_joint_is_positive_semidefinite(self, case_, size):
        cross = case_.covariance.cross(case_.new)
        across = cross.apply(np.eye(size))
        joint = np.block([[case_.covariance.dense(), across.T], [across, cross.block()]])
        assert sl.eigvalsh(joint)[0] >= -1e-11 * max(1, self.top)

    def test_slopes_are_what_differences_come_to(self, C, X):
        for name in C.parameters():
            found, expected = C.slope(name).apply(X), difference(C, name, X)
            # what is left of a difference after cancellation, where the slope is all but 0
            rounding = 1e-11 * max(1, self.top)
            bound = 1e-7 * np.abs(found).max() + rounding
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound)

    def test_slopes_answer_alike_in_all_forms(self, C, X):
        index = np.array([3, 0, 3], dtype=np.int32)
        for slope in map(C.slope, C.parameters()):
            assert slope.size == C.size
            whole = slope.apply(np.eye(C.size))
            self.close(whole, whole.T)
            self.close(slope.apply(X), whole @ X, 1e-11)
            self.close(slope.apply(X[:, 0]), whole @ X[:, 0], 1e-11)
            self.close(slope.diagonal(), whole.diagonal())
            self.close(slope.diagonal(index), whole.diagonal()[index])
            self.close(slope.rows(index), whole[index])
            assert slope.rows(index[:0]).shape == (0, C.size)

    def test_slopes_refuse_what_does_not_fit(self, C, size):
        for slope in map(C.slope, C.parameters()):
            with pytest.raises(InputError, match=f"{size} rows, found shape"):
                slope.apply(np.ones((size + 1, 2)))
            with pytest.raises(InputError, match="item -1 at position 0"):
                slope.rows(np.array([-1]))
            with pytest.raises(InputError, match=f"item {size} at position 0"):
                slope.diagonal(np.array([size]))

    def test_parameters_are_taken_back(self, C):
        present = C.parameters()
        assert all(type(value) is float for value in present.values())
        assert C.ranges().keys() == present.keys()
        assert C.with_parameters(present).parameters() == present
        self.close(C.with_parameters(present).dense(), C.dense(), 0)

    def test_parameters_change_one_at_a_time(self, C):
        before = C.dense()
        for name, value in C.parameters().items():
            other = 0.9 * value + 0.05
            changed = C.with_parameters({name: other})
            assert type(changed) is type(C)
            assert changed.parameters() == C.parameters() | {name: other}
            assert covariance_from_state(*changed.state()).parameters() == changed.parameters()
            self.close(changed.with_parameters({name: value}).dense(), before, 0)
            assert C.parameters()[name] == value

    def test_refuses_unknown_parameters(self, C):
        names = ", ".join(C.parameters())
        remedy = f"use one of {names}" if names else "it has none that are learnt"
        with pytest.raises(InputError, match=rf"has no parameter 'speed'; {remedy}\."):
            C.with_parameters({"speed": 1.0})
        with pytest.raises(InputError, match="has no parameter 'speed'"):
            C.slope("speed")

    def test_cross_rows(self, case_, size):
        cross, index = case_.covariance.cross(case_.new), np.array([2, 0, 2])
        self.close(cross.rows(index), case_.truth[size:, :size][index])
        assert cross.rows(index[:0]).shape == (0, size)
        with pytest.raises(InputError, match=f"item {NEW} at position 0"):
            cross.rows(np.array([NEW]))

    def test_loadings_draw_new_and_known_items_together(self, case_, C, size):
        cross = C.cross(case_.new)
        loadings, rest = cross.loadings()
        assert loadings.shape == (NEW, C.root_size)
        top = max(1, self.top)
        across = C.root(loadings.T).T
        np.testing.assert_allclose(across, cross.apply(np.eye(size)), atol=1e-9 * top, rtol=0)
        among = loadings @ loadings.T + rest
        np.testing.assert_allclose(among, cross.block(), atol=1e-9 * top, rtol=0)
        assert sl.eigvalsh(rest)[0] >= -1e-14 * top
        np.testing.assert_allclose(rest, rest.T, atol=1e-14 * top, rtol=0)

    def test_carriers_add_up(self, case_, C, size):
        weights = np.random.default_rng(6).normal(size=size)
        axis = Axis.place("row", C, case_.new)
        known = np.random.default_rng(7).permutation(size)[:20]
        whole = np.concatenate([C.apply(weights), C.cross(case_.new).apply(weights)])
        for item in [*map(int, known), *range(size, size + NEW)]:
            carried = axis.carriers(item, weights)
            assert isinstance(carried.own, float)
            assert (np.diff(carried.items) > 0).all()
            assert item not in carried.items
            assert (carried.amounts != 0).all()
            self.close(np.array(carried.own + carried.amounts.sum()), whole[item], 1e-11)
            assert item < size or carried.own == 0

    def test_carriers_refuse_what_is_not_there(self, case_, C, size):
        cross, weights = C.cross(case_.new), np.ones(size)
        with pytest.raises(InputError, match=f"item {size} at position 0"):
            C.carriers(size, weights)
        with pytest.raises(InputError, match="item -1 at position 0"):
            cross.carriers(-1, weights)
        with pytest.raises(InputError, match=f"row {size + NEW} at position 0"):
            Axis.place("row", C, case_.new).carriers(size + NEW, weights)
        for place in (C, cross):
            with pytest.raises(InputError, match=rf"vector of {size} weights, found shape"):
                place.carriers(0, weights[1:])
            with pytest.raises(InputError, match="found shape"):
                place.carriers(0, weights[:, None])

    def test_clone_returns_itself(self, C):
        assert clone(C) is C

    def test_state_makes_the_same_operator_bit_for_bit(self, case_, C, X):
        settings, arrays = C.state()
        again = covariance_from_state(
            json.loads(json.dumps(settings)), {k: v.copy() for k, v in arrays.items()}
        )
        assert type(again) is type(C)
        assert again.state()[0] == settings
        for name, array in again.state()[1].items():
            assert array.dtype == arrays[name].dtype
            np.testing.assert_array_equal(array, arrays[name])
        np.testing.assert_array_equal(again.apply(X), C.apply(X))
        np.testing.assert_array_equal(again.root_t(X), C.root_t(X))
        new = case_.new
        np.testing.assert_array_equal(again.cross(new).apply(X), C.cross(new).apply(X))

    def test_does_not_follow_what_it_was_made_from(self, C, X):
        settings, arrays = C.state()
        arrays = {name: array.copy() for name, array in arrays.items()}
        again = covariance_from_state(settings, arrays)
        for array in arrays.values():
            array[...] = 0
        np.testing.assert_array_equal(again.apply(X), C.apply(X))

    @pytest.mark.parametrize("name", ["apply", "root", "root_t"])
    def test_refuses_a_wrong_number_of_rows(self, C, name):
        rows = C.root_size if name == "root" else C.size
        pattern = rf"expected .* {rows} rows, found shape \({rows + 1}, 2\)"
        with pytest.raises(InputError, match=pattern):
            getattr(C, name)(np.ones((rows + 1, 2)))
        with pytest.raises(InputError, match="found shape"):
            getattr(C, name)(np.ones((rows, 2, 1)))

    def test_cross_refuses_a_wrong_number_of_rows(self, case_, size):
        with pytest.raises(InputError, match=rf"{size} rows, found shape \({size - 1}, 2\)"):
            case_.covariance.cross(case_.new).apply(np.ones((size - 1, 2)))

    def test_rows_refuses_items_that_are_not_there(self, C, size):
        with pytest.raises(
            InputError, match=rf"item {size} at position 1 is outside 0..{size - 1}"
        ):
            C.rows(np.array([0, size]))
        with pytest.raises(InputError, match="item -1 at position 0"):
            C.rows(np.array([-1]))

    def test_prints_in_one_line(self, C):
        assert "\n" not in repr(C)
        assert len(repr(C)) < 200


def pytest_generate_tests(metafunc):
    if "size" in metafunc.fixturenames:
        metafunc.parametrize("size", metafunc.cls.sizes)


class TestIdentity(Contract):
    def case(self, size):
        return Case(Identity(size), np.eye(size + NEW), NEW)


class TestDense(Contract):
    def case(self, size):
        G = features(size + NEW)
        C = G @ G.T
        new = C[size:, :size], C[size:, size:]
        return Case(Dense(C[:size, :size]), C, new)


class TestDenseFullRank(Contract):
    def case(self, size):
        G = np.random.default_rng(0).normal(size=(size + NEW, 2 * size))
        C = G @ G.T
        return Case(Dense(sp.csr_array(C[:size, :size])), C, (C[size:, :size], C[size:, size:]))


class Neighbourly:
    """In a graph, what is carried to a node comes in through its links."""

    def test_carriers_are_neighbours(self, case_, C, size):
        weights, adjacency = np.random.default_rng(6).normal(size=size), C.graph.adjacency()
        for item in range(min(size, 60)):
            assert set(C.carriers(item, weights).items) <= set(adjacency[[item]].indices)
        cross = C.cross(case_.new)
        for item in range(NEW):
            assert set(cross.carriers(item, weights).items) <= set(np.flatnonzero(case_.new[item]))

    def test_nothing_is_carried_to_an_isolated_node(self, case_, C, size):
        carried = C.carriers(size // 2, np.ones(size))
        assert len(carried.items) == 0
        self.close(np.array(carried.own), C.diagonal()[size // 2])
        assert len(C.cross(case_.new).carriers(NEW - 1, np.ones(size)).items) == 0

    def test_parameters_share_the_graph(self, C):
        for name, value in C.parameters().items():
            assert C.with_parameters({name: 0.9 * value + 0.05}).graph is C.graph


class TestDiffusionUnweighted(Neighbourly, Contract):
    sizes = (5, 60, 500)
    weighted, a, b = False, 1.0, 1.0

    def case(self, size):
        adjacency, links = graph(size, self.weighted), listening(size)
        truth = heat_truth(adjacency, links, self.a, self.b)
        return Case(Diffusion(sp.coo_array(adjacency), self.a, self.b), truth, links)


class TestDiffusionWeighted(TestDiffusionUnweighted):
    weighted, a, b = True, 3.0, 0.1


class TestDiffusionWithoutNugget(TestDiffusionUnweighted):
    sizes = (5, 60)
    weighted, a, b = True, 40.0, 0.0


class TestDiffusionWithoutHeat(TestDiffusionUnweighted):
    sizes = (5, 60)
    weighted, a, b = True, 0.0, 0.5


class TestRandomWalk(Neighbourly, Contract):
    alpha = 0.8

    def case(self, size):
        adjacency, links = graph(size, weighted=True), listening(size)
        C = RandomWalk(sp.coo_array(adjacency), self.alpha)
        return Case(C, walk_truth(adjacency, links, self.alpha), links)


class TestRandomWalkFar(TestRandomWalk):
    alpha = 0.99


class TestRandomWalkAtHome(TestRandomWalk):
    alpha = 0.0


class TestFeaturesLinear(Contract):
    def case(self, size):
        X = features(size + NEW)
        return Case(Features(X[:size]), X @ X.T, X[size:])


class TestFeaturesLinearSparse(Contract):
    def case(self, size):
        X = features(size + NEW)
        X[X < 0.3] = 0.0
        return Case(Features(sp.csc_array(X[:size])), X @ X.T, sp.coo_array(X[size:]))


class TestFeaturesCosine(Contract):
    form = staticmethod(np.asarray)

    def case(self, size):
        X = features(size + NEW)
        X[2] = 0.0
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        unit = np.divide(X, lengths, where=lengths > 0, out=np.zeros_like(X))
        C = Features(self.form(X[:size]), "cosine")
        return Case(C, unit @ unit.T, self.form(X[size:]))


class TestFeaturesCosineSparse(TestFeaturesCosine):
    form = staticmethod(sp.csr_array)


class TestSharedEntries(Contract):
    def case(self, size):
        pattern = np.random.default_rng(4).random((size + NEW, 7)) < 0.4
        pattern[2] = False
        lengths = np.sqrt(pattern.sum(axis=1))
        shared = pattern.astype(float) @ pattern.T
        scale = np.outer(lengths, lengths)
        truth = np.divide(shared, scale, where=scale > 0, out=np.zeros_like(shared))
        values = sp.coo_array(pattern[:size] * 3.5)
        return Case(SharedEntries(values), truth, pattern[size:] * 2.5)


def pairwise_kernel(X, Z, kernel, scale):
    difference = X[:, None] - Z[None]
    if kernel == "rbf":
        return np.exp(-(difference**2).sum(axis=2) / (2 * scale**2))
    return np.exp(-np.abs(difference).sum(axis=2) / scale)


class TestFeaturesRbf(Contract):
    kernel, form = "rbf", staticmethod(np.asarray)

    def case(self, size):
        X = features(size + NEW)
        X[1] = X[0]  # twins: the kernel is singular
        C = Features(self.form(X[:size]), self.kernel, length_scale=1.7)
        return Case(C, pairwise_kernel(X, X, self.kernel, 1.7), self.form(X[size:]))


class TestFeaturesRbfSparse(TestFeaturesRbf):
    form = staticmethod(sp.csr_array)


class TestFeaturesLaplacian(TestFeaturesRbf):
    kernel = "laplacian"


class TestFeaturesLaplacianSparse(TestFeaturesLaplacian):
    form = staticmethod(sp.csr_array)


class TestFeaturesNystrom(Contract):
    choose, form = "k-means++", staticmethod(np.asarray)

    def case(self, size):
        X = features(size + NEW)
        C = Features(
            self.form(X[:size]),
            "rbf",
            length_scale=1.7,
            method="nystrom",
            landmarks=size // 2,
            choose=self.choose,
            random_state=5,
        )
        z = X[C.landmarks]
        to_landmarks = pairwise_kernel(X, z, "rbf", 1.7)
        among = pairwise_kernel(z, z, "rbf", 1.7)
        return Case(C, to_landmarks @ sl.pinvh(among) @ to_landmarks.T, self.form(X[size:]))

    def close(self, found, expected, scale=1e-12):
        super().close(found, expected, 1e4 * scale)  # K_zz is inverted on both sides


class TestFeaturesNystromSparse(TestFeaturesNystrom):
    choose, form = "random", staticmethod(sp.csr_array)


class TestSum(Contract):
    def case(self, size):
        heat = TestDiffusionWeighted().case(size)
        linear = TestFeaturesLinearSparse().case(size)
        dense = TestDense().case(size)
        C = Sum([heat.covariance, linear.covariance], [0.5, 2.0]) + dense.covariance * 0.0
        truth = 0.5 * heat.truth + 2 * linear.truth
        return Case(C + Identity(size), truth + np.eye(len(truth)), self.news(heat, linear, dense))

    def news(self, *cases):
        return [*(case.new for case in cases), NEW]


class TestSumOfKernels(Contract):
    def case(self, size):
        cases = [
            TestRandomWalk().case(size),
            TestFeaturesRbf().case(size),
            TestFeaturesLaplacianSparse().case(size),
            TestDiffusionWithoutNugget().case(size),
        ]
        weights = [0.7, 1.3, 0.2, 2.0]
        C = Sum([case.covariance for case in cases], weights)
        truth = sum(weight * case.truth for weight, case in zip(weights, cases, strict=True))
        return Case(C, truth, [case.new for case in cases])
