// The headline compares what a reader reads, and counts words as a reader counts them.
import assert from "node:assert/strict";
import test from "node:test";
import { parting, unitNumber } from "../../seqdemo/figures/js/text.js";
import { times } from "../../seqdemo/figures/js/core.js";
import { Bench } from "../../seqdemo/ui/js/bench.js";
import { exampleNote, inputNote } from "../../seqdemo/ui/js/examples.js";
import { finding, priceSentence, walk } from "../../seqdemo/ui/js/finding.js";

const NO_TREE = { children: new Map(), token: [], fate: [], missed: [] };

function side(pieces, tokens, more = {}) {
  const logps = tokens.map((_, i) => -0.5 - i / 10);
  const total = logps.reduce((a, b) => a + b, 0);
  return { hypothesis: { pieces, tokens, logps, total, score: total }, options: { strategy: "beam", beam: 5 }, checkpoint: "m", tree: NO_TREE, kind: "characters", edited: false, ...more };
}

const said = (a, b, task = "transliterate") => finding(a, b, task).map((part) => (typeof part === "string" ? part : part.text)).join("");

test("two vocabularies number the same letters differently: the outputs are the same", () => {
  const word = [..."विद्यालय", "<eos>"];
  const a = side(word, word.map((_, i) => 40 + i));
  const b = side(word, word.map((_, i) => 300 + 7 * i), { checkpoint: "n" });
  assert.equal(said(a, b), "Two models, one spelling: A and B agree on every letter.");
});

test("the same numbers in two vocabularies are other letters", () => {
  const a = side([..."दिल", "<eos>"], [4, 5, 6, 2]);
  const b = side([..."دِل", "<eos>"], [4, 5, 6, 2], { checkpoint: "n" });
  assert.match(said(a, b), /part at letter 1, where A writes “द” and B writes “د”/);
});

test("one text in two cuts is one text", () => {
  const a = side(["▁ba", "ck", "<eos>"], [4, 5, 2], { kind: "subwords" });
  const b = side(["▁back", "<eos>"], [9, 2], { kind: "subwords" });
  assert.match(said(a, b, "translate"), /^A and B read the same, but the translation is put together from other pieces/);
});

test("one text in two cuts parts where the texts part", () => {
  assert.deepEqual(parting(["▁ba", "ck", "▁home", "<eos>"], ["▁back", "▁now", "<eos>"], "subwords"), [2, 1]);
  assert.deepEqual(parting(["▁a", "<eos>"], ["▁a", "▁b", "<eos>"], "subwords"), [1, 1]);
  assert.deepEqual(parting(["▁a", "▁b", "<eos>"], ["▁a", "▁b", "▁c"], "subwords"), [2, 2]);
  assert.equal(parting(["▁a", "<eos>"], ["▁a", "<eos>"], "subwords"), null);
});

test("a piece of a word is told with its word", () => {
  const a = side(["▁We", "'", "ve", "▁done", "<eos>"], [4, 5, 6, 7, 2], { kind: "subwords" });
  const b = side(["▁We", "▁broke", "<eos>"], [4, 8, 2], { kind: "subwords" });
  assert.match(said(a, b, "translate"), /“'” of “We've” \(0\.\d+\).* “broke” \(0\.\d+\)/);
});

test("words are counted by the spaces, as the notes of the examples count them", () => {
  const pieces = ["▁We", "'", "ve", "▁done", "▁a", "▁s", "nake", ".", "<eos>"];
  assert.deepEqual(pieces.map((_, at) => unitNumber(pieces, at, "subwords")), [1, 1, 1, 2, 3, 4, 4, 4, 4]);
  assert.deepEqual(["a", "dog", ".", "<eos>"].map((_, at, all) => unitNumber(all, at, "words")), [1, 2, 2, 2]);
});

test("ratios are rounded as in the notes of the examples", () => {
  assert.deepEqual([1.02, 1.96, 2.04, 10.84, 19.4, 20.4, 293.2, 9_998, 2.2e31].map(times), ["1.02×", "1.96×", "2.0×", "10.8×", "19.4×", "20×", "293 times", "9,998 times", "10³¹ times"]);
});

test("a path is found where draws share a beginning", () => {
  const tree = { children: new Map([[-1, [0, 1]], [0, [2]], [1, [3]]]), token: [7, 7, 8, 9] };
  assert.deepEqual(walk(tree, [7, 8]), [0, 2]);
  assert.deepEqual(walk(tree, [7, 9]), [1, 3]);
  assert.deepEqual(walk(tree, [7, 5]).length, 1);
});

