// The server's answers, unpacked, and the meaning of a selection in them.
import { unpack } from "../../figures/js/core.js";
import { penalty, walk } from "./finding.js";
import { readGates } from "../../figures/js/units.js";
import { isEnd } from "../../figures/js/text.js";
import { pathTo, readTree } from "../../figures/js/layout.js";

const NOTHING = { tokens: [], pieces: [], logps: [], total: 0, score: 0, finished: false, node: -1, place: 0, text: "" };

export function readColumn(payload, setup) {
  const { spec } = payload;
  const known = setup.checkpoints.find((item) => item.name === spec.checkpoint) || setup.checkpoints[0] || {};
  return {
    ...payload,
    kind: known.kinds || { source: "subwords", target: "subwords" },
    tree: readTree(payload.tree),
    hypotheses: payload.hypotheses.map((item, place) => ({ ...item, place })),
    trace: readTrace(payload.trace),
  };
}

export function readTrace(payload) {
  return { ...payload, attention: payload.attention ? unpack(payload.attention) : null, distribution: payload.distribution ? unpack(payload.distribution) : null, parts: payload.gates ? readGates(payload.gates) : null };
}

/** The selection of this output, as the state holds it. */
export function selectionFor({ node, place }) {
  return node >= 0 ? { row: node } : { output: place };
}

/** The output that is shown: the selected one, the best one through the selected row, or the path to a row that no output came through. */
export function chosenIn(column, selection) {
  const { hypotheses, tree } = column;
  if (!selection) return hypotheses[0] || NOTHING;
  if ("output" in selection) return hypotheses.find((item) => item.place === selection.output) || hypotheses[0] || NOTHING;
  if (!(selection.row < tree.size)) return hypotheses[0] || NOTHING;
  return hypotheses.find((item) => item.node >= 0 && pathTo(tree, item.node).includes(selection.row)) || prefixTo(tree, selection.row);
}

function prefixTo(tree, row) {
  const path = pathTo(tree, row);
  const logps = path.map((at) => tree.logp[at]);
  const pieces = path.map((at) => tree.pieces.get(tree.token[at]));
  const ended = pieces.some(isEnd);
  return { tokens: path.map((at) => tree.token[at]), pieces, logps, total: logps.reduce((a, b) => a + b, 0), finished: ended, prefix: !ended, node: row };
}

/** The selection that a link of an earlier version told by its tokens. */
export function selectionOfTokens(column, tokens) {
  const output = column.hypotheses.find((item) => item.tokens.join() === tokens.join());
  const path = walk(column.tree, tokens);
  return output ? selectionFor(output) : path.length === tokens.length ? { row: path[path.length - 1] } : null;
}

/** The column ranked by another length penalty: nothing else depends on it while finished outputs keep their places. */
export function reranked(column, options) {
  const hypotheses = column.hypotheses.map((item) => ({ ...item, score: item.total / penalty(item.tokens.length, options) })).sort((p, q) => q.score - p.score);
  return { ...column, hypotheses, spec: { ...column.spec, options: { ...options } } };
}
