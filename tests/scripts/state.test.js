// Changes are functions from a frozen state to the next; what another question no longer has is let go with it.
import assert from "node:assert/strict";
import test from "node:test";
import { askedAnew, sameQuestion, startState, swapped, withBeginning, withDimmed, withExample, withInput, withLanguage, withModel, withOption, withSelection, withView } from "../../seqdemo/ui/js/state.js";
import { after, SETUP, SPEAKING } from "./setup.js";

const [M, N] = SETUP.checkpoints;

test("nobody can change a state", () => {
  const state = startState(SETUP);
  assert.throws(() => (state.columns[1].options.beam = 7), TypeError);
  assert.throws(() => state.columns.push(state.columns[0]), TypeError);
  assert.deepEqual(after(state, withOption("B", "beam", 7)).columns[0], state.columns[0]);
});

test("only columns whose question changed are asked anew", () => {
  const state = startState(SETUP);
  assert.deepEqual(askedAnew(state, after(state, withOption("B", "beam", 7))), ["B"]);
  assert.deepEqual(askedAnew(state, after(state, withInput({ text: "b" }))), ["A", "B"]);
  assert.deepEqual(askedAnew(state, after(state, withView({ tab: "gates" }), withSelection("A", { row: 3 }))), []);
  assert.deepEqual(askedAnew(state, swapped(state)), ["A", "B"]);
});

test("a selection and what was unfolded go with the tree they are of", () => {
  const looked = after(startState(SETUP), withSelection("A", { row: 3 }), withSelection("B", { row: 4 }), withView({ tree: "B", opened: [4], until: 2 }));
  const other = after(looked, withOption("B", "beam", 7));
  assert.deepEqual([other.columns[0].selection, other.columns[1].selection], [{ row: 3 }, null]);
  assert.deepEqual([other.view.opened, other.view.until], [[], null]);
  assert.deepEqual(after(looked, withOption("A", "beam", 7)).view.opened, [4]);
});

test("an output has one beginning, and may not have any number of others", () => {
  const state = after(startState(SETUP), withBeginning("B", "Force", ["a"]), withBeginning("B", "Ban", ["b"]), withBeginning("B", "Ban", ["c"]), withBeginning("B", "Ban", ["c"]), withBeginning("B", "Force", ["d", "e"]));
  assert.deepEqual(state.columns[1].edits.map(({ kind, pieces }) => kind[0] + pieces.join("")), ["Bb", "Bc", "Fde"]);
});

test("words leave with the model they are of; dimmed attention stays where there is attention", () => {
  const edited = after(startState(SETUP), withBeginning("B", "Force", ["a"]), withDimmed("B", 0.5, "last"));
  assert.deepEqual(after(edited, withModel("B", { ...N, attention: true })).columns[1].edits.map((edit) => edit.kind), ["AttentionBlend"]);
  assert.deepEqual(after(edited, withModel("B", N)).columns[1].edits, []);
  assert.deepEqual(after(edited, withDimmed("B", 0, "last")).columns[1].edits.map((edit) => edit.kind), ["Force"]);
});

test("a model that cannot write the language brings one that it can, and a language a model that can", () => {
  const state = startState(SPEAKING);
  const hindi = after(state, withModel("B", SPEAKING.checkpoints[1]));
  assert.equal(hindi.input.language, "hi");
  assert.deepEqual(after(hindi, withLanguage("ur", SPEAKING)).columns.map((column) => column.checkpoint), ["m", "m"]);
});

test("a language that brings both columns the same question makes A greedy", () => {
  const apart = after(startState(SPEAKING), withOption("A", "strategy", "beam"), withOption("A", "beam", 5), withOption("B", "beam", 5), withModel("B", SPEAKING.checkpoints[1]));
  const searches = (state) => state.columns.map(({ checkpoint, options }) => [checkpoint, options.strategy]);
  assert.deepEqual(searches(after(apart, withLanguage("ur", SPEAKING))), [["m", "greedy"], ["m", "beam"]]);
  const alike = after(apart, withModel("B", SPEAKING.checkpoints[0]));
  assert.deepEqual(searches(after(alike, withLanguage("ur", SPEAKING))), [["m", "beam"], ["m", "beam"]], "who asks the same twice wants it so");
});

test("an example is recognised only while its question stands", () => {
  const example = { text: "x", checkpoint: "n", columns: { B: { options: { strategy: "beam", beam: 7 }, edits: [] } } };
  const shown = after(startState(SETUP), withExample(example, SETUP));
  const stands = (state) => sameQuestion(withExample(example, SETUP)(state), state);
  assert.equal(shown.columns[1].options.beam, 7);
  assert.deepEqual(shown.columns.map((column) => column.checkpoint), ["n", "n"]);
  assert.ok(stands(shown));
  for (const change of [withInput({ text: "y" }), withInput({ photo: "/p" }), withOption("B", "beam", 8), withModel("A", M), withBeginning("B", "Ban", ["a"])]) assert.ok(!stands(change(shown)));
  assert.ok(stands(after(shown, withView({ tab: "gates" }), withSelection("B", { row: 1 }))));
});
