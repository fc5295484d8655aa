// Pieces as a person reads them: whole graphemes, marked spaces, nothing invisible, nothing that turns the line around.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/u;
const PUNCTUATION = /^[\p{P}\p{S}]+$/u;
const MARK = /^\p{M}/u;
const SPECIAL_NAMES = { "<eos>": "<eos>", "</s>": "<eos>", "<unk>": "<unknown>", "<s>": "<bos>" };

function visibleCharacter(character) {
  if (character === "\n") return "⏎";
  if (character === "\t") return "⇥";
  if (character === "\u200c" || character === "\u200d") return character;
  if (!HIDDEN.test(character)) return character;
  const code = character.codePointAt(0);
  return code < 32 ? String.fromCodePoint(0x2400 + code) : `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
}

function visible(text) {
  return [...text].map(visibleCharacter).join("");
}

function isEnd(piece) {
  return piece === "<eos>" || piece === "</s>";
}

// How one piece is named on its own: in a tree, an axis, a table.
function pieceName(piece, kind) {
  if (piece in SPECIAL_NAMES) return SPECIAL_NAMES[piece];
  if (kind === "subwords") {
    if (piece === "▁") return "␣";
    return piece.startsWith("▁") ? visible(piece.slice(1)) : PUNCTUATION.test(piece) ? visible(piece) : "‿" + visible(piece);
  }
  if (piece === " ") return "␣";
  return MARK.test(piece) ? "◌" + visible(piece) : visible(piece);
}

// Pieces -> atoms {text, pieces: [indices], space}: what may be marked without tearing a grapheme apart.
function atoms(pieces, kind) {
  const kept = pieces.map((piece, index) => ({ piece, index })).filter((item) => !isEnd(item.piece) && item.piece !== "<s>");
  if (kind !== "characters") {
    return kept.map(({ piece, index }, i) => {
      const starts = kind === "words" ? !/^[.,!?;:%)\]’']/.test(piece) : piece.startsWith("▁");
      const text = kind === "subwords" && piece.startsWith("▁") ? piece.slice(1) : piece;
      return { text: visible(SPECIAL_NAMES[text] || text), pieces: [index], space: starts && i > 0 };
    });
  }
  const text = kept.map((item) => item.piece).join("");
  const owners = kept.flatMap((item) => Array(item.piece.length).fill(item.index));
  return graphemes(text).map(({ segment, index }) => {
    const own = [...new Set(owners.slice(index, index + segment.length))];
    return { text: visible(segment), pieces: own, space: false };
  });
}

function graphemes(text) {
  if (typeof Intl !== "undefined" && Intl.Segmenter) {
    return [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)];
  }
  let index = 0;
  return [...text].map((segment) => {
    index += segment.length;
    return { segment, index: index - segment.length };
  });
}

function plainText(pieces, kind) {
  return atoms(pieces, kind).map((atom) => (atom.space ? " " : "") + atom.text).join("");
}

// Atoms -> units of comparison: words and punctuation marks, or graphemes where a piece is a character.
function units(pieces, kind) {
  const parts = atoms(pieces, kind);
  if (kind === "characters") return parts.map((atom) => ({ text: atom.text, atoms: [atom] }));
  const words = [];
  for (const atom of parts) {
    if (!words.length || atom.space || PUNCTUATION.test(atom.text)) words.push({ text: "", atoms: [] });
    const word = words[words.length - 1];
    word.text += atom.text;
    word.atoms.push(atom);
  }
  return words;
}

// Which units of `left` and of `right` are not in their longest common subsequence.
function differing(left, right) {
  const n = left.length;
  const m = right.length;
  const best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      best[i][j] = left[i] === right[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  const a = new Set([...left.keys()]);
  const b = new Set([...right.keys()]);
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (left[i] === right[j]) {
      a.delete(i++);
      b.delete(j++);
    } else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return [a, b];
}

function isRightToLeft(text) {
  const strong = text.match(/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]|[A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u0900-\u0dff]/u);
  return Boolean(strong) && /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u.test(strong[0]);
}

// The number of the word (or letter or sign, one step each) a target position lies in, counted from 1.
function unitNumber(pieces, position, kind) {
  if (kind === "characters") return position + 1;
  const list = units(pieces, kind);
  const found = list.findIndex((unit) => unit.atoms.some((atom) => atom.pieces.some((index) => index >= position)));
  return found < 0 ? list.length + 1 : found + 1;
}
