// A text coloured letter by letter: by what one unit remembers, or by how likely the model found each letter before it came.
import { button, clear, el, newId, probability, signed, tip } from "./core.js";
import { inkOn, legend, onThemeChange, shade } from "./colour.js";
import { Drawn, mounted } from "./drawn.js";
import { figureTools } from "./saving.js";
import { atoms, isEnd, isRightToLeft, pieceName } from "./text.js";
import { readGates, strongestOf } from "./units.js";

/**
 * @typedef {{pieces: string[], logps: number[], top: [string, number][][], kind: string, given: number, gates: any,
 *   facts: import("./saving.js").Facts}} LettersPayload
 *   `given`: how many pieces are the person's own; `gates`: as Python packs them, read already, or null while they are not there
 * @typedef {{by?: "unit" | "probability", unit?: number, layer?: number, tables?: import("./saving.js").Tables}} LettersView  what is left out the drawing keeps itself
 */

const RARE = 7; // nats: one in a thousand, the strongest colour of a surprise
const ACROSS = 80; // letters in a line of a saved picture

/** The memory of a layer: its cell, or where the network has none its hidden state. */
export function memoryOf(parts, layer) {
  const part = parts && (parts.get(`decoder.${layer}`) || [...parts.values()][0]);
  return part ? part.get("cell") || part.get("hidden") : null;
}

/** @extends {Drawn<LettersView>} */
class LettersDrawing extends Drawn {
  constructor(element, emit) {
    super(element, emit, { by: "unit", unit: 0, layer: 0 });
    /** @type {{node: HTMLElement, t: number, text: string}[]} */
    this.spans = [];
    this.at = -1;
    this.controls();
    this.body = el("div", { class: "s-text", tabindex: "0", role: "application", "aria-roledescription": "coloured text", "aria-label": "The text, coloured. Arrow keys move from letter to letter." });
    this.spoken = el("div", { class: "s-hidden", "aria-live": "polite" });
    this.scale = el("div", { class: "s-bar" });
    this.tools = figureTools("text", () => this.figure(), () => this.rows(), () => this.facts(), emit);
    element.append(this.bar, this.body, this.spoken, this.scale, this.tools);
    for (const name of ["pointerover", "click"]) this.body.addEventListener(name, (event) => this.point(event));
    for (const name of ["pointerleave", "blur"]) this.body.addEventListener(name, () => this.leave());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.stopTheme = onThemeChange(() => this.paint());
  }

  controls() {
    const [id, layer] = [newId("s-unit"), newId("s-layer")];
    this.byUnit = button("A unit's memory", () => this.change("by", "unit"));
    this.byChance = button("Probability", () => this.change("by", "probability"));
    this.number = el("input", { type: "number", id, class: "s-unit", min: 0 });
    this.number.addEventListener("input", () => this.number.checkValidity() && this.number.value !== "" && this.change("unit", Number(this.number.value)));
    this.layer = el("select", { id: layer, "aria-label": "Layer" });
    this.layer.addEventListener("change", () => this.change("layer", Number(this.layer.value)));
    this.choose = el("span", { class: "s-inline" }, this.layer,
      button("‹", () => this.step(-1), { "aria-label": "Previous unit" }), el("label", { for: id }, "unit"), this.number, button("›", () => this.step(1), { "aria-label": "Next unit" }));
    this.bar = el("div", { class: "s-bar" }, el("div", { class: "s-switch", role: "group", "aria-label": "Colour by" }, this.byUnit, this.byChance), this.choose);
  }

  update(payload, view = {}) {
    const anew = !this.payload || payload.pieces !== this.payload.pieces;
    if (!this.payload || payload.gates !== this.payload.gates) this.parts = !payload.gates || payload.gates instanceof Map ? payload.gates : readGates(payload.gates);
    this.take(payload, view);
    if (anew) this.letters();
    this.show();
  }

  destroy() {
    this.stopTheme();
    tip.hide();
    clear(this.element);
  }

  step(by) {
    const units = this.memory ? this.memory.units : 1;
    this.change("unit", (this.view.unit + by + units) % units);
  }

  show() {
    const given = Object.fromEntries(Object.entries(this.given).filter(([, value]) => value !== undefined && value !== null));
    this.view = { ...this.own, ...given };
    this.memory = memoryOf(this.parts, this.view.layer);
    this.gate = this.memory && this.memory.which && !this.memory.which.has(this.view.unit) ? null : this.memory; // some units come later
    if (this.gate) this.view.unit = Math.min(this.view.unit, this.gate.units - 1);
    this.bars();
    this.paint();
    this.tools.refresh();
    this.tools.show(this.view.tables);
  }

  bars() {
    const { by, unit, layer } = this.view;
    this.byUnit.setAttribute("aria-pressed", String(by === "unit"));
    this.byChance.setAttribute("aria-pressed", String(by === "probability"));
    this.choose.hidden = by !== "unit" || !this.memory;
    this.number.max = String(this.memory ? this.memory.units - 1 : 0);
    if (Number(this.number.value) !== unit || this.number.value === "") this.number.value = String(unit);
    const layers = this.parts ? [...this.parts.keys()].filter((part) => part.startsWith("decoder")).length : 0;
    this.layer.hidden = layers < 2;
    if (this.layer.options.length !== layers) clear(this.layer).append(...Array.from({ length: layers }, (_, i) => el("option", { value: i }, `layer ${i + 1}`)));
    this.layer.value = String(layer);
    clear(this.scale).append(by === "unit" ? legend("signed", "−", "+", "The unit's value; no colour at 0") : legend("weights", "certain", "surprising", "Surprise, from certain to one in a thousand or rarer"));
  }

