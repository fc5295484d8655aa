// What hands work out by themselves: rows moved by a button, outputs ranked anew, and questions that give way to later ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { extremes } from "../../seqdemo/ui/js/gatetimes.js";
import { measuredWords, yourCharacters } from "../../seqdemo/ui/js/language.js";
import { placesOfWords } from "../../seqdemo/ui/js/asked.js";
import { oriented } from "../../seqdemo/ui/js/closing.js";
import { Hand } from "../../seqdemo/ui/js/hand.js";
import { attentionOf, diagonalPlace, shiftedRow } from "../../seqdemo/ui/js/rows.js";
import { heldAt, startState, withClamp, withRow } from "../../seqdemo/ui/js/state.js";
import { poolWords, rankedPool } from "../../seqdemo/ui/js/strips.js";
import { UnitHands, byHow, meansOver } from "../../seqdemo/ui/js/unitrank.js";
import { keptEdit, waysTo } from "../../seqdemo/ui/js/ways.js";
import { letterAt } from "../../seqdemo/ui/js/words.js";
import { SETUP, after } from "./setup.js";

test("a row that moves keeps all its weight", () => {
  assert.deepEqual(shiftedRow([0.5, 0.25, 0.25], 1), [0, 0.5, 0.5]);
  assert.deepEqual(shiftedRow([0.5, 0.25, 0.25], -1), [0.75, 0.25, 0]);
  assert.deepEqual([0, 1, 2].map((t) => diagonalPlace(t, 3, 7)), [0, 3, 6]);
  assert.equal(diagonalPlace(0, 1, 7), 0);
});

test("outputs are ranked by the lectures' formulas", () => {
  const pool = [{ text: "short", logp: -4, length: 4, coverage: -2 }, { text: "long", logp: -5, length: 10, coverage: 0 }];
  const first = (options, weight) => rankedPool(pool, options, weight)[0].text;
  assert.equal(first({ length_norm: "none", alpha: 1 }, 0), "short");
  assert.equal(first({ length_norm: "power", alpha: 1 }, 0), "long");
  assert.equal(first({ length_norm: "none", alpha: 1 }, 1), "long");
  assert.equal(rankedPool(pool, { length_norm: "gnmt", alpha: 0.5 }, 0)[0].score, -5 / (15 / 6) ** 0.5);
});

test("of many outputs it is said how many there are and how many of them are shown", () => {
  assert.match(poolWords(241, false), /met 241 different finished outputs.*the best 6 of them/);
  assert.match(poolWords(241, true), /met 241 .*all of them/);
  assert.match(poolWords(4, false), /met 4 .*all of them/);
  assert.equal(poolWords(1, false), "These searches met one finished output.");
});

test("a row or a gate is held once, at the value set last", () => {
  const place = { part: "decoder", layer: 0, direction: "forward", gate: "forget", units: null, positions: null };
  const state = after(startState(SETUP), withRow("B", 1, [1, 0]), withRow("B", 1, [0, 1]), withClamp("B", place, 0), withClamp("B", place, 0.5), withClamp("B", { ...place, units: [3] }, 1));
  assert.deepEqual(state.columns[1].edits.map(({ weights, value }) => weights || value), [[0, 1], 0.5, 1]);
  const free = after(state, withRow("B", 1, null), withClamp("B", place, null));
  assert.deepEqual(free.columns[1].edits.map(({ units }) => units), [[3]]);
});

test("a row of one head stands beside those of other heads, and one of all heads replaces them", () => {
  const [first, second] = [{ layer: 0, head: 1 }, { layer: 1, head: 0 }];
  const two = after(startState(SETUP), withRow("B", 1, [1, 0], first), withRow("B", 1, [1, 0], second), withRow("B", 1, [0, 1], first));
  const told = (state) => state.columns[1].edits.map(({ layer, head, weights }) => [layer, head, weights.join("")]);
  assert.deepEqual(told(two), [[1, 0, "10"], [0, 1, "01"]]);
  assert.deepEqual(told(after(two, withRow("B", 1, null, first))), [[1, 0, "10"]]);
  const all = after(two, withRow("B", 1, [1, 1]));
  assert.deepEqual(told(all), [[undefined, undefined, "11"]]);
  assert.deepEqual(told(after(all, withRow("B", 1, [0, 1], first))).length, 2, "the row of all heads still holds the others");
  assert.deepEqual(told(after(all, withRow("B", 1, [0, 1], first), withRow("B", 1, null))), [], "letting go of all lets go of each");
});

