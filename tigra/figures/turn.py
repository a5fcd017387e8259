"""Figures of the statistics layer and of its invariance to rotations."""

from __future__ import annotations

import numpy as np

from tigra.figures.canvas import LINES, MARKERS, SEQUENTIAL, WIDTH, new_figure, written
from tigra.figures.exhibit import Exhibit
from tigra.figures.inspection import (
    chebyshev_signals,
    full_turn,
    in_training_units,
    lively_pixels,
    spread,
)
from tigra.figures.tiles import largest_size, show_map

TURNED = 30.0  # degrees, angle of the rotated image in `statistics`
MOST_FEATURES = 60  # lines
MOST_PIXELS = 12  # lines


def statistics(exhibit: Exhibit):
    """Draw Chebyshev signals of one map, and mean and variance over the orders, upright and rotated."""
    network, image = exhibit.network, exhibit.subject_image
    upright = chebyshev_signals(network, image)
    turned = chebyshev_signals(network, exhibit.turned(TURNED)[0], upright.map)
    orders = spread(len(upright.signals), 6)
    height, width = upright.signals.shape[1:]
    row_height = (WIDTH - 0.4) / 6 * height / width + 0.35
    figure = new_figure(height=row_height + 2.8)
    above, below = figure.subfigures(2, 1, height_ratios=[row_height, 2.8])
    places = above.subplots(1, 6)
    for axes in places:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    for axes, order in zip(places, orders, strict=False):
        show_map(axes, upright.signals[order], largest_size(upright.signals[order]))
        axes.set_title(f"$t_{{{order}}}$, map {upright.map + 1}")
    for axes, moment, name in zip(below.subplots(1, 2), (0, 1), ("mean μ", "variance σ²"), strict=True):
        _moments(axes, upright.moments[:, :, moment], turned.moments[:, :, moment])
        axes.set(xlabel="Chebyshev order k", ylabel=f"{name} of |$t_k$|")
    below.legend(*below.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    is_coarse = (height, width) != tuple(network.options.grid_shape)
    text = (
        f"The statistics layer S[{len(upright.signals) - 1}]"
        f"{f', on the coarse grid of {height}x{width} nodes' if is_coarse else ''}. Above: the signals"
        " t_k = T_k(L - I) z of the map with the largest mean, each on its own scale (red above 0, blue below). Below:"
        " mean and variance of |t_k| over all nodes, the features of the image. Dashed, with open marks: the same for"
        f" the image rotated by {TURNED:g} degrees."
    )
    return figure, text


def _moments(axes, upright: np.ndarray, turned: np.ndarray) -> None:
    """Draw one moment over the orders, for a few maps, upright (filled marks) and rotated (open marks)."""
    orders, every = np.arange(upright.shape[1]), max(1, upright.shape[1] // 20)
    for place, i in enumerate(spread(len(upright), 3)):
        look = {"color": LINES[place], "marker": MARKERS[place], "markevery": every}
        axes.plot(orders, _positive(upright[i]), **look, markersize=3, linewidth=1, label=f"map {i + 1}")
        axes.plot(orders, _positive(turned[i]), "--", **look, markersize=6, markerfacecolor="none", linewidth=0.8)
    if (upright > 0).any():
        axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.plot([], [], "--", color="0.3", marker="o", markerfacecolor="none", label=f"rotated by {TURNED:g}°")


def _positive(values: np.ndarray) -> np.ndarray:
    """Replace values that are not positive by NaN, for a logarithmic axis."""
    return np.where(values > 0, values, np.nan)


def turn(exhibit: Exhibit):
    """Draw pixels, statistics features and class probabilities of an image over a full rotation."""
    network = exhibit.network
    turned = full_turn(network, exhibit.subject_image, 72, exhibit.interpolation, exhibit.threads, exhibit.background)
    features, is_in_deviations = in_training_units(network, turned.features)
    pixels = lively_pixels(np.asarray(exhibit.upright.images), turned.images, MOST_PIXELS)
    figure = new_figure(height=6.2)
    above, middle, below = figure.subplots(3, 1, sharex=True, height_ratios=[1.2, 1.2, 1])
    _many_lines(above, turned.degrees, pixels)
    above.set(ylabel="in deviations over\nupright test images", title=f"{pixels.shape[1]} pixels")
    shown = spread(features.shape[1], MOST_FEATURES)
    _many_lines(middle, turned.degrees, features[:, shown])
    is_all = len(shown) == features.shape[1]
    middle.set_title(f"{'all' if is_all else f'{len(shown)} of'} {features.shape[1]} statistics features")
    middle.set_ylabel("in deviations over\ntraining images" if is_in_deviations else "share of the\nlargest value")
    if is_in_deviations:
        middle.sharey(above)
    ripple = features.std(axis=0)
    _probabilities(below, exhibit, turned)
    for axes in (above, middle, below):
        for angle in range(0, 361, 90):
            axes.axvline(angle, color="0.6", linewidth=0.6, linestyle=":", zorder=0)
    below.set(xlabel="rotation in degrees", xlim=(0, 360), xticks=range(0, 361, 45))
    truth = exhibit.class_names[exhibit.upright.labels[exhibit.subject]]
    unit = "standard deviations over the training images" if is_in_deviations else "of its largest value"
    text = (
        f"An image of class {truth} of {exhibit.dataset} over a full rotation ({exhibit.interpolation} interpolation)."
        " Above: pixels of the image. Middle: statistics features, coloured by their place in the vector; the lines of"
        f" an invariant network are flat. Over the rotation, the standard deviation of a feature is"
        f" {np.median(ripple):.2g} {unit} (median of all features; the largest is {ripple.max():.2g}), and that of a"
        f" pixel {np.median(pixels.std(axis=0)):.2g} over the test images. Dotted: multiples of 90 degrees, where"
        " square images are not interpolated. Below: class probabilities."
    )
    return figure, text


def _many_lines(axes, degrees, values: np.ndarray) -> None:
    from matplotlib import colormaps

    colours = colormaps[SEQUENTIAL](np.linspace(0, 0.92, values.shape[1]))
    for colour, line in zip(colours, values.T, strict=True):
        axes.plot(degrees, line, color=colour, linewidth=0.7)


def _probabilities(axes, exhibit: Exhibit, turned) -> None:
    """Draw one line per class; of many classes, the most likely ones and the true one."""
    truth, names = exhibit.upright.labels[exhibit.subject], exhibit.class_names
    order = np.argsort(-turned.probabilities.max(axis=0), kind="stable")
    shown = sorted({int(truth), *map(int, order[: len(LINES) - 1])}) if len(names) > len(LINES) else range(len(names))
    for place, label in enumerate(shown):
        axes.plot(
            turned.degrees, turned.probabilities[:, label], color=LINES[place], marker=MARKERS[place], markevery=6,
            markersize=4, linewidth=2.2 if label == truth else 1.2, label=written(names[label]),
        )  # fmt: skip
    axes.set(ylim=(-0.03, 1.03), ylabel="probability", title="classes" + (f" (true: {written(names[truth])})"))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
