// Painting on canvases: maps, bars and the spectrum.

export function bytes(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Grey levels of a picture, whose bytes 128 to 255 stand for black to white.
export function grey(canvas, picture) {
  paint(canvas, picture, (level) => Array(3).fill(Math.max(0, level) * 255));
}

// Red above 0, blue below, black at 0. Nodes that are not active are hatched.
export function signed(canvas, picture, active) {
  const on = active && bytes(active);
  paint(canvas, picture, (level, place) => {
    if (on && !on[place]) return (place + Math.floor(place / picture.width)) % 2 ? [38, 38, 44] : [62, 62, 70];
    const size = Math.sqrt(Math.abs(level)) * 255;
    return level > 0 ? [size, 0.45 * size, 0.25 * size] : [0.25 * size, 0.55 * size, size];
  });
}

function paint(canvas, picture, colour) {
  const data = bytes(picture.data);
  canvas.width = picture.width;
  canvas.height = picture.height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(picture.width, picture.height);
  data.forEach((value, place) => {
    image.data.set([...colour((value - 128) / 127, place), 255], 4 * place);
  });
  context.putImageData(image, 0, 0);
}

// Features of the moved picture as bars, of the upright one as a line.
export function bars(canvas, moved, upright) {
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const step = width / moved.length;
  const most = Math.max(3, ...upright.map(Math.abs), ...moved.map(Math.abs));
  const up = (value) => height / 2 - (value / most) * (height / 2 - 2);
  context.clearRect(0, 0, width, height);
  context.fillStyle = ink("--bar");
  moved.forEach((value, i) => context.fillRect(i * step, Math.min(up(value), up(0)), Math.max(step - 0.5, 1), Math.abs(up(value) - up(0))));
  context.strokeStyle = ink("--ink");
  context.beginPath();
  upright.forEach((value, i) => {
    context.moveTo(i * step, up(value));
    context.lineTo((i + 1) * step - 0.5, up(value));
  });
  context.stroke();
}

// Responses of all filters over the frequencies; the chosen one is thick.
export function spectrum(canvas, filters, chosen) {
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const [left, bottom] = [40, 24];
  const values = filters.responses.flat();
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const x = (frequency) => left + (frequency / 2) * (width - left - 8);
  const y = (value) => height - bottom - ((value - low) / (high - low || 1)) * (height - bottom - 8);
  context.clearRect(0, 0, width, height);
  context.fillStyle = ink("--soft");
  context.font = "12px system-ui";
  [0, 0.5, 1, 1.5, 2].forEach((f) => context.fillText(String(f), x(f) - 6, height - 6));
  [low, 0, high].forEach((value) => context.fillText(value.toFixed(1), 2, y(value) + 4));
  context.strokeStyle = ink("--line");
  line(context, [[x(0), y(0)], [x(2), y(0)]], 1);
  filters.responses.forEach((row, i) => {
    context.strokeStyle = ink(i === chosen ? "--strong" : "--bar");
    line(context, row.map((value, j) => [x(filters.frequencies[j]), y(value)]), i === chosen ? 3 : 1);
  });
}

function line(context, points, thickness) {
  context.lineWidth = thickness;
  context.beginPath();
  points.forEach(([x, y]) => context.lineTo(x, y));
  context.stroke();
}
