// The photograph: choosing one, and where the model looks for every word. After the answer, nothing here asks the server.
import { el, tipFor } from "../../figures/js/core.js";
import { mountPhotograph } from "../../figures/js/photograph.js";
import { patch } from "../../figures/js/patch.js";
import { withView } from "./state.js";
import { equations } from "./glossary.js";
import { ExamplesView, inputNote, WantedView } from "./examples.js";
import { sideSwitch } from "./panels.js";
import { factsOf } from "./facts.js";
import { equationOf, isHard, toldHard } from "./hard.js";
import { howFar } from "./trust.js";
import { Section } from "./section.js";

export class PhotoView {
  constructor(bench) {
    this.bench = bench;
    this.latest = null; // the photograph chosen last
    this.wanted = new WantedView(bench);
    const { setup } = bench;
    this.file = el("input", { type: "file", id: "s-photo", accept: "image/png,image/jpeg,image/webp,image/gif,image/bmp,image/tiff", on: { change: () => this.file.files[0] && this.load(this.file.files[0]) } });
    this.picture = el("img", { class: "s-photo", alt: "The photograph as the model sees it" });
    this.message = el("p", { class: "s-message", role: "alert", hidden: true });
    this.shows = el("p", { class: "s-shows", "aria-live": "polite" });
    this.far = el("p", { class: "s-far", hidden: true });
    this.examples = new ExamplesView(bench, (example, attributes) => tipFor(
      el("button", { type: "button", class: "s-thumb", "aria-label": example.label, on: { click: () => this.take(example) }, ...attributes }, el("img", { src: example.thumbnail, alt: "", width: 68, height: 68 })),
      () => [example.title || example.label, example.shows]));
    const drop = el("div", { class: "s-drop" }, el("label", { for: "s-photo" }, "Your own photograph"), this.file,
      el("p", { class: "s-muted" }, "PNG, JPEG, WebP, GIF, BMP or TIFF up to 5 MB and 25 megapixels; or paste or drop one. It is deleted from this server within the hour and never enters a link."));
    this.node = el("section", { class: "s-input", "aria-label": "Photograph" },
      el("div", { class: "s-input-main s-photo-main" }, this.picture, el("div", {}, el("h2", { class: "s-small-head" }, setup.words.input), drop, this.message, this.far, this.wanted.node)),
      el("div", { class: "s-input-side" }, el("h2", { class: "s-small-head" }, "Try"), this.examples.node, this.shows));
    this.node.addEventListener("dragover", (event) => event.preventDefault());
    this.node.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) this.load(event.dataTransfer.files[0]);
    });
    document.addEventListener("paste", (event) => event.clipboardData && event.clipboardData.files[0] && this.load(event.clipboardData.files[0]));
  }

  take(example) {
    this.say("");
    this.latest = null;
    this.bench.useExample(example);
  }

  say(text) {
    this.message.hidden = !text;
    this.message.textContent = text;
  }

  async load(file) {
    this.say("");
    if (file.size > this.bench.setup.limits.bytes) {
      this.say("This file is larger than 5 MB. Save it smaller and try again.");
      return;
    }
    this.latest = file; // the photograph chosen last, however long it takes
    try {
      const { path } = await this.bench.upload(file);
      if (this.latest === file) this.bench.usePhoto(path);
    } catch {
      if (this.latest === file) this.say("The photograph did not reach the server. Try again.");
    }
  }

  // The photograph stays marked while it is shown. The example's own note goes when its question changes.
  state() {
    const { bench } = this;
    const { input } = bench.state;
    if (!input.photo) this.file.value = "";
    const example = bench.currentExample();
    const photo = example || bench.setup.examples.find((item) => !input.photo && item.photo === input.example);
    this.shows.textContent = inputNote(example, bench.examplesOfInput());
    this.wanted.state();
    this.examples.show(photo);
  }

  answer() {
    const { picture, columns } = this.bench;
    if (picture) this.picture.src = picture.data;
    this.picture.hidden = [columns.A, columns.B].every((item) => item && item.error); // it is not the one that was refused
    const column = [columns.A, columns.B].find((item) => item && item.tree && !item.error);
    this.far.hidden = !(column && column.far);
    this.far.textContent = (column && column.far) || "";
  }
}

function aboutCells(hard) {
  const how = hard ? "Choose a word, then click the cell where B shall look while it writes that word; click it again to let go."
    : "Choose a word, then paint over the photograph where B shall look while it writes that word; paint more to add, paint it again to take it away.";
  return `${how} B is then decoded from there; A stays as it is.`;
}

export class OverlayPanel {
  constructor(bench) {
    this.bench = bench;
    this.drawing = null;
    this.bar = el("div", { class: "s-bar" });
    this.hard = el("div", {});
    this.none = el("p", { class: "s-muted", hidden: true }, "This model has no attention: it reads the photograph as one vector.");
    this.holder = el("div", {});
    this.trust = el("div", { class: "s-trust" });
    this.equation = el("div", {});
    this.section = new Section(bench, "cell", "Hands on the model: choose where B looks", { area: "cell", about: aboutCells, chosen: (row) => bench.look({ word: row }) });
    this.node = el("div", {},
      el("p", { class: "s-says" }, "Point at a word: the photograph is bright where the model looked while writing it and dark elsewhere, each word on its own scale. A click keeps the word; arrow keys move from word to word."),
      this.bar, this.hard, this.none, this.holder, this.section.node, this.trust, this.equation);
  }

  answer() {
    const { bench } = this;
    const { word, veil } = bench.state.view;
    const side = bench.shownIn("looks");
    const { trace, kind, spec } = bench.columns[side];
    patch(this.bar, sideSwitch(bench, side, (looks) => bench.update(withView({ looks, word: 0 }), `Looked at where ${looks} looks`), "Whose attention"));
    patch(this.equation, equations(bench, "alignment", equationOf(bench, side)));
    patch(this.hard, toldHard(bench, side, "cell"));
    this.none.hidden = Boolean(trace.attention);
    this.holder.hidden = this.trust.hidden = !trace.attention;
    if (this.section.hands) this.section.hands.row = word;
    this.section.answer(side === "B" && Boolean(trace.attention));
    if (!trace.attention) return;
    patch(this.trust, howFar(bench.card(spec.checkpoint)));
    const payload = { picture: bench.picture ? bench.picture.data : "", pieces: trace.pieces, kind: kind.target, weights: trace.attention, distribution: trace.distribution, facts: factsOf(bench, side, "Attention over the photograph") };
    const hands = this.section.here;
    /** @type {import("../../figures/js/photograph.js").PhotographView} */
    const view = { word, veil, mode: !hands ? "look" : isHard(bench, "B") ? "pick" : "paint", painted: hands ? hands.painted() : [], tables: bench.tables() };
    if (this.drawing) this.drawing.update(payload, view);
    else this.drawing = mountPhotograph(this.holder, payload, view, (event, detail) => this.heard(event, detail));
  }

  heard(event, detail) {
    if (event === "hover") this.bench.setHover(detail && { side: this.bench.shownIn("looks"), end: "target", index: detail.word });
    else if (event === "word" || event === "veil") this.bench.look({ [event]: detail });
    else if (event === "table") this.bench.foldTable(detail);
    else if (this.section.here) this.section.here.heard(event, detail);
  }

  light() {
    const { hover, columns } = this.bench;
    const side = this.bench.shownIn("looks");
    const own = hover && hover.end === "target" && hover.side === side && hover.index < columns[side].trace.pieces.length;
    if (this.drawing) this.drawing.light(own ? hover.index : null);
  }
}
