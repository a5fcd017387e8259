"""A rotating image with its active nodes and class probabilities, as an animated GIF."""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np

from tigra.figures.canvas import BLUE, VERMILLION, drawing, new_figure, written
from tigra.figures.exhibit import Exhibit
from tigra.figures.inspection import FullTurn, Step, full_turn, spread, steps
from tigra.figures.maps import framed
from tigra.figures.oriented.mirroring import chiral_map, mirror_changes, products
from tigra.figures.tiles import largest_size, show_image, show_map

N_FRAMES = 72
FRAME_MS = 70
N_COLOURS = 64  # of the palette; fewer colours make the file smaller
MOST_BARS = 10


def turning(exhibit: Exhibit, n_frames: int = N_FRAMES) -> tuple[bytes, str]:
    """Return (content of the GIF, caption) for a full rotation in n_frames steps."""
    from PIL import Image

    network = exhibit.network
    how = exhibit.interpolation, exhibit.threads, exhibit.background
    turned = full_turn(network, exhibit.subject_image, n_frames, *how)
    shown = panels(network, turned.images[:-1])
    with drawing():
        frames = [Image.fromarray(pixels) for pixels in _frames(exhibit, turned, shown)]
    palette = _common_palette(frames)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    content = io.BytesIO()
    frames[0].save(content, "GIF", save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0, optimize=True)
    n_right = int((turned.probabilities[:-1].argmax(axis=1) == exhibit.upright.labels[exhibit.subject]).sum())
    seen = list(dict.fromkeys(panel.about for panel in shown))
    text = (
        f"An image of class {exhibit.class_names[exhibit.upright.labels[exhibit.subject]]} of {exhibit.dataset} in a"
        f" full rotation ({exhibit.interpolation} interpolation), with {', '.join(seen)}{' and ' if seen else ''}the"
        f" class probabilities (bold: the true class). Classified correctly at {n_right} of {n_frames} angles."
    )
    return content.getvalue(), text


class Panel(NamedTuple):
    """A map that rotates with the image.

    Attributes
    ----------
    title, about : str
        What the map is, above the panel and in the caption.
    values, active : arrays of shape (A, height, width)
        The map at each angle; True on its active nodes.
    """

    title: str
    about: str
    values: np.ndarray
    active: np.ndarray


def panels(network, images: np.ndarray) -> list[Panel]:
    """Return at most two panels: poolings, or a cross product and another map of an oriented network."""
    pooled = [step for step in steps(network, images, 1) if step.name.startswith("DP")]
    found = products(network, images)
    if found is None:
        return [_active_nodes(pooled[i]) for i in spread(len(pooled), 2)] if pooled else []
    title = f"cross product in\nlayer {found.number}, {found.name}"
    about = "a cross product of gradients (red above 0, blue below), which keeps its sign when the image rotates"
    first = Panel(title, about, found.crosses[:, 0], np.ones(found.crosses[:, 0].shape, bool))
    if pooled:
        return [first, _active_nodes(pooled[-1])]
    name, number, index, values = chiral_map(network, images, mirror_changes(network, images[:1]))
    about = f"map {index + 1} of layer {number}, the one in its layer that mirroring would change most,"
    return [first, Panel(f"map {index + 1} after\nlayer {number}, {name}", about, values, np.ones(values.shape, bool))]


def _active_nodes(step: Step) -> Panel:
    title = f"active nodes after\nlayer {step.number}, {step.name}"
    return Panel(title, "the active nodes of its first map after pooling", step.values[:, 0], step.active[:, 0])


def _common_palette(frames):
    """Return one palette for all frames, from a few of them; flickering colours would make the file large."""
    from PIL import Image

    few = [frames[i] for i in spread(len(frames), 6)]
    sheet = Image.new("RGB", (few[0].width, few[0].height * len(few)))
    for place, frame in enumerate(few):
        sheet.paste(frame, (0, place * frame.height))
    palette = sheet.quantize(N_COLOURS, method=Image.Quantize.MEDIANCUT)
    colours = np.array(palette.getpalette()).reshape(-1, 3)
    colours[(colours >= 250).all(axis=1)] = 255  # make the background pure white
    palette.putpalette(colours.ravel().tolist())
    return palette


def _frames(exhibit: Exhibit, turned: FullTurn, maps: list[Panel]):
    """Yield the pixels of each frame, (height, width, 3); the static parts are drawn once."""
    margin, names = exhibit.network.options.margin, exhibit.class_names
    truth = int(exhibit.upright.labels[exhibit.subject])
    n_panels = 1 + len(maps)
    figure = new_figure(height=2.45 if maps else 2.3, width=1.95 * n_panels + 2.4)
    axes = figure.subplots(1, n_panels + 1, width_ratios=[1.0] * n_panels + [1.1])
    for panel in axes[:-1]:
        panel.set(xticks=[], yticks=[])
        panel.spines[:].set_visible(False)
    images = [show_image(axes[0], framed(turned.images[0], margin))]
    images += [_shown_map(axes, panel) for axes, panel in zip(axes[1:], maps, strict=False)]
    bars, shown = _bars(axes[-1], turned, names, truth)
    heading = axes[0].set_title("000°")
    moving = [heading, *images, *bars]
    for artist in moving:
        artist.set_animated(True)
    figure.canvas.draw()
    ground = figure.canvas.copy_from_bbox(figure.bbox)
    for frame in range(len(turned.degrees) - 1):
        heading.set_text(f"{turned.degrees[frame]:.0f}°")
        images[0].set_data(framed(turned.images[frame], margin))
        for image, panel in zip(images[1:], maps, strict=True):
            image.set_data(np.ma.masked_where(~panel.active[frame], panel.values[frame]))
        for bar, label in zip(bars, shown, strict=True):
            is_first = label == turned.probabilities[frame].argmax()
            bar.set_width(turned.probabilities[frame, label])
            bar.set_facecolor((BLUE if label == truth else VERMILLION) if is_first else "0.7")
        figure.canvas.restore_region(ground)
        for artist in moving:
            artist.axes.draw_artist(artist)
        yield np.asarray(figure.canvas.buffer_rgba())[:, :, :3].copy()


def _shown_map(axes, panel: Panel):
    axes.set_title(panel.title)
    return show_map(axes, panel.values[0], largest_size(panel.values), panel.active[0])


def _bars(panel, turned: FullTurn, names, truth: int):
    """Return (bars, their classes): all classes, or of many the most likely ones and the true one."""
    likely = np.argsort(-turned.probabilities.max(axis=0), kind="stable")
    shown = sorted({truth, *map(int, likely[: MOST_BARS - 1])}) if len(names) > MOST_BARS else list(range(len(names)))
    bars = panel.barh(range(len(shown)), np.ones(len(shown)), color="0.7", height=0.7)
    panel.set_yticks(range(len(shown)), [written(names[label], 12) for label in shown])
    panel.get_yticklabels()[shown.index(truth)].set_fontweight("bold")
    panel.invert_yaxis()
    panel.set(xlim=(0, 1), xticks=[0, 0.5, 1], title="class probability")
    panel.tick_params(axis="y", length=0)
    return bars, shown
