// One question at a time; what is late is dropped; a silent server is looked at.
import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { Asker } from "../../seqdemo/ui/js/asker.js";

/** @param {{long?: (message: any) => boolean, look?: () => Promise<any>}} [line] */
function made({ long = () => false, look } = {}) {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  const seen = { shown: [], sent: [], told: [], stopped: [] };
  const asker = new Asker({
    trigger: (kind, message) => (kind === "stop" ? seen.stopped.push(message.seq) : seen.sent.push([message.sides.join(""), Object.keys(message.replays).join("")])),
    build: (sides, replays) => ({ sides, replays }), long, look,
    onAnswer: (answer) => seen.shown.push([answer.seq, Object.keys(answer.columns || {}).join(""), Object.keys(answer.traces || {}).join("")]),
    onState: (told) => seen.told.push(told),
  });
  return { asker, seen, wait: (milliseconds) => mock.timers.tick(milliseconds) };
}

const settled = () => new Promise((done) => setImmediate(done));

test("a stale answer never overwrites a newer one", () => {
  const { asker, seen, wait } = made();
  asker.change(["A", "B"]);
  wait(0);
  asker.change(["B"]);
  wait(0);
  asker.flight.at = -1e9;
  asker.send();
  for (const seq of [1, 2, 1]) asker.receive({ seq });
  assert.deepEqual(seen.shown.map(([seq]) => seq), [2]);
  assert.deepEqual(seen.sent, [["AB", ""], ["AB", ""]]);
});

test("an answer about a column changed meanwhile is not shown", () => {
  const { asker, seen, wait } = made();
  asker.change(["A", "B"]);
  wait(0);
  asker.change(["B"]);
  asker.receive({ seq: 1, columns: { A: 1, B: 1 }, traces: { B: 1 } });
  wait(0);
  asker.receive({ seq: 2, columns: { B: 2 } });
  asker.replay("A", { row: 4 });
  wait(0);
  asker.change(["A"]);
  asker.receive({ seq: 3, columns: {}, traces: { A: 1 } });
  wait(0);
  assert.deepEqual(seen.shown, [[1, "A", ""], [2, "B", ""], [3, "", ""]]);
  assert.deepEqual(seen.sent, [["AB", ""], ["B", ""], ["", "A"], ["A", ""]]);
});

test("what is remembered is not asked again, and what was under way for it is dropped", () => {
  const { asker, seen, wait } = made();
  asker.change(["A", "B"]);
  wait(0);
  asker.forget(["A"]);
  asker.receive({ seq: 1, columns: { A: 1, B: 1 } });
  wait(0);
  assert.deepEqual(seen.shown, [[1, "B", ""]]);
  assert.ok(asker.idle());
});

test("a long search that nobody asks for any more is stopped", () => {
  const { asker, seen, wait } = made({ long: () => true });
  asker.change(["B"]);
  wait(0);
  asker.forget(["A"]);
  assert.deepEqual(seen.stopped, []);
  asker.forget(["B"]);
  assert.deepEqual(seen.stopped, [1]);
  assert.ok(asker.idle());
});

test("the same replay is asked once", () => {
  const { asker, seen, wait } = made();
  asker.replay("A", { row: 4 });
  wait(0);
  asker.replay("A", { row: 4 });
  wait(0);
  asker.receive({ seq: 1, traces: { A: 1 } });
  wait(0);
  assert.deepEqual(seen.sent, [["", "A"]]);
  assert.ok(asker.idle());
});

test("a server that is gone is told apart from a full queue, and both are asked again", async () => {
  let health = "gone";
  const { asker, seen, wait } = made({ look: async () => health });
  const pass = async (milliseconds) => {
    if (asker.flight) asker.flight.heard -= milliseconds;
    wait(milliseconds);
    await settled();
  };
  asker.change(["A"]);
  wait(0);
  await pass(1500);
  assert.ok(seen.told.at(-1).gone);
  await pass(2500);
  assert.equal(seen.sent.length, 1);
  health = "here";
  await pass(2500);
  await pass(0);
  assert.equal(seen.sent.length, 2);
  health = "full";
  await pass(1500);
  assert.ok(seen.told.at(-1).full && !seen.told.at(-1).gone);
  health = "here";
  await pass(2500);
  await pass(0);
  asker.receive({ seq: 3, columns: { A: 1 } });
  assert.deepEqual(seen.shown, [[3, "A", ""]]);
  assert.deepEqual(seen.told.at(-1), { busy: false });
});

test("a short question does not wait for a long one", () => {
  const { asker, seen, wait } = made({ long: ({ sides, replays }) => sides.includes("B") || "B" in replays });
  asker.change(["A", "B"]);
  wait(0);
  asker.receive({ seq: 1, columns: { A: 1 } });
  wait(0);
  assert.deepEqual(seen.sent, [["A", ""], ["B", ""]]);
  assert.deepEqual([seen.told.at(0).long, seen.told.at(-1).long], [false, true]);
  asker.receive({ seq: 2, columns: { B: 1 } });
  assert.deepEqual(seen.shown, [[1, "A", ""], [2, "B", ""]]);
  asker.replay("A", { row: 1 });
  asker.replay("B", { row: 2 });
  wait(0);
  asker.receive({ seq: 3, traces: { A: 1 } });
  wait(0);
  assert.deepEqual(seen.sent.slice(2), [["", "A"], ["", "B"]]);
  asker.giveUp();
  assert.ok(asker.idle());
});
