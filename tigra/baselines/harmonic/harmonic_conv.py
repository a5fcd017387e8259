"""Harmonic convolution: the layer HRC[in, out], equivariant to rotations (Worrall et al. 2017).

Harmonic maps are complex maps for each rotation order n = 0, 1. They are stored as real arrays
(order, part, C, H, W, B) with parts real and imaginary. A gradient with respect to such an array is the pair dE/dRe,
dE/dIm. When the image is rotated by an angle, a map of order n is rotated and multiplied by exp(i n angle), so its
modulus is only rotated.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tigra.baselines.harmonic.kernels import orbit_sums, orbit_sums_adjoint
from tigra.baselines.planes.planes import PlaneLayer
from tigra.errors import ShapeError

SIZE, N_RINGS = 5, 4  # side of a filter in pixels, number of its rings
EVEN_ORBITS = (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)  # one pixel of each, as (row, column) from the centre
ODD_ORBITS = (0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)


class HarmonicConv(PlaneLayer):
    """Cross-correlation with circular harmonics, from orders 0, 1 (or a real image) to orders 0, 1.

        W_m = exp(-i phase_m) sum_a B_m[a] radial_m[a]        m = 0, 1; W_{-1} = conj(W_1)
        z_o = sum_n y_n * W_{o-n}                             zeros outside of the planes, which keep their size

    B_m[a] is the ring of radius r_a times exp(-i m angle) (`ring_basis`). Each pair of input and output maps has
    its own radial_m[a] and phase_m.

    Parameters
    ----------
    radial : array of shape (2, 4, C_in, C_out)
        Weights of the rings, in units of `unit`; m and ring come first.
    phase : array of shape (2, C_in, C_out) or None
        Phases; None for filters without phases.
    real : bool
        True if the input is planes (C, H, W, B) of order 0 instead of harmonic maps (2, 2, C, H, W, B).
    unit : float
        Unit of `radial`. Weights of rings are small and phases of the order of 1, so Adam with one learning rate
        would change the former too fast. A unit of 1/10 slows them down by 10.

    Notes
    -----
    Pixels at mirrored places have the same weight up to sign, so they are added first (`orbit_sums`). Then each row
    of the image is one product of a matrix (2 C_out, 24 C_in) with these sums, for each order. This takes four times
    fewer multiplications than 25 pixels each, for the same function.

    Examples
    --------
    >>> layer = HarmonicConv(np.zeros((2, 4, 1, 1)), np.zeros((2, 1, 1)), real=True)
    >>> layer.params["radial"][0, 0] = 1.0  # the innermost ring of m = 0: about one pixel
    >>> pixel = np.diag([0.0, 1.0, 0.0]).reshape(1, 3, 3, 1)
    >>> z = layer.forward(pixel)
    >>> z.shape, bool(z[0, 0, 0, 1, 1, 0] > 5 * z[0, 0, 0, 0, 1, 0]), float(np.abs(z[1]).max())
    ((2, 2, 1, 3, 3, 1), True, 0.0)
    """

    def __init__(self, radial: np.ndarray, phase: np.ndarray | None, real: bool = False, unit: float = 1.0):
        super().__init__(**{"radial": radial} | ({} if phase is None else {"phase": phase}))
        fits = radial.ndim == 4 and radial.shape[:2] == (2, N_RINGS)
        if not fits or (phase is not None and phase.shape != (2, *radial.shape[2:])):
            raise ShapeError(
                f"HarmonicConv needs radial (2, {N_RINGS}, C_in, C_out) and phase (2, C_in, C_out) or None, got"
                f" {radial.shape} and {None if phase is None else phase.shape}."
            )
        self.real, self.unit = real, unit

    @staticmethod
    def shapes(n_in: int, n_out: int, phases: bool = True) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of the parameters."""
        return {"radial": (2, N_RINGS, n_in, n_out)} | ({"phase": (2, n_in, n_out)} if phases else {})

    @classmethod
    def init(cls, n_in, n_out, rng, dtype, real=False, phases=True, unit=0.1) -> HarmonicConv:
        """Initialise as the original: radial N(0, (0.7 sqrt(2 / (4 C_in C_out)))^2), phase U[0, 2 pi)."""
        deviation = 0.7 * np.sqrt(2.0 / (N_RINGS * n_in * n_out)) / unit
        shapes = cls.shapes(n_in, n_out, phases)
        radial = (deviation * rng.standard_normal(shapes["radial"])).astype(dtype)
        phase = rng.uniform(0, 2 * np.pi, shapes["phase"]).astype(dtype) if phases else None
        return cls(radial, phase, real, unit)

    def forward(self, y: np.ndarray) -> np.ndarray:
        """y (2, 2, C_in, H, W, B), or real (C_in, H, W, B)  ->  z (2, 2, C_out, H, W, B)."""
        y = self._checked(y)
        n_out, (height, width, n_batch) = self.params["radial"].shape[3], y.shape[3:]
        frames = self._framed(y)
        matrices = self._matrices(y.dtype)
        z = self._space.result("z", (2, 2, n_out, height, width, n_batch), y.dtype)
        row = self._space.array("row", (2, 2 * n_out, width * n_batch), y.dtype)
        for i in range(height):
            for order, sums in enumerate(self._sums(frames, i, n_batch)):
                np.matmul(matrices[order], sums, out=row[order])
            z[:, :, :, i] = row.reshape(2, 2, n_out, width, n_batch)
        self._cache = frames, matrices, n_batch
        return z

    def backward(self, grad_z: np.ndarray) -> np.ndarray:
        """dE/dz  ->  dE/dy; fills grads radial, phase. The orbit sums are computed again, row by row."""
        frames, matrices, n_batch = self._take_cache()
        n_out, (height, width) = grad_z.shape[2], grad_z.shape[3:5]
        grad_frames = self._space.array("grad_frames", frames.shape, frames.dtype)
        grad_frames[:] = 0
        grad_matrices = [np.zeros_like(matrix) for matrix in matrices]
        row = self._space.array("row", (2, 2 * n_out, width * n_batch), frames.dtype)
        for i in range(height):
            row.reshape(2, 2, n_out, width, n_batch)[:] = grad_z[:, :, :, i]
            for order, sums in enumerate(self._sums(frames, i, n_batch)):
                grad_matrices[order] += row[order] @ sums.T
                np.matmul(matrices[order].T, row[order], out=sums)  # overwrite the sums by their gradients
            self._sums_adjoint(grad_frames, i, n_batch)
        self._fill_grads(grad_matrices)
        inside = grad_frames.reshape(*frames.shape[:4], width + 4, n_batch)[:, :, :, 2:-2, 2:-2]
        return inside[0, 0].copy() if self.real else inside.copy()

    def to_onnx(self, to, signal):
        """Write one convolution from all orders and parts to all orders and parts."""
        zero, one = (np.einsum("aij,aco->ocij", ring_basis(m), a) for m, a in enumerate(self._ring_weights()))
        by_order = {-1: one.conj(), 0: zero, 1: one}
        blocks = [[_as_real(by_order[o - n]) for n in range(1 if self.real else 2)] for o in range(2)]
        parts = 1 if self.real else 2  # a real image has no imaginary part
        rows = [np.concatenate([block[:, :, :parts] for block in row], axis=2) for row in blocks]
        weight = np.stack(rows)  # (orders, parts, C_out, parts of all orders, C_in, size, size)
        n_out, n_in = weight.shape[2], weight.shape[3] * weight.shape[4]
        weight = weight.reshape(4 * n_out, n_in, SIZE, SIZE)
        return signal._replace(values=to.convolve(signal.values, weight, pads=SIZE // 2))

    # --- planes in frames, and their orbit sums --------------------------------------------------------

    def _checked(self, y) -> np.ndarray:
        """Return y as (orders, parts, C, H, W, B); a real image has one order and one part."""
        n_in = self.params["radial"].shape[2]
        if self.real:
            return self._check_planes(y, n_in)[None, None]
        return self._check_harmonics(y, n_in)

    def _framed(self, y) -> np.ndarray:
        """Return y padded with zeros, (orders, 2, C, H + 4, (W + 4) B); a real image has imaginary part 0."""
        n_orders, n_parts, n_maps, height, width, n_batch = y.shape
        frames = self._space.array("frames", (n_orders, 2, n_maps, height + 4, (width + 4) * n_batch), y.dtype)
        frames.fill(0)
        frames.reshape(n_orders, 2, n_maps, height + 4, width + 4, n_batch)[:, :n_parts, :, 2:-2, 2:-2] = y
        return frames

    def _rows(self, frames, n_batch):
        """Return arrays for the sums of a row, (order out, same or other order, part, orbit, C, W B), and scratch."""
        n_maps, length = frames.shape[2], frames.shape[4]
        sums = self._space.array("sums", (2, 2, 2, 6, n_maps, length - 4 * n_batch), frames.dtype)
        return sums, self._space.array("scratch", (10, length), frames.dtype)

    def _sums(self, frames, i, n_batch) -> list[np.ndarray]:
        """Return the sums of row i for each output order, as a matrix (.., W B)."""
        sums, scratch = self._rows(frames, n_batch)
        for n, (real, imaginary) in enumerate(frames):
            orbit_sums(real, imaginary, i, n_batch, 1 - 2 * n, sums[n, 0], sums[1 - n, 1], scratch)
        return self._used(sums)

    def _sums_adjoint(self, grad_frames, i, n_batch) -> None:
        """Add the gradients, which have replaced the sums, to the framed planes."""
        sums, scratch = self._rows(grad_frames, n_batch)
        if self.real:
            sums[0, 0, 1] = 0  # not used, so without a gradient
        for n, (real, imaginary) in enumerate(grad_frames):
            orbit_sums_adjoint(sums[n, 0], sums[1 - n, 1], i, n_batch, 1 - 2 * n, real, imaginary, scratch)

    def _used(self, sums) -> list[np.ndarray]:
        """Return the sums in use; of a real image, order 0 uses the real part and order 1 the other order only."""
        parts = [sums[0, 0, 0], sums[1, 1]] if self.real else [sums[0], sums[1]]
        return [part.reshape(-1, sums.shape[-1]) for part in parts]

    # --- from parameters to matrices, and back -----------------------------------------------------------

    def _ring_weights(self) -> np.ndarray:
        """Return A_m[a] = radial_m[a] exp(-i phase_m), complex (2, 4, C_in, C_out)."""
        radial, phase = self.params["radial"], self.params.get("phase")
        return self.unit * radial if phase is None else self.unit * radial * np.exp(-1j * phase)[:, None]

    def _matrices(self, dtype) -> list[np.ndarray]:
        """Return the complex weights of the orbits as a real matrix (2 C_out, ..) for each output order."""
        even, odd = (np.einsum("ak,aco->okc", c, a) for c, a in zip(orbit_basis(), self._ring_weights(), strict=True))
        same, plus, minus = _as_real(even), _as_real(odd), _as_real(odd.conj())
        n_out = len(even)
        blocks = [same[:, :, :1], plus]
        if not self.real:
            blocks = [np.stack([same, other], axis=2) for other in (minus, plus)]  # from order 1 to 0, from 0 to 1
        return [np.ascontiguousarray(block.reshape(2 * n_out, -1), dtype=dtype) for block in blocks]

    def _fill_grads(self, grad_matrices) -> None:
        """Fill the gradients of radial and phase from dE/dmatrices, through dE/dA."""
        n_in, n_out = self.params["radial"].shape[2:]
        if self.real:
            first = grad_matrices[0].reshape(2, n_out, 1, 6, n_in)
            grad_even = first[0, :, 0] + 1j * first[1, :, 0]
            grad_odd = _as_complex(grad_matrices[1].reshape(2, n_out, 2, 6, n_in))
        else:
            zero, one = (matrix.reshape(2, n_out, 2, 2, 6, n_in) for matrix in grad_matrices)
            grad_even = _as_complex(zero[:, :, 0]) + _as_complex(one[:, :, 0])
            grad_odd = _as_complex(one[:, :, 1]) + _as_complex(zero[:, :, 1]).conj()  # W_{-1} = conj(W_1)
        both = zip(orbit_basis(), (grad_even, grad_odd), strict=True)
        grad_a = np.stack([np.einsum("ak,okc->aco", c, grad) for c, grad in both])
        phase = self.params.get("phase")
        turn = 1.0 if phase is None else np.exp(1j * phase)[:, None]
        self.grads["radial"][:] = self.unit * (grad_a * turn).real
        if phase is not None:
            self.grads["phase"][:] = (grad_a.conj() * self._ring_weights()).imag.sum(axis=1)


def _as_real(weights: np.ndarray) -> np.ndarray:
    """Return complex (C_out, ...) as real (2, C_out, 2, ...), which maps [Re; Im] to [Re; Im]."""
    rows = np.stack([weights.real, -weights.imag], axis=1), np.stack([weights.imag, weights.real], axis=1)
    return np.stack(rows)


def _as_complex(grad: np.ndarray) -> np.ndarray:
    """The adjoint of `_as_real`: dE/dRe + i dE/dIm of the complex weights."""
    return (grad[0, :, 0] + grad[1, :, 1]) + 1j * (grad[1, :, 0] - grad[0, :, 1])


@cache
def ring_basis(m: int, size: int = SIZE, n_rings: int = N_RINGS) -> np.ndarray:
    """Return B_m, complex (rings, size, size): rings of radii 0 (m = 0) or 1 to n_rings - 1/2, times exp(-i m angle).

    Each ring has 101 points (or more for large filters) at equal angles. Each point is spread over the pixels by a
    Gaussian of deviation 1/2, whose weights sum to 1 over the filter. Angles run from the right over the top.

    >>> bool(np.abs(ring_basis(1) + 1j * np.rot90(ring_basis(1), axes=(1, 2))).max() < 1e-12)  # turned: a phase
    True
    """
    radii = np.linspace(0 if m == 0 else 1, n_rings - 0.5, n_rings)
    n_points = max(int(np.ceil(np.pi * size)), 101)
    angles = 2 * np.pi * np.arange(n_points) / n_points
    rows, columns = -radii[:, None] * np.sin(angles), radii[:, None] * np.cos(angles)
    pixels = np.arange(size) - (size - 1) / 2
    down = (rows[..., None] - pixels) ** 2  # (ring, point, pixel row)
    across = (columns[..., None] - pixels) ** 2
    weights = np.exp(-2 * (down[..., :, None] + across[..., None, :]))
    weights /= weights.sum(axis=(2, 3), keepdims=True)
    basis = np.einsum("n,anij->aij", np.exp(-1j * m * angles), weights)
    turns = [(-1j) ** (m * k) * np.rot90(basis, k, axes=(1, 2)) for k in range(4)]
    return sum(turns, np.zeros_like(basis)) / 4  # equal up to 1e-12, since 101 is not a multiple of 4


@cache
def orbit_basis() -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the orbits in the rings, (4, 6) each: even orbits in B_0, odd ones in B_1."""
    middle = SIZE // 2
    even, odd = (
        np.stack([ring_basis(m)[:, middle + row, middle + column].real for row, column in orbits], axis=1)
        for m, orbits in ((0, EVEN_ORBITS), (1, ODD_ORBITS))
    )
    return even, odd
