"""Formulas of a node and its neighbours, for all nodes of a frame: the Laplacian, gradients and their products.

Neighbours are added in pairs that a quarter turn of the image only swaps. Results therefore turn with the image to the
last bit. `tigra.kernels.compiling.columns` says how a formula becomes a kernel.
"""

from tigra.kernels.compiling.columns import columns


def around(x):
    """Sums over straight and over diagonal neighbours, S x and D x."""
    return (x.north + x.south) + (x.west + x.east), (x.nw + x.se) + (x.ne + x.sw)


def filtered(x, times_x, straight, diagonal):
    """times_x * x + straight * S x + diagonal * D x."""
    s, d = around(x)
    return (times_x * x.node + straight * s + diagonal * d,)


def horner(x, term, straight, diagonal):
    """Term + x + straight * S x + diagonal * D x."""
    s, d = around(x)
    return (x.node + straight * s + diagonal * d + term,)


def slopes(x, weight):
    """D x along the rows and down the columns; a diagonal edge has a weight, a straight one 1."""
    along = (x.east + weight * (x.ne + x.se)) - (x.west + weight * (x.nw + x.sw))
    down = (x.south + weight * (x.sw + x.se)) - (x.north + weight * (x.nw + x.ne))
    return along, down


def products(a, b, weight, unit):
    """dot(a, b) and cross(a, b)."""
    (ax, ay), (bx, by) = slopes(a, weight), slopes(b, weight)
    return unit * (ax * bx + ay * by), unit * (ax * by - ay * bx)


def products_adjoint(b, g_dot, g_cross, weight, unit, sign):
    """dE/dD a, given dE/ddot and dE/dcross: g_dot D b + g_cross (D_y b, -D_x b)."""
    (x, y), turned = slopes(b, weight), sign * g_cross
    return unit * (g_dot * x + turned * y), unit * (g_dot * y - turned * x)


def minus_divergence(x, y, weight):
    """-(D_x x + D_y y), the adjoint of the gradient."""
    along = (x.west + weight * (x.nw + x.sw)) - (x.east + weight * (x.ne + x.se))
    return (along + ((y.north + weight * (y.nw + y.ne)) - (y.south + weight * (y.sw + y.se))),)


fill_filtered, fill_horner = columns(filtered), columns(horner, points=1)
fill_products = columns(products, windows=2, results=2)
