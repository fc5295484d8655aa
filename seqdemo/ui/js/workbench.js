// The task page: input, finding, two columns, and the views below them.
import { button, debounce, el, tipFor } from "../../figures/js/core.js";
import { atoms, isRightToLeft } from "../../figures/js/text.js";
import { onThemeChange } from "../../figures/js/colour.js";
import { patch } from "../../figures/js/patch.js";
import { term } from "./glossary.js";
import { finding } from "./finding.js";
import { offers } from "./offers.js";
import { columnOf } from "./state.js";
import { sideOf } from "./sides.js";
import { StepsView } from "./steps.js";
import { GatesPanel } from "./gates.js";
import { ExamplesView, inputNote, WantedView } from "./examples.js";
import { Bench } from "./bench.js";
import { ColumnView } from "./compare.js";
import { OverlayPanel, PhotoView } from "./overlay.js";
import { AttentionPanel, SavePanel, searchOfA } from "./panels.js";
import { TreePanel } from "./searchtree.js";
import { AlignmentPanel } from "./alignment.js";
import { TextPanel } from "./language.js";
import { TourView } from "./tour.js";

class InputView {
  constructor(bench) {
    this.bench = bench;
    const { setup } = bench;
    this.area = el("textarea", {
      id: "s-input", rows: setup.task === "complete" ? 3 : 1, dir: "auto", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      on: { input: () => this.typed() },
    });
    this.over = el("p", { class: "s-message", role: "alert", hidden: true });
    this.language = setup.languages.length
      ? el("select", { id: "s-language", on: { change: (event) => bench.setLanguage(event.target.value) } }, setup.languages.map(([tag, name]) => el("option", { value: tag }, name)))
      : null;
    this.models = el("div", { class: "s-switch", role: "group", "aria-label": "What the model has read" });
    this.reads = el("div", { class: "s-reads" });
    this.far = el("p", { class: "s-far", hidden: true });
    this.shows = el("p", { class: "s-shows", "aria-live": "polite" });
    this.wanted = new WantedView(bench);
    this.examples = new ExamplesView(bench, (example, attributes) => tipFor(
      button(example.label || example.text, () => bench.useExample(example), { class: "s-example", dir: "auto", ...attributes }), () => [example.title || example.text, example.shows]));
    this.node = el("section", { class: "s-input", "aria-label": "Input" },
      el("div", { class: "s-input-main" },
        el("div", { class: "s-input-head" }, el("label", { for: "s-input" }, setup.words.input), this.language ? el("span", { class: "s-language" }, el("label", { for: "s-language" }, "into"), this.language) : null,
          setup.task === "complete" && setup.checkpoints.length > 1 ? el("span", { class: "s-language" }, "by a model that has read", this.models) : null),
        this.area, this.over, this.reads, this.far, this.wanted.node),
      el("div", { class: "s-input-side" }, el("h2", { class: "s-small-head" }, "Try"), this.examples.node, this.shows));
  }

  typed() {
    const text = this.area.value;
    const { characters } = this.bench.setup.limits;
    const long = [...text].length > characters;
    this.over.hidden = !long;
    this.over.textContent = long ? `That is ${[...text].length.toLocaleString("en")} characters; this page takes up to ${characters.toLocaleString("en")}. Shorten it and it decodes again.` : "";
    if (long) this.bench.refuse("This text is too long to be read.");
    else this.bench.setText(text);
  }

  // An example stays marked, with its note, only while its question is unchanged.
  state() {
    const { bench } = this;
    const { state, setup } = bench;
    const { text, language } = state.input;
    if (this.area.value !== text) {
      this.area.value = text;
      this.over.hidden = true;
    }
    if (this.language) this.language.value = language || setup.languages[0][0];
    const example = bench.currentExample();
    this.area.classList.toggle("s-code-input", setup.task === "complete" && /^ |\n/m.test(text));
    this.shows.textContent = inputNote(example, bench.examplesOfInput());
    this.wanted.state();
    this.examples.show(example);
    const all = (card) => state.columns.every((column) => column.checkpoint === card.name);
    patch(this.models, setup.checkpoints.map((card) => button(card.read || card.title, () => bench.setModel(card.name), { "aria-pressed": String(all(card)) })));
  }

