// The photograph: choosing one, and where the model looks for every word. Nothing here asks the server once the answer is in.

class PhotoView {
  constructor(bench) {
    this.bench = bench;
    const { setup } = bench;
    this.file = el("input", { type: "file", id: "s-photo", accept: "image/png,image/jpeg,image/webp,image/gif,image/bmp,image/tiff", on: { change: () => this.file.files[0] && this.load(this.file.files[0]) } });
    this.picture = el("img", { class: "s-photo", alt: "The photograph as the model sees it" });
    this.message = el("p", { class: "s-message", role: "alert", hidden: true });
    this.shows = el("p", { class: "s-shows", "aria-live": "polite" });
    this.far = el("p", { class: "s-far", hidden: true });
    this.examples = exampleList(bench, (example) => tipFor(
      el("button", { type: "button", class: "s-thumb", "aria-label": example.label, on: { click: () => (this.say(""), bench.useExample(example)) } }, el("img", { src: example.thumbnail, alt: "", width: 68, height: 68 })),
      () => [example.title || example.label, example.shows]));
    const drop = el("div", { class: "s-drop" }, el("label", { for: "s-photo" }, "Your own photograph"), this.file,
      el("p", { class: "s-muted" }, "PNG, JPEG, WebP, GIF, BMP or TIFF up to 5 MB; or paste or drop one. It is deleted from this server within the hour and never enters a link."));
    this.node = el("section", { class: "s-input", "aria-label": "Photograph" },
      el("div", { class: "s-input-main s-photo-main" }, this.picture, el("div", {}, el("h2", { class: "s-small-head" }, setup.words.input), drop, this.message, this.far)),
      el("div", { class: "s-input-side" }, el("h2", { class: "s-small-head" }, "Try"), this.examples, this.shows));
    this.node.addEventListener("dragover", (event) => event.preventDefault());
    this.node.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) this.load(event.dataTransfer.files[0]);
    });
    document.addEventListener("paste", (event) => event.clipboardData && event.clipboardData.files[0] && this.load(event.clipboardData.files[0]));
  }

  say(text) {
    this.message.hidden = !text;
    this.message.textContent = text;
  }

  async load(file) {
    this.say("");
    if (file.size > this.bench.setup.limits.bytes) {
      this.say("This file is larger than 5 MB. Save it smaller and try again.");
      return;
    }
    try {
      const { path } = await this.bench.upload(file);
      this.bench.usePhoto(path);
    } catch {
      this.say("The photograph did not reach the server. Try again.");
    }
  }

  state() {
    this.changed();
    this.file.value = "";
  }

  // The photograph stays marked while it is shown; what the example shows, only while its question stands.
  changed() {
    const { bench } = this;
    const example = bench.currentExample();
    const photo = example || bench.setup.examples.find((item) => !bench.state.photo && item.photo === bench.state.example);
    this.shows.textContent = example ? example.shows : "";
    this.examples.press(photo);
  }

  answer() {
    const { picture, columns } = this.bench;
    if (picture) this.picture.src = picture.data;
    const column = columns.A || columns.B;
    this.far.hidden = !(column && column.far);
    this.far.textContent = (column && column.far) || "";
  }
}

// Attention of one word over the picture: a smooth veil that is clear where the model looks.
function paintOverlay(canvas, image, weights, offset, grid, strength) {
  const wide = canvas.width;
  const high = image && image.naturalWidth ? Math.round((wide * image.naturalHeight) / image.naturalWidth) : canvas.height;
  if (canvas.height !== high) canvas.height = high;
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, wide, high);
  if (image) context.drawImage(image, 0, 0, wide, high);
  const small = document.createElement("canvas");
  small.width = small.height = grid;
  const pixels = small.getContext("2d").createImageData(grid, grid);
  let most = 1e-9;
  for (let i = 0; i < grid * grid; i++) most = Math.max(most, weights[offset + i]);
  for (let i = 0; i < grid * grid; i++) {
    pixels.data.set([8, 12, 20, Math.round(255 * strength * (1 - weights[offset + i] / most))], i * 4);
  }
  small.getContext("2d").putImageData(pixels, 0, 0);
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  context.drawImage(small, 0, 0, wide, high);
}

// What was measured about the map: how often its heaviest cell lies in the thing named, and how often the middle of the picture does.
function howFar(card) {
  const found = card && card.pointing;
  if (!found) return [];
  const rows = [["the map of the word that names it", found.word], ["the middle of the picture, every time", found.centre], ["the mean map of the caption", found.mean_map]];
  return [
    el("h3", {}, "How far to trust the map"),
    el("p", { class: "s-says" }, `People drew boxes around the things that ${found.phrases} phrases of captions name. So often the heaviest cell lies in the box:`),
    el("dl", { class: "s-measures" }, rows.map(([name, share]) => [el("dt", {}, name), el("dd", { style: { "--p": share / 100 } }, `${share.toFixed(1)} %`)])),
    el("p", { class: "s-says" }, found.word - found.centre < 10 ? "Things in photographs mostly stand in the middle; the map knows little more than that. It is no explanation." : "It points better than the middle of the picture does; an explanation it is not."),
  ];
}

