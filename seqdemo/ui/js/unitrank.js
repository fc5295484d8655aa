// Which unit matters for a word: every unit held at its mean, one by one, beside random groups of units, so that chance is visible.
import { button, el, newId, signed } from "../../figures/js/core.js";
import { quoted } from "../../figures/js/text.js";
import { partName } from "../../figures/js/units.js";
import { AskedOfWord } from "./asked.js";
import { NOUNS, SLIGHT, ratioOf } from "./finding.js";
import { placeOfPart } from "./holds.js";
import { columnOf, holdsSame, withEdits } from "./state.js";

const MOST_UNITS = 12;
const LAST_STEPS = 24; // of a long text: a unit is held while so many letters are read, or nobody would wait for it

/** Over what the means of “input” are taken: never over what B writes, so that no edit and no search changes them. @param {string} task */
export function meansOver(task) {
  return task === "complete" ? "what greedy search writes here" : "this input and what greedy search writes";
}

export class UnitHands extends AskedOfWord {
  constructor(bench) {
    super(bench, { class: "s-ranking" });
    this.part = "";
    const noun = NOUNS[bench.setup.task][1];
    const over = newId("s-over");
    this.over = el("select", { id: over }, el("option", { value: "input" }, meansOver(bench.setup.task)), el("option", { value: "sample" }, "a recorded sample of texts"));
    this.node = el("div", {},
      el("p", { class: "s-says" }, `Each unit of the part that is shown is held at its mean, one after the other. The more the ${noun} loses by it, the more the model needed that unit. Beside it stand random groups of units: what they do is chance.`),
      el("div", { class: "s-bar" }, this.labelled(`${noun[0].toUpperCase()}${noun.slice(1)}`),
        el("span", { class: "s-inline" }, el("label", { for: over }, "Means over"), this.over),
        button("Rank the units", () => this.ask(), { class: "s-primary" }), this.asking.node), this.list);
  }

  answer(part = this.part) {
    if (part !== this.part) this.found = null;
    this.part = part;
    super.answer();
  }

  ask() {
    const place = this.place();
    if (place) this.asking.ask({ ask: "units", position: place.position, length: place.length, over: this.over.value, ...placeOfPart(this.part), ...(this.bench.setup.task === "complete" ? { steps: LAST_STEPS } : {}) });
  }

  lines(found) {
    const top = found.units.slice(0, MOST_UNITS);
    const most = Math.max(1e-6, ...found.units.map(({ change }) => Math.abs(change)), ...found.groups.flatMap((group) => [Math.abs(group.best), ...group.random.map(Math.abs)]));
    const where = `${quoted(found.word)}, ${partName(found.direction === "forward" && found.part === "decoder" ? `decoder.${found.layer}` : `${found.part}.${found.layer}.${found.direction}`).toLowerCase()}, ${found.means}`;
    return [
      el("div", {}, el("h3", { class: "s-figure-head" }, "Single units, the most needed first"), el("p", { class: "s-muted" }, `${where}. Click a unit to hold it in B; click it again to let it go.`),
        el("ul", { class: "s-bars" }, top.map(({ unit, change }) => el("li", { "data-key": unit }, button(`unit ${unit}`, () => this.hold([unit]), { class: "s-quiet", "aria-pressed": String(this.holds([unit])) }), bar(change, most), el("span", { class: "s-number" }, signed(change, 3)))))),
      el("div", {}, el("h3", { class: "s-figure-head" }, "Groups against chance"), el("p", { class: "s-muted" }, "The first n units of the list together (bar), and random groups of n units (marks)."),
        el("ul", { class: "s-bars" }, found.groups.map((group) => el("li", { "data-key": group.size }, button(group.size === 1 ? "the first" : `the first ${group.size}`, () => this.hold(found.units.slice(0, group.size).map(({ unit }) => unit)), { class: "s-quiet", "aria-pressed": String(this.holds(found.units.slice(0, group.size).map(({ unit }) => unit))) }),
          bar(group.best, most, group.random), el("span", { class: "s-number", title: `Random groups of ${group.size}: from ${signed(Math.min(...group.random), 3)} to ${signed(Math.max(...group.random), 3)}` }, signed(group.best, 3)))))),
      el("p", { class: "s-says" }, `Numbers are changes of its log probability, ${signed(found.logp, 2)} with nothing held: −0.69 makes it half as likely. ${this.chance(found)}`)];
  }

  chance({ groups }) {
    const last = groups[groups.length - 1];
    if (!last) return "";
    const [worst] = [...last.random].sort((p, q) => p - q);
    return `The first ${last.size} together make it ${byHow(last.best)}; of ${last.random.length} random groups of ${last.size} units, the one that costs the most makes it ${byHow(worst)}.`;
  }

  edit(group) {
    const { kind, part, gate, value, layer, direction, positions } = this.found.edit;
    return { kind, part, gate, value, layer, direction, units: [...group].sort((p, q) => p - q), positions };
  }

  holds(group) {
    return columnOf(this.bench.state, "B").edits.some((edit) => holdsSame(edit, this.edit(group)));
  }

  hold(group) {
    const edit = this.edit(group);
    const name = group.length > 1 ? `${group.length} units` : `unit ${group[0]}`;
    const words = this.holds(group) ? `B: let go of ${name}` : `B: ${name} held at ${group.length > 1 ? "their means" : "its mean"}`;
    const change = this.holds(group) ? (edits) => edits.filter((old) => !holdsSame(old, edit)) : (edits) => [...edits, edit];
    this.bench.update(withEdits("B", change), words);
  }
}

/** A change of a log probability: “3.0× less likely”. @param {number} change */
export function byHow(change) {
  return Math.abs(change) < SLIGHT ? "neither likelier nor less likely" : ratioOf(change);
}

// Less likely to the left, likelier to the right; `marks` use the same scale.
function bar(change, most, marks = []) {
  const at = (value) => (0.5 + value / most / 2).toFixed(4);
  return el("span", { class: "s-bar-signed", style: { "--from": Math.min(0.5, Number(at(change))), "--to": Math.max(0.5, Number(at(change))) } }, marks.map((value) => el("i", { style: { "--at": at(value) } })));
}