  busy({ overdue }) {
    this.reads.classList.toggle("s-waiting", overdue.includes("A"));
  }

  answer() {
    const column = [this.bench.columns.A, this.bench.columns.B].find((item) => item && item.tree && !item.error);
    this.reads.hidden = !column;
    this.far.hidden = !(column && column.far);
    if (!column) return;
    const { source, kind } = column;
    const line = el("span", { class: "s-line s-source-line", dir: isRightToLeft(source.pieces.join("")) ? "rtl" : "ltr" });
    for (const atom of atoms(source.pieces, kind.source)) {
      const known = atom.pieces.every((index) => source.known[index]);
      const node = this.bench.atomNode("A", "source", atom);
      if (!known) {
        node.classList.add("s-unknown");
        tipFor(node, [atom.text, "The model has never seen this piece: it reads <unknown>."]);
      }
      if (atom.space) line.append(" ");
      line.append(node);
    }
    const strange = source.known.some((flag) => !flag) ? el("span", { class: "s-muted" }, " (underlined: never seen in training)") : null;
    patch(this.reads, el("span", { class: "s-reads-label" }, term("token", "The model reads"), " "), line, strange);
    this.far.textContent = column.far || "";
  }
}

class FindingView {
  constructor(bench) {
    this.bench = bench;
    this.text = el("p", { class: "s-finding", role: "status" });
    this.offer = el("div", { class: "s-offer" });
    this.waiting = el("div", { class: "s-busy", hidden: true });
    this.node = el("div", { class: "s-finding-row" }, this.text, this.offer, this.waiting);
  }

  answer() {
    const { bench } = this;
    const { A, B } = bench.columns;
    patch(this.offer, offers(bench));
    if (bench.fault) this.text.textContent = bench.fault;
    else if ((A && A.error) || (B && B.error)) this.text.textContent = "There is nothing to compare until both columns have an answer.";
    else if (bench.isLate("A") !== bench.isLate("B")) this.text.textContent = `Column ${bench.isLate("A") ? "B has its answer; A" : "A has its answer; B"} is still searching.`;
    else if (bench.answered()) patch(this.text, finding(sideOf(bench, "A"), sideOf(bench, "B"), bench.setup.task).map((part) => this.part(part)));
  }

  // What is quoted stands in a box of its own: shaped together with the quotation mark, a lone combining sign falls apart.
  part(part) {
    if (typeof part === "string") return part;
    if (part.mark === "strong") return el("strong", {}, part.text);
    const [, before, inner, after] = part.text.match(/^(“?)([^]*?)(”?)$/);
    return el("bdi", { class: `s-ink-${part.mark.toLowerCase()}`, dir: "ltr" }, before, el("bdi", { class: "s-apart" }, inner), after);
  }

  busy(told) {
    const sentence = waitingSentence(told);
    this.waiting.hidden = !sentence;
    this.text.classList.toggle("s-waiting", told.overdue.length > 0 && this.bench.isLate("A") === this.bench.isLate("B"));
    patch(this.waiting, el("span", { role: "status" }, sentence), told.busy && told.long ? button("Stop", () => this.bench.stop(), { class: "s-stop" }) : null);
  }
}

/** The message while the user waits; empty without a wait. */
export function waitingSentence({ busy, long, slow, progress, stopped, gone, full }) {
  if (stopped) return "Stopped. Input and columns are back at the last answer; Undo brings back what you asked.";
  if (!busy) return "";
  if (gone) return "The server does not answer. This page tries again every few seconds and goes on by itself.";
  if (full) return "More people are asking than the server can take. This page asks again in a moment.";
  if (progress) return progress;
  return long ? "Searching…" : slow ? "Waiting for the model…" : "";
}

