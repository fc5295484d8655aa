// Film strips: the output at every setting of the dimmer, the beam or the precision, one line a setting; and the outputs that a
// beam found, ranked again by length and coverage without a new search.
import { button, el, newId, signed } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { differing, pieceName, quoted, units, visible } from "../../figures/js/text.js";
import { Asked } from "./asked.js";
import { comparedWith, penalty } from "./finding.js";
import { blendTargets, isHard } from "./hard.js";
import { withColumn } from "./state.js";

const MOST_RANKED = 6;
const STRIPS = { dimmer: ["dimmer", "Decode at each step of the dimmer"], beam: ["beam", "Decode with every beam size"], precision: ["precision", "Decode in every precision"] };

/** A pool of outputs in the order of another score. @param {any[]} pool @returns {any[]} */
export function rankedPool(pool, options, weight) {
  const score = (item) => item.logp / penalty(item.length, options) + weight * (item.coverage || 0);
  return pool.map((item) => ({ ...item, score: score(item) })).sort((one, other) => other.score - one.score);
}

/** How many outputs there are, and how many of them are shown. @param {number} count @param {boolean} whole */
export function poolWords(count, whole) {
  if (count === 1) return "These searches met one finished output.";
  const shown = whole || count <= MOST_RANKED ? "all of them" : `the best ${MOST_RANKED} of them`;
  return `These searches met ${count} different finished outputs. Here stand ${shown}, in the order of another score.`;
}

/** Of every output the words that are not in the first one's. */
function linesOf(frames, base, kind) {
  const words = (frame) => units(frame.pieces, kind).map((unit) => unit.text);
  const first = words(frames[base]);
  return frames.map((frame) => ({ words: units(frame.pieces, kind).map((unit) => (unit.atoms[0].space ? ` ${unit.text}` : unit.text)), marks: differing(first, words(frame))[1] }));
}

export class StripHands extends Asked {
  /** `along`: the strips that can be asked for here. @param {any} bench @param {{along: string[]}} options */
  constructor(bench, { along }) {
    super(bench, { growing: "frames" });
    this.along = "";
    this.rank = { length_norm: "none", alpha: 0.6, coverage: 0 };
    const towards = newId("s-towards");
    this.towards = el("select", { id: towards });
    const dims = along.includes("dimmer") ? el("span", { class: "s-inline" }, el("label", { for: towards }, "Dim towards"), this.towards) : null;
    this.ranking = new RankAgain(this);
    this.node = el("div", {},
      el("div", { class: "s-bar" }, dims, along.map((name) => button(STRIPS[name][1], () => this.ask(name), { "data-key": name })), this.asking.node), this.list, this.ranking.node);
  }

  ask(along) {
    this.along = along;
    const { wanted } = this.bench.state.input;
    const more = along === "dimmer" ? { towards: this.towards.value } : along === "beam" && wanted ? { wanted } : {};
    this.asking.ask({ ask: "strip", along, ...more });
  }

  show(answer) {
    super.show({ along: this.along, base: 0, flips: null, says: [], pool: [], ...answer });
  }

  answer() {
    const targets = blendTargets({ task: this.bench.setup.task, hard: isHard(this.bench, "B") });
    const now = targets.some(([key]) => key === this.towards.value) ? this.towards.value : targets[0][0];
    patch(this.towards, targets.map(([key, name]) => el("option", { value: key }, name)));
    this.towards.value = now;
    super.answer();
  }

  draw() {
    super.draw();
    const { found } = this;
    this.ranking.show(found && found.along === "beam" && found.whole ? found.pool : []);
  }

