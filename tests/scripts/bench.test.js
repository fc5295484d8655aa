// What the page asks, and what it goes back to when the user stops a search.
import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { Bench } from "../../seqdemo/ui/js/bench.js";
import { questionOf, withEdits, withInput, withOption } from "../../seqdemo/ui/js/state.js";
import { SETUP } from "./setup.js";

class Quiet extends Bench {
  save() {}
}

/** A page that shows the answers to its opening question. */
function opened() {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [];
  const bench = new Quiet(SETUP, (kind, message) => sent.push([kind, Object.keys(message.columns || {}).join("")]));
  for (const side of ["A", "B"]) {
    const chosen = { pieces: ["a"], tokens: [4] };
    bench.columns[side] = { question: questionOf(bench.state, side), tree: { size: 1 }, hypotheses: [chosen], trace: { asked: [4], parts: {}, gates_kind: "all" }, kind: { target: "words" } };
  }
  return { bench, sent, wait: (milliseconds) => mock.timers.tick(milliseconds) };
}

test("a column that is answered quickly is asked first, and the other is late meanwhile", () => {
  const { bench, sent, wait } = opened();
  bench.update(withOption("B", "strategy", "exact"), "B: exact");
  bench.update(withInput({ text: "b" }), "Typed");
  wait(0);
  assert.deepEqual(sent, [["short", "A"]]);
  assert.deepEqual(["A", "B"].map((side) => bench.isLate(side)), [true, true]);
  bench.columns.A.question = questionOf(bench.state, "A");
  bench.asker.receive({ seq: 1 });
  wait(0);
  assert.deepEqual(sent, [["short", "A"], ["ask", "B"]]);
  assert.deepEqual(["A", "B"].map((side) => bench.isLate(side)), [false, true]);
  assert.deepEqual(bench.differences(), [new Set(), new Set()]); // outputs of two inputs are not compared
});

test("a stopped search brings the input back with the columns, so that text and answers belong together", () => {
  const { bench, wait } = opened();
  bench.update(withEdits("B", () => [{ kind: "AttentionRow", position: 0, weights: [1] }]), "B: a row");
  bench.columns.B.question = questionOf(bench.state, "B");
  const before = bench.state;
  bench.update(withOption("B", "strategy", "exact"), "B: exact");
  bench.update(withInput({ text: "b" }), "Typed");
  wait(0);
  bench.stop();
  assert.deepEqual(bench.state.input, before.input);
  assert.deepEqual(bench.state.columns, before.columns);
  assert.deepEqual(["A", "B"].map((side) => bench.isLate(side)), [false, false]);
  bench.go(-1);
  assert.equal(bench.state.input.text, "b");
});

test("the replay of an exact search goes through the queue, where it can wait for the search", () => {
  const { bench, sent, wait } = opened();
  bench.update(withOption("B", "strategy", "exact"), "B: exact");
  wait(0);
  bench.columns.B.question = questionOf(bench.state, "B");
  bench.asker.receive({ seq: 1 });
  bench.asker.replay("B", { row: 0 });
  wait(0);
  assert.deepEqual(sent, [["ask", "B"], ["ask", ""]]);
});
