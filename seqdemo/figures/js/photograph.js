// Where a model looked in a photograph for every word: the picture is bright where it looked and dark elsewhere.
import { el, newId, svg, tip, unpack } from "./core.js";
import { css, onThemeChange, palette } from "./colour.js";
import { Drawn, mounted } from "./drawn.js";
import { figureTools } from "./saving.js";
import { pieceName, quoted } from "./text.js";

/**
 * @typedef {{picture: string, pieces: string[], kind: string, weights: any, distribution?: any, facts: import("./saving.js").Facts}} PhotographPayload
 *   `picture`: a data address; `weights`: one row a piece over the cells of a square grid; `distribution`: with hard attention,
 *   what the one cell of each row was chosen from, shown on request
 * @typedef {{word?: number, veil?: number, mode?: "look" | "paint" | "pick", painted?: number[], tables?: import("./saving.js").Tables}} PhotographView
 *   `mode` "paint": dragging over the picture paints cells, told by the event "painting" and at the end "paint"; "pick": the same with
 *   one cell, the last one; what is left out the drawing keeps itself
 */

const BIG = 384, SMALL = 104;
const GLOW = [255, 240, 205];

/** The mean brightness of a picture, from 0 to 1. @param {HTMLImageElement} image */
export function lightness(image) {
  const small = el("canvas", { width: 16, height: 16 });
  const context = small.getContext("2d");
  context.drawImage(image, 0, 0, 16, 16);
  const { data } = context.getImageData(0, 0, 16, 16);
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) sum += 0.299 * data[i] + 0.587 * data[i + 1] + 0.114 * data[i + 2];
  return sum / (255 * 256);
}

// A map of one colour, as strong as `strength(weight)` says, where 1 is the largest weight of the word.
function layer(weights, grid, colour, strength) {
  const small = el("canvas", { width: grid, height: grid });
  const context = small.getContext("2d");
  const pixels = context.createImageData(grid, grid);
  const most = Math.max(1e-9, ...weights);
  weights.forEach((weight, i) => pixels.data.set([...colour, Math.round(255 * strength(weight / most))], i * 4));
  context.putImageData(pixels, 0, 0);
  return small;
}

/**
 * A dark veil shows on light pictures, light on dark ones: where the model looked the picture is brighter than elsewhere on both.
 * @param {HTMLCanvasElement} canvas @param {HTMLImageElement | null} image @param {number[]} weights @param {number} veil from 0 to 1
 */
export function paintLook(canvas, image, weights, veil, light = 0.5) {
  const wide = canvas.width;
  const high = image && image.naturalWidth ? Math.round((wide * image.naturalHeight) / image.naturalWidth) : canvas.height;
  if (canvas.height !== high) canvas.height = high;
  const context = canvas.getContext("2d");
  const grid = Math.round(Math.sqrt(weights.length));
  context.globalCompositeOperation = "source-over";
  context.clearRect(0, 0, wide, high);
  if (image) context.drawImage(image, 0, 0, wide, high);
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  context.drawImage(layer(weights, grid, [8, 12, 20], (share) => veil * 0.85 * (1 - share)), 0, 0, wide, high);
  context.globalCompositeOperation = "screen";
  context.drawImage(layer(weights, grid, GLOW, (share) => veil * (0.1 + 0.5 * (1 - light)) * share), 0, 0, wide, high);
  context.globalCompositeOperation = "source-over";
}

function numbers(packed) {
  return packed.base64 ? unpack(packed) : packed;
}

