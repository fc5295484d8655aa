// The sentence that says what the comparison shows. Pure: two columns in, parts of a sentence out.

const NOUNS = {
  translate: ["translation", "word"],
  transliterate: ["spelling", "letter"],
  caption: ["caption", "word"],
  complete: ["text", "letter"],
};

function strategyName(options) {
  if (options.strategy === "beam") return `beam ${options.beam}`;
  return { greedy: "greedy", sample: "sampling", exact: "exact search" }[options.strategy] || options.strategy;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function firstDifference(a, b) {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}

function missedIn(tree, tokens) {
  const path = walk(tree, tokens);
  const last = path.length ? path[path.length - 1] : -1;
  return last >= 0 && tree.fate[last] === 1 ? { step: path.length - 1, missed: tree.missed[last] } : null;
}

// The rows of the tree along these tokens, as far as the tree knows them.
function walk(tree, tokens) {
  const path = [];
  let at = -1;
  for (const token of tokens) {
    let next = -1;
    for (const child of tree.children.get(at) || []) if (tree.token[child] === token) next = child;
    if (next < 0) break;
    path.push(next);
    at = next;
  }
  return path;
}

// a, b: {hypothesis, options, checkpoint, tree, kind, edited, title}
function finding(a, b, task) {
  const [noun, word] = NOUNS[task] || NOUNS.translate;
  const [nameA, nameB] = names(a, b);
  const left = a.hypothesis;
  const right = b.hypothesis;
  if (!left || !right) return ["Waiting for both columns."];
  const at = firstDifference(left.tokens, right.tokens);
  const same = at === left.tokens.length && at === right.tokens.length;
  if (a.checkpoint !== b.checkpoint) {
    if (same) return [`Two models, one ${noun}: A and B agree on every ${word}.`];
    return [
      `Two different models part at ${word} ${unitNumber(left.pieces, at, a.kind)}, where A writes `, quoted(left, at, a.kind, "A"),
      " and B writes ", quoted(right, at, b.kind, "B"), ". Their probabilities come from two models and cannot be compared.",
    ];
  }
  if (same) {
    if (b.edited) return [`The edit changes nothing here: B writes the same ${noun} as A.`];
    return [`${capital(nameA)} and ${nameB} agree: the same ${noun}, ${word} for ${word}.`];
  }
  const where = unitNumber(left.pieces, at, a.kind);
  const tokens = named(left, at, a.kind, "A");
  const others = named(right, at, b.kind, "B");
  if (b.edited) {
    return [`Under the edit, B parts from A at ${word} ${where}: `, ...others, " instead of ", ...tokens, ". What it costs stands in column B."];
  }
  if (task === "complete") {
    const each = (item) => probability(item.total / Math.max(1, item.logps.length), 2);
    return [
      `They part at letter ${where}: `, ...tokens, " in A and ", ...others, " in B. On average a letter of A has probability ",
      { text: each(left), mark: "strong" }, ", one of B ", { text: each(right), mark: "strong" },
      b.options.strategy === "sample" ? ": a draw takes unlikely letters too, and does not run in circles." : ".",
    ];
  }
  if (left.prefix || right.prefix) {
    const [side, own, name] = right.prefix ? ["B", b, nameB] : ["A", a, nameA];
    const lost = missedIn(own.tree, own.hypothesis.tokens);
    return [
      ...(at < Math.min(left.tokens.length, right.tokens.length)
        ? [`They part at ${word} ${where}: `, ...tokens, " in A and ", ...others, " in B."]
        : [`The ${noun} in ${side === "B" ? "A" : "B"} goes on from what is picked in ${side}.`]),
      lost ? ` ${capital(name)} dropped what is picked in ${side}: it missed by ${lost.missed.toFixed(2)}.`
        : ` What is picked in ${side} has no end, so its probability is not compared.`,
    ];
  }
  const gain = right.total - left.total;
  const gap = Math.abs(left.logps[at] - right.logps[at]);
  const ahead = left.logps[at] >= right.logps[at];
  if (gain > 1e-6) {
    return [
      `${capital(nameB)} found a ${noun} the model finds `, { text: `${times(Math.exp(gain))} likelier`, mark: "strong" },
      `; ${nameA} lost it at ${word} ${where}, `, ...(ahead ? ["by ", { text: gap.toFixed(2), mark: "strong" }, ": "] : ["where "]),
      "it took ", ...tokens, " over ", ...others, ".",
    ];
  }
  const byScore = right.score > left.score && b.options.length_norm !== "none";
  const lost = missedIn(b.tree, left.tokens);
  const why = byScore
    ? ` B prefers its own by normalised score (${signed(right.score, 2)} against ${signed(left.score / Number(penalty(left.tokens.length, b.options)), 2)} for A's).`
    : b.options.strategy === "sample" ? " A draw follows the probabilities; it does not look for the best."
    : lost ? ` ${capital(nameB)} dropped A's at ${word} ${unitNumber(left.pieces, lost.step, a.kind)}, where it missed by ${lost.missed.toFixed(2)}.` : "";
  const equal = Math.abs(gain) <= 1e-6;
  return [
    equal ? `Both outputs are equally likely` : `${capital(nameA)}'s ${noun} is the likelier one, `,
    ...(equal ? [] : [{ text: times(Math.exp(-gain)), mark: "strong" }]),
    `: they part at ${word} ${where}, `, ...tokens, " in A and ", ...others, ` in B.${why}`,
  ];
}

function names(a, b) {
  const left = strategyName(a.options);
  const right = strategyName(b.options);
  return left === right ? [`A (${left})`, `B (${right})`] : [left, right];
}

function named(hypothesis, at, kind, side) {
  return [quoted(hypothesis, at, kind, side), ...(at < hypothesis.logps.length ? [` (${probability(hypothesis.logps[at], 3)})`] : [])];
}

function quoted(hypothesis, at, kind, side) {
  return at >= hypothesis.pieces.length ? "its end" : { text: isEnd(hypothesis.pieces[at]) ? "the end" : `“${pieceName(hypothesis.pieces[at], kind)}”`, mark: side };
}

// What a total is divided by; `length` counts <eos>.
function penalty(length, options) {
  if (options.length_norm === "power") return length ** options.alpha;
  if (options.length_norm === "gnmt") return ((5 + length) / 6) ** options.alpha;
  return 1;
}

function priceSentence(price, task) {
  const noun = (NOUNS[task] || NOUNS.translate)[0];
  const change = price.after - price.before;
  const ratio = times(Math.exp(Math.abs(change)));
  if (price.kind === "state") {
    return `Price: the edited model finds the same ${noun} ${Math.abs(change) < 0.005 ? "as likely" : `${ratio} ${change < 0 ? "less" : "more"} likely`} (log probability ${signed(price.after, 2)} against ${signed(price.before, 2)}).`;
  }
  return `Price: the untouched model finds this ${noun} ${Math.abs(change) < 0.005 ? "as likely as" : `${ratio} ${change < 0 ? "less likely than" : "likelier than"}`} its own (log probability ${signed(price.after, 2)} against ${signed(price.before, 2)}).`;
}
