// The views below the columns. Each says in one sentence what it shows; only the open one draws.
import { button, clear, el, saveFile } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { equations } from "./glossary.js";
import { blendTargets } from "./hard.js";
import { columnOf, same, withModelAndSearch } from "./state.js";
import { strategyName } from "./finding.js";
import { Section } from "./section.js";
import { copyText, nbestCsv, pythonSnippet } from "./share.js";

export function sideSwitch(bench, current, onPick, label) {
  const group = el("div", { class: "s-switch", role: "group", "aria-label": label });
  for (const side of ["A", "B"]) group.append(button(`${side}: ${strategyName(columnOf(bench.state, side).options)}`, () => bench.has(side) && onPick(side), { "aria-pressed": String(side === current), "aria-disabled": String(!bench.has(side)), class: `s-side-${side.toLowerCase()}` }));
  return group;
}

/** What becomes of the search of B when attention is switched off in it. */
export function searchOfA(bench) {
  const [a, b] = ["A", "B"].map((side) => strategyName(columnOf(bench.state, side).options));
  return `B then searches as A does, so that only attention differs${a === b ? "" : `: ${a} instead of ${b}`}.`;
}

/** The search that a column had with a model before it got the one it has; null if nobody knows, or if it was changed since.
 * @param {import("./history.js").History} history @param {string} side @param {string} model */
export function searchBefore(history, side, model) {
  const columns = history.steps.slice(0, history.at + 1).map(({ state }) => columnOf(state, side));
  const last = columns.findLastIndex(({ checkpoint }) => checkpoint === model);
  const kept = last >= 0 && last + 1 < columns.length && same(columns[last + 1].options, columns[columns.length - 1].options);
  return kept ? columns[last].options : null;
}

export class AttentionPanel {
  constructor(bench) {
    this.bench = bench;
    this.twin = el("div", { class: "s-choice" });
    this.dimmer = el("div", { class: "s-choice" });
    this.curves = el("div", { class: "s-curves" });
    /** @type {any} */
    this.drawn = null;
    this.strip = new Section(bench, "dimmer", "Film strip: every step of the dimmer", { along: ["dimmer"] });
    this.node = el("div", {},
      el("p", { class: "s-says" }, "“Attention off” can mean two things. They answer different questions, so they stand apart here."),
      el("div", { class: "s-halves" }, this.twin, this.dimmer), this.strip.node, this.curves);
  }

  answer() {
    const { bench } = this;
    const spec = columnOf(bench.state, "B");
    const known = bench.setup.checkpoints.find((item) => item.name === spec.checkpoint) || {};
    const twin = bench.setup.checkpoints.find((item) => item.name === known.without);
    const partner = bench.setup.checkpoints.find((item) => item.name === known.with);
    const other = twin ? [button(`Use “${twin.title}” in B`, () => bench.attentionOff(), { class: "s-primary", "data-key": "twin" }), el("p", { class: "s-muted" }, searchOfA(bench))]
      : partner ? [el("p", { class: "s-muted" }, `B uses “${known.title}”, which has no attention.`), button(`Back to “${partner.title}”`, () => bench.update(withModelAndSearch("B", partner, searchBefore(bench.history, "B", partner.name)), `B: model ${partner.title}`), { "data-key": "twin" })]
      : [el("p", { class: "s-muted" }, "No model trained without attention is loaded for this one.")];
    patch(this.twin, el("h3", {}, "1. Another model, trained without attention"),
      el("p", {}, "It had to learn to put the whole input into one vector. What it lacks, it never learned to need: this shows what attention is worth."), other);
    this.showDimmer(known, spec);
    this.strip.answer(Boolean(known.attention) && bench.has("B"));
    this.showCurves(known, twin, partner);
  }

  showDimmer(known, spec) {
    const head = [el("h3", {}, "2. This model, with its attention dimmed"),
      el("p", {}, known.hard ? "It looks at one place alone, and what it fetches there is scaled down. It was never trained for that: this shows how much it leans on attention."
        : "Its weights are blended away from what it wants to look at. It was never trained for that: this shows how much it leans on attention.")];
    if (!known.attention) {
      patch(this.dimmer, head, el("p", { class: "s-muted" }, "The model in B has no attention to dim."));
      return;
    }
    const edit = spec.edits.find((item) => item.kind === "AttentionBlend") || { factor: 0, towards: known.hard ? "nothing" : "uniform" };
    const { task } = this.bench.setup;
    const label = el("output", { for: "s-dim" }, `${Math.round(edit.factor * 100)} %`);
    const towards = el("select", { id: "s-towards", on: { change: (event) => this.bench.dim(edit.factor, event.target.value) } }, blendTargets({ task, hard: known.hard, now: edit.towards }).map(([key, name]) => el("option", { value: key, selected: key === edit.towards }, `towards ${name}`)));
    const drag = { input: (event) => this.bench.dim(Number(event.target.value), edit.towards), change: () => this.bench.history.close() };
    const slider = el("input", { type: "range", id: "s-dim", min: 0, max: 1, step: 0.05, value: edit.factor, on: drag });
    patch(this.dimmer, head, el("div", { class: "s-inline" }, el("label", { for: "s-dim" }, "Dim B by"), slider, label), el("div", { class: "s-inline" }, el("label", { for: "s-towards" }, "Blend"), towards),
      known.hard ? el("p", { class: "s-muted" }, "Blending a part of the way towards uniform would change nothing: the heaviest place stays the heaviest. At 100 % all places would tie.") : null,
      equations(this.bench, "dimmer", known.hard ? "dimmer-hard" : task === "caption" ? "dimmer-caption" : "dimmer"));
  }