test("the row that is moved is that of the head that is shown", () => {
  const weights = (...values) => new Float32Array(values);
  const trace = { attention: weights(1, 0), heads: [{ name: "mean", weights: weights(1, 0) }, { name: "layer 1, head 2", layer: 0, head: 1, weights: weights(0, 1) }] };
  assert.deepEqual([attentionOf(trace, null), attentionOf(trace, { layer: 0, head: 1 })].map((row) => [...row]), [[1, 0], [0, 1]]);
  assert.equal(attentionOf(trace, { layer: 5, head: 0 }), null);
});

test("what holds a part is the last clamp over all of it, and a smaller one makes the whole mixed", () => {
  const all = { part: "decoder", layer: 0, direction: "forward", gate: "forget", units: null, positions: null };
  const painted = { ...all, units: [2, 3], positions: [0] };
  const edits = (...clamps) => after(startState(SETUP), ...clamps.map(([place, value]) => withClamp("B", place, value))).columns[1].edits;
  const held = (made, place) => {
    const { clamp, mixed } = heldAt(made, place);
    return [clamp && clamp.value, mixed];
  };
  assert.deepEqual(held(edits([all, 1]), painted), [1, false]);
  const both = edits([all, 1], [painted, 0]);
  assert.deepEqual([held(both, painted), held(both, all), held(both, { ...painted, units: [2] }), held(both, { ...painted, units: [1, 2] })], [[0, false], [1, true], [0, false], [1, true]]);
  assert.deepEqual([held(both, { ...painted, positions: [1] }), held(both, { ...all, gate: "input" })], [[1, false], [null, false]]);
  assert.deepEqual(edits([painted, 0], [all, 1]).map(({ value }) => value), [1], "a clamp that no longer acts is gone");
});

test("how well a unit tells is told alike whether it falls or rises", () => {
  assert.deepEqual([0.002, 0.998, 0.5, 0].map(oriented), ["AUC 0.998", "AUC 0.998", "AUC 0.500", "AUC 1.000"]);
});

test("a group of units may make a word likelier, too", () => {
  assert.deepEqual([-Math.log(3), Math.log(50), 0.001].map(byHow), ["3.0× less likely", "50× likelier", "neither likelier nor less likely"]);
});

test("means over an input are named after the output that they are taken over", () => {
  for (const task of ["translate", "transliterate", "caption", "complete"]) assert.match(meansOver(task), /what greedy search writes/);
});

test("what is chance is said in whole sentences", () => {
  const group = { size: 20, best: -Math.log(3), random: [-0.1, -0.392, 0.2] };
  assert.equal(UnitHands.prototype.chance.call({}, { groups: [group] }), "The first 20 together make it 3.0× less likely; of 3 random groups of 20 units, the one that costs the most makes it 1.48× less likely.");
});

