"""An oriented network and the baselines once more, in PyTorch: batch first, autograd, torch's own operations.

`python -m tests.layers.torch_oracle` (where torch is installed) writes torch_numbers.json, so that the essential
comparisons also run without torch. Inputs are sines, not random numbers: they are the same in every version of NumPy.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tigra import Training, build_network
from tigra.baselines import SpatialTransformer
from tigra.baselines.harmonic.harmonic_conv import ring_basis
from tigra.baselines.harmonic.modulus import EPSILON, FLOOR, HEAD_FLOOR
from tigra.layers.map_norm import EPSILON as MAP_EPSILON
from tigra.layers.map_norm import FEATURE_EPSILON
from tigra.models.loss import negative_log_likelihood
from tigra.options import FitOptions

NUMBERS = Path(__file__).with_name("torch_numbers.json")
N_STEPS, RATE, N_IMAGES = 5, 0.01, 40  # more images than a micro-batch has
NETWORKS = {
    "ConvNet": ("C[2]-P[2]-C[3]-FC[4]", (10, 9)),
    "STN": ("C[2]-ST[6]-C[3]-FC[4]", (10, 9)),
    "HarmNet": ("HRC[1, 2]-HCN[2]-HRC[2, 2]-HRC[2, 3]-HCN[3]-HRC[3, 2]", (6, 6)),
    "Oriented": ("OC[2, 2]-GC[2]-OC[3, 1]-GD[2]-OC[2, 3]-DP[12]-S[2]-FC[4]", (9, 8)),
}
OPTIONS = {"Oriented": {"diagonal_weight": 0.25, "batch_norm": True, "diffusion": 1}}


def wave(*shape, phase=0.0, scale=1.0):
    """Numbers without a pattern that anyone can make again."""
    return scale * np.sin(1.7 * np.arange(np.prod(shape)) ** 1.3 + phase).reshape(shape)


def images_and_labels(name):
    return 0.5 + 0.5 * wave(N_IMAGES, *NETWORKS[name][1], phase=1.0), np.arange(N_IMAGES) % 3


def make_network(name):
    """A small network in float64 whose parameters are waves, none of them 0; its constants fit the images."""
    architecture, shape = NETWORKS[name]
    network = build_network(architecture, shape, 3, dtype="float64", dense_init="he", **OPTIONS.get(name, {}))
    network.parameters[:] = wave(network.parameters.size, phase=0.3, scale=0.5)
    for layer in network.layers:
        if "gamma" in layer.params:
            layer.params["gamma"] += 1
        if isinstance(layer, SpatialTransformer):  # near the identity, or all is read outside of the planes
            layer.params["theta_weight"] *= 0.05
            layer.params["theta_bias"][:] = [0.8, 0.3, 0.1, -0.2, 0.9, 0.05]
    network.calibrate(images_and_labels(name)[0])
    return network


def tigra_answers(name, threads=1):
    """Loss, scores and gradient of the start, and the parameters after five steps of Adam on one batch."""
    network, (images, labels) = make_network(name), images_and_labels(name)
    replica = network.replica(training=True)
    scores = replica.forward(network.signal(network.prepare(images)))
    loss, grad = negative_log_likelihood(scores, labels)
    replica.backward(grad)
    options = FitOptions(epochs=N_STEPS, batch_size=N_IMAGES, learning_rate=RATE, schedule="constant")
    training = Training(network, SimpleNamespace(train=(images, labels), valid=(images, labels)), options, threads)
    for _ in training.run():
        pass
    after = training.current[: network.n_parameters]
    return {"loss": loss, "scores": scores, "gradient": replica.gradients, "parameters": after}


def torch_answers(name):
    """The same by PyTorch, on one thread: the arrays are small."""
    import torch

    torch.set_num_threads(1)
    network, (images, labels) = make_network(name), images_and_labels(name)
    leaves = [torch.tensor(array, requires_grad=True) for layer in network.layers for array in layer.params.values()]
    optimizer = torch.optim.Adam(leaves, lr=RATE)
    x, answers = torch.tensor(images)[:, None], {}
    for step in range(N_STEPS):
        scores = torch_forward(network, leaves, x)
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            answers |= {"loss": loss.item(), "scores": scores.detach().numpy().T}
            answers["gradient"] = np.concatenate([leaf.grad.numpy().ravel() for leaf in leaves])
        optimizer.step()
    return answers | {"parameters": np.concatenate([leaf.detach().numpy().ravel() for leaf in leaves])}


def torch_forward(network, leaves, x):
    """Scores (B, C) of images (B, 1, H, W) by the layers of a network with these parameters."""
    left = iter(leaves)
    for layer in network.layers:
        x = STEPS[type(layer).__name__](layer, x, *(next(left) for _ in layer.params))
    return x


def _standardise(layer, x):
    return (x - float(layer.state["mean"][0])) / float(layer.state["deviation"][0])


def _conv(layer, x, weight, bias):
    from torch.nn.functional import conv2d

    return conv2d(x, weight, bias)


def _max_pool(layer, x):
    from torch.nn.functional import max_pool2d

    return max_pool2d(x, layer.size)


def _spatial_transformer(layer, x, *localisation):
    return grid_sampled(x, _theta(x, *localisation), layer.size, layer.outside)


def _theta(x, hidden_weight, hidden_bias, theta_weight, theta_bias):
    from torch.nn.functional import avg_pool2d

    hidden = (avg_pool2d(x, 2).flatten(1) @ hidden_weight.T + hidden_bias).relu()
    return (hidden @ theta_weight.T + theta_bias).reshape(-1, 2, 3)


def grid_sampled(x, theta, size, outside):
    """x (B, C, H, W) read at affine places theta (B, 2, 3), size (rows, columns) of them."""
    from torch.nn.functional import affine_grid, grid_sample

    grid = affine_grid(theta, (*x.shape[:2], *size), align_corners=True)
    return grid_sample(x, grid, mode="bilinear", padding_mode=outside, align_corners=True)


def _harmonic_conv(layer, x, radial, phase=None):
    """x (B, C, H, W) real, or (B, 2 orders, C, H, W) complex; four real convolutions for each complex one."""
    import torch
    from torch.nn.functional import conv2d

    x = x[:, None].to(torch.complex128) if layer.real else x
    filters = {}
    for m in (0, 1):
        rings = torch.tensor(ring_basis(m)).to(torch.complex128)
        turn = 1 if phase is None else torch.exp(-1j * phase[m])
        weight = torch.einsum("aij,aco->ocij", rings, layer.unit * radial[m].to(torch.complex128))
        filters[m] = weight * (1 if phase is None else turn.T[:, :, None, None])
    filters[-1] = filters[1].conj()

    def correlate(z, w):
        real = conv2d(z.real, w.real, padding=2) - conv2d(z.imag, w.imag, padding=2)
        return torch.complex(real, conv2d(z.real, w.imag, padding=2) + conv2d(z.imag, w.real, padding=2))

    orders = [sum(correlate(x[:, n], filters[o - n]) for n in range(x.shape[1])) for o in (0, 1)]
    return torch.stack(orders, dim=1)


def _modulus(z, floor):
    return z.abs().square().clamp(min=floor).sqrt()


def _modulus_relu(layer, z, bias):
    r = _modulus(z, FLOOR)
    return (r + bias[:, :, None, None]).relu() / r * z


def _modulus_norm(layer, z, gamma, beta):
    """torch's own batch normalisation, of the moduli of both orders as channels."""
    from torch.nn.functional import batch_norm

    r = _modulus(z, FLOOR)
    a = batch_norm(r.flatten(1, 2), None, None, gamma.flatten(), beta.flatten(), training=True, eps=EPSILON)
    return a.reshape(r.shape).relu() / r * z


