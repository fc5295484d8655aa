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
    if (partAt >= 0 && this.lastKey !== column) this.reveal(partAt);
    this.lastKey = column;
    this.showCard(side, column, picked);
    this.tools.refresh();
  }

  reveal() {
    this.view.scroller.scrollLeft = 0;
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

class GatesPanel {
  constructor(bench) {
    this.bench = bench;
    this.side = "B";
    this.part = null;
    this.order = "unit";
    this.step = 0;
    this.scatterGate = "forget";
    this.bar = el("div", { class: "s-bar" });
    this.maps = el("div", { class: "s-gates" });
    this.scatter = new SaturationView();
    this.scatterHead = el("div", { class: "s-bar" });
    this.tools = figureTools("gates", () => this.figure(), () => this.rows());
    this.scatterTools = figureTools("saturation", () => ({ width: this.scatter.size, height: this.scatter.size, draw: (painter) => this.scatter.draw(painter) }), () => this.scatter.rows());
    this.waiting = el("p", { class: "s-muted" }, "Reading the gates…");
    this.equation = el("div", {});
    this.node = el("div", {},
      el("p", { class: "s-says" }, "What every ", term("unit"), " of the network did at every step of the selected output: one row a step, one thin column a unit."),
      this.bar, this.waiting, this.maps, this.tools,
      el("h3", { class: "s-figure-head" }, "Which units act as switches"),
      el("p", { class: "s-says" }, "One ring a unit: far right, its gate is shut nearly all of the time; far up, open nearly all of the time; at the bottom left it is always in between. ", term("saturation", "What is saturation?")),
      this.scatterHead, this.scatter.node, this.scatterTools, this.equation);
  }

  state() {
    if (this.bench.columns.A && this.bench.columns.B) this.bench.needGates();
  }

  answer() {
    const column = this.bench.columns[this.side];
    const ready = Boolean(column.trace.parts && column.trace.gates_kind === "all");
    this.waiting.hidden = ready;
    if (!ready) {
      this.bench.needGates();
      return;
    }
    const parts = column.trace.parts;
    if (!parts.has(this.part)) this.part = [...parts.keys()].find((part) => part.startsWith("decoder")) || [...parts.keys()][0];
    this.bars(parts, column);
    this.draw(parts.get(this.part), column);
  }

  pieces(column) {
    const encoder = this.part.startsWith("encoder");
    const names = encoder ? column.trace.source : column.trace.pieces;
    return names.map((piece) => pieceName(piece, encoder ? column.kind.source : column.kind.target));
  }

  bars(parts, column) {
    const choose = (values, current, onPick, label) => {
      const id = newId("s-gate");
      const select = el("select", { id, on: { change: (event) => (onPick(event.target.value), this.answer()) } }, values.map(([key, name]) => el("option", { value: key, selected: String(key) === String(current) }, name)));
      return el("span", { class: "s-inline" }, el("label", { for: id }, label), select);
    };
    const orders = [["unit", "as they stand"], ["variance", "by variance"], ["saturation", "by saturation"], ["token", "by reaction to a token"]];
    const pieces = this.pieces(column);
    this.step = Math.min(this.step, pieces.length - 1);
    clear(this.bar).append(
      sideSwitch(this.bench, this.side, (side) => ((this.side = side), this.answer()), "Whose gates"),
      choose([...parts.keys()].map((part) => [part, partName(part)]), this.part, (part) => (this.part = part), "Part"),
      choose(orders, this.order, (order) => (this.order = order), "Order of units"),
      this.order === "token" ? choose(pieces.map((name, i) => [i, `${i + 1}: ${name}`]), this.step, (step) => (this.step = Number(step)), "Token") : el("span"),
      legend("weights", "0", "1", "Gates from 0 to 1"), legend("signed", "−", "+", "Signed values, white at 0"));
  }

  draw(gates, column) {
    const pieces = this.pieces(column);
    const leading = gates.get("cell") || gates.get("hidden") || [...gates.values()][0];
    const order = unitOrder(leading, this.order, this.step);
    const names = [...gates.keys()];
    if (!this.drawn || this.drawn.map((map) => map.gateName).join() !== names.join()) {
      this.drawn = names.map((name) => new GateMap(name));
      clear(this.maps).append(...this.drawn.map((map) => map.node));
    }
    const room = Math.max(280, (this.maps.clientWidth || 700) / (this.maps.clientWidth > 860 ? 2 : 1) - 26);
    const encoder = this.part.startsWith("encoder");
    const onStep = (step) => this.bench.setHover(step === null ? null : { side: this.side, end: encoder ? "source" : "target", index: step });
    this.drawn.forEach((map) => map.show(gates.get(map.gateName), pieces, order, room, onStep));
    const switches = names.filter((name) => SIGMOID.has(name));
    this.scatter.node.hidden = this.scatterTools.hidden = !switches.length;
    if (!switches.includes(this.scatterGate)) [this.scatterGate] = switches;
    clear(this.scatterHead);
    if (switches.length) {
      this.scatterHead.append(el("div", { class: "s-switch", role: "group", "aria-label": "Which gate" }, switches.map((name) => button(GATE_WORDS[name][0], () => ((this.scatterGate = name), this.answer()), { "aria-pressed": String(name === this.scatterGate) }))));
      this.scatter.show(gates.get(this.scatterGate), GATE_WORDS[this.scatterGate][0]);
    } else this.scatterHead.append(el("p", { class: "s-muted" }, "This cell has no gates, only a hidden state."));
    clear(this.equation).append(equations(gates.has("update") ? "gru" : gates.has("cell") ? "lstm" : "elman"));
    this.tools.refresh();
    this.scatterTools.refresh();
  }

  figure() {
    const gap = 34;
    const width = Math.max(...this.drawn.map((map) => map.width)) + 20;
    const height = this.drawn.reduce((sum, map) => sum + map.height + gap, 10);
    return { width, height, draw: (painter) => {
      let y = 10;
      for (const map of this.drawn) {
        painter.text(10, y + 10, GATE_WORDS[map.gateName] ? GATE_WORDS[map.gateName][0] : map.gateName, { size: 13, weight: 600, fill: css("ink") });
        const top = y + 22;
        const moved = {
          rect: (px, py, ...rest) => painter.rect(px + 10, py + top, ...rest), text: (px, py, ...rest) => painter.text(px + 10, py + top, ...rest),
          grid: (px, py, ...rest) => painter.grid(px + 10, py + top, ...rest), line: (ax, ay, bx, by, ...rest) => painter.line(ax + 10, ay + top, bx + 10, by + top, ...rest),
        };
        map.draw(moved);
        y += map.height + gap;
      }
    } };
  }

  rows() {
    const rows = [];
    for (const map of this.drawn) {
      for (let step = 0; step < map.gate.steps; step++) {
        const values = Array.from({ length: map.gate.units }, (_, unit) => map.gate.values[step * map.gate.units + unit] * map.gate.scale);
        const mean = values.reduce((a, b) => a + b, 0) / values.length;
        rows.push([map.gateName, step + 1, map.pieces[step], mean.toFixed(3), Math.min(...values).toFixed(3), Math.max(...values).toFixed(3)]);
      }
    }
    return { caption: `${partName(this.part)}: mean, least and greatest value over the units`, heads: ["gate", "step", "token", "mean", "least", "greatest"], rows };
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
    const lines = pair.map((item) => ({ name: item.title, curve: item.curve })).filter((item) => item.curve && item.curve.points.length);
    const key = lines.map((line) => line.name).join();
    if (this.curveKey === key) return;
    this.curveKey = key;
    clear(this.curves);
    if (!lines.length) {
      this.curves.append(el("p", { class: "s-muted" }, "The measured quality by length comes with the models' metrics; none are loaded for these."));
      return;
    }
    const view = new CurvesView(lines);
    this.curves.append(el("details", { open: true }, el("summary", {}, "Measured quality by input length"),
      el("p", { class: "s-says" }, "What the two models score on inputs kept out of training, by how long the input is. One vector has a fixed size; attention reads as much as there is."), view.node, view.tools));
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
    const snippet = pythonSnippet(this.bench.state, this.bench.setup, "B");
    this.code.hidden = !this.code.hidden;
    if (!this.code.hidden) clear(this.code).append(el("pre", { tabindex: "0", "aria-label": "Python code for column B" }, snippet), button("Copy", () => copyText(snippet, () => this.say("Copied."))));
  }

  answer() {
    this.code.hidden = true;
  }
}

function rowsOf(values, across) {
  return Array.from({ length: values.length / across }, (_, t) => Array.from(values.slice(t * across, (t + 1) * across), (value) => Number(value.toFixed(6))));
}
