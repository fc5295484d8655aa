// A link is the state; what it cannot say or the page cannot read is named and left out.
import assert from "node:assert/strict";
import test from "node:test";
import { foreignQuery, linkOf, readLink, writeLink } from "../../seqdemo/ui/js/link.js";
import { LINK_BACK } from "../../seqdemo/ui/js/hub.js";
import { startState, VIEW, withBeginning, withColumn, withDimmed, withEdits, withInput, withModel, withOption, withRow, withSelection, withView } from "../../seqdemo/ui/js/state.js";
import { after, SETUP, SPEAKING } from "./setup.js";

const address = (link) => ({ search: "", hash: `#${link}` });
const reads = (link, setup = SETUP) => readLink(linkOf(address(link)), setup);

const STATES = [
  [],
  [withInput({ text: "Grüße & Küsse ${1+1} 😀 #?=" })],
  [withOption("B", "beam", 9), withModel("A", SETUP.checkpoints[1])],
  [withBeginning("B", "Force", ["▁Ä", "b", "<eos>"]), withBeginning("B", "Ban", ["#", "&"])],
  [withDimmed("A", 0.5, "last")],
  [withRow("B", 1, [0.5, 0.5], { layer: 0, head: 2 }), withRow("B", 2, [1, 0])],
  [withSelection("A", { row: 17 }), withSelection("B", { output: 2 })],
  [withView({ tab: "gates", gates: "A", part: "encoder.0.backward", order: "token", step: 3 })],
  [withView({ tree: "A", pruned: true, until: 4, opened: [3, 17, 20], tour: 2 })],
  [withView({ coloured: "A", by: "probability", layer: 1, unit: 0, looks: "A", word: 5, veil: 0.35, open: ["nbest-a", "options-b"], heads: [0, 3], menu: "B2" })],
];

for (const [number, changes] of STATES.entries()) {
  test(`state ${number} is restored by its link`, () => {
    const state = after(startState(SETUP), ...changes);
    const link = writeLink(state, SETUP);
    assert.deepEqual(reads(link), { state, notes: [], absent: [] });
    assert.equal(link === "", changes.length === 0);
  });
}

test("every field of the view is written and read", () => {
  const told = STATES.flat().reduce((state, change) => change(state), startState(SETUP)).view;
  const link = new URLSearchParams(writeLink(after(startState(SETUP), withView(told)), SETUP));
  assert.deepEqual(Object.keys(VIEW).filter((name) => !link.has(name)), []);
});

test("old links open: their names stand in the query, their words are numbers", () => {
  const edits = [{ kind: "Ban", position: 0, tokens: [7] }];
  const search = `?text=gr%C3%BCn&b.edits=${encodeURIComponent(JSON.stringify(edits))}&b.pick=4.5.2&tree=A&__theme=dark`;
  const { state, notes } = readLink(linkOf({ search, hash: "" }), SETUP);
  assert.deepEqual(notes, []);
  assert.equal(state.input.text, "grün");
  assert.deepEqual(state.columns[1].edits, edits);
  assert.deepEqual(state.columns[1].selection, { tokens: [4, 5, 2] });
  assert.equal(state.view.tree, "A");
  assert.equal(foreignQuery(search), "__theme=dark");
});

test("a hostile link changes nothing it must not, and every part that was left out is named", () => {
  const { state, notes, absent } = reads("a.beam=1e9&b.beam=2.5&b.strategy=rm&b.checkpoint=evil&a.edits={{x}}&b.edits=[1,null]&b.pick=1;2&tab=text&opened=x&zzz=1");
  const start = startState(SETUP);
  assert.equal(state.columns[0].options.beam, 100);
  assert.deepEqual(state.columns[1], start.columns[1]);
  assert.deepEqual(state.view, start.view);
  assert.deepEqual(absent, []); // none of it is the name of a model of the Hub
  const said = notes.join(" ");
  for (const name of ["a.beam=1e9” in this link is outside 1 to 100, so 100 is used", "b.beam=2.5", "b.strategy=rm", "“evil”", "a.edits={{x}}", "b.edits=[1,null]", "b.pick=1;2", "tab=text", "opened=x", "zzz"]) assert.ok(said.includes(name), name);
});

