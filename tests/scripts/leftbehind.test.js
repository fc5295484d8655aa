// Another input takes away the edits that are about places of the old one, and the page says so.
import assert from "node:assert/strict";
import test from "node:test";
import { Door } from "../../seqdemo/ui/js/door.js";
import { editName, editWords } from "../../seqdemo/ui/js/editwords.js";
import { startState, withClamp, withDimmed, withEdits, withExample, withInput, withModel, withRequired, withRow, withWanted } from "../../seqdemo/ui/js/state.js";
import { after, SETUP } from "./setup.js";

class Quiet extends Door {
  save() {}
  follows() {}
}

const place = { part: "encoder", layer: 0, direction: "forward", gate: "forget", units: null, positions: null };
const kinds = (state) => state.columns[1].edits.map((edit) => edit.kind + (edit.positions ? " at steps" : ""));
const MANY = after(startState(SETUP), withRow("B", 2, [1]), withRequired("B", "red"), withDimmed("B", 0.5, "last"), withClamp("B", place, 0), withClamp("B", { ...place, positions: [0] }, 0));

test("a row of attention and a gate held at places of the input go with it", () => {
  const rest = ["Require", "AttentionBlend", "ClampGate"];
  for (const change of [withInput({ text: "b" }), withInput({ photo: "/p" }), withExample({ text: "c" }, SETUP)]) assert.deepEqual(kinds(change(MANY)), rest);
});

test("they stay where the input stays, and an example keeps its own", () => {
  for (const change of [withInput({ language: "hi" }), withInput({ text: "a" }), withWanted("x")]) assert.deepEqual(kinds(change(MANY)), kinds(MANY));
  const row = { kind: "AttentionRow", position: 0, weights: [1] };
  assert.deepEqual(withExample({ text: "c", columns: { B: { options: {}, edits: [row] } } }, SETUP)(MANY).columns[1].edits, [row]);
});

test("what is typed names in its one step what it took away", () => {
  const door = new Quiet(SETUP);
  door.update(withRow("B", 2, [1]), "B: a row");
  for (const text of ["b", "be"]) door.update(withInput({ text }), `Typed “${text}”`, { kind: "text" });
  const note = "Left out of column B, because it belongs to the text before: the attention at step 3. Undo brings it back.";
  assert.deepEqual(door.history.notes, [{ side: "B", text: note }]);
  assert.deepEqual(door.history.steps.map((step) => step.words), ["The page as it opened", "B: a row", "Typed “be”; left out of B: the attention at step 3"]);
  door.go(-1);
  assert.deepEqual([door.history.notes, door.state.columns[1].edits.length], [[], 1]);
});

test("another photograph and another model name what they cannot take; a page begun anew names nothing", () => {
  const door = new Quiet(SETUP);
  const put = (edits) => door.update(withEdits("B", () => edits), "edits");
  const edits = MANY.columns[1].edits;
  put(edits);
  door.update(withInput({ photo: "/p" }), "A photograph");
  assert.match(door.history.notes[0].text, /^Left out of column B, because they belong to the photograph before: the attention at step 3; the forget gate held at 0/);
  put(edits);
  door.update(withModel("B", SETUP.checkpoints[1]), "B: model n");
  assert.match(door.history.notes[0].text, /^Left out of column B, because they belong to the model before: the attention at step 3; the required word “red”; attention dimmed by 50 %; /);
  put(edits);
  door.update(() => startState(SETUP), "Reset the page", { anew: true });
  assert.deepEqual(door.history.notes, []);
});

test("an edit that the server has not told has words of its own", () => {
  const force = { kind: "Force", position: 0, pieces: ["▁We"] };
  assert.deepEqual([force, { ...force, kind: "Ban", position: 2 }, { kind: "Require", word: "red" }].map((edit) => editWords(edit, "subwords")),
    ["starts with “We”", "never writes “We” from piece 3 on", "must say “red” somewhere"]);
  assert.equal(editName({ kind: "AttentionRow", position: 2, layer: 0, head: 1 }), "the attention of head 2 in layer 1 at step 3");
  for (const kind of ["Force", "Ban", "Require", "AttentionRow", "AttentionBlend", "AttentionDraw", "ClampGate"]) {
    for (const words of [editName({ kind }), editWords({ kind }, "subwords")]) assert.ok(words && !words.includes(kind), kind);
  }
});
