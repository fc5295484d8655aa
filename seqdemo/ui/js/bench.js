// The workbench of a task page: the user's actions as changes of the state, and the answers that the state needs. Answers are
// cached by their question, so that undo needs no server.
import { Hand } from "./hand.js";
import { WordHands } from "./words.js";
import { chosenIn, readColumn, readTrace, reranked, selectionFor, selectionOfTokens } from "./answer.js";
import { Asker, isSlow } from "./asker.js";
import { editWords } from "./editwords.js";
import { firstDifference, priceSentence } from "./finding.js";
import { Lit } from "./light.js";
import {
  askedAnew, columnOf, editsFor, frozen, questionOf, same, sameButRanking, sameQuestion, sidesOf, startState, swapped, tabsOf, takesLong, withColumn, withDimmed, withEdits,
  withExample, withInput, withLanguage, withModel, withModelEverywhere, withOption, withSelection, withView, withWanted,
} from "./state.js";
import { brief, differing, plainText, units } from "../../figures/js/text.js";
import { pathTo } from "../../figures/js/layout.js";

const MOST_ANSWERS = 24;
const VIEWS = { tree: "the search tree", alignment: "where the model looks", gates: "the gates", attention: "attention on or off", text: "the text" };
const WORD_EDITS = ["Force", "Ban", "Require"]; // the others act inside the network

export class Bench extends Lit {
  /** @param {any} setup  @param {(kind: string, message: any) => void} send  @param {() => Promise<any>} [look] how the server is
   * @param {import("./hand.js").HandLine} [line] for what is done by hand */
  constructor(setup, send, look, line) {
    super(setup);
    /** @type {HTMLElement | null} what the page stands in */
    this.root = null;
    this.answers = new Map();
    this.refused = false; // whether what stands in a field cannot be asked
    this.words = new WordHands(this);
    this.hand = new Hand(this, line); // questions of hands
    this.asker = new Asker({
      trigger: send,
      look,
      build: (sides, replays) => this.message(sides, replays),
      long: ({ columns, replays }) => [...Object.values(columns), ...Object.values(replays)].some(({ options }) => takesLong(options)),
      onAnswer: (answer) => this.answer(answer),
      onState: (told) => this.tell("busy", { ...told, overdue: isSlow(told) ? this.asker.waiting() : [] }),
    });
  }

  start(address, answer) {
    this.enter(address);
    const then = `${this.setup.page || "./"}#${this.link}`;
    this.links = this.absent.map((name) => [name, `models#${new URLSearchParams({ load: name, then })}`]);
    if (answer && sameQuestion(this.state, startState(this.setup))) this.take(answer);
    this.save();
    this.tell("state");
    if (this.answered()) this.tell("answer");
    this.ask(sidesOf(this.state).filter((side) => !this.columns[side]));
    this.replayShown();
  }

  follows(before, wait) {
    const anew = this.refused ? sidesOf(this.state) : askedAnew(before, this.state);
    this.refused = false;
    const known = anew.filter((side) => this.recall(side));
    const unknown = anew.filter((side) => !known.includes(side));
    const ranked = unknown.filter((side) => this.rerank(side, before));
    const selected = ({ columns }) => columns.map((column) => column.selection);
    this.asker.forget(anew);
    this.tell("state");
    if (known.length || ranked.length || !same(selected(before), selected(this.state))) this.tell("answer");
    else if (!same(before.view, this.state.view)) this.tell("view", before.view); // the answers stand as they were
    this.ask(unknown, wait);
    this.replayShown();
  }

  // Questions and answers

  ask(sides, wait = 0) {
    if (sides.length) this.asker.change(sides, wait);
  }

  message(sides, replays) {
    const { state, setup } = this;
    const spec = (side) => {
      const { checkpoint, options, edits } = columnOf(state, side);
      return { checkpoint, options, edits };
    };
    const columns = Object.fromEntries(sides.map((side) => [side, spec(side)]));
    const paths = Object.fromEntries(Object.entries(replays).filter(([side]) => !sides.includes(side)).map(([side, selection]) => [side, { ...spec(side), ...selection }]));
    const mine = setup.checkpoints.filter((item) => item.name.includes("@")).map((item) => item.name);
    const { text, photo, example, language, wanted } = state.input;
    const input = setup.task === "caption" ? { photo, example } : { text };
    return structuredClone({ task: setup.task, mine, input, language, wanted, columns, replays: paths, gates: this.gatesNeeded() });
  }

