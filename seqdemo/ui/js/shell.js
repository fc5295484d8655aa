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

// Called by the component of each page.
function mount(element, props, trigger, watch, upload) {
  const first = JSON.parse(props.value.body);
  rememberTheme();
  const root = clear(element.querySelector(".s-root"));
  const body = el("div", { class: "s-page" });
  root.append(header(first.setup.page, first.setup.words), body, footer());
  const setup = first.setup;
  if (setup.kind === "workbench") setup.checkpoints.push(...visitorModels().filter((card) => card.task === setup.task));
  if (setup.kind === "workbench" && !setup.checkpoints.length) {
    body.append(el("p", { class: "s-none", role: "status" },
      "No model for this page is here. ", el("a", { href: "models" }, "Load one on the Models page"), " by its repository, and it works on this page."));
    return;
  }
  const mounts = { workbench: mountWorkbench, models: mountModels };
  const page = mounts[first.setup.kind](body, first, trigger, upload);
  page.upload = upload;
  watch("value", () => {
    const answer = JSON.parse(props.value.body);
    page.asker.receive({ ...answer, seq: props.value.seq });
  });
  window.seqdemo.page = page;
}
