// Colours and scales, from look.json, which Python reads too. Weights and gates: one sequential scale, fixed from 0 to 1.
// Signed values: one diverging scale. Larger values contrast more with the panel, in both themes.
import { el } from "./core.js";
import LOOK from "./look.json" with { type: "json" };

export function isDark() {
  return document.body.classList.contains("dark");
}

function hex(colour) {
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
}

function look() {
  return isDark() ? LOOK.dark : LOOK.light;
}

const ramps = new Map();
export function ramp(kind) {
  const key = (isDark() ? "dark" : "light") + kind;
  if (!ramps.has(key)) {
    const stops = look().scales[kind].map(hex);
    const values = new Uint8ClampedArray(256 * 3);
    for (let i = 0; i < 256; i++) {
      const at = (i / 255) * (stops.length - 1);
      const low = Math.min(Math.floor(at), stops.length - 2);
      for (let c = 0; c < 3; c++) values[i * 3 + c] = stops[low][c] + (stops[low + 1][c] - stops[low][c]) * (at - low);
    }
    ramps.set(key, values);
  }
  return ramps.get(key);
}

// share: 0..1 along the ramp
export function shade(kind, share) {
  const i = Math.max(0, Math.min(255, Math.round(share * 255))) * 3;
  const values = ramp(kind);
  return `rgb(${values[i]},${values[i + 1]},${values[i + 2]})`;
}

export function inkOn(kind, share) {
  const i = Math.max(0, Math.min(255, Math.round(share * 255))) * 3;
  const values = ramp(kind);
  return 0.299 * values[i] + 0.587 * values[i + 1] + 0.114 * values[i + 2] > 140 ? "#10151d" : "#ffffff";
}

// A colour of the look by its name in look.json; the sheets have the same ones as --s-name.
export function css(name) {
  return look().colours[name];
}

export function palette() {
  return look().colours;
}

export function onThemeChange(action) {
  const watcher = new MutationObserver(action);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  return () => watcher.disconnect();
}

export function legend(kind, low, high, label) {
  const stops = look().scales[kind].join(", ");
  return el("span", { class: "s-scale" }, el("span", {}, low), el("span", { class: "s-ramp", style: { background: `linear-gradient(90deg, ${stops})` }, role: "img", "aria-label": label }), el("span", {}, high));
}