def _mean_pool(layer, z):
    import torch
    from torch.nn.functional import avg_pool2d

    parts = [avg_pool2d(part.flatten(0, 1), layer.size) for part in (z.real, z.imag)]
    return torch.complex(*parts).reshape(*z.shape[:2], *parts[0].shape[1:])


def _stencil(x, graph, weights):
    """Every map (B, K, H, W) correlated with 3x3 weights; zeros outside, neighbours `dilation` apart."""
    import torch
    from torch.nn.functional import conv2d

    kernel = torch.tensor(weights, dtype=x.dtype).expand(x.shape[1], 1, 3, 3)
    return conv2d(x, kernel, padding=graph.dilation, dilation=graph.dilation, groups=x.shape[1])


def _laplacian(x, graph):
    w = graph.diagonal_weight
    return x - _stencil(x, graph, [[w, 1, w], [1, 0, 1], [w, 1, w]]) / (4 + 4 * w)


def _oriented_conv(layer, x, alpha, pairs):
    import torch

    graph, w = layer.graph, layer.graph.diagonal_weight
    powers = [x]
    for _ in range(layer.degree):
        powers.append(_laplacian(powers[-1], graph))
    a, b = (torch.einsum("rk,bkij->brij", part, torch.cat(powers[:2], dim=1)) for part in pairs)
    right = np.array([[-w, 0, w], [-1, 0, 1], [-w, 0, w]]) / (2 + 4 * w)
    (a_x, a_y), (b_x, b_y) = ((_stencil(y, graph, right), _stencil(y, graph, right.T)) for y in (a, b))
    terms = torch.cat([*powers, a_x * b_x + a_y * b_y, a_x * b_y - a_y * b_x], dim=1)
    return torch.einsum("ot,btij->boij", alpha, terms)


