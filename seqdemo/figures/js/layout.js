// The places of the boxes of a search tree. Pure: rows of the record in, places out.
import { unpack } from "./core.js";

/**
 * @typedef {{size: number, steps: number, pieces: Map<number, string>, children: Map<number, number[]>, step: Int16Array, parent: Int32Array,
 *   token: Int32Array, logp: Float32Array, total: Float32Array, rank: Int16Array, fate: Uint8Array, missed: Float32Array}} Tree
 */

export const KEPT = 0, PRUNED = 1, FINISHED = 2;
const MOST_BOXES = 420;
const COLUMNS = ["step", "parent", "token", "logp", "total", "rank", "fate", "missed"];

/** @returns {Tree} */
export function readTree(payload) {
  /** @type {any} */
  const tree = { size: payload.size, steps: 0, pieces: new Map(payload.pieces), children: new Map() };
  for (const name of COLUMNS) tree[name] = unpack(payload[name]);
  for (let row = 0; row < tree.size; row++) {
    const parent = tree.parent[row];
    if (!tree.children.has(parent)) tree.children.set(parent, []);
    tree.children.get(parent).push(row);
    tree.steps = Math.max(tree.steps, tree.step[row] + 1);
  }
  return tree;
}

/** Rows from the first token to `node`. @param {Tree} tree @param {number} node @returns {number[]} */
export function pathTo(tree, node) {
  const path = [];
  for (let at = node; at >= 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}

/**
 * Which rows to draw. `must`: rows whose whole path is always shown; `opened`: rows whose children were asked for.
 * @param {Tree} tree @param {number[]} must @param {{pruned: boolean, opened: Set<number>}} view @returns {Set<number>}
 */
export function visibleRows(tree, must, { pruned, opened }) {
  const shown = new Set();
  const addPath = (node) => pathTo(tree, node).forEach((row) => shown.add(row));
  must.forEach(addPath);
  const rest = [];
  for (let row = 0; row < tree.size; row++) {
    if (opened.has(tree.parent[row])) addPath(row);
    else if (tree.fate[row] !== PRUNED || pruned) rest.push(row);
  }
  const order = (row) => (tree.fate[row] === PRUNED ? 1e6 : 0) + tree.rank[row] * 100 + tree.step[row];
  rest.sort((x, y) => order(x) - order(y));
  for (const row of rest) {
    if (shown.size >= MOST_BOXES) break;
    if (tree.parent[row] < 0 || shown.has(tree.parent[row]) || tree.fate[row] !== PRUNED) addPath(row);
  }
  return shown;
}

// The order of rows: the best output first, then other outputs, then what was dropped.
function worthOf(tree, rows, ends) {
  const best = new Set(ends.length ? pathTo(tree, ends[0]) : []);
  const outputs = new Set(ends);
  const worth = new Map();
  const raise = (row, value) => worth.set(row, Math.max(worth.has(row) ? worth.get(row) : -Infinity, value));
  for (const row of [...rows].sort((x, y) => y - x)) {
    const lead = best.has(row) ? 1e6 : outputs.has(row) || tree.fate[row] === FINISHED ? 1e3 : tree.fate[row] === PRUNED ? -1e4 : 0;
    raise(row, tree.total[row] + lead);
    if (tree.parent[row] >= 0) raise(tree.parent[row], worth.get(row));
  }
  return worth;
}

/**
 * Row -> line, counted from the top, on which the best output (`ends[0]`) lies straight. No two boxes of a step share a line.
 * @param {Tree} tree @param {Set<number>} shown @param {number[]} ends @returns {Map<number, number>}
 */
export function layoutTree(tree, shown, ends = []) {
  const worth = worthOf(tree, shown, ends);
  const last = new Int32Array(tree.steps + 1).fill(-1);
  const place = new Map();
  const below = (row) => (tree.children.get(row) || []).filter((child) => shown.has(child)).sort((p, q) => worth.get(q) - worth.get(p));
  const visit = (row, above) => {
    const step = tree.step[row];
    const line = Math.max(above, last[step] + 1);
    last[step] = line;
    place.set(row, line);
    below(row).forEach((child) => visit(child, line));
  };
  below(-1).forEach((row) => visit(row, 0));
  return place;
}

/**
 * Left edge of every step, so that all fit into `room` where narrower gaps can make them.
 * @param {number[]} widths @param {number[]} gaps @param {number[]} least @param {number} room
 */
export function columnEdges(widths, gaps, least, room) {
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const start = 62;
  const over = start + sum(widths) + sum(gaps) - room;
  const slack = sum(gaps) - sum(least);
  const share = over > 0 && slack > 0 ? Math.min(1, over / slack) : 0;
  const left = [];
  let x = start;
  widths.forEach((width, step) => {
    left.push(x);
    x += width + gaps[step] - share * (gaps[step] - least[step]);
  });
  return { left, width: x };
}

/** @param {number} count of boxes that are folded @param {string} where */
export function moreConsidered(count, where) {
  return `${count} more ${count === 1 ? "was" : "were"} considered ${where}`;
}