  gatesNeeded() {
    return { gates: "all", text: "memory" }[this.state.view.tab] || "";
  }

  /** Earlier answers are shown at once. */
  recall(side) {
    const column = this.answers.get(JSON.stringify(questionOf(this.state, side)));
    if (column) this.show(side, column);
    return Boolean(column);
  }

  /** An answer on screen: its photograph comes with it. */
  show(side, column) {
    this.columns[side] = column;
    this.picture = column.picture || this.picture;
  }

  remember(side, column) {
    const question = questionOf(this.state, side);
    const key = JSON.stringify(question);
    this.show(side, { ...column, question });
    this.answers.delete(key);
    this.answers.set(key, this.columns[side]);
    if (this.answers.size > MOST_ANSWERS) this.answers.delete(this.answers.keys().next().value);
  }

  answer(answer) {
    this.take(answer);
    this.tell("answer");
    this.replayShown();
  }

  take(answer) {
    this.fault = answer.error || "";
    for (const [side, payload] of Object.entries(answer.columns || {})) {
      if (payload.error) this.columns[side] = { spec: { ...columnOf(this.state, side), edits: [] }, ...this.columns[side], error: payload.error };
      else this.takeColumn(side, payload);
    }
    for (const [side, payload] of Object.entries(answer.traces || {})) {
      const column = this.columns[side];
      if (payload.error) this.columns[side] = { ...column, refused: JSON.stringify(selectionFor(this.chosen(side))) };
      else if (payload.asked.join() === this.chosen(side).tokens.join()) this.remember(side, { ...column, trace: readTrace(payload) });
    }
  }

  takeColumn(side, payload) {
    const column = readColumn(payload, this.setup);
    this.remember(side, column);
    const { edits, selection } = columnOf(this.state, side);
    const pieces = (edit, i) => (edit.tokens ? { kind: edit.kind, position: edit.position, pieces: payload.spec.edits[i].pieces } : edit);
    const told = { edits: edits.map(pieces), selection: selection && "tokens" in selection ? selectionOfTokens(column, selection.tokens) : selection };
    if (same(told, { edits, selection })) return;
    this.history.amend(frozen(withColumn(side, () => told)(this.state))); // an old link, converted to words and rows
    this.remember(side, column);
    this.save();
  }

  // Only the order of the outputs changes: the new one is shown while the server is asked.
  rerank(side, before) {
    const column = this.columns[side];
    if (!column || column.error || !sameButRanking(questionOf(before, side), questionOf(this.state, side))) return false;
    this.columns[side] = reranked(column, columnOf(this.state, side).options);
    return true;
  }

  /** Stopped by the user: the input and every column return to the question that the stopped columns still answer. */
  stop() {
    const answered = (side) => this.columns[side] && this.columns[side].question;
    const stopped = this.asker.waiting().find(answered);
    this.asker.giveUp();
    const back = (state, side) => withColumn(side, () => {
      const { input, checkpoint, options, edits } = this.columns[side].question;
      return { checkpoint, options, edits: editsFor(edits, input, state.input) };
    })(state);
    const input = stopped ? this.columns[stopped].question.input : this.state.input;
    this.update((state) => sidesOf(state).filter(answered).reduce(back, { ...state, input }), "Stopped the search");
  }

  /** Whether a column still shows the answer to an earlier input. */
  isLate(side) {
    const { question } = this.columns[side] || {};
    return Boolean(question && !same(question.input, this.state.input));
  }

  // The views need the replay of the selected output, with the gates that the open view draws.
  replayShown() {
    for (const side of sidesOf(this.state)) {
      const column = this.columns[side];
      if (!this.has(side) || this.asker.waiting().includes(side)) continue;
      const chosen = this.chosen(side);
      const selection = selectionFor(chosen);
      if (column.refused === JSON.stringify(selection)) continue;
      const wanted = this.gatesNeeded();
      const gates = !wanted || (column.trace.parts && (column.trace.gates_kind === wanted || column.trace.gates_kind === "all"));
      if (column.trace.asked.join() !== chosen.tokens.join() || !gates) this.asker.replay(side, selection);
    }
  }

