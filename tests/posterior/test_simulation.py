"""Simulation-based calibration: where the model is the truth, the truth is one more draw.

Tables come from the prior, so the rank of the true value among the posterior's draws is uniform
(Talts et al., 2018). Ranks of single cells stay uniform when a posterior ignores the entries, those
of its misfit to them do not (Modrák et al., 2023): both are asked. The band around the ranks'
distribution is that of Säilynoja, Bürkner and Vehtari (2022), for all quantities at once.
"""

import numpy as np
import pytest
from scipy.stats import binom

import sidelight as sl
from sidelight.evaluation import coverage

SHAPE, SIGMA2 = (9, 6), 0.3
TABLES, FEWER, DRAWS, SELECTIONS = 250, 100, 99, 1000
OBSERVED, HELD, NEW = [(0, 0), (5, 3)], [(2, 1), (7, 4)], [(9, 0), (9, 5)]
CELLS = np.argwhere(np.ones((SHAPE[0] + 1, SHAPE[1])))
ASKED = [row * SHAPE[1] + col for row, col in OBSERVED + HELD + NEW]


def graph(size, rng):
    upper = np.triu(rng.random((size, size)) < 0.4, k=1).astype(float)
    return upper + upper.T


@pytest.fixture(scope="module")
def prior():
    """Both covariances, what describes the new row, and dense roots, the new row's included."""
    rng = np.random.default_rng(11)
    row_cov = sl.Diffusion(graph(SHAPE[0], rng), a=1.5, b=0.1)
    col_cov = sl.Diffusion(graph(SHAPE[1], rng), a=1.0, b=0.2)
    links = np.eye(1, SHAPE[0], 2) + np.eye(1, SHAPE[0], 6)
    cross = row_cov.cross(links)
    beside = cross.apply(np.eye(SHAPE[0]))
    C = np.block([[row_cov.dense(), beside.T], [beside, cross.block()]])
    return row_cov, col_cov, links, np.linalg.cholesky(C), np.linalg.cholesky(col_cov.dense())


def simulate(prior, seed, tables=TABLES, noise=1.0, row_cov=None):
    """Rank the truth and every draw among each other, and cover the truth, table by table.

    The model is told ``noise`` times the variance of the noise, or another row covariance.
    """
    told, col_cov, links, G, H = prior
    rng = np.random.default_rng(seed)
    model = sl.MVGP(row_cov or told, col_cov, sigma2=noise * SIGMA2, tol=1e-10)
    ranks, covered = [], []
    for _ in range(tables):
        z = (G @ rng.standard_normal((len(G), len(H))) @ H.T).ravel()
        known = rng.random(SHAPE) < 0.5
        known[tuple(np.transpose(OBSERVED))], known[tuple(np.transpose(HELD))] = True, False
        seen = np.flatnonzero(known)  # cells and the table's are numbered alike: rows come first
        y = z[seen] + np.sqrt(SIGMA2) * rng.standard_normal(len(seen))
        found = model.fit(CELLS[seen], y).postdata_
        drawn = np.vstack([z, found.sample(CELLS, DRAWS, rng, new_rows=links)])
        misfit = np.sum((drawn[:, seen] - y) ** 2, axis=1)
        asked = np.column_stack([drawn[:, ASKED], drawn.mean(axis=1), misfit])
        ranks.append(asked.argsort(axis=0).argsort(axis=0))
        ends = found.interval(CELLS, 0.9, noise=False, new_rows=links)
        covered.append(coverage(z, *ends).mean())
    return np.array(ranks), np.array(covered)


def excursion(ranks, seed=0):
    """How far the truth's ranks stray from uniform, in units of the 95% band: below 1 is inside.

    At each rank the band is between two quantiles of a binomial distribution, of one probability
    at all ranks and for all quantities, such that 95% of true posteriors stay within everywhere.
    Under one, truth and draws can change places: it is found by letting some draw of each table
    play the truth, which keeps the dependence between the quantities.
    """
    rng, (tables, size, _) = np.random.default_rng(seed), ranks.shape
    at = np.arange(1, size)[:, None]
    law, middle, counts = binom(tables, at / size), tables * at / size, np.arange(tables + 1)
    tail = np.minimum(law.cdf(counts), law.sf(counts - 1))

    def below(chosen):
        return np.sum(ranks[np.arange(tables), None, chosen] < at, axis=0)

    selections = rng.integers(size, size=(SELECTIONS, tables))
    edge = np.quantile([tail[at - 1, below(each)].min() for each in selections], 0.05)
    edge *= 1 - 1e-9  # the edge itself is inside
    off = below(np.zeros(tables, dtype=int)) - middle
    outside = np.where(off > 0, law.isf(edge) + 1, law.ppf(edge) - 1)
    return float(np.max(off / (outside - middle)))


def test_the_truth_is_one_more_draw(prior):
    ranks, covered = simulate(prior, seed=0)
    assert excursion(ranks) < 1
    error = covered.std(ddof=1) / np.sqrt(TABLES)
    assert error < 0.005
    assert abs(covered.mean() - 0.9) < 3 * error


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_wrong_noise_shows(prior, noise):
    ranks, _ = simulate(prior, seed=0, tables=FEWER, noise=noise)
    assert excursion(ranks) >= 1


def test_a_wrong_covariance_shows(prior):
    wrong = sl.Diffusion(prior[0].graph, a=6.0, b=0.1)
    ranks, _ = simulate(prior, seed=0, tables=FEWER, row_cov=wrong)
    assert excursion(ranks) >= 1


def test_a_posterior_that_ignores_the_entries_shows_in_the_misfit_alone(prior):
    ranks, _ = simulate(prior, seed=0, tables=FEWER, noise=1e6)
    assert excursion(ranks[:, :, :-1]) < 1
    assert excursion(ranks) >= 1
