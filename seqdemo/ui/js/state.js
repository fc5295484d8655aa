// The state of a page as a value, and every change that the user can make. A change is a function from a state to the next one;
// nothing here touches the document or the server.

import { TOURS } from "./tours.js";

/**
 * @typedef {{kind: string, [field: string]: any}} Edit  forced and forbidden words are told by their pieces
 * @typedef {{row: number} | {output: number}} Selection  a row of the search tree, or an output where no tree was kept
 * @typedef {{checkpoint: string, options: Object<string, any>, edits: Edit[], selection: Selection | null}} Column
 * @typedef {{text: string, language: string | null, example: string | null, photo: string | null, wanted: string}} Input  `wanted`: the
 *   answer a person would have liked
 * @typedef {Object<string, any>} View  what is shown of the results; its fields and their limits stand in VIEW
 * @typedef {{page: string, input: Input, columns: Column[], view: View}} State
 * @typedef {(state: State) => State} Change
 */

export const LETTERS = "ABCDEFGH";
const MOST_ROWS = 60;
export const MOST_OPEN = 60; // parts that fold, menus and tables: more than a page has
const OWN_UNITS = { layer: 0, unit: null, heads: [0, 0] };
const GATE_ORDERS = ["unit", "variance", "saturation", "token"];

// Every field of the view: its initial value, and how it is read from a link. `undefined` means that the text cannot be read.
export const VIEW = {
  tab: { start: "tree", read: (text, setup) => (tabsOf(setup).includes(text) ? text : undefined) },
  tree: { start: "B", read: letter },
  pruned: { start: false, read: flag },
  until: { start: null, read: whole },
  opened: { start: [], read: rows },
  gates: { start: "B", read: letter },
  heads: { start: [0, 0], read: rows },
  part: { start: "", read: (text) => (/^(encoder|decoder)\.\d(\.(forward|backward))?$/.test(text) ? text : undefined) },
  order: { start: "unit", read: (text) => (GATE_ORDERS.includes(text) ? text : undefined) },
  step: { start: 0, read: whole },
  coloured: { start: "B", read: letter },
  by: { start: "unit", read: (text) => (["unit", "probability"].includes(text) ? text : undefined) },
  layer: { start: 0, read: whole },
  unit: { start: null, read: whole },
  looks: { start: "B", read: letter },
  word: { start: 0, read: whole },
  veil: { start: 0.8, read: share },
  menu: { start: "", read: (text, setup) => (/^[A-H]\d{1,4}$/.test(text) && letter(text[0], setup) ? text : undefined) },
  tour: { start: 0, read: (text, setup) => (/^\d{1,2}$/.test(text) && Number(text) <= TOURS[setup.task].steps.length ? Number(text) : undefined) },
  open: { start: [], read: (text) => (/^[a-z-]+(\.[a-z-]+)*$/.test(text) ? text.split(".").slice(0, MOST_OPEN) : undefined) },
};

function letter(text, setup) {
  return Object.keys(setup.start.columns).includes(text) ? text : undefined;
}

function flag(text) {
  return text === "1" ? true : undefined;
}