  /** Something cannot be asked, such as a text that is too long: no column has an answer until the next change. */
  refuse(error) {
    const sides = sidesOf(this.state);
    this.refused = true;
    this.asker.forget(sides);
    for (const side of sides) this.columns[side] = { ...this.columns[side], error };
    this.tell("answer");
  }

  // The user's actions

  setText(text) {
    if (this.refused && text === this.state.input.text) this.follows(this.state, 0);
    this.update(withInput({ text }), `Typed “${brief(text)}”`, { kind: "text", wait: 250 });
  }

  setWanted(text) {
    this.update(withWanted(text), `The answer you wanted: “${brief(text)}”`, { kind: "wanted", wait: 250 });
  }

  setOption(side, name, value) {
    const field = this.setup.options.find((item) => item.name === name) || { label: "Strategy", kind: "choice", choices: this.setup.strategies };
    const shown = field.kind === "choice" ? field.choices.find(([key]) => key === value)[1] : value;
    this.update(withOption(side, name, value), `${side}: ${field.label} ${shown}`, { kind: `${side}.${name}`, wait: name === "strategy" ? 0 : 120 });
  }

  setCheckpoint(side, name) {
    this.update(withModel(side, this.card(name)), `${side}: model ${this.card(name).title}`);
  }

  /** Switch all columns to one model. The user's own text stays; an unchanged example is replaced by one of the model. */
  setModel(name) {
    const shown = this.currentExample();
    const other = this.setup.examples.find((example) => example.checkpoint === name);
    if (shown && other && shown.checkpoint !== name) this.useExample(other);
    else this.update(withModelEverywhere(this.card(name)), `Model ${this.card(name).title}`);
  }

  setLanguage(tag) {
    const [, title] = this.setup.languages.find(([known]) => known === tag);
    this.update(withLanguage(tag, this.setup), `Into ${title}`);
  }

  useExample(example) {
    this.update(withExample(example, this.setup), `Example “${brief(example.text || example.label)}”`, { entry: true });
  }

  usePhoto(photo) {
    this.update(withInput({ photo, example: null }), "A photograph of your own", { entry: true });
  }

  resetColumn(side) {
    const { checkpoint, options, edits } = columnOf(startState(this.setup), side);
    this.update(withColumn(side, () => ({ checkpoint, options, edits })), `Reset column ${side}`);
  }

  reset() {
    this.update(() => startState(this.setup), "Reset the page", { entry: true, anew: true });
  }

  swap() {
    this.update(swapped, "Swapped A and B");
  }

  copyToB() {
    const { checkpoint, options, edits } = columnOf(this.state, "A");
    this.update(withColumn("B", () => ({ checkpoint, options, edits })), "Copied A to B");
  }

  /** The same model trained without attention if there is one, otherwise attention dimmed to nothing; with the search of A. */
  attentionOff() {
    const { options } = columnOf(this.state, "A");
    const twin = this.card((this.card(columnOf(this.state, "B").checkpoint) || {}).without);
    const off = twin ? withModel("B", twin) : withDimmed("B", 1, "nothing");
    this.update((state) => withColumn("B", () => ({ options }))(off(state)), "Switched attention off in B, with the search of A");
  }

  /** The same search in every column, so that only the models differ. */
  sameSearch(from) {
    const { options } = columnOf(this.state, from);
    this.update((state) => sidesOf(state).filter((side) => side !== from).reduce((next, side) => withColumn(side, () => ({ options }))(next), state), `The search of ${from} in every column`);
  }

  dim(factor, towards) {
    this.update(withDimmed("B", factor, towards), `B: attention dimmed by ${Math.round(factor * 100)} %`, { kind: "dim", wait: 80 });
  }

  /** The pieces on the path to a node of the tree: B must begin with them, or may not begin with exactly them. */
  editPath(kind, pieces) {
    const tree = this.shownIn("tree");
    if (kind === "Force") this.words.take(tree, pieces);
    else this.words.never(tree, pieces);
  }

  /** Whether the columns differ in their search or their model. */
  searchesApart() {
    const [a, b] = ["A", "B"].map((side) => columnOf(this.state, side));
    return !same([a.checkpoint, a.options], [b.checkpoint, b.options]);
  }

  removeEdit(side, index) {
    this.update(withEdits(side, (edits) => edits.filter((_, i) => i !== index)), `${side}: took back “${this.editText(side, index)}”`);
  }

  open(tab) {
    if (tabsOf(this.setup).includes(tab)) this.update(withView({ tab }), `Looked at ${VIEWS[tab]}`, { kind: "tab" });
  }

