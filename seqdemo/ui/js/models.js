// The Models page: every model's card, its sizes with the formulas filled in, and loading one from the Hub.

const VISITOR_KEY = "seqdemo-models";
const LINK_BACK = /^(\.\/|[a-z-]+)\?[^#]*$/; // a page of this app: neither scheme nor host fits

function visitorModels() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(VISITOR_KEY) || "[]");
    return Array.isArray(kept) ? kept.filter((card) => card && typeof card.name === "string") : [];
  } catch {
    return [];
  }
}

function keepVisitorModel(card) {
  const kept = visitorModels().filter((item) => item.name !== card.name);
  try {
    sessionStorage.setItem(VISITOR_KEY, JSON.stringify([...kept, card].slice(-8)));
  } catch { /* a browser that keeps nothing */ }
}

class ModelsPage {
  constructor(root, first, trigger) {
    Object.assign(this, { setup: first.setup, trigger, sequence: 0 });
    this.asker = { receive: (answer) => this.receive(answer) };
    this.list = el("div", { class: "s-cards" });
    this.said = el("p", { role: "status", class: "s-muted" });
    this.bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Download" });
    this.repo = el("input", { type: "text", id: "s-repo", placeholder: "user/name", autocomplete: "off", spellcheck: "false" });
    this.revision = el("input", { type: "text", id: "s-revision", placeholder: "main", autocomplete: "off", spellcheck: "false" });
    this.load = el("button", { type: "submit", class: "s-primary" }, "Load");
    this.stop = button("Stop", () => this.cancel(), { hidden: true });
    this.question = el("div", { class: "s-bar", role: "group", "aria-label": "Download?", hidden: true });
    const query = new URLSearchParams(location.search);
    this.asked = query.get("load") || "";
    [this.repo.value, this.revision.value] = [this.asked.split("@")[0], this.asked.split("@")[1] || ""];
    this.then = LINK_BACK.test(query.get("then") || "") ? query.get("then") : "";
    root.append(
      el("section", { class: "s-input s-hub", "aria-label": "Load a model from the Hub" },
        el("form", { class: "s-input-main", on: { submit: (event) => (event.preventDefault(), this.start()) } },
          el("h2", { class: "s-small-head" }, "Load a model from the Hugging Face Hub"),
          el("p", { class: "s-says" }, "Any model in this project's format. It is read without running any of its code, shown only to you, and kept until this tab closes."),
          el("div", { class: "s-bar" }, el("label", { for: "s-repo" }, "Repository"), this.repo, el("label", { for: "s-revision" }, "Revision"), this.revision, this.load, this.stop),
          this.bar, this.said, this.question)),
      this.list);
    this.show();
    if (this.asked) this.tell("The link asks for this model. Nothing has been fetched; Load tells its size first.");
  }

  show() {
    const cards = [...this.setup.checkpoints, ...visitorModels()];
    const pages = { translate: "./", transliterate: "transliterate", caption: "caption", complete: "language-model" };
    const titles = { translate: "Translate", transliterate: "Transliterate", caption: "Caption", complete: "Language model" };
    clear(this.list).append(...Object.keys(pages).flatMap((task) => {
      const own = cards.filter((card) => card.task === task);
      return own.length ? [el("h2", { class: "s-group" }, titles[task]), ...own.map((card) => this.card(card, pages[task]))] : [];
    }));
    if (!cards.length) this.list.append(el("p", { class: "s-message" }, "No model is loaded. Put checkpoints in the folder checkpoints/, or load one from the Hub."));
  }

  card(card, page) {
    const { sizes } = card;
    const work = Object.entries(sizes.work).filter(([, value]) => value).map(([every, value]) => `${value.toLocaleString("en")} ${every}`);
    return el("article", { class: "s-column s-side-b", "aria-label": card.name },
      el("h3", { class: "s-card-title" }, card.name),
      card.summary ? el("p", {}, card.summary) : null,
      el("p", { class: "s-muted" }, [card.title, card.about, card.revision ? `Revision ${card.revision.slice(0, 12)}.` : ""].filter(Boolean).join(". ").replace(/\.\./g, ".")),
      el("dl", { class: "s-scores" },
        el("div", {}, el("dt", {}, "parameters"), el("dd", {}, sizes.parameters.toLocaleString("en"))),
        el("div", {}, el("dt", {}, "multiply-adds"), el("dd", {}, work.join(", "))),
        ...(card.headline || []).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      el("details", {}, el("summary", {}, "Every part, with its formula"), table("Parameters and multiply-adds of every part",
        ["part", "formula", "with its numbers", "parameters", "multiply-adds", "every"],
        sizes.parts.map((part) => [part.name, part.formula, part.filled, part.parameters.toLocaleString("en"), part.work.toLocaleString("en"), part.every]))),
      card.card ? el("details", {}, el("summary", {}, "Model card"), el("pre", { class: "s-model-card", tabindex: "0", "aria-label": `Card of ${card.name}` }, card.card)) : null,
      el("p", {}, el("a", { href: `${page}?b.checkpoint=${encodeURIComponent(card.name)}` }, "Use it in column B")));
  }

  // First only what it would fetch; `fetch` follows when the person agrees, at the commit that was offered.
  start() {
    this.ask({ look: { repo: this.repo.value.trim(), revision: this.revision.value.trim() } });
  }

  fetch({ repo, revision }) {
    this.ask({ load: { repo, revision } });
  }

  ask(message) {
    this.sequence += 1;
    this.busy(true);
    this.tell("Asking the Hub…");
    this.trigger("long", { seq: this.sequence, ...message });
  }

  offer(found) {
    if (found.cached) {
      this.fetch(found);
      return;
    }
    const agree = button("Download", () => this.fetch(found), { class: "s-primary" });
    const refuse = button("Not now", () => (this.busy(false), this.tell("Nothing was downloaded."), this.load.focus()));
    const megabytes = (found.bytes / 2 ** 20).toFixed(1);
    this.tell(`${found.repo} at commit ${found.revision.slice(0, 12)}: up to ${megabytes} MB. Nothing has been downloaded yet.`);
    clear(this.question).append(agree, refuse);
    this.question.hidden = false;
    agree.focus();
  }

  cancel() {
    this.trigger("stop", {});
    this.sequence += 1;
    this.busy(false);
    this.tell("Stopped. What was already fetched is kept for the next try.");
  }

  busy(on) {
    this.load.disabled = on;
    this.stop.hidden = !on;
    this.bar.hidden = !on;
    this.question.hidden = true;
    if (on) this.bar.removeAttribute("value");
  }

  tell(text, wrong) {
    this.said.textContent = text;
    this.said.className = wrong ? "s-message" : "s-muted";
  }

  receive(answer) {
    if (answer.seq !== this.sequence) return;
    if (answer.progress) {
      if (answer.share !== undefined) this.bar.value = answer.share;
      this.tell(answer.progress);
      return;
    }
    this.busy(false);
    if (answer.error) {
      this.tell(answer.error, true);
      return;
    }
    if (answer.offer) {
      this.offer(answer.offer);
      return;
    }
    keepVisitorModel(answer.loaded);
    this.show();
    this.tell(`${answer.loaded.name} is loaded. It stands below and in the lists of its page.`);
    if (this.then && answer.loaded.name === this.asked) this.said.append(" ", el("a", { href: this.then }, "Open the shared link"));
  }
}

function mountModels(root, first, trigger) {
  return new ModelsPage(root, first, trigger);
}
