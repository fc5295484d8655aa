// The alignment: one row for each written piece, one column for each piece read, and the attention from the one to the other.
import { el, unpack } from "./core.js";
import { legend } from "./colour.js";
import { isRightToLeft, pieceName } from "./text.js";
import { Grid } from "./grid.js";
import { figureTools } from "./saving.js";

/**
 * @typedef {{source: string[], target: string[], kinds: {source: string, target: string}, facts: import("./saving.js").Facts,
 *   weights?: Float32Array | import("./core.js").Packed, heads?: {name: string, weights: Float32Array | import("./core.js").Packed, own?: "source" | "target", layer?: number, head?: number}[]}} AlignmentPayload
 *   `weights` row by row; with several heads, `heads` instead; one that looks at its `own` side has it on both axes. A model that writes looking at its own text has `source` = `target`.
 * @typedef {import("./grid.js").GridView & {head?: number, legend?: boolean, word?: {end: string, index: number} | null, tables?: import("./saving.js").Tables}} AlignmentView
 *   `word`: the piece of the source or the target that is pointed at elsewhere, lit where the head looks at its own side
 */

/** @param {any} packed @returns {Float32Array} */
export function numbersOf(packed) {
  return packed && packed.base64 ? unpack(packed) : packed;
}

/** @param {{heads?: any[]}} payload @param {number} head */
function headOf({ heads }, head) {
  return heads ? heads[Math.min(head, heads.length - 1)] : null;
}

// How a map is told: what its rows and columns are, in a sentence, in the heads of a table and at a cell (counted from 0).
const SIDES = {
  across: {
    says: "Each row is a piece the model wrote, each column a piece it read.",
    row: "written", column: "read", place: (row, column) => `read at place ${column + 1}, written at place ${row + 1}`,
  },
  source: {
    says: "Self-attention of the encoder while it reads: each row is a piece of the source, each column a piece of the same source that it looks at.",
    row: "read", column: "looked at", place: (row, column) => `place ${row + 1} of the source looks at place ${column + 1}`,
  },
  target: {
    says: "Self-attention of the decoder while it writes: each row is a piece the model wrote, each column the start or a piece it wrote before.",
    row: "written", column: "written before", place: (row, column) => `while piece ${row + 1} is written, it looks at ${column ? `piece ${column}` : "the start"}`,
  },
};

/** The side that the shown head looks at itself; "" if it looks from the output to the source. @param {{heads?: any[]}} payload @param {number} head */
export function ownSide(payload, head) {
  return (headOf(payload, head) || {}).own || "";
}

/** What the rows and columns of a map are. @param {string} own */
export function sidesOfMap(own) {
  return SIDES[own || "across"].says;
}

// The names of the columns. In self-attention of the decoder the first column is the start, the second the first piece it wrote.
function readNames(payload, own, across) {
  const from = own || "source";
  const names = payload[from].map((piece) => pieceName(piece, payload.kinds[from]));
  if (own === "target") return ["start", ...names.slice(0, -1)];
  return names.length === across ? names : Array.from({ length: across }, (_, j) => `state ${j + 1}`);
}

/** @param {AlignmentPayload} payload @param {number} head @returns {import("./grid.js").GridPayload} */
export function alignmentGrid(payload, head = 0) {
  const { facts, kinds } = payload;
  const one = headOf(payload, head);
  const own = ownSide(payload, head);
  const told = SIDES[own || "across"];
  const weights = numbersOf(one ? one.weights : payload.weights);
  const [from, to] = [own || "source", own || "target"];
  const across = payload[to].length ? Math.round(weights.length / payload[to].length) : payload[from].length;
  const read = readNames(payload, own, across);
  const written = payload[to].map((piece) => pieceName(piece, kinds[to]));
  return {
    title: head && one ? `${facts.title}, ${one.name}` : facts.title, values: weights, scale: { kind: "weights", low: 0, high: 1, label: "attention" },
    rows: { names: written, title: told.row },
    columns: { names: read, title: told.column, reversed: isRightToLeft(payload[from].join("")), flat: kinds[from] === "characters" && own !== "target" },
    cell: { least: 17, most: 46, high: 30 },
    tell: (row, column) => [`${read[column]} → ${written[row]}`, `attention ${weights[row * across + column].toFixed(3)}`, told.place(row, column)],
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
  const says = el("p", { class: "s-says", hidden: true });
  const own = () => ownSide(now.payload, now.head);
  let matrix = alignmentGrid(payload, now.head);
  const pointed = () => now.hover || (now.view.word && now.view.word.end === own() ? { row: now.view.word.index, column: null } : null);
  const lit = () => (now.view.lit === undefined || own() ? partners(matrix, pointed()) : now.view.lit);
  const grid = new Grid(holder, matrix, { ...view, lit: lit() }, (event, detail) => {
    if (event === "hover") {
      now.hover = detail;
      grid.view = { ...grid.view, lit: lit() };
    }
    emit(event, event === "hover" && own() ? null : detail);
  });
  const tools = figureTools("alignment", () => grid.figure(), () => grid.rows(), () => ({ ...now.payload.facts, title: matrix.title, scale: matrix.scale }), emit);
  element.append(heads, says, scale, holder, tools);

  function chooseHead(head) {
    now.head = head;
    emit("head", head);
    redraw(true);
  }

  function redraw(anew) {
    if (anew) matrix = alignmentGrid(now.payload, now.head);
    if (anew) showHeads(heads, now);
    says.hidden = !own();
    says.textContent = own() && sidesOfMap(own());
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
