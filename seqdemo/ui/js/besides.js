// What a step does beside what its words say: edits that go with their model, and a search that changes along with something else.
import { numeral } from "../../figures/js/core.js";
import { plainText } from "../../figures/js/text.js";
import { strategyName } from "./finding.js";
import { LETTERS, same } from "./state.js";

/** @typedef {import("./state.js").State} State  @typedef {import("./state.js").Column} Column  @typedef {import("./state.js").Edit} Edit */

/**
 * What is left unsaid: `words` that the step's own words go on with, and `notes` for a column.
 * @param {State} before @param {State} after @returns {{words: string, notes: {side: string, text: string}[]}}
 */
export function besides(before, after, setup) {
  if (same(questionsIn(before), questionsIn(after))) return { words: "", notes: [] }; // columns that were swapped are still there
  const changed = after.columns.map((now, i) => ({ side: LETTERS[i], was: before.columns[i], now }));
  const left = changed.map(({ side, was, now }) => ({ side, edits: lost(was, now), kind: kindOf(was, setup) })).filter(({ edits }) => edits.length);
  const searched = onlySearches(before, after) ? [] : changed.filter(({ was, now }) => strategyName(was.options) !== strategyName(now.options));
  const words = [
    ...left.map(({ side, edits, kind }) => `left out of ${side}: ${edits.map((edit) => editName(edit, kind)).join("; ")}`),
    ...searched.map(({ side, was, now }) => `${side}: ${strategyName(now.options)} instead of ${strategyName(was.options)}`)];
  const back = (edits) => `Undo brings ${edits.length > 1 ? "them" : "it"} back.`;
  const notes = left.map(({ side, edits, kind }) => ({ side, text: `${leftOutOf(side, edits, "the model before", kind)} ${back(edits)}` }));
  return { words: words.map((text) => `; ${text}`).join(""), notes };
}

// The questions of the columns, in whatever order.
function questionsIn({ columns }) {
  return columns.map(({ checkpoint, options, edits }) => JSON.stringify([checkpoint, options, edits])).sort();
}

// Edits that the column had with its model before.
function lost(was, now) {
  return was.checkpoint === now.checkpoint ? [] : was.edits.filter((edit) => !now.edits.some((kept) => same(kept, edit)));
}

// Who chooses a search need not be told of it.
function onlySearches(before, after) {
  const rest = ({ input, columns }) => [input, columns.map(({ checkpoint, edits }) => [checkpoint, edits])];
  return same(rest(before), rest(after));
}

function kindOf({ checkpoint }, setup) {
  return ((setup.checkpoints.find((card) => card.name === checkpoint) || {}).kinds || {}).target || "subwords";
}

/** @param {string} side @param {readonly Edit[]} edits @param {string} owner whose they are  @param {string} [kind] of the column's pieces */
export function leftOutOf(side, edits, owner, kind) {
  return `Left out of column ${side}, because ${edits.length > 1 ? "they belong" : "it belongs"} to ${owner}: ${edits.map((edit) => editName(edit, kind)).join("; ")}.`;
}

/** An edit by a name. @param {Edit} edit @param {string} [kind] of the column's pieces */
export function editName(edit, kind = "subwords") {
  const words = edit.word || (edit.pieces ? plainText(edit.pieces, kind).trim() : "");
  if (edit.kind === "Force") return words ? `the forced “${words}”` : "a forced beginning";
  if (edit.kind === "Ban") return words ? `the forbidden “${words}”` : "a forbidden beginning";
  if (edit.kind === "Require") return words ? `the required word “${words}”` : "a required word";
  if (edit.kind === "AttentionRow") return `the attention at step ${Number(edit.position) + 1}`;
  if (edit.kind === "AttentionBlend") return `attention dimmed by ${Math.round(100 * edit.factor)} %`;
  return `${clampName(/** @type {any} */ (edit))} held${typeof edit.value === "number" ? ` at ${numeral(edit.value)}` : edit.value === "mean" ? " at the mean" : ""}`;
}

function clampName({ gate, units }) {
  const whole = { cell: "the cell", hidden: "the hidden state" }[gate] || `the ${gate} gate`;
  if (!units) return whole;
  return `${units.length > 1 ? `${units.length} units` : `unit ${units[0]}`} of ${whole}`;
}
