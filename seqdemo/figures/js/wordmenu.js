// The menu of a word in an output: take it, forbid it, require it anywhere, or put another word in its place.
import { button, el, newId, probability, times } from "./core.js";
import { patch } from "./patch.js";
import { quoted } from "./text.js";

/**
 * @typedef {{text: string, pieces: string[], logp: number | null}} Alternative  `logp`: of the whole word, given what stands before it
 * @typedef {{word: string, pieces: string[], place: string, logp: number | null, ended: boolean, alternatives: Alternative[], before?: string, best?: number | null, searching?: boolean, said?: string, unsayable?: boolean, noun?: string}} WordmenuPayload
 *   `alternatives`: the likeliest first; `ended`: the word is the end of the output; `before`: what stands before it; `best`: the log probability of
 *   the likeliest piece there, once it is known; `unsayable`: the model cannot say what is typed; `noun`: what it
 *   writes, a word or a letter
 * @typedef {{typed?: string}} WordmenuView
 */

const MOST_SHOWN = 7;

/** The alternatives that fit the typed text, likeliest first. @param {Alternative[]} alternatives @param {string} typed */
export function fitting(alternatives, typed) {
  const wanted = typed.trim().toLowerCase();
  return alternatives.filter(({ text }) => text.toLowerCase().startsWith(wanted)).slice(0, MOST_SHOWN);
}

/** What is taken of the words that fit the typed text: the typed word itself, or the likeliest. @param {Alternative[]} fit @param {string} typed */
export function taken(fit, typed) {
  return fit.find(({ text }) => text === typed.trim()) || fit[0];
}

/** The buttons: name, event, what it does, and what goes with the event. What is typed takes the place of the word, except where
 * the model cannot say it. @param {WordmenuPayload} payload @param {Alternative[]} fit what fits the typed text @param {string} typed
 * @returns {[string, string, string, any?][]} */
export function actions({ word, ended, unsayable }, fit, typed) {
  const wanted = typed.trim();
  const wish = wanted || (ended ? "" : word);
  const other = taken(fit, typed);
  const takes = "The output in B must begin like this, up to here.";
  /** @type {([string, string, string, any?] | null)[]} */
  const all = [
    wanted ? other && [`Take ${quoted(other.text)}`, "other", takes, other] : ["Take this", "take", takes],
    [wanted ? `Never ${ended ? "the end" : quoted(word)}` : "Never this", "never", "The output in B may not begin like this."],
    wish && !unsayable ? [wish === word ? "Must be said" : `${quoted(wish)} must be said`, "must", "This must stand somewhere in the output of B, wherever it fits; it may be part of a longer word.", wish] : null,
  ];
  return all.filter(Boolean);
}

/** How one word stands to the likeliest at its place. @param {number | null} logp @param {number | null} best */
export function besideBest(logp, best) {
  if (logp === null || best === null) return "";
  return best - logp < 0.005 ? "the likeliest here" : `${times(Math.exp(best - logp))} less likely than the likeliest`;
}

class WordMenu {
  constructor(element, emit) {
    this.element = element;
    this.emit = emit;
    this.typed = "";
    const id = newId("s-other");
    this.head = el("p", { class: "s-wordmenu-head" });
    this.actions = el("div", { class: "s-actions" });
    this.field = el("input", { type: "text", id, dir: "auto", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
    this.field.addEventListener("input", () => this.type(this.field.value));
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.about = el("p", { class: "s-muted" });
    this.list = el("ul", { class: "s-alternatives" });
    this.said = el("p", { class: "s-muted", role: "status" });
    element.append(this.head, this.actions, el("div", { class: "s-inline s-other" }, el("label", { for: id }, "Take something else"), this.field), this.list, this.about, this.said);
  }

  /** @param {WordmenuPayload} payload @param {WordmenuView} view */
  update(payload, view = {}) {
    this.payload = payload;
    if (view.typed !== undefined && view.typed !== this.typed) {
      this.typed = view.typed;
      this.field.value = view.typed;
    }
    this.show();
  }

  show() {
    const { word, place, logp, ended, alternatives, before = "", searching, said, noun = "word" } = this.payload;
    this.field.setAttribute("placeholder", `type a ${noun}`);
    this.list.setAttribute("aria-label", `${noun === "letter" ? "Letters" : "Words"} that could stand here`);
    const best = Math.max(this.payload.best ?? -Infinity, logp ?? -Infinity, ...(this.typed ? [] : alternatives.map((item) => item.logp ?? -Infinity)));
    const likely = logp === null ? "" : `: probability ${probability(logp)}, ${besideBest(logp, best)}`;
    patch(this.head, el("span", { class: "s-wordmenu-word" }, ended ? "the end" : quoted(word)), `, ${place}${likely}.`);
    const shown = this.shown();
    const act = ([name, event, about, detail = null]) => button(name, () => this.emit(event, detail), { title: about, "data-key": event, class: ["take", "other"].includes(event) ? "s-primary" : null });
    patch(this.actions, actions(this.payload, shown, this.typed).map(act));
    patch(this.list, shown.map((item) => el("li", { "data-key": item.pieces.join("\u0000") }, button([
      el("bdi", {}, item.text), el("span", { class: "s-alternative-bar", style: { "--p": item.logp === null ? 0 : Math.exp(item.logp).toFixed(4) } }), el("span", { class: "s-number" }, probability(item.logp, 3)),
    ], () => this.emit("other", item), { class: "s-alternative", "aria-label": `Take ${quoted(item.text)} instead, probability ${probability(item.logp, 3)}` }))));
    this.about.hidden = !before;
    patch(this.about, "What you take is forced together with all that stands before it: “", el("bdi", {}, before), "”.");
    this.said.textContent = said || (searching ? "Asking the model…" : !shown.length && this.typed ? "Nothing likely here begins like this." : "");
  }

  shown() {
    const { alternatives, word, pieces } = this.payload;
    const other = (item) => item.text !== word && item.pieces.some((piece, i) => piece !== pieces[i]); // neither the word itself nor a beginning of it
    return fitting(this.typed ? alternatives : alternatives.filter(other), this.typed);
  }

  type(text) {
    this.typed = text;
    this.emit("type", text);
    this.show();
  }

  key(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const wanted = taken(this.shown(), this.typed);
    if (wanted && this.typed) this.emit("other", wanted);
  }
}

/** @param {HTMLElement} element @param {WordmenuPayload} payload @param {WordmenuView} view @param {import("./grid.js").Emit} emit */
export function mountWordmenu(element, payload, view = {}, emit = () => {}) {
  const menu = new WordMenu(element, emit);
  menu.update(payload, view);
  return { update: (next, seen) => menu.update(next, seen), focus: () => /** @type {HTMLElement} */ (menu.actions.firstChild).focus({ preventScroll: true }), destroy: () => element.replaceChildren() };
}
