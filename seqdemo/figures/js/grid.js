// An interactive matrix for alignments, gates and the like. Pointing, moving with the keys, raising one
// cell of a row, brushing over many; row and column names stay in sight while the cells scroll. What the pointer tells is spoken, too.
import { clear, el, signed, tip } from "./core.js";
import { onThemeChange, palette } from "./colour.js";
import { EdgeScroll, runs } from "./edge.js";
import { EDGE, LABEL, gridLayout, isTurned, onCanvas } from "./gridlayout.js";
import { CanvasPainter, fitted, shifted, textWidth } from "./painter.js";

/**
 * @typedef {{names: string[], title?: string, reversed?: boolean, flat?: boolean}} Axis
 * @typedef {{kind: "weights" | "signed", low: number, high: number, label: string}} Scale
 * @typedef {{title: string, rows: Axis, columns: Axis, values: ArrayLike<number>, order?: number[], scale: Scale,
 *   cell: {least: number, most: number, high: number}, tell: (row: number, column: number) => string[]}} GridPayload
 *   `values` row by row, NaN where a cell does not exist; `order`: which column stands where; `tell`: a cell in words, its title first
 * @typedef {{mode?: "look" | "drag" | "brush", lit?: {rows: (row: number) => number, columns: (column: number) => number} | null,
 *   brushed?: Brush | null}} GridView
 * @typedef {{rows: [number, number], columns: number[]}} Brush
 * @typedef {(event: string, detail: any) => void} Emit  hover {row, column} or null, brush {rows, columns}, pick {row, column}; while a row
 *   is dragged pull {row, weights}, at the end row with the same
 */

const RAISE = 140; // pixels of dragging from nothing to everything
const A_CLICK = 3; // pixels that the pointer may move in a click

/**
 * The row with one weight set. The others keep their proportions, and the sum stays the same.
 * @param {ArrayLike<number>} row @param {number} at @param {number} weight @returns {number[]}
 */
export function renormalised(row, at, weight) {
  const all = Array.from(row).reduce((sum, value) => sum + value, 0);
  const set = Math.max(0, Math.min(all, weight));
  const rest = all - row[at];
  return Array.from(row, (value, i) => {
    if (i === at) return row.length > 1 ? set : all;
    return rest > 1e-9 ? (value * (all - set)) / rest : (all - set) / (row.length - 1);
  });
}

