"""Compiled loops of harmonic networks. The rules of `tigra.kernels` apply; the batch is last.

A harmonic filter of 5x5 pixels is symmetric, so pixels are added before they are multiplied. Pixels at the same
distance along rows and columns form an *orbit*. In rows and columns from the centre, with signs for odd filters:

    even (m = 0)      (0,0)   (0,1)+(1,0)   (0,2)+(2,0)   (1,1)   (1,2)+(2,1)   (2,2)      with all mirror images
    odd (m = 1)       (0,1)   (0,2)         (1,1)         (1,2)   (2,1)         (2,2)      right minus left, both rows
                      and the same with rows and columns exchanged: lower minus upper, both columns
"""

import numpy as np

from tigra.kernels.decorator import kernel

# Every orbit sum is made of pairs of pixels in one of five rows: the centre, and at distance one and two of it the sums
# of the rows above and below (near, far) and their differences (down_near, down_far).
# (kind: 0 even, 1 odd in columns, 2 odd in rows; orbit; row; two shifts to the right; their weights)
_CENTRE, _NEAR, _FAR, _DOWN_NEAR, _DOWN_FAR = range(5)
TERMS = np.array(
    [(0, 0, _CENTRE, 0, 0, 1, 0)]
    + [(0, 1, _NEAR, 0, 0, 1, 0), (0, 1, _CENTRE, -1, 1, 1, 1)]
    + [(0, 2, _FAR, 0, 0, 1, 0), (0, 2, _CENTRE, -2, 2, 1, 1)]
    + [(0, 3, _NEAR, -1, 1, 1, 1), (0, 5, _FAR, -2, 2, 1, 1)]
    + [(0, 4, _FAR, -1, 1, 1, 1), (0, 4, _NEAR, -2, 2, 1, 1)]
    + [(1, 0, _CENTRE, 1, -1, 1, -1), (1, 1, _CENTRE, 2, -2, 1, -1)]
    + [(1, 2, _NEAR, 1, -1, 1, -1), (1, 3, _NEAR, 2, -2, 1, -1)]
    + [(1, 4, _FAR, 1, -1, 1, -1), (1, 5, _FAR, 2, -2, 1, -1)]
    + [(2, 0, _DOWN_NEAR, 0, 0, 1, 0), (2, 1, _DOWN_FAR, 0, 0, 1, 0)]
    + [(2, 2, _DOWN_NEAR, -1, 1, 1, 1), (2, 3, _DOWN_FAR, -1, 1, 1, 1)]
    + [(2, 4, _DOWN_NEAR, -2, 2, 1, 1), (2, 5, _DOWN_FAR, -2, 2, 1, 1)]
)
_PLACES = [(min(kind, 1), orbit) for kind, orbit in TERMS[:, :2].tolist()]  # where a term is added
BEGINS = np.array([place not in _PLACES[:n] for n, place in enumerate(_PLACES)])  # the first term of a sum


@kernel
def orbit_sums(real, imaginary, i, n_batch, sign, same, cross, scratch):
    """Compute row i of the orbit sums of one stream of complex planes.

    Parameters
    ----------
    real, imaginary : arrays (C, H + 4, (W + 4) B)
        Planes, framed by two pixels of zeros.
    i : int
        Index of the row.
    n_batch : int
        Number of images B.
    sign : int
        Order m, 1 or -1.
    same : array (2, 6, C, W B)
        Filled with the real and imaginary parts of the even sums.
    cross : array (2, 6, C, W B)
        Filled with those of the odd sums, (columns + i sign rows) of (real + i imaginary).
    scratch : array (10, (W + 4) B)
        Contents are undefined.
    """
    n_maps, run = same.shape[2], same.shape[3]
    for c in range(n_maps):
        for part in range(2):
            plane = real[c] if part == 0 else imaginary[c]
            above, before, here, after, below = plane[i], plane[i + 1], plane[i + 2], plane[i + 3], plane[i + 4]
            rows = scratch[5 * part : 5 * part + 5]
            _weigh(True, 1, here, 0, here, rows[_CENTRE])
            _weigh(True, 1, before, 1, after, rows[_NEAR])
            _weigh(True, 1, above, 1, below, rows[_FAR])
            _weigh(True, -1, before, 1, after, rows[_DOWN_NEAR])
            _weigh(True, -1, above, 1, below, rows[_DOWN_FAR])
        for part in range(2):
            for term in range(len(TERMS)):
                kind, orbit, row, shift_a, shift_b, weight_a, weight_b = TERMS[term]
                first = n_batch * (2 + shift_a)
                second = n_batch * (2 + shift_b)
                source = scratch[5 * (part if kind < 2 else 1 - part) + row]
                factor = 1 if kind < 2 else (2 * part - 1) * sign
                to = same[part, orbit, c] if kind == 0 else cross[part, orbit, c]
                a, b = source[first : first + run], source[second : second + run]
                _weigh(BEGINS[term], factor * weight_a, a, factor * weight_b, b, to)


