// The page: reads the controls, asks the server, shows the answer.
import { Pad } from "./pad.js";
import * as paint from "./paint.js";

const $ = (id) => document.getElementById(id);
const LARGEST_PICTURE = 20 * 2 ** 20; // bytes, as in server.py
const MOVES = ["angle", "right", "down"];
const LINKS = { SC: "filters", OC: "oriented", GC: "coarsening", DP: "pooling", S: "statistics", image: "laplacian" };
let start; // models, examples, classes
let pad;
let edited = null; // coefficients of the chosen filter, if changed by hand
let opened = null; // the file that is shown, until something is drawn
let busy = false;
let again = false;
const times = []; // milliseconds from a change to its answer on the page

// --- asking ------------------------------------------------------------------------------------------

function request() {
  const model = start.models[$("model").value];
  const nodes = [...document.querySelectorAll("#pools input")].map((input) => Number(input.value));
  const changes = { ties: $("ties").value };
  if (Number($("smoothing").value) !== model.smoothing) changes.smoothing = Number($("smoothing").value);
  if ($("boundary").value !== model.boundary) changes.boundary = $("boundary").value;
  if (nodes.some((n, i) => n !== model.nodes[i])) changes.nodes = nodes;
  if (Number($("order").value) !== model.order) changes.order = Number($("order").value);
  if (edited) Object.assign(changes, { filter: Number($("filter").value), alpha: edited });
  const motion = Object.fromEntries(MOVES.map((name) => [name, Number($(name).value)]));
  return {
    model: $("model").value, pixels: pad.pixels, mirror: $("mirror").checked, interpolation: $("interpolation").value,
    ...motion, changes, maps: true, heat: true, filters: true,
  };
}

// One request at a time; what changes meanwhile is asked for once, afterwards.
async function ask() {
  if (busy) { again = true; return; }
  busy = true;
  const began = performance.now();
  try {
    show(await post("/api/answer", JSON.stringify(request()), "application/json"));
    say("");
    times.push(performance.now() - began);
    const recent = times.slice(-31).sort((a, b) => a - b);
    $("time").textContent = String(Math.round(recent[Math.floor(recent.length / 2)]));
  } catch (error) {
    say(error.message);
  }
  busy = false;
  if (again) { again = false; ask(); }
}