export class Grid {
  /** @param {HTMLElement} element @param {GridPayload} payload @param {GridView} view @param {Emit} emit */
  constructor(element, payload, view, emit) {
    this.element = element;
    this.emit = emit;
    this.room = 0;
    /** @type {{row: number, place: number} | null} */
    this.cursor = null;
    /** @type {{row: number, weights: number[]} | null} */
    this.draft = null;
    /** @type {{from: any, to: any, at: any} | null} */
    this.stroke = null;
    /** @type {{row: number, place: number, y: number, from: number[], moved: boolean} | null} */
    this.held = null;
    this.corner = el("div", { class: "s-grid-corner" });
    this.tops = el("canvas", { class: "s-grid-columns" });
    this.sides = el("canvas", { class: "s-grid-rows" });
    this.cells = el("canvas", { class: "s-grid-cells s-canvas", tabindex: "0", role: "application", "aria-roledescription": "matrix" });
    this.spoken = el("div", { class: "s-hidden", "aria-live": "polite" });
    this.scroller = el("div", { class: "s-scroll s-grid" }, this.corner, this.tops, this.sides, this.cells);
    element.append(this.scroller, this.spoken);
    this.edge = new EdgeScroll(this.scroller, () => this.extend());
    this.listen();
    this.stopTheme = onThemeChange(() => this.draw());
    this.watcher = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => this.resized());
    if (this.watcher) this.watcher.observe(element);
    this.update(payload, view);
  }

  update(payload, view = {}) {
    if (payload !== this.payload) {
      const alike = this.payload && ["rows", "columns"].every((axis) => this.payload[axis].names.join("\n") === payload[axis].names.join("\n"));
      if (!this.held || !alike) this.draft = this.held = null; // what is under the hand stays there
      this.arrange(payload);
    }
    this.view = view;
    this.cells.classList.toggle("s-grid-hands", Boolean(view.mode && view.mode !== "look"));
    this.draw();
  }

  destroy() {
    this.stopTheme();
    if (this.watcher) this.watcher.disconnect();
    tip.hide();
    clear(this.element);
  }

  arrange(payload) {
    this.payload = payload;
    const [rows, columns] = [payload.rows.names.length, payload.columns.names.length];
    if (this.cursor && (this.cursor.row >= rows || this.cursor.place >= columns)) this.cursor = null;
    this.room = this.room || this.element.clientWidth; // measuring each time would force a layout of the page
    this.at = gridLayout(payload, this.room || 480);
    this.order = payload.order || Array.from({ length: columns }, (_, i) => i);
    const hands = "Arrow keys move through the cells. Where the rows can be moved, plus and minus change a weight and Enter puts all of it there.";
    this.cells.setAttribute("aria-label", `${payload.title}. ${hands}`);
  }

  resized() {
    const wide = this.element.clientWidth;
    if (!wide || wide === this.room) return;
    this.room = wide;
    this.arrange(this.payload);
    this.draw();
  }

  // Columns in view are places; `order` says which column of the payload stands at a place. Right-to-left text runs from the right.
  x(place) {
    const { columns } = this.payload;
    return (columns.reversed ? columns.names.length - 1 - place : place) * this.at.cellWide;
  }

  value(row, place) {
    const column = this.order[place];
    if (this.draft && this.draft.row === row) return this.draft.weights[column];
    return this.payload.values[row * this.payload.columns.names.length + column];
  }

  share(value) {
    const { low, high } = this.payload.scale;
    return (value - low) / (high - low || 1);
  }

  draw() {
    const { left, top, across, down, width, height } = this.at;
    this.corner.style.cssText = `width:${left}px;height:${top}px`;
    this.scroller.style.gridTemplateColumns = `${left}px auto`;
    this.drawColumns(new CanvasPainter(this.tops, across + EDGE, top));
    this.drawRows(new CanvasPainter(this.sides, left, down + EDGE));
    this.drawCells(new CanvasPainter(this.cells, across + EDGE, down + EDGE));
    Object.assign(this, { width, height });
  }

  figure() {
    const { left, top, width, height } = this.at;
    return { width, height, draw: (painter) => {
      this.drawColumns(shifted(painter, left, 0));
      this.drawRows(shifted(painter, 0, top));
      this.drawCells(shifted(painter, left, top), true);
    } };
  }

  label(lit) {
    const colours = palette();
    return { size: LABEL, fill: lit ? colours.accent : colours.ink, weight: lit ? 700 : 400 };
  }

  drawColumns(painter) {
    const { columns, cell } = this.payload;
    const { cellWide, top, across } = this.at;
    const widest = columns.flat ? Math.max(8, ...columns.names.map((name) => textWidth(name, LABEL))) + 6 : LABEL + 1;
    const every = Math.max(1, columns.flat && cell.least >= 4 ? 1 : Math.ceil(widest / cellWide));
    for (let place = 0; place < columns.names.length; place++) {
      const lit = this.view.lit && this.view.lit.columns(this.order[place]) > 0.15;
      if (place % every && !lit) continue;
      const name = columns.names[this.order[place]];
      const x = this.x(place) + cellWide / 2;
      if (!isTurned(columns, cell, cellWide, name)) {
        const text = fitted(name, LABEL, Math.max(cellWide, widest));
        painter.text(onCanvas(x, textWidth(text, LABEL), across + EDGE), top - 11, text, { ...this.label(lit), align: "middle" });
      } else painter.text(x, top - 7, fitted(name, LABEL, top - 10), { ...this.label(lit), turn: -90, align: "start" });
    }
  }

  drawRows(painter) {
    const { rows } = this.payload;
    const { cellHigh, left } = this.at;
    const every = Math.max(1, Math.ceil((LABEL + 1) / cellHigh));
    for (let row = 0; row < rows.names.length; row++) {
      const lit = this.view.lit && this.view.lit.rows(row) > 0.15;
      const near = every > 1 && this.litRow !== undefined && Math.abs(row - this.litRow) < every;
      if ((row % every || near) && !(lit && row === this.litRow)) continue;
      painter.text(left - 8, Math.max(7, (row + 0.5) * cellHigh), fitted(rows.names[row], LABEL, left - 12), { ...this.label(lit), align: "end" });
    }
  }

  drawCells(painter, whole = false) {
    const { rows, columns, scale } = this.payload;
    const { cellWide, cellHigh, across, down } = this.at;
    const colours = palette();
    const [high, wide] = [rows.names.length, columns.names.length];
    const shown = (row, column) => (columns.reversed ? wide - 1 - column : column);
    painter.grid(0, 0, across, down, high, wide, scale.kind, (row, column) => this.share(this.value(row, shown(row, column))));
    if (cellWide >= 9) for (let column = 1; column < wide; column++) painter.line(column * cellWide, 0, column * cellWide, down, colours.panel, 1);
    if (cellHigh >= 6) for (let row = 1; row < high; row++) painter.line(0, row * cellHigh, across, row * cellHigh, colours.panel, 1);
    painter.rect(0.5, 0.5, Math.max(0, across - 1), Math.max(0, down - 1), null, colours["strong-line"]);
    if (whole) return;
    if (this.brush()) this.drawBrush(painter, this.brush());
    if (this.cursor) {
      const { row, place } = this.cursor;
      painter.rect(this.x(place) + 0.5, row * cellHigh + 0.5, Math.max(2, cellWide - 1), Math.max(2, cellHigh - 1), null, colours.accent, 2);
    }
  }

  brush() {
    return this.stroke ? this.brushOf(this.stroke) : this.view.brushed || null;
  }

  drawBrush(painter, { rows, columns }) {
    const { cellWide, cellHigh } = this.at;
    for (const [first, last] of runs(columns.map((column) => this.order.indexOf(column))))
      painter.rect(Math.min(this.x(first), this.x(last)), rows[0] * cellHigh, (last - first + 1) * cellWide, (rows[1] - rows[0] + 1) * cellHigh, null, palette().warn, 2);
  }

  brushOf({ from, to }) {
    const [first, last] = [Math.min(from.place, to.place), Math.max(from.place, to.place)];
    return { rows: [Math.min(from.row, to.row), Math.max(from.row, to.row)], columns: this.order.slice(first, last + 1) };
  }

  // The cell under the pointer, or the row or column whose name is.
  under(event) {
    const box = this.cells.getBoundingClientRect();
    const { cellWide, cellHigh } = this.at;
    const [high, wide] = [this.payload.rows.names.length, this.payload.columns.names.length];
    const seen = Math.floor((event.clientX - box.left) / cellWide);
    const row = Math.floor((event.clientY - box.top) / cellHigh);
    const place = this.payload.columns.reversed ? wide - 1 - seen : seen;
    return { row: row >= 0 && row < high ? row : null, place: place >= 0 && place < wide ? place : null };
  }

  listen() {
    const hover = (event) => this.stroke || this.held ? this.pull(event) : this.point(event);
    for (const node of [this.cells, this.tops, this.sides]) {
      node.addEventListener("pointermove", hover);
      node.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && !this.held && !this.stroke && this.leave());
      node.addEventListener("click", (event) => this.point(event));
    }
    this.cells.addEventListener("pointerdown", (event) => this.press(event));
    for (const name of ["pointerup", "pointercancel"]) this.cells.addEventListener(name, (event) => this.release(event));
    this.cells.addEventListener("blur", () => this.leave());
    this.cells.addEventListener("keydown", (event) => this.key(event));
  }

  point(event) {
    const { row, place } = this.under(event);
    const inside = event.currentTarget === this.cells;
    if (inside && row !== null && place !== null) return this.move(row, place, event.clientX, event.clientY);
    const named = event.currentTarget === this.sides ? (row === null ? null : { row, column: null })
      : event.currentTarget === this.tops && place !== null ? { row: null, column: this.order[place] } : null;
    this.cursor = null;
    tip.hide();
    this.hover(named);
    return undefined;
  }

  move(row, place, x, y) {
    if (this.cursor && this.cursor.row === row && this.cursor.place === place && !this.held) return;
    this.cursor = { row, place };
    const lines = this.payload.tell(row, this.order[place]);
    if (this.draft && this.draft.row === row) lines[1] = `${this.payload.scale.label} ${this.value(row, place).toFixed(3)}, by hand`;
    tip.show(lines, x, y, this.cells);
    this.hover({ row, column: this.order[place] });
  }

  hover(detail) {
    this.litRow = detail && detail.row !== null ? detail.row : undefined;
    this.emit("hover", detail);
    this.draw();
  }

  leave() {
    if (!this.cursor && this.litRow === undefined && !(tip.owner === this.cells)) return this.emit("hover", null);
    this.cursor = null;
    tip.hide();
    return this.hover(null);
  }

  press(event) {
    const { row, place } = this.under(event);
    if (row === null || place === null || !this.view.mode || this.view.mode === "look") return;
    event.preventDefault();
    this.cells.focus({ preventScroll: true });
    this.cells.setPointerCapture(event.pointerId);
    if (this.view.mode === "brush") this.stroke = { from: { row, place }, to: { row, place }, at: event };
    else this.held = { row, place, y: event.clientY, from: this.weightsOf(row), moved: false };
  }

  pull(event) {
    if (this.held) {
      const { row, place, y, from } = this.held;
      if (!this.held.moved && Math.abs(y - event.clientY) < A_CLICK) return; // still a click
      this.held.moved = true;
      this.raise(row, place, from, from[this.order[place]] + (y - event.clientY) / RAISE);
      this.emit("pull", this.draft);
      this.move(row, place, event.clientX, event.clientY);
    } else {
      this.stroke.at = event;
      this.edge.follow(event, this.at);
      this.extend();
    }
  }

  // The stroke reaches to the cell in view that is nearest to the pointer.
  extend() {
    if (!this.stroke) return;
    this.stroke.to = this.under(this.edge.inside(this.stroke.at, this.cells, this.at));
    this.draw();
  }

  weightsOf(row) {
    const wide = this.payload.columns.names.length;
    if (this.draft && this.draft.row === row) return this.draft.weights;
    return Array.from({ length: wide }, (_, column) => this.payload.values[row * wide + column]);
  }

  raise(row, place, from, weight) {
    this.draft = { row, weights: renormalised(from, this.order[place], weight) };
  }

  release(event) {
    const { held, stroke, draft } = this;
    this.held = this.stroke = null;
    this.edge.stop();
    if (event.type === "pointercancel") this.draft = null;
    else if (held && held.moved) this.emit("row", draft);
    else if (held) this.emit("pick", { row: held.row, column: this.order[held.place] });
    else if (stroke) this.emit("brush", this.brushOf(stroke));
    if (held || stroke) this.draw();
  }

  key(event) {
    const [high, wide] = [this.payload.rows.names.length, this.payload.columns.names.length];
    if (!high || !wide) return;
    const { row, place } = this.cursor || { row: 0, place: -1 };
    const on = this.payload.columns.reversed ? -1 : 1;
    const moves = {
      ArrowRight: [row, place + on], ArrowLeft: [row, place - on], ArrowDown: [row + 1, place], ArrowUp: [row - 1, place],
      Home: [row, 0], End: [row, wide - 1], PageUp: [0, place], PageDown: [high - 1, place],
    };
    if (this.hand(event)) return event.preventDefault();
    if (!moves[event.key]) return undefined;
    event.preventDefault();
    const [down, along] = this.cursor ? moves[event.key] : [0, 0];
    const to = { row: Math.max(0, Math.min(high - 1, down)), place: Math.max(0, Math.min(wide - 1, along)) };
    if (this.view.mode === "brush" && event.shiftKey) this.stroke = { from: this.stroke ? this.stroke.from : { row, place }, to, at: null };
    else this.stroke = null;
    return this.goTo(to.row, to.place);
  }

  // What the keys do beside walking: + and - move a weight, Enter picks a cell or ends a brush.
  hand(event) {
    if (!this.cursor) return false;
    const { row, place } = this.cursor;
    if (this.view.mode === "drag" && ["+", "=", "-"].includes(event.key)) {
      const from = this.weightsOf(row);
      this.raise(row, place, from, from[this.order[place]] + (event.key === "-" ? -0.05 : 0.05));
      this.emit("row", this.draft);
      this.goTo(row, place);
      return true;
    }
    if (event.key === "Escape") {
      this.stroke = null;
      this.leave();
      return true;
    }
    if (event.key !== "Enter" && event.key !== " ") return false;
    if (this.stroke) this.emit("brush", this.brushOf(this.stroke));
    else this.emit("pick", { row, column: this.order[place] });
    this.stroke = null;
    return true;
  }

  goTo(row, place) {
    const { cellWide, cellHigh } = this.at;
    this.cursor = null;
    this.intoView(this.x(place), row * cellHigh);
    const box = this.cells.getBoundingClientRect();
    this.move(row, place, box.left + this.x(place) + cellWide, box.top + (row + 1) * cellHigh);
    const lines = this.payload.tell(row, this.order[place]);
    this.spoken.textContent = lines.slice(0, 2).join(", ");
  }

  intoView(x, y) {
    const { left, top, cellWide, cellHigh } = this.at;
    const pane = this.scroller;
    if (x < pane.scrollLeft) pane.scrollLeft = x;
    if (x + cellWide > pane.scrollLeft + pane.clientWidth - left) pane.scrollLeft = x + cellWide - pane.clientWidth + left;
    if (y < pane.scrollTop) pane.scrollTop = y;
    if (y + cellHigh > pane.scrollTop + pane.clientHeight - top) pane.scrollTop = y + cellHigh - pane.clientHeight + top;
  }

  rows() {
    const { rows, columns, title } = this.payload;
    return {
      caption: title,
      heads: [rows.title || "", ...this.order.map((column) => columns.names[column])],
      rows: rows.names.map((name, row) => [name, ...this.order.map((_, place) => signed(this.value(row, place), 3))]),
    };
  }
}
