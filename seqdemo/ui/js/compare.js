// One column of the comparison: its controls, its output with the differing words marked, its numbers, its n-best.
import { button, el, probability, signed, tipFor } from "../../figures/js/core.js";
import { isEnd, isRightToLeft, isolated, pieceName, quoted, units, visible } from "../../figures/js/text.js";
import { TERMS, term } from "./glossary.js";
import { patch } from "../../figures/js/patch.js";
import { folding } from "./fold.js";
import { comparedWith, penalty } from "./finding.js";
import { changedOptions, optionField, optionsFor, optionsPanel } from "./options.js";
import { badge, ownPrice } from "./badges.js";
import { scoreMade, scoreName } from "./searchrules.js";
import { columnOf } from "./state.js";
import { WordPopover, letterAt } from "./words.js";

const SHORT_STRIP = 45; // further numbers are shown on demand

export class ColumnView {
  constructor(bench, side) {
    this.bench = bench;
    this.side = side;
    this.popover = new WordPopover(bench, side);
    this.controls = el("div", { class: "s-controls" });
    this.edits = el("div", { class: "s-edits" });
    this.message = el("p", { class: "s-message", role: "alert", hidden: true });
    this.output = el("div", { class: "s-output", "aria-live": "polite" });
    this.price = el("p", { class: "s-price", hidden: true });
    this.numbers = el("div", { class: "s-numbers" });
    this.wanted = el("div", { class: "s-wanted-score" });
    this.nbest = el("div", { class: "s-nbest" });
    this.options = el("div", { class: "s-options" });
    this.node = el("section", { class: `s-column s-side-${side.toLowerCase()}`, "aria-label": `Column ${side}`, id: `s-column-${side.toLowerCase()}` },
      this.controls, this.edits, this.message, this.output, this.price, this.numbers, this.wanted, this.nbest, this.options, this.popover.node);
  }

  get spec() {
    return columnOf(this.bench.state, this.side);
  }

  // What the last step left out of this column.
  get note() {
    return this.bench.history.notes.filter(({ side }) => side === this.side).map(({ text }) => text).join(" ");
  }

  // What is typed and what is looked at does not change the controls.
  state() {
    this.showMenu();
    const { checkpoint, options, edits } = this.spec;
    const { open } = this.bench.state.view;
    const drawn = [checkpoint, options, edits, open, this.note];
    if (this.drawn && drawn.every((value, i) => value === this.drawn[i])) return;
    this.drawn = drawn;
    this.showControls();
    this.showEdits();
  }

  answer() {
    this.show();
    this.showEdits();
  }

  busy({ overdue }) {
    this.node.classList.toggle("s-waiting", overdue.includes(this.side));
  }

  view(before) {
    if (before.open !== this.bench.state.view.open) this.show();
  }

  showMenu() {
    const words = this.words();
    for (const word of words) word.setAttribute("aria-expanded", "false");
    this.popover.show(words);
  }

  showControls() {
    const { setup } = this.bench;
    const { spec, side } = this;
    const set = (name, value) => this.bench.setOption(side, name, value);
    const front = optionsFor(setup, spec.options.strategy, spec.options).filter((field) => field.front).map((field) => optionField(field, spec.options[field.name], set, side));
    const redraw = ["sample", "stochastic"].includes(spec.options.strategy) ? button("Draw again", () => set("seed", (spec.options.seed + 1) % 2147483647), { class: "s-quiet s-draw" }) : null;
    patch(this.controls,
      el("div", { class: "s-controls-line" }, el("span", { class: "s-letter", "aria-hidden": "true" }, side), this.strategy(set), ...front, redraw, this.model()));
    this.showOptions(set);
  }

  // The options come last, so that opening them in one column moves nothing else and leaves no gap in the other.
  showOptions(set) {
    const { setup } = this.bench;
    const { spec, side } = this;
    const changed = changedOptions(setup, spec);
    patch(this.options, this.folding("options", changed ? `Options (${changed} changed)` : "Options", { class: "s-more" },
      () => [optionsPanel(setup, spec, set, side, false), this.rare(set), button("Reset this column", () => this.bench.resetColumn(side), { class: "s-quiet" })]));
  }

  rare(set) {
    const { setup } = this.bench;
    const changed = changedOptions(setup, this.spec, (field) => field.rare);
    return this.folding("more-options", changed ? `More (${changed} changed)` : "More", {}, () => optionsPanel(setup, this.spec, set, this.side, true));
  }

  model() {
    const { bench, side, spec } = this;
    const known = bench.card(spec.checkpoint) || {};
    return tipFor(el("select", { "aria-label": `Model of column ${side}`, class: "s-model", on: { change: (event) => bench.setCheckpoint(side, event.target.value) } },
      bench.setup.checkpoints.map((item) => el("option", { value: item.name, selected: item.name === spec.checkpoint }, item.title))), () => [known.title || spec.checkpoint, known.about || "", spec.checkpoint]);
  }