for (const edits of ['{"kind":"Force"}', '[{"kind":"Force","position":0,"pieces":[]}]', '[{"kind":"AttentionBlend","factor":2,"towards":"last"}]', '[{"kind":"Rm"}]', "[[]]", '[{"kind":"Ban","tokens":{"a":1}}]', '[{"kind":"AttentionBlend"}]']) {
  test(`edits that are none are left out: ${edits}`, () => {
    const { state, notes } = reads(`b.edits=${encodeURIComponent(edits)}`);
    assert.deepEqual(state.columns[1].edits, []);
    assert.equal(notes.length, 1);
  });
}

test("where the weights have changed, the page says so and names the edits it drops", () => {
  const edits = [{ kind: "Force", position: 0, pieces: ["▁I"] }, { kind: "Ban", position: 0, tokens: [7] }, { kind: "ClampGate", part: "decoder", gate: "forget", value: 0 }];
  const link = `b.edits=${encodeURIComponent(JSON.stringify(edits))}&b.row=3&b.revision=r0&a.row=4&a.revision=r1`;
  const { state, notes } = reads(link);
  assert.deepEqual(state.columns[1].edits, [edits[0]]);
  assert.equal(state.columns[1].selection, null);
  assert.deepEqual(state.columns[0].selection, { row: 4 });
  assert.match(notes[0], /weights of m have changed/);
  assert.match(notes[1], /a forbidden beginning; the forget gate held at 0/);
});

test("a link with a model of the Hub says which one is absent", () => {
  const name = `user/model@${"a".repeat(40)}`;
  const { state, absent } = reads(`a.checkpoint=${name}&b.checkpoint=${name}`);
  assert.deepEqual(absent, [name]);
  assert.deepEqual(state.columns, startState(SETUP).columns);
});

test("a language is read only where the page has it", () => {
  assert.equal(reads("language=hi", SPEAKING).state.input.language, "hi");
  assert.equal(reads("language=xx", SPEAKING).notes.length, 1);
});

test("a model that cannot write the language of a link gives way to one that can, and that is said", () => {
  const { state, notes } = reads("language=ur&b.checkpoint=n&b.row=3", SPEAKING);
  assert.deepEqual(state.columns.map(({ checkpoint, selection }) => [checkpoint, selection]), [["m", null], ["m", null]]);
  assert.deepEqual(notes, ["“n” cannot write Urdu, so column B uses “m”."]);
});

test("a link made with a photograph of one's own says that it is not in it, and leaves out what is about its places", () => {
  const row = { kind: "AttentionRow", position: 0, weights: [1] };
  const dim = { kind: "AttentionBlend", factor: 0.5, towards: "last" };
  const mine = after(startState(SETUP), withInput({ photo: "/tmp/mine.png" }), withEdits("B", () => [row, dim]));
  const { state, notes } = reads(writeLink(mine, SETUP));
  assert.deepEqual([state.input, state.columns[1].edits], [startState(SETUP).input, [dim]]);
  assert.deepEqual([notes.length, notes[0].includes("own photograph")], [1, true]);
});

test("a text longer than the page takes loses its end, and that is said", () => {
  const { state, notes } = reads(`text=${"😀".repeat(1001)}`);
  assert.equal([...state.input.text].length, 1000);
  assert.match(notes[0], /longer than 1,000 characters/);
});

test("the Models page leads back to pages of this app alone", () => {
  for (const link of ["./?text=a:b//c", "language-model?a=1", "caption?x=%23", "./#text=a", "caption#a.row=1"]) assert.ok(LINK_BACK.test(link), link);
  for (const link of ["https://x.y/?a", "//x.y?a", "javascript:alert(1)?", "/x?a", "?a", "", "models", "../x?a", "data:,x?", "//x.y#a"]) assert.ok(!LINK_BACK.test(link), link);
});

test("a link of a column asks for nothing of another one", () => {
  const state = after(startState(SETUP), withColumn("A", () => ({ options: { strategy: "beam", beam: 7 } })));
  assert.equal(new URLSearchParams(writeLink(state, SETUP)).get("a.beam"), "7");
  assert.equal(new URLSearchParams(writeLink(state, SETUP)).get("b.beam"), null);
});
