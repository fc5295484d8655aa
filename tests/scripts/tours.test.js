// Every step of every tour is a state that its page can take, and a target of its own.
import assert from "node:assert/strict";
import test from "node:test";
import { linkOf, readLink } from "../../seqdemo/ui/js/link.js";
import { TOURS } from "../../seqdemo/ui/js/tours.js";
import { SETUP } from "./setup.js";

for (const [task, { steps, targets, next }] of Object.entries(TOURS)) {
  test(`the tour of ${task} asks only for what a page can show`, () => {
    assert.ok(next && targets.length);
    for (const step of steps) {
      assert.ok(step.says.endsWith(".") || step.says.endsWith("?"), step.says);
      assert.deepEqual(readLink(linkOf({ search: "", hash: `#${step.state}` }), { ...SETUP, task }).notes, []);
      assert.ok(step.targets.length);
    }
  });
}
