import numpy as np
import pytest
from numpy.polynomial import chebyshev

from sidelight.covariance.chebyshev import coefficients
from sidelight.errors import InputError

T = np.linspace(-1, 1, 501)


def test_recovers_a_polynomial():
    np.testing.assert_allclose(
        coefficients(lambda t: 4 * t**3 - 3 * t + 2), [2, 0, 0, 1], atol=1e-15
    )


def test_a_constant_needs_one_coefficient():
    np.testing.assert_allclose(coefficients(np.ones_like), [1.0], rtol=1e-15)


def test_zero_is_one_zero():
    np.testing.assert_array_equal(coefficients(np.zeros_like), [0.0])


@pytest.mark.parametrize("a", [0.1, 1.0, 10.0, 100.0, 1000.0])
def test_evaluates_to_rounding_at_a_degree_that_grows(a):
    found = coefficients(lambda t: np.exp(-a * (1 - t)))
    np.testing.assert_allclose(chebyshev.chebval(T, found), np.exp(-a * (1 - T)), atol=2e-13)
    assert np.abs(found[-1]) > 1e-14 * np.abs(found).max()


def test_the_root_of_the_default_diffusion_has_degree_15():
    assert len(coefficients(lambda t: np.sqrt(np.exp(-(1 - t)) + 1))) == 16


def test_refuses_what_no_polynomial_follows():
    with pytest.raises(InputError, match="too sharp for a polynomial of degree 16384"):
        coefficients(np.sign)
