// The frame of every page: name, navigation, light or dark, and the page's own component.
import { button, clear, el } from "../../figures/js/core.js";
import { isDark } from "../../figures/js/colour.js";
import { mountWorkbench } from "./workbench.js";
import { laterBy } from "./later.js";
import { mountModels, visitorModels } from "./models.js";

const NAVIGATION = [["", "Translate"], ["transliterate", "Transliterate"], ["caption", "Caption"], ["language-model", "Language model"], ["models", "Models"]];

function header(page, words) {
  const links = NAVIGATION.map(([path, name]) => el("a", { href: path || "./", "aria-current": path === page ? "page" : null }, name));
  const theme = button(isDark() ? "Light" : "Dark", () => {
    document.body.classList.toggle("dark");
    theme.textContent = isDark() ? "Light" : "Dark";
    try {
      localStorage.setItem("seqdemo-theme", isDark() ? "dark" : "light");
    } catch { /* a browser that keeps nothing */ }
  }, { class: "s-theme", "aria-label": "Switch between light and dark" });
  return el("header", { class: "s-header" },
    el("div", { class: "s-header-line" }, el("a", { href: "./", class: "s-brand" }, "seqdemo"), el("nav", { "aria-label": "Pages" }, links), theme),
    el("div", { class: "s-lead" }, el("h1", {}, words.title), el("p", {}, words.lead)));
}

function footer() {
  return el("footer", { class: "s-footer" },
    el("p", {}, "What you type stays on this server only while it is answered. ", el("a", { href: "programs" }, "For programs: the API"), "."));
}

function rememberTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("seqdemo-theme");
  } catch { /* a browser that keeps nothing */ }
  if (kept && !new URLSearchParams(location.search).has("__theme")) document.body.classList.toggle("dark", kept === "dark");
}

const TOO_LATE = 4000; // milliseconds; what takes the server a few of them when it is there

const anyName = () => [...crypto.getRandomValues(new Uint32Array(4))].map((number) => number.toString(36)).join("");

// The connection to the server. Questions and uploads wait until the component is mounted.
class Line {
  constructor() {
    this.waiting = [];
    this.here = new Promise((come) => { this.come = () => come(null); });
    this.send = (kind, message) => this.trigger(kind, message);
    const uploader = new Promise((resolve) => { this.uploadWith = resolve; });
    this.upload = async (file) => (await uploader)(file);
    const visit = anyName();
    const ticket = (kind, number) => `${visit}.${kind}.${number}`; // the name of a long question, by which it is stopped
    this.ways = {
      short: (message) => this.short(message),
      ask: (message) => this.connected("ask", { ...message, ticket: ticket("ask", message.seq) }),
      stop: ({ seq }) => this.giveUp(ticket("ask", seq)),
      probe: (message) => this.connected("probe", { ...message, ticket: ticket("probe", message.id) }),
      halt: ({ id }) => this.giveUp(ticket("probe", id)),
      compare: (message) => this.connected("compare", message),
    };
  }

  trigger(kind, message) {
    if (this.connected) this.ways[kind](message);
    else this.waiting.push([kind, message]);
  }

  /** A question that passes the queue by. */
  async short(message) {
    try {
      this.hear(await this.server.short(message));
    } catch { /* its answer is late: the asker looks how the server is */ }
  }

  async giveUp(ticket) {
    try {
      await this.server.give_up({ ticket });
    } catch { /* a server that is gone has stopped */ }
  }

  /** The state of the server: here, with a full queue, or gone; unknown before the component is mounted. */
  async health() {
    if (!this.server) return "here";
    const late = new Promise((done) => setTimeout(() => done("gone"), TOO_LATE));
    try {
      const told = await Promise.race([this.server.health(), late]);
      return ["here", "full"].includes(told) ? told : "gone";
    } catch {
      return "gone";
    }
  }

  /** A short question about what is under the hand; it waits for the component. */
  async hand(message) {
    await this.here;
    return this.server.hand(message);
  }