  showCurves(known, twin, partner) {
    const pair = (partner ? [partner, known] : [known, twin]).filter(Boolean); // a model keeps its colour, whichever is in B
    const curves = pair.map((item) => item.curves || []);
    const { language } = this.bench.state.input;
    const test = ((curves[0] || []).find((curve) => curve.test === language) || (curves[0] || [])[0] || {}).test;
    const lines = pair.map((item, i) => ({ name: item.title, curve: curves[i].find((curve) => curve.test === test) })).filter((item) => item.curve && item.curve.points.length);
    const key = [test, ...lines.map((line) => line.name)].join();
    if (this.curveKey === key) return this.drawn && this.drawn.show(this.bench.tables());
    this.curveKey = key;
    this.drawn = null;
    clear(this.curves);
    if (!lines.length) {
      const why = this.bench.setup.task === "caption"
        ? "Photographs have no length, so there is no curve of quality by length. The measured quality of each model is on the Models page."
        : "Quality by length comes with a model's metrics; neither of these models has any.";
      this.curves.append(el("p", { class: "s-muted" }, why));
      return;
    }
    const [{ curve }] = lines;
    const about = `${curve.metric} by input length, ${curve.title || test}`;
    const payload = {
      across: `input length in ${curve.unit}`, up: curve.metric, facts: { title: about, checkpoint: pair.map((item) => item.name).join(", ") },
      lines: lines.map((line) => ({ name: line.name, points: line.curve.points })),
    };
    const holder = el("div", {});
    const whose = lines.length > 1 ? "What the two models score" : `What “${lines[0].name}” scores`;
    this.curves.append(el("h3", {}, "Measured quality by input length"),
      el("p", { class: "s-says" }, `${whose} on inputs kept out of training (${curve.title || test}), by how long the input is. One vector has a fixed size; attention reads as much as there is. Lengths with fewer than 30 inputs are left out.`), holder);
    this.drawCurves(holder, payload);
  }

  async drawCurves(holder, payload) {
    try {
      const { handsOf } = await import("./hands.js");
      this.drawn = handsOf("curves", holder, { payload, tables: this.bench.tables(), emit: (event, detail) => event === "table" && this.bench.foldTable(detail) });
    } catch {
      this.curveKey = ""; // asked for again when the view is
      holder.textContent = "The curves did not arrive. Open this view again.";
    }
  }
}

export class SavePanel {
  constructor(bench) {
    this.bench = bench;
    this.said = el("span", { class: "s-muted", role: "status" });
    this.code = el("div", { class: "s-code", hidden: true });
    this.asPython = button("As Python", () => bench.fold("python", !bench.isOpen("python")), { "aria-expanded": "false" });
    const say = (text) => {
      this.said.textContent = text;
      setTimeout(() => (this.said.textContent = ""), 4000);
    };
    this.say = say;
    this.node = el("section", { class: "s-save", "aria-label": "Share and save" },
      el("h2", { class: "s-small-head" }, "Share and save"),
      el("div", { class: "s-actions" },
        button("Copy link", () => this.link()),
        button("Trace as JSON", () => this.trace()),
        button("n-best as CSV", () => saveFile("n-best.csv", nbestCsv(this.answered()), "text/csv")),
        this.asPython, this.said),
      this.code);
  }

  link() {
    this.bench.save();
    copyText(location.href, () => this.say(this.bench.state.input.photo ? "Copied. Your own photograph is not in the link; the example photographs are." : "Copied: this link opens the page as you see it, without the answers of strips and rankings."));
  }

  /** The columns that have an answer. */
  answered() {
    return Object.fromEntries(Object.entries(this.bench.columns).filter(([side]) => this.bench.has(side)));
  }

  trace() {
    const { state, setup } = this.bench;
    const content = Object.fromEntries(Object.entries(this.answered()).map(([side, { spec, source, hypotheses, trace }]) => [side, {
      ...spec, source: source.pieces, hypotheses, trace: { source: trace.source, target: trace.pieces, tokens: trace.tokens, logps: trace.logps, top: trace.top, attention: trace.attention ? rowsOf(trace.attention, trace.source.length) : null },
    }]));
    saveFile("trace.json", JSON.stringify({ task: setup.task, text: state.input.text, language: state.input.language, columns: content }, null, 1), "application/json");
  }

  view() {
    this.answer();
  }

  answer() {
    const { state, setup, columns } = this.bench;
    this.code.hidden = !this.bench.isOpen("python");
    this.asPython.setAttribute("aria-expanded", String(!this.code.hidden));
    if (this.code.hidden || !this.bench.has("B")) return;
    const { edits, options } = columns.B.spec;
    const own = columnOf(state, "B");
    const told = { ...own, edits, options: { ...own.options, may_repeat: options.may_repeat } }; // by numbers, as a program needs them
    const snippet = pythonSnippet(state.input, told, setup, this.bench.given("B"));
    patch(this.code, el("pre", { tabindex: "0", "aria-label": "Python code for column B" }, snippet), button("Copy", () => copyText(snippet, () => this.say("Copied."))));
  }
}

function rowsOf(values, across) {
  return Array.from({ length: values.length / across }, (_, t) => Array.from(values.slice(t * across, (t + 1) * across), (value) => Number(value.toFixed(6))));
}