class PhotographDrawing extends Drawn {
  constructor(element, emit) {
    super(element, emit, { word: 0, veil: 0.8 });
    /** @type {{canvas: HTMLCanvasElement, frame: HTMLElement, option: HTMLElement, name: Text, title: Text}[]} */
    this.frames = [];
    /** @type {Set<number> | null} */
    this.stroke = null;
    this.hovered = null;
    this.image = new Image();
    this.image.onload = () => {
      this.light = lightness(this.image);
      this.draw();
    };
    this.chosenFrom = el("input", { type: "checkbox" });
    this.chosenFrom.addEventListener("change", () => this.show());
    this.choice = el("label", { class: "s-inline", hidden: true }, this.chosenFrom, "Show what the cell was chosen from");
    const id = newId("s-veil");
    this.veil = el("input", { type: "range", id, min: 0, max: 1, step: 0.05 });
    this.veil.addEventListener("input", () => this.change("veil", Number(this.veil.value)));
    this.big = el("canvas", { class: "s-overlay", width: BIG, height: BIG, role: "application", "aria-roledescription": "photograph with attention", tabindex: "0" });
    this.words = el("div", { class: "s-overlay-words", role: "listbox", "aria-label": "Words of the caption", tabindex: "0" });
    this.strip = el("div", { class: "s-film", role: "list", "aria-label": "Where the model looks, word by word" });
    this.spoken = el("div", { class: "s-hidden", "aria-live": "polite" });
    this.tools = figureTools("attention-over-the-photograph", () => this.figure(), () => this.rows(), () => this.payload.facts, emit);
    element.append(el("div", { class: "s-bar" }, el("span", { class: "s-inline" }, el("label", { for: id }, "Veil"), this.veil), this.choice),
      el("div", { class: "s-overlay-body" }, this.big, el("div", {}, this.words, this.strip)), this.spoken, this.tools);
    this.listen();
    this.stopTheme = onThemeChange(() => this.draw());
  }

  listen() {
    this.words.addEventListener("keydown", (event) => this.walk(event));
    this.words.addEventListener("pointerleave", () => this.hover(null));
    this.strip.addEventListener("pointerleave", () => this.hover(null));
    this.big.addEventListener("pointerdown", (event) => this.press(event));
    this.big.addEventListener("pointermove", (event) => this.point(event));
    for (const name of ["pointerup", "pointercancel"]) this.big.addEventListener(name, (event) => this.release(event));
    for (const name of ["pointerleave", "blur"]) this.big.addEventListener(name, () => this.stroke || this.leave());
    this.big.addEventListener("keydown", (event) => this.key(event));
  }

  update(payload, view = {}) {
    if (!this.payload || payload.weights !== this.payload.weights) {
      this.weights = numbers(payload.weights);
      this.distribution = payload.distribution ? numbers(payload.distribution) : null;
      this.choice.hidden = !this.distribution;
      this.cells = payload.pieces.length ? this.weights.length / payload.pieces.length : 0;
      this.grid = Math.round(Math.sqrt(this.cells));
      this.cell = -1;
      this.hovered = null;
    }
    this.take(payload, view);
    if (this.image.src !== payload.picture) this.image.src = payload.picture;
    this.show();
  }

  destroy() {
    this.stopTheme();
    tip.hide();
    this.element.replaceChildren();
  }

  show() {
    const given = Object.fromEntries(Object.entries(this.given).filter(([, value]) => value !== undefined && value !== null));
    /** @type {PhotographView} */
    this.view = { ...this.own, ...given };
    this.view.word = Math.max(0, Math.min(this.view.word, this.payload.pieces.length - 1));
    if (Number(this.veil.value) !== this.view.veil) this.veil.value = String(this.view.veil);
    this.big.classList.toggle("s-overlay-hands", this.hands());
    this.film();
    this.draw();
    this.tools.refresh();
    this.tools.show(this.view.tables);
  }

  name(t) {
    return pieceName(this.payload.pieces[t], this.payload.kind);
  }

  film() {
    const { pieces } = this.payload;
    while (this.frames.length > pieces.length) {
      const { frame, option } = this.frames.pop();
      frame.remove();
      option.remove();
    }
    pieces.forEach((_, t) => {
      if (!this.frames[t]) this.frames.push(this.newFrame(t));
      const { name, title } = this.frames[t];
      if (name.data !== this.name(t)) name.data = title.data = this.name(t);
    });
  }

