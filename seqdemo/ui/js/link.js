// The state of a page as the fragment of its address (#...), which is never sent. Only differences from the start are written.
// Links of earlier versions, with the same names in the query (?...) and forced words as numbers, still open.

import { leftOutOf } from "./editwords.js";
import { editsFor, frozen, LETTERS, movedTo, same, sidesOf, startState, VIEW } from "./state.js";

const EDITS = ["Force", "Ban", "Require", "AttentionRow", "AttentionBlend", "AttentionDraw", "ClampGate"];
const BLENDS = ["uniform", "last", "nothing"];
const MOST_EDITS = 20;
const OWN = "own"; // instead of the name of a photograph: the user's own, which is in no link
const OTHERS = ["__theme", "__sign", "__lang", "deep_link", "view"]; // of Gradio and of the host; nothing here reads or drops them

/** @param {import("./state.js").State} state  @returns {string} the fragment, without its # */
export function writeLink(state, setup) {
  const start = startState(setup);
  const link = new URLSearchParams();
  const { input } = state;
  if (input.text !== start.input.text) link.set("text", input.text);
  if (input.wanted) link.set("wanted", input.wanted);
  if (input.language && input.language !== start.input.language) link.set("language", input.language);
  if (input.photo) link.set("photo", OWN);
  else if (input.example && input.example !== start.input.example) link.set("photo", input.example);
  sidesOf(state).forEach((side, i) => writeColumn(link, side.toLowerCase(), state.columns[i], start.columns[i]));
  for (const name of Object.keys(VIEW)) if (!same(state.view[name], start.view[name])) link.set(name, written(state.view[name]));
  if ([...link].length) writeRevisions(link, state, setup);
  return link.toString();
}

function written(value) {
  return Array.isArray(value) ? value.join(".") : value === true ? "1" : String(value);
}

function writeColumn(link, side, now, first) {
  if (now.checkpoint !== first.checkpoint) link.set(`${side}.checkpoint`, now.checkpoint);
  for (const [key, value] of Object.entries(now.options)) if (value !== first.options[key]) link.set(`${side}.${key}`, String(value));
  if (!same(now.edits, first.edits)) link.set(`${side}.edits`, JSON.stringify(now.edits));
  for (const [key, value] of Object.entries(now.selection || {})) link.set(`${side}.${key}`, String(value));
}

function writeRevisions(link, state, setup) {
  sidesOf(state).forEach((side, i) => {
    const card = setup.checkpoints.find((item) => item.name === state.columns[i].checkpoint);
    if (card && card.revision) link.set(`${side.toLowerCase()}.revision`, card.revision);
  });
}

/** What an address asks for: its fragment, and the query of an old link. */
export function linkOf({ search, hash }) {
  const link = new URLSearchParams(search);
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) link.set(name, value);
  OTHERS.forEach((name) => link.delete(name));
  return link;
}

/** The query without what is the page's own. */
export function foreignQuery(search) {
  const query = new URLSearchParams(search);
  return new URLSearchParams([...query].filter(([name]) => OTHERS.includes(name))).toString();
}

/**
 * The start, changed by all that a link says. `notes` name what was left out, `absent` are models that are not loaded here.
 * @returns {{state: import("./state.js").State, notes: string[], absent: string[]}}
 */
export function readLink(link, setup) {
  const reader = new LinkReader(link, setup);
  const state = structuredClone(startState(setup));
  reader.input(state.input);
  sidesOf(state).forEach((side, i) => reader.column(side, state.columns[i]));
  reader.ownPhoto(state);
  reader.able(state);
  for (const [name, field] of Object.entries(VIEW)) reader.take(name, (text) => field.read(text, setup), (value) => (state.view[name] = value));
  reader.rest();
  return { state: frozen(state), notes: reader.notes, absent: reader.absent };
}

class LinkReader {
  constructor(link, setup) {
    this.link = link;
    this.setup = setup;
    /** @type {string[]} */
    this.notes = [];
    /** @type {string[]} */
    this.absent = [];
    this.read = new Set();
  }

  get(name) {
    this.read.add(name);
    return this.link.get(name);
  }

  // `read` gives undefined for an unreadable value, which is reported and left out.
  take(name, read, use) {
    const text = this.get(name);
    if (text === null) return;
    const value = read(text);
    if (value === undefined) this.notes.push(leftOut(`${name}=${text}`));
    else use(value);
  }

  input(input) {
    const { setup } = this;
    const most = setup.limits.characters;
    for (const name of ["text", "wanted"]) this.take(name, (text) => text, (text) => {
      input[name] = [...text].slice(0, most).join("");
      if (input[name] !== text) this.notes.push(`The text of this link is longer than ${most.toLocaleString("en")} characters; its end was left out.`);
    });
    this.take("language", (tag) => (setup.languages.some(([known]) => known === tag) ? tag : undefined), (tag) => (input.language = tag));
    if (this.get("photo") !== OWN) this.take("photo", (photo) => (setup.examples.some((example) => example.photo === photo) ? photo : undefined), (photo) => (input.example = photo));
  }

