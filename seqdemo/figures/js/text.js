// Pieces as readable text: whole graphemes, marked spaces, no invisible characters, no change of the text's direction.
import SIGNS from "./signs.json" with { type: "json" };

const PUNCTUATION = /^[\p{P}\p{S}]+$/u;
const MARK = /^\p{M}/u;

const KEPT_SIGNS = new Set(SIGNS.kept); // they shape Indic and Arabic letters

function visibleCharacter(character) {
  const code = character.codePointAt(0);
  if (String(code) in SIGNS.pictures) return SIGNS.pictures[String(code)];
  if (character === " " || KEPT_SIGNS.has(code) || !SIGNS.hidden.some(([low, high]) => low <= code && code <= high)) return character;
  return code < 32 ? String.fromCodePoint(0x2400 + code) : `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
}

export function visible(text) {
  return [...text].map(visibleCharacter).join("");
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;

/** A text for a sentence: letters that run from right to left leave the order of what stands around them alone. @param {string} text */
export function isolated(text) {
  return RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text;
}

/** A text in quotation marks, for a sentence. @param {string} text */
export function quoted(text) {
  return `“${isolated(text)}”`;
}

export function isEnd(piece) {
  return piece === "<eos>" || piece === "</s>";
}

// A lone combining sign stands on a dotted circle.
function carried(piece) {
  return (MARK.test(piece) ? "◌" : "") + visible(piece);
}

// The label of a single piece in a tree, an axis or a table.
export function pieceName(piece, kind) {
  if (piece in SIGNS.names) return SIGNS.names[piece];
  if (kind === "subwords") {
    if (piece === "▁") return "␣";
    return piece.startsWith("▁") ? visible(piece.slice(1)) : PUNCTUATION.test(piece) ? visible(piece) : "‿" + carried(piece);
  }
  if (piece === " ") return "␣";
  return carried(piece);
}

// Pieces -> atoms {text, pieces: [indices], space}: the smallest parts that can be marked without splitting a grapheme.
export function atoms(pieces, kind) {
  const kept = pieces.map((piece, index) => ({ piece, index })).filter((item) => !isEnd(item.piece) && item.piece !== "<s>");
  if (kind !== "characters") {
    return kept.map(({ piece, index }, i) => {
      const starts = kind === "words" ? !/^[.,!?;:%)\]’']/.test(piece) : piece.startsWith("▁");
      const text = kind === "subwords" && piece.startsWith("▁") ? piece.slice(1) : piece;
      return { text: visible(SIGNS.names[text] || text), pieces: [index], space: starts && i > 0 };
    });
  }
  const text = kept.map((item) => item.piece).join("");
  const owners = kept.flatMap((item) => Array(item.piece.length).fill(item.index));
  return graphemes(text).map(({ segment, index }) => {
    const own = [...new Set(owners.slice(index, index + segment.length))];
    return { text: visible(segment), pieces: own, space: false };
  });
}

export function graphemes(text) {
  if (typeof Intl !== "undefined" && Intl.Segmenter) {
    return [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)];
  }
  let index = 0;
  return [...text].map((segment) => {
    index += segment.length;
    return { segment, index: index - segment.length };
  });
}

export function plainText(pieces, kind) {
  return atoms(pieces, kind).map((atom) => (atom.space ? " " : "") + atom.text).join("");
}

// Atoms -> units of comparison: words and punctuation marks, or graphemes where a piece is a character.
export function units(pieces, kind) {
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

// The units of `left` and of `right` outside their longest common subsequence.
export function differing(left, right) {
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

export function isRightToLeft(text) {
  const strong = text.match(/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]|[A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u0900-\u0dff]/u);
  return Boolean(strong) && RIGHT_TO_LEFT.test(strong[0]);
}

/** The number, from 1, of the word (or letter) that a piece belongs to. Words are counted as a reader counts them: by the spaces. */
export function unitNumber(pieces, position, kind) {
  if (kind === "characters") return position + 1;
  const written = plainText(pieces.slice(0, position + 1), kind).trim();
  return Math.max(1, written.split(/\s+/u).length);
}

/** The pieces at which two outputs begin to differ: [piece of the one, piece of the other], or null if they read the same. */
export function parting(one, other, kind, otherKind = kind) {
  const [a, b] = [plainText(one, kind), plainText(other, otherKind)];
  if (a === b && one.some(isEnd) === other.some(isEnd)) return null;
  let [at, same] = [0, 0];
  while (at < one.length && at < other.length && one[at] === other[at]) at++;
  while (same < a.length && same < b.length && a[same] === b[same]) same++;
  const read = Math.max(plainText(one.slice(0, at + 1), kind).length, plainText(other.slice(0, at + 1), otherKind).length);
  if (kind === otherKind && at < one.length && at < other.length && same < read) return [at, at]; // not the same text in different pieces
  return [pieceAt(one, same, kind), pieceAt(other, same, otherKind)];
}

// The piece that holds this character of the text.
function pieceAt(pieces, characters, kind) {
  const at = pieces.findIndex((_, i) => plainText(pieces.slice(0, i + 1), kind).length > characters);
  return at < 0 ? pieces.length - Number(pieces.some(isEnd)) : at;
}

/** The beginning of a text, for a list. */
export function brief(text) {
  const characters = [...String(text).replace(/\s+/g, " ").trim()];
  return characters.length > 40 ? `${characters.slice(0, 39).join("")}…` : characters.join("");
}