test("of what was not drawn nobody says that it missed", async () => {
  const { finding, strategyName } = await import("../../seqdemo/ui/js/finding.js");
  const tree = (missed) => ({ children: new Map([[-1, [0]]]), token: [5], fate: [1], missed: [missed] });
  const side = (strategy, tokens, missed) => ({
    hypothesis: { tokens, pieces: tokens.map((token) => `▁${token}`), logps: tokens.map(() => -1), total: -tokens.length, score: 0, finished: true, prefix: true },
    options: { strategy, beam: 4, groups: 2 }, checkpoint: "m", tree: tree(missed), kind: "subwords", edited: false,
  });
  const told = (missed) => finding(side("greedy", [7], 1), side("sample", [5], missed), "translate").map((part) => part.text || part).join("");
  assert.match(told(0.5), /it missed by 0\.50/);
  assert.doesNotMatch(told(0), /missed/);
  assert.deepEqual(["beam", "stochastic"].map((strategy) => strategyName({ strategy, beam: 4, groups: 2 })), ["beam 4 in 2 groups", "stochastic beam 4"]);
});

test("the note of an example leaves to the headline what the headline tells", () => {
  const shows = "Beam 5 finds an output that is 24 times as likely. Greedy lost it at word 2.";
  const example = { title: "Greedy search differs from beam search", shows, references: ["He left."] };
  assert.equal(exampleNote({ ...example, kind: "greedy-beam" }), "Greedy search differs from beam search. A person wrote: “He left.”");
  assert.equal(exampleNote({ ...example, kind: "larger-beam" }), `${shows} A person wrote: “He left.”`);
});

test("what people wrote stays beside an input whatever the columns make of it", () => {
  const example = { shows: "Greedy differs.", references: ["He left."], credit: "" };
  assert.equal(inputNote(example, [example]), "Greedy differs. A person wrote: “He left.”");
  assert.equal(inputNote(undefined, [example]), "A person wrote: “He left.”");
  assert.equal(inputNote(undefined, []), "");
});

const WORDS = { kind: "subwords", checkpoint: "m" };
const own = (pieces, tokens) => ({ hypothesis: side(pieces, tokens).hypothesis, tree: NO_TREE });
const GREEDY = { strategy: "greedy" };
const HAD = [["▁We", "▁had", "<eos>"], [4, 5, 2]];
const BROKE = [["▁We", "▁broke", "<eos>"], [4, 8, 2]];
const LEFT = [["▁We", "▁left", "<eos>"], [4, 9, 2]];
const edited = (written, more = {}) => side(...written, { ...WORDS, edited: true, ...more });
const searched = (written, more = {}) => side(...written, { ...WORDS, options: GREEDY, ...more });

