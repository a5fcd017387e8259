// The drawing area: a small grey picture, drawn with mouse, finger or keyboard.

export class Pad {
  constructor(canvas, height, width, changed) {
    Object.assign(this, { canvas, height, width, changed });
    const scale = Math.max(canvas.height, canvas.width) / Math.max(height, width);
    Object.assign(canvas, { height: Math.round(scale * height), width: Math.round(scale * width) });
    this.pixels = new Array(height * width).fill(0);
    this.pen = { x: width / 2, y: height / 2, down: false, shown: false };
    canvas.addEventListener("pointerdown", (event) => this.start(event));
    canvas.addEventListener("pointermove", (event) => this.last && this.drag(event));
    ["pointerup", "pointercancel"].forEach((name) => canvas.addEventListener(name, () => (this.last = null)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    ["focus", "blur"].forEach((name) => canvas.addEventListener(name, () => {
      this.pen.shown = name === "focus" && canvas.matches(":focus-visible");
      this.show();
    }));
    this.show();
  }

  set(pixels) {
    this.pixels = [...pixels];
    this.show();
    this.changed();
  }

  clear() {
    this.set(new Array(this.height * this.width).fill(0));
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.width, ((event.clientY - box.top) / box.height) * this.height];
  }

  start(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.last = this.place(event);
    this.stroke(this.last, this.last);
  }

  drag(event) {
    const here = this.place(event);
    this.stroke(this.last, here);
    this.last = here;
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const { pen } = this;
    const from = [pen.x, pen.y];
    if (moves[event.key]) {
      pen.x = Math.min(this.width - 1, Math.max(1, pen.x + moves[event.key][0]));
      pen.y = Math.min(this.height - 1, Math.max(1, pen.y + moves[event.key][1]));
    } else if (event.key === " ") pen.down = !pen.down;
    else if (event.key === "Delete" || event.key === "Backspace") this.clear();
    else return;
    event.preventDefault();
    pen.shown = true;
    if (pen.down) this.stroke(from, [pen.x, pen.y]);
    this.show();
  }

  // A soft round pen from one place to another, in pixels.
  stroke([x0, y0], [x1, y1]) {
    const steps = Math.ceil(4 * Math.hypot(x1 - x0, y1 - y0)) + 1;
    const radius = 0.055 * Math.max(this.height, this.width);
    for (let step = 0; step <= steps; step += 1) {
      const [x, y] = [x0 + ((x1 - x0) * step) / steps, y0 + ((y1 - y0) * step) / steps];
      this.dot(x, y, radius);
    }
    this.show();
    this.changed();
  }

  dot(x, y, radius) {
    const reach = Math.ceil(radius) + 1;
    const near = (middle, size) => [Math.max(0, Math.floor(middle) - reach), Math.min(size, Math.floor(middle) + reach + 1)];
    const [[top, bottom], [left, right]] = [near(y, this.height), near(x, this.width)];
    for (let row = top; row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) {
        const away = Math.hypot(column + 0.5 - x, row + 0.5 - y);
        const dark = Math.round(Math.max(0, Math.min(1, radius + 0.5 - away)) * 255);
        const place = row * this.width + column;
        this.pixels[place] = Math.max(this.pixels[place], dark);
      }
    }
  }

  show() {
    const context = this.canvas.getContext("2d");
    const [high, wide] = [this.canvas.height / this.height, this.canvas.width / this.width];
    context.fillStyle = "#000";
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.pixels.forEach((value, place) => {
      if (!value) return;
      context.fillStyle = `rgb(${value}, ${value}, ${value})`;
      const [x, y] = [Math.floor((place % this.width) * wide), Math.floor(Math.floor(place / this.width) * high)];
      context.fillRect(x, y, Math.ceil(wide), Math.ceil(high)); // whole pixels, or seams would show
    });
    if (this.pen.shown) {
      context.strokeStyle = this.pen.down ? "#ff5c39" : "#78b7ff";
      context.lineWidth = 3;
      context.strokeRect((this.pen.x - 1) * wide, (this.pen.y - 1) * high, 2 * wide, 2 * high);
    }
  }
}