  strategy(set) {
    const { side, spec } = this;
    const { strategies } = this.bench.setup;
    return tipFor(el("select", { "aria-label": `Strategy of column ${side}`, class: "s-strategy", "data-option": "strategy", on: { change: (event) => set("strategy", event.target.value) } },
      strategies.map(([key, label]) => el("option", { value: key, selected: key === spec.options.strategy }, label))), () => [strategies.find(([key]) => key === spec.options.strategy)[1], TERMS[spec.options.strategy === "sample" ? "sampling" : spec.options.strategy]]);
  }

  folding(name, summary, attributes, content) {
    return folding(this.bench, `${name}-${this.side.toLowerCase()}`, summary, attributes, content);
  }

  showEdits() {
    const { bench, spec, side } = this;
    this.edits.hidden = !spec.edits.length && !this.note;
    const left = this.note ? el("p", { class: "s-muted", role: "status" }, this.note) : null;
    patch(this.edits, left, spec.edits.map((_, i) => {
      const text = bench.editText(side, i);
      const told = badge(bench, side, i);
      const price = ownPrice(bench.ownPrice(side, i));
      return el("span", { class: "s-edit", "data-key": JSON.stringify(spec.edits[i]) }, el("span", {}, text, price && el("span", { class: "s-badge" }, price), told && el("span", { class: "s-badge" }, told)), button("×", () => bench.removeEdit(side, i), { "aria-label": `Remove: ${text}`, class: "s-x" }));
    }));
  }

  error(text) {
    this.message.hidden = !text;
    this.message.textContent = text || "";
  }

  // The parts that re-ranking and selection change; nothing here asks the server.
  show() {
    const column = this.bench.columns[this.side];
    if (!column) return;
    this.error(column.error);
    this.node.classList.toggle("s-old", Boolean(column.error)); // the shown answer belongs to the question before
    if (!column.tree) return;
    const { kind } = column;
    const chosen = this.bench.chosen(this.side);
    const differs = this.bench.differences()[this.side === "A" ? 0 : 1];
    const list = units(chosen.pieces, kind.target);
    const cut = tipFor(el("span", { class: "s-cut", tabindex: "0" }, " …"), ["not finished", "This prefix has no <eos>: the selected node, or the length limit, ends it here."]);
    patch(this.output, this.line(list, differs), chosen.finished ? null : cut);
    this.output.setAttribute("dir", isRightToLeft(list.map((unit) => unit.text).join("")) ? "rtl" : "ltr");
    this.showPrice(column);
    this.showNumbers(column, chosen);
    patch(this.wanted, wantedScore(column, chosen));
    this.showNbest(column);
    this.showMenu();
  }

  line(list, differs) {
    const line = el("span", { class: this.bench.setup.task === "complete" ? "s-line s-verbatim" : "s-line" });
    list.forEach((unit, u) => {
      const word = this.word(u, unit, differs.has(u));
      if (differs.has(u)) word.setAttribute("data-differs", "");
      unit.atoms.forEach((atom, i) => {
        if (i === 0 && atom.space) line.append(" ");
        word.append(this.bench.atomNode(this.side, "target", atom));
        if (atom.text === "⏎" && line.classList.contains("s-verbatim")) word.append("\n");
      });
      line.append(word);
    });
    if (!list.length) line.append(el("span", { class: "s-muted" }, "(nothing)"));
    return line;
  }

  /** @returns {HTMLElement[]} */
  words() {
    return [...this.output.querySelectorAll(".s-word")];
  }

  // A word opens its menu. One word is reached by Tab, the others by the arrow keys.
  word(number, unit, differs) {
    const leftward = () => this.output.getAttribute("dir") === "rtl";
    const open = (event) => {
      const words = this.words();
      const at = number + (event.type === "click" ? letterAt(words.slice(number), event.clientX, leftward()) : 0);
      this.popover.toggle(at);
    };
    const walk = (event) => {
      const words = this.words();
      const on = leftward() ? -1 : 1;
      const next = { ArrowRight: words[number + on], ArrowLeft: words[number - on], Home: words[0], End: words[words.length - 1] }[event.key];
      if (event.key === "Enter" || event.key === " ") open(event);
      else if (next) next.focus();
      else return;
      event.preventDefault();
    };
    const node = el("span", {
      class: differs ? "s-word s-differs" : "s-word", role: "button", tabindex: number ? "-1" : "0", "aria-label": unit.text.trim() ? null : "space", "aria-haspopup": "dialog", "aria-expanded": "false", on: { click: open, keydown: walk },
    });
    this.bench.hoverNode(node, this.side, "target", unit.atoms[0].pieces[0]);
    return node;
  }

  showPrice(column) {
    const text = this.bench.priceText(column);
    const proof = column.certificate ? column.certificate.sentence : "";
    this.price.hidden = !text && !proof;
    this.price.textContent = [text, proof].filter(Boolean).join(" ");
  }

