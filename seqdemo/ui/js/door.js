// The only place where the state of a page changes. Every finished action is a step that can be undone; the address follows.
import { besides } from "./besides.js";
import { History } from "./history.js";
import { foreignQuery, linkOf, readLink, writeLink } from "./link.js";
import { frozen, same, startState, withView } from "./state.js";

export class Door {
  constructor(setup) {
    this.setup = setup;
    this.history = new History(startState(setup));
    this.views = [];
    this.notes = []; // parts of a link that could not be used
    this.absent = []; // models of the Hub that a link asks for
  }

  /** @returns {import("./state.js").State} */
  get state() {
    return this.history.state;
  }

  listen(view) {
    this.views.push(view);
  }

  tell(event, detail) {
    for (const view of this.views) if (view[event]) view[event](detail);
  }

  /** Takes the state from an address. */
  enter(address) {
    const link = linkOf(address);
    const { state, notes, absent } = readLink(link, this.setup);
    Object.assign(this, { notes, absent, history: new History(state) });
    this.link = link.toString();
  }

  /**
   * The only way in which the state changes. `words` name the step; steps of one `kind` that follow each other within a pause are one.
   * `look`: a change of the view only, which makes no step. `entry`: the browser's Back returns to the state before. `anew`: the whole
   * state is another, so nothing that it leaves is told.
   * @param {import("./state.js").Change} change  @param {string} words
   * @param {{kind?: string, wait?: number, look?: boolean, entry?: boolean, anew?: boolean}} [how]
   */
  update(change, words, { kind = "", wait = 0, look = false, entry = false, anew = false } = {}) {
    const before = this.state;
    const after = frozen(change(before));
    if (same(before, after)) return;
    if (look) this.history.amend(after);
    else {
      this.history.record(after, words, kind);
      if (!anew) this.history.explain(besides(this.history.before, after, this.setup));
    }
    this.save(entry);
    this.follows(before, wait);
  }

  /** A change of the view only: no step and no new question. */
  look(change) {
    this.update(withView(change), "", { look: true });
  }

  /** Back (negative) or forward by so many steps. */
  go(by) {
    const before = this.state;
    if (!this.history.canGo(by)) return;
    const { open } = before.view; // unfolded parts stay unfolded, and no menu comes back
    this.history.amend(frozen(withView({ open, menu: "" })(this.history.go(by))));
    this.save();
    this.follows(before, 0);
  }

  /** The address has changed under the page: Back, Forward, or another link. */
  follow(address) {
    const { state, notes } = readLink(linkOf(address), this.setup);
    this.notes = notes;
    this.update(() => state, "Went to another address", { anew: true });
  }

  save(entry = false) {
    const query = foreignQuery(location.search);
    const link = writeLink(this.state, this.setup);
    const address = location.pathname + (query && `?${query}`) + (link && `#${link}`);
    if (address !== location.pathname + location.search + location.hash) history[entry ? "pushState" : "replaceState"](history.state, "", address);
  }

  /** A part of the page that folds. Whether it is open belongs to the state. */
  fold(name, open) {
    const rest = this.state.view.open.filter((item) => item !== name);
    this.look({ open: open ? [...rest, name].sort() : rest });
  }

  isOpen(name) {
    return this.state.view.open.includes(name);
  }

  /** Which tables of a drawing are open. `of`: whose drawing, where two stand side by side. */
  tables(of = "") {
    return (name) => this.isOpen(`table-${name}${of}`);
  }

  /** A drawing tells that one of its tables was opened or closed. */
  foldTable({ name, open }, of = "") {
    this.fold(`table-${name}${of}`, open);
  }

  /** Ask what the new state needs. @param {import("./state.js").State} before  @param {number} wait */
  follows(before, wait) {
    throw new Error(`Nobody follows ${before.page} after ${wait} ms.`);
  }
}