  // Whole graphemes stay together; a span that stays where it is keeps its node.
  letters() {
    const { pieces, kind, given } = this.payload;
    const texts = atoms(pieces, kind).map((atom) => {
      const t = atom.pieces[atom.pieces.length - 1];
      return { t, text: pieces[t] === "\n" ? "⏎\n" : pieces[t] === " " ? " " : atom.text };
    });
    while (this.spans.length > texts.length) this.spans.pop().node.remove();
    texts.forEach(({ t, text }, i) => {
      if (!this.spans[i]) {
        this.spans.push({ node: el("span", {}), t, text });
        this.body.append(this.spans[i].node);
      }
      const span = this.spans[i];
      Object.assign(span, { t, text });
      if (span.node.textContent !== text) span.node.textContent = text;
      span.node.className = t < given ? "s-own" : "s-written";
      span.node.dataset.t = String(t);
    });
    this.body.setAttribute("dir", isRightToLeft(pieces.join("")) ? "rtl" : "ltr");
    this.at = -1;
  }

  share(t) {
    if (this.view.by === "probability") return ["weights", Math.min(1, -this.payload.logps[t] / RARE)];
    return ["signed", this.gate ? 0.5 + 0.5 * Math.max(-1, Math.min(1, this.value(t) / this.largest)) : 0.5];
  }

  value(t) {
    return this.gate.values[t * this.gate.units + this.view.unit] * this.gate.scale;
  }

  paint() {
    if (!this.payload) return;
    this.largest = this.gate ? strongestOf(this.gate, this.view.unit) : 1;
    for (const { node, t } of this.spans) {
      const [kind, share] = this.share(t);
      const colour = shade(kind, share);
      if (node.dataset.colour === colour) continue;
      node.dataset.colour = colour;
      node.style.background = colour;
      node.style.color = inkOn(kind, share);
    }
  }

  tell(t) {
    const { pieces, logps, top, kind } = this.payload;
    const tops = (top[t] || []).slice(0, 4).map(([piece, logp]) => `${probability(logp)}  ${pieceName(piece, kind)}`);
    return [
      `${pieceName(pieces[t], kind)}: probability ${probability(logps[t])}`, this.gate ? `unit ${this.view.unit}: ${signed(this.value(t), 2)}` : "",
      tops.length ? "likeliest here:" : "", ...tops,
    ].filter(Boolean);
  }

  point(event) {
    const { t } = event.target.dataset || {};
    if (t === undefined || event.target === this.body) return;
    tip.show(this.tell(Number(t)), event.clientX, event.clientY, this.body);
    this.emit("hover", { t: Number(t) });
  }

  leave() {
    this.mark(-1);
    tip.hide();
    this.emit("hover", null);
  }

  mark(at) {
    if (this.spans[this.at]) this.spans[this.at].node.classList.remove("s-letter-at");
    this.at = at;
    if (this.spans[at]) this.spans[at].node.classList.add("s-letter-at");
  }

  key(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: -this.spans.length, End: this.spans.length }[event.key];
    if (event.key === "Escape") this.leave();
    if (!move || !this.spans.length) return;
    event.preventDefault();
    this.mark(Math.max(0, Math.min(this.spans.length - 1, this.at + move)));
    const { node, t } = this.spans[this.at];
    node.scrollIntoView({ block: "nearest" });
    const box = node.getBoundingClientRect();
    const lines = this.tell(t);
    tip.show(lines, box.left, box.bottom - 10, this.body);
    this.spoken.textContent = lines.slice(0, 2).join(", ");
    this.emit("hover", { t });
  }

  facts() {
    const unit = this.view.by === "unit" && this.gate;
    const scale = unit ? { kind: "signed", low: -this.largest, high: this.largest, label: `unit ${this.view.unit}` } : { kind: "weights", low: 0, high: RARE, label: "surprise in nats" };
    return { ...this.payload.facts, title: `${this.payload.facts.title}, coloured by ${unit ? `unit ${this.view.unit} of layer ${this.view.layer + 1}` : "surprise"}`, scale };
  }

  figure() {
    const lines = [[]];
    for (const { text, t } of this.spans) {
      lines[lines.length - 1].push([text.replace("\n", ""), t]);
      if (text.endsWith("\n") || lines[lines.length - 1].length >= ACROSS) lines.push([]);
    }
    const [wide, high] = [10, 24];
    return { width: wide * Math.max(...lines.map((line) => line.length)), height: lines.length * high, draw: (painter) => lines.forEach((line, y) => line.forEach(([text, t], x) => {
      const [kind, share] = this.share(t);
      painter.rect(x * wide, y * high, wide, 22, shade(kind, share));
      painter.text((x + 0.5) * wide, y * high + 11, text, { size: 13, fill: inkOn(kind, share), align: "middle" });
      if (t >= this.payload.given) painter.line(x * wide, y * high + 22, (x + 1) * wide, y * high + 22, shade("weights", 0.7));
    })) };
  }

  rows() {
    const { pieces, logps, kind } = this.payload;
    return {
      caption: `Every letter, its probability and unit ${this.view.unit}`,
      heads: ["letter", "place", "probability", "log probability", `unit ${this.view.unit}`],
      rows: pieces.map((piece, t) => [pieceName(piece, kind), t + 1, isEnd(piece) ? "" : probability(logps[t]), signed(logps[t]), this.gate ? signed(this.value(t), 2) : ""]),
    };
  }
}

/** @param {HTMLElement} element @param {LettersPayload} payload @param {LettersView} view @param {import("./grid.js").Emit} emit */
export function mountLetters(element, payload, view = {}, emit = () => {}) {
  return mounted(new LettersDrawing(element, emit), payload, view);
}
