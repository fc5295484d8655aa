// Edits in words, where the server has not told them.
import { plainText } from "../../figures/js/text.js";
import { LETTERS, same } from "./state.js";

/** What an edit does. @param {import("./state.js").Edit} edit @param {string} kind of the model's pieces */
export function editWords(edit, kind) {
  if (edit.kind === "Require" && edit.word) return `must say “${edit.word}” somewhere`;
  if (!edit.pieces) return editName(edit);
  const [never, quoted] = [edit.kind === "Ban" ? "never " : "", `“${plainText(edit.pieces, kind)}”`];
  return edit.position ? `${never}writes ${quoted} from piece ${edit.position + 1} on` : `${never}starts with ${quoted}`;
}

/** An edit by what it is. @param {import("./state.js").Edit} edit */
export function editName(edit) {
  const names = {
    Force: "a forced beginning", Ban: "a forbidden beginning", Require: "a required word", AttentionRow: `the attention at step ${Number(edit.position) + 1}`,
    AttentionBlend: "the dimmed attention", ClampGate: `the ${edit.gate} gate held at ${edit.value}`,
  };
  return names[edit.kind];
}

/** @param {string} side  @param {import("./state.js").Edit[]} edits  @param {string} owner what they belong to */
export function leftOutOf(side, edits, owner) {
  return `Left out of column ${side}, because ${edits.length > 1 ? "they belong" : "it belongs"} to the old ${owner}: ${edits.map(editName).join("; ")}.`;
}

/** A sentence for each column that another input or model has cost edits. @param {import("./state.js").State} before  @param {import("./state.js").State} after */
export function leftBehind(before, after) {
  return after.columns.flatMap((column, i) => {
    const { checkpoint, edits } = before.columns[i];
    const lost = edits.filter((edit) => !column.edits.some((kept) => same(kept, edit)));
    const owner = checkpoint !== column.checkpoint ? "model" : before.input.text !== after.input.text ? "text" : "photograph";
    return lost.length ? [leftOutOf(LETTERS[i], lost, owner)] : [];
  });
}