async function post(path, body, type) {
  const answer = await fetch(path, { method: "POST", body, headers: { "Content-Type": type } }).catch(() => {
    throw new Error("The playground has ended. Start it again: tigra playground");
  });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

function say(text) {
  $("message").textContent = text;
}

// --- showing -----------------------------------------------------------------------------------------

function show(answer) {
  clearTimeout(patience);
  paint.grey($("moved"), answer.image);
  paint.signed($("heat"), answer.heat);
  showPrediction("", answer.tigranet);
  showLayers($("layers"), answer.layers);
  if (answer.beside) {
    showPrediction("beside-", answer.beside);
    showLayers($("beside-layers"), answer.beside_layers);
  }
  $("gap-changed").textContent = percent(answer.tigranet.gap);
  $("gap-trained").textContent = percent(answer.gap_trained ?? answer.tigranet.gap);
  if (answer.filters) paint.spectrum($("spectrum"), answer.filters, Number($("filter").value));
  document.body.dataset.answered = String(Number(document.body.dataset.answered || 0) + 1);
}

const percent = (fraction) => `${(100 * fraction).toFixed(fraction < 0.001 ? 4 : 1)} %`;

function showPrediction(prefix, { label, probabilities, bars, bars_upright: upright, gap }) {
  $(`${prefix}label`).textContent = label;
  $(`${prefix}gap`).textContent = percent(gap);
  paint.bars($(`${prefix}bars`), bars, upright);
  const rows = $(`${prefix}probabilities`);
  if (!rows.children.length) start.class_names.forEach((name) => rows.append(...probabilityRow(name)));
  probabilities.forEach((p, i) => {
    const [name, track, number] = [0, 1, 2].map((j) => rows.children[3 * i + j]);
    name.classList.toggle("most", start.class_names[i] === label);
    track.firstChild.style.width = `${100 * p}%`;
    number.textContent = `${(100 * p).toFixed(1)} %`;
  });
}

function probabilityRow(text) {
  const [name, track, number] = ["span", "div", "span"].map((tag) => document.createElement(tag));
  name.textContent = text;
  track.className = "track";
  track.append(document.createElement("div"));
  track.firstChild.className = "fill";
  number.className = "number";
  return [name, track, number];
}

function showLayers(box, layers) {
  while (box.children.length > layers.length) box.lastChild.remove();
  layers.forEach((layer, i) => {
    if (!box.children[i]) box.append(document.createElement("div"));
    const part = box.children[i];
    if (part.dataset.name !== layer.name) buildLayer(part, layer);
    layer.maps.forEach((map, j) => paint.signed(part.querySelectorAll("canvas")[j], map, layer.active?.[j]));
  });
}

function buildLayer(part, layer) {
  part.className = "layer";
  part.dataset.name = layer.name;
  const maps = document.createElement("div");
  maps.className = "maps";
  layer.maps.forEach((_, j) => {
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${layer.name}, map ${j + 1}`);
    maps.append(canvas);
  });
  const link = document.createElement("a");
  link.href = `equations.html#${LINKS[layer.name.split("[")[0]] ?? "planes"}`; // each picture has its equation
  link.target = "_blank"; // the drawing stays
  link.textContent = layer.name;
  const caption = document.createElement("p");
  const shown = layer.maps.length;
  caption.append(link, shown < layer.n_maps ? `, ${shown} of ${layer.n_maps} maps` : `, ${shown} map${shown > 1 ? "s" : ""}`);
  part.replaceChildren(maps, caption);
}

// --- controls ----------------------------------------------------------------------------------------

function slider(label, value, least, most, step) {
  const box = document.createElement("label");
  box.className = "slider";
  const [output, input] = ["output", "input"].map((tag) => document.createElement(tag));
  Object.assign(input, { type: "range", min: least, max: most, step });
  input.value = value;
  input.setAttribute("aria-label", label); // a label names its first control, which is the output
  const tell = () => (output.textContent = Number(input.value).toPrecision(3));
  input.addEventListener("input", tell);
  tell();
  box.append(`${label} `, output, input);
  return [box, input];
}

// Set all controls of sections 4 and 5 to the values of training.
function asTrained() {
  const model = start.models[$("model").value];
  $("architecture").textContent = model.architecture;
  $("smoothing").value = model.smoothing;
  $("boundary").value = model.boundary;
  $("boundary").disabled = !model.can_be_free;
  $("ties").value = "together";
  $("ties").disabled = !model.nodes.length;
  $("fixed").textContent = [
    model.can_be_free ? "" : "Oriented layers need the padded boundary. ",
    model.nodes.length ? "" : "This network has no pooling, so it has no J and no ties; choose another one above.",
  ].join("");
  $("order").max = model.order;
  $("order").value = model.order;
  $("pools").replaceChildren(...model.nodes.map((n, i) => {
    const [box, input] = slider(`J of pooling ${i + 1}`, n, 1, model.n_nodes, 1);
    input.addEventListener("input", ask);
    return box;
  }));
  $("filter").replaceChildren(...model.alpha.map((_, i) => new Option(String(i + 1), i)));
  chooseFilter();
  tellAll();
}

function chooseFilter() {
  const model = start.models[$("model").value];
  const alpha = model.alpha[Number($("filter").value)] ?? [];
  edited = null;
  const most = 2 * Math.max(1, ...alpha.map(Math.abs));
  const parts = alpha.map((value, m) => slider(`${model.terms[m]}`, value, -most, most, "any"));
  parts.forEach(([, input]) => input.addEventListener("input", () => {
    edited = parts.map(([, other]) => Number(other.value));
    ask();
  }));
  $("alphas").replaceChildren(...parts.map(([box]) => box));
}

function tellAll() {
  const units = { angle: "°", right: " px", down: " px", smoothing: " px", order: "" };
  Object.entries(units).forEach(([id, unit]) => {
    document.querySelector(`output[for=${id}]`).textContent = `${$(id).value}${unit}`;
  });
}

async function open(file) {
  if (!file) return;
  try {
    if (file.size > LARGEST_PICTURE) throw new Error("The picture is larger than 20 MB; scale it down.");
    const path = `/api/picture?invert=${$("invert").checked ? 1 : 0}`;
    pad.set((await post(path, file, "application/octet-stream")).pixels);
    opened = file;
    say("");
  } catch (error) {
    say(error.message);
  }
}

function spin() {
  if (!$("spin").checked) return;
  if (!busy) {
    $("angle").value = ((Number($("angle").value) + 183) % 360) - 180;
    tellAll();
    ask();
  }
  setTimeout(spin, 30);
}

function wire() {
  [...MOVES, "smoothing", "order"].forEach((id) => $(id).addEventListener("input", () => { tellAll(); ask(); }));
  ["mirror", "interpolation", "boundary", "ties"].forEach((id) => $(id).addEventListener("change", ask));
  $("model").addEventListener("change", () => { asTrained(); ask(); });
  $("filter").addEventListener("change", () => { chooseFilter(); ask(); });
  $("reset").addEventListener("click", () => { asTrained(); ask(); });
  $("clear").addEventListener("click", () => pad.clear());
  $("spin").addEventListener("change", spin);
  $("back").addEventListener("click", () => {
    MOVES.forEach((id) => ($(id).value = 0));
    ["spin", "mirror"].forEach((id) => ($(id).checked = false));
    tellAll();
    ask();
  });
  $("file").addEventListener("change", (event) => {
    open(event.target.files[0]);
    event.target.value = ""; // or the same file could not be opened again
  });
  $("invert").addEventListener("change", () => open(opened));
  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    open(event.dataTransfer.files[0]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ask);
}

function addExamples() {
  start.examples.forEach((pixels, i) => {
    const [button, canvas] = ["button", "canvas"].map((tag) => document.createElement(tag));
    button.type = "button";
    button.setAttribute("aria-label", `Example ${i + 1}`);
    [canvas.height, canvas.width] = start.shape;
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    pixels.forEach((value, place) => image.data.set([value, value, value, 255], 4 * place));
    context.putImageData(image, 0, 0);
    button.append(canvas);
    button.addEventListener("click", () => pad.set(pixels));
    $("examples").append(button);
  });
}

const patience = setTimeout(() => say("Compiling the kernels takes a minute the first time."), 2000);
start = await (await fetch("/api/start")).json();
$("model").append(...Object.keys(start.models).map((name) => new Option(name)));
document.querySelectorAll(".beside-name").forEach((element) => (element.textContent = start.beside));
if (!start.beside) ["beside", "beside-heading", "beside-layers"].forEach((id) => $(id).remove());
pad = new Pad($("pad"), ...start.shape, () => { opened = null; ask(); });
asTrained();
addExamples();
wire();
if (start.examples.length) pad.set(start.examples[0]);
else ask();
