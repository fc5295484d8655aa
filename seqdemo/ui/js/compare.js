// One column of the comparison: its controls, its output with the differing words marked, its numbers, its n-best.

const SHORT_STRIP = 45; // more numbers than this are shown on demand

class ColumnView {
  constructor(bench, side) {
    this.bench = bench;
    this.side = side;
    this.controls = el("div", { class: "s-controls" });
    this.edits = el("div", { class: "s-edits" });
    this.message = el("p", { class: "s-message", role: "alert", hidden: true });
    this.output = el("div", { class: "s-output", "aria-live": "polite" });
    this.price = el("p", { class: "s-price", hidden: true });
    this.numbers = el("div", { class: "s-numbers" });
    this.nbest = el("div", { class: "s-nbest" });
    this.node = el("section", { class: `s-column s-side-${side.toLowerCase()}`, "aria-label": `Column ${side}`, id: `s-column-${side.toLowerCase()}` },
      this.controls, this.edits, this.message, this.output, this.price, this.numbers, this.nbest);
    this.open = false;
  }

  get spec() {
    return this.bench.state.columns[this.side];
  }

  showControls() {
    const { setup } = this.bench;
    const { spec, side } = this;
    const set = (name, value) => this.bench.setOption(side, name, value);
    const known = setup.checkpoints.find((item) => item.name === spec.checkpoint) || {};
    const model = tipFor(el("select", { "aria-label": `Model of column ${side}`, class: "s-model", on: { change: (event) => this.bench.setCheckpoint(side, event.target.value) } },
      setup.checkpoints.map((item) => el("option", { value: item.name, selected: item.name === spec.checkpoint }, item.title))), () => [known.title || spec.checkpoint, known.about || "", spec.checkpoint]);
    const strategy = tipFor(el("select", { "aria-label": `Strategy of column ${side}`, class: "s-strategy", "data-option": "strategy", on: { change: (event) => set("strategy", event.target.value) } },
      setup.strategies.map(([key, label]) => el("option", { value: key, selected: key === spec.options.strategy }, label))), () => [setup.strategies.find(([key]) => key === spec.options.strategy)[1], TERMS[spec.options.strategy === "sample" ? "sampling" : spec.options.strategy]]);
    const front = optionsFor(setup, spec.options.strategy, spec.options).filter((field) => field.front).map((field) => optionField(field, spec.options[field.name], set, side));
    const redraw = spec.options.strategy === "sample" ? button("Draw again", () => set("seed", (spec.options.seed + 1) % 2147483647), { class: "s-quiet" }) : null;
    const changed = changedOptions(setup, spec);
    const details = el("details", { class: "s-more", open: this.open, on: { toggle: (event) => (this.open = event.target.open) } },
      el("summary", {}, changed ? `Options (${changed} changed)` : "Options"), optionsPanel(setup, spec, set, side),
      button("Reset this column", () => this.bench.resetColumn(side), { class: "s-quiet" }));
    clear(this.controls).append(
      el("div", { class: "s-controls-line" }, el("span", { class: "s-letter", "aria-hidden": "true" }, side), strategy, ...front, redraw, model, details));
    this.showEdits();
  }

  showEdits() {
    const { spec, side } = this;
    clear(this.edits);
    this.edits.hidden = !spec.edits.length;
    spec.edits.forEach((edit, i) => {
      const text = this.bench.editText(edit);
      this.edits.append(el("span", { class: "s-edit" }, text, button("×", () => this.bench.removeEdit(side, i), { "aria-label": `Remove: ${text}`, class: "s-x" })));
    });
  }

  error(text) {
    this.message.hidden = !text;
    this.message.textContent = text || "";
  }

  // What re-ranking and selection change; nothing here asks the server.
  show() {
    const column = this.bench.columns[this.side];
    if (!column) return;
    const { kind } = column;
    const chosen = this.bench.chosen(this.side);
    this.error(column.error);
    this.node.classList.toggle("s-old", Boolean(column.error)); // what still stands there is the answer to the question before
    const [marksA, marksB] = this.bench.differences();
    const differs = this.side === "A" ? marksA : marksB;
    const list = units(chosen.pieces, kind.target);
    clear(this.output).append(this.line(list, differs));
    this.output.setAttribute("dir", isRightToLeft(list.map((unit) => unit.text).join("")) ? "rtl" : "ltr");
    if (!chosen.finished) this.output.append(tipFor(el("span", { class: "s-cut", tabindex: "0" }, " …"), ["not finished", "This prefix has no <eos>: the selected node, or the length limit, ends it here."]));
    this.showPrice(column);
    this.showNumbers(column, chosen);
    this.showNbest(column);
  }

