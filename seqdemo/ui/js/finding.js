// The sentence that says what the comparison shows. Pure: two columns in, parts of a sentence out.
import { probability, signed, times } from "../../figures/js/core.js";
import { isEnd, parting, pieceName, plainText, quoted, unitNumber } from "../../figures/js/text.js";

export const NOUNS = {
  translate: ["translation", "word"],
  transliterate: ["spelling", "letter"],
  caption: ["caption", "word"],
  complete: ["text", "letter"],
};

const UNLIKELY = 0.1; // of a drawn letter
const REPEATED = /(.{12,200})\1/su; // the same letters twice, one after the other

export const SLIGHT = 0.005; // of a log probability: less is as likely

export function strategyName(options) {
  if (options.strategy === "beam") return options.groups > 1 ? `beam ${options.beam} in ${options.groups} groups` : `beam ${options.beam}`;
  if (options.strategy === "stochastic") return `stochastic beam ${options.beam}`;
  return { greedy: "greedy", sample: "sampling", exact: "exact search" }[options.strategy] || options.strategy;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function firstDifference(a, b) {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}

// The node at which this tree dropped these tokens, if it did.
function missedIn(tree, tokens) {
  const path = walk(tree, tokens);
  const last = path.length ? path[path.length - 1] : -1;
  return last >= 0 && tree.fate[last] === 1 && tree.missed[last] > 0 ? { step: path.length - 1, missed: tree.missed[last] } : null;
}

/** The rows of a tree of the same vocabulary along these tokens, as far as they exist. Draws may share a beginning: the longest path counts. */
export function walk(tree, tokens) {
  let longest = [];
  const open = [{ parent: -1, path: [] }];
  while (open.length) {
    const { parent, path } = open.pop();
    if (path.length > longest.length) longest = path;
    for (const child of tree.children.get(parent) || []) if (tree.token[child] === tokens[path.length]) open.push({ parent: child, path: [...path, child] });
  }
  return longest;
}

/**
 * What the comparison shows, as parts of a sentence. Texts are compared, not numbers of pieces: two models number their pieces differently.
 * `own`: of an edited column, what it writes without its edits.
 * @typedef {{hypothesis: any, options: any, checkpoint: string, tree: any, kind: string, edited: boolean, prices?: any[], own?: any}} Side
 * @param {Side} a  @param {Side} b  @param {string} task
 */
export function finding(a, b, task) {
  if (!a.hypothesis || !b.hypothesis) return ["Waiting for both columns."];
  if (a.checkpoint !== b.checkpoint) return twoModels(a, b, task);
  const picked = a.hypothesis.prefix || b.hypothesis.prefix;
  return b.edited && !picked ? underEdit(a, b, task) : twoSearches(a, b, task);
}

function nounsOf(task) {
  return NOUNS[task] || NOUNS.translate;
}

/** The pieces at which two columns part. @returns {any} */
function partsOf(a, b) {
  return parting(a.hypothesis.pieces, b.hypothesis.pieces, a.kind, b.kind);
}

// One model, and no edit between the two.
function twoSearches(a, b, task) {
  const [noun, word] = nounsOf(task);
  const [left, right] = [a.hypothesis, b.hypothesis];
  const parts = partsOf(a, b);
  const [nameA, nameB] = names(a, b);
  if (!parts && left.tokens.join() !== right.tokens.join()) return samePieces(left, right, noun);
  if (!parts) return [`${capital(nameA)} and ${nameB} agree: the same ${noun}, ${word} for ${word}.`];
  const [at, across] = parts;
  const where = placeOfBoth(a, b, parts, word);
  const tokens = named(left, at, a.kind, "A");
  const others = named(right, across, b.kind, "B");
  if (task === "complete") return twoTexts(a, b, where, tokens, others);
  if (left.prefix || right.prefix) return unfinished({ a, b, noun, where, parts, tokens, others });
  const gain = right.total - left.total;
  const ahead = left.logps[at] - right.logps[across];
  if (gain > 1e-6) {
    return [
      `${capital(nameB)} found a ${noun} the model finds `, { text: `${times(Math.exp(gain))} likelier`, mark: "strong" },
      `; ${nameA} lost it at ${where}: there it took `, ...tokens,
      ...(ahead >= 0 ? [", ", { text: times(Math.exp(ahead)), mark: "strong" }, " as likely as "] : [" over "]), ...others, ".",
    ];
  }
  const equal = Math.abs(gain) <= 1e-6;
  return [
    equal ? "Both outputs are equally likely" : `${capital(nameA)}'s ${noun} is `,
    ...(equal ? [] : [{ text: `${times(Math.exp(-gain))} likelier`, mark: "strong" }]),
    `: they part at ${where}, `, ...tokens, " in A and ", ...others, ` in B.${whyNotBetter(a, b, nameB, word)}`,
  ];
}

// An edit is blamed only for what differs between the outputs of B with it and without it.
function underEdit(a, b, task) {
  const [noun, word] = nounsOf(task);
  const own = { ...b, ...b.own };
  const [parts, moved] = [partsOf(a, b), partsOf(own, b)];
  if (!parts) return sameUnderEdit(b, noun, moved);
  if (!moved) return [...twoSearches(a, own, task), ` The edit leaves B's ${noun} as it was`, ...felt(b)];
  const judgement = judged(b, own, task);
  if (!partsOf(a, own)) return [`Under the edit, B parts from A at ${placeOfBoth(a, b, parts, word)}: `, ...instead(a, b, parts, "A"), `.${judgement}`];
  return [
    `Under the edit, B parts at ${placeOf(b, moved[1], word)} from what it writes without it: `, ...instead(own, b, moved, "B"),
    `.${judgement} A's ${noun} differs from that too.`,
  ];
}

// An edited search finds what the edited model likes, so the untouched model is the judge. What a person typed counts in a price, and not in `own`.
function judged({ hypothesis, prices = [] }, own, task) {
  const state = prices.find(({ kind }) => kind === "state");
  if (!state) return ` See the ${prices.some(({ change }) => change >= SLIGHT) ? "gain" : "cost"} in column B.`;
  if (task === "complete" || own.hypothesis === hypothesis) return " Column B says how likely the two models find it.";
  return ` The untouched model finds B's output ${comparedWith(state.before - own.hypothesis.total, "what it writes itself")}.`;
}

function sameUnderEdit(b, noun, moved) {
  if (moved) return [`Under the edit, B writes the same ${noun} as A; without it, B writes another.`];
  const told = felt(b);
  if (told.length > 1) return [`The ${noun} stays: B writes the same as A under the edit`, ...told];
  return [`The edit changes nothing here: B writes the same ${noun} as A.`];
}

// The end of a sentence: what an edit of attention or gates does to the probability of a text that stays.
function felt({ prices = [] }) {
  const price = prices.find(({ kind, change }) => kind === "state" && Math.abs(change) >= SLIGHT);
  if (!price) return ["."];
  return [", but the edited model finds it ", { text: ratioOf(price.change), mark: "strong" }, " than the untouched one does."];
}

function instead(one, other, [at, across], whose) {
  return [...named(other.hypothesis, across, other.kind, "B"), " instead of ", ...named(one.hypothesis, at, one.kind, whose)];
}

function twoModels(a, b, task) {
  const [noun, word] = nounsOf(task);
  const parts = partsOf(a, b);
  if (!parts) return [`Two models, one ${noun}: A and B agree on every ${word}.`];
  const [at, across] = parts;
  return [
    `Two different models part at ${placeOfBoth(a, b, parts, word)}, where A writes `, marked(a.hypothesis, at, a.kind, "A"),
    " and B writes ", marked(b.hypothesis, across, b.kind, "B"), ". Their probabilities come from two models and cannot be compared.",
  ];
}

function samePieces(left, right, noun) {
  const gain = Math.abs(right.total - left.total);
  return [`A and B read the same, but the ${noun} is put together from other pieces; the model finds ${right.total > left.total ? "B" : "A"}'s `, { text: `${times(Math.exp(gain))} likelier`, mark: "strong" }, "."];
}

function twoTexts(a, b, where, tokens, others) {
  const each = (item) => probability(item.total / Math.max(1, item.logps.length), 2);
  return [
    `They part at ${where}: `, ...tokens, " in A and ", ...others, " in B. On average a letter of A has probability ",
    { text: each(a.hypothesis), mark: "strong" }, ", one of B ", { text: each(b.hypothesis), mark: "strong" },
    b.options.strategy === "sample" ? ofADraw(a, b) : ".",
  ];
}

// Only what holds for this draw.
function ofADraw(a, b) {
  const { logps } = b.hypothesis;
  const unlikely = logps.filter((logp) => logp < Math.log(UNLIKELY)).length;
  const circling = (side) => REPEATED.test(plainText(side.hypothesis.pieces, side.kind));
  return [unlikely ? `: the draw took ${unlikely} of its ${logps.length} letters at a probability below ${UNLIKELY}.` : ".",
    circling(a) && !circling(b) ? " A repeats itself, B does not." : ""].join("");
}

// One of the two is the beginning of an output.
function unfinished({ a, b, noun, where, parts, tokens, others }) {
  const [left, right] = [a.hypothesis, b.hypothesis];
  const [side, own, name] = right.prefix ? ["B", b, names(a, b)[1]] : ["A", a, names(a, b)[0]];
  const lost = missedIn(own.tree, own.hypothesis.tokens);
  const both = parts[0] < left.pieces.length && parts[1] < right.pieces.length;
  return [
    ...(both ? [`They part at ${where}: `, ...tokens, " in A and ", ...others, " in B."] : [`The ${noun} in ${side === "B" ? "A" : "B"} goes on from what is picked in ${side}.`]),
    lost ? ` ${capital(name)} dropped what is picked in ${side}: it missed by ${lost.missed.toFixed(2)}.` : ` What is picked in ${side} has no end, so its probability is not compared.`,
  ];
}

function whyNotBetter(a, b, nameB, word) {
  const [left, right] = [a.hypothesis, b.hypothesis];
  if (right.score > left.score && b.options.length_norm !== "none") {
    return ` B prefers its own by normalised score (${signed(right.score, 2)} against ${signed(left.score / Number(penalty(left.tokens.length, b.options)), 2)} for A's).`;
  }
  if (["sample", "stochastic"].includes(b.options.strategy)) return " A draw follows the probabilities; it does not look for the best.";
  const lost = missedIn(b.tree, left.tokens);
  return lost ? ` ${capital(nameB)} dropped A's at ${placeOf(a, lost.step, word)}, where it missed by ${lost.missed.toFixed(2)}.` : "";
}

// As in the notes of the examples: the word that a piece belongs to, or the end.
function placeOf({ hypothesis: { pieces }, kind }, at, word) {
  return at < pieces.length && isEnd(pieces[at]) ? "the end" : `${word} ${unitNumber(pieces, Math.min(at, pieces.length - 1), kind)}`;
}

// A place may lie in different words of A and B: “We've broken” and “We broke” part within A's first word and before B's second.
function placeOfBoth(a, b, [at, across], word) {
  const [one, other] = [placeOf(a, at, word), placeOf(b, across, word)];
  return one === other || [one, other].includes("the end") ? one : `${one} of A (${other} of B)`;
}

function names(a, b) {
  const left = strategyName(a.options);
  const right = strategyName(b.options);
  return left === right ? [`A (${left})`, `B (${right})`] : [left, right];
}

function named(hypothesis, at, kind, side) {
  return [marked(hypothesis, at, kind, side), within(hypothesis, at, kind), ...(at < hypothesis.logps.length ? [` (${probability(hypothesis.logps[at], 3)})`] : [])].filter(Boolean);
}

// The whole word, where the piece is only a part of it.
function within({ pieces }, at, kind) {
  if (kind === "characters" || at >= pieces.length || isEnd(pieces[at])) return "";
  const words = plainText(pieces, kind).trim().split(/\s+/u);
  const word = words[unitNumber(pieces, at, kind) - 1].replace(/^\p{P}+|\p{P}+$/gu, "");
  const piece = pieceName(pieces[at], kind).replace(/^‿/, "");
  return word !== piece && word.includes(piece) ? ` of ${quoted(word)}` : "";
}

function marked(hypothesis, at, kind, side) {
  return at >= hypothesis.pieces.length ? "its end" : { text: isEnd(hypothesis.pieces[at]) ? "the end" : `“${pieceName(hypothesis.pieces[at], kind)}”`, mark: side };
}

// What a total is divided by; `length` counts <eos>.
export function penalty(length, options) {
  if (options.length_norm === "power") return length ** options.alpha;
  if (options.length_norm === "gnmt") return ((5 + length) / 6) ** options.alpha;
  return 1;
}

/** A change of a log probability: “3.0× less likely”. @param {number} change */
export function ratioOf(change) {
  return `${times(Math.exp(Math.abs(change)))} ${change < 0 ? "less likely" : "likelier"}`;
}

/** One thing beside another: “as likely as its own”, “3.0× less likely than its own”. @param {number} change of the log probability @param {string} other */
export function comparedWith(change, other) {
  return Math.abs(change) < SLIGHT ? `as likely as ${other}` : `${ratioOf(change)} than ${other}`;
}

/** `inside`: edits of attention or gates are in force beside those of words. `given`: the text begins with letters that a person typed. */
export function priceSentence(price, task, inside = false, given = false) {
  const change = price.after - price.before;
  const what = `this ${nounsOf(task)[0]}${given ? ", with what you typed," : ""}`;
  const numbers = `(log probability ${signed(price.after, 2)} against ${signed(price.before, 2)})`;
  if (price.kind === "state" && change >= SLIGHT) return `The edited model, which wrote ${what.replace(/,$/, "")}, finds it ${comparedWith(change, "the untouched model does")} ${numbers}; that makes it no better.`;
  const [who, than] = price.kind === "state" ? ["edited", "the untouched model does"]
    : inside ? ["edited", "what it writes without the words"] : ["untouched", "its own"];
  return `${change >= SLIGHT ? "Gain" : "Price"}: the ${who} model finds ${what} ${comparedWith(change, than)} ${numbers}.`;
}