def _map_norm(layer, x, gamma, beta):
    """torch's own batch normalisation of x and of an empty map with the same mean and variance."""
    from torch.nn.functional import batch_norm

    variance, mean = x.var(dim=(0, 2, 3), unbiased=False), x.mean(dim=(0, 2, 3))
    h = beta - gamma * mean / (variance + MAP_EPSILON).sqrt()
    a = batch_norm(x, None, None, gamma, beta, training=True, eps=MAP_EPSILON)
    z = a.relu() - h.relu()[:, None, None]
    for _ in range(layer.diffusion):
        z = z - _laplacian(z, layer.graph) / 2
    return z


def _coarsen(layer, x):
    from torch.nn.functional import avg_pool2d

    x = x - _laplacian(x, layer.graph) / 2
    size = [2 - n % 2 for n in x.shape[2:]]  # an odd side: every second node
    return avg_pool2d(x, size, stride=2)


def _dynamic_pool(layer, x):
    """Equal sizes stay or go together; many are, where a rectifier has cut maps off."""
    sizes = x.abs().flatten(2)
    level = sizes.topk(layer.n_active + 1, dim=2).values[..., -1:]
    return x * (sizes > level + 1e-9).reshape(x.shape)


def _statistics(layer, x):
    import torch

    signals = [x, _laplacian(x, layer.graph) - x]
    while len(signals) <= layer.max_order:
        signals.append(2 * (_laplacian(signals[-1], layer.graph) - signals[-1]) - signals[-2])
    moments = [m for t in signals for m in (t.abs().mean(dim=(2, 3)), t.abs().var(dim=(2, 3), unbiased=False))]
    return torch.stack(moments, dim=2).flatten(1)


def _feature_norm(layer, x):
    from torch.nn.functional import batch_norm

    return batch_norm(x, None, None, training=True, eps=FEATURE_EPSILON)


STEPS = {
    "OrientedConv": _oriented_conv,
    "MapNorm": _map_norm,
    "Coarsen": _coarsen,
    "DynamicPool": _dynamic_pool,
    "Statistics": _statistics,
    "FeatureNorm": _feature_norm,
    "StandardisePixels": _standardise,
    "Conv": _conv,
    "MaxPool": _max_pool,
    "SpatialTransformer": _spatial_transformer,
    "HarmonicConv": _harmonic_conv,
    "ModulusReLU": _modulus_relu,
    "ModulusNorm": _modulus_norm,
    "MeanPool": _mean_pool,
    "InvariantHead": lambda layer, z, bias: _modulus(z, HEAD_FLOOR).sum(1).mean((2, 3)) + bias,
    "ReLU": lambda layer, x: x.relu(),
    "Flatten": lambda layer, x: x.flatten(1),
    "Dense": lambda layer, x, weight, bias: x @ weight.T + bias,
}


def stored_numbers():
    """What `main` wrote: name of a network -> its answers."""
    return json.loads(NUMBERS.read_text(encoding="utf-8"))


def main():
    """Write what torch says to the file of numbers."""
    answers = {name: {key: np.asarray(a).tolist() for key, a in torch_answers(name).items()} for name in NETWORKS}
    lines = (f"  {json.dumps(key)}: {json.dumps(value)}" for name in answers for key, value in [(name, answers[name])])
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
