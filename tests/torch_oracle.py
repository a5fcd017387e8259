"""The networks that TIGraNet is compared with once more, in PyTorch: batch first, autograd, torch's own operations.

`python -m tests.torch_oracle` (where torch is installed) writes tests/torch_numbers.json, so that the essential
comparisons also run without torch. Inputs are sines, not random numbers: they are the same in every version of NumPy.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tigra import Training, build_network
from tigra.layers import SpatialTransformer
from tigra.loss import negative_log_likelihood
from tigra.settings import FitOptions

NUMBERS = Path(__file__).with_name("torch_numbers.json")
N_STEPS, RATE, N_IMAGES = 5, 0.01, 40  # more images than a micro-batch has
NETWORKS = {
    "ConvNet": ("C[2]-P[2]-C[3]-FC[4]", (10, 9)),
    "STN": ("C[2]-ST[6]-C[3]-FC[4]", (10, 9)),
}


def wave(*shape, phase=0.0, scale=1.0):
    """Numbers without a pattern that anyone can make again."""
    return scale * np.sin(1.7 * np.arange(np.prod(shape)) ** 1.3 + phase).reshape(shape)


def images_and_labels(name):
    return 0.5 + 0.5 * wave(N_IMAGES, *NETWORKS[name][1], phase=1.0), np.arange(N_IMAGES) % 3


def make_network(name):
    """A small network in float64 whose parameters are waves, none of them 0; its constants fit the images."""
    architecture, shape = NETWORKS[name]
    network = build_network(architecture, shape, 3, dtype="float64", init="he")
    network.parameters[:] = wave(network.parameters.size, phase=0.3, scale=0.5)
    for layer in network.layers:
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
    return {"loss": loss, "scores": scores, "gradient": replica.gradients, "parameters": training.current}


def torch_answers(name):
    """The same by PyTorch."""
    import torch

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


STEPS = {
    "StandardisePixels": _standardise,
    "Conv": _conv,
    "MaxPool": _max_pool,
    "SpatialTransformer": _spatial_transformer,
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
