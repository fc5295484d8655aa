// What a search keeps, and what ranks its outputs, is said by the rule of that search.
import assert from "node:assert/strict";
import test from "node:test";
import { TERMS } from "../../seqdemo/ui/js/glossary.js";
import { scoreMade, scoreName, searchRule } from "../../seqdemo/ui/js/searchrules.js";

const PLAIN = { strategy: "beam", beam: 5, groups: 1, siblings: 0, length_norm: "none" };
/** @type {Record<string, [any, RegExp]>} */
const SEARCHES = {
  greedy: [{ ...PLAIN, strategy: "greedy" }, /the largest total/],
  beam: [PLAIN, /the k largest totals/],
  groups: [{ ...PLAIN, groups: 5 }, /k\/G largest ranks/],
  siblings: [{ ...PLAIN, siblings: 0.5 }, /k largest ranks/],
  stochastic: [{ ...PLAIN, strategy: "stochastic" }, /k largest G/],
  sample: [{ ...PLAIN, strategy: "sample" }, /drawn from softmax/],
  exact: [{ ...PLAIN, strategy: "exact" }, /above the bar/],
};

for (const [name, [options, kept]] of Object.entries(SEARCHES)) {
  test(`the tree of ${name} is explained by its own rule`, () => {
    const rule = searchRule({ options });
    assert.match(rule.lines.join("\n"), kept);
    assert.ok(rule.kept && rule.pruned);
    assert.equal(/k largest totals/.test(rule.lines.join()), name === "beam");
  });
}

test("words that must be said share the beam with all that still miss them", () => {
  const edits = [{ kind: "Require" }];
  assert.match(searchRule({ options: PLAIN, edits }).lines.join(), /every m in turn/);
  assert.equal(searchRule({ options: { ...PLAIN, beam: 1 }, edits }), searchRule({ options: PLAIN }));
  assert.equal(searchRule({ options: { ...PLAIN, groups: 5 }, edits }), searchRule({ options: { ...PLAIN, groups: 5 } }));
});

test("a score is named by what makes it", () => {
  const told = (more) => [scoreName({ ...PLAIN, ...more }), scoreMade({ ...PLAIN, ...more }, 2)];
  assert.deepEqual(told({}), ["normalised score", ""]);
  assert.deepEqual(told({ length_norm: "power" }), ["normalised score", "(÷ 2.00)"]);
  assert.deepEqual(told({ groups: 5, length_norm: "power" }), ["penalised score", "(less what its tokens paid for being like others, ÷ 2.00)"]);
  assert.equal(told({ strategy: "stochastic" })[0], "perturbed score");
  assert.equal(told({ strategy: "exact", groups: 5 })[0], "normalised score");
  for (const more of [{}, { groups: 5 }, { strategy: "stochastic" }]) assert.ok(TERMS[scoreName({ ...PLAIN, ...more })]);
});
