// Colour scales. Weights and gates: one sequential scale, fixed from 0 to 1. Signed values: one diverging scale. Both safe for colour-blind eyes.

const SCALES = {
  light: {
    weights: ["#ffffff", "#dbe7f6", "#a9c8ea", "#6ba3da", "#3477bd", "#1b4f91", "#0b2a5b"],
    signed: ["#8a3b00", "#c96a14", "#f0b978", "#ffffff", "#93c0e6", "#3477bd", "#0b3a73"],
  },
  dark: {
    weights: ["#151a23", "#1c2f4a", "#214a7a", "#2f6cb0", "#5896dc", "#98c3f5", "#e6f2ff"],
    signed: ["#ffc183", "#dd812d", "#7a4a1f", "#151a23", "#23507f", "#4f94db", "#bcdcff"],
  },
};

function isDark() {
  return document.body.classList.contains("dark");
}

function hex(colour) {
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
}

const ramps = new Map();
function ramp(kind) {
  const key = (isDark() ? "dark" : "light") + kind;
  if (!ramps.has(key)) {
    const stops = SCALES[isDark() ? "dark" : "light"][kind].map(hex);
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
function shade(kind, share) {
  const i = Math.max(0, Math.min(255, Math.round(share * 255))) * 3;
  const values = ramp(kind);
  return `rgb(${values[i]},${values[i + 1]},${values[i + 2]})`;
}

function inkOn(kind, share) {
  const i = Math.max(0, Math.min(255, Math.round(share * 255))) * 3;
  const values = ramp(kind);
  return 0.299 * values[i] + 0.587 * values[i + 1] + 0.114 * values[i + 2] > 140 ? "#10151d" : "#ffffff";
}

// Read once a theme: asking for a computed style makes the browser compute all of them.
const colours = new Map();
function css(name) {
  const key = (isDark() ? "dark " : "light ") + name;
  if (!colours.has(key)) colours.set(key, getComputedStyle(document.body).getPropertyValue(`--s-${name}`).trim());
  return colours.get(key);
}

function palette() {
  const names = ["ink", "muted", "line", "panel", "ground", "a", "b", "a-soft", "b-soft", "accent", "warn"];
  return Object.fromEntries(names.map((name) => [name, css(name)]));
}

function onThemeChange(action) {
  new MutationObserver(action).observe(document.body, { attributes: true, attributeFilter: ["class"] });
}

function legend(kind, low, high, label) {
  const stops = SCALES[isDark() ? "dark" : "light"][kind].join(", ");
  return el("span", { class: "s-scale" }, el("span", {}, low), el("span", { class: "s-ramp", style: { background: `linear-gradient(90deg, ${stops})` }, role: "img", "aria-label": label }), el("span", {}, high));
}
