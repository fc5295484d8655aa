// A way to ask long questions and to stop them. Gradio can stop a question only after the server has taken it, and stops all
// questions of its kind together. So a stop waits for the first word about the latest question, and new questions wait for
// the stop.

const SILENT = 10000; // milliseconds that a stop waits for a server that says nothing

/** The number that an answer carries back. */
const numberOf = (message) => message.seq ?? message.id;

export class Channel {
  /** @param {(message: any) => void} ask @param {() => void} stop */
  constructor(ask, stop) {
    this.sendQuestion = ask;
    this.sendStop = stop;
    this.taken = true;
    this.latest = 0;
    this.stopping = false;
    /** @type {any[]} */
    this.waiting = [];
    /** @type {any} */
    this.timer = 0;
  }

  ask(message) {
    if (this.stopping) {
      this.waiting.push(message);
      return;
    }
    this.latest = numberOf(message);
    this.taken = false;
    this.sendQuestion(message);
  }

  stop() {
    this.waiting = [];
    if (this.stopping) return;
    this.stopping = true;
    if (this.taken) this.end();
    else this.timer = setTimeout(() => this.end(), SILENT);
  }

  /** Some word about a question has come: progress or its answer. */
  hear(number) {
    if (number !== this.latest) return;
    this.taken = true;
    if (this.stopping) this.end();
  }

  end() {
    clearTimeout(this.timer);
    this.stopping = false;
    this.sendStop();
    for (const message of this.waiting.splice(0)) this.ask(message);
  }
}
