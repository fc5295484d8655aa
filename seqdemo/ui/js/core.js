// Small helpers: DOM without markup strings, numbers, packed arrays, one tooltip. Person's text only ever enters through text nodes.

const SVG_SPACE = "http://www.w3.org/2000/svg";

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
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

function el(tag, attributes, ...children) {
  return put(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return put(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function button(label, onClick, attributes) {
  return el("button", { type: "button", on: { click: onClick }, ...(attributes || {}) }, label);
}

let lastId = 0;
function newId(stem) {
  lastId += 1;
  return `${stem}-${lastId}`;
}

function unpack(packed) {
  if (!packed) return null;
  const raw = atob(packed.base64);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const kinds = { float32: Float32Array, float64: Float64Array, int32: Int32Array, int16: Int16Array, int8: Int8Array, uint8: Uint8Array };
  return new kinds[packed.dtype](bytes.buffer);
}

function signed(value, digits = 3) {
  if (value === null || value === undefined || value < -1e30) return "−∞";
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
}

function probability(logp, digits = 2) {
  if (logp === null || logp === undefined) return "0";
  const p = Math.exp(logp);
  if (p >= 0.0995) return p >= 0.9995 ? "1.00" : p.toFixed(digits);
  return p >= 0.00095 ? p.toFixed(3) : p.toExponential(0).replace("e-", "·10⁻").replace(/\d+$/, (n) => superscript(n));
}

function superscript(digits) {
  return [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)] || digit).join("");
}

function times(ratio) {
  if (ratio >= 1e6) {
    const power = Math.floor(Math.log10(ratio));
    return `${(ratio / 10 ** power).toFixed(1)}·10${superscript(String(power))} times`;
  }
  if (ratio >= 100) return `${Math.round(ratio).toLocaleString("en")} times`;
  return `${ratio.toFixed(ratio >= 10 ? 0 : ratio >= 1.095 ? 1 : 2)}×`;
}

function debounce(action, wait) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
}

function clear(node) {
  node.replaceChildren();
  return node;
}

// One tooltip for the whole page; `lines` are plain strings, the first is the title.
const tip = {
  node: null,
  show(lines, x, y) {
    if (!tip.node) {
      tip.node = el("div", { class: "s-tip", role: "tooltip", id: "s-tip" });
      document.body.append(tip.node);
    }
    clear(tip.node).append(...lines.filter(Boolean).map((line, i) => el("div", { class: i ? "" : "s-tip-title" }, line)));
    tip.node.style.display = "block";
    const box = tip.node.getBoundingClientRect();
    tip.node.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.node.style.top = `${y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 12) : y + 18}px`;
  },
  hide() {
    if (tip.node) tip.node.style.display = "none";
  },
};

function tipFor(node, lines) {
  const open = (x, y) => tip.show(typeof lines === "function" ? lines() : lines, x, y);
  node.addEventListener("pointerenter", (event) => open(event.clientX, event.clientY));
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    open(box.left, box.bottom - 12);
  });
  for (const name of ["pointerleave", "blur", "click"]) node.addEventListener(name, tip.hide);
  node.addEventListener("keydown", (event) => event.key === "Escape" && tip.hide());
  return node;
}

function saveFile(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 2000);
}

function table(caption, heads, rows, limit = 400) {
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
