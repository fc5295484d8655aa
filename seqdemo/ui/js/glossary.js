// Every technical term of the pages in one sentence, on hover or focus; and the equations, on demand.
import { el, tipFor } from "../../figures/js/core.js";
import { folding } from "./fold.js";

export const TERMS = {
  "log probability": "The sum of the logarithms of each token's probability. 0 would be certainty; every token makes it smaller.",
  "normalised score": "The log probability divided by a length penalty, so that long outputs are not punished for being long. This is what ranks the outputs.",
  "penalised score": "The log probability less what the tokens paid for being like others, divided by a length penalty where one is set. This is what ranks the outputs.",
  "perturbed score": "The log probability with the random noise of the draw. This is what ranks the outputs.",
  greedy: "Takes the likeliest next token at every step and never looks back.",
  beam: "Keeps the k likeliest prefixes at every step instead of one.",
  sampling: "Draws every next token at random, by its probability.",
  stochastic: "Keeps k prefixes at every step as beam search does, but draws them: the outputs are k different draws.",
  exact: "Proves which output is the likeliest of all, by following every prefix that could still win. To follow one prefix is an expansion.",
  finished: "The prefix ended with <eos>: a complete output.",
  attention: "At each output step the model spreads a weight of 1 over the input; the stronger the colour of a cell, the more it looks there.",
  alignment: "Which input pieces the model looked at for which output piece, read off the attention.",
  token: "A piece of text the model reads or writes as one: a word, a part of a word or a character.",
  "n-best": "The best outputs the search came back with, best first.",
  gate: "A number from 0 to 1 in each unit that decides what passes.",
  nats: "The log probability of a text, its sign turned, divided by its length: how surprised the model is by each character. 0 is never; guessing among 100 characters is 4.6.",
  AUC: "Take a character where it is so and one where it is not: how often the unit's value tells which is which. 0.5 is guessing, 1 always.",
  correlation: "How closely the unit's value moves with it: 0 not at all, 1 or −1 in step.",
  unit: "One number of the model's state.",
  "price of an edit": "How much less likely the model finds the new output than the old one: for a word, the output found without it; for attention or a gate, the same output without the edit. All other edits stay in force.",
  "far from training": "The model learned from other kinds of text; its answers here are guesses.",
  saturation: "A gate near 0 or near 1 nearly all of the time: it acts as a switch.",
};

/** `meaning`: what it means here, where that depends on the search. @param {string} name @param {string} [label] @param {string} [meaning] */
export function term(name, label, meaning = TERMS[name]) {
  return tipFor(el("span", { class: "s-term", tabindex: "0" }, label || name), () => [name, meaning]);
}

// "c_t = Σ_j α_{tj} h_j" -> nodes with subscripts and superscripts
function formula(text) {
  const node = el("span", { class: "s-formula" });
  for (const part of text.split(/([_^](?:\{[^}]*\}|.))/u)) {
    if (/^[_^]./u.test(part)) node.append(el(part[0] === "_" ? "sub" : "sup", {}, part.slice(1).replace(/[{}]/g, "")));
    else if (part) node.append(part);
  }
  return node;
}

const WEIGHTS = "α_{tj} = softmax_j(e_{tj}),  Σ_j α_{tj} = 1";
const EQUATIONS = {
  scores: ["log p(y | x) = Σ_t log p(y_t | y_{<t}, x)", "normalised score = log p(y | x) / n^α,  n counts <eos>"],
  alignment: [WEIGHTS, "c_t = Σ_j α_{tj} h_j"],
  hard: [WEIGHTS, "c_t = h_k,  k = argmax_j α_{tj}"],
  drawn: [WEIGHTS, "c_t = h_k,  k drawn with probability α_{tk}"],
  lstm: ["f, i, o = σ(W x_t + U h_{t−1} + b)", "g = tanh(W x_t + U h_{t−1} + b)", "c_t = f · c_{t−1} + i · g", "h_t = o · tanh(c_t)"],
  gru: ["z, r = σ(W x_t + U h_{t−1} + b)", "n = tanh(W x_t + r · U h_{t−1} + b)", "h_t = z · h_{t−1} + (1 − z) · n"],
  elman: ["h_t = tanh(W x_t + U h_{t−1} + b)"],
  dimmer: ["α′_t = (1 − λ) α_t + λ · target", "target: uniform 1/S, all on the last state, or nothing (the context is scaled by 1 − λ)"],
  "dimmer-caption": ["α′_t = (1 − λ) α_t + λ · target", "target: uniform 1/S, all on the bottom right cell, or nothing (the context is scaled by 1 − λ)"],
  "dimmer-hard": ["c′_t = (1 − λ) c_t,  c_t = h_k,  k = argmax_j α_{tj}"],
  language: ["p(y_1 … y_T) = Π_t p(y_t | y_{<t})", "s_t = RNN(s_{t−1}, e(y_{t−1})),  p(y_t | y_{<t}) = softmax(V s_t + b)"],
};

/** `shown`: whose equations stand in the part `name`, or equations themselves. @param {any} bench @param {string} name @param {string | string[]} [shown] */
export function equations(bench, name, shown = name) {
  const lines = [...new Set([shown].flat().flatMap((each) => EQUATIONS[each] || [each]))];
  return folding(bench, `equation-${name}`, "Equation", { class: "s-equation" }, () => lines.map((line) => el("div", {}, formula(line))));
}
