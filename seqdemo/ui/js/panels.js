// The views below the columns. Each says in one sentence what it shows; only the open one draws.

function sideSwitch(bench, current, onPick, label) {
  const group = el("div", { class: "s-switch", role: "group", "aria-label": label });
  for (const side of ["A", "B"]) group.append(button(`${side}: ${strategyName((bench.columns[side] || { spec: bench.state.columns[side] }).spec.options)}`, () => onPick(side), { "aria-pressed": String(side === current), class: `s-side-${side.toLowerCase()}` }));
  return group;
}

class TreePanel {
  constructor(bench) {
    this.bench = bench;
    this.view = new TreeView((row) => bench.selectNode(bench.state.treeSide, row), (step) => bench.setHover(step === null ? null : { side: bench.state.treeSide, end: "target", index: step }));
    this.bar = el("div", { class: "s-bar" });
    this.card = el("div", { class: "s-card" });
    this.tools = figureTools("search-tree", () => ({ node: this.view.node }), () => this.view.rows());
    this.node = el("div", {},
      this.bar, this.view.scroller,
      el("p", { class: "s-says" }, "Every box is a step the search really considered, left to right: ", term("kept"), " boxes are solid, ", term("pruned"), " ones dashed, ", term("finished"), " ones ticked. The number is the probability of that token. Click a box and everything follows it."),
      this.card, equations("tree"), this.tools);
  }

  answer() {
    const { bench } = this;
    const side = bench.state.treeSide;
    const other = side === "A" ? "B" : "A";
    const column = bench.columns[side];
    const chosen = bench.chosen(side);
    const path = walk(column.tree, chosen.tokens);
    const picked = bench.node && bench.node.side === side && walk(column.tree, bench.node.path).length === bench.node.path.length ? bench.node : null;
    const marks = new Map();
    let partAt = -1;
    if (column.spec.checkpoint === bench.columns[other].spec.checkpoint) {
      const theirs = bench.chosen(other).tokens;
      const own = new Set(path);
      const trail = walk(column.tree, theirs);
      trail.forEach((row) => !own.has(row) && marks.set(row, other));
      const at = firstDifference(chosen.tokens, theirs);
      if (at < Math.max(chosen.tokens.length, theirs.length)) partAt = at;
    }
    this.bars(side, column);
    this.view.show({
      tree: column.tree, kind: column.kind.target, side, marks, partAt,
      selected: path.length ? path[path.length - 1] : -1,
      ends: column.hypotheses.slice(0, 8).map((item) => item.node).filter((node) => node >= 0),
      title: `Search tree of column ${side}, ${strategyName(column.spec.options)}`,
    });
    if (this.lastKey && this.lastKey !== column) requestAnimationFrame(() => (this.view.scroller.scrollLeft = 0)); // at once it would force a layout
    this.lastKey = column;
    this.showCard(side, column, picked);
    this.tools.refresh();
  }

  bars(side, column) {
    const { bench } = this;
    const pick = (next) => {
      bench.state.treeSide = next;
      this.answer();
      bench.save();
    };
    const pruned = el("input", { type: "checkbox", id: "s-pruned", on: { change: (event) => ((this.view.pruned = event.target.checked), this.view.show(this.view.model)) } });
    pruned.checked = this.view.pruned;
    const count = column.tree.fate.reduce((sum, fate) => sum + (fate === PRUNED), 0);
    const last = Math.max(0, column.tree.steps - 1);
    const label = el("output", { for: "s-time" });
    const tell = () => (label.textContent = this.view.until === null || this.view.until >= last ? `all ${last + 1} steps` : `step ${this.view.until + 1} of ${last + 1}`);
    const slider = el("input", { type: "range", id: "s-time", min: 0, max: last, value: this.view.until === null ? last : this.view.until, on: { input: (event) => {
      this.view.until = Number(event.target.value) >= last ? null : Number(event.target.value);
      tell();
      this.view.show(this.view.model);
    } } });
    if (this.lastKey !== column) {
      this.view.until = null;
      slider.value = last;
    }
    tell();
    clear(this.bar).append(
      sideSwitch(bench, side, pick, "Whose tree"),
      el("span", { class: "s-inline" }, el("label", { for: "s-time" }, "Time"), slider, label),
      el("span", { class: "s-inline" }, pruned, el("label", { for: "s-pruned" }, `show the ${count.toLocaleString("en")} pruned`)));
  }

