// The search tree, left to right by step: one box a candidate, its probability beside it, and how it ended.
import { button, el, newId, probability, signed, svg, tip } from "./core.js";
import { onThemeChange, palette } from "./colour.js";
import { Drawn, mounted } from "./drawn.js";
import { FINISHED, KEPT, PRUNED, columnEdges, layoutTree, moreConsidered, pathTo, readTree, visibleRows } from "./layout.js";
import { fitted, textWidth } from "./painter.js";
import { figureTools } from "./saving.js";
import { pieceName } from "./text.js";

/**
 * @typedef {{tree: any, kind: string, ends: number[], facts: import("./saving.js").Facts}} TreePayload
 *   `tree`: as Python packs it, or read already; `ends`: the rows of the outputs, the best first
 * @typedef {{selected?: number, marks?: Map<number, "A" | "B">, side?: "A" | "B", partAt?: number, pruned?: boolean, until?: number | null,
 *   opened?: number[], tables?: import("./saving.js").Tables}} TreeView
 *   what is left out of `pruned`, `until` and `opened` the drawing keeps itself
 */

const PITCH = 32, BOX = 23, TOP = 30;

/** @extends {Drawn<{opened: number[], pruned: boolean, until: number | null}>} */
class TreeDrawing extends Drawn {
  constructor(element, emit) {
    super(element, emit, { opened: [], pruned: false, until: null });
    this.nodes = new Map();
    this.edges = new Map();
    this.folds = new Map();
    this.focused = -1;
    this.room = 0;
    this.scroller = el("div", { class: "s-scroll s-tree", tabindex: "-1" });
    this.bar = new TreeBar((name, value) => this.change(name, value));
    this.stage = svg("svg", { class: "s-tree-svg" });
    this.back = svg("g", {});
    this.lines = svg("g", { fill: "none" });
    this.boxes = svg("g", { role: "tree" });
    this.marks = svg("g", {});
    this.stage.append(this.back, this.lines, this.boxes, this.marks);
    this.scroller.append(this.stage);
    this.tools = figureTools("search-tree", () => ({ node: this.stage }), () => this.rows(), () => this.payload.facts, emit);
    element.append(this.bar.node, this.scroller, this.tools);
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.stopTheme = onThemeChange(() => this.draw());
    this.watcher = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => this.resized());
    if (this.watcher) this.watcher.observe(element);
  }

  update(payload, view = {}) {
    if (!this.payload || payload.tree !== this.payload.tree) {
      this.tree = payload.tree.children ? payload.tree : readTree(payload.tree);
      Object.assign(this.own, { opened: [], until: null });
      if (this.payload) requestAnimationFrame(() => (this.scroller.scrollLeft = 0)); // done at once, it would force a layout
    }
    this.take(payload, view);
    this.show();
  }

  destroy() {
    this.stopTheme();
    if (this.watcher) this.watcher.disconnect();
    tip.hide();
    this.element.replaceChildren();
  }

  // What the page's state leaves open, the drawing decides.
  show() {
    const { ends } = this.payload;
    const selected = this.given.selected === undefined ? (ends.length ? ends[0] : -1) : this.given.selected;
    this.view = { marks: new Map(), side: "B", partAt: -1, ...this.own, ...this.given, selected };
    const must = [...ends, ...this.view.marks.keys(), ...(selected >= 0 ? [selected] : [])];
    this.shown = visibleRows(this.tree, must, { pruned: this.view.pruned, opened: new Set(this.view.opened) });
    this.place = layoutTree(this.tree, this.shown, ends);
    this.path = new Set(selected >= 0 ? pathTo(this.tree, selected) : []);
    this.bar.show(this.tree, this.view);
    this.draw();
    this.tools.refresh();
    this.tools.show(this.given.tables);
  }

  resized() {
    const wide = this.element.clientWidth;
    if (!wide || wide === this.room) return;
    this.room = wide;
    this.draw();
  }

  name(row) {
    return pieceName(this.tree.pieces.get(this.tree.token[row]), this.payload.kind);
  }

  number(row) {
    return (this.tree.fate[row] === FINISHED ? "✓ " : "") + probability(this.tree.logp[row]);
  }

  note(row) {
    const { tree } = this;
    const { marks } = this.view;
    const goesOn = (tree.children.get(row) || []).some((child) => marks.has(child));
    if (tree.fate[row] === KEPT && marks.has(row) && !goesOn && tree.step[row] + 1 < tree.steps && !this.payload.ends.includes(row)) return "dropped next";
    return tree.fate[row] === PRUNED && (marks.has(row) || this.path.has(row)) ? this.missed(row, 2) : "";
  }

  // Of what was merely not drawn, nothing missed anything.
  missed(row, digits) {
    return this.tree.missed[row] > 0 ? `missed by ${this.tree.missed[row].toFixed(digits)}` : "not drawn";
  }

  measure() {
    const { tree } = this;
    const widths = new Array(tree.steps).fill(54), gaps = new Array(tree.steps).fill(30), least = new Array(tree.steps).fill(15);
    for (const row of this.shown) {
      const step = tree.step[row];
      const name = fitted(this.name(row), 13, 104, 600);
      widths[step] = Math.max(widths[step], Math.min(150, textWidth(name, 13, 600) + textWidth(this.number(row), 10.5) + 28));
      const note = this.note(row);
      if (!note) continue;
      gaps[step] = Math.max(gaps[step], textWidth(note, 11, 600) + 28);
      least[step] = Math.max(least[step], textWidth(note, 11, 600) + 24);
    }
    this.room = this.room || this.element.clientWidth; // measuring each time would force a layout of the page
    const { left, width } = columnEdges(widths, gaps, least, (this.room || 900) - 8);
    const deep = Math.max(1, ...[...this.place.values()].map((line) => line + 1));
    return { widths, left, width: width + 8, height: TOP + deep * PITCH + 8 };
  }

  draw() {
    if (!this.payload) return;
    this.colours = palette();
    this.at = this.measure();
    const { width, height } = this.at;
    change(this.stage, { width, height, viewBox: `0 0 ${width} ${height}` });
    this.boxes.setAttribute("aria-label", this.payload.facts.title);
    this.drawBack();
    const rows = [...this.shown].sort((p, q) => p - q);
    keyed(this.lines, this.edges, rows, () => svg("path", {}), (node, row) => this.edge(node, row));
    keyed(this.boxes, this.nodes, rows, (row) => this.newBox(row), (node, row) => this.box(node, row));
    const folded = rows.filter((row) => this.hidden(row) && !this.dim(row));
    keyed(this.marks, this.folds, folded, (row) => this.newFold(row), (node, row) => this.fold(node, row));
  }

  drawBack() {
    const { colours, at } = this;
    const { partAt } = this.view;
    const parts = partAt >= 0 && partAt < at.left.length;
    const heads = Array.from({ length: this.tree.steps }, (_, step) => svg("text", {
      x: at.left[step], y: 15, "font-size": 11, fill: step === partAt ? colours.a : colours.muted, "font-weight": step === partAt ? 600 : null,
    }, step === partAt ? "paths part" : String(step + 1)));
    const band = parts ? [svg("rect", { x: at.left[partAt] - 7, y: 3, width: at.widths[partAt] + 14, height: at.height - 6, rx: 8, fill: colours["a-soft"] })] : [];
    const start = svg("text", { x: 8, y: TOP + BOX / 2, fill: colours.muted, "font-size": 12, "dominant-baseline": "central" }, "start");
    this.back.replaceChildren(...band, ...heads, start);
  }

  y(row) {
    return TOP + this.place.get(row) * PITCH + BOX / 2;
  }

  dim(row) {
    return this.view.until !== null && this.tree.step[row] > this.view.until;
  }

  tone(row) {
    if (this.path.has(row)) return this.view.side.toLowerCase();
    return this.view.marks.has(row) ? this.view.marks.get(row).toLowerCase() : "";
  }

  edge(node, row) {
    const { tree, at, colours } = this;
    const parent = tree.parent[row];
    const [x1, y1] = parent < 0 ? [40, TOP + BOX / 2] : [at.left[tree.step[parent]] + at.widths[tree.step[parent]], this.y(parent)];
    const [x2, y2] = [at.left[tree.step[row]], this.y(row)];
    const [bend, tone] = [(x1 + x2) / 2, this.tone(row)];
    change(node, {
      d: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`, stroke: tone ? colours[tone] : colours.line, "stroke-width": tone ? 3 : 1.4,
      "stroke-dasharray": tree.fate[row] === PRUNED && !tone ? "3 3" : null, opacity: this.dim(row) ? 0.12 : 1,
    });
  }

  newBox(row) {
    const group = svg("g", { role: "treeitem", class: "s-node", "data-node": row }, svg("rect", { rx: 6, height: BOX }),
      svg("text", { "font-size": 13, "dominant-baseline": "central" }), svg("text", { "font-size": 10.5, "text-anchor": "end", "dominant-baseline": "central" }),
      svg("text", { "font-size": 11, "font-weight": 600, "dominant-baseline": "central" }));
    let touched = false;
    group.addEventListener("pointerdown", (event) => (touched = event.pointerType === "touch"));
    group.addEventListener("click", (event) => {
      this.choose(row);
      if (touched) tip.show(this.tell(row), event.clientX, event.clientY, group);
    });
    group.addEventListener("pointerenter", (event) => {
      tip.show(this.tell(row), event.clientX, event.clientY, group);
      this.emit("hover", { row, step: this.tree.step[row] });
    });
    group.addEventListener("pointerleave", () => {
      tip.hide();
      this.emit("hover", null);
    });
    group.addEventListener("blur", tip.hide);
    return group;
  }

  box(group, row) {
    const { tree, at, colours, view } = this;
    const [fate, tone] = [tree.fate[row], this.tone(row)];
    const [x, middle, width] = [at.left[tree.step[row]], this.y(row) + 0.5, at.widths[tree.step[row]]];
    const ink = tone ? colours[tone] : fate === PRUNED ? colours.muted : colours.ink;
    const [rect, name, number, note] = group.children;
    change(group, {
      tabindex: row === this.focusRow() ? "0" : "-1", "aria-level": tree.step[row] + 1, "aria-selected": String(row === view.selected),
      "aria-label": this.tell(row).join(", "), opacity: this.dim(row) ? 0.12 : 1,
    });
    change(rect, {
      x, y: middle - 0.5 - BOX / 2, width, fill: tone ? colours[`${tone}-soft`] : fate === PRUNED ? colours.ground : colours.panel,
      stroke: tone ? ink : colours.line, "stroke-width": row === view.selected ? 2.6 : tone ? 1.8 : 1.1, "stroke-dasharray": fate === PRUNED ? "3 3" : null,
    });
    change(name, { x: x + 8, y: middle, "font-weight": tone ? 600 : 400, fill: ink }, fitted(this.name(row), 13, 104, 600));
    change(number, { x: x + width - 7, y: middle, fill: tone ? ink : colours.muted }, this.number(row));
    change(note, { x: x + width + 12, y: middle, fill: ink }, this.note(row));
  }

  hidden(row) {
    return (this.tree.children.get(row) || []).filter((child) => !this.shown.has(child)).length;
  }

  newFold(row) {
    const mark = svg("g", { class: "s-fold", on: { click: () => this.open(row) } }, svg("title", {}), svg("circle", { r: 7 }), svg("text", { "font-size": 9, "text-anchor": "middle", "dominant-baseline": "central" }));
    return mark;
  }

  fold(mark, row) {
    const { at, colours, tree } = this;
    const x = at.left[tree.step[row]] + at.widths[tree.step[row]];
    const [title, circle, count] = mark.children;
    title.textContent = `${moreConsidered(this.hidden(row), "here")}: click to show ${this.hidden(row) === 1 ? "it" : "them"}`;
    change(circle, { cx: x, cy: this.y(row) + 11.5, fill: colours.ground, stroke: colours.line });
    change(count, { x, y: this.y(row) + 12, fill: colours.muted }, `+${this.hidden(row)}`);
  }

  open(row) {
    this.change("opened", [...this.view.opened, row]);
  }

  tell(row) {
    const { tree } = this;
    const missed = this.missed(row, 3);
    const fate = tree.fate[row] === PRUNED ? (tree.missed[row] > 0 ? `pruned, ${missed}` : missed) : tree.fate[row] === FINISHED ? "finished" : "kept";
    const folded = this.shown && this.shown.has(row) ? this.hidden(row) : 0;
    return [
      this.name(row), `${fate}, rank ${tree.rank[row] + 1} at step ${tree.step[row] + 1}`,
      `probability ${probability(tree.logp[row])} (log probability ${signed(tree.logp[row])})`, `sum so far ${signed(tree.total[row])}`,
      folded ? `${moreConsidered(folded, "after it")}: press + to show ${folded === 1 ? "it" : "them"}` : "",
    ].filter(Boolean);
  }

  focusRow() {
    if (this.focused >= 0 && this.shown.has(this.focused)) return this.focused;
    if (this.view.selected >= 0) return this.view.selected;
    return this.shown.size ? Math.min(...this.shown) : -1;
  }

  choose(row) {
    this.focused = row;
    this.emit("select", row);
    if (this.given.selected === undefined || this.given.selected === null) this.update(this.payload, { ...this.given, selected: row });
    const node = this.nodes.get(row);
    if (node) node.focus({ preventScroll: true });
  }

  key(event) {
    const at = Number(event.target.dataset ? event.target.dataset.node : NaN);
    if (!Number.isInteger(at)) return;
    const { tree } = this;
    const down = (p, q) => this.place.get(p) - this.place.get(q);
    const level = [...this.shown].filter((row) => tree.step[row] === tree.step[at]).sort(down);
    const children = (tree.children.get(at) || []).filter((row) => this.shown.has(row)).sort(down);
    const moves = {
      ArrowRight: children[0], ArrowLeft: tree.parent[at] >= 0 ? tree.parent[at] : undefined,
      ArrowDown: level[level.indexOf(at) + 1], ArrowUp: level[level.indexOf(at) - 1], Home: Math.min(...this.shown),
    };
    if (event.key === "Enter" || event.key === " ") this.choose(at);
    else if (event.key === "+") this.open(at);
    else if (event.key === "Escape") tip.hide();
    else if (moves[event.key] === undefined) return;
    else this.goTo(moves[event.key]);
    event.preventDefault();
  }

  goTo(row) {
    const before = this.nodes.get(this.focusRow());
    if (before) before.setAttribute("tabindex", "-1");
    this.focused = row;
    const node = this.nodes.get(row);
    node.setAttribute("tabindex", "0");
    node.focus();
    const box = node.getBoundingClientRect();
    tip.show(this.tell(row), box.left, box.bottom - 10, node);
    this.emit("hover", { row, step: this.tree.step[row] });
  }

  rows() {
    const { tree } = this;
    const path = (row) => pathTo(tree, row).map((at) => this.name(at)).join(" ");
    return {
      caption: this.payload.facts.title,
      heads: ["token", "step", "fate", "missed by", "log probability", "sum so far", "after"],
      rows: [...this.shown].sort((p, q) => p - q).map((row) => [
        this.name(row), tree.step[row] + 1, ["kept", "pruned", "finished"][tree.fate[row]], tree.fate[row] === PRUNED ? this.missed(row, 3).replace("missed by ", "") : "",
        signed(tree.logp[row]), signed(tree.total[row]), tree.parent[row] < 0 ? "start" : path(tree.parent[row]),
      ]),
    };
  }
}

// The controls: how far the search is shown, and whether with pruned candidates.
class TreeBar {
  constructor(change) {
    const [time, pruned] = [newId("s-time"), newId("s-pruned")];
    this.slider = el("input", { type: "range", id: time, min: 0, class: "s-time" });
    this.label = el("output", { for: time });
    this.box = el("input", { type: "checkbox", id: pruned, class: "s-pruned" });
    this.count = el("label", { for: pruned });
    this.all = button("Fold", () => change("opened", []), { class: "s-quiet", hidden: true });
    this.slider.addEventListener("input", () => change("until", Number(this.slider.value) >= Number(this.slider.max) ? null : Number(this.slider.value)));
    this.box.addEventListener("change", () => change("pruned", this.box.checked));
    this.node = el("div", { class: "s-bar" },
      el("span", { class: "s-inline" }, el("label", { for: time }, "Time"), this.slider, this.label), el("span", { class: "s-inline" }, this.box, this.count), this.all);
  }

  show(tree, { until, pruned, opened }) {
    const last = Math.max(0, tree.steps - 1);
    const at = until === null ? last : Math.min(until, last);
    const dropped = tree.fate.reduce((sum, fate) => sum + (fate === PRUNED), 0);
    const missed = tree.missed.some((by) => by > 0);
    this.slider.max = String(last);
    if (Number(this.slider.value) !== at) this.slider.value = String(at);
    this.label.textContent = at >= last ? `all ${last + 1} steps` : `step ${at + 1} of ${last + 1}`;
    this.box.checked = pruned;
    this.count.textContent = `show the ${dropped.toLocaleString("en")} ${missed ? "pruned" : "not drawn"}`;
    this.all.hidden = !opened.length;
  }
}

// Set the attributes (and the text) of a node if they have changed.
function change(node, attributes, text) {
  for (const [name, value] of Object.entries(attributes)) {
    const wanted = value === null ? null : String(value);
    if (node.getAttribute(name) === wanted) continue;
    if (wanted === null) node.removeAttribute(name);
    else node.setAttribute(name, wanted);
  }
  if (text !== undefined && node.textContent !== text) node.textContent = text;
}

// One child of `parent` for every key. Existing ones are reused and keep the focus.
function keyed(parent, known, keys, make, update) {
  const wanted = new Set(keys);
  for (const [key, node] of known) {
    if (wanted.has(key)) continue;
    node.remove();
    known.delete(key);
  }
  keys.forEach((key, i) => {
    if (!known.has(key)) known.set(key, make(key));
    const node = known.get(key);
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] || null);
    update(node, key);
  });
}

/** @param {HTMLElement} element @param {TreePayload} payload @param {TreeView} view @param {import("./grid.js").Emit} emit */
export function mountTree(element, payload, view = {}, emit = () => {}) {
  const drawing = new TreeDrawing(element, emit);
  return mounted(drawing, payload, view, { tell: (row) => drawing.tell(row) });
}
