// Examples as buttons, what each shows, and reference answers by people.
import { el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { quoted } from "../../figures/js/text.js";
import { folding } from "./fold.js";

const MOST_KINDS = 8, MOST_EXAMPLES = 10; // of which one is shown at once

/** The first example of every kind as buttons; all of them, under what they show, on demand. */
export class ExamplesView {
  /** @param {any} bench @param {(example: any, attributes: any) => HTMLElement} make the button of an example */
  constructor(bench, make) {
    this.bench = bench;
    this.make = make;
    const { examples } = bench.setup;
    this.kinds = [...new Set(examples.map((example) => example.kind))];
    this.first = this.kinds.length > 1 ? this.kinds.slice(0, MOST_KINDS).map((kind) => examples.find((example) => example.kind === kind)) : examples.slice(0, MOST_EXAMPLES);
    this.node = el("div", { class: "s-examples", role: "group", "aria-label": "Examples" });
  }

  /** @param {any} chosen the example that is marked */
  show(chosen) {
    const { examples } = this.bench.setup;
    const made = (example) => this.make(example, { "data-key": examples.indexOf(example), "aria-pressed": String(example === chosen) });
    const more = this.first.length < examples.length;
    patch(this.node, this.first.map(made), more ? folding(this.bench, "examples", `All ${examples.length} examples`, { class: "s-all-examples" }, () => this.kinds.map((kind) => this.kind(kind, made))) : null);
  }

  kind(kind, made) {
    const own = this.bench.setup.examples.filter((example) => example.kind === kind);
    return el("div", { "data-key": kind || "all", role: "group", "aria-label": own[0].title || "Examples" },
      el("p", { class: "s-muted" }, own[0].title), el("div", { class: "s-examples" }, own.map(made)));
  }
}

// Kinds of examples whose facts the headline tells: what is likelier, by how much, and where the other search lost it.
const IN_HEADLINE = ["written", "greedy-beam", "beam-optimum"];

/**
 * The whole note of an example; once its columns have changed, only what people wrote.
 * @param {any} example the current one, if any @param {any[]} alike the examples with the same input
 */
export function inputNote(example, alike) {
  return example ? exampleNote(example) : whoWrote(alike[0]);
}

/** The note of an example, its reference answers, and the author of its picture. */
export function exampleNote(example) {
  const shows = IN_HEADLINE.includes(example.kind) && example.title ? `${example.title}.` : example.shows;
  return [shows, whoWrote(example)].filter(Boolean).join(" ");
}

function whoWrote(example) {
  if (!example) return "";
  const references = (example.references || []).slice(0, 2);
  const end = /[.!?…]$/.test(references.at(-1) || "") ? "" : ".";
  const people = references.length ? `A person wrote: ${references.map(quoted).join("; another: ")}${end}` : "";
  return [people, example.credit].filter(Boolean).join(" ");
}

/** The answer that the user wanted; it is scored beside the outputs. */
export class WantedView {
  constructor(bench) {
    this.bench = bench;
    this.field = el("input", { type: "text", id: "s-wanted", dir: "auto", spellcheck: "false", autocomplete: "off", on: { input: (event) => bench.setWanted(event.target.value) } });
    this.node = el("div", { class: "s-wanted" }, el("label", { for: "s-wanted" }, "The answer you wanted"), this.field);
  }

  // Beside an example stands what people wrote.
  state() {
    const { wanted } = this.bench.state.input;
    this.node.hidden = !wanted && Boolean(this.bench.currentExample());
    if (this.field.value !== wanted) this.field.value = wanted;
  }
}
