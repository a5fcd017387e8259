"""A small ConvNet in PyTorch, as a practitioner would write it. Imports torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

BATCH, RATE = 50, 2e-3
LEAST_STEPS, MOST_STEPS, EPOCHS = 600, 2000, 10


class TorchConvNet:
    """Three convolutions with batch normalisation and pooling, then two dense layers with dropout.

    Parameters
    ----------
    image_shape : tuple of int
        (height, width), or (height, width, 3) in colour.
    n_classes : int
        Number of classes.
    seed : int
        Of the initial values, the order of the pictures, and dropout.
    """

    def __init__(self, image_shape: tuple[int, ...], n_classes: int, seed: int):
        torch.set_num_threads(1)  # as all contenders; its threads are none of those that threadpoolctl finds before
        torch.manual_seed(seed)
        channels = 3 if len(image_shape) == 3 else 1
        layers: list[nn.Module] = []
        for width in (32, 64, 128):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
            channels = width
        n_features = channels * (image_shape[0] // 8) * (image_shape[1] // 8)
        head = [nn.Flatten(), nn.Dropout(0.5), nn.Linear(n_features, 128), nn.ReLU(), nn.Linear(128, n_classes)]
        self.network = nn.Sequential(*layers, *head)

    def fit(self, pictures: np.ndarray, labels: np.ndarray) -> TorchConvNet:
        """Train with Adam and one cycle of the learning rate."""
        images, targets = _tensor(pictures), torch.from_numpy(labels)
        n_steps = min(max(LEAST_STEPS, EPOCHS * len(labels) // BATCH), MOST_STEPS)
        adam = torch.optim.AdamW(self.network.parameters(), weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, n_steps)
        self.network.train()
        order = torch.empty(0, dtype=torch.int64)
        for _ in range(n_steps):
            if len(order) < 2:  # batch normalisation needs two
                order = torch.randperm(len(labels))
            batch, order = order[:BATCH], order[BATCH:]
            adam.zero_grad()
            nn.functional.cross_entropy(self.network(images[batch]), targets[batch], label_smoothing=0.1).backward()
            adam.step()
            schedule.step()
        return self

    def predict(self, pictures: np.ndarray) -> np.ndarray:
        """Labels of pictures."""
        self.network.eval()
        with torch.inference_mode():
            parts = [self.network(part).argmax(dim=1) for part in _tensor(pictures).split(500)]
        return torch.cat(parts).numpy()


def _tensor(pictures: np.ndarray) -> torch.Tensor:
    planes = pictures[:, None] if pictures.ndim == 3 else np.moveaxis(pictures, 3, 1)
    return torch.from_numpy(np.ascontiguousarray(planes, np.float32)) - 0.5