@kernel
def orbit_sums_adjoint(same, cross, i, n_batch, sign, real, imaginary, scratch):
    """Add row i of the gradients of orbit sums to the gradients of the planes: the adjoint of `orbit_sums`.

    Parameters
    ----------
    same, cross : arrays (2, 6, C, W B)
        Gradients of the sums.
    i, n_batch, sign, scratch
        As for `orbit_sums`.
    real, imaginary : arrays (C, H + 4, (W + 4) B)
        Framed gradients of the planes, changed in place.
    """
    n_maps, run = same.shape[2], same.shape[3]
    for c in range(n_maps):
        for row in range(10):
            scratch[row] = 0
        for part in range(2):
            for term in range(len(TERMS)):
                kind, orbit, row, shift_a, shift_b, weight_a, weight_b = TERMS[term]
                first = n_batch * (2 + shift_a)
                second = n_batch * (2 + shift_b)
                target = scratch[5 * (part if kind < 2 else 1 - part) + row]
                factor = 1 if kind < 2 else (2 * part - 1) * sign
                grad = same[part, orbit, c] if kind == 0 else cross[part, orbit, c]
                _add_to(target[first : first + run], factor * weight_a, grad)
                if weight_b != 0:
                    _add_to(target[second : second + run], factor * weight_b, grad)
        for part in range(2):
            plane, rows = (real[c] if part == 0 else imaginary[c]), scratch[5 * part : 5 * part + 5]
            _add_to(plane[i + 2], 1, rows[_CENTRE])
            for side in range(-1, 2, 2):
                _weigh(False, 1, rows[_NEAR], side, rows[_DOWN_NEAR], plane[i + 2 + side])
                _weigh(False, 1, rows[_FAR], side, rows[_DOWN_FAR], plane[i + 2 + 2 * side])


@kernel
def _weigh(begins, weight_a, a, weight_b, b, out):
    """out = weight_a a + weight_b b if it begins a sum, else out += that."""
    first, second = out.dtype.type(weight_a), out.dtype.type(weight_b)
    if begins:
        for q in range(out.size):
            out[q] = first * a[q] + second * b[q]
    else:
        for q in range(out.size):
            out[q] += first * a[q] + second * b[q]


@kernel
def _add_to(out, weight, a):
    factor = out.dtype.type(weight)
    for q in range(out.size):
        out[q] += factor * a[q]


# --- the modulus r = abs(z), never below a floor ---------------------------------------------------------------


@kernel
def modulus_relu(z, floor, scale, offset, scratch, out):
    """Compute relu(scale r + offset) / r * z with r = sqrt(max(abs(z)^2, floor)).

    Parameters
    ----------
    z : array (orders, 2, C, P)
        Real and imaginary parts.
    floor : float
        Smallest squared modulus.
    scale, offset : arrays (orders, C)
        Affine map of the modulus.
    scratch : array (1, 1024)
        Contents are undefined.
    out : array, as z
        Filled with the result.
    """
    n_orders, _, n_maps, n_places = z.shape
    for n in range(n_orders):
        for c in range(n_maps):
            for start in range(0, n_places, 1024):
                stop = min(start + 1024, n_places)
                real, imaginary, factor = z[n, 0, c, start:stop], z[n, 1, c, start:stop], scratch[0, : stop - start]
                _modulus(real, imaginary, floor, factor)
                _factor(factor, scale[n, c], offset[n, c], factor)
                _multiply(factor, real, out[n, 0, c, start:stop])
                _multiply(factor, imaginary, out[n, 1, c, start:stop])


@kernel
def modulus_sums(z, floor, scratch, sums):
    """Compute the sums of r and of r^2 over all places.

    Blocks are added place by place, which is vectorised; the sum over the places of a block is in float64.

    Parameters
    ----------
    z, floor
        As for `modulus_relu`.
    scratch : array (4, 1024)
        Contents are undefined.
    sums : float64 array (2, orders, C)
        Filled with the sums.
    """
    n_orders, _, n_maps, n_places = z.shape
    for n in range(n_orders):
        for c in range(n_maps):
            scratch[2:] = 0
            for start in range(0, n_places, 1024):
                stop = min(start + 1024, n_places)
                r = scratch[0, : stop - start]
                _modulus(z[n, 0, c, start:stop], z[n, 1, c, start:stop], floor, r)
                _accumulate(r, r, scratch[2, : stop - start], scratch[3, : stop - start])
            sums[0, n, c], sums[1, n, c] = _sum(scratch[2]), _sum(scratch[3])


