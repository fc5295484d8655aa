// A saved picture shows what is on screen, under a heading with title, input, output, checkpoint, and the scale of its colours.
import { button, clear, el, saveFile, table } from "./core.js";
import { css } from "./colour.js";
import { SvgPainter, shifted, textWidth } from "./painter.js";
import { graphemes, visible } from "./text.js";

/**
 * @typedef {(name: string) => boolean} Tables  whether the table of a figure is open
 * @typedef {{title: string, input?: string, output?: string, checkpoint?: string, scale?: import("./grid.js").Scale | null}} Facts
 * @typedef {{width?: number, height?: number, draw?: (painter: any) => void, node?: SVGSVGElement}} Figure  drawn by `draw`, or an SVG that stands there
 * @typedef {{caption: string, heads: string[], rows: (string | number)[][]}} Rows
 */

const MARGIN = 14;
const LINE = 19;
const MOST_PIXELS = 8000;

/** Text in lines of at most `room` pixels, broken at spaces, or between graphemes where there is none. */
export function wrapped(text, size, room, weight = 400) {
  const lines = [];
  let line = "";
  const fits = (longer) => textWidth(longer, size, weight) <= room;
  for (const word of text.split(/(?<=\s)/)) {
    if (fits(line + word.trimEnd())) line += word;
    else {
      if (line) lines.push(line.trimEnd());
      line = "";
      for (const { segment } of graphemes(word)) {
        if (!fits(line + segment)) {
          lines.push(line);
          line = "";
        }
        line += segment;
      }
    }
  }
  return [...lines, line.trimEnd()].filter(Boolean);
}

function heading(facts, room) {
  const isolated = (text) => `\u2068${visible(text)}\u2069`; // each text keeps its own direction
  const about = [["Input", facts.input], ["Output", facts.output], ["Model", facts.checkpoint]].filter(([, text]) => text);
  return [
    ...wrapped(visible(facts.title || ""), 15, room, 650).map((text) => ({ text, size: 15, weight: 650, fill: css("ink") })),
    ...about.flatMap(([name, text]) => wrapped(`${name}: ${isolated(text)}`, 12, room).map((line) => ({ text: line, size: 12, fill: css("muted") }))),
  ];
}

function drawScale(painter, y, { kind, low, high, label }) {
  const shown = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
  painter.text(MARGIN, y + 7, `${label}  ${shown(low)}`, { size: 12, fill: css("muted") });
  const x = MARGIN + textWidth(`${label}  ${shown(low)}`, 12) + 8;
  painter.grid(x, y, 120, 13, 1, 60, kind, (_, column) => column / 59);
  painter.rect(x, y, 120, 13, null, css("line"));
  painter.text(x + 128, y + 7, shown(high), { size: 12, fill: css("muted") });
}

/** @param {Figure} figure @param {Facts} facts @returns {SVGSVGElement} */
export function pictureOf(figure, facts) {
  const size = figure.node ? { width: Number(figure.node.getAttribute("width")), height: Number(figure.node.getAttribute("height")) } : figure;
  const width = Math.max(Math.ceil(size.width) + 2 * MARGIN, 380);
  const lines = heading(facts, width - 2 * MARGIN);
  const top = MARGIN + lines.length * LINE + 6;
  const height = top + Math.ceil(size.height) + MARGIN + (facts.scale ? 26 : 0);
  const painter = new SvgPainter(width, height);
  painter.rect(0, 0, width, height, css("panel"));
  lines.forEach(({ text, ...style }, i) => painter.text(MARGIN, MARGIN + (i + 0.5) * LINE, text, style));
  if (figure.node) {
    const inner = /** @type {SVGSVGElement} */ (figure.node.cloneNode(true));
    for (const [name, value] of [["x", MARGIN], ["y", top]]) inner.setAttribute(String(name), String(value));
    painter.root.append(inner);
  } else figure.draw(shifted(painter, MARGIN, top));
  if (facts.scale) drawScale(painter, height - MARGIN - 13, facts.scale);
  return painter.root;
}

/** @param {string} stem @param {"png" | "svg"} kind @param {Figure} figure @param {Facts} facts */
export function saveFigure(stem, kind, figure, facts) {
  const root = pictureOf(figure, facts);
  const written = new XMLSerializer().serializeToString(root);
  if (kind === "svg") return saveFile(`${stem}.svg`, written, "image/svg+xml");
  const [width, height] = [Number(root.getAttribute("width")), Number(root.getAttribute("height"))];
  const scale = Math.min(2, MOST_PIXELS / Math.max(width, height));
  const canvas = el("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  const image = new Image();
  image.onload = () => {
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && saveFile(`${stem}.png`, blob, "image/png"), "image/png");
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(written);
  return undefined;
}

/**
 * The save buttons under a figure, and its numbers as a table on demand. The event "table" tells that the user has opened or closed it.
 * @param {string} stem @param {() => Figure} figure @param {() => Rows} rows @param {() => Facts} facts @param {import("./grid.js").Emit} emit
 */
export function figureTools(stem, figure, rows, facts, emit) {
  const holder = el("div", { class: "s-as-table", hidden: true });
  const fill = () => {
    const { caption, heads, rows: lines } = rows();
    clear(holder).append(table(caption, heads, lines));
  };
  const open = (wanted) => {
    if (wanted !== holder.hidden) return;
    holder.hidden = !wanted;
    toggle.setAttribute("aria-expanded", String(wanted));
    if (wanted) fill();
  };
  const toggle = button("As a table", () => {
    open(holder.hidden);
    emit("table", { name: stem, open: !holder.hidden });
  }, { class: "s-quiet", "aria-expanded": "false" });
  const name = stem.replaceAll("-", " ");
  const save = (kind) => button(kind.toUpperCase(), () => saveFigure(stem, kind, figure(), facts()), { class: "s-quiet", "aria-label": `Save the ${name} as ${kind.toUpperCase()}` });
  const node = el("div", { class: "s-figure-foot" }, el("div", { class: "s-tools" }, el("span", { class: "s-tools-name" }, "Save"), save("png"), save("svg"), toggle), holder);
  node.refresh = () => holder.hidden || fill();
  node.show = (tables) => tables && open(tables(stem)); // the page knows which tables are open; without one, the drawing does
  return node;
}