  newFrame(t) {
    const [name, title] = [document.createTextNode(""), document.createTextNode("")];
    const canvas = el("canvas", { width: SMALL, height: SMALL, "aria-hidden": "true" });
    const frame = el("div", { class: "s-frame", role: "listitem" }, canvas, el("span", {}, title));
    const option = el("span", { role: "option", class: "s-overlay-word", id: newId("s-word"), "data-word": t }, name);
    for (const node of [frame, option]) {
      node.addEventListener("pointerenter", () => this.hover(t));
      node.addEventListener("click", () => this.change("word", t));
    }
    this.strip.append(frame);
    this.words.append(option);
    return { canvas, frame, option, name, title };
  }

  hover(t) {
    this.hovered = t;
    this.emit("hover", t === null ? null : { word: t });
    this.drawBig();
  }

  // The word under the pointer, here or elsewhere on the page, or else the clicked one.
  word() {
    return this.hovered === null ? this.view.word : this.hovered;
  }

  part(t) {
    const shown = this.distribution && this.chosenFrom.checked ? this.distribution : this.weights;
    return Array.from(shown.slice(t * this.cells, (t + 1) * this.cells));
  }

  picture() {
    return this.image.complete && this.image.naturalWidth ? this.image : null;
  }

  draw() {
    if (!this.payload || !this.payload.pieces.length) return;
    this.frames.forEach(({ canvas }, t) => paintLook(canvas, this.picture(), this.part(t), this.view.veil, this.light));
    this.drawBig();
  }

  drawBig() {
    const word = this.word();
    paintLook(this.big, this.picture(), this.part(word), this.view.veil, this.light);
    for (const cell of [...(this.view.painted || []), ...(this.stroke || [])]) this.outline(cell, palette().warn);
    if (this.cell >= 0) this.outline(this.cell, palette().accent);
    const space = { paint: ", space paints", pick: ", space chooses one" }[this.view.mode] || "";
    const keys = `Arrow keys move over the cells${space}.`;
    this.big.setAttribute("aria-label", `Attention over the photograph for ${quoted(this.name(word))}. ${keys}`);
    this.words.setAttribute("aria-activedescendant", this.frames[word].option.id);
    this.frames.forEach(({ frame, option }, t) => {
      option.setAttribute("aria-selected", String(t === word));
      frame.classList.toggle("s-current", t === word);
    });
  }

  outline(cell, colour) {
    const context = this.big.getContext("2d");
    const [wide, high] = [this.big.width / this.grid, this.big.height / this.grid];
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.strokeRect((cell % this.grid) * wide + 1, Math.floor(cell / this.grid) * high + 1, wide - 2, high - 2);
  }

  walk(event) {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    this.hovered = null;
    this.change("word", Math.max(0, Math.min(this.frames.length - 1, this.view.word + move)));
    this.emit("hover", { word: this.view.word });
    this.spoken.textContent = `${this.name(this.view.word)}: ${this.most(this.view.word)}`;
  }

  // Where a word looks most, in words.
  most(t) {
    const part = this.part(t);
    const best = part.indexOf(Math.max(...part));
    return `most at row ${Math.floor(best / this.grid) + 1}, column ${(best % this.grid) + 1}, attention ${part[best].toFixed(3)}`;
  }

  under(event) {
    const box = this.big.getBoundingClientRect();
    const along = (at, start, size) => Math.max(0, Math.min(this.grid - 1, Math.floor(((at - start) / size) * this.grid)));
    return along(event.clientY, box.top, box.height) * this.grid + along(event.clientX, box.left, box.width);
  }

  tell(cell) {
    return [this.name(this.word()), `attention ${this.part(this.word())[cell].toFixed(3)}`, `row ${Math.floor(cell / this.grid) + 1}, column ${(cell % this.grid) + 1} of ${this.grid}`];
  }

