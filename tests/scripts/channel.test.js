// A stop reaches the server only after the question that it ends, and no later question is ended by it.
import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { Channel } from "../../seqdemo/ui/js/channel.js";

function made() {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [];
  return { sent, channel: new Channel((message) => sent.push(message.seq ?? message.id), () => sent.push("stop")) };
}

test("a stop waits until the server has taken the question", () => {
  const { sent, channel } = made();
  channel.ask({ seq: 1 });
  channel.stop();
  assert.deepEqual(sent, [1]);
  channel.hear(1);
  assert.deepEqual(sent, [1, "stop"]);
});

test("a question that was heard of is stopped at once, by its number of either name", () => {
  const { sent, channel } = made();
  channel.ask({ id: 7 });
  channel.hear(7);
  channel.stop();
  assert.deepEqual(sent, [7, "stop"]);
});

test("later questions wait for the stop, and a second stop drops them", () => {
  const { sent, channel } = made();
  channel.ask({ seq: 1 });
  channel.stop();
  channel.ask({ seq: 2 });
  channel.stop();
  channel.ask({ seq: 3 });
  channel.hear(0);
  assert.deepEqual(sent, [1]);
  channel.hear(1);
  assert.deepEqual(sent, [1, "stop", 3]);
  channel.hear(3);
  assert.deepEqual(sent, [1, "stop", 3]);
});

test("a silent server does not hold the stop for ever", () => {
  const { sent, channel } = made();
  channel.ask({ seq: 1 });
  channel.stop();
  channel.ask({ seq: 2 });
  mock.timers.tick(9999);
  assert.deepEqual(sent, [1]);
  mock.timers.tick(1);
  assert.deepEqual(sent, [1, "stop", 2]);
});
