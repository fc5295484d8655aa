// What else a step changes, in words: edits that are lost with their model or input, and a search that changes with them.
import { editName, leftOutOf } from "./editwords.js";
import { strategyName } from "./finding.js";
import { LETTERS, same } from "./state.js";

/** @typedef {import("./state.js").State} State  @typedef {import("./state.js").Column} Column  @typedef {import("./state.js").Edit} Edit */

/**
 * The side effects: `words` to append to those of the step, and `notes` for the columns.
 * @param {State} before @param {State} after @returns {{words: string, notes: {side: string, text: string}[]}}
 */
export function besides(before, after, setup) {
  if (same(questionsIn(before), questionsIn(after))) return { words: "", notes: [] }; // columns that were swapped are still there
  const changed = after.columns.map((now, i) => ({ side: LETTERS[i], was: before.columns[i], now }));
  const left = changed.flatMap(({ side, was, now }) => {
    const owner = was.checkpoint !== now.checkpoint ? "the model before" : otherInput(before.input, after.input);
    const edits = owner ? was.edits.filter((edit) => !now.edits.some((kept) => same(kept, edit))) : [];
    return edits.length ? [{ side, edits, owner, kind: kindOf(was, setup) }] : [];
  });
  const searched = choosesSearches(before, after) ? [] : changed.filter(({ was, now }) => strategyName(was.options) !== strategyName(now.options));
  const words = [
    ...left.map(({ side, edits, kind }) => `left out of ${side}: ${edits.map((edit) => editName(edit, kind)).join("; ")}`),
    ...searched.map(({ side, was, now }) => `${side}: ${strategyName(now.options)} instead of ${strategyName(was.options)}`)];
  const back = (edits) => `Undo brings ${edits.length > 1 ? "them" : "it"} back.`;
  const notes = left.map(({ side, edits, owner, kind }) => ({ side, text: `${leftOutOf(side, edits, owner, kind)} ${back(edits)}` }));
  return { words: words.map((text) => `; ${text}`).join(""), notes };
}

// The questions of the columns, in whatever order.
function questionsIn({ columns }) {
  return columns.map(({ checkpoint, options, edits }) => JSON.stringify([checkpoint, options, edits])).sort();
}

function otherInput(was, now) {
  if (was.text !== now.text) return "the text before";
  return was.photo !== now.photo || was.example !== now.example ? "the photograph before" : "";
}

// Who chooses a search, or an example, which may have searches of its own, need not be told of it.
function choosesSearches(before, after) {
  const rest = ({ input, columns }) => [input, columns.map(({ checkpoint, edits }) => [checkpoint, edits])];
  const { example } = after.input;
  return same(rest(before), rest(after)) || (example !== null && example !== before.input.example);
}

function kindOf({ checkpoint }, setup) {
  return ((setup.checkpoints.find((card) => card.name === checkpoint) || {}).kinds || {}).target || "subwords";
}
