// The alignment: one row for each written piece, one column for each piece read, and the attention from the one to the other.
import { el, unpack } from "./core.js";
import { legend } from "./colour.js";
import { isRightToLeft, pieceName } from "./text.js";
import { Grid } from "./grid.js";
import { figureTools } from "./saving.js";

/**
 * @typedef {{source: string[], target: string[], kinds: {source: string, target: string}, facts: import("./saving.js").Facts,
 *   weights?: Float32Array | import("./core.js").Packed, heads?: {name: string, weights: Float32Array | import("./core.js").Packed, own?: "source" | "target"}[]}} AlignmentPayload
 *   `weights` row by row; with several heads, `heads` instead; one that looks at its `own` side has it on both axes. A model that writes looking at its own text has `source` = `target`.
 * @typedef {import("./grid.js").GridView & {head?: number, legend?: boolean, tables?: import("./saving.js").Tables}} AlignmentView
 */

function numbersOf(packed) {
  return packed && packed.base64 ? unpack(packed) : packed;
}

/** @param {AlignmentPayload} payload @param {number} head */
function headOf({ heads }, head) {
  return heads ? heads[Math.min(head, heads.length - 1)] : null;
}

/** @param {AlignmentPayload} payload @param {number} head @returns {import("./grid.js").GridPayload} */
export function alignmentGrid(payload, head = 0) {
  const { facts } = payload;
  const one = headOf(payload, head);
  const weights = numbersOf(one ? one.weights : payload.weights);
  const [from, to] = one && one.own ? [one.own, one.own] : ["source", "target"];
  const [source, target, kinds] = [payload[from], payload[to], { source: payload.kinds[from], target: payload.kinds[to] }];
  const across = target.length ? Math.round(weights.length / target.length) : source.length;
  const read = source.length === across ? source.map((piece) => pieceName(piece, kinds.source)) : Array.from({ length: across }, (_, j) => `state ${j + 1}`);
  const written = target.map((piece) => pieceName(piece, kinds.target));
  return {
    title: facts.title, values: weights, scale: { kind: "weights", low: 0, high: 1, label: "attention" },
    rows: { names: written, title: "written" },
    columns: { names: read, title: "read", reversed: isRightToLeft(source.join("")), flat: kinds.source === "characters" },
    cell: { least: 17, most: 46, high: 30 },
    tell: (row, column) => [`${read[column]} → ${written[row]}`, `attention ${weights[row * across + column].toFixed(3)}`, `read at place ${column + 1}, written at place ${row + 1}`],
  };
}

/** A row or a column under the pointer highlights its partners by their weights. @param {{row: number | null, column: number | null} | null} hover */
export function partners(grid, hover) {
  if (!hover) return null;
  const across = grid.columns.names.length;
  const weight = (row, column) => grid.values[row * across + column] || 0;
  const { row, column } = hover;
  return {
    rows: (r) => (row === null ? weight(r, column) : Number(r === row)),
    columns: (c) => (row === null ? Number(c === column) : weight(row, c)),
  };
}

/** @param {HTMLElement} element @param {AlignmentPayload} payload @param {AlignmentView} view @param {import("./grid.js").Emit} emit */
export function mountAlignment(element, payload, view = {}, emit = () => {}) {
  const now = { payload, view, head: view.head || 0, hover: null };
  const holder = el("div", {});
  const scale = el("div", { class: "s-bar" });
  const heads = el("select", { "aria-label": "Head", hidden: true, on: { change: () => chooseHead(heads.selectedIndex) } });
  const own = () => Boolean((headOf(now.payload, now.head) || {}).own);
  let matrix = alignmentGrid(payload, now.head);
  const lit = () => (now.view.lit === undefined || own() ? partners(matrix, now.hover) : now.view.lit);
  const grid = new Grid(holder, matrix, { ...view, lit: lit() }, (event, detail) => {
    if (event === "hover") {
      now.hover = detail;
      grid.view = { ...grid.view, lit: lit() };
    }
    emit(event, event === "hover" && own() ? null : detail);
  });
  const tools = figureTools("alignment", () => grid.figure(), () => grid.rows(), () => ({ ...now.payload.facts, scale: matrix.scale }), emit);
  element.append(heads, scale, holder, tools);

  function chooseHead(head) {
    now.head = head;
    emit("head", head);
    redraw(true);
  }

  function redraw(anew) {
    if (anew) matrix = alignmentGrid(now.payload, now.head);
    if (anew) showHeads(heads, now);
    scale.hidden = now.view.legend === false;
    if (!scale.hidden) scale.replaceChildren(legend("weights", "0", "1", "Attention from 0 to 1"));
    grid.update(matrix, { ...now.view, ...(own() ? { mode: "look" } : {}), lit: lit() });
    if (anew) tools.refresh();
    tools.show(now.view.tables);
  }

  redraw(true);
  return {
    update(next, seen = {}) {
      const anew = next !== now.payload || (seen.head !== undefined && seen.head !== now.head);
      Object.assign(now, { payload: next, view: seen, head: seen.head ?? now.head });
      redraw(anew);
    },
    destroy() {
      grid.destroy();
      element.replaceChildren();
    },
  };
}

function showHeads(node, { payload, head }) {
  const names = (payload.heads || []).map((item) => item.name);
  node.hidden = names.length < 2;
  node.replaceChildren(...names.map((name, i) => el("option", { selected: i === head }, name)));
}
