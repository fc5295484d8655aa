// The line to the server. One question is under way at a time; what changed meanwhile goes with the next one. Every answer carries the
// number of its question; what it says of a column that was changed since it was asked is dropped.

class Asker {
  // build(sides, replays) -> message; long(message) -> whether it goes as a search that can be stopped
  constructor({ trigger, build, long, onAnswer, onState }) {
    Object.assign(this, { trigger, build, long, onAnswer, onState });
    this.sequence = 0;
    this.changed = new Map();
    this.shown = new Map();
    this.replays = new Map();
    this.flight = null;
    this.timer = 0;
  }

  change(sides, wait = 0) {
    for (const side of sides) {
      this.changed.set(side, (this.changed.get(side) || 0) + 1);
      this.replays.delete(side);
    }
    this.schedule(wait);
  }

  replay(side, tokens) {
    this.replays.set(side, tokens);
    this.schedule(0);
  }

  waiting() {
    return [...this.changed.keys()].filter((side) => this.changed.get(side) > (this.shown.get(side) || 0));
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
    const sides = this.waiting();
    if (!sides.length && !this.replays.size) return;
    const message = this.build(sides, Object.fromEntries(this.replays));
    this.sequence += 1;
    message.seq = this.sequence;
    const versions = new Map(sides.map((side) => [side, this.changed.get(side)]));
    this.flight = { seq: this.sequence, at: performance.now(), versions, asked: new Map(this.changed), long: this.long(message), replays: new Map(this.replays) };
    this.trigger(this.flight.long ? "long" : "short", message);
    this.onState({ busy: true, long: this.flight.long });
    const seq = this.sequence;
    const still = () => this.flight && this.flight.seq === seq && !this.flight.long;
    setTimeout(() => still() && this.onState({ busy: true, slow: true }), 1500);
    setTimeout(() => still() && this.again(), 30000);
  }

  // No answer for long: the queue was full or the server went away. Ask once more.
  again() {
    this.flight = null;
    this.schedule(0);
  }

  stop() {
    if (!this.flight) return;
    this.trigger("stop", {});
    this.flight = null;
    this.onState({ busy: false });
  }

  // Stopped by the person: what was asked for is given up, not asked again.
  giveUp() {
    if (this.flight) for (const [side, version] of this.flight.versions) this.shown.set(side, version);
    this.stop();
    this.onState({ busy: false, stopped: true });
  }

  receive(answer) {
    if (!this.flight || answer.seq !== this.flight.seq) return;
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
    for (const [side, tokens] of replays) if (this.replays.get(side) === tokens) this.replays.delete(side);
    this.onState({ busy: false });
    this.onAnswer(answer);
    if (this.waiting().length || this.replays.size) this.schedule(0);
  }
}
