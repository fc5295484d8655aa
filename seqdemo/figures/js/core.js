// Small helpers: DOM without markup strings, numbers, packed arrays, one tooltip. Users' text is only ever put into text nodes.
/** @typedef {{dtype: string, shape: number[], base64: string, scale?: number}} Packed  an array as Python packs it */

export const SVG_SPACE = "http://www.w3.org/2000/svg";

// Handlers are stored by node, so that a reused node (patch.js) can take over the handlers of a new one.
const handlers = new WeakMap();

function dispatch(event) {
  for (const handler of handlers.get(event.currentTarget)[event.type] || []) handler(event);
}

export function listen(node, event, handler) {
  if (!handlers.has(node)) handlers.set(node, {});
  const own = handlers.get(node);
  if (!own[event]) node.addEventListener(event, dispatch);
  own[event] = [...(own[event] || []), handler];
}

/** Give `old` the handlers of `node`. */
export function adopt(old, node) {
  const [was, is] = [handlers.get(old) || {}, handlers.get(node) || {}];
  for (const event of Object.keys(is)) if (!was[event]) old.addEventListener(event, dispatch);
  for (const event of Object.keys(was)) if (!is[event]) old.removeEventListener(event, dispatch);
  handlers.set(old, is);
}

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) listen(node, event, handler);
    } else if (name === "style") {
      for (const [key, item] of Object.entries(value)) node.style.setProperty(key, item);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export function el(tag, attributes, ...children) {
  return put(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return put(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

export function button(label, onClick, attributes) {
  return el("button", { type: "button", on: { click: onClick }, ...(attributes || {}) }, label);
}

let lastId = 0;
export function newId(stem) {
  lastId += 1;
  return `${stem}-${lastId}`;
}

export function unpack(packed) {
  if (!packed) return null;
  const raw = atob(packed.base64);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const kinds = { float32: Float32Array, float64: Float64Array, int32: Int32Array, int16: Int16Array, int8: Int8Array, uint8: Uint8Array };
  return new kinds[packed.dtype](bytes.buffer);
}

export function signed(value, digits = 3) {
  if (value === null || value === undefined || value < -1e30) return "−∞";
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
}

/** A number as it stands, with a true minus sign. @param {number} value */
export function numeral(value) {
  return String(value).replace("-", "−");
}

export function probability(logp, digits = 2) {
  if (logp === null || logp === undefined) return "0";
  const p = Math.exp(logp);
  if (p >= 0.0995) return p >= 0.9995 ? "1.00" : p.toFixed(digits);
  return p >= 0.00095 ? p.toFixed(3) : p.toExponential(0).replace("e-", "·10⁻").replace(/\d+$/, (n) => superscript(n));
}

function superscript(digits) {
  return [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)] || digit).join("");
}

// How many times, in the words of the examples' notes (training/publish/gallery_kinds.py).
export function times(ratio) {
  if (ratio > 9999) return `10${superscript(String(Math.round(Math.log10(ratio))))} times`;
  if (ratio >= 100) return `${Math.round(ratio).toLocaleString("en")} times`;
  return `${ratio.toFixed(ratio < 2 ? 2 : ratio < 20 ? 1 : 0)}×`;
}

export function debounce(action, wait) {
  /** @type {any} */
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
}

export function clear(node) {
  node.replaceChildren();
  return node;
}

// One tooltip for the whole document; `lines` are plain strings, the first is the title. It describes the `owner` it belongs to.
export const tip = {
  node: null,
  owner: null,

  show(lines, x, y, owner = null) {
    if (!tip.node || !tip.node.isConnected) {
      tip.node = el("div", { class: "s-tip", role: "tooltip", id: "s-tip" });
      (document.querySelector(".s-root") || document.body).append(tip.node); // inside the page's landmark
    }
    if (owner !== tip.owner) tip.hide();
    clear(tip.node).append(...lines.filter(Boolean).map((line, i) => el("div", { class: i ? "" : "s-tip-title" }, line)));
    tip.node.style.display = "block";
    const box = tip.node.getBoundingClientRect();
    tip.node.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.node.style.top = `${y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 12) : y + 18}px`;
    tip.owner = owner;
    if (owner) owner.setAttribute("aria-describedby", "s-tip");
  },

  hide() {
    if (tip.owner) tip.owner.removeAttribute("aria-describedby");
    tip.owner = null;
    if (tip.node) tip.node.style.display = "none";
  },
};

// A tip opens under the pointer, on focus, and by a tap.
export function tipFor(node, lines) {
  const said = () => (typeof lines === "function" ? lines() : lines);
  const below = ({ currentTarget }) => {
    const box = currentTarget.getBoundingClientRect();
    tip.show(said(), box.left, box.bottom - 12, currentTarget);
  };
  let touched = false;
  const on = {
    pointerdown: (event) => (touched = event.pointerType === "touch"),
    pointerenter: (event) => event.pointerType !== "touch" && tip.show(said(), event.clientX, event.clientY, event.currentTarget),
    focus: below,
    click: (event) => (touched ? below(event) : tip.hide()),
    pointerleave: (event) => event.pointerType !== "touch" && tip.hide(),
    blur: tip.hide,
    keydown: (event) => event.key === "Escape" && tip.hide(),
  };
  for (const [event, handler] of Object.entries(on)) listen(node, event, handler);
  return node;
}

export function saveFile(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 40000);
}

export function table(caption, heads, rows, limit = 400) {
  const cut = rows.length > limit;
  return el(
    "div", { class: "s-table-wrap", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "s-table" },
      el("caption", {}, caption + (cut ? ` (the first ${limit} of ${rows.length} rows)` : "")),
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.slice(0, limit).map((row) => el("tr", {}, row.map((cell, i) => el(i ? "td" : "th", i ? {} : { scope: "row" }, String(cell)))))),
    ),
  );
}
