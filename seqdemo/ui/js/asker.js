// Questions to the server, one at a time; changes made meanwhile go into the next one. Every answer holds the
// number of its question; its part for a column that has changed since is dropped. When an answer is late, the server
// is asked for its state, to tell apart a server that is gone, a full queue and a slow model.

const LATE = 1500; // milliseconds until the page says that something takes time
const CHECK = 2500; // between two looks at a silent server
const PATIENCE = 30000; // a question to a server that is there is asked once more after this

/**
 * @typedef {{busy: boolean, long?: boolean, slow?: boolean, progress?: string, stopped?: boolean, gone?: boolean, full?: boolean}} Told
 * @typedef {"here" | "full" | "gone"} Health
 */

/** Whether the user has waited long enough to be told. @param {Told} told */
export const isSlow = ({ slow, long, gone, full }) => Boolean(slow || long || gone || full);

export class Asker {
  /**
   * @param {{
   *   trigger: (kind: string, message: any) => void,
   *   build: (sides: string[], replays: Object<string, any>) => any,
   *   long: (message: any) => boolean,
   *   onAnswer: (answer: any) => void,
   *   onState: (told: Told) => void,
   *   look?: () => Promise<Health>,
   * }} line  `long`: whether a message goes as a search that can be stopped, through the queue; `look`: how the server is
   */
  constructor({ trigger, build, long, onAnswer, onState, look = async () => "here" }) {
    this.trigger = trigger;
    this.build = build;
    this.long = long;
    this.onAnswer = onAnswer;
    this.onState = onState;
    this.look = look;
    this.sequence = 0;
    this.changed = new Map();
    this.shown = new Map();
    this.replays = new Map();
    this.flight = null;
    /** @type {any} */
    this.timer = 0;
  }

  change(sides, wait = 0) {
    for (const side of sides) {
      this.changed.set(side, (this.changed.get(side) || 0) + 1);
      this.replays.delete(side);
    }
    this.schedule(wait);
  }

  /** The pending answer for these columns is out of date. */
  forget(sides) {
    for (const side of sides) {
      const version = (this.changed.get(side) || 0) + 1;
      this.changed.set(side, version);
      this.shown.set(side, version);
      this.replays.delete(side);
    }
    const { flight } = this;
    if (flight && flight.long && [...flight.versions].every(([side, version]) => version < this.changed.get(side))) this.stop();
  }

  replay(side, selection) {
    const wanted = JSON.stringify(selection);
    if (JSON.stringify(this.replays.get(side)) === wanted) return;
    this.replays.set(side, selection);
    this.schedule(0);
  }

  waiting() {
    return [...this.changed.keys()].filter((side) => this.changed.get(side) > (this.shown.get(side) || 0));
  }

  idle() {
    return !this.flight && !this.waiting().length && !this.replays.size;
  }

  schedule(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), wait);
  }

  send() {
    if (this.flight) {
      if (this.flight.long) this.stop();
      else if (performance.now() - this.flight.at < 6000) return;
    }
    const { sides, replays } = this.next();
    if (!sides.length && !replays.size) return;
    const message = this.build(sides, Object.fromEntries(replays));
    this.sequence += 1;
    message.seq = this.sequence;
    const versions = new Map(sides.map((side) => [side, this.changed.get(side)]));
    this.flight = { seq: this.sequence, at: performance.now(), heard: performance.now(), versions, asked: new Map(this.changed), long: this.long(message), replays };
    this.trigger(this.flight.long ? "ask" : "short", message);
    this.onState({ busy: true, long: this.flight.long });
    this.watch(this.sequence, LATE);
  }

  /** What to ask now: what is short comes first, so that it does not wait for a long search. */
  next() {
    const brief = (sides, replays) => !this.long(this.build(sides, replays));
    const all = { sides: this.waiting(), replays: new Map(this.replays) };
    const sides = all.sides.filter((side) => brief([side], {}));
    const replays = new Map([...all.replays].filter(([side, selection]) => brief([], { [side]: selection })));
    return sides.length || replays.size ? { sides, replays } : all;
  }

  // While a question has no answer and no progress, check the server from time to time.
  watch(seq, wait) {
    setTimeout(async () => {
      const mine = () => this.flight && this.flight.seq === seq;
      if (!mine()) return;
      const silent = performance.now() - this.flight.heard;
      if (!this.flight.long) this.onState({ busy: true, slow: true });
      const health = silent >= LATE ? await this.look() : "here";
      if (!mine()) return;
      if (health !== "here") this.lost(health);
      else if (silent >= PATIENCE) this.again();
      else this.watch(seq, CHECK);
    }, wait);
  }

  /** The question did not arrive: say so at once, and ask again as soon as the server accepts it. */
  lost(health) {
    this.flight = null;
    this.onState({ busy: true, [health]: true });
    const seq = this.sequence;
    setTimeout(async () => {
      if (this.flight || this.sequence !== seq) return;
      const now = await this.look();
      if (this.flight || this.sequence !== seq) return;
      if (now === "gone") this.lost(now);
      else this.again();
    }, CHECK);
  }

  again() {
    this.flight = null;
    this.schedule(0);
  }

  stop() {
    if (!this.flight) return;
    this.trigger("stop", { seq: this.flight.seq });
    this.flight = null;
    this.onState({ busy: false });
  }

  /** Stopped by the user: the question is given up. */
  giveUp() {
    if (this.flight) for (const [side, version] of this.flight.versions) this.shown.set(side, version);
    this.replays.clear();
    this.stop();
    this.onState({ busy: false, stopped: true });
  }

  receive(answer) {
    if (!this.flight || answer.seq !== this.flight.seq) return;
    this.flight.heard = performance.now();
    if (answer.progress) {
      this.onState({ busy: true, long: true, progress: answer.progress });
      return;
    }
    const { versions, replays, asked } = this.flight;
    this.flight = null;
    for (const [side, version] of this.changed) {
      if (version === asked.get(side)) continue;
      for (const part of [answer.columns, answer.traces]) if (part) delete part[side];
    }
    for (const [side, version] of versions) {
      if (version > (this.shown.get(side) || 0)) this.shown.set(side, version);
    }
    for (const [side, selection] of replays) if (this.replays.get(side) === selection) this.replays.delete(side);
    this.onState({ busy: false });
    this.onAnswer(answer);
    if (this.waiting().length || this.replays.size) this.schedule(0);
  }
}