  point(event) {
    this.cell = this.under(event);
    if (this.stroke && !this.stroke.has(this.cell)) {
      if (this.view.mode === "pick") this.stroke.clear();
      this.stroke.add(this.cell);
      this.emit("painting", { word: this.view.word, cells: [...this.stroke] });
    }
    tip.show(this.tell(this.cell), event.clientX, event.clientY, this.big);
    this.drawBig();
  }

  leave() {
    this.cell = -1;
    tip.hide();
    if (this.payload) this.drawBig();
  }

  press(event) {
    if (!this.hands()) return;
    event.preventDefault();
    this.big.setPointerCapture(event.pointerId);
    this.stroke = new Set([this.under(event)]);
    this.drawBig();
  }

  hands() {
    return this.view.mode === "paint" || this.view.mode === "pick";
  }

  release(event) {
    if (!this.stroke) return;
    const cells = [...this.stroke];
    this.stroke = null;
    if (event.type === "pointerup") this.paint(cells);
    this.drawBig();
  }

  paint(cells) {
    this.emit("paint", { word: this.view.word, cells: cells.sort((p, q) => p - q) });
  }

  key(event) {
    const at = Math.max(0, this.cell);
    const [row, column] = [Math.floor(at / this.grid), at % this.grid];
    const moves = { ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column], ArrowUp: [row - 1, column] };
    if (event.key === "Escape") this.leave();
    if (event.key === " " && this.hands() && this.cell >= 0) this.paint([this.cell]);
    else if (!moves[event.key]) return;
    else this.goTo(this.cell < 0 ? [0, 0] : moves[event.key]);
    event.preventDefault();
  }

  goTo([row, column]) {
    const within = (at) => Math.max(0, Math.min(this.grid - 1, at));
    this.cell = within(row) * this.grid + within(column);
    const box = this.big.getBoundingClientRect();
    const lines = this.tell(this.cell);
    tip.show(lines, box.left + ((within(column) + 1) * box.width) / this.grid, box.top + ((within(row) + 1) * box.height) / this.grid, this.big);
    this.spoken.textContent = lines.join(", ");
    this.drawBig();
  }

  figure() {
    const across = Math.min(6, this.frames.length);
    const [width, height] = [across * 170, Math.ceil(this.frames.length / across) * 196];
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    this.frames.forEach((_, t) => {
      const canvas = el("canvas", { width: 320, height: 320 });
      paintLook(canvas, this.picture(), this.part(t), this.view.veil, this.light);
      const [x, y] = [(t % across) * 170, Math.floor(t / across) * 196];
      root.append(svg("image", { x, y, width: 160, height: 160, preserveAspectRatio: "xMidYMid meet", href: canvas.toDataURL("image/jpeg", 0.85) }));
      root.append(svg("text", { x: x + 80, y: y + 178, fill: css("ink"), "font-size": 14, "text-anchor": "middle" }, this.name(t)));
    });
    return { node: root };
  }

  rows() {
    return {
      caption: "Where the model looks most, word by word (row and column of the grid, from the top left)",
      heads: ["word", "row", "column", "attention there"],
      rows: this.payload.pieces.map((_, t) => {
        const part = this.part(t);
        const best = part.indexOf(Math.max(...part));
        return [this.name(t), Math.floor(best / this.grid) + 1, (best % this.grid) + 1, part[best].toFixed(3)];
      }),
    };
  }
}

/** @param {HTMLElement} element @param {PhotographPayload} payload @param {PhotographView} view @param {import("./grid.js").Emit} emit */
export function mountPhotograph(element, payload, view = {}, emit = () => {}) {
  const drawing = new PhotographDrawing(element, emit);
  const light = (word) => {
    if (word === drawing.hovered) return;
    drawing.hovered = word;
    drawing.drawBig();
  };
  return mounted(drawing, payload, view, { light });
}
