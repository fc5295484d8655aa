// Pieces as a person reads them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { atoms, isEnd, pieceName, plainText, visible } from "../../seqdemo/figures/js/text.js";

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
