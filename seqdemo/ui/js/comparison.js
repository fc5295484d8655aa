// The models of a task side by side: a table of what was measured of them, and a figure that the server makes.
import { button, el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";

const FIGURES = { length: "by the length of the input", scores: "on the whole test set", beams: "by the size of the beam", errors: "search errors by the size of the beam" };
const MOST_TESTS = 3;
const BEAMS = "The legend tells how many inputs of the test set each line was measured on. A line over a part of them does not match the table above, and lines over different parts cannot be compared exactly. The bars are 95 % intervals, where one is known.";

export class ComparisonView {
  /** @param {Object<string, string>} titles of the tasks  @param {(message: any) => void} ask  @param {() => void} chosen */
  constructor(titles, ask, chosen = () => {}) {
    this.titles = titles;
    this.ask = ask;
    this.chosen = chosen;
    this.cards = [];
    this.shown = { task: Object.keys(titles)[0], test: "", kind: "length" };
    /** @type {Object<string, string>} what the person or a link has chosen */
    this.wanted = {};
    this.asked = "";
    this.switch = el("div", { class: "s-switch", role: "group", "aria-label": "Models of" });
    this.table = el("div", {});
    this.choices = el("div", { class: "s-bar" });
    this.figure = el("div", { class: "s-plot", id: "s-plot" });
    this.note = el("p", { class: "s-muted" });
    this.node = el("section", { class: "s-input s-compare", "aria-label": "Comparison" }, el("div", { class: "s-input-main" },
      el("div", { class: "s-bar" }, el("h2", { class: "s-small-head" }, "Compare the models that"), this.switch), this.table, this.choices, this.figure, this.note));
  }

  /** @param {any[]} cards */
  show(cards) {
    this.cards = cards;
    const tasks = Object.keys(this.titles).filter((task) => cards.some((card) => card.task === task));
    if (!tasks.includes(this.shown.task)) this.shown.task = tasks[0];
    this.node.hidden = !tasks.length;
    if (!tasks.length) return;
    patch(this.switch, tasks.map((task) => button(this.titles[task], () => this.choose({ task }), { "data-key": task, "aria-pressed": String(task === this.shown.task) })));
    const own = cards.filter((card) => card.task === this.shown.task);
    patch(this.table, scoreTable(own));
    this.showChoices(own.filter((card) => !card.name.includes("@")));
  }

  choose(change) {
    Object.assign(this.shown, change);
    this.show(this.cards);
    Object.assign(this.wanted, change);
    this.chosen();
  }

  /** Show what a link asks for. @param {URLSearchParams} link @param {any[]} cards @returns {string[]} what of it there is not */
  follow(link, cards) {
    for (const name of Object.keys(this.shown)) if (link.has(name)) this.wanted[name] = link.get(name);
    Object.assign(this.shown, this.wanted);
    this.show(cards);
    const lost = Object.keys(this.wanted).filter((name) => this.wanted[name] !== this.shown[name]);
    return lost.map((name) => {
      const text = `${name}=${this.wanted[name]}`;
      delete this.wanted[name];
      return text;
    });
  }

  /** @param {URLSearchParams} link */
  write(link) {
    for (const [name, value] of Object.entries(this.wanted)) link.set(name, value);
  }

  // Offer only what was measured for one of the models.
  showChoices(own) {
    const measured = (kind) => [...new Set(own.flatMap((card) => card.compared[kind]))];
    const kinds = Object.keys(FIGURES).filter((kind) => measured(kind).length);
    if (!kinds.includes(this.shown.kind)) this.shown.kind = kinds[0] || "";
    const tests = this.shown.kind ? mostShared(own, measured(this.shown.kind), this.shown.kind) : [];
    if (!tests.includes(this.shown.test)) this.shown.test = tests[0] || "";
    const title = (test) => (own.flatMap((card) => [...card.scores, ...card.curves]).find((row) => row.test === test) || { title: test }).title;
    const field = (name, id, options, value, change) => el("span", { class: "s-inline" }, el("label", { for: id }, name),
      el("select", { id, on: { change: (event) => this.choose({ [change]: event.target.value }) } }, options.map(([key, label]) => el("option", { value: key, selected: key === value }, label))));
    patch(this.choices, kinds.length ? [
      field("Quality", "s-kind", kinds.map((kind) => [kind, FIGURES[kind]]), this.shown.kind, "kind"),
      tests.length > 1 && this.shown.kind !== "errors" ? field("on", "s-test", tests.map((test) => [test, title(test)]), this.shown.test, "test") : null] : null);
    this.figure.hidden = !kinds.length;
    this.note.textContent = noteOf(this.shown.kind);
    const message = JSON.stringify(this.shown);
    if (kinds.length && message !== this.asked) this.ask(JSON.parse(message));
    this.asked = message;
  }
}

// The test sets that most of the models share stand first.
function mostShared(cards, tests, kind) {
  const count = (test) => cards.filter((card) => card.compared[kind].includes(test)).length;
  return [...tests].sort((a, b) => count(b) - count(a));
}

function noteOf(kind) {
  if (kind === "length") return "Lengths with fewer than 30 inputs are left out; point at a mark for its number of inputs and its interval.";
  if (kind === "errors") return "A search error: the beam ends with an output that the model finds less likely than another one, as exact search proves. The legend tells how many inputs each line counts; the bars are 95 % intervals.";
  if (kind === "beams") return BEAMS;
  return kind ? "The bars are 95 % intervals, where one was measured." : "Nothing but the figure in the table was measured of these models.";
}

/** One row a model: its size, and its main figure on the test sets that most of these models share. @param {any[]} cards */
export function scoreTable(cards) {
  const scores = cards.map((card) => card.scores || []);
  const tests = [...new Map(scores.flat().map((row) => [row.test, row])).values()];
  const count = ({ test }) => scores.filter((rows) => rows.some((row) => row.test === test)).length;
  const most = Math.max(0, ...tests.map(count));
  const shared = tests.filter((test) => count(test) === most).slice(0, MOST_TESTS);
  const cell = (rows, { test }) => {
    const found = rows.find((row) => row.test === test);
    return found ? [found.value.toFixed(1), found.interval ? el("span", { class: "s-muted" }, ` ${found.interval[0].toFixed(1)} to ${found.interval[1].toFixed(1)}`) : null] : "";
  };
  const nats = cards.some((card) => card.nats);
  const heads = ["model", "what it is", "parameters", "multiply-adds per piece written", ...shared.map((row) => `${row.metric}, ${row.title}`), ...(nats ? ["nats a character, text kept out of training"] : [])];
  const rows = cards.map((card, i) => [el("a", { href: `#${cardId(card.name)}`, on: { click: (event) => jump(event, card.name) } }, card.name), card.title,
    card.sizes.parameters.toLocaleString("en"), (card.sizes.work["per piece written"] || 0).toLocaleString("en"), ...shared.map((test) => cell(scores[i], test)), ...(nats ? [card.nats ? card.nats.toFixed(3) : ""] : [])]);
  const about = `What was measured on inputs kept out of training${shared.some((row) => row.interval) ? "; in grey the 95 % interval" : ""}.`;
  return el("div", {}, el("p", { class: "s-says" }, about), el("div", { class: "s-table-wrap", tabindex: "0", role: "region", "aria-label": "What was measured of these models" },
    el("table", { class: "s-table" },
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((content, i) => el(i ? "td" : "th", i ? {} : { scope: "row" }, content))))))));
}

export function cardId(name) {
  return `s-model-${name.replace(/[^\w-]/g, "-")}`;
}

function jump(event, name) {
  event.preventDefault(); // the fragment is the link's
  const card = document.getElementById(cardId(name));
  card.scrollIntoView({ block: "start" });
  card.focus({ preventScroll: true });
}