function whole(text) {
  return /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

function share(text) {
  return /^[01](\.\d{1,3})?$/.test(text) && Number(text) <= 1 ? Number(text) : undefined;
}

function rows(text) {
  return /^\d{1,7}(\.\d{1,7})*$/.test(text) ? text.split(".").map(Number).slice(0, MOST_ROWS) : undefined;
}

/** The views of a page, in their order. */
export function tabsOf(setup) {
  return setup.task === "complete" ? ["text", "tree", "gates"] : ["tree", "alignment", "gates", "attention"];
}

/** The same value, frozen. */
export function frozen(value) {
  if (value && typeof value === "object" && !Object.isFrozen(value)) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

export function same(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** @returns {State} what a page opens with */
export function startState(setup) {
  const { text, language, example, columns } = setup.start;
  const view = Object.fromEntries(Object.entries(VIEW).map(([name, field]) => [name, field.start]));
  return frozen(structuredClone({
    page: setup.page,
    input: { text, language: language ?? null, example: example ?? null, photo: null, wanted: "" },
    columns: Object.values(columns).map((column) => ({ ...column, selection: null })),
    view: { ...view, tab: setup.tab },
  }));
}

export function sidesOf(state) {
  return [...LETTERS.slice(0, state.columns.length)];
}

export function columnOf(state, side) {
  return state.columns[LETTERS.indexOf(side)];
}

/** Everything that the answer of a column depends on. */
export function questionOf(state, side) {
  const { checkpoint, options, edits } = columnOf(state, side);
  return { input: state.input, checkpoint, options, edits };
}

/** Whether two questions differ at most in how the outputs are ranked. */
export function sameButRanking(one, other) {
  const rest = (question) => ({ ...question, options: { ...question.options, alpha: null, length_norm: null } });
  const { finished, coverage } = other.options;
  return finished === "stay" && !coverage && same(rest(one), rest(other));
}

/** Whether a search with these options can take long: the page shows its progress and lets the user stop it. */
export function takesLong({ strategy, beam }) {
  return strategy === "exact" || (["beam", "stochastic"].includes(strategy) && beam > 25);
}

/** The columns whose question has changed. */
export function askedAnew(before, after) {
  return sidesOf(after).filter((side) => !columnOf(before, side) || !same(questionOf(before, side), questionOf(after, side)));
}

// Changes

export function withView(change) {
  return (state) => ({ ...state, view: { ...state.view, ...change } });
}

// A new question has a new output and a new tree: the menu of a word, selected and unfolded nodes of the old ones are dropped.
export function withColumn(side, change) {
  const at = LETTERS.indexOf(side);
  return (state) => {
    const columns = state.columns.map((column, i) => (i === at ? { ...column, selection: null, ...change(column) } : column));
    return { ...state, columns, view: withoutRows(state.view, side) };
  };
}

function withoutRows(view, side) {
  return { ...view, menu: "", ...(!side || view.tree === side ? { opened: [], until: null } : {}) };
}

export function withInput(change) {
  return (state) => {
    const input = { ...state.input, ...change };
    const columns = state.columns.map((column) => ({ ...column, edits: editsFor(column.edits, state.input, input), selection: null }));
    return { ...state, input, view: withoutRows(state.view), columns };
  };
}

/** Of the edits made for one input, those that mean something in another: no row of attention over its places, no gate held at some of them. */
export function editsFor(edits, made, input) {
  const ofPlaces = (edit) => edit.kind === "AttentionRow" || (edit.part === "encoder" && Boolean(edit.positions));
  const alike = ["text", "example", "photo"].every((part) => made[part] === input[part]);
  return alike ? edits : edits.filter((edit) => !ofPlaces(edit));
}

/** The search stays the same, and so do its rows. */
export function withWanted(wanted) {
  return (state) => ({ ...state, input: { ...state.input, wanted } });
}

export function withOption(side, name, value) {
  return withColumn(side, ({ options }) => {
    const next = { ...options, [name]: value };
    if (name === "strategy" && ["beam", "stochastic"].includes(value) && next.beam < 2) next.beam = 5;
    return { options: next };
  });
}

/** Forced or forbidden words belong to the old model; dimmed attention fits any model with attention. Hard attention, which looks
 * at the heaviest place, cannot be dimmed towards uniform; it alone draws places. */
export function movedTo(card) {
  const fits = { AttentionBlend: (edit) => card.attention && !(card.hard && edit.towards === "uniform"), AttentionDraw: () => card.hard };
  return ({ edits }) => ({ checkpoint: card.name, edits: edits.filter((edit) => fits[edit.kind] && fits[edit.kind](edit)) });
}

export function withModel(side, card) {
  return (state) => {
    const next = withOwnUnits(withColumn(side, movedTo(card))(state));
    const { language } = next.input;
    const mute = language && card.targets && card.targets.length && !card.targets.includes(language);
    return mute ? withInput({ language: card.targets[0] })(next) : next;
  };
}

/** Another model with a search of its own; null: with the one that is there. */
export function withModelAndSearch(side, card, options) {
  return (state) => withColumn(side, (column) => ({ options: options || column.options }))(withModel(side, card)(state));
}

// Another model has other units and heads.
function withOwnUnits(state) {
  return { ...state, view: { ...state.view, ...OWN_UNITS } };
}

export function withModelEverywhere(card) {
  return (state) => sidesOf(state).reduce((next, side) => withModel(side, card)(next), state);
}

/**
 * Columns whose model cannot write the language get the first model that can; the text stays. If this makes A and B ask the same
 * question, A becomes greedy, so that there is something to compare.
 */
export function withLanguage(tag, setup) {
  const able = setup.checkpoints.filter((card) => (card.targets || []).includes(tag));
  return (state) => {
    const next = sidesOf(state)
      .filter((side) => able.length && !able.some((card) => card.name === columnOf(state, side).checkpoint))
      .reduce((moved, side) => withColumn(side, movedTo(able[0]))(moved), withInput({ language: tag })(state));
    return asksTwice(next) && !asksTwice(state) ? withOption("A", "strategy", "greedy")(next) : next;
  };
}

function asksTwice(state) {
  return sameQuestion(state, swapped(state));
}

export function withEdits(side, change) {
  return withColumn(side, ({ edits }) => ({ edits: change(edits) }));
}

/** Words are stored with everything before them. Earlier edits that contradict the new one are removed. */
export function withBeginning(side, kind, pieces) {
  return withEdits(side, (edits) => (kind === "Force" ? forced(edits, pieces) : forbidden(edits, pieces)));
}

/** A word that must occur somewhere, as the user writes it. */
export function withRequired(side, word) {
  const edit = { kind: "Require", word };
  return withEdits(side, (edits) => [...edits.filter((old) => !same(old, edit)), edit]);
}

// One more edit for the pieces that no other one forces yet, so that each can be removed by itself.
function forced(edits, pieces) {
  const agrees = (edit) => edit.pieces && edit.pieces.every((piece, i) => edit.position + i >= pieces.length || pieces[edit.position + i] === piece);
  const forbids = ({ kind, position, pieces: path }) => kind === "Ban" && path && path.every((piece, i) => pieces[position + i] === piece);
  const kept = edits.filter((edit) => (edit.kind === "Force" ? agrees(edit) : !forbids(edit)));
  const held = heldBy(kept);
  const from = pieces.findIndex((_, position) => !held.has(position));
  return from < 0 ? kept : [...kept, { kind: "Force", position: from, pieces: pieces.slice(from) }];
}

function forbidden(edits, pieces) {
  const edit = { kind: "Ban", position: 0, pieces };
  const held = heldBy(edits);
  const all = pieces.every((piece, position) => held.get(position) === piece);
  const last = pieces.length - 1;
  const holdsLast = (old) => old.kind === "Force" && old.position <= last && last < old.position + (old.pieces || []).length;
  return [...edits.filter((old) => !(all && holdsLast(old)) && !same(old, edit)), edit];
}

// Position -> piece, for everything that is forced.
function heldBy(edits) {
  return new Map(edits.filter((edit) => edit.kind === "Force" && edit.pieces).flatMap(({ position, pieces }) => pieces.map((piece, i) => /** @type {[number, string]} */ ([position + i, piece]))));
}

/** @typedef {{layer?: number | null, head?: number | null}} Heads  one head of attention; what is left out means all */

/** Attention while the piece at `position` is written, of these heads; null: the model's own. Of several rows of a head the last one
 * counts, so those of the same heads are let go of. @param {Heads} heads */
export function withRow(side, position, weights, heads = {}) {
  const others = (edits) => edits.filter((edit) => !isRow(edit, position) || !coversHeads(heads, edit));
  return withEdits(side, (edits) => (weights ? [...others(edits), { kind: "AttentionRow", position, weights, ...heads }] : others(edits)));
}

/** @param {Edit} edit @param {number} position */
export function isRow(edit, position) {
  return edit.kind === "AttentionRow" && edit.position === position;
}

/** Whether the first names every head that the other names. @param {Heads} mine @param {Heads} its */
export function coversHeads(mine, its) {
  return (mine.layer ?? its.layer ?? null) === (its.layer ?? null) && (mine.head ?? its.head ?? null) === (its.head ?? null);
}

/** A gate held at a value; null: the model's own. `place`: part, layer, direction, gate, and the units and positions, or null for all.
 * Of several clamps of a cell the last one counts, so those inside the new one that say otherwise are let go of. */
export function withClamp(side, { part, layer, direction, gate, units, positions }, value) {
  const held = { kind: "ClampGate", part, gate, layer, direction, units, positions, value };
  const gone = (edit) => edit.kind === "ClampGate" && (holdsSame(edit, held) || (value !== null && edit.value !== value && covers(edit, held)));
  return withEdits(side, (edits) => [...edits.filter((edit) => !gone(edit)), ...(value === null ? [] : [held])]);
}

const gateOf = ({ part, gate, layer = 0, direction = "forward" }) => [part, gate, layer, direction];

/** Whether two clamps hold the same thing, at whatever value. */
export function holdsSame(one, other) {
  const named = ({ kind = "ClampGate", units = null, positions = null, ...clamp }) => [kind, gateOf(/** @type {any} */ (clamp)), units, positions];
  return same(named(one), named(other));
}

// Whether the other clamp of the same gate holds everything that this one holds.
function covers(clamp, other) {
  const all = (mine, its) => !its || (mine && mine.every((item) => its.includes(item)));
  return same(gateOf(clamp), gateOf(other)) && all(clamp.units, other.units) && all(clamp.positions, other.positions);
}

// Whether two clamps hold the same gate and share a unit and a step.
function touches(clamp, other) {
  const some = (mine, its) => !mine || !its || mine.some((item) => its.includes(item));
  return same(gateOf(clamp), gateOf(other)) && some(clamp.units, other.units) && some(clamp.positions, other.positions);
}

/**
 * What holds a part of a gate: the last clamp that takes all of it in, or null. `mixed`: a later one holds some of it.
 * @param {readonly Edit[]} edits @returns {{clamp: any, mixed: boolean}}
 */
export function heldAt(edits, place) {
  const clamps = edits.filter((edit) => edit.kind === "ClampGate" && touches(edit, place));
  const last = clamps.findLastIndex((edit) => covers(place, edit));
  return { clamp: clamps[last] || null, mixed: last < clamps.length - 1 };
}

export function withDimmed(side, factor, towards) {
  const others = (edits) => edits.filter((edit) => edit.kind !== "AttentionBlend");
  return withEdits(side, (edits) => (factor > 0 ? [...others(edits), { kind: "AttentionBlend", factor, towards, positions: null }] : others(edits)));
}

/** Hard attention looks at places drawn by this seed; null: at the heaviest. */
export function withDraw(side, seed) {
  return withEdits(side, (edits) => [...edits.filter((edit) => edit.kind !== "AttentionDraw"), ...(seed === null ? [] : [{ kind: "AttentionDraw", seed }])]);
}

export function withSelection(side, selection) {
  const at = LETTERS.indexOf(side);
  return (state) => ({ ...state, view: { ...state.view, menu: "" }, columns: state.columns.map((column, i) => (i === at ? { ...column, selection } : column)) });
}

export function swapped(state) {
  return { ...state, columns: [...state.columns].reverse(), view: withoutRows(state.view) };
}

/** The state after choosing an example. */
export function withExample(example, setup) {
  const card = setup.checkpoints.find((item) => item.name === example.checkpoint);
  const first = setup.languages.length && card && card.targets && card.targets[0];
  return (state) => {
    const input = { ...state.input, wanted: "", text: example.text || "", example: example.photo || null, photo: null, language: example.language || first || state.input.language };
    const columns = state.columns.map((column, i) => {
      const own = example.columns && example.columns[LETTERS[i]];
      const model = own || example.checkpoint ? (own && own.checkpoint) || example.checkpoint || setup.start.columns[LETTERS[i]].checkpoint : column.checkpoint;
      const asked = own ? { options: { ...setup.defaults, ...own.options }, edits: own.edits } : { edits: editsFor(column.edits, state.input, input) };
      return { ...column, ...asked, checkpoint: model, selection: null };
    });
    return { ...state, input, view: { ...withoutRows(state.view), ...(example.checkpoint ? OWN_UNITS : {}) }, columns };
  };
}

/** Whether two states ask the same questions. */
export function sameQuestion(one, other) {
  const ordered = (options) => Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1));
  const asked = ({ input, columns }) => [input, columns.map(({ checkpoint, options, edits }) => [checkpoint, edits, ordered(options)])];
  return same(asked(one), asked(other));
}