  column(side, column) {
    const name = (key) => `${side.toLowerCase()}.${key}`;
    const [changed, here] = [this.changed(name, column), this.model(name, column)];
    const fields = [...this.setup.options, { name: "strategy", kind: "choice", choices: this.setup.strategies }];
    for (const field of fields) this.take(name(field.name), (text) => optionOf(field, text), (value) => this.option(column, field, name(field.name), value));
    this.take(name("edits"), editsOf, (edits) => (column.edits = this.keep(side, edits, changed || !here)));
    const rows = (key) => (text) => (/^\d{1,7}$/.test(text) ? { [key]: Number(text) } : undefined);
    for (const key of ["row", "output"]) this.take(name(key), rows(key), (selection) => (column.selection = changed || !here ? null : selection));
    const path = (text) => (/^\d+(\.\d+)*$/.test(text) ? { tokens: text.split(".").map(Number) } : undefined);
    this.take(name("pick"), path, (selection) => (column.selection = changed || !here ? null : selection));
  }

  // A number outside its limits becomes the nearest within, and the user is told.
  option(column, field, name, value) {
    column.options[field.name] = value;
    const text = this.link.get(name);
    if (field.kind !== "choice" && value !== Number(text)) this.notes.push(`“${shortened(`${name}=${text}`)}” in this link is outside ${field.min} to ${field.max}, so ${value} is used.`);
  }

  // What a link says about the places of the user's own photograph goes with it.
  ownPhoto(state) {
    if (this.link.get("photo") !== OWN) return;
    this.notes.push("This link was made with somebody's own photograph, which is in no link; the page shows one of its examples instead.");
    for (const column of state.columns) Object.assign(column, { edits: editsFor(column.edits, { ...state.input, photo: OWN }, state.input), selection: null });
  }

  model(name, column) {
    const wanted = this.get(name("checkpoint"));
    if (wanted === null) return true;
    const known = this.setup.checkpoints.some((card) => card.name === wanted);
    if (known) column.checkpoint = wanted;
    else {
      this.notes.push(`This link asks for the model “${shortened(wanted)}”, which is not loaded here.`);
      if (wanted.includes("/") && !this.absent.includes(wanted)) this.absent.push(wanted);
    }
    return known;
  }

  // A model that cannot write the language gives way to the first that can, as when a person chooses the language.
  able({ input, columns }) {
    const { checkpoints, languages } = this.setup;
    const writes = (card) => (card.targets || []).includes(input.language);
    const other = checkpoints.find(writes);
    columns.forEach((column, i) => {
      const card = checkpoints.find((item) => item.name === column.checkpoint);
      if (!other || !card || writes(card)) return;
      Object.assign(column, movedTo(other)(column), { selection: null });
      const [, language] = languages.find(([tag]) => tag === input.language);
      this.notes.push(`“${card.title || card.name}” cannot write ${language}, so column ${LETTERS[i]} uses “${other.title || other.name}”.`);
    });
  }

  changed(name, column) {
    const made = this.get(name("revision"));
    const card = this.setup.checkpoints.find((item) => item.name === (this.link.get(name("checkpoint")) || column.checkpoint));
    const other = Boolean(made && card && card.revision && made !== card.revision);
    if (other) this.notes.push(`The weights of ${card.name} have changed since this link was made; results may differ.`);
    return other;
  }

  // For other weights, words keep their meaning; numbers of pieces, units and rows do not.
  keep(side, edits, other) {
    const dropped = other ? edits.filter((edit) => !edit.pieces && !edit.word && !["AttentionBlend", "AttentionDraw"].includes(edit.kind)) : [];
    if (dropped.length) this.notes.push(leftOutOf(side, dropped, "the old weights"));
    return edits.filter((edit) => !dropped.includes(edit));
  }

  rest() {
    const unknown = [...this.link.keys()].filter((name) => !this.read.has(name));
    if (unknown.length) this.notes.push(`This page knows nothing of ${unknown.slice(0, 6).map((name) => `“${shortened(name)}”`).join(", ")} in this link.`);
  }
}

/** @param {string} part of a link */
export function leftOut(part) {
  return `“${shortened(part)}” in this link cannot be read and was left out.`;
}

function shortened(text) {
  const characters = [...text];
  return characters.length > 60 ? `${characters.slice(0, 60).join("")}…` : text;
}

function optionOf(field, text) {
  if (field.kind === "choice") return field.choices.some(([key]) => key === text) ? text : undefined;
  const value = text.trim() === "" ? NaN : Number(text);
  if (!Number.isFinite(value) || (field.kind === "int" && !Number.isInteger(value))) return undefined;
  return Math.max(field.min, Math.min(field.max, value));
}

function editsOf(text) {
  let edits;
  try {
    edits = JSON.parse(text);
  } catch {
    return undefined;
  }
  return Array.isArray(edits) && edits.length <= MOST_EDITS && edits.every(isEdit) ? edits : undefined;
}

// The server checks edits in full; here an edit only needs the form that the page can show.
function isEdit(edit) {
  if (!edit || typeof edit !== "object" || !EDITS.includes(edit.kind)) return false;
  const plain = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);
  const fit = (value) => plain(value) || (Array.isArray(value) && value.length <= 2000 && value.every((item) => plain(item) || (Array.isArray(item) && item.every(plain))));
  if (edit.kind === "Require" && "word" in edit && typeof edit.word !== "string") return false;
  const words = !edit.pieces || (Array.isArray(edit.pieces) && edit.pieces.length > 0);
  const blend = edit.kind !== "AttentionBlend" || (edit.factor >= 0 && edit.factor <= 1 && BLENDS.includes(edit.towards));
  return Object.values(edit).every(fit) && words && blend;
}