class Tabs {
  constructor(bench, pages) {
    this.bench = bench;
    this.pages = pages;
    this.bar = el("div", { class: "s-tabs", role: "tablist", "aria-label": "Views" });
    this.panels = el("div", { class: "s-panels" });
    for (const page of pages) {
      page.tab = button(page.name, () => bench.open(page.key), { role: "tab", id: `s-tab-${page.key}`, "aria-controls": `s-panel-${page.key}` });
      page.bare = el("p", { class: "s-muted", hidden: true });
      page.panel = el("div", { role: "tabpanel", tabindex: "-1", id: `s-panel-${page.key}`, "aria-labelledby": `s-tab-${page.key}`, hidden: true }, page.view.node, page.bare);
      this.bar.append(page.tab);
      this.panels.append(page.panel);
    }
    this.bar.addEventListener("keydown", (event) => this.key(event));
    this.node = el("section", { class: "s-views", "aria-label": "Inside the search" }, this.bar, this.panels);
  }

  key(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const at = this.pages.findIndex((page) => page.key === this.bench.state.view.tab);
    const next = this.pages[(at + move + this.pages.length) % this.pages.length];
    this.bench.open(next.key);
    next.tab.focus();
  }

  shown() {
    return this.pages.find((page) => page.key === this.bench.state.view.tab);
  }

  state() {
    for (const page of this.pages) {
      const on = page === this.shown();
      page.panel.hidden = !on;
      page.tab.setAttribute("aria-selected", String(on));
      page.tab.setAttribute("tabindex", on ? "0" : "-1");
    }
  }

  // Where one column has failed, the other is drawn. Where both have, an earlier drawing fades.
  answer() {
    const { bench } = this;
    const page = this.shown();
    const columns = ["A", "B"].map((side) => bench.columns[side]);
    const failed = columns.every((column) => column && column.error);
    const side = this.side(page);
    const able = columns.every(Boolean) && bench.has(side);
    if (able) this.draw(page);
    const bare = !able && columns.some((column) => column && column.error) && !(failed && page.drawn);
    this.panels.classList.toggle("s-faded", failed && !bare);
    page.view.node.hidden = bare;
    page.bare.hidden = !bare;
    patch(page.bare, bare ? this.why(page, side) : null);
  }

  busy({ overdue }) {
    this.panels.classList.toggle("s-waiting", overdue.includes(this.side(this.shown())));
  }

  /** The column that a page draws. */
  side(page) {
    return page.whose ? this.bench.state.view[page.whose] : this.bench.shownIn("tree");
  }

  why(page, side) {
    const { bench } = this;
    const other = side === "A" ? "B" : "A";
    if (!bench.has(other)) return "There is nothing to draw until a column has an answer.";
    return [`Column ${side} has no answer. `, button(`Look at ${other}`, () => bench.look({ [page.whose]: other }), { class: "s-quiet" })];
  }

  draw(page) {
    page.view.answer();
    page.drawn = true;
  }

  view() {
    this.answer();
  }

  light() {
    const { view, drawn } = this.shown();
    if (view.light && drawn) view.light();
  }
}

// Sentences elsewhere on the page are highlighted on hover.
class LightView {
  constructor(bench) {
    this.bench = bench;
  }

  light() {
    const { root } = this.bench;
    const sources = root.querySelectorAll(".s-source-line [data-source]");
    const where = this.bench.hover && this.bench.hover.end === "target" ? this.bench.hover.side : "A";
    sources.forEach((node) => this.paint(node, Math.max(...node.dataset.source.split(" ").map((index) => this.bench.brightness(where, "source", Number(index))))));
    for (const side of ["A", "B"]) {
      root.querySelectorAll(`#s-column-${side.toLowerCase()} [data-target]`).forEach((node) =>
        this.paint(node, Math.max(...node.dataset.target.split(" ").map((index) => this.bench.brightness(side, "target", Number(index))))));
    }
  }