  /** A node selects the best output through it, or its own path if there is none. */
  selectNode(side, row) {
    this.select(side, { row });
  }

  selectOutput(side, item) {
    this.select(side, item === this.columns[side].hypotheses[0] ? null : selectionFor(item));
  }

  select(side, selection) {
    const text = brief(plainText(chosenIn(this.columns[side], selection).pieces, this.columns[side].kind.target));
    this.update(withSelection(side, selection), `Looked at “${text}” in ${side}`, { kind: `select.${side}` });
  }

  // Values for the views

  card(name) {
    return this.setup.checkpoints.find((item) => item.name === name);
  }

  hasAttention(name) {
    return Boolean((this.card(name) || {}).attention);
  }

  /** The example that the page shows unchanged, if any. */
  currentExample() {
    return this.examplesOfInput().find((example) => sameQuestion(withExample(example, this.setup)(this.state), this.state));
  }

  /** The examples with this input, whatever the columns make of it. */
  examplesOfInput() {
    const { text, example: photo, language } = this.state.input;
    const given = (example) => (example.photo ? example.photo === photo : example.text === text);
    return this.setup.examples.filter((example) => given(example) && withExample(example, this.setup)(this.state).input.language === language);
  }

  /** The sentence of an edit, from the server. */
  editText(side, index) {
    const column = this.columns[side];
    const told = column && column.spec && column.spec.edits[index];
    const edit = columnOf(this.state, side).edits[index];
    const fits = told && ["kind", ...Object.keys(edit)].every((name) => same(told[name], edit[name]));
    return fits ? told.says : editWords(edit, column && column.kind ? column.kind.target : "subwords");
  }

  /** What one of several edits changes by itself, in log probability; undefined if unknown. */
  ownPrice(side, index) {
    return columnOf(this.state, side).edits.length < 2 ? undefined : (this.priceOf(side, index) || {}).change;
  }

  /** The price of an edit with all others in force; undefined while it is unknown. */
  priceOf(side, index) {
    const { own_prices: prices, question, error } = this.columns[side] || {};
    const asked = prices && !error && question && same(question.edits, columnOf(this.state, side).edits);
    return asked ? prices.find((price) => price.edit === index) : undefined;
  }

  chosen(side) {
    return chosenIn(this.columns[side], columnOf(this.state, side).selection);
  }

  /** The selected row of a column's tree, and the pieces on the path to it. */
  selectedNode(side) {
    const { selection } = columnOf(this.state, side);
    const { tree } = this.columns[side];
    if (!selection || !(selection.row < tree.size)) return null;
    return { row: selection.row, pieces: pathTo(tree, selection.row).map((at) => tree.pieces.get(tree.token[at])) };
  }

  /** For a language model: how many pieces of a trace are the user's own text. */
  given(side) {
    return this.setup.task === "complete" && this.columns[side] ? this.columns[side].source.pieces.length : 0;
  }

  /** Whether what a column shows is the answer to its question. */
  has(side) {
    const { tree, error } = this.columns[side] || {};
    return Boolean(tree && !error);
  }

  answered() {
    return sidesOf(this.state).every((side) => this.has(side));
  }

  /** Whose tree, gates or map a view shows: that of the side chosen for it or, where this one has no answer, of the other. */
  shownIn(view) {
    const chosen = this.state.view[view];
    return [chosen, ...sidesOf(this.state)].find((side) => this.has(side)) || chosen;
  }

  differences() {
    if (!this.answered() || this.isLate("A") !== this.isLate("B")) return [new Set(), new Set()];
    if (this.setup.task === "complete") {
      const at = firstDifference(this.chosen("A").pieces, this.chosen("B").pieces);
      return [new Set([at]), new Set([at])]; // two continuations differ everywhere after the first difference, so only that one is marked
    }
    const words = ["A", "B"].map((side) => units(this.chosen(side).pieces, this.columns[side].kind.target).map((unit) => unit.text));
    return differing(words[0], words[1]);
  }

  priceText(column) {
    const inside = column.spec.edits.some((edit) => !WORD_EDITS.includes(edit.kind));
    const given = this.setup.task === "complete" && column.source.pieces.length > 0;
    return (column.prices || []).map((price) => priceSentence(price, this.setup.task, inside, given)).join(" ");
  }
}