test("an edit that leaves the text is not the cause of a difference that two searches make", () => {
  const told = said(searched(HAD), edited(BROKE, { own: own(...BROKE), prices: [{ kind: "state", change: Math.log(3) }] }), "translate");
  assert.match(told, /part at word 2, “had” \(.*\) in A and “broke”/);
  assert.match(told, /The edit leaves B's translation as it was, but the edited model finds it 3\.0× likelier than the untouched one does\.$/);
  assert.doesNotMatch(told, /Under the edit/);
});

test("what an edit changes is told against what B wrote before it", () => {
  const told = said(searched(HAD), edited(LEFT, { own: own(...BROKE) }), "translate");
  assert.match(told, /^Under the edit, B parts at word 2 from what it writes without it: “left” \(.*\) instead of “broke”/);
  assert.match(told, /A's translation differs from that too\.$/);
});

test("where B wrote the same as A before, the edit is the only cause", () => {
  assert.match(said(searched(HAD), edited(LEFT, { own: own(...HAD) }), "translate"), /^Under the edit, B parts from A at word 2: “left” \(.*\) instead of “had”.* See the cost in column B\.$/);
});

test("what an edited model writes is judged by the untouched one", () => {
  const without = own(...HAD);
  const state = (before) => [{ kind: "state", before: without.hypothesis.total + before, after: -1, change: 20 }];
  const told = (before, task = "translate") => said(searched(HAD), edited(LEFT, { own: without, prices: state(before) }), task);
  assert.match(told(-Math.log(50)), /The untouched model finds B's output 50× less likely than what it writes itself\.$/);
  assert.doesNotMatch(told(-9), /cost|gain/i);
  assert.match(told(-9, "complete"), /Column B says how likely the two models find it\.$/);
  const words = (change) => said(searched(HAD), edited(LEFT, { own: without, prices: [{ kind: "tokens", change }] }), "translate");
  assert.match(words(2), /See the gain in column B/);
  assert.match(words(-2), /See the cost in column B/);
});

test("a text that stays under an edit may still become less likely", () => {
  const price = [{ kind: "state", change: -Math.log(1.71) }];
  const told = (more) => said(searched(HAD), edited(HAD, more), "transliterate");
  assert.equal(told({ own: own(...HAD), prices: price }), "The spelling stays: B writes the same as A under the edit, but the edited model finds it 1.71× less likely than the untouched one does.");
  assert.equal(told({ own: own(...HAD), prices: [{ kind: "state", change: 0.001 }] }), "The edit changes nothing here: B writes the same spelling as A.");
  assert.equal(told({ own: own(...BROKE) }), "Under the edit, B writes the same spelling as A; without it, B writes another.");
});

test("of a draw only that is said which holds for it", () => {
  const drawn = (text, logp) => {
    const pieces = [...text];
    const logps = pieces.map((_, i) => (i % 4 ? -0.1 : logp));
    return side(pieces, pieces.map((letter) => letter.codePointAt(0)), { hypothesis: { pieces, tokens: pieces.map((letter) => letter.codePointAt(0)), logps, total: -1 }, options: { strategy: "sample" } });
  };
  const circling = "at the same time the same time";
  assert.match(said(drawn(circling, -0.1), drawn("a quiet evening in town, and rain", -0.1), "complete"), /one of B 0\.97\. A repeats itself, B does not\.$/);
  assert.match(said(drawn(circling, -0.1), drawn("one day the same time the same time", -0.1), "complete"), /one of B 0\.97\.$/);
  assert.match(said(drawn("a", -0.1), drawn("by the hour", -3), "complete"), /one of B [\d.]+: the draw took 3 of its 11 letters at a probability below 0\.1\.$/);
});

test("the likelier one of two outputs is named with how much likelier it is", () => {
  const b = side(...BROKE, { ...WORDS });
  b.hypothesis = { ...b.hypothesis, total: b.hypothesis.total - Math.log(2661) };
  assert.match(said(searched(HAD), b, "translate"), /^Greedy's translation is 2,661 times likelier: they part at word 2/);
});

test("a place that is another word in A than in B is named for both", () => {
  const a = searched([["▁We", "'", "ve", "<eos>"], [4, 5, 6, 2]]);
  assert.match(said(a, side(...BROKE, WORDS), "translate"), /at word 1 of A \(word 2 of B\)/);
  assert.doesNotMatch(said(searched(HAD), side(...BROKE, WORDS), "translate"), / of A/);
});

test("the brackets of an unknown piece belong to its name", () => {
  const a = searched([["▁", "<unk>", "x", "<unk>", ",", "<eos>"], [3, 1, 5, 1, 6, 2]]);
  const b = side(["▁", "<unk>", "y", "<eos>"], [3, 1, 7, 2], WORDS);
  assert.match(said(a, b, "translate"), /of “<unknown>x<unknown>”/);
});

test("a price says who judges what, and a gain is no price", () => {
  const price = { kind: "state", before: -2, after: -2 - Math.log(3) };
  assert.match(priceSentence(price, "transliterate"), /^Price: the edited model finds this spelling 3\.0× less likely than the untouched model does \(/);
  assert.match(priceSentence({ ...price, after: -1 }, "transliterate"), /^The edited model, which wrote this spelling, finds it 2\.7× likelier than the untouched model does \(.*\); that makes it no better\.$/);
  assert.match(priceSentence({ ...price, after: -2 }, "translate"), /^Price: the edited model finds this translation as likely as the untouched model does/);
  assert.match(priceSentence({ ...price, kind: "tokens" }, "translate"), /the untouched model finds this translation 3\.0× less likely than its own/);
  assert.match(priceSentence(price, "complete", false, true), /finds this text, with what you typed, 3\.0× less likely/);
});

test("words that are asked for leave the model untouched", () => {
  const { priceText } = Bench.prototype;
  const told = (...kinds) => priceText.call({ setup: { task: "translate" } }, { spec: { edits: kinds.map((kind) => ({ kind })) }, prices: [{ kind: "tokens", before: -4, after: -9 }] });
  assert.match(told("Require"), /the untouched model finds .* than its own/);
  assert.match(told("Require", "AttentionRow"), /the edited model finds .* than what it writes without the words/);
});
