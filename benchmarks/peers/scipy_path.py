"""NumPy and SciPy alone: CSR products and np.partition in tigra's layout (maps, nodes, batch), no Numba."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.peers.plan import Plan


def products(matrix: sparse.csr_array, x: np.ndarray) -> np.ndarray:
    """matrix @ x[k] for each map k of x (K, N, B)."""
    out = np.empty_like(x)
    for k in range(len(x)):
        out[k] = matrix @ x[k]
    return out


def powers(laplacian, x, degree) -> np.ndarray:
    """L^m x, (degree+1, K, N, B)."""
    terms = np.empty((degree + 1, *x.shape), x.dtype)
    terms[0] = x
    for m in range(1, degree + 1):
        for k in range(len(x)):
            terms[m, k] = laplacian @ terms[m - 1, k]
    return terms


def powers_adjoint(laplacian, terms) -> np.ndarray:
    """sum_m L^m terms[m] by Horner's rule."""
    result = terms[-1]
    for term in terms[-2::-1]:
        result = products(laplacian, result)
        result += term
    return result


def chebyshev(shifted, doubled, x, terms) -> np.ndarray:
    """Fill and return terms (K_max+1, N, B) with T_k(L - I) x of x (N, B); doubled is 2 (L - I)."""
    terms[0] = x
    if len(terms) > 1:
        terms[1] = shifted @ x
    for k in range(2, len(terms)):
        np.subtract(doubled @ terms[k - 1], terms[k - 2], out=terms[k])
    return terms


def chebyshev_adjoint(shifted, doubled, terms) -> np.ndarray:
    """sum_k T_k(L - I) terms[k] by Clenshaw's rule."""
    if len(terms) == 1:
        return terms[0].copy()
    later, after = terms[-1], None
    for k in range(len(terms) - 2, -1, -1):
        new = (doubled if k else shifted) @ later
        new += terms[k]
        if after is not None:
            new -= after
        later, after = new, later
    return later


def top_nodes(z, omega, n_active) -> np.ndarray:
    """The sets of dynamic pooling as (K, N, B) bool; no ties expected."""
    n_nodes = z.shape[1]
    candidates = np.where(omega, z, z.dtype.type(-np.inf))
    if n_active >= n_nodes:
        return np.broadcast_to(omega, z.shape).copy()
    columns = candidates.transpose(0, 2, 1).copy()
    columns.partition(n_nodes - 1 - n_active, axis=-1)
    return candidates > columns[:, None, :, n_nodes - 1 - n_active]


class ScipyStatistics:
    """Forward and backward of the statistics layer; keeps all t_k, which is faster here than a second recursion.

    The large array of all t_k is made once for each shape.
    """

    def __init__(self, graph, max_order: int, dtype):
        self.shifted = graph.shifted_laplacian.astype(dtype)
        self.doubled = 2 * self.shifted
        self.max_order = max_order
        self.arrays: dict = {}

    def forward(self, z: np.ndarray) -> np.ndarray:
        """(K, N, B) -> (K * 2 (K_max + 1), B)."""
        n_maps, n_nodes, n_batch = z.shape
        if z.shape not in self.arrays:
            self.arrays[z.shape] = np.empty((n_maps + 1, self.max_order + 1, n_nodes, n_batch), z.dtype)
        *self.terms, self.signs = self.arrays[z.shape]
        moments = np.empty((n_maps, self.max_order + 1, 2, n_batch), z.dtype)
        buffer = np.empty((n_nodes, n_batch), z.dtype)
        for k in range(n_maps):
            chebyshev(self.shifted, self.doubled, z[k], self.terms[k])
            for order in range(self.max_order + 1):
                np.abs(self.terms[k][order], out=buffer)
                mean = buffer.mean(axis=0, out=moments[k, order, 0])
                np.subtract(buffer, mean, out=buffer)
                np.square(buffer, out=buffer)
                buffer.mean(axis=0, out=moments[k, order, 1])
        self.moments = moments
        return moments.reshape(-1, n_batch)

    def backward(self, grad_features: np.ndarray) -> np.ndarray:
        """dE/dfeatures -> dE/dz: sign(t) dE/dmu / N + 2 sign(t) (abs(t) - mu) dE/dsigma2 / N."""
        grad = grad_features.reshape(self.moments.shape) / self.moments.dtype.type(self.terms[0].shape[1])
        slope = 2 * grad[:, :, 1]  # of t
        height = grad[:, :, 0] - slope * self.moments[:, :, 0]  # of sign(t)
        out = np.empty((len(self.terms), *self.terms[0].shape[1:]), self.terms[0].dtype)
        for k, terms in enumerate(self.terms):
            signs = np.sign(terms, out=self.signs)
            signs *= height[k][:, None]
            terms *= slope[k][:, None]
            signs += terms
            out[k] = chebyshev_adjoint(self.shifted, self.doubled, signs)
        return out