  paint(node, share) {
    node.classList.toggle("s-lit", share > 0.08);
    if (share > 0.08) node.style.setProperty("--lit", `${Math.round(share * 100)}%`);
  }
}

function viewsOf(bench) {
  const { task } = bench.setup;
  const tree = { key: "tree", name: "Search tree", view: new TreePanel(bench) };
  const gates = { key: "gates", name: "Gates", view: new GatesPanel(bench) };
  if (task === "complete") return [{ key: "text", name: "Inside the text", view: new TextPanel(bench), whose: "coloured" }, tree, gates];
  const looks = task === "caption" ? { name: "Where it looks", view: new OverlayPanel(bench) } : { name: "Alignment", view: new AlignmentPanel(bench) };
  return [tree, { key: "alignment", ...looks }, gates, { key: "attention", name: "Attention on or off", view: new AttentionPanel(bench) }];
}

class ActionsView {
  constructor(bench) {
    this.bench = bench;
    this.node = el("div", { class: "s-actions s-between" });
  }

  state() {
    const { bench } = this;
    const able = bench.hasAttention(columnOf(bench.state, "B").checkpoint);
    const off = tipFor(button("Switch attention off in B", () => able && bench.attentionOff(), { "aria-disabled": String(!able) }), () => ["Switch attention off in B", "The same model trained without attention, or, where there is none, this one with attention dimmed to nothing.", searchOfA(bench)]);
    patch(this.node, button("Swap A and B", () => bench.swap()), button("Copy A to B", () => bench.copyToB()), bench.setup.task === "complete" ? null : off, button("Reset the page", () => bench.reset()));
  }
}

// Parts of a link that could not be used.
class NotesView {
  constructor(bench) {
    this.bench = bench;
    this.node = el("div", {});
  }

  state() {
    const { notes, links } = this.bench;
    const looks = (links || []).map(([name, href]) => [" ", el("a", { href }, `Look at ${name}`)]);
    patch(this.node, notes.length ? el("p", { class: "s-message s-note", role: "alert" }, notes.join(" "), looks) : null);
  }
}

// Skip links for the keyboard: to the outputs and to each view, visible on focus.
function skipLinks(bench, pages, columns) {
  const jump = (name, target, before = () => {}) => el("a", { href: `#${target.id}`, on: { click: (event) => {
    event.preventDefault(); // the fragment is the state's
    before();
    target.focus();
  } } }, name);
  const [output] = columns.map((column) => column.node);
  output.setAttribute("tabindex", "-1");
  return el("nav", { class: "s-skip", "aria-label": "Skip to" },
    jump("Skip to the outputs", output), pages.map((page) => jump(`Skip to ${page.name}`, page.panel, () => bench.open(page.key))));
}

export function mountWorkbench(root, first, trigger, look, line) {
  const { setup, answer } = first;
  const bench = new Bench(setup, trigger, look, line);
  bench.root = root;
  const tour = new TourView(bench);
  const notes = new NotesView(bench);
  const columns = [new ColumnView(bench, "A"), new ColumnView(bench, "B")];
  const input = setup.task === "caption" ? new PhotoView(bench) : new InputView(bench);
  const findings = new FindingView(bench);
  const saving = new SavePanel(bench);
  const actions = new ActionsView(bench);
  const steps = new StepsView(bench);
  const tabs = new Tabs(bench, viewsOf(bench));
  [notes, input, findings, ...columns, actions, steps, tabs, new LightView(bench), saving, tour].forEach((view) => bench.listen(view));
  root.append(
    skipLinks(bench, tabs.pages, columns), notes.node, tour.node, input.node, findings.node,
    el("div", { class: "s-columns" }, columns.map((column) => column.node)), el("div", { class: "s-doing" }, actions.node, steps.node), tabs.node, saving.node, tour.ring, tour.bar);
  onThemeChange(debounce(() => tabs.answer(), 30));
  addEventListener("resize", debounce(() => tabs.answer(), 150));
  addEventListener("popstate", () => bench.follow(location));
  bench.start(location, answer);
  return bench;
}
