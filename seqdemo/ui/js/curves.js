// Measured quality against input length, one line a model.

class CurvesView {
  // lines: [{name, curve: {metric, points: [{length, value, count}]}}]; `room` in pixels
  constructor(lines, room) {
    this.lines = lines;
    const names = Math.max(...lines.map((line) => textWidth(line.name, 12, 600))) + 24;
    this.plot = Math.max(260, Math.min(620, room - 62 - names));
    this.width = this.plot + 62 + names;
    this.height = 270;
    this.canvas = el("canvas", { class: "s-canvas", role: "img", "aria-label": `${lines[0].curve.metric} by input length, one line a model` });
    this.node = el("div", { class: "s-scroll" }, this.canvas);
    this.tools = figureTools("quality-by-length", () => this, () => this.rows());
    this.draw(new CanvasPainter(this.canvas, this.width, this.height));
    onThemeChange(() => this.draw(new CanvasPainter(this.canvas, this.width, this.height)));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", tip.hide);
  }

  at(point) {
    const points = this.lines.flatMap((line) => line.curve.points);
    const longest = Math.max(...points.map((item) => item.length));
    const highest = Math.max(...points.map((item) => item.value)) || 1;
    return [52 + (point.length / longest) * this.plot, this.height - 40 - (point.value / highest) * (this.height - 66)];
  }

  draw(painter) {
    const colours = palette();
    const highest = Math.max(...this.lines.flatMap((line) => line.curve.points.map((item) => item.value)));
    painter.line(52, this.height - 40, this.plot + 62, this.height - 40, colours.line);
    painter.line(52, this.height - 40, 52, 20, colours.line);
    painter.text(46, 26, highest.toPrecision(3), { size: 11, fill: colours.muted, align: "end" });
    painter.text(46, this.height - 40, "0", { size: 11, fill: colours.muted, align: "end" });
    painter.text((this.plot + 104) / 2, this.height - 10, `input length (${this.lines[0].curve.unit})`, { size: 11, fill: colours.muted, align: "middle" });
    painter.text(14, this.height / 2 - 10, this.lines[0].curve.metric, { size: 11, fill: colours.muted, align: "middle", turn: -90 });
    this.lines.forEach((line, i) => {
      const colour = [colours.b, colours.a][i % 2];
      const places = line.curve.points.map((point) => this.at(point));
      places.forEach(([x, y], p) => {
        if (p) painter.line(...places[p - 1], x, y, colour, 2);
        if (i % 2) painter.rect(x - 3.5, y - 3.5, 7, 7, colour);
        else painter.circle(x, y, 4, colour);
        painter.text(x, this.height - 28, line.curve.points[p].label, { size: 10, fill: colours.muted, align: "middle" });
      });
      const [x, y] = places[places.length - 1];
      painter.text(x + 10, y + (i % 2 ? 6 : -6), line.name, { size: 12, fill: colour, weight: 600 });
    });
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    for (const line of this.lines) {
      for (const point of line.curve.points) {
        const [x, y] = this.at(point);
        if (Math.hypot(event.clientX - box.left - x, event.clientY - box.top - y) < 9) {
          return tip.show([line.name, `${line.curve.metric} ${point.value.toFixed(1)} at length ${point.label}`, point.count ? `${point.count} inputs` : ""], event.clientX, event.clientY);
        }
      }
    }
    return tip.hide();
  }

  rows() {
    return {
      caption: `${this.lines[0].curve.metric} by input length`,
      heads: ["model", "length", this.lines[0].curve.metric, "inputs"],
      rows: this.lines.flatMap((line) => line.curve.points.map((point) => [line.name, point.label, point.value.toFixed(2), point.count || ""])),
    };
  }
}
