// Pieces as a person reads them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { atoms, isEnd, pieceName, plainText, quoted, visible } from "../../seqdemo/figures/js/text.js";
import { editName, editWords } from "../../seqdemo/ui/js/editwords.js";
import { exampleNote } from "../../seqdemo/ui/js/examples.js";

test("subwords read as the sentence they are pieces of", () => {
  const pieces = ["▁Das", "▁ge", "fällt", "▁mir", ".", "<eos>"];
  assert.equal(plainText(pieces, "subwords"), "Das gefällt mir.");
  assert.deepEqual(atoms(pieces, "subwords").map((atom) => atom.pieces), [[0], [1], [2], [3], [4]]);
});

test("characters that make one grapheme stay in one atom", () => {
  const pieces = [..."नमस्ते"];
  const found = atoms(pieces, "characters");
  assert.deepEqual(found.flatMap((atom) => atom.pieces), pieces.map((_, index) => index));
  assert.ok(found.length < pieces.length);
});

test("a piece on its own has a name that can be seen", () => {
  assert.deepEqual(["▁", "▁Das", "fällt", "."].map((piece) => pieceName(piece, "subwords")), ["␣", "Das", "‿fällt", "."]);
  assert.equal(pieceName(" ", "characters"), "␣");
  assert.ok(isEnd("</s>") && pieceName("</s>", "subwords") === "<eos>");
});

test("nothing invisible is left, and nothing that turns the line around", () => {
  assert.equal(visible("a\u202eb\u0000"), "a[U+202E]b␀");
});

test("a sentence keeps its order around letters that run from right to left", () => {
  assert.equal(quoted("broke"), "“broke”");
  assert.equal(quoted("\u06bb"), "“\u2068\u06bb\u2069”");
  assert.equal(editWords({ kind: "Force", pieces: ["\u06bb"], position: 0 }, "characters"), `starts with ${quoted("\u06bb")}`);
  assert.equal(editName({ kind: "Ban", pieces: ["\u06bb"], position: 0 }, "characters"), `the forbidden ${quoted("\u06bb")}`);
  assert.equal(exampleNote({ references: ["\u06bb", "\u0646"] }), `A person wrote: ${quoted("\u06bb")}; another: ${quoted("\u0646")}.`);
});