@kernel
def modulus_gradient_sums(z, floor, scale, offset, grad, scratch, sums):
    """Compute the sums of g_a and of g_a r over all places, with g_a = dE/d(scale r + offset).

    Parameters
    ----------
    z, floor, scale, offset
        As for `modulus_relu`.
    grad : array, as z
        Gradient of the output.
    scratch : array (4, 1024)
        Contents are undefined.
    sums : float64 array (2, orders, C)
        Filled with the sums.
    """
    n_orders, _, n_maps, n_places = z.shape
    for n in range(n_orders):
        for c in range(n_maps):
            scratch[2:] = 0
            for start in range(0, n_places, 1024):
                stop = min(start + 1024, n_places)
                real, imaginary = z[n, 0, c, start:stop], z[n, 1, c, start:stop]
                r, along = scratch[0, : stop - start], scratch[1, : stop - start]
                _modulus(real, imaginary, floor, r)
                _inner(grad[n, 0, c, start:stop], real, grad[n, 1, c, start:stop], imaginary, along)
                _slope(r, along, scale[n, c], offset[n, c], along)
                _accumulate(along, r, scratch[2, : stop - start], scratch[3, : stop - start])
            sums[0, n, c], sums[1, n, c] = _sum(scratch[2]), _sum(scratch[3])


@kernel
def modulus_relu_gradient(z, floor, scale, offset, shift, tilt, grad, scratch, out):
    """Compute dE/dz; with f = relu(scale r + offset) / r and t = Re(conj(grad) z),

        g_r = scale g_a + shift + tilt r - t f / r        out = f grad + g_r [abs(z)^2 > floor] z / r

    Parameters
    ----------
    z, floor, scale, offset
        As for `modulus_relu`.
    shift, tilt : arrays (orders, C)
        Terms that batch normalisation adds to dE/dr; 0 without it.
    grad : array, as z
        Gradient of the output.
    scratch : array (4, 1024)
        Contents are undefined.
    out : array, as z
        Filled with dE/dz.
    """
    n_orders, _, n_maps, n_places = z.shape
    lowest = np.sqrt(z.dtype.type(floor))
    for n in range(n_orders):
        for c in range(n_maps):
            for start in range(0, n_places, 1024):
                stop = min(start + 1024, n_places)
                real, imaginary = z[n, 0, c, start:stop], z[n, 1, c, start:stop]
                grad_real, grad_imaginary = grad[n, 0, c, start:stop], grad[n, 1, c, start:stop]
                r, t = scratch[0, : stop - start], scratch[1, : stop - start]
                f, slope = scratch[2, : stop - start], scratch[3, : stop - start]
                _modulus(real, imaginary, floor, r)
                _inner(grad_real, real, grad_imaginary, imaginary, t)
                _factor(r, scale[n, c], offset[n, c], f)
                _slope(r, t, scale[n, c], offset[n, c], slope)
                _along_modulus(r, t, f, scale[n, c], shift[n, c], tilt[n, c], lowest, slope)
                _inner(f, grad_real, slope, real, out[n, 0, c, start:stop])
                _inner(f, grad_imaginary, slope, imaginary, out[n, 1, c, start:stop])


@kernel
def _modulus(real, imaginary, floor, out):
    lowest = out.dtype.type(floor)
    for q in range(out.size):
        out[q] = np.sqrt(max(real[q] * real[q] + imaginary[q] * imaginary[q], lowest))


@kernel
def _factor(r, scale, offset, out):
    zero = out.dtype.type(0)
    for q in range(out.size):
        out[q] = max(scale * r[q] + offset, zero) / r[q]


@kernel
def _slope(r, t, scale, offset, out):
    """g_a = [scale r + offset > 0] t / r."""
    zero = out.dtype.type(0)
    for q in range(out.size):
        out[q] = t[q] / r[q] if scale * r[q] + offset > zero else zero


@kernel
def _along_modulus(r, t, f, scale, shift, tilt, lowest, slope):
    """slope = g_r / r from slope = g_a, and 0 where r lies on the floor."""
    zero = slope.dtype.type(0)
    for q in range(slope.size):
        g_r = scale * slope[q] + shift + tilt * r[q] - t[q] * f[q] / r[q]
        slope[q] = g_r / r[q] if r[q] > lowest else zero


@kernel
def _inner(a, b, c, d, out):
    for q in range(out.size):
        out[q] = a[q] * b[q] + c[q] * d[q]


@kernel
def _multiply(a, b, out):
    for q in range(out.size):
        out[q] = a[q] * b[q]


@kernel
def _accumulate(a, b, of_a, of_products):
    """of_a += a, of_products += a b."""
    for q in range(a.size):
        of_a[q] += a[q]
    for q in range(a.size):
        of_products[q] += a[q] * b[q]


@kernel
def _sum(a):
    total = 0.0
    for q in range(a.size):
        total += a[q]
    return total
