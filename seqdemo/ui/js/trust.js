// Beside a map stands what was measured of it: how often it looks at the right place.
import { el } from "../../figures/js/core.js";

function measures(lead, rows, verdict, name = "") {
  return [
    el("h3", {}, name ? `How far to trust the map of “${name}”` : "How far to trust the map"),
    el("p", { class: "s-says" }, lead),
    el("dl", { class: "s-measures" }, rows.map(([what, share]) => [el("dt", {}, what), el("dd", { style: { "--p": share / 100 } }, `${share.toFixed(1)} %`)])),
    el("p", { class: "s-says" }, verdict),
  ];
}

const NO_EXPLANATION = "It is still no explanation: other positions may tell the model the same.";

const BY_CHANCE = 3; // points by which two shares of some 600 phrases may differ by chance

/** What the map's share is worth beside that of the picture's middle, in which things mostly stand. */
export function besideTheMiddle(map, middle) {
  if (map < middle - BY_CHANCE) return "Things in photographs mostly stand in the middle: pointing there every time is right more often than this map.";
  if (map <= middle + BY_CHANCE) return "Things in photographs mostly stand in the middle: pointing there every time is right about as often as this map.";
  return "The map points into the box more often than the middle of the picture does.";
}

// Boxes that people drew around what a phrase names, against the middle of the picture.
function ofPhotographs(found) {
  return measures(`People drew boxes around the things that ${found.phrases} phrases of captions name. How often the heaviest cell lies in the box:`,
    [["the map of the word that names it", found.word], ["the middle of the picture, every time", found.centre], ["the mean map of the caption", found.mean_map]],
    `${besideTheMiddle(found.word, found.centre)} A map is no explanation: other cells may tell the model the same.`);
}

// Of a Transformer, of which the figures above are those of the mean of its heads.
function ofHeads(best, what) {
  return best ? ` That is the mean of ${best.of} heads. By itself, ${best.name} aligns best: ${best.share.toFixed(1)} % ${what}.` : "";
}

// Words that are spelt in one way only: which letter a sign comes from is known.
function ofLetters(found, language, name) {
  const { words, right } = (found.languages || {})[language] || found;
  const [[where]] = Object.entries(right).sort(([, one], [, other]) => other - one);
  const early = where === "-1";
  return measures(`How often the heaviest cell of a row lies there, in ${words.toLocaleString("en")} words kept out of training in which it is clear which letter spells which sign (where two letters spell one sign, both count):`,
    [["on a letter that spells the sign", right["0"]], ["on the position before", right["-1"]], ["on the position after", right["+1"]]],
    (early ? "This model looks one position early: its encoder reads both ways, so the state before a letter already knows that letter. The map tells where the model fetches it, not which letter it reads." : `The map mostly points at what is written. ${NO_EXPLANATION}`) + ofHeads(found.best, "on a letter that spells the sign"), name);
}

// Pairs of words that a plain statistical model links in both directions.
function ofWords(found, name) {
  return measures(`Each word written points to the source word with the most attention. How often such a pointer is wrong, or misses one of ${found.links.toLocaleString("en")} sure links (found by IBM model 1 in ${found.sentences.toLocaleString("en")} sentences kept out of training):`,
    [["as the map points", found.error["0"]], ["if each pointed one word earlier", found.error["+1"]], ["if each pointed one word later", found.error["-1"]]],
    `The map is far better than one that is off by a word, and still often wrong. ${NO_EXPLANATION}${ofHeads(found.best, "wrong or missed")}`, name);
}

/** @param {any} card  @param {string | null} language  @param {string} name told where two models stand side by side */
export function howFar(card, language = null, name = "") {
  if (!card) return [];
  if (card.pointing) return ofPhotographs(card.pointing);
  if (!card.looking) return [];
  return card.looking.error ? ofWords(card.looking, name) : ofLetters(card.looking, language, name);
}

/** Of the models in the columns, each once. @param {any} bench @param {(side: string) => boolean} measured whether the figures are of its map */
export function trustOf(bench, measured) {
  const columns = Object.entries(bench.columns).filter(([side, column]) => column.spec && measured(side)).map(([, column]) => column);
  const names = [...new Set(columns.map((column) => column.spec.checkpoint))];
  return names.map((name) => howFar(bench.card(name), bench.state.input.language, names.length > 1 ? bench.card(name).title : ""));
}
