// What the drawings compute before they draw.
import assert from "node:assert/strict";
import test from "node:test";

import { probability } from "../../seqdemo/figures/js/core.js";
import { topOf } from "../../seqdemo/figures/js/curves.js";
import { push, runs } from "../../seqdemo/figures/js/edge.js";
import { renormalised } from "../../seqdemo/figures/js/grid.js";
import { gridLayout, onCanvas } from "../../seqdemo/figures/js/gridlayout.js";
import { columnEdges, moreConsidered } from "../../seqdemo/figures/js/layout.js";
import { boundOf, partName, readGates, unitOrder, strongestOf } from "../../seqdemo/figures/js/units.js";

const packed = (values, shape, more = {}) => ({ dtype: "int8", shape, base64: Buffer.from(Int8Array.from(values).buffer).toString("base64"), scale: 1 / 127, ...more });

test("a log probability is shown as a probability, a small one in powers of ten", () => {
  const shown = { 1: "1.00", 0.9996: "1.00", 0.5: "0.50", 0.25: "0.25", 0.0996: "0.10", 0.05: "0.050", 0.001: "0.001", 0.00004: "4·10⁻⁵", 3e-12: "3·10⁻¹²" };
  for (const [p, text] of Object.entries(shown)) assert.equal(probability(Math.log(Number(p))), text);
  assert.equal(probability(Math.log(0.5), 3), "0.500");
  assert.equal(probability(null), "0");
});

test("a row of weights still sums to one when one of them is pulled anywhere", () => {
  for (const to of [-1, 0, 0.3, 1, 5]) {
    const row = renormalised([0.2, 0.5, 0.3], 1, to);
    assert.ok(Math.abs(row.reduce((sum, value) => sum + value, 0) - 1) < 1e-12);
    assert.ok(row.every((value) => value >= 0 && value <= 1));
    assert.equal(row[1], Math.max(0, Math.min(1, to)));
  }
});

test("few units stand at their own places among all", () => {
  const gate = readGates({ "decoder.1.cell": packed([1, 2, 3, 4], [2, 2], { which: [1, 3], units: 5 }) }).get("decoder.1").get("cell");
  assert.deepEqual([...gate.values], [0, 1, 0, 2, 0, 0, 3, 0, 4, 0]);
  assert.deepEqual([gate.steps, gate.units, gate.which.has(3), gate.which.has(2)], [2, 5, true, false]);
});

test("units that vary most stand first", () => {
  const gate = readGates({ "decoder.0.forget": packed([0, 127, 60, 0, 0, 70], [2, 3], { open: true }) }).get("decoder.0").get("forget");
  assert.deepEqual(unitOrder(gate, "variance", 0), [1, 2, 0]);
  assert.deepEqual([boundOf(gate, "forget"), partName("encoder.1.backward")], [1, "Encoder, right to left, layer 2"]);
});

test("steps of a tree share the room before any is cut", () => {
  assert.equal(Math.round(columnEdges([80, 80], [30, 30], [15, 15], 270).width), 270);
});

test("the axis of a curve ends at a round number above all", () => {
  assert.equal(topOf([{ name: "a", points: [{ at: 1, label: "1", value: 43 }, { at: 2, label: "2", value: 41, high: 52 }] }]), 100);
});

test("a matrix is laid out within its room as long as its cells can shrink", () => {
  globalThis.document = /** @type {any} */ ({ createElement: () => ({ getContext: () => ({ measureText: (text) => ({ width: 7 * text.length }) }) }) });
  const axis = (count) => ({ names: Array.from({ length: count }, (_, i) => `w${i}`) });
  const at = (count, room) => gridLayout(/** @type {any} */ ({ rows: axis(5), columns: axis(count), cell: { least: 17, most: 46, high: 30 } }), room);
  assert.ok(at(10, 480).width <= 480);
  assert.equal(at(100, 480).cellWide, 17);
  assert.equal(at(1, 480).cellWide, 46);
});

test("painted neighbours are outlined together", () => {
  assert.deepEqual(runs([7, 3, 4, 9, 5]), [[3, 5], [7, 7], [9, 9]]);
  assert.deepEqual(runs([]), []);
});

test("a pointer pushes a pane at its edges alone, and the more the nearer", () => {
  assert.equal(push(150, 100, 400), 0);
  assert.ok(push(390, 100, 400) > push(380, 100, 400) && push(380, 100, 400) > 0);
  assert.deepEqual([push(500, 100, 400), push(0, 100, 400)], [1, -1]);
});

test("letters stand upright over their columns, and what is wider than its column is turned", () => {
  const measured = { font: "", measureText: (text) => ({ width: 7 * text.length }) };
  const canvas = { getContext: () => measured };
  globalThis.document = /** @type {any} */ ({ createElement: () => canvas });
  const columns = { names: ["<ur>", ..."mohabbat"], flat: true };
  const at = (room) => gridLayout(/** @type {any} */ ({ rows: { names: ["م"] }, columns, cell: { least: 17, most: 46, high: 30 } }), room);
  assert.ok(at(800).top < at(240).top);
  assert.ok(at(800).cellWide >= 28 && at(240).cellWide < 28);
});

test("the name of the first and of the last column stay on the canvas", () => {
  assert.deepEqual([0.5, 100, 255.5].map((x) => onCanvas(x, 24, 264)), [12, 100, 252]);
  assert.equal(onCanvas(5, 30, 20), 15);
});

test("one box is told in the singular", () => {
  assert.deepEqual([1, 2].map((count) => moreConsidered(count, "here")), ["1 more was considered here", "2 more were considered here"]);
});

test("a unit that is held at one value has the colour of that value among all units", () => {
  /** @type {any} */
  const gate = { values: Int8Array.from([5, -100, 5, 50, 5, 20]), steps: 3, units: 2, scale: 0.1, open: false };
  assert.deepEqual([0, 1].map((unit) => Math.round(strongestOf(gate, unit) * 10)), [100, 100]);
  assert.equal(Math.round(strongestOf({ ...gate, values: Int8Array.from([5, -100, 4, 50, -7, 20]) }, 0) * 10), 7);
});
