// What a search keeps of its tree, and what ranks its outputs: every search by its own rule.

const TOTAL = "total(prefix) = Σ_t log p(y_t | y_{<t}, x)";
const LAST = (value) => `missed by = ${value} of the last kept − ${value}`;

/** @type {Record<string, {lines: string[], kept: string, pruned: string}>} */
const RULES = {
  greedy: {
    lines: [TOTAL, `kept: the largest total of a step;  ${LAST("total")}`],
    kept: "The likeliest prefix of its step: the search goes on from it.", pruned: "Not the likeliest of its step: the search drops it. It missed by the difference to the one kept.",
  },
  beam: {
    lines: [TOTAL, `kept: the k largest totals of a step;  ${LAST("total")}`],
    kept: "One of the k best prefixes of its step: the search goes on from it.", pruned: "Not among the k best of its step: the search drops it. It missed by the difference to the last one kept.",
  },
  required: {
    lines: [TOTAL, "m(prefix) = how many pieces of the required words are still missing", `kept: k prefixes, the best of every m in turn;  ${LAST("total")} with the same m`],
    kept: "One of the k prefixes of its step, which are the best of those that miss as many pieces of the required words: the search goes on from it.",
    pruned: "Too many prefixes that miss as many pieces of the required words are better: the search drops it. It missed by the difference to the last one kept of those.",
  },
  groups: {
    lines: [TOTAL, "rank(prefix) = total − diversity · how often its tokens were chosen by an earlier group at their step", `kept: of each of the G groups the k/G largest ranks of a step;  ${LAST("rank")} in its group`],
    kept: "One of the k/G best prefixes of its group at this step, after the penalty for tokens that earlier groups chose: the search goes on from it.",
    pruned: "Not among the k/G best of its group, after the penalty for tokens that earlier groups chose: the search drops it. It missed by the difference to the last one kept of its group.",
  },
  siblings: {
    lines: [TOTAL, "rank(prefix) = total − siblings · Σ_{t>1} the place of y_t among the continuations of the same prefix", `kept: the k largest ranks of a step;  ${LAST("rank")}`],
    kept: "One of the k best prefixes of its step, after the penalty for its place among its siblings: the search goes on from it.",
    pruned: "Not among the k best of its step, after the penalty for its place among its siblings: the search drops it. It missed by the difference to the last one kept.",
  },
  stochastic: {
    lines: [TOTAL, "G(prefix) = total + Gumbel noise, drawn so that the largest G after a prefix is the prefix's own", `kept: the k largest G of a step;  ${LAST("G")}`],
    kept: "One of the k prefixes of its step with the highest log probability after the noise of the draw: the search goes on from it.",
    pruned: "Not among the k highest of its step after the noise of the draw: the search drops it. It missed by the difference to the last one kept, noise included.",
  },
  sample: {
    lines: [TOTAL, "y_t is drawn from softmax(scores / temperature), cut to the likeliest by the options"], kept: "Drawn: the path goes on from it.", pruned: "Likely here, but not drawn.",
  },
  exact: {
    lines: [TOTAL, "kept: the total is above the bar;  missed by = bar − total", "bar: what a prefix needs so that an output after it can still be among the best found"],
    kept: "The search followed it: an output after it could still be among the best.",
    pruned: "No output after it can be among the best that were found: the search drops it. It missed by the difference to what it needed.",
  },
};

/** By which rule a column searches. @param {{options: any, edits?: readonly {kind: string}[]}} spec */
export function searchRule({ options, edits = [] }) {
  const { strategy, beam, groups = 1, siblings = 0 } = options;
  if (strategy !== "beam") return RULES[strategy];
  if (groups > 1) return RULES.groups;
  if (siblings) return RULES.siblings;
  return edits.some(({ kind }) => kind === "Require") && beam > 1 ? RULES.required : RULES.beam;
}

/** What ranks the outputs, by its name among the terms. @param {any} options */
export function scoreName({ strategy, groups = 1, siblings = 0 }) {
  if (strategy === "stochastic") return "perturbed score";
  return strategy === "beam" && (groups > 1 || siblings) ? "penalised score" : "normalised score";
}

/** How that comes from the log probability; empty where it is the same. @param {any} options @param {number} norm what a total is divided by */
export function scoreMade(options, norm) {
  const divided = options.length_norm === "none" ? "" : `÷ ${norm.toFixed(2)}`;
  const paid = { "perturbed score": "as drawn: the log probability with the noise that ranked it", "penalised score": "less what its tokens paid for being like others" }[scoreName(options)];
  const made = options.strategy === "stochastic" ? paid : [paid, divided].filter(Boolean).join(", ");
  return made && `(${made})`;
}
