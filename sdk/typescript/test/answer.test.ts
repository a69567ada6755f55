/** Answers that the vectors do not have. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { SECOND } from "../src/core/clocks.js";
import { licenseDoor } from "../src/core/door.js";
import { EventKind } from "../src/core/events.js";
import { Machine } from "../src/core/machine.js";
import type { Request, Response } from "../src/core/request.js";

const NOW = { mono: 0, boot: 0 };
const GRANT = { session_id: "s", expires_in_seconds: 360 };

/** Returns the state and the time of the next timer after this answer to an acquire. */
function acquired(answer: Omit<Response, "body">, body: object): { kind: string; wakeAt: number } {
  const sent: Request[] = [];
  const never = () => assert.fail("no such call");
  const host = { send: (request: Request) => sent.push(request), cancel: never, refreshToken: never };
  const plan = { door: licenseDoor("K", { machineId: "m" }), wait: 0, patience: 10 * SECOND };
  const machine = new Machine(plan, host, NOW);
  const outcome = { ...answer, body: JSON.stringify(body) };
  machine.step({ kind: EventKind.Over, request: sent[0]!.id, outcome }, NOW, 0.5);
  return { kind: machine.state(0).kind, wakeAt: machine.wakeAt };
}

test("a grant with a session and a TTL is a seat", () => {
  assert.equal(acquired({ status: 201 }, GRANT).kind, "active");
});

for (const [what, status, body] of [
  ["without a session", 201, { ...GRANT, session_id: undefined }],
  ["without a TTL", 201, { ...GRANT, expires_in_seconds: undefined }],
  ["whose TTL is none", 201, { ...GRANT, expires_in_seconds: -1 }],
  ["whose interval is none", 201, { ...GRANT, heartbeat_interval_seconds: "soon" }],
  ["without content", 204, {}],
] as const) {
  test(`a grant ${what} is asked for again after a backoff`, () => {
    assert.deepEqual(acquired({ status }, body), { kind: "acquiring", wakeAt: SECOND / 2 });
  });
}
