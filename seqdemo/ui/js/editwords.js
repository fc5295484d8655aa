// Edits in words, where the server has not told them.
import { numeral } from "../../figures/js/core.js";
import { plainText, quoted } from "../../figures/js/text.js";

/** @typedef {import("./state.js").Edit} Edit */

/** What an edit does. @param {Edit} edit @param {string} kind of the model's pieces */
export function editWords(edit, kind) {
  if (edit.kind === "Require" && edit.word) return `must say ${quoted(edit.word)} somewhere`;
  if (!edit.pieces) return editName(edit, kind);
  const [never, words] = [edit.kind === "Ban" ? "never " : "", quoted(plainText(edit.pieces, kind))];
  return edit.position ? `${never}writes ${words} from piece ${edit.position + 1} on` : `${never}starts with ${words}`;
}

/** @param {string} side @param {readonly Edit[]} edits @param {string} owner whose they are  @param {string} [kind] of the column's pieces */
export function leftOutOf(side, edits, owner, kind) {
  return `Left out of column ${side}, because ${edits.length > 1 ? "they belong" : "it belongs"} to ${owner}: ${edits.map((edit) => editName(edit, kind)).join("; ")}.`;
}

/** An edit by a name. @param {Edit} edit @param {string} [kind] of the column's pieces */
export function editName(edit, kind = "subwords") {
  const words = edit.word || (edit.pieces ? plainText(edit.pieces, kind).trim() : "");
  if (edit.kind === "Force") return words ? `the forced ${quoted(words)}` : "a forced beginning";
  if (edit.kind === "Ban") return words ? `the forbidden ${quoted(words)}` : "a forbidden beginning";
  if (edit.kind === "Require") return words ? `the required word ${quoted(words)}` : "a required word";
  if (edit.kind === "AttentionRow") return `the attention${headsName(edit)} at step ${Number(edit.position) + 1}`;
  if (edit.kind === "AttentionBlend") return `attention${headsName(edit)} dimmed by ${Math.round(100 * edit.factor)} %`;
  if (edit.kind === "AttentionDraw") return `the places drawn with seed ${edit.seed}`;
  return `${clampName(/** @type {any} */ (edit))} held${typeof edit.value === "number" ? ` at ${numeral(edit.value)}` : edit.value === "mean" ? " at the mean" : ""}`;
}

/** Heads that an edit names, counted from 1. @param {any} edit */
function headsName({ layer = null, head = null }) {
  if (layer === null && head === null) return "";
  return ` of ${head === null ? "all heads" : `head ${head + 1}`} in ${layer === null ? "every layer" : `layer ${layer + 1}`}`;
}

function clampName({ gate, units }) {
  const whole = { cell: "the cell", hidden: "the hidden state" }[gate] || `the ${gate} gate`;
  if (!units) return whole;
  return `${units.length > 1 ? `${units.length} units` : `unit ${units[0]}`} of ${whole}`;
}
