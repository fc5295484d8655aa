// The task page: input, finding, two columns, and the views below them.

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
    this.examples = exampleList(bench, (example) => tipFor(
      button(example.label || example.text, () => bench.useExample(example), { class: "s-example", dir: "auto" }), () => [example.title || example.text, example.shows]));
    this.node = el("section", { class: "s-input", "aria-label": "Input" },
      el("div", { class: "s-input-main" },
        el("div", { class: "s-input-head" }, el("label", { for: "s-input" }, setup.words.input), this.language ? el("span", { class: "s-language" }, el("label", { for: "s-language" }, "into"), this.language) : null,
          setup.task === "complete" && setup.checkpoints.length > 1 ? el("span", { class: "s-language" }, "by a model that has read", this.models) : null),
        this.area, this.over, this.reads, this.far),
      el("div", { class: "s-input-side" }, el("h2", { class: "s-small-head" }, "Try"), this.examples, this.shows));
  }

  typed() {
    const text = this.area.value;
    const { characters } = this.bench.setup.limits;
    const long = [...text].length > characters;
    this.over.hidden = !long;
    this.over.textContent = long ? `That is ${[...text].length.toLocaleString("en")} characters; this page takes up to ${characters.toLocaleString("en")}. Shorten it and it decodes again.` : "";
    if (long) return;
    this.bench.setText(text);
  }

  state() {
    const { state, setup } = this.bench;
    if (this.area.value !== state.text) this.area.value = state.text;
    this.over.hidden = true;
    if (this.language) this.language.value = state.language || setup.languages[0][0];
    this.changed();
  }

  // An example stays marked, with what it shows, only while its question stands.
  changed() {
    const { bench } = this;
    const example = bench.currentExample();
    this.area.classList.toggle("s-code-input", bench.setup.task === "complete" && /^ |\n/m.test(bench.state.text));
    this.shows.textContent = example ? example.shows : "";
    this.examples.press(example);
    const { A, B } = bench.state.columns;
    clear(this.models).append(...bench.setup.checkpoints.map((card) => button(card.read || card.title, () => bench.setModel(card.name), { "aria-pressed": String(A.checkpoint === card.name && B.checkpoint === card.name) })));
  }

  answer() {
    const column = this.bench.columns.A || this.bench.columns.B;
    if (!column) return;
    const { source, kind } = column;
    clear(this.reads).append(el("span", { class: "s-reads-label" }, term("token", "The model reads"), " "));
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
    this.reads.append(line);
    if (source.known.some((flag) => !flag)) this.reads.append(el("span", { class: "s-muted" }, " (underlined: never seen in training)"));
    this.far.hidden = !column.far;
    this.far.textContent = column.far || "";
  }
}

class FindingView {
  constructor(bench) {
    this.bench = bench;
    this.text = el("p", { class: "s-finding", role: "status" });
    this.state_ = el("div", { class: "s-busy", hidden: true });
    this.stop = button("Stop", () => bench.asker.giveUp(), { class: "s-stop" });
    this.node = el("div", { class: "s-finding-row" }, this.text, this.state_);
  }

  answer() {
    const { columns } = this.bench;
    if (!columns.A || !columns.B) {
      if (this.bench.firstError) this.text.textContent = this.bench.firstError;
      return;
    }
    if (columns.A.error || columns.B.error) {
      this.text.textContent = "There is nothing to compare until both columns have an answer.";
      return;
    }
    const parts = finding(this.bench.side("A"), this.bench.side("B"), this.bench.setup.task);
    clear(this.text).append(...parts.map((part) => this.part(part)));
  }

  // What is quoted stands in a box of its own: shaped together with the quotation mark, a lone combining sign falls apart.
  part(part) {
    if (typeof part === "string") return part;
    if (part.mark === "strong") return el("strong", {}, part.text);
    const [, before, inner, after] = part.text.match(/^(“?)([^]*?)(”?)$/);
    return el("bdi", { class: `s-ink-${part.mark.toLowerCase()}`, dir: "ltr" }, before, el("bdi", { class: "s-apart" }, inner), after);
  }

  busy(state) {
    document.querySelectorAll(".s-column").forEach((node) => node.classList.toggle("s-waiting", Boolean(state.slow || state.long)));
    this.state_.hidden = !(state.busy && (state.long || state.slow)) && !state.stopped;
    const progress = state.progress ? `${state.progress}` : state.long ? "Searching…" : "Waiting for the model; others are being served too…";
    clear(this.state_).append(el("span", { role: "status" }, state.stopped ? "Stopped; the results shown are the last complete ones." : progress), ...(state.long ? [this.stop] : []));
  }
}

class Tabs {
  constructor(bench, pages) {
    this.bench = bench;
    this.pages = pages;
    this.bar = el("div", { class: "s-tabs", role: "tablist", "aria-label": "Views" });
    this.panels = el("div", { class: "s-panels" });
    for (const page of pages) {
      page.tab = button(page.name, () => this.open(page.key), { role: "tab", id: `s-tab-${page.key}`, "aria-controls": `s-panel-${page.key}` });
      page.panel = el("div", { role: "tabpanel", id: `s-panel-${page.key}`, "aria-labelledby": `s-tab-${page.key}`, hidden: true }, page.view.node);
      this.bar.append(page.tab);
      this.panels.append(page.panel);
    }
    this.bar.addEventListener("keydown", (event) => this.key(event));
    this.node = el("section", { class: "s-views", "aria-label": "Inside the search" }, this.bar, this.panels);
  }

