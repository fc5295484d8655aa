// One set of drawing functions with two implementations: a canvas for the page and SVG for files, so that both look the same.
import { SVG_SPACE, svg } from "./core.js";
import { ramp } from "./colour.js";
import { graphemes } from "./text.js";

const FONT = '"Segoe UI", "Noto Sans", system-ui, -apple-system, "Noto Sans Devanagari", "Noto Naskh Arabic", sans-serif';

// One pixel a cell: share(row, column) along the ramp `kind`, nothing where it is NaN.
function cellImage(rows, columns, kind, share) {
  const small = document.createElement("canvas");
  [small.width, small.height] = [Math.max(1, columns), Math.max(1, rows)];
  const pixels = small.getContext("2d").createImageData(small.width, small.height);
  const colours = ramp(kind);
  for (let i = 0; i < rows * columns; i++) {
    const along = share((i / columns) | 0, i % columns);
    const at = Math.max(0, Math.min(255, Math.round(along * 255))) * 3;
    for (let c = 0; c < 3; c++) pixels.data[i * 4 + c] = colours[at + c];
    pixels.data[i * 4 + 3] = Number.isNaN(along) ? 0 : 255;
  }
  small.getContext("2d").putImageData(pixels, 0, 0);
  return small;
}

export class CanvasPainter {
  constructor(canvas, width, height, scale) {
    const ratio = scale || Math.min(window.devicePixelRatio || 1, 2);
    const [wide, high] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (canvas.width !== wide) canvas.width = wide; // setting it again is slow on a canvas
    if (canvas.height !== high) canvas.height = high;
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
  line(x1, y1, x2, y2, stroke, width = 1, dash = []) {
    const c = this.context;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.stroke();
    c.setLineDash([]);
  }
  // cells of one size: share(row, column) along the ramp `kind`; one image, however many cells
  grid(x, y, width, height, rows, columns, kind, share) {
    const small = cellImage(rows, columns, kind, share);
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

export class SvgPainter {
  constructor(width, height) {
    this.root = svg("svg", { xmlns: SVG_SPACE, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT });
  }
  rect(x, y, width, height, fill, stroke, line = 1) {
    this.root.append(svg("rect", { x, y, width, height, fill: fill || "none", stroke, "stroke-width": stroke ? line : null }));
  }
  circle(cx, cy, r, fill, stroke) {
    this.root.append(svg("circle", { cx, cy, r, fill, stroke }));
  }
  line(x1, y1, x2, y2, stroke, width = 1, dash = []) {
    this.root.append(svg("line", { x1, y1, x2, y2, stroke, "stroke-width": width, "stroke-dasharray": dash.join(" ") || null }));
  }
  grid(x, y, width, height, rows, columns, kind, share) {
    const href = cellImage(rows, columns, kind, share).toDataURL("image/png");
    this.root.append(svg("image", { x, y, width, height, href, preserveAspectRatio: "none", style: { "image-rendering": "pixelated" } }));
  }
  text(x, y, text, { size = 12, fill = "#000", align = "start", turn = 0, weight = 400, rtl = false } = {}) {
    const anchor = rtl && align !== "middle" ? (align === "start" ? "end" : "start") : align;
    this.root.append(svg("text", {
      x, y, fill, "font-size": size, "font-weight": weight, "text-anchor": anchor, "dominant-baseline": "central", direction: rtl ? "rtl" : null,
      transform: turn ? `rotate(${turn} ${x} ${y})` : null,
    }, text));
  }
}

// The same functions with another origin.
export function shifted(painter, dx, dy) {
  return {
    rect: (x, y, ...rest) => painter.rect(x + dx, y + dy, ...rest), text: (x, y, ...rest) => painter.text(x + dx, y + dy, ...rest),
    circle: (x, y, ...rest) => painter.circle(x + dx, y + dy, ...rest), grid: (x, y, ...rest) => painter.grid(x + dx, y + dy, ...rest),
    line: (ax, ay, bx, by, ...rest) => painter.line(ax + dx, ay + dy, bx + dx, by + dy, ...rest),
  };
}

const widths = new Map();
let measurer = null;
export function textWidth(text, size, weight = 400) {
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

// The name, or as many whole graphemes of it as fit into `room` pixels.
export function fitted(name, size, room, weight = 400) {
  if (textWidth(name, size, weight) <= room) return name;
  let kept = "";
  for (const { segment } of graphemes(name)) {
    if (textWidth(`${kept}${segment}…`, size, weight) > room) break;
    kept += segment;
  }
  return `${kept}…`;
}
