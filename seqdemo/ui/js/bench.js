// The workbench of a task page: state, columns, selection, hover; the views ask it and it tells them.

function readColumn(payload, setup) {
  const { spec } = payload;
  const known = setup.checkpoints.find((item) => item.name === spec.checkpoint) || setup.checkpoints[0] || {};
  return {
    ...payload,
    kind: known.kinds || { source: "subwords", target: "subwords" },
    tree: readTree(payload.tree),
    hypotheses: payload.hypotheses,
    trace: readTrace(payload.trace),
  };
}

function readTrace(payload) {
  return { ...payload, attention: payload.attention ? unpack(payload.attention) : null, parts: payload.gates ? readGates(payload.gates) : null };
}

class Bench {
  constructor(setup, send) {
    this.setup = setup;
    this.columns = {};
    this.views = [];
    this.hover = null;
    this.litNodes = [];
    this.inNotes = [];
    this.absent = [];
    this.asker = new Asker({
      trigger: send,
      build: (sides, replays) => this.message(sides, replays),
      long: (message) => Object.values(message.columns).some((spec) => spec.options.strategy === "exact" || (spec.options.strategy === "beam" && spec.options.beam > 25)),
      onAnswer: (answer) => this.answer(answer),
      onState: (state) => this.tell("busy", state),
    });
  }

  start(query, frozen) {
    const { state, notes, absent } = queryToState(query, this.setup);
    this.state = state;
    this.inNotes = notes;
    this.absent = absent.map((name) => [name, `models?${new URLSearchParams({ load: name, then: `${this.setup.page || "./"}?${query}` })}`]);
    const first = queryToState(new URLSearchParams(), this.setup).state;
    const same = (key) => JSON.stringify(state[key]) === JSON.stringify(first[key]);
    const picks = Object.entries(state.picked).filter(([, tokens]) => tokens);
    const fresh = same("text") && same("language") && same("example") && same("columns") && frozen;
    if (fresh) this.take(frozen);
    this.tell("state");
    if (fresh) picks.forEach(([side, tokens]) => this.select(side, tokens));
    else this.asker.change(["A", "B"]);
    if (this.columns.A) this.tell("answer");
  }

  listen(view) {
    this.views.push(view);
  }

  tell(event, detail) {
    for (const view of this.views) if (view[event]) view[event](detail);
  }

  message(sides, replays) {
    const { state } = this;
    const specs = Object.fromEntries(sides.map((side) => [side, state.columns[side]]));
    const paths = { ...replays };
    for (const side of sides) {
      delete paths[side];
      if (state.picked[side]) paths[side] = state.picked[side];
    }
    const runs = Object.fromEntries(Object.entries(paths).map(([side, tokens]) => [side, { ...state.columns[side], tokens }]));
    const mine = this.setup.checkpoints.filter((item) => item.name.includes("@")).map((item) => item.name);
    return structuredClone({ task: this.setup.task, mine, input: this.input(), language: state.language || null, columns: specs, replays: runs, gates: this.gatesNeeded() });
  }

  gatesNeeded() {
    return { gates: "all", text: "memory" }[this.state.tab] || "";
  }

  input() {
    return this.setup.task === "caption" ? { photo: this.state.photo || null, example: this.state.example } : { text: this.state.text };
  }

  // Of a language model: how many pieces of a trace are the person's own text.
  given(side) {
    return this.setup.task === "complete" && this.columns[side] ? this.columns[side].source.pieces.length : 0;
  }

  answer(answer) {
    this.take(answer);
    this.tell("answer");
    this.save();
  }

  take(answer) {
    for (const [side, payload] of Object.entries(answer.columns || {})) {
      if (payload.error) {
        if (this.columns[side]) this.columns[side].error = payload.error;
        else this.firstError = payload.error;
        continue;
      }
      if (payload.picture) this.picture = payload.picture;
      this.columns[side] = readColumn(payload, this.setup);
    }
    for (const [side, payload] of Object.entries(answer.traces || {})) {
      if (!this.columns[side] || payload.error || payload.asked.join() !== this.chosen(side).tokens.join()) continue;
      this.columns[side].trace = readTrace(payload);
    }
  }

