// Results as files, and as Python.
import { el } from "../../figures/js/core.js";
import { optionsFor } from "./options.js";
import { same } from "./state.js";

export async function copyText(text, note) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  if (note) note();
}

function csvLine(cells) {
  return cells.map((cell) => (/[",\n\r]|^[=+\-@]/.test(String(cell)) ? `"${String(cell).replace(/"/g, '""')}"` : String(cell))).join(",");
}

export function nbestCsv(columns) {
  const lines = [csvLine(["column", "rank", "text", "log_probability", "normalised_score", "finished", "tokens"])];
  for (const [side, column] of Object.entries(columns)) {
    column.hypotheses.forEach((item, i) => lines.push(csvLine([side, i + 1, item.text, item.total, item.score, item.finished, item.pieces.join(" ")])));
  }
  return lines.join("\r\n") + "\r\n";
}

function pythonString(text) {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => (/[\p{L}\p{M}\p{N}\p{P}]/u.test(c) ? c : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));
}

function pythonValue(value) {
  if (typeof value === "string") return pythonString(value);
  if (Array.isArray(value)) return `(${value.map(pythonValue).join(", ")}${value.length === 1 ? "," : ""})`;
  return value === null ? "None" : value === true ? "True" : value === false ? "False" : String(value);
}

function editPython(edit) {
  const { kind, ...fields } = edit;
  return `${kind}(${Object.entries(fields).filter(([name, value]) => value !== null && !["pieces", "word", "says"].includes(name)).map(([name, value]) => `${name}=${pythonValue(value)}`).join(", ")})`;
}

// `asked`: the checkpoint, options and edits of a column as the server told them; `before`: of a language model, how many pieces of the
// output are the user's own text.
export function pythonSnippet(input, asked, setup, before = 0) {
  const spec = { ...asked, edits: asked.edits.map((edit) => (edit.tokens ? { ...edit, position: edit.position + before } : edit)) };
  const names = new Set(optionsFor(setup, spec.options.strategy, spec.options).map((field) => field.name));
  const options = Object.entries(spec.options).filter(([name, value]) => name === "strategy" || (names.has(name) && !same(value, setup.library[name])));
  const kinds = [...new Set(spec.edits.map((edit) => edit.kind))].sort();
  const [name, commit] = spec.checkpoint.split("@");
  const given = setup.task === "caption" ? 'Image.open("photograph.jpg")' : pythonString(input.text);
  const revision = commit ? `, revision=${pythonString(commit)}` : "";
  return [
    ...(setup.task === "caption" ? ["from PIL import Image", ""] : []),
    `from seqdemo import ${[...kinds, "SearchOptions", "load", "run"].join(", ")}`,
    "",
    `checkpoint = load(${pythonString(name)}${revision})`,
    `options = SearchOptions(${options.map(([name, value]) => `${name}=${pythonValue(value)}`).join(", ")})`,
    `result = run(checkpoint, ${given}, options${kinds.length ? `, edits=(${spec.edits.map(editPython).join(", ")},)` : ""}${setup.languages.length ? `, language=${pythonString(input.language)}` : ""})`,
    "for hypothesis, text in zip(result.hypotheses, result.texts):",
    '    print(f"{hypothesis.total:8.3f} {hypothesis.score:8.3f}  {text}")',
    "",
  ].join("\n");
}
