// The states of a page before this one. A step is a finished action: changes of one kind that follow each other within a pause are one.

const MOST_STEPS = 200;
const PAUSE = 1200; // milliseconds of pause after which typing or dragging has ended

export class History {
  /** @param {import("./state.js").State} state  @param {() => number} now */
  constructor(state, now = () => performance.now()) {
    this.now = now;
    /** @type {{state: any, words: string, kind: string, at: number, notes: {side: string, text: string}[]}[]} */
    this.steps = [{ state, words: "The page as it opened", kind: "", at: -Infinity, notes: [] }];
    this.at = 0;
  }

  get state() {
    return this.steps[this.at].state;
  }

  /** What the columns have to say of the step that stands. */
  get notes() {
    return this.steps[this.at].notes;
  }

  /** Actions of one `kind` are joined into one step; without a kind, the action is a step of its own.
   * @param {any} state @param {string} words @param {string} [kind] */
  record(state, words, kind = "") {
    const last = this.steps[this.at];
    const goesOn = kind && last.kind === kind && this.now() - last.at < PAUSE;
    this.steps.length = this.at + 1;
    if (goesOn) this.steps.pop();
    this.steps.push({ state, words, kind, at: this.now(), notes: [] });
    if (this.steps.length > MOST_STEPS) this.steps.splice(0, this.steps.length - MOST_STEPS);
    this.at = this.steps.length - 1;
  }

  /** The state before the step that stands. */
  get before() {
    return this.steps[Math.max(0, this.at - 1)].state;
  }

  /** Adds the side effects of the present step. @param {{words: string, notes: {side: string, text: string}[]}} beside */
  explain({ words, notes }) {
    const step = this.steps[this.at];
    this.steps[this.at] = { ...step, words: step.words + words, notes };
  }

  /** A change of the view only: it belongs to the current step. */
  amend(state) {
    this.steps[this.at] = { ...this.steps[this.at], state };
  }

  /** The action is finished: the next one is a step of its own. */
  close() {
    this.steps[this.at].kind = "";
  }

  canGo(by) {
    return this.at + by >= 0 && this.at + by < this.steps.length;
  }

  go(by) {
    if (this.canGo(by)) this.at += by;
    this.close();
    return this.state;
  }
}
