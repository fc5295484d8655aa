// The sentence beside a photograph's map compares what was measured.
import assert from "node:assert/strict";
import test from "node:test";
import { besideTheMiddle } from "../../seqdemo/ui/js/trust.js";

test("a map is judged against pointing at the middle every time", () => {
  assert.match(besideTheMiddle(44.7, 56.3), /more often than this map/);
  assert.match(besideTheMiddle(56.3, 56.3), /about as often as this map/);
  assert.match(besideTheMiddle(58, 56.3), /about as often as this map/);
  assert.match(besideTheMiddle(62, 56.3), /^The map points into the box more often/);
});
