// A step names what else it changes: edits that are lost with their model, and a search that changes with it.
import assert from "node:assert/strict";
import test from "node:test";
import { besides } from "../../seqdemo/ui/js/besides.js";
import { editName } from "../../seqdemo/ui/js/editwords.js";
import { History } from "../../seqdemo/ui/js/history.js";
import { searchBefore } from "../../seqdemo/ui/js/panels.js";
import { startState, swapped, withBeginning, withClamp, withColumn, withDimmed, withInput, withLanguage, withModel, withModelAndSearch, withOption, withRow } from "../../seqdemo/ui/js/state.js";
import { after, SETUP, SPEAKING } from "./setup.js";

const [M, N] = SETUP.checkpoints;
const told = (before, ...changes) => besides(before, after(before, ...changes), SETUP);
const start = startState(SETUP);

test("edits that leave with their model are named", () => {
  const edited = after(start, withRow("B", 2, [1]), withDimmed("B", 0.5, "last"));
  assert.deepEqual(told(edited, withModel("B", { ...N, attention: true })), {
    words: "; left out of B: the attention at step 3",
    notes: [{ side: "B", text: "Left out of column B, because it belongs to the model before: the attention at step 3. Undo brings it back." }],
  });
  const both = told(edited, withModel("B", N));
  assert.equal(both.words, "; left out of B: the attention at step 3; attention dimmed by 50 %");
  assert.match(both.notes[0].text, /they belong .* Undo brings them back/);
});

test("a step that leaves nothing out says no more than its words", () => {
  const edited = after(start, withBeginning("B", "Force", ["▁a"]));
  for (const change of [swapped, withInput({ text: "b" }), withOption("B", "strategy", "greedy"), withBeginning("B", "Ban", ["▁a"])]) {
    assert.deepEqual(told(edited, change), { words: "", notes: [] });
  }
});

test("a search that changes along with the model or the language is named", () => {
  const greedy = withColumn("B", () => ({ options: start.columns[0].options }));
  assert.deepEqual(told(start, withModel("B", N), greedy), { words: "; B: greedy instead of beam 5", notes: [] });
  const apart = after(startState(SPEAKING), withOption("A", "strategy", "beam"), withModel("B", SPEAKING.checkpoints[1]));
  assert.equal(besides(apart, withLanguage("ur", SPEAKING)(apart), SPEAKING).words, "; A: greedy instead of beam 5");
});

test("the way back to a model restores its search, unless another one was chosen since", () => {
  const off = after(start, withModel("B", N), withColumn("B", () => ({ options: start.columns[0].options })));
  const history = new History(start);
  history.record(off, "off");
  const back = withModelAndSearch("B", M, searchBefore(history, "B", "m"))(off);
  assert.deepEqual([back.columns[1].checkpoint, back.columns[1].options], ["m", start.columns[1].options]);
  history.record(withOption("B", "beam", 7)(off), "another beam");
  assert.equal(searchBefore(history, "B", "m"), null);
  assert.equal(searchBefore(new History(off), "B", "m"), null);
});

test("every kind of edit has a name", () => {
  const clamp = { part: "decoder", layer: 0, direction: "forward", gate: "cell", units: [129], positions: null };
  const edits = after(start, withBeginning("B", "Force", ["▁a", "▁b"]), withBeginning("B", "Ban", ["▁c"]), withClamp("B", clamp, -3.171), withClamp("B", { ...clamp, gate: "forget", units: null }, 1)).columns[1].edits;
  assert.deepEqual([...edits, { kind: "Require", word: "red" }, { kind: "Force", position: 0, tokens: [1] }].map((edit) => editName(edit)), [
    "the forced “a b”", "the forbidden “c”", "unit 129 of the cell held at −3.171", "the forget gate held at 1", "the required word “red”", "a forced beginning"]);
});
