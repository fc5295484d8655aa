// Questions about what the user does by hand. Short ones bypass the queue, and only the latest of a kind counts;
// long ones report progress and can be stopped.
import { selectionFor } from "./answer.js";
import { columnOf } from "./state.js";

/**
 * @typedef {{hand: (message: any) => Promise<any>, send: (kind: string, message: any) => void}} HandLine
 */
export class Hand {
  /** @param {any} bench @param {HandLine} line */
  constructor(bench, line) {
    this.bench = bench;
    this.line = line;
    this.last = 0;
    /** @type {Map<string, {busy: boolean, next: {side: string, fields: any, resolve: (answer: any) => void} | null}>} */
    this.lanes = new Map();
    /** @type {Map<number, {progress: (answer: any) => void, done: (answer: any) => void}>} */
    this.probes = new Map();
  }

  /** The common part of questions about a column. `of`: the path that they are about; by default the output that is shown. */
  message(side, fields) {
    const { bench } = this;
    const { task, mine, input, language } = bench.message([], {});
    const { checkpoint, options, edits } = columnOf(bench.state, side);
    this.last += 1;
    return structuredClone({ id: this.last, task, mine, input, language, column: { checkpoint, options, edits }, of: selectionFor(bench.chosen(side)), ...fields });
  }

  /**
   * The answer to a short question, or null when a later one of the same kind took its place. One of a kind is under way at a time.
   * @returns {Promise<any>}
   */
  ask(side, fields) {
    const lane = this.lanes.get(fields.ask) || { busy: false, next: null };
    this.lanes.set(fields.ask, lane);
    return new Promise((resolve) => {
      if (lane.next) lane.next.resolve(null);
      lane.next = { side, fields, resolve };
      if (!lane.busy) this.go(lane);
    });
  }

  async go(lane) {
    const { side, fields, resolve } = lane.next;
    Object.assign(lane, { busy: true, next: null });
    const answer = await this.answered(side, fields);
    lane.busy = false;
    resolve(lane.next ? null : answer);
    if (lane.next) this.go(lane);
  }

  async answered(side, fields) {
    try {
      return await this.line.hand(this.message(side, fields));
    } catch {
      return { error: "The server does not answer. Try again in a moment." };
    }
  }

  /** A long question. `progress` hears how far it is. @returns {Promise<any>} */
  probe(side, fields, progress = (answer) => {}) {
    const message = this.message(side, fields);
    return new Promise((done) => {
      this.probes.set(message.id, { progress, done });
      this.line.send("probe", message);
    });
  }

  /** An answer to a long question. */
  hear(answer) {
    const probe = this.probes.get(answer.id);
    if (!probe) return;
    if (answer.progress !== undefined && !answer.ask && !answer.error) probe.progress(answer);
    else {
      this.probes.delete(answer.id);
      probe.done(answer);
    }
  }

  /** Stops every long question. */
  halt() {
    for (const [id, { done }] of this.probes) {
      this.line.send("halt", { id });
      done({ error: "Stopped." });
    }
    this.probes.clear();
  }
}