  save() {
    writeQuery(stateToQuery(this.state, this.setup));
  }

  // What changes the results
  setText(text) {
    this.state.text = text;
    this.changed(["A", "B"], 250);
  }

  setOption(side, name, value) {
    const spec = this.state.columns[side];
    spec.options[name] = value;
    if (name === "strategy" && value === "beam" && spec.options.beam < 2) spec.options.beam = 5;
    if (["strategy", "length_norm", "finished"].includes(name)) this.tell("controls", side);
    if (["alpha", "length_norm"].includes(name) && spec.options.finished === "stay" && !spec.options.coverage) this.rerank(side);
    this.changed([side], name === "strategy" ? 0 : 120);
  }

  setCheckpoint(side, name) {
    this.putModel(side, name);
    const { targets } = this.card(name) || {};
    if (this.state.language && targets && targets.length && !targets.includes(this.state.language)) return this.setLanguage(targets[0]);
    this.tell("controls", side);
    return this.changed([side]);
  }

  // Words forced or forbidden are words of the model that was there.
  putModel(side, name) {
    const spec = this.state.columns[side];
    spec.checkpoint = name;
    spec.edits = spec.edits.filter((edit) => edit.kind === "AttentionBlend" && this.hasAttention(name));
  }

  hasAttention(name) {
    const known = this.setup.checkpoints.find((item) => item.name === name);
    return Boolean(known && known.attention);
  }

  changed(sides, wait = 0) {
    sides.forEach((side) => (this.state.picked[side] = null));
    this.tell("changed");
    this.asker.change(sides, wait);
  }

  useExample(example) {
    this.state = exampleState(example, this.state, this.setup);
    this.tell("state");
    this.changed(["A", "B"]);
  }

  // The example that the page shows as it was meant, if any.
  currentExample() {
    return this.setup.examples.find((example) => !this.state.photo && sameQuestion(exampleState(example, this.state, this.setup), this.state));
  }

  card(name) {
    return this.setup.checkpoints.find((item) => item.name === name);
  }

  // Columns whose model cannot write the language take the first that can; the text stays.
  setLanguage(tag) {
    this.state.language = tag;
    for (const side of ["A", "B"]) {
      const able = this.setup.checkpoints.filter((card) => (card.targets || []).includes(tag));
      if (able.length && !able.some((card) => card.name === this.state.columns[side].checkpoint)) this.putModel(side, able[0].name);
    }
    this.tell("state");
    this.changed(["A", "B"]);
  }

  // Both columns to one model. A text of the person's own stays; an untouched example gives way to one of the model.
  setModel(name) {
    const shown = this.currentExample();
    const other = this.setup.examples.find((example) => example.checkpoint === name);
    if (shown && other && shown.checkpoint !== name) return this.useExample(other);
    for (const side of ["A", "B"]) this.putModel(side, name);
    this.tell("state");
    return this.changed(["A", "B"]);
  }

  usePhoto(photo) {
    Object.assign(this.state, { photo, example: null });
    this.changed(["A", "B"]);
  }

  resetColumn(side) {
    this.state.columns[side] = structuredClone(this.setup.start.columns[side]);
    this.tell("controls", side);
    this.changed([side]);
  }

  reset() {
    Object.assign(this.state, queryToState(new URLSearchParams(), this.setup).state);
    this.tell("state");
    this.changed(["A", "B"]);
  }

