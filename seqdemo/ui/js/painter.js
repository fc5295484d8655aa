// One set of drawing verbs, two backs: a canvas for the page and SVG text for the file. What is saved is what is seen.

const FONT = '"Segoe UI", "Noto Sans", system-ui, -apple-system, "Noto Sans Devanagari", "Noto Naskh Arabic", sans-serif';

class CanvasPainter {
  constructor(canvas, width, height, scale) {
    const ratio = scale || Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.context = canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
  }
  rect(x, y, width, height, fill, stroke, line = 1) {
    const c = this.context;
    if (fill) {
      c.fillStyle = fill;
      c.fillRect(x, y, width, height);
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = line;
      c.strokeRect(x, y, width, height);
    }
  }
  circle(x, y, radius, fill, stroke) {
    const c = this.context;
    c.beginPath();
    c.arc(x, y, radius, 0, 7);
    c.fillStyle = fill;
    c.fill();
    if (stroke) {
      c.strokeStyle = stroke;
      c.stroke();
    }
  }
  line(x1, y1, x2, y2, stroke, width = 1) {
    const c = this.context;
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.stroke();
  }
  // cells of one size: share(row, column) along the ramp `kind`; one image, however many cells
  grid(x, y, width, height, rows, columns, kind, share) {
    const small = document.createElement("canvas");
    [small.width, small.height] = [columns, rows];
    const pixels = small.getContext("2d").createImageData(columns, rows);
    const colours = ramp(kind);
    for (let i = 0; i < rows * columns; i++) {
      const at = Math.max(0, Math.min(255, Math.round(share((i / columns) | 0, i % columns) * 255))) * 3;
      pixels.data[i * 4] = colours[at];
      pixels.data[i * 4 + 1] = colours[at + 1];
      pixels.data[i * 4 + 2] = colours[at + 2];
      pixels.data[i * 4 + 3] = 255;
    }
    small.getContext("2d").putImageData(pixels, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(small, x, y, width, height);
  }
  text(x, y, text, { size = 12, fill = "#000", align = "start", turn = 0, weight = 400, rtl = false } = {}) {
    const c = this.context;
    c.save();
    c.translate(x, y);
    c.rotate((turn * Math.PI) / 180);
    c.font = `${weight} ${size}px ${FONT}`;
    c.fillStyle = fill;
    c.direction = rtl ? "rtl" : "ltr";
    c.textAlign = { start: "left", end: "right", middle: "center" }[align];
    c.textBaseline = "middle";
    c.fillText(text, 0, 0);
    c.restore();
  }
}

class SvgPainter {
  constructor(width, height) {
    this.root = svg("svg", { xmlns: SVG_SPACE, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT });
  }
  rect(x, y, width, height, fill, stroke, line = 1) {
    this.root.append(svg("rect", { x, y, width, height, fill: fill || "none", stroke, "stroke-width": stroke ? line : null }));
  }
  circle(cx, cy, r, fill, stroke) {
    this.root.append(svg("circle", { cx, cy, r, fill, stroke }));
  }
  line(x1, y1, x2, y2, stroke, width = 1) {
    this.root.append(svg("line", { x1, y1, x2, y2, stroke, "stroke-width": width }));
  }
  grid(x, y, width, height, rows, columns, kind, share) {
    const [wide, high] = [width / columns, height / rows];
    for (let i = 0; i < rows * columns; i++) {
      const [row, column] = [(i / columns) | 0, i % columns];
      this.rect(x + column * wide, y + row * high, wide + 0.2, high + 0.2, shade(kind, share(row, column)));
    }
  }
  text(x, y, text, { size = 12, fill = "#000", align = "start", turn = 0, weight = 400, rtl = false } = {}) {
    const anchor = rtl && align !== "middle" ? (align === "start" ? "end" : "start") : align;
    this.root.append(svg("text", {
      x, y, fill, "font-size": size, "font-weight": weight, "text-anchor": anchor, "dominant-baseline": "central", direction: rtl ? "rtl" : null,
      transform: turn ? `rotate(${turn} ${x} ${y})` : null,
    }, text));
  }
}

// The same verbs from another corner.
function shifted(painter, dx, dy) {
  return {
    rect: (x, y, ...rest) => painter.rect(x + dx, y + dy, ...rest), text: (x, y, ...rest) => painter.text(x + dx, y + dy, ...rest),
    circle: (x, y, ...rest) => painter.circle(x + dx, y + dy, ...rest), grid: (x, y, ...rest) => painter.grid(x + dx, y + dy, ...rest),
    line: (ax, ay, bx, by, ...rest) => painter.line(ax + dx, ay + dy, bx + dx, by + dy, ...rest),
  };
}

const widths = new Map();
let measurer = null;
function textWidth(text, size, weight = 400) {
  measurer = measurer || document.createElement("canvas").getContext("2d");
  const font = `${weight} ${size}px ${FONT}`;
  const key = font + text;
  if (!widths.has(key)) {
    if (widths.size > 20000) widths.clear();
    if (measurer.wanted !== font) measurer.font = measurer.wanted = font;
    widths.set(key, measurer.measureText(text).width);
  }
  return widths.get(key);
}

// draw(painter) with its size -> files. An inline <svg> passes itself instead.
function saveFigure(stem, kind, figure) {
  if (kind === "svg") return saveFile(`${stem}.svg`, svgText(figure), "image/svg+xml");
  const size = figure.node ? { width: Number(figure.node.getAttribute("width")), height: Number(figure.node.getAttribute("height")) } : figure;
  const canvas = document.createElement("canvas");
  const scale = Math.min(2, 8000 / Math.max(size.width, size.height));
  const painter = new CanvasPainter(canvas, size.width, size.height, scale);
  painter.rect(0, 0, size.width, size.height, css("panel"));
  const done = () => canvas.toBlob((blob) => saveFile(`${stem}.png`, blob), "image/png");
  if (!figure.node) {
    figure.draw(painter);
    return done();
  }
  const image = new Image();
  image.onload = () => {
    painter.context.drawImage(image, 0, 0, size.width, size.height);
    done();
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText(figure));
  return undefined;
}

function svgText(figure) {
  let root;
  if (figure.node) {
    root = figure.node.cloneNode(true);
    root.setAttribute("xmlns", SVG_SPACE);
    root.setAttribute("font-family", FONT);
    root.insertBefore(svg("rect", { width: "100%", height: "100%", fill: css("panel") }), root.firstChild);
  } else {
    const painter = new SvgPainter(figure.width, figure.height);
    painter.rect(0, 0, figure.width, figure.height, css("panel"));
    figure.draw(painter);
    root = painter.root;
  }
  return new XMLSerializer().serializeToString(root);
}

// The save buttons under a figure; `figure()` gives the present drawing, `rows()` its numbers as {caption, heads, rows}.
function figureTools(stem, figure, rows) {
  const holder = el("div", { class: "s-as-table", hidden: true });
  const toggle = button("As a table", () => {
    holder.hidden = !holder.hidden;
    toggle.setAttribute("aria-expanded", String(!holder.hidden));
    if (holder.hidden) return;
    const content = rows();
    clear(holder).append(table(content.caption, content.heads, content.rows));
  }, { class: "s-quiet", "aria-expanded": "false" });
  const bar = el("div", { class: "s-tools" },
    el("span", { class: "s-tools-name" }, "Save"),
    button("PNG", () => saveFigure(stem, "png", figure()), { class: "s-quiet", "aria-label": `Save the ${stem} as PNG` }),
    button("SVG", () => saveFigure(stem, "svg", figure()), { class: "s-quiet", "aria-label": `Save the ${stem} as SVG` }),
    toggle,
  );
  const node = el("div", { class: "s-figure-foot" }, bar, holder);
  node.refresh = () => {
    if (holder.hidden) return;
    const content = rows();
    clear(holder).append(table(content.caption, content.heads, content.rows));
  };
  return node;
}