  showCard(side, column, picked) {
    clear(this.card);
    if (!picked) {
      this.card.append(el("p", { class: "s-muted" }, "Pick a box to force it or forbid it in column B, and see what that costs."));
      return;
    }
    const { tree } = column;
    const { row, path } = picked;
    const pieces = path.map((token) => tree.pieces.get(token));
    const text = plainText(pieces, column.kind.target);
    this.card.append(
      el("p", {}, el("bdi", { class: "s-quote" }, `“${text}${pieces.some(isEnd) ? "”, ended" : "…”"}`), " ", this.view.lines(row).slice(1).join("; "), "."),
      el("div", { class: "s-actions" },
        tipFor(button("Take this", () => this.bench.editPath("Force", path, pieces), { class: "s-primary" }), ["Take this", "B decodes again and must start with these words. Its price is what the untouched model thinks of the new output."]),
        tipFor(button("Never this", () => this.bench.editPath("Ban", path, pieces)), ["Never this", "B decodes again and may not start with exactly these words."])));
  }
}

class AlignmentPanel {
  constructor(bench) {
    this.bench = bench;
    this.views = {};
    this.columns = {};
    const figures = ["A", "B"].map((side) => {
      const view = new AlignmentView((hover) => bench.setHover(hover ? { side, end: hover.side, index: hover.index } : null));
      this.views[side] = view;
      const head = el("h3", { class: `s-figure-head s-ink-${side.toLowerCase()}` });
      const none = el("p", { class: "s-muted" });
      const tools = figureTools(`alignment-${side}`, () => ({ width: view.width, height: view.height, draw: (painter) => view.draw(painter) }), () => view.rows());
      this.columns[side] = { head, none, tools, node: el("div", { class: "s-half" }, head, none, view.node, tools) };
      return this.columns[side].node;
    });
    this.scale = el("div", { class: "s-bar" });
    this.node = el("div", {},
      el("p", { class: "s-says" }, "Each row is a piece the model wrote, each column a piece it read; the darker the cell, the more ", term("attention"), " it paid there while writing. Point at a word anywhere and its partners light up."),
      this.scale, el("div", { class: "s-halves" }, figures), equations("alignment"));
  }

  answer() {
    clear(this.scale).append(legend("weights", "0", "1", "Attention from 0 to 1, the same scale in A and B"), el("span", { class: "s-muted" }, "the same scale in A and B"));
    for (const side of ["A", "B"]) {
      const column = this.bench.columns[side];
      const { head, none, tools, node } = this.columns[side];
      const view = this.views[side];
      head.textContent = `${side}: ${strategyName(column.spec.options)}`;
      const has = Boolean(column.trace.attention);
      none.textContent = has ? "" : "This model has no attention: it squeezes the whole input into one vector, so there is nothing to align.";
      view.node.hidden = tools.hidden = !has;
      if (!has) continue;
      view.show({
        weights: column.trace.attention, source: column.trace.source, target: column.trace.pieces, sourceKind: column.kind.source, targetKind: column.kind.target,
        room: Math.max(260, node.clientWidth || 480), title: `Attention of column ${side}, target pieces down, source pieces across`,
      });
      tools.refresh();
    }
  }

  light() {
    for (const side of ["A", "B"]) {
      const column = this.bench.columns[side];
      if (!column || !column.trace.attention) continue;
      this.views[side].light(this.bench.hover && { source: (j) => this.bench.brightness(side, "source", j), target: (t) => this.bench.brightness(side, "target", t) });
    }
  }
}

class AttentionPanel {
  constructor(bench) {
    this.bench = bench;
    this.twin = el("div", { class: "s-choice" });
    this.dimmer = el("div", { class: "s-choice" });
    this.curves = el("div", { class: "s-curves" });
    this.node = el("div", {},
      el("p", { class: "s-says" }, "“Attention off” can mean two things. They answer different questions, so they stand apart here."),
      el("div", { class: "s-halves" }, this.twin, this.dimmer), this.curves);
  }

  answer() {
    const { bench } = this;
    const spec = bench.state.columns.B;
    const known = bench.setup.checkpoints.find((item) => item.name === spec.checkpoint) || {};
    const twin = bench.setup.checkpoints.find((item) => item.name === known.without);
    const partner = bench.setup.checkpoints.find((item) => item.without === spec.checkpoint);
    clear(this.twin).append(el("h3", {}, "1. Another model, trained without attention"),
      el("p", {}, "It had to learn to put the whole input into one vector. What it lacks, it never learned to need: this shows what attention is worth."));
    if (twin) this.twin.append(button(`Use ${twin.title} in B`, () => bench.setCheckpoint("B", twin.name), { class: "s-primary" }));
    else if (partner) this.twin.append(el("p", { class: "s-muted" }, `B uses ${known.title}, which has no attention.`), button(`Back to ${partner.title}`, () => bench.setCheckpoint("B", partner.name)));
    else this.twin.append(el("p", { class: "s-muted" }, "No model trained without attention is loaded for this one."));
    this.showDimmer(known, spec);
    this.showCurves(known, twin, partner);
  }

