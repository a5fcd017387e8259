"""Images into tiles of frames, and from tiles to maps or to statistics (`tigra.kernels.oriented.stage`).

A tile holds the maps of B images side by side, in frames (K, pitch).
"""

from tigra.kernels.decorator import kernel
from tigra.kernels.grid import grid_moments
from tigra.kernels.oriented.stage import clear


@kernel
def into_tiles(images, layout, tiles):
    """Copy images (n, K N), one row each, into the frames of tiles (n / B, K, pitch)."""
    height, row, beside, rim = layout
    n_batch, n_maps = beside // rim, tiles.shape[1]
    width, first = row // n_batch - 2 * rim, rim * row + beside
    for tile in range(len(tiles)):
        for b in range(n_batch):
            pixels = images[tile * n_batch + b]
            for k in range(n_maps):
                for i in range(height):
                    source, to = pixels[(k * height + i) * width :], tiles[tile, k, first + i * row + b :]
                    for j in range(width):
                        to[j * n_batch] = source[j]
        clear(tiles[tile], layout)


@kernel
def out_of_tiles(tiles, layout, start, maps):
    """Copy the images of tiles (n / B, K, pitch) into maps (K, N, ...), from image number `start` on."""
    height, row, beside, rim = layout
    n_batch, n_maps = beside // rim, len(maps)
    width, first = row // n_batch - 2 * rim, rim * row + beside
    for k in range(n_maps):
        for i in range(height):
            for j in range(width):
                to = maps[k, i * width + j, start:]
                for tile in range(len(tiles)):
                    source = tiles[tile, k, first + i * row + j * n_batch :]
                    for b in range(n_batch):
                        to[tile * n_batch + b] = source[b]


@kernel
def tile_moments(tiles, layout, straight, diagonal, signals, framed, rows, moments, start, features):
    """Fill columns of features with the moments of `tigra.kernels.grid.grid_moments`.

    The maps of a tile take the place of images there, because loops over the nodes of one small map are short.

    Parameters
    ----------
    tiles : array (n / B, K, pitch)
        Frames of maps.
    layout : (int, int, int, int)
        Their layout.
    straight, diagonal : float
        Edge weights.
    signals : array (1, N, K B)
        Scratch.
    framed, rows : array (3, H+2, (W+2) K B), array (3, W K B)
        Scratch; the rim of `framed` is zero.
    moments : array (1, orders, 2, K B)
        Scratch.
    start : int
        Number of the first image.
    features : array (K * orders * 2, ...)
        Result, one column per image.
    """
    height, row, beside, rim = layout
    n_tiles, n_maps = tiles.shape[:2]
    n_batch, n_numbers = beside // rim, moments.shape[1] * 2
    width, first = row // n_batch - 2 * rim, rim * row + beside
    values = moments.reshape(n_numbers, n_maps, n_batch)
    for tile in range(n_tiles):
        for k in range(n_maps):
            frame = tiles[tile, k, first:]
            for i in range(height):
                for j in range(width):
                    for b in range(n_batch):
                        signals[0, i * width + j, k * n_batch + b] = frame[i * row + j * n_batch + b]
        grid_moments(height, signals, straight, diagonal, framed, rows, moments)
        for k in range(n_maps):
            for number in range(n_numbers):
                for b in range(n_batch):
                    features[k * n_numbers + number, start + tile * n_batch + b] = values[number, k, b]