  connect({ trigger, upload, server, hear }) {
    this.server = server;
    this.hear = hear; // the answers
    laterBy(server);
    this.come();
    this.connected = trigger;
    this.uploadWith(upload);
    this.waiting.splice(0).forEach(([kind, message]) => this.trigger(kind, message));
  }
}

// A page inside `root`: its frame at once, the rest with `fill`.
class Shell {
  constructor(root, first) {
    /** @type {HTMLElement} */
    this.root = root;
    this.first = first;
    this.name = first.setup.page;
    this.line = new Line();
    /** @type {any} */
    this.page = null;
    this.filled = false;
    this.body = el("div", { class: "s-page" });
    root.append(header(first.setup.page, first.setup.words), this.body, footer());
  }

  fill() {
    if (this.filled) return;
    this.filled = true;
    const { setup } = this.first;
    if (setup.kind === "workbench") setup.checkpoints.push(...visitorModels().filter((card) => card.task === setup.task));
    if (setup.kind === "workbench" && !setup.checkpoints.length) {
      this.body.append(el("p", { class: "s-none", role: "status" },
        "No model for this page is here. ", el("a", { href: "models" }, "Load one on the Models page"), " by its repository, and it works on this page."));
      return;
    }
    const mounts = { workbench: mountWorkbench, models: mountModels };
    this.page = mounts[setup.kind](this.body, this.first, this.line.send, () => this.line.health(), this.line);
    this.page.upload = this.line.upload;
    const own = /** @type {any} */ (window).seqdemo;
    own.page = this.page;
  }

  // Move into the component. A field that is being typed into keeps its caret.
  moveTo(root) {
    const active = /** @type {HTMLElement} */ (document.activeElement);
    const inside = this.root.contains(active);
    root.append(...this.root.childNodes);
    this.root.remove();
    if (inside) active.focus({ preventScroll: true });
  }
}

// What a page starts with. Its worked result and the small pictures of its examples are a file that a browser keeps; without it the page asks.
function firstOf(body) {
  const first = JSON.parse(body);
  const kept = (/** @type {any} */ (window).seqdemoFrozen || {})[first.frozen] || { answer: null, thumbnails: {} };
  for (const example of first.setup.examples || []) if (example.photo in kept.thumbnails) example.thumbnail = kept.thumbnails[example.photo];
  return { ...first, answer: structuredClone(kept.answer) };
}

// Called by the document before Gradio's scripts have come: the page's data stand in the document already.
let begun = null;
let themeKept = null;
export function early() {
  const { components } = /** @type {any} */ (window).gradio_config || {};
  const own = (components || []).find(({ props }) => props && String(props.elem_id).startsWith("page-"));
  if (!own) return;
  const asked = new URLSearchParams(location.search).get("__theme");
  document.body.classList.toggle("dark", asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  rememberTheme();
  themeKept = new MutationObserver(rememberTheme); // Gradio sets the system's again
  themeKept.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  const holder = el("main", { class: "s-root s-early" });
  document.body.prepend(holder);
  begun = new Shell(holder, firstOf(own.props.value.body));
  requestAnimationFrame(() => setTimeout(() => begun.fill())); // after the frame is painted
}

// Called by the component of each page.
export function mount(element, props, trigger, watch, upload, server) {
  const first = firstOf(props.value.body);
  if (themeKept) themeKept.disconnect();
  rememberTheme();
  const root = clear(element.querySelector(".s-root"));
  const drawn = begun && begun.name === first.setup.page && begun.root.isConnected;
  const shell = drawn ? begun : new Shell(root, first);
  shell.fill();
  if (drawn) shell.moveTo(root);
  const { line, page } = shell;
  if (!page) return;
  const hear = ({ body, seq }) => {
    const answer = JSON.parse(body);
    if (answer.probe) page.hand.hear(answer.probe);
    else page.asker.receive({ ...answer, seq });
  };
  line.connect({ trigger, upload, server, hear });
  if (page.placePlot) page.placePlot();
  watch("value", () => hear(props.value));
}
