// The page is patched, never rebuilt, so that nodes keep their focus, scroll position and selection.
import { adopt, tip } from "./core.js";

/** Makes the children of `parent` look like `children`. A node is reused for the one with its key (data-key or id), or else for the next of its kind. */
export function patch(parent, ...children) {
  const next = children.flat(4).filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
  const own = new Set(next);
  const free = [...parent.childNodes].filter((node) => !own.has(node));
  const kept = next.map((node) => (node.parentNode === parent ? node : match(free, node)));
  const lost = free.findIndex((node) => node.contains(document.activeElement));
  const at = lost < 0 ? 0 : [...parent.childNodes].filter((node) => !free.includes(node) || node === free[lost]).indexOf(free[lost]);
  free.forEach((node) => node.remove());
  kept.forEach((old, i) => {
    if (old && old !== next[i]) morph(old, next[i]);
    const node = old || next[i];
    if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i] || null);
  });
  if (lost >= 0) refocus(parent, at);
  return parent;
}

const FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0']";

// The focused control was removed: focus the next one, or else the one before.
function refocus(parent, at) {
  const controls = (node) => (node.nodeType === 1 ? [...(node.matches(FOCUSABLE) ? [node] : []), ...node.querySelectorAll(FOCUSABLE)] : []);
  const nodes = [...parent.childNodes];
  const seen = (node) => node.getClientRects().length > 0;
  let found = nodes.slice(at).flatMap(controls).find(seen) || nodes.slice(0, at).flatMap(controls).reverse().find(seen);
  for (let around = parent; !found && around; around = around.parentElement) {
    const others = controls(around).filter(seen);
    found = others.find((node) => parent.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING) || others.at(-1);
  }
  if (found) found.focus({ preventScroll: true });
}

function keyOf(node) {
  return node.nodeType === 1 ? node.getAttribute("data-key") || node.id : "";
}

// Takes the old node that is reused for the new one out of `free`.
function match(free, node) {
  const key = keyOf(node);
  const at = free.findIndex((old) => old.nodeName === node.nodeName && keyOf(old) === key);
  return at < 0 ? null : free.splice(at, 1)[0];
}

function morph(old, node) {
  if (old.nodeType !== 1) {
    if (old.data !== node.data) old.data = node.data;
    return;
  }
  adopt(old, node);
  attributes(old, node);
  if (old.nodeName !== "TEXTAREA") patch(old, ...node.childNodes);
  properties(old, node);
}

function attributes(old, node) {
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name) && !(name === "aria-describedby" && tip.owner === old)) old.removeAttribute(name);
  for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

// A field in which the user is typing is not changed.
function properties(old, node) {
  if (old.nodeName === "SELECT" && old.value !== node.value) old.value = node.value;
  if (old.nodeName !== "INPUT") return;
  if (old.checked !== node.checked) old.checked = node.checked;
  const typing = document.activeElement === old && ["text", "number"].includes(old.type);
  if (!typing && old.type !== "file" && old.value !== node.value) old.value = node.value;
}
