// Where the parts of a grid stand.
import { textWidth } from "./painter.js";

export const LABEL = 13; // pixels
export const EDGE = 8;

// The name of a column stands upright where the axis wants it so and the name is no wider than its column.
export function isTurned(columns, cell, cellWide, name) {
  return !columns.flat || (cell.least >= 4 && textWidth(name, LABEL) > cellWide);
}

/** The middle of a text that is so wide, near `x` and not over the edges of the canvas. @param {number} x @param {number} wide @param {number} room */
export function onCanvas(x, wide, room) {
  return Math.max(wide / 2, Math.min(x, room - wide / 2));
}

/** The places of all parts, in pixels. @param {import("./grid.js").GridPayload} payload @param {number} room */
export function gridLayout({ rows, columns, cell }, room) {
  const wide = Math.min(130, room * 0.36, Math.max(24, ...rows.names.map((name) => textWidth(name, LABEL))));
  const left = Math.ceil(wide) + 14;
  const fair = (room - left - EDGE) / Math.max(1, columns.names.length);
  const cellWide = Math.max(cell.least, Math.min(cell.most, cell.least >= 4 ? Math.floor(fair) : fair));
  const cellHigh = Math.max(cell.least >= 4 ? 20 : 3, Math.min(cell.high, cell.least >= 4 ? cellWide : 320 / Math.max(1, rows.names.length)));
  const high = columns.names.filter((name) => isTurned(columns, cell, cellWide, name)).map((name) => textWidth(name, LABEL));
  const top = high.length ? Math.ceil(Math.min(110, Math.max(16, ...high))) + 14 : 24;
  const [across, down] = [cellWide * columns.names.length, cellHigh * rows.names.length];
  return { left, top, cellWide, cellHigh, across, down, width: left + across + EDGE, height: top + down + EDGE };
}