  line(list, differs) {
    const line = el("span", { class: this.bench.setup.task === "complete" ? "s-line s-verbatim" : "s-line" });
    list.forEach((unit, u) => {
      const word = el("span", { class: differs.has(u) ? "s-word s-differs" : "s-word" });
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

  showPrice(column) {
    const text = this.bench.priceText(column);
    const proof = this.bench.certificateText(column);
    this.price.hidden = !text && !proof;
    this.price.textContent = [text, proof].filter(Boolean).join(" ");
  }

  showNumbers(column, chosen) {
    const options = this.spec.options;
    const norm = penalty(chosen.logps.length, options);
    const score = chosen.score === undefined ? chosen.total / norm : chosen.score;
    const divided = options.length_norm === "none" ? "(length normalisation off)" : `(÷ ${norm.toFixed(2)})`;
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
    clear(this.numbers).append(
      el("dl", { class: "s-scores" },
        el("div", {}, el("dt", {}, term("log probability")), el("dd", { "data-total": chosen.total }, signed(chosen.total, 3))),
        el("div", {}, el("dt", {}, term("normalised score")), el("dd", {}, signed(score, 3), el("span", { class: "s-muted" }, ` ${divided}`)))),
      chosen.pieces.length <= SHORT_STRIP ? strip : this.folded(strip, `The log probabilities of all ${chosen.pieces.length} ${column.kind.target === "characters" ? "letters" : "words"}`));
  }

  folded(strip, title) {
    return el("details", { class: "s-long-strip", open: this.stripOpen, on: { toggle: (event) => (this.stripOpen = event.target.open) } }, el("summary", {}, title), strip);
  }

  tokenLines(column, chosen, t) {
    const { trace } = column;
    const same = trace && trace.asked.slice(0, t + 1).join() === chosen.tokens.slice(0, t + 1).join();
    const at = trace ? t + trace.tokens.length - trace.asked.length : t;
    const tops = same && trace.top[at] ? trace.top[at].map(([piece, logp]) => `${probability(logp)}  ${pieceName(piece, column.kind.target)}`) : [];
    const sum = chosen.logps.slice(0, t + 1).reduce((a, b) => a + b, 0);
    const end = isEnd(chosen.pieces[t]) ? "the end: here the model stops of its own accord" : "";
    return [`${pieceName(chosen.pieces[t], column.kind.target)}: probability ${probability(chosen.logps[t])}`, `log probability ${signed(chosen.logps[t])}, sum so far ${signed(sum)}`, end, tops.length ? "likeliest here:" : "", ...tops];
  }

  showNbest(column) {
    const open = this.nbest.querySelector("details") ? this.nbest.querySelector("details").open : false;
    const chosen = this.bench.chosen(this.side);
    const rows = column.hypotheses.map((item, i) => {
      const current = item.tokens.join() === chosen.tokens.join();
      return el("tr", { class: current ? "s-current" : "" }, el("td", {}, String(i + 1)),
        el("td", {}, button(visible(item.text) || "(nothing)", () => this.bench.select(this.side, item.tokens, item.node), { class: "s-pick", dir: "auto", "aria-pressed": String(current) })),
        el("td", { class: "s-number" }, signed(item.total, 3)), el("td", { class: "s-number" }, signed(item.score, 3)));
    });
    const count = column.hypotheses.length;
    clear(this.nbest).append(el("details", { open },
      el("summary", {}, count === 1 ? "The only output of this search" : `The ${count} best outputs`),
      el("div", { class: "s-table-wrap" }, el("table", { class: "s-table" },
        el("thead", {}, el("tr", {}, ["", "output", "log probability", "normalised score"].map((head) => el("th", { scope: "col" }, head || el("span", { class: "s-hidden" }, "rank"))))),
        el("tbody", {}, rows)))));
  }
}
