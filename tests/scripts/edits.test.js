// What a person does to words stacks up, each wish can be taken back alone, and a later wish wins over one that contradicts it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { badge, ownPrice } from "../../seqdemo/ui/js/badges.js";
import { startState, withBeginning, withRequired } from "../../seqdemo/ui/js/state.js";
import { actions, besideBest, fitting, taken } from "../../seqdemo/figures/js/wordmenu.js";
import { SETUP, after } from "./setup.js";

const told = (state) => state.columns[1].edits.map(({ kind, position, pieces, word }) => `${kind} ${position ?? ""} ${word ?? pieces.join("")}`);
const force = (...pieces) => withBeginning("B", "Force", pieces);
const ban = (...pieces) => withBeginning("B", "Ban", pieces);

test("a longer beginning adds only what is not forced yet", () => {
  const both = after(startState(SETUP), force("a"), force("a", "b", "c"));
  assert.deepEqual(told(both), ["Force 0 a", "Force 1 bc"]);
  assert.deepEqual(told(after(both, force("a", "b"))), ["Force 0 a", "Force 1 bc"]);
  assert.deepEqual(told(after(both, force("a", "x"))), ["Force 0 a", "Force 1 x"]);
  assert.deepEqual(told(after(both, force("z"))), ["Force 1 bc", "Force 0 z"]);
});

test("what is taken is no longer forbidden, and what is forbidden no longer taken", () => {
  assert.deepEqual(told(after(startState(SETUP), ban("a", "b"), ban("c"), force("a", "b", "d"))), ["Ban 0 c", "Force 0 abd"]);
  assert.deepEqual(told(after(startState(SETUP), force("a"), force("a", "b"), ban("a", "b"))), ["Force 0 a", "Ban 0 ab"]);
  assert.deepEqual(told(after(startState(SETUP), force("a"), ban("b"))), ["Force 0 a", "Ban 0 b"]);
});

test("a word that must be said is asked for once", () => {
  assert.deepEqual(told(after(startState(SETUP), withRequired("B", "red"), force("a"), withRequired("B", "red"))), ["Force 0 a", "Require  red"]);
});

test("a badge is what the server says of a word, and what a row costs", () => {
  const prices = [{ edit: 0, kind: "tokens", change: 1 }, { edit: 1, kind: "state", change: -Math.log(3) }, { edit: 2, kind: "state", change: 0.001 }];
  const column = { badges: [{ says: "likelier than greedy's" }, null, null] };
  const bench = { setup: SETUP, columns: { B: column }, priceOf: (_, i) => prices[i] };
  assert.deepEqual([0, 1, 2, 3].map((i) => badge(bench, "B", i)), [
    "likelier than greedy's", "the edited model finds this translation 3.0× less likely than the untouched one does", "the edited model finds this translation as likely as the untouched one does", ""]);
});

test("the price of an edit says what its number is, with its sign", () => {
  const saved = globalThis.document;
  globalThis.document = /** @type {any} */ ({ createElement: () => ({ text: "", setAttribute: () => {}, addEventListener: () => {}, append(text) { this.text += text; } }) });
  assert.deepEqual([9.2, -0.42, 0.001].map((change) => /** @type {any} */ (ownPrice(change)).text), ["log p +9.20", "log p −0.42", "log p 0.00"]);
  assert.equal(ownPrice(undefined), null);
  globalThis.document = saved;
});

test("what is typed picks among the likely words", () => {
  const words = [{ text: "Like", pieces: ["▁Like"], logp: -1 }, { text: "love", pieces: ["▁love"], logp: -2 }, { text: "it", pieces: ["▁it"], logp: -3 }];
  assert.deepEqual(fitting(words, " l").map((item) => item.text), ["Like", "love"]);
  assert.deepEqual(fitting(words, "x"), []);
  assert.equal(besideBest(-1, -1), "the likeliest here");
  assert.equal(besideBest(-1 - Math.log(2), -1), "2.0× less likely than the likeliest");
});

test("the buttons of a word speak of what is typed, and offer nothing that the model cannot say", () => {
  /** @type {any} */
  const broke = { word: "broke", ended: false };
  const fit = [{ text: "splits", pieces: ["▁splits"], logp: -1 }, { text: "split", pieces: ["▁split"], logp: -2 }];
  const told = (payload, words, typed) => actions(payload, words, typed).map(([name, event]) => `${event}: ${name}`);
  assert.deepEqual(told(broke, fit, ""), ["take: Take this", "never: Never this", "must: Must be said"]);
  assert.deepEqual(told(broke, fit, "split "), ["other: Take “split”", "never: Never “broke”", "must: “split” must be said"]);
  assert.deepEqual(actions(broke, fit, "split")[0][3], fit[1]);
  assert.equal(taken(fit, "spl"), fit[0]);
  assert.deepEqual(told({ ...broke, unsayable: true }, [], "zzz"), ["never: Never “broke”"]);
  assert.deepEqual(told({ ...broke, ended: true }, [], ""), ["take: Take this", "never: Never this"]);
});
