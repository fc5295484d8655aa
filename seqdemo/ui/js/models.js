// The Models page: the models compared, every model's card, its sizes with the formulas filled in, and loading one from the Hub.
import { el, table } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { cardId, ComparisonView } from "./comparison.js";
import { HubForm } from "./hub.js";
import { folding } from "./fold.js";
import { foreignQuery, leftOut, linkOf } from "./link.js";
import { markdown } from "./markdown.js";
import { MOST_OPEN } from "./state.js";

const VISITOR_KEY = "seqdemo-models";
const LOADING = ["load", "then"]; // what hub.js reads
const PAGE_OF = { translate: "./", transliterate: "transliterate", caption: "caption", complete: "language-model" };
const TASK_TITLES = { translate: "Translate", transliterate: "Transliterate", caption: "Caption", complete: "Language model" };
const DO_TASK = { translate: "translate", transliterate: "transliterate", caption: "describe photographs", complete: "go on from a text" };

/** @returns {any[]} the cards of the models that this visitor has loaded */
export function visitorModels() {
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
  /** @param {HTMLElement} root  @param {any} first  @param {(kind: string, message: any) => void} trigger */
  constructor(root, first, trigger) {
    this.setup = first.setup;
    const link = linkOf(location);
    this.open = new Set(link.getAll("open").slice(0, MOST_OPEN)); // the parts that are folded out
    this.comparison = new ComparisonView(DO_TASK, (message) => trigger("compare", message), () => this.save());
    this.list = el("div", { class: "s-cards" });
    this.hub = new HubForm(trigger, (card) => {
      keepVisitorModel(card);
      this.show();
    });
    this.asker = { receive: (answer) => this.hub.receive(answer), idle: () => true };
    root.append(this.comparison.node, this.list, this.hub.node);
    const lost = this.comparison.follow(link, this.cards());
    if (lost.length) root.prepend(el("p", { class: "s-message s-note", role: "alert" }, lost.map(leftOut).join(" ")));
    this.show();
    this.hub.follow();
  }

  /** What Gradio draws stands where the comparison speaks of it, as soon as it is there. */
  placePlot() {
    const place = () => {
      const plot = document.getElementById("models-plot");
      if (plot) this.comparison.figure.append(plot);
      return Boolean(plot);
    };
    if (place()) return;
    const watcher = new MutationObserver(() => place() && watcher.disconnect());
    watcher.observe(document.body, { childList: true, subtree: true });
  }

  cards() {
    return [...this.setup.checkpoints, ...visitorModels()];
  }

  show() {
    const cards = this.cards();
    this.comparison.show(cards);
    patch(this.list, Object.keys(PAGE_OF).flatMap((task) => {
      const own = cards.filter((card) => card.task === task);
      return own.length ? [el("h2", { class: "s-group", "data-key": task }, TASK_TITLES[task]), ...own.map((card) => this.card(card, PAGE_OF[task]))] : [];
    }), cards.length ? null : el("p", { class: "s-message" }, "No model is loaded. Put checkpoints in the folder checkpoints/, or load one from the Hub."));
  }

  isOpen(key) {
    return this.open.has(key);
  }

  fold(key, open) {
    if (open === this.open.has(key)) return;
    if (open) this.open.add(key);
    else this.open.delete(key);
    this.save();
    this.show();
  }

  // What is compared and what is open stand in the address, beside what a link asks to load.
  save() {
    const asked = linkOf(location);
    const link = new URLSearchParams(LOADING.filter((name) => asked.get(name)).map((name) => [name, asked.get(name)]));
    this.comparison.write(link);
    for (const key of this.open) link.append("open", key);
    const query = foreignQuery(location.search);
    history.replaceState(history.state, "", location.pathname + (query && `?${query}`) + (`${link}` && `#${link}`));
  }

  card(card, page) {
    const { sizes } = card;
    const work = Object.entries(sizes.work).filter(([, value]) => value).map(([every, value]) => `${value.toLocaleString("en")} ${every}`);
    const about = [card.title, card.about, card.revision ? `Revision ${card.revision.slice(0, 12)}.` : ""].filter(Boolean).join(". ").replace(/\.\./g, ".");
    return el("article", { class: "s-column s-model-box", "aria-label": card.name, id: cardId(card.name), tabindex: "-1" },
      el("h3", { class: "s-card-title" }, card.name),
      card.summary ? el("p", {}, card.summary) : null,
      el("p", { class: "s-muted" }, about),
      el("dl", { class: "s-scores" },
        el("div", {}, el("dt", {}, "parameters"), el("dd", {}, sizes.parameters.toLocaleString("en"))),
        el("div", {}, el("dt", {}, "multiply-adds"), el("dd", {}, work.join(", "))),
        ...(card.headline || []).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      folding(this, `${card.name}.parts`, "Every part, with its formula", {}, () => table(`Parameters and multiply-adds of every part of ${card.name}`,
        ["part", "formula", "with its numbers", "parameters", "multiply-adds", "every"],
        sizes.parts.map((part) => [part.name, part.formula, part.filled, part.parameters.toLocaleString("en"), part.work.toLocaleString("en"), part.every]))),
      card.card ? folding(this, `${card.name}.card`, "Model card", {}, () => el("div", { class: "s-model-card", role: "region", "aria-label": `Card of ${card.name}` }, markdown(card.card, card.pictures))) : null,
      el("p", {}, el("a", { href: `${page}#b.checkpoint=${encodeURIComponent(card.name)}` }, "Use it in column B")));
  }
}

export function mountModels(root, first, trigger) {
  return new ModelsPage(root, first, trigger);
}