  key(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const at = this.pages.findIndex((page) => page.key === this.bench.state.tab);
    const next = this.pages[(at + move + this.pages.length) % this.pages.length];
    this.open(next.key);
    next.tab.focus();
  }

  open(key) {
    this.bench.state.tab = key;
    this.state();
    this.answer();
    this.bench.save();
  }

  state() {
    for (const page of this.pages) {
      const on = page.key === this.bench.state.tab;
      page.panel.hidden = !on;
      page.tab.setAttribute("aria-selected", String(on));
      page.tab.setAttribute("tabindex", on ? "0" : "-1");
      if (on && page.view.state) page.view.state();
    }
  }

  answer() {
    const page = this.pages.find((item) => item.key === this.bench.state.tab);
    const { A, B } = this.bench.columns;
    this.panels.classList.toggle("s-faded", Boolean(A && A.error && B && B.error));
    if (page && A && B) page.view.answer();
  }

  light() {
    const page = this.pages.find((item) => item.key === this.bench.state.tab);
    if (page && page.view.light) page.view.light();
  }
}

// Sentences elsewhere on the page light up with the hover.
class LightView {
  constructor(bench, root) {
    this.bench = bench;
    this.root = root;
  }

  light() {
    const sources = this.root.querySelectorAll(".s-source-line [data-source]");
    const where = this.bench.hover && this.bench.hover.end === "target" ? this.bench.hover.side : "A";
    sources.forEach((node) => this.paint(node, Math.max(...node.dataset.source.split(" ").map((index) => this.bench.brightness(where, "source", Number(index))))));
    for (const side of ["A", "B"]) {
      this.root.querySelectorAll(`#s-column-${side.toLowerCase()} [data-target]`).forEach((node) =>
        this.paint(node, Math.max(...node.dataset.target.split(" ").map((index) => this.bench.brightness(side, "target", Number(index))))));
    }
  }

  paint(node, share) {
    node.classList.toggle("s-lit", share > 0.08);
    if (share > 0.08) node.style.setProperty("--lit", `${Math.round(share * 100)}%`);
  }
}

function mountWorkbench(root, first, trigger) {
  const { setup, answer } = first;
  const bench = new Bench(setup, trigger);
  const columns = { A: new ColumnView(bench, "A"), B: new ColumnView(bench, "B") };
  const input = setup.task === "caption" ? new PhotoView(bench) : new InputView(bench);
  const findings = new FindingView(bench);
  const saving = new SavePanel(bench);
  const writes = setup.task === "complete";
  const tabs = new Tabs(bench, [
    ...(writes ? [{ key: "text", name: "Inside the text", view: new TextPanel(bench) }] : []),
    { key: "tree", name: "Search tree", view: new TreePanel(bench) },
    ...(writes ? [] : [
    { key: "alignment", name: setup.task === "caption" ? "Where it looks" : "Alignment", view: setup.task === "caption" ? new OverlayPanel(bench) : new AlignmentPanel(bench) }]),
    { key: "gates", name: "Gates", view: new GatesPanel(bench) },
    ...(writes ? [] : [{ key: "attention", name: "Attention on or off", view: new AttentionPanel(bench) }]),
  ]);
  const hasTwin = () => bench.hasAttention(bench.state.columns.B.checkpoint);
  const off = tipFor(button("Switch attention off in B", () => bench.attentionOff()), ["Switch attention off in B", "The same model trained without attention, or, where there is none, this one with attention dimmed to nothing."]);
  const actions = el("div", { class: "s-actions s-between" },
    button("Swap A and B", () => bench.swap()), button("Copy A to B", () => bench.copyToB()), writes ? null : off, button("Reset the page", () => bench.reset()));
  bench.listen({
    controls: (side) => (columns[side].showControls(), (off.disabled = !hasTwin())),
    state: () => (columns.A.showControls(), columns.B.showControls(), (off.disabled = !hasTwin())),
    answer: () => {
      for (const side of ["A", "B"]) if (bench.columns[side]) columns[side].show();
      for (const side of ["A", "B"]) columns[side].showEdits();
    },
  });
  [input, findings, tabs, new LightView(bench, root), saving].forEach((view) => bench.listen(view));
  root.append(
    input.node, findings.node,
    el("div", { class: "s-columns" }, columns.A.node, columns.B.node), actions, tabs.node, saving.node);
  onThemeChange(debounce(() => tabs.answer(), 30));
  addEventListener("resize", debounce(() => tabs.answer(), 150));
  bench.start(new URLSearchParams(location.search), answer);
  if (bench.inNotes.length) root.prepend(el("p", { class: "s-message", role: "alert" }, bench.inNotes.join(" "),
    bench.absent.map(([name, href]) => [" ", el("a", { href }, `Look at ${name}`)])));
  return bench;
}