  swap() {
    const { columns, picked } = this.state;
    [columns.A, columns.B] = [columns.B, columns.A];
    [picked.A, picked.B] = [picked.B, picked.A];
    [this.columns.A, this.columns.B] = [this.columns.B, this.columns.A];
    const late = this.asker.flight || this.asker.waiting().length;
    this.tell("state");
    this.tell("changed");
    if (this.columns.A && this.columns.B) this.tell("answer");
    this.save();
    if (late) this.asker.change(["A", "B"]); // what is under way was asked about the other column
  }

  copyToB() {
    this.state.columns.B = structuredClone(this.state.columns.A);
    this.tell("controls", "B");
    this.changed(["B"]);
  }

  // The same model trained without attention if there is one, else attention dimmed to nothing.
  attentionOff() {
    const spec = this.state.columns.B;
    const known = this.setup.checkpoints.find((item) => item.name === spec.checkpoint);
    if (known && known.without) this.setCheckpoint("B", known.without);
    else this.dim(1, "nothing");
  }

  dim(factor, towards) {
    const spec = this.state.columns.B;
    spec.edits = spec.edits.filter((edit) => edit.kind !== "AttentionBlend");
    if (factor > 0) spec.edits.push({ kind: "AttentionBlend", factor, towards, positions: null });
    this.tell("controls", "B");
    this.changed(["B"], 80);
  }

  // tokens: the path to a node. Taking it forces the whole path; refusing it forbids exactly this path.
  editPath(kind, tokens, pieces) {
    const spec = this.state.columns.B;
    if (kind === "Force") spec.edits = spec.edits.filter((edit) => edit.kind !== "Force");
    if (!spec.edits.some((edit) => edit.kind === kind && edit.tokens.join() === tokens.join())) spec.edits.push({ kind, position: 0, tokens });
    this.pathNames = this.pathNames || new Map();
    this.pathNames.set(tokens.join(), pieces);
    this.state.treeSide = "B";
    this.tell("controls", "B");
    this.changed(["B"]);
  }

  removeEdit(side, index) {
    this.state.columns[side].edits.splice(index, 1);
    this.tell("controls", side);
    this.changed([side]);
  }

  editText(edit) {
    if (edit.kind === "AttentionBlend") {
      const goal = { uniform: "towards uniform", last: "towards the last state", nothing: "towards nothing" }[edit.towards];
      return `attention ${Math.round(edit.factor * 100)} % ${goal}`;
    }
    const pieces = (edit.tokens || []).map((token) => this.pieceOf(token));
    const kind = this.targetKind();
    const text = plainText(pieces, kind) + (pieces.some(isEnd) ? " ⟨end⟩" : "");
    return edit.kind === "Force" ? `starts with “${text.trim()}”` : edit.kind === "Ban" ? `never starts with “${text.trim()}”` : edit.kind;
  }

  targetKind() {
    const column = this.columns.B || this.columns.A;
    return column ? column.kind.target : "subwords";
  }

  pieceOf(token) {
    for (const side of ["B", "A"]) {
      const column = this.columns[side];
      if (column && column.tree.pieces.has(token)) {
        this.pieceMemory = this.pieceMemory || new Map();
        this.pieceMemory.set(token, column.tree.pieces.get(token));
        return column.tree.pieces.get(token);
      }
    }
    return (this.pieceMemory && this.pieceMemory.get(token)) || `#${token}`;
  }

  // Selection
  chosen(side) {
    const column = this.columns[side];
    const tokens = this.state.picked[side];
    if (!tokens) return column.hypotheses[0] || { tokens: [], pieces: [], logps: [], total: 0, score: 0, finished: false, node: -1, text: "" };
    const key = tokens.join();
    const known = column.hypotheses.find((item) => item.tokens.join() === key);
    if (known) return known;
    const path = walk(column.tree, tokens);
    const logps = path.map((row) => column.tree.logp[row]);
    const pieces = path.map((row) => column.tree.pieces.get(column.tree.token[row]));
    const node = path.length ? path[path.length - 1] : -1;
    return { tokens: tokens.slice(0, path.length), pieces, logps, total: logps.reduce((a, b) => a + b, 0), finished: pieces.some(isEnd), prefix: !pieces.some(isEnd), node };
  }

