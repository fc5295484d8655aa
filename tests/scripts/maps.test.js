// What the rows and columns of an attention map are, whichever head is shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { alignmentGrid, ownSide, sidesOfMap } from "../../seqdemo/figures/js/alignment.js";
import { trustOf } from "../../seqdemo/ui/js/trust.js";

const square = (count) => Float32Array.from({ length: count * count }, (_, i) => i / 10);
const PAYLOAD = {
  source: ["ein", "Mann", "<eos>"], target: ["a", "man", "sits", "<eos>"], kinds: { source: "words", target: "words" }, facts: { title: "Attention" },
  heads: [{ name: "mean", weights: new Float32Array(12) }, { name: "layer 1, head 1", weights: new Float32Array(12) },
    { name: "reading, layer 1, head 1", weights: square(3), own: /** @type {const} */ ("source") }, { name: "writing, layer 1, head 1", weights: square(4), own: /** @type {const} */ ("target") }],
};

test("while it writes, the decoder looks at the start and at what it wrote before", () => {
  const grid = alignmentGrid(PAYLOAD, 3);
  assert.deepEqual(grid.columns.names, ["start", "a", "man", "sits"]);
  assert.deepEqual(grid.rows.names, ["a", "man", "sits", "<eos>"]);
  assert.deepEqual(grid.tell(2, 1), ["a → sits", "attention 0.900", "while piece 3 is written, it looks at piece 1"]);
  assert.equal(grid.tell(1, 0)[2], "while piece 2 is written, it looks at the start");
});

test("while it reads, the encoder looks at the source from each of its pieces", () => {
  const grid = alignmentGrid(PAYLOAD, 2);
  assert.deepEqual([grid.rows.names, grid.columns.names], [["ein", "Mann", "<eos>"], ["ein", "Mann", "<eos>"]]);
  assert.deepEqual([grid.rows.title, grid.tell(1, 0)[2]], ["read", "place 2 of the source looks at place 1"]);
});

test("a map says which head it shows, in its table and its saved picture, and the mean needs no name", () => {
  assert.deepEqual([0, 1, 3].map((head) => alignmentGrid(PAYLOAD, head).title), ["Attention", "Attention, layer 1, head 1", "Attention, writing, layer 1, head 1"]);
});

test("a sentence says what rows and columns are, by the side that the head looks at", () => {
  assert.deepEqual([0, 1, 2, 3, 9].map((head) => ownSide(PAYLOAD, head)), ["", "", "source", "target", "target"]);
  assert.match(sidesOfMap(""), /a piece the model wrote, each column a piece it read/);
  assert.match(sidesOfMap("source"), /encoder.*each row is a piece of the source/);
  assert.match(sidesOfMap("target"), /decoder.*wrote before/);
});

test("what was measured of a map is not told of a map of self-attention", () => {
  const bench = { columns: { A: { spec: { checkpoint: "m" } } }, state: { input: {} }, card: () => null };
  assert.equal(trustOf(bench, () => true).length, 1);
  assert.equal(trustOf(bench, () => false).length, 0);
});
