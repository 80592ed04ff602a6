"""Conditional densities: proper, conditioned, and each row by itself."""

import pytest
import torch

from asterism.nn.densities import GaussianDensity, MaskedFlow
from asterism.nn.image_densities import ConvolutionalEncoder, VariationalDensity


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def small_vae(**options):
    sizes = {"latent_dim": 4, "widths": (8, 8, 8), "n_transforms": 2, "hidden": 16}
    return VariationalDensity(6, **{**sizes, **options})


DENSITIES = {
    "gaussian": (2, lambda: GaussianDensity(2, 6)),
    "maf": (2, lambda: MaskedFlow(2, 6, hidden=(16, 16))),
    "maf, one coordinate": (1, lambda: MaskedFlow(1, 6, hidden=(16, 16))),
    "maf, released form": (2, lambda: MaskedFlow(2, 6, hidden=(16, 16), faithful=True)),
    "maf, mixing": (5, lambda: MaskedFlow(5, 6, hidden=(16, 16), mixing=True)),
    "vae": (784, small_vae),
}


def points(dim, *shape, seed=0):
    x = draw(*shape, dim, seed=seed)
    return x.sigmoid() if dim == 784 else x


@pytest.mark.parametrize("name", DENSITIES)
def test_gradients_reach_every_parameter(name):
    dim, make = DENSITIES[name]
    density = make()
    density.log_prob(points(dim, 2, 7), draw(2, 6)).sum().backward()
    for parameter_name, parameter in density.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name


@pytest.mark.parametrize("name", DENSITIES)
def test_a_row_has_its_value_in_any_company(name):
    dim, make = DENSITIES[name]
    density = make().eval()
    x, context = points(dim, 2, 7), draw(2, 6)
    whole = density.log_prob(x, context)
    assert whole.shape == (2, 7)
    alone = density.log_prob(x[1:, 3:4], context[1:])
    torch.testing.assert_close(alone[0, 0], whole[1, 3], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(density.log_prob(x.flip(1), context), whole.flip(1))


@pytest.mark.parametrize("name", ["gaussian", "maf", "maf, released form"])
def test_densities_integrate_to_one(name):
    density = DENSITIES[name][1]().double()
    axis = torch.linspace(-6, 6, 161, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        log_p = density.log_prob(grid.expand(2, -1, -1), draw(2, 6).double())
    total = log_p.exp().sum(dim=1) * (axis[1] - axis[0]) ** 2
    torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-3, atol=0)


def test_gaussian_is_torch_normal():
    density = GaussianDensity(3, 6)
    x, context = draw(2, 5, 3), draw(2, 6, seed=1)
    mean, scale = density.parameters_of(context)
    normal = torch.distributions.Normal(mean[:, None], scale[:, None])
    torch.testing.assert_close(density.log_prob(x, context), normal.log_prob(x).sum(-1))


def first_coordinate_moves(flow):
    """Largest change of the first step's u_1 when the context changes."""
    x = draw(1, 9, 2)
    first = flow.steps[0]
    return (first(x, draw(1, 6))[0] - first(x, draw(1, 6, seed=1))[0])[..., 0].abs().max().item()


def test_the_context_moves_the_first_coordinate_but_not_in_the_released_form():
    assert first_coordinate_moves(MaskedFlow(2, 6, hidden=(16, 16))) > 1e-2
    assert first_coordinate_moves(MaskedFlow(2, 6, hidden=(16, 16), faithful=True)) == 0


def test_steps_are_autoregressive():
    for faithful in (False, True):
        step = MaskedFlow(4, 6, hidden=(32, 32), faithful=faithful).steps[0]
        jacobian = torch.autograd.functional.jacobian(
            lambda x, step=step: step(x[None, None], draw(1, 6))[0][0, 0], draw(4)
        )
        assert jacobian.triu(1).abs().max() == 0
        assert (jacobian.diagonal() > 0).all()
        assert jacobian[3, 0].abs() > 0


def test_the_released_form_needs_two_coordinates():
    with pytest.raises(ValueError, match="faithful=True with dim=1"):
        MaskedFlow(1, 6, faithful=True)


def test_mixing_has_the_determinant_it_says():
    flow = MaskedFlow(3, 6, hidden=(8, 8), mixing=True)
    mixing = flow.mixings[0]
    with torch.no_grad():
        mixing.factors.copy_(draw(3, 3))
        mixing.log_diagonal.copy_(draw(3, seed=1))
    matrix = torch.autograd.functional.jacobian(lambda x: mixing(x)[0], draw(3))
    torch.testing.assert_close(mixing(draw(3))[1], matrix.slogdet().logabsdet)


# --- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "channels"), [(28, 1), (15, 1), (32, 3)])
def test_images_of_any_side_come_back_whole(side, channels):
    x = points(1, 2, 3, channels * side**2).squeeze(-1).sigmoid()
    encoder = ConvolutionalEncoder(side, channels, (8, 8, 8))
    assert encoder(x).shape == (2, 3, encoder.out_dim)
    density = small_vae(side=side, channels=channels)
    assert torch.isfinite(density.log_prob(x, draw(2, 6))).all()


def test_published_sizes_flatten_to_2048():
    assert ConvolutionalEncoder().out_dim == 2048


def test_too_small_an_image_is_refused():
    with pytest.raises(ValueError, match="side=9"):
        ConvolutionalEncoder(side=9)


def test_noise_is_drawn_in_training_and_fixed_in_evaluation():
    density, x, context = small_vae(), points(784, 1, 4), draw(1, 6)
    assert not torch.equal(density.log_prob(x, context), density.log_prob(x, context))
    density.eval()
    state = torch.get_rng_state()
    assert torch.equal(density.log_prob(x, context), density.log_prob(x, context))
    assert torch.equal(torch.get_rng_state(), state)
    assert density.is_bound
    assert not GaussianDensity(2, 6).is_bound


def test_the_bound_stays_below_the_evidence():
    """With a silent decoder the evidence is known: every pixel is a coin."""
    density = small_vae()
    with torch.no_grad():
        for parameter in density.decoder.parameters():
            parameter.zero_()
    x = (draw(1, 5, 784) > 0).float()
    bounds = []
    for _ in range(16):
        bounds.append(density.log_prob(x, draw(1, 6)).mean().item())
    mean = sum(bounds) / len(bounds)
    assert mean < torch.tensor(0.5).log().item()
