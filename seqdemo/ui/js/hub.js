// Loading a model from the Hub: nothing is downloaded before its size is shown and the visitor agrees.
import { button, clear, el } from "../../figures/js/core.js";
import { linkOf } from "./link.js";

export const LINK_BACK = /^(\.\/|[a-z-]+)[?#]/; // a page of this app: neither scheme nor host fits

export class HubForm {
  /** @param {(kind: string, message: any) => void} trigger  @param {(card: any) => void} loaded */
  constructor(trigger, loaded) {
    this.trigger = trigger;
    this.loaded = loaded;
    this.sequence = 0;
    this.said = el("p", { role: "status", class: "s-muted" });
    this.bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Download" });
    this.repo = el("input", { type: "text", id: "s-repo", placeholder: "user/name", autocomplete: "off", spellcheck: "false" });
    this.revision = el("input", { type: "text", id: "s-revision", placeholder: "main", autocomplete: "off", spellcheck: "false" });
    this.load = el("button", { type: "submit", class: "s-primary" }, "Load");
    this.stop = button("Stop", () => this.cancel(), { hidden: true });
    this.question = el("div", { class: "s-bar", role: "group", "aria-label": "Download?", hidden: true });
    this.asked = "";
    this.then = "";
    const submit = (event) => {
      event.preventDefault();
      this.start();
    };
    this.node = el("section", { class: "s-input s-hub", "aria-label": "Load a model from the Hub" },
      el("form", { class: "s-input-main", on: { submit } },
        el("h2", { class: "s-small-head" }, "Load a model from the Hugging Face Hub"),
        el("p", { class: "s-says" }, "Any model in this project's format. It is read without running any of its code, shown only to you, and kept until this tab closes."),
        el("div", { class: "s-bar" }, el("label", { for: "s-repo" }, "Repository"), this.repo, el("label", { for: "s-revision" }, "Revision"), this.revision, this.load, this.stop),
        this.bar, this.said, this.question));
  }

  /** A shared link may ask for a model; then the form is filled in and shown. */
  follow() {
    const link = linkOf(location);
    this.asked = link.get("load") || "";
    [this.repo.value, this.revision.value] = [this.asked.split("@")[0], this.asked.split("@")[1] || ""];
    this.then = LINK_BACK.test(link.get("then") || "") ? link.get("then") : "";
    if (!this.asked) return;
    this.tell("The link asks for this model. Nothing has been fetched; Load tells its size first.");
    this.node.scrollIntoView({ block: "center" });
  }

  // First ask only for the size; `fetch` follows when the visitor agrees, at the commit that was offered.
  start() {
    if (this.load.getAttribute("aria-disabled") === "true") return; // not disabled: the focus stays
    this.ask({ look: { repo: this.repo.value.trim(), revision: this.revision.value.trim() } });
  }

  fetch({ repo, revision }) {
    this.ask({ load: { repo, revision } });
  }

  ask(message) {
    this.sequence += 1;
    this.busy(true);
    this.tell("Asking the Hub…");
    this.trigger("ask", { seq: this.sequence, ...message });
  }

  offer(found) {
    if (found.cached) {
      this.fetch(found);
      return;
    }
    const agree = button("Download", () => this.fetch(found), { class: "s-primary" });
    const refuse = button("Not now", () => {
      this.busy(false);
      this.tell("Nothing was downloaded.");
      this.load.focus();
    });
    const megabytes = (found.bytes / 2 ** 20).toFixed(1);
    this.tell(`${found.repo} at commit ${found.revision.slice(0, 12)}: up to ${megabytes} MB. Nothing has been downloaded yet.`);
    clear(this.question).append(agree, refuse);
    this.question.hidden = false;
    agree.focus();
  }

  cancel() {
    this.trigger("stop", { seq: this.sequence });
    this.sequence += 1;
    this.busy(false);
    this.tell("Stopped. What was already fetched is kept for the next try.");
  }

  /** @param {boolean} on */
  busy(on) {
    this.load.setAttribute("aria-disabled", String(on));
    this.stop.hidden = !on;
    this.bar.hidden = !on;
    this.question.hidden = true;
    if (on) this.bar.removeAttribute("value");
  }

  tell(text, wrong = false) {
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
    this.loaded(answer.loaded);
    this.tell(`${answer.loaded.name} is loaded. It stands above and in the lists of its page.`);
    if (this.then && answer.loaded.name === this.asked) this.said.append(" ", el("a", { href: this.then }, "Open the shared link"));
  }
}