  showDimmer(known, spec) {
    if (this.dimming) return;
    clear(this.dimmer).append(el("h3", {}, "2. This model, with its attention dimmed"),
      el("p", {}, "Its weights are blended away from what it wants to look at. It was never trained for that: this shows how much it leans on attention."));
    if (!known.attention) {
      this.dimmer.append(el("p", { class: "s-muted" }, "The model in B has no attention to dim."));
      return;
    }
    const edit = spec.edits.find((item) => item.kind === "AttentionBlend") || { factor: 0, towards: "uniform" };
    const label = el("output", { for: "s-dim" }, `${Math.round(edit.factor * 100)} %`);
    const towards = el("select", { id: "s-towards" }, [["uniform", "towards uniform"], ["last", "towards the last state"], ["nothing", "towards nothing"]].map(([key, name]) => el("option", { value: key, selected: key === edit.towards }, name)));
    const slider = el("input", { type: "range", id: "s-dim", min: 0, max: 1, step: 0.05, value: edit.factor });
    const change = () => {
      label.textContent = `${Math.round(slider.value * 100)} %`;
      this.dimming = true;
      this.bench.dim(Number(slider.value), towards.value);
    };
    slider.addEventListener("input", change);
    slider.addEventListener("change", () => (this.dimming = false));
    slider.addEventListener("blur", () => (this.dimming = false));
    towards.addEventListener("change", () => (change(), (this.dimming = false)));
    this.dimmer.append(el("div", { class: "s-inline" }, el("label", { for: "s-dim" }, "Dim B by"), slider, label), el("div", { class: "s-inline" }, el("label", { for: "s-towards" }, "Blend"), towards), equations("dimmer"));
  }

  showCurves(known, twin, partner) {
    const pair = [known, twin || partner].filter(Boolean);
    const curves = pair.map((item) => item.curves || []);
    const { language } = this.bench.state;
    const test = ((curves[0] || []).find((curve) => curve.test === language) || (curves[0] || [])[0] || {}).test;
    const lines = pair.map((item, i) => ({ name: item.title, curve: curves[i].find((curve) => curve.test === test) })).filter((item) => item.curve && item.curve.points.length);
    const key = [test, ...lines.map((line) => line.name)].join();
    if (this.curveKey === key) return;
    this.curveKey = key;
    clear(this.curves);
    if (!lines.length) {
      const why = this.bench.setup.task === "caption"
        ? "Photographs have no length, so there is no curve of quality by length. The measured quality of each model is on the Models page."
        : "Quality by length comes with a model's metrics; neither of these models has any.";
      this.curves.append(el("p", { class: "s-muted" }, why));
      return;
    }
    const view = new CurvesView(lines, Math.max(300, (this.node.clientWidth || 800) - 20));
    const whose = lines.length > 1 ? "What the two models score" : `What ${lines[0].name} scores`;
    this.curves.append(el("details", { open: true }, el("summary", {}, "Measured quality by input length"),
      el("p", { class: "s-says" }, `${whose} on inputs kept out of training (${lines[0].curve.title || test}), by how long the input is. One vector has a fixed size; attention reads as much as there is.`), view.node, view.tools));
  }
}

class SavePanel {
  constructor(bench) {
    this.bench = bench;
    this.said = el("span", { class: "s-muted", role: "status" });
    this.code = el("div", { class: "s-code", hidden: true });
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
        button("n-best as CSV", () => saveFile("n-best.csv", nbestCsv(bench.columns), "text/csv")),
        button("As Python", () => this.python(), { "aria-expanded": "false" }), this.said),
      this.code);
  }

  link() {
    this.bench.save();
    copyText(location.href, () => this.say(this.bench.state.photo ? "Copied. Your own photograph is not in the link; the example photographs are." : "Copied: this link restores exactly what you see."));
  }

  trace() {
    const { state, setup, columns } = this.bench;
    const content = Object.fromEntries(Object.entries(columns).map(([side, { spec, source, hypotheses, trace }]) => [side, {
      ...spec, source: source.pieces, hypotheses, trace: { source: trace.source, target: trace.pieces, tokens: trace.tokens, logps: trace.logps, top: trace.top, attention: trace.attention ? rowsOf(trace.attention, trace.source.length) : null },
    }]));
    saveFile("trace.json", JSON.stringify({ task: setup.task, text: state.text, language: state.language || null, columns: content }, null, 1), "application/json");
  }

  python() {
    this.code.hidden = !this.code.hidden;
    this.answer();
  }

  answer() {
    const snippet = pythonSnippet(this.bench.state, this.bench.setup, "B", this.bench.given("B"));
    if (!this.code.hidden) clear(this.code).append(el("pre", { tabindex: "0", "aria-label": "Python code for column B" }, snippet), button("Copy", () => copyText(snippet, () => this.say("Copied."))));
  }
}

function rowsOf(values, across) {
  return Array.from({ length: values.length / across }, (_, t) => Array.from(values.slice(t * across, (t + 1) * across), (value) => Number(value.toFixed(6))));
}
