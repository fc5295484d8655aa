// Hard attention looks at one place: what is offered and said of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { blendTargets, equationOf, hardSentence } from "../../seqdemo/ui/js/hard.js";
import { linkOf, readLink, writeLink } from "../../seqdemo/ui/js/link.js";
import { RowHands } from "../../seqdemo/ui/js/rows.js";
import { startState, withDimmed, withDraw, withModel } from "../../seqdemo/ui/js/state.js";
import { SETUP, after } from "./setup.js";

const HARD = { name: "h", attention: true, hard: true };
const SOFT = { name: "s", attention: true };
const editsOf = (state) => state.columns[1].edits;

test("the heaviest place stays the heaviest, so hard attention is not dimmed towards uniform", () => {
  const keys = (about) => blendTargets(about).map(([key]) => key);
  assert.deepEqual(keys({ task: "caption", hard: false }), ["uniform", "last", "nothing"]);
  assert.deepEqual(keys({ task: "caption", hard: true }), ["nothing"]);
  assert.deepEqual(keys({ task: "caption", hard: true, now: "uniform" }), ["uniform", "nothing"], "a link may ask for it");
});

test("the last state of a photograph is a corner of it, and called so", () => {
  const name = (task) => Object.fromEntries(blendTargets({ task, hard: false })).last;
  assert.deepEqual([name("caption"), name("translate")], ["the bottom right cell", "the last state"]);
});

test("an edit goes along to the models that it can act in", () => {
  const moved = (card, ...changes) => editsOf(withModel("B", card)(after(startState(SETUP), ...changes))).map(({ kind }) => kind);
  assert.deepEqual(moved(HARD, withDimmed("B", 0.5, "uniform")), []);
  assert.deepEqual(moved(HARD, withDimmed("B", 0.5, "nothing"), withDraw("B", 3)), ["AttentionBlend", "AttentionDraw"]);
  assert.deepEqual(moved(SOFT, withDimmed("B", 0.5, "uniform"), withDraw("B", 3)), ["AttentionBlend"]);
});

test("places are drawn by one seed, and the link carries it", () => {
  const state = after(startState(SETUP), withDraw("B", 3), withDraw("B", 4));
  assert.deepEqual(editsOf(state), [{ kind: "AttentionDraw", seed: 4 }]);
  const link = writeLink(state, SETUP);
  assert.deepEqual(readLink(linkOf({ search: "", hash: `#${link}` }), SETUP), { state, notes: [], absent: [] });
  assert.deepEqual(editsOf(withDraw("B", null)(state)), []);
  const other = readLink(linkOf({ search: "", hash: `#${link.replace("r1", "r0")}` }), SETUP);
  assert.deepEqual(editsOf(other.state), editsOf(state), "a seed draws from other weights, too");
});

test("the sentence and the equation say which place is looked at", () => {
  assert.match(hardSentence("word", "cell", false), /weighs every cell, and then looks at the heaviest cell alone\.$/);
  assert.match(hardSentence("word", "cell", true), /drawn by these weights\.$/);
  const bench = (card, edits = []) => ({ card: () => card, state: { columns: [{ checkpoint: "", edits: [] }, { checkpoint: "", edits }] } });
  assert.deepEqual([bench(SOFT), bench(HARD), bench(HARD, [{ kind: "AttentionDraw", seed: 0 }])].map((each) => equationOf(each, "B")), ["alignment", "hard", "drawn"]);
});

test("of hard attention one cell is chosen, and let go of when it is chosen again", () => {
  const hands = (painted) => ({ hard: true, painted: () => painted, weights: () => [0, 0, 1] });
  const chosen = (painted, cells) => RowHands.prototype.paintedWith.call(hands(painted), cells);
  assert.deepEqual([chosen([], [1]), chosen([2], [1]), chosen([1], [1])], [[0, 1, 0], [0, 1, 0], null]);
});