class ScipySpectralConv:
    """z_i = sum_m alpha_im u_m, u_m = sum_k beta_k 1[N_k] L^m y_k, and its gradients."""

    def __init__(self, graph, alpha, beta):
        self.laplacian = graph.laplacian.astype(alpha.dtype)
        self.alpha, self.beta = alpha, beta

    def forward(self, y, sets) -> np.ndarray:
        """y, sets (K_in, N, B) -> z (K_out, N, B)."""
        self.y, self.sets = y, sets
        terms = powers(self.laplacian, y, self.alpha.shape[1] - 1)
        terms *= self.beta[:, None, None] * sets
        self.u = terms.sum(axis=1)
        return (self.alpha @ self.u.reshape(len(self.u), -1)).reshape(-1, *y.shape[1:])

    def backward(self, grad_z) -> np.ndarray:
        """dE/dz -> dE/dy; sets grad_alpha, grad_beta."""
        flat = grad_z.reshape(len(grad_z), -1)
        self.grad_alpha = flat @ self.u.reshape(len(self.u), -1).T
        grad_u = (self.alpha.T @ flat).reshape(self.u.shape)
        back = powers_adjoint(self.laplacian, grad_u[:, None] * self.sets)
        self.grad_beta = np.einsum("knb,knb->k", self.y, back)
        back *= self.beta[:, None, None]
        return back


class NumpyAdam:
    """Adam in place, without arrays of its own in steady state."""

    def __init__(self, parameters, rate):
        self.parameters, self.rate, self.n_steps = parameters, rate, 0
        self.mean, self.square, self.work, self.more = (np.zeros_like(parameters) for _ in range(4))

    def step(self, gradient) -> None:
        self.n_steps += 1
        np.multiply(gradient, 0.1, out=self.work)
        self.mean *= 0.9
        self.mean += self.work
        np.square(gradient, out=self.work)
        self.work *= 0.001
        self.square *= 0.999
        self.square += self.work
        np.multiply(self.square, 1 / (1 - 0.999**self.n_steps), out=self.work)
        np.sqrt(self.work, out=self.work)
        self.work += 1e-8
        np.divide(self.mean, self.work, out=self.more)
        self.more *= self.rate / (1 - 0.9**self.n_steps)
        self.parameters -= self.more


class ScipyPeer:
    """The whole network, and the whole batch at once.

    Micro-batches of 32 took 1.2 to 1.6 times as long at MNIST-rot: SciPy's products want many columns.
    """

    name = "NumPy + SciPy, no Numba"

    def __init__(self, plan: Plan, rate: float):
        self.plan = plan
        self.parameters = np.concatenate([array.ravel() for array in plan.arrays])
        self.arrays = _views(self.parameters, plan.arrays)
        pairs = [tuple(self.arrays[i : i + 2]) for i in range(0, len(self.arrays), 2)]
        n_filters = len(plan.filters)
        self.convolutions = [ScipySpectralConv(plan.graph, *pair) for pair in pairs[:n_filters]]
        self.statistics = ScipyStatistics(plan.graph, plan.max_order, plan.dtype)
        self.dense = pairs[n_filters:]
        self.adam = NumpyAdam(self.parameters, rate)

    def _forward(self, images):
        y = np.ascontiguousarray(images.T)[None]
        sets = np.ones(y.shape, bool)
        self.sets = []
        for convolution, n_active in zip(self.convolutions, self.plan.pools, strict=True):
            z = convolution.forward(y, sets)
            sets = top_nodes(z, sets.any(axis=0, keepdims=True), n_active)
            self.sets.append(sets)
            y = z * sets
        x = (self.statistics.forward(y) - self.plan.mean[:, None]) / self.plan.deviation[:, None]
        self.inputs = []
        for weight, bias in self.dense:
            if self.inputs:
                x = np.maximum(x, 0)
            self.inputs.append(x)
            x = weight @ x + bias[:, None]
        return x

    def _backward(self, grad) -> list[np.ndarray]:
        gradients = []
        for place in range(len(self.dense) - 1, -1, -1):
            x = self.inputs[place]
            gradients[:0] = [grad @ x.T, grad.sum(axis=1)]
            grad = self.dense[place][0].T @ grad
            if place:
                grad *= x > 0
        grad = self.statistics.backward(grad / self.plan.deviation[:, None])
        for convolution, sets in zip(self.convolutions[::-1], self.sets[::-1], strict=True):
            grad = convolution.backward(grad * sets)
            gradients[:0] = [convolution.grad_alpha, convolution.grad_beta]
        return gradients

    def loss_and_gradient(self, images, labels):
        """Loss and gradient of a batch."""
        scores, places = self._forward(images), (labels, np.arange(len(labels)))
        shifted = scores - scores.max(axis=0)
        logs = shifted - np.log(np.exp(shifted).sum(axis=0))
        grad = np.exp(logs)
        grad[places] -= 1
        grad /= len(images)
        gradient = np.concatenate([part.ravel() for part in self._backward(grad)])
        return -float(logs[places].mean()), gradient

    def step(self, images, labels) -> float:
        """One training step; returns the loss before it."""
        loss, gradient = self.loss_and_gradient(images, labels)
        self.adam.step(gradient)
        return loss

    def scores(self, images) -> np.ndarray:
        """(B, N) -> (B, n_classes)."""
        return self._forward(images).T


def _views(vector, arrays) -> list[np.ndarray]:
    """Parts of a vector with the shapes of the arrays."""
    ends = np.cumsum([array.size for array in arrays])
    return [vector[end - array.size : end].reshape(array.shape) for end, array in zip(ends, arrays, strict=True)]
