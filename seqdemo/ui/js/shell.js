// The frame of every page: name, navigation, light or dark, and the page's own component.

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
    el("p", {}, "What you type stays on this server only while it is answered. ", el("a", { href: "./?view=api" }, "For programs: the API"), "."));
}

function rememberTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("seqdemo-theme");
  } catch { /* a browser that keeps nothing */ }
  if (kept && !new URLSearchParams(location.search).has("__theme")) document.body.classList.toggle("dark", kept === "dark");
}

// The line to the server: what is asked, and what is uploaded, before the component is there waits for it.
class Line {
  constructor() {
    this.waiting = [];
    this.send = (kind, message) => this.trigger(kind, message);
    const uploader = new Promise((resolve) => { this.uploadWith = resolve; });
    this.upload = async (file) => (await uploader)(file);
  }

  trigger(kind, message) {
    if (this.connected) this.connected(kind, message);
    else this.waiting.push([kind, message]);
  }

  connect(trigger, upload) {
    this.connected = trigger;
    this.uploadWith(upload);
    this.waiting.splice(0).forEach(([kind, message]) => trigger(kind, message));
  }
}

// A page inside `root`: its frame at once, the rest with `fill`.
class Shell {
  constructor(root, first) {
    Object.assign(this, { root, first, name: first.setup.page, line: new Line(), page: null, filled: false });
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
    this.page = mounts[setup.kind](this.body, this.first, this.line.send);
    this.page.upload = this.line.upload;
    window.seqdemo.page = this.page;
  }

  // Moves into the component; whoever types there keeps the caret.
  moveTo(root) {
    const active = document.activeElement;
    const inside = this.root.contains(active);
    root.append(...this.root.childNodes);
    this.root.remove();
    if (inside) active.focus({ preventScroll: true });
  }
}

// Called by the document before Gradio's scripts have come: the page's data stand in the document already.
let begun = null;
let themeKept = null;
function early() {
  const { components } = window.gradio_config || {};
  const own = (components || []).find(({ props }) => props && String(props.elem_id).startsWith("page-"));
  if (!own) return;
  const asked = new URLSearchParams(location.search).get("__theme");
  document.body.classList.toggle("dark", asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  rememberTheme();
  themeKept = new MutationObserver(rememberTheme); // Gradio sets the system's again
  themeKept.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  const holder = el("main", { class: "s-root s-early" });
  document.body.prepend(holder);
  begun = new Shell(holder, JSON.parse(own.props.value.body));
  requestAnimationFrame(() => setTimeout(() => begun.fill())); // once the frame is painted
}

// Called by the component of each page.
function mount(element, props, trigger, watch, upload) {
  const first = JSON.parse(props.value.body);
  if (themeKept) themeKept.disconnect();
  rememberTheme();
  const root = clear(element.querySelector(".s-root"));
  const drawn = begun && begun.name === first.setup.page && begun.root.isConnected;
  const shell = drawn ? begun : new Shell(root, first);
  shell.fill();
  if (drawn) shell.moveTo(root);
  const { line, page } = shell;
  if (!page) return;
  line.connect(trigger, upload);
  watch("value", () => {
    const answer = JSON.parse(props.value.body);
    page.asker.receive({ ...answer, seq: props.value.seq });
  });
}