class OverlayPanel {
  constructor(bench) {
    this.bench = bench;
    this.side = "B";
    this.word = 0;
    this.pinned = false;
    this.strength = 0.8;
    this.image = new Image();
    this.image.onload = () => this.draw();
    this.big = el("canvas", { class: "s-overlay", width: 384, height: 384, role: "img" });
    this.words = el("div", { class: "s-overlay-words", role: "listbox", "aria-label": "Words of the caption", tabindex: "0" });
    this.strip = el("div", { class: "s-film", role: "list", "aria-label": "Where the model looks, word by word" });
    this.bar = el("div", { class: "s-bar" });
    this.none = el("p", { class: "s-muted" });
    this.trust = el("div", { class: "s-trust" });
    this.body = el("div", { class: "s-overlay-body" }, this.big, el("div", {}, this.words, this.strip, this.trust));
    this.tools = figureTools("attention-over-the-photograph", () => this.figure(), () => this.rows());
    this.node = el("div", {},
      el("p", { class: "s-says" }, "Point at a word: the photograph stays clear where the model looked while writing it and dims elsewhere, each word on its own scale. Click keeps it; arrow keys walk."),
      this.bar, this.none, this.body, this.tools, equations("alignment"));
    this.words.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      this.choose(Math.max(0, Math.min(this.column().trace.pieces.length - 1, this.word + move)), true);
    });
  }

  column() {
    return this.bench.columns[this.side];
  }

  answer() {
    const { bench } = this;
    const column = this.column();
    const strength = el("input", { type: "range", id: "s-strength", min: 0, max: 1, step: 0.05, value: this.strength, on: { input: (event) => ((this.strength = Number(event.target.value)), this.draw()) } });
    clear(this.bar).append(sideSwitch(bench, this.side, (side) => ((this.side = side), this.answer()), "Whose attention"), el("span", { class: "s-inline" }, el("label", { for: "s-strength" }, "Veil"), strength));
    const has = Boolean(column.trace.attention);
    this.none.textContent = has ? "" : "This model has no attention: it reads the photograph as one vector.";
    this.body.hidden = this.tools.hidden = !has;
    if (!has) return;
    clear(this.trust).append(...howFar(bench.card(column.spec.checkpoint)));
    this.grid = Math.round(Math.sqrt(column.trace.attention.length / column.trace.pieces.length));
    const names = column.trace.pieces.map((piece) => pieceName(piece, column.kind.target));
    this.word = Math.min(this.word, names.length - 1);
    clear(this.words).append(...names.map((name, t) => {
      const node = el("span", { role: "option", class: "s-overlay-word", id: `s-word-${t}`, "data-word": t }, name);
      node.addEventListener("pointerenter", () => this.choose(t, false));
      node.addEventListener("click", () => this.choose(t, true));
      return node;
    }));
    this.frames = names.map((name, t) => {
      const canvas = el("canvas", { width: 104, height: 104, "aria-hidden": "true" });
      const frame = el("div", { class: "s-frame", role: "listitem" }, canvas, el("span", {}, name));
      frame.addEventListener("pointerenter", () => this.choose(t, false));
      return { canvas, frame };
    });
    clear(this.strip).append(...this.frames.map(({ frame }) => frame));
    if (bench.picture && this.image.src !== bench.picture.data) this.image.src = bench.picture.data;
    this.draw();
    this.tools.refresh();
  }

  choose(word, pin) {
    this.word = word;
    this.bench.setHover({ side: this.side, end: "target", index: word });
    if (pin) this.pinned = true;
    this.drawBig();
  }

  draw() {
    const column = this.column();
    if (!column || !column.trace.attention || !this.frames) return;
    const cells = this.grid * this.grid;
    this.frames.forEach(({ canvas }, t) => paintOverlay(canvas, this.image.complete ? this.image : null, column.trace.attention, t * cells, this.grid, this.strength));
    this.drawBig();
  }

  drawBig() {
    const column = this.column();
    const cells = this.grid * this.grid;
    paintOverlay(this.big, this.image.complete ? this.image : null, column.trace.attention, this.word * cells, this.grid, this.strength);
    const name = pieceName(column.trace.pieces[this.word], column.kind.target);
    this.big.setAttribute("aria-label", `Attention over the photograph for “${name}”`);
    this.words.setAttribute("aria-activedescendant", `s-word-${this.word}`);
    this.words.querySelectorAll("[data-word]").forEach((node) => node.setAttribute("aria-selected", String(Number(node.dataset.word) === this.word)));
    this.frames.forEach(({ frame }, t) => frame.classList.toggle("s-current", t === this.word));
  }

  light() {
    const { hover } = this.bench;
    if (!hover || hover.end !== "target" || hover.side !== this.side || hover.index === this.word || !this.frames || hover.index >= this.frames.length) return;
    this.word = hover.index;
    this.drawBig();
  }

  figure() {
    const across = Math.min(6, this.frames.length);
    const column = this.column();
    const width = across * 170 + 10;
    const height = Math.ceil(this.frames.length / across) * 196 + 10;
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    this.frames.forEach((_, t) => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = 320;
      paintOverlay(canvas, this.image, column.trace.attention, t * this.grid * this.grid, this.grid, this.strength);
      const [x, y] = [10 + (t % across) * 170, 10 + Math.floor(t / across) * 196];
      root.append(svg("image", { x, y, width: 160, height: 160, preserveAspectRatio: "xMidYMid meet", href: canvas.toDataURL("image/jpeg", 0.85) }));
      root.append(svg("text", { x: x + 80, y: y + 178, fill: css("ink"), "font-size": 14, "text-anchor": "middle" }, pieceName(column.trace.pieces[t], column.kind.target)));
    });
    return { node: root };
  }

  rows() {
    const column = this.column();
    const cells = this.grid * this.grid;
    return {
      caption: "Where the model looks most, word by word (row and column of the grid, from the top left)",
      heads: ["word", "row", "column", "attention there"],
      rows: column.trace.pieces.map((piece, t) => {
        const part = column.trace.attention.slice(t * cells, (t + 1) * cells);
        const best = part.indexOf(Math.max(...part));
        return [pieceName(piece, column.kind.target), Math.floor(best / this.grid) + 1, (best % this.grid) + 1, part[best].toFixed(3)];
      }),
    };
  }
}