test("a measured unit is told with the sign and the quality of its measure", () => {
  const told = (more) => measuredWords({ unit: 5, layer: 0, sign: -1, measure: "auc", test: 0.95, ...more }, "how far the line is indented").join("");
  assert.match(told({}), /^Of all units, unit 5 of layer 1 tells best how far the line is indented: it falls there \(AUC 0\.95 over/);
  assert.match(told({ test: 0.73 }), /tells best .*, though not well: it falls/);
  assert.match(told({ measure: "correlation", test: 0.88 }), /it falls as that grows \(correlation −0\.88 over/);
  assert.deepEqual([1, 2].map(yourCharacters), ["Your character", "Your 2 characters"]);
});

test("letters are called letters", () => {
  assert.deepEqual([waysTo("letter").earlier, waysTo("letter").force], ["Change an earlier letter", "Force the letter itself (for comparison)"]);
  assert.doesNotMatch(Object.values(waysTo("letter")).join(), /word/);
});

test("a gate is most shut and most open at different pieces", () => {
  const means = [0.1, 0.4, 0.9];
  const told = (pieces) => pieces.map((at) => ({ at }));
  const [shut, open] = extremes({ means, shut: told([0, 1, 2]), open: told([2, 1, 0]) });
  assert.deepEqual([shut, open], [told([0, 1]), told([2])]);
  const many = Array.from({ length: 30 }, (_, at) => at);
  assert.deepEqual(extremes({ means: many, shut: told(many), open: told(many) }).map((list) => list.length), [5, 5]);
});

test("words have places, and so has the end", () => {
  assert.deepEqual(placesOfWords(["▁a", "▁ban", "ana", "</s>"], "subwords"), [
    { text: "a", position: 0, length: 1 }, { text: "banana", position: 1, length: 2 }, { text: "<eos>", position: 3, length: 1 }]);
});

test("an edit of the server is kept without its sentence, and words by their pieces", () => {
  assert.deepEqual(keptEdit({ kind: "Ban", position: 2, tokens: [7], pieces: ["▁a"], says: "never" }), { kind: "Ban", position: 2, pieces: ["▁a"] });
  assert.deepEqual(keptEdit({ kind: "AttentionRow", position: 1, weights: [1], layer: null, head: null, says: "" }), { kind: "AttentionRow", position: 1, weights: [1] });
});

test("letters of a ligature share its glyph, from the side where the text begins", () => {
  const boxes = [[10, 20], [10, 10], [4, 10]].map(([left, right]) => ({ getBoundingClientRect: () => /** @type {DOMRect} */ ({ left, right, width: right - left }) }));
  assert.deepEqual([19, 16, 14, 10, 2].map((x) => letterAt(boxes, x, true)), [0, 0, 1, 1, 1]);
  assert.deepEqual([11, 14, 16, 30].map((x) => letterAt(boxes, x, false)), [0, 0, 1, 1]);
  assert.equal(letterAt(boxes.slice(2), 5, true), 0);
});

const settled = () => new Promise((done) => setTimeout(done, 0));

test("of short questions of a kind one is under way, and the latest one follows", async () => {
  const asked = [];
  const line = { hand: (message) => new Promise((answer) => asked.push({ message, answer })), send: () => {} };
  const bench = { state: startState(SETUP), message: () => ({ task: "translate" }), chosen: () => ({ node: 4 }) };
  const hand = new Hand(bench, line);
  const answers = [1, 2, 3].map((row) => hand.ask("B", { ask: "next", row }));
  hand.ask("B", { ask: "bound" });
  assert.deepEqual(asked.map(({ message }) => [message.ask, message.row]), [["next", 1], ["bound", undefined]]);
  assert.deepEqual(asked[0].message.of, { row: 4 });
  asked[0].answer({ id: 1 });
  await settled();
  assert.deepEqual(asked.map(({ message }) => message.row), [1, undefined, 3]);
  asked[2].answer({ id: 3 });
  assert.deepEqual(await Promise.all(answers), [null, null, { id: 3 }]);
});

test("a long question tells how far it is, and stops", async () => {
  const sent = [];
  const bench = { state: startState(SETUP), message: () => ({}), chosen: () => ({ node: -1, place: 0 }) };
  const hand = new Hand(bench, { hand: async () => ({}), send: (kind, message) => sent.push([kind, message]) });
  const told = [];
  const answer = hand.probe("B", { ask: "units" }, (progress) => told.push(progress.progress));
  const { id } = sent[0][1];
  hand.hear({ id, progress: "half" });
  hand.hear({ id: id + 1, ask: "units" });
  hand.hear({ id, ask: "units", units: [] });
  assert.deepEqual([told, await answer], [["half"], { id, ask: "units", units: [] }]);
  const stopped = hand.probe("B", { ask: "units" });
  hand.halt();
  assert.deepEqual([await stopped, sent.at(-1)], [{ error: "Stopped." }, ["halt", { id: sent.at(-2)[1].id }]]);
});
