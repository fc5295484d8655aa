// A step is a finished action; the last 200 are kept.
import assert from "node:assert/strict";
import test from "node:test";
import { History } from "../../seqdemo/ui/js/history.js";

function timed() {
  const clock = { now: 0 };
  return { clock, history: new History(/** @type {any} */ ("start"), () => clock.now) };
}

test("typing is one step until there is a pause", () => {
  const { clock, history } = timed();
  for (const state of ["a", "ab", "abc"]) {
    clock.now += 300;
    history.record(state, `typed ${state}`, "text");
  }
  clock.now += 2000;
  history.record("abcd", "typed abcd", "text");
  assert.deepEqual(history.steps.map((step) => step.state), ["start", "abc", "abcd"]);
  assert.equal(history.steps[1].words, "typed abc");
});

test("two actions of different kinds are two steps, and so are two drags", () => {
  const { history } = timed();
  history.record("a", "", "beam");
  history.record("b", "", "alpha");
  history.record("c", "", "alpha");
  history.close();
  history.record("d", "", "alpha");
  assert.deepEqual(history.steps.map((step) => step.state), ["start", "a", "c", "d"]);
});

test("back, forward, and a new way from there", () => {
  const { history } = timed();
  for (const state of ["a", "b", "c"]) history.record(state, state);
  assert.equal(history.go(-2), "a");
  assert.equal(history.go(1), "b");
  assert.equal(history.go(-9), "b");
  history.record("d", "d");
  assert.deepEqual(history.steps.map((step) => step.state), ["start", "a", "b", "d"]);
  assert.equal(history.canGo(1), false);
});

test("what is only looked at belongs to the step that stands", () => {
  const { history } = timed();
  history.record("a", "did a");
  history.amend("a, seen from the side");
  assert.deepEqual(history.steps.map((step) => [step.state, step.words]), [["start", "The page as it opened"], ["a, seen from the side", "did a"]]);
});

test("the last 200 steps are kept", () => {
  const { history } = timed();
  for (let i = 0; i < 500; i++) history.record(i, `step ${i}`);
  assert.equal(history.steps.length, 200);
  assert.equal(history.state, 499);
  assert.equal(history.go(-199), 300);
});
