// The first hint, and the tour: a ring around the control of a step, and a bar with its sentence.
import { button, el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { readLink } from "./link.js";
import { withView } from "./state.js";
import { TOURS } from "./tours.js";

/** The state of a step: what the page opens with, changed as the step says. @returns {import("./state.js").Change} */
export function atStep(setup, number) {
  const { state } = TOURS[setup.task].steps[number - 1];
  return () => withView({ tour: number })(readLink(new URLSearchParams(state), setup).state);
}

export class TourView {
  constructor(bench) {
    this.bench = bench;
    this.tour = TOURS[bench.setup.task];
    this.touched = false; // the user has already done the first step
    this.pointed = null; // the step whose target was brought into view
    this.ring = el("div", { class: "s-ring", "aria-hidden": "true", hidden: true });
    this.open = button(`Tour in ${this.tour.steps.length} steps`, () => this.go(1), { class: "s-tour-start", "aria-expanded": "false" });
    this.node = el("div", { class: "s-first" }, el("p", {}, el("strong", {}, "Try this first: "), this.tour.next), this.open);
    this.says = el("p", { role: "status" });
    this.buttons = el("div", { class: "s-actions" });
    this.bar = el("section", { class: "s-tour", "aria-label": "Tour", hidden: true, on: { keydown: (event) => event.key === "Escape" && this.leave() } }, this.says, this.buttons);
    this.laid = false; // before the page has its places nothing is measured: that would lay it out an additional time
    new ResizeObserver(() => {
      this.laid = true;
      this.point();
    }).observe(bench.root);
    addEventListener("scroll", () => this.point(), { capture: true, passive: true });
  }

  get number() {
    return this.bench.state.view.tour;
  }

  go(number) {
    this.bench.update(atStep(this.bench.setup, number), `Tour, step ${number}`);
    this.buttons.querySelector("[data-key=next], [data-key=leave]").focus({ preventScroll: true });
  }

  leave() {
    this.bench.update(withView({ tour: 0 }), "Left the tour");
    this.open.focus({ preventScroll: true });
  }

  state() {
    const { number } = this;
    const count = this.tour.steps.length;
    this.touched = this.touched || this.bench.history.at > 0;
    this.open.setAttribute("aria-expanded", String(number > 0));
    this.bar.hidden = !number;
    document.documentElement.classList.toggle("s-on-tour", number > 0);
    if (number) {
      patch(this.says, el("strong", {}, `${number} of ${count}. `), this.tour.steps[number - 1].says);
      patch(this.buttons,
        number > 1 ? button("Back", () => this.go(number - 1), { "data-key": "back" }) : null,
        number < count ? button("Next", () => this.go(number + 1), { "data-key": "next", class: "s-primary" }) : null,
        button(number < count ? "Leave the tour" : "End of the tour", () => this.leave(), { "data-key": "leave" }));
    }
    this.point();
  }

  answer() {
    this.point();
  }

  view() {
    this.point();
  }

  light() {
    if (!this.bench.hover || this.touched) return;
    this.touched = true;
    this.point();
  }

  /** The control that the page points at: the target of the step, or the first hint. */
  target() {
    const targets = this.number ? this.tour.steps[this.number - 1].targets : this.touched ? [] : this.tour.targets;
    const seen = (node) => node.getClientRects().length > 0;
    const page = this.bench.root.closest(".s-root");
    return targets.map((names) => [...page.querySelectorAll(names)].find(seen)).find(Boolean);
  }

  point() {
    if (!this.laid) return;
    const target = this.target();
    this.ring.hidden = !target;
    if (!target) return;
    if (this.number && this.pointed !== this.number) target.scrollIntoView({ block: "center", inline: "nearest" });
    this.pointed = this.number;
    const [box, page] = [target.getBoundingClientRect(), this.bench.root.getBoundingClientRect()];
    const place = { left: box.left - page.left - 5, top: box.top - page.top - 5, width: box.width + 10, height: box.height + 10 };
    for (const [name, value] of Object.entries(place)) this.ring.style.setProperty(name, `${value}px`);
    this.ring.setAttribute("data-says", this.number ? String(this.number) : "start here");
  }
}