  showNumbers(column, chosen) {
    const options = this.spec.options;
    const norm = penalty(chosen.logps.length, options);
    const score = chosen.score === undefined ? chosen.total / norm : chosen.score;
    const made = scoreMade(options, norm);
    const strip = el("div", { class: "s-strip", role: "list", "aria-label": "Log probability of each token" });
    chosen.pieces.forEach((piece, t) => {
      const logp = chosen.logps[t];
      const chip = el("span", { class: "s-chip", role: "listitem", tabindex: "0", "data-target": t, style: { "--p": Math.exp(logp).toFixed(4) } },
        el("bdi", { class: "s-chip-piece" }, pieceName(piece, column.kind.target)), el("span", { class: "s-chip-number", dir: "ltr" }, signed(logp, 2)));
      tipFor(chip, () => this.tokenLines(column, chosen, t));
      this.bench.hoverNode(chip, this.side, "target", t);
      strip.append(chip);
    });
    const sum = el("span", { class: "s-sum", dir: "ltr" }, "= ", el("strong", {}, signed(chosen.total, 3)));
    strip.append(sum);
    strip.setAttribute("dir", this.output.getAttribute("dir"));
    patch(this.numbers,
      el("dl", { class: "s-scores" },
        el("div", {}, el("dt", {}, term("log probability")), el("dd", { "data-total": chosen.total }, signed(chosen.total, 3), " ", this.precision(chosen.total))),
        made ? el("div", {}, el("dt", {}, term(scoreName(options))), el("dd", {}, signed(score, 3), el("span", { class: "s-muted" }, ` ${made}`))) : null),
      chosen.pieces.length <= SHORT_STRIP ? strip : this.folding("strip", `The log probabilities of all ${chosen.pieces.length} pieces`, { class: "s-long-strip" }, () => strip));
  }

  /** What this total was computed in, and by how much a replay of the output may differ from it. */
  precision(total) {
    const { name, tolerance } = this.bench.setup.precision;
    const within = (tolerance * (1 + Math.abs(total))).toFixed(5);
    return tipFor(el("span", { class: "s-muted s-number s-term", tabindex: "0" }, `\u00b1 ${within}`), ["precision", `Search and replay compute in ${name}. Their totals of the same output differ by at most ${tolerance} times 1 + the size of the total.`]);
  }

  tokenLines(column, chosen, t) {
    const { trace } = column;
    const same = trace && trace.asked.slice(0, t + 1).join() === chosen.tokens.slice(0, t + 1).join();
    const at = trace ? t + trace.tokens.length - trace.asked.length : t;
    const tops = same && trace.top[at] ? trace.top[at].map(([piece, logp]) => `${probability(logp)}  ${pieceName(piece, column.kind.target)}`) : [];
    const sum = chosen.logps.slice(0, t + 1).reduce((a, b) => a + b, 0);
    const end = isEnd(chosen.pieces[t]) ? "the end: here the model stops of its own accord" : "";
    return [`${isolated(pieceName(chosen.pieces[t], column.kind.target))}: probability ${probability(chosen.logps[t])}`, `log probability ${signed(chosen.logps[t])}, sum so far ${signed(sum)}`, end, tops.length ? "likeliest here:" : "", ...tops];
  }

  showNbest(column) {
    const count = column.hypotheses.length;
    patch(this.nbest, this.folding("nbest", count === 1 ? "The only output of this search" : `The ${count} best outputs`, {}, () => this.outputs(column)));
  }

  // The score has a column of its own where it is not the log probability itself.
  outputs(column) {
    const chosen = this.bench.chosen(this.side);
    const scored = column.hypotheses.some((item) => item.score !== item.total);
    const rows = column.hypotheses.map((item, i) => {
      const current = item === chosen;
      return el("tr", { class: current ? "s-current" : "" }, el("td", {}, String(i + 1)),
        el("td", {}, button(visible(item.text) || "(nothing)", () => this.bench.selectOutput(this.side, item), { class: "s-pick", dir: "auto", "aria-pressed": String(current) })),
        el("td", { class: "s-number" }, signed(item.total, 3)), scored ? el("td", { class: "s-number" }, signed(item.score, 3)) : null);
    });
    return el("div", { class: "s-table-wrap" }, el("table", { class: "s-table" },
      el("thead", {}, el("tr", {}, ["", "output", "log probability", ...(scored ? [scoreName(this.spec.options)] : [])].map((head) => el("th", { scope: "col" }, head || el("span", { class: "s-hidden" }, "rank"))))),
      el("tbody", {}, rows)));
  }
}

// The score of the wanted answer by the model of this column.
function wantedScore(column, chosen) {
  const { wanted, kind } = column;
  if (!wanted) return null;
  if (wanted.error) return el("p", { class: "s-muted" }, `Your answer: ${wanted.error}`);
  const gap = wanted.total - chosen.total;
  const likely = chosen.prefix ? "" : `, ${comparedWith(gap, "this output")}`;
  const least = wanted.logps.indexOf(Math.min(...wanted.logps));
  const hardest = wanted.pieces.length > 1 ? ` Least expected: ${quoted(pieceName(wanted.pieces[least], kind.target))} (${probability(wanted.logps[least], 3)}).` : "";
  return el("p", { class: "s-says" }, "Your answer: ", term("log probability"), " ", el("strong", {}, signed(wanted.total, 3)), `${likely}.${hardest}`);
}