  lines(strip) {
    if (!strip.frames.length) return null;
    const { target } = this.bench.columns.B.kind;
    const lines = linesOf(strip.frames, strip.base, target);
    const heads = [{ dimmer: "attention left", beam: "search", precision: "precision" }[strip.along], "output", "log probability", "pieces", "time", ""];
    return [
      el("div", { class: "s-table-wrap", tabindex: "0", role: "region", "aria-label": "Film strip" }, el("table", { class: "s-table s-strip-table" },
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head || el("span", { class: "s-hidden" }, "try it"))))),
        el("tbody", {}, strip.frames.map((frame, i) => this.line(frame, lines[i], i))))),
      strip.says.map((text) => el("p", { class: "s-says" }, text))];
  }

  line(frame, { words, marks }, i) {
    const { found } = this;
    const { target } = this.bench.columns.B.kind;
    const flipped = i === found.flips ? el("strong", { class: "s-flip" }, `first to change, at ${quoted(pieceName(frame.pieces[frame.differs_at] || "<eos>", target))}`) : null;
    const remarks = [flipped, frame.note, frame.worse ? "more search, and worse" : "", frame.proved ? "proved to be the best" : "", frame.proved === false ? "not proved" : "",
      frame.likeness === null || frame.likeness === undefined ? "" : `${Math.round(frame.likeness * 100)} % like your answer`, priceOf(frame)].filter(Boolean);
    const text = words.map((word, u) => el("span", { class: marks.has(u) ? "s-differs s-side-b" : null }, word));
    return el("tr", { "data-key": i, class: frame.changed ? "s-changed" : null },
      el("th", { scope: "row" }, frame.label), el("td", {}, el("bdi", {}, text), remarks.length ? el("div", { class: "s-muted" }, remarks.map((remark, n) => [n ? "; " : "", remark])) : null),
      el("td", { class: "s-number" }, signed(frame.logp, 3)), el("td", { class: "s-number" }, String(frame.length)), el("td", { class: "s-number" }, `${Math.round(frame.seconds * 1000)} ms`),
      el("td", {}, this.apply(frame)));
  }

  apply(frame) {
    const { bench } = this;
    const put = (change) => button("Put into B", change, { class: "s-quiet", "aria-label": `Put ${frame.label} into B` });
    if (this.found.along === "dimmer") return put(() => bench.dim(frame.edits.length ? frame.edits[0].factor : 0, this.towards.value));
    if (this.found.along !== "beam" || !frame.options) return null;
    return put(() => bench.update(withColumn("B", ({ options }) => ({ options: { ...options, ...frame.options } })), `B: ${frame.label}`));
  }
}

function priceOf({ price }) {
  return price ? `the dimmed model finds it ${comparedWith(price.change, "the untouched one does")}` : "";
}

// Which of the outputs found would win under another score. Nothing here asks the server.
class RankAgain {
  constructor(strips) {
    this.strips = strips;
    this.pool = [];
    const [norm, alpha, coverage] = [newId("s-norm"), newId("s-alpha"), newId("s-coverage")];
    const set = (name, value) => {
      this.strips.rank[name] = value;
      this.show(this.pool);
    };
    this.norm = el("select", { id: norm, on: { change: () => set("length_norm", this.norm.value) } }, [["none", "off"], ["power", "divide by n^α"], ["gnmt", "divide by ((5 + n) / 6)^α"]].map(([key, name]) => el("option", { value: key }, name)));
    this.alpha = el("input", { type: "range", id: alpha, min: 0, max: 2, step: 0.05, value: 0.6, on: { input: () => set("alpha", Number(this.alpha.value)) } });
    this.coverage = el("input", { type: "range", id: coverage, min: 0, max: 2, step: 0.05, value: 0, on: { input: () => set("coverage", Number(this.coverage.value)) } });
    this.outputs = { alpha: el("output", { for: alpha }), coverage: el("output", { for: coverage }) };
    this.told = el("p", { class: "s-says", role: "status" });
    this.list = el("ol", { class: "s-reranked" });
    this.whole = false;
    this.more = button("", () => {
      this.whole = !this.whole;
      this.show(this.pool);
    }, { class: "s-quiet" });
    this.covers = el("span", { class: "s-inline" }, el("label", { for: coverage }, "Coverage"), this.coverage, this.outputs.coverage);
    this.node = el("div", { hidden: true }, el("h3", { class: "s-figure-head" }, "Rank them anew"),
      this.told, el("p", { class: "s-says" }, "Short outputs have few factors below 1, so without length normalisation they win too often."),
      el("div", { class: "s-bar" }, el("span", { class: "s-inline" }, el("label", { for: norm }, "Length normalisation"), this.norm),
        el("span", { class: "s-inline" }, el("label", { for: alpha }, "α"), this.alpha, this.outputs.alpha), this.covers), this.list, this.more);
  }

  show(pool) {
    this.pool = pool;
    this.node.hidden = !pool.length;
    if (!pool.length) return;
    const { rank } = this.strips;
    this.covers.hidden = pool.every((item) => item.coverage === null);
    this.outputs.alpha.textContent = rank.alpha.toFixed(2);
    this.outputs.coverage.textContent = rank.coverage.toFixed(2);
    this.told.textContent = poolWords(pool.length, this.whole);
    this.more.hidden = pool.length <= MOST_RANKED;
    this.more.textContent = this.whole ? `Show the best ${MOST_RANKED} alone` : `Show all ${pool.length}`;
    patch(this.list, rankedPool(pool, rank, rank.coverage).slice(0, this.whole ? pool.length : MOST_RANKED).map((item) => el("li", { "data-key": item.tokens.join() },
      el("bdi", {}, visible(item.text) || "(nothing)"), el("span", { class: "s-muted" }, ` score ${signed(item.score, 3)}, log probability ${signed(item.logp, 3)}, ${item.length} pieces, ${item.k ? `found with k = ${item.k}` : "found by exact search alone"}`))));
  }
}
