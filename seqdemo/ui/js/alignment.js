// The alignment: one row a target piece, one column a source piece, a darker cell for more attention. Scale fixed from 0 to 1.

class AlignmentView {
  constructor(onHover) {
    this.onHover = onHover;
    this.canvas = el("canvas", { class: "s-canvas", tabindex: "0", role: "img" });
    this.node = el("div", { class: "s-scroll" }, this.canvas);
    this.cursor = null;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("blur", () => this.leave());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // model: {weights (Float32Array), source: [pieces], target: [pieces], sourceKind, targetKind, title, room (px)}
  show(model) {
    this.model = model;
    const sources = model.source.map((piece) => pieceName(piece, model.sourceKind));
    const targets = model.target.map((piece) => pieceName(piece, model.targetKind));
    this.sources = sources;
    this.targets = targets;
    this.rtlSource = isRightToLeft(model.source.join(""));
    this.rtlTarget = isRightToLeft(model.target.join(""));
    const labelWide = Math.min(120, Math.max(28, ...targets.map((name) => textWidth(name, 13))));
    const labelHigh = Math.min(110, Math.max(16, ...sources.map((name) => textWidth(name, 13))));
    const flat = model.sourceKind === "characters";
    const room = Math.max(160, model.room - labelWide - 24);
    const cell = Math.max(17, Math.min(46, Math.floor(room / Math.max(1, sources.length))));
    const cellHigh = Math.max(20, Math.min(30, cell));
    const top = (flat ? 18 : labelHigh) + 16;
    this.grid = { left: labelWide + 14, top, cell, cellHigh, flat };
    this.width = this.grid.left + sources.length * cell + 10;
    this.height = top + targets.length * cellHigh + 8;
    this.draw(new CanvasPainter(this.canvas, this.width, this.height));
    this.canvas.setAttribute("aria-label", `${model.title}. Arrow keys move through the cells.`);
  }

  column(source) {
    return this.rtlSource ? this.sources.length - 1 - source : source;
  }

  draw(painter) {
    const { left, top, cell, cellHigh, flat } = this.grid;
    const colours = palette();
    const { weights } = this.model;
    const across = this.sources.length;
    this.sources.forEach((name, j) => {
      const x = left + (this.column(j) + 0.5) * cell;
      const lit = this.lit && this.lit.source(j) > 0.15;
      const style = { size: 13, fill: lit ? colours.accent : colours.ink, weight: lit ? 700 : 400 };
      if (flat) painter.text(x, top - 12, name, { ...style, align: "middle" });
      else painter.text(x, top - 8, name, { ...style, turn: -90, align: "start" });
    });
    this.targets.forEach((name, t) => {
      const y = top + t * cellHigh;
      const lit = this.lit && this.lit.target(t) > 0.15;
      painter.text(left - 8, y + cellHigh / 2, name, { size: 13, fill: lit ? colours.accent : colours.ink, weight: lit ? 700 : 400, align: "end" });
      for (let j = 0; j < across; j++) {
        painter.rect(left + this.column(j) * cell + 0.5, y + 0.5, cell - 1, cellHigh - 1, shade("weights", weights[t * across + j]));
      }
    });
    painter.rect(left, top, across * cell, this.targets.length * cellHigh, null, colours.line);
    if (this.cursor) {
      painter.rect(left + this.column(this.cursor.j) * cell + 1, top + this.cursor.t * cellHigh + 1, cell - 2, cellHigh - 2, null, colours.accent, 2);
    }
  }

  light(lit) {
    this.lit = lit;
    if (this.model) this.draw(new CanvasPainter(this.canvas, this.width, this.height));
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const { left, top, cell, cellHigh } = this.grid;
    const column = Math.floor((event.clientX - box.left - left) / cell);
    const j = this.rtlSource ? this.sources.length - 1 - column : column;
    const t = Math.floor((event.clientY - box.top - top) / cellHigh);
    const inX = column >= 0 && column < this.sources.length;
    const inY = t >= 0 && t < this.targets.length;
    if (!inX && !inY) return this.leave();
    if (inX && inY) return this.move(t, j, event.clientX, event.clientY);
    this.cursor = null;
    tip.hide();
    return this.onHover(inX ? { side: "source", index: j } : { side: "target", index: t });
  }

  move(t, j, x, y) {
    if (this.cursor && this.cursor.t === t && this.cursor.j === j) return;
    this.cursor = { t, j };
    const weight = this.model.weights[t * this.sources.length + j];
    tip.show([`${this.sources[j]} → ${this.targets[t]}`, `attention ${weight.toFixed(3)}`, `source ${j + 1}, target ${t + 1}`], x, y);
    this.onHover({ side: "target", index: t });
  }

  leave() {
    this.cursor = null;
    tip.hide();
    this.onHover(null);
  }

  key(event) {
    const steps = { ArrowRight: [0, this.rtlSource ? -1 : 1], ArrowLeft: [0, this.rtlSource ? 1 : -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (!steps[event.key] || !this.sources.length) return;
    event.preventDefault();
    const at = this.cursor || { t: -1, j: 0 };
    const t = Math.max(0, Math.min(this.targets.length - 1, at.t + steps[event.key][0]));
    const j = Math.max(0, Math.min(this.sources.length - 1, at.j + steps[event.key][1]));
    const box = this.canvas.getBoundingClientRect();
    const { left, top, cell, cellHigh } = this.grid;
    this.move(t, j, box.left + left + (this.column(j) + 1) * cell, box.top + top + (t + 1) * cellHigh);
  }

  rows() {
    const across = this.sources.length;
    return {
      caption: this.model.title,
      heads: ["target", ...this.sources],
      rows: this.targets.map((name, t) => [name, ...this.sources.map((_, j) => this.model.weights[t * across + j].toFixed(3))]),
    };
  }
}