  // A node stands for the best output through it, or for its own path where none came through.
  selectNode(side, row) {
    const column = this.columns[side];
    const path = pathTo(column.tree, row).map((at) => column.tree.token[at]);
    const through = column.hypotheses.find((item) => item.tokens.slice(0, path.length).join() === path.join());
    this.node = { side, row, path };
    this.select(side, through ? through.tokens : path, row);
  }

  select(side, tokens) {
    const column = this.columns[side];
    const best = column && column.hypotheses[0];
    this.state.picked[side] = best && best.tokens.join() === tokens.join() ? null : tokens;
    if (column && column.trace.asked.join() !== tokens.join()) this.asker.replay(side, tokens);
    this.tell("answer");
    this.save();
  }

  needGates() {
    for (const side of ["A", "B"]) {
      const column = this.columns[side];
      if (column && (!column.trace.parts || (this.gatesNeeded() === "all" && column.trace.gates_kind !== "all"))) this.asker.replay(side, this.chosen(side).tokens);
    }
  }

  rerank(side) {
    const column = this.columns[side];
    if (!column) return;
    const { options } = this.state.columns[side];
    for (const item of column.hypotheses) item.score = item.total / penalty(item.tokens.length, options);
    column.hypotheses.sort((p, q) => q.score - p.score);
    column.spec.options = { ...options };
    this.tell("answer");
  }

  differences() {
    if (!this.columns.A || !this.columns.B) return [new Set(), new Set()];
    if (this.setup.task === "complete") {
      const at = firstDifference(this.chosen("A").tokens, this.chosen("B").tokens);
      return [new Set([at]), new Set([at])]; // two texts go two ways; only where they part is worth a mark
    }
    const words = ["A", "B"].map((side) => units(this.chosen(side).pieces, this.columns[side].kind.target).map((unit) => unit.text));
    return differing(...words);
  }

  // Sentences
  side(side) {
    const column = this.columns[side];
    return {
      hypothesis: this.chosen(side), options: column.spec.options, checkpoint: column.spec.checkpoint, tree: column.tree,
      kind: column.kind.target, edited: column.spec.edits.length > 0,
    };
  }

  priceText(column) {
    return (column.prices || []).map((price) => priceSentence(price, this.setup.task)).join(" ");
  }

  certificateText(column) {
    return column.certificate ? column.certificate.sentence : "";
  }

  // Hover: a word under the pointer lights its partners everywhere.
  atomNode(side, end, atom) {
    const node = el("span", { class: "s-atom" }, atom.text);
    this.hoverNode(node, side, end, atom.pieces[0]);
    node.setAttribute(`data-${end}`, atom.pieces.join(" "));
    if (end === "source") node.classList.add("s-source-atom");
    return node;
  }

  hoverNode(node, side, end, index) {
    node.addEventListener("pointerenter", () => this.setHover({ side, end, index }));
    node.addEventListener("pointerleave", () => this.setHover(null));
    node.addEventListener("focus", () => this.setHover({ side, end, index }));
    node.addEventListener("blur", () => this.setHover(null));
  }

  setHover(hover) {
    this.hover = hover;
    this.tell("light");
  }

  // How brightly a piece is lit: 1 under the pointer, its attention weight where it is a partner.
  brightness(side, end, index) {
    const { hover } = this;
    if (!hover) return 0;
    const column = this.columns[side];
    if (hover.end === end && (end === "source" || hover.side === side)) return hover.index === index ? 1 : 0;
    if (hover.end === end || !column || !column.trace.attention) return 0;
    if (end === "source" && hover.side !== side) return 0;
    const across = column.trace.source.length;
    const at = end === "source" ? hover.index * across + index : index * across + hover.index;
    return column.trace.attention[at] || 0;
  }
}
