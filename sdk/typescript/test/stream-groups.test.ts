/** The seats that share an event stream. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { deviceDoor, licenseDoor } from "../src/core/door.js";
import { fateOf, sessionsOf, sharedPath, type StreamGroup, StreamGroups } from "../src/stream-groups.js";

const LICENSE = licenseDoor("K", { machineId: "m" });
const DEVICE = deviceDoor({ deviceId: "d", deviceType: "tv" }, undefined, undefined);

/** Groups of numbers, which count the groups that began. */
class Desk {
  readonly groups = new StreamGroups<number, StreamGroup<number>>();
  begun = 0;

  join(member: number, door = LICENSE): StreamGroup<number> {
    return this.groups.join(member, door, () => {
      this.begun += 1;
      return { door, members: new Set() };
    });
  }
}

test("stream groups: a hundred seats share a stream, and the next seat begins another", () => {
  const desk = new Desk();
  const groups = [...Array(250).keys()].map((member) => desk.join(member));
  assert.equal(desk.begun, 3);
  assert.deepEqual([...new Set(groups)].map((group) => group.members.size), [100, 100, 50]);
  assert.deepEqual([groups[99], groups[199]], [groups[0], groups[100]]);
});

test("stream groups: a free place is taken before a new stream begins", () => {
  const desk = new Desk();
  const groups = [...Array(101).keys()].map((member) => desk.join(member));
  desk.groups.leave(7, groups[7]!);
  assert.equal(desk.join(200), groups[0]);
  assert.equal(desk.join(201), groups[100]);
  assert.equal(desk.begun, 2);
});

test("stream groups: a stream that the last seat left gets no other seat", () => {
  const desk = new Desk();
  const first = desk.join(1);
  desk.groups.leave(1, first);
  assert.notEqual(desk.join(2), first);
  assert.equal(first.members.size, 0);
});

test("stream groups: each API has streams of its own", () => {
  const desk = new Desk();
  const [license, device] = [desk.join(1, LICENSE), desk.join(2, DEVICE)];
  assert.notEqual(license, device);
  assert.deepEqual([desk.join(3, DEVICE), desk.join(4, LICENSE)], [device, license]);
});

test("stream groups: the path names each session once", () => {
  const sessions = (...names: string[]) => sessionsOf(names.map((session) => ({ session })));
  assert.equal(sharedPath(LICENSE, sessions("a")), "/api/v1/licenses/sessions/a/events");
  assert.equal(sharedPath(LICENSE, sessions("a", "a")), "/api/v1/licenses/sessions/a/events");
  assert.equal(sharedPath(DEVICE, sessions("b", "a", "b", "c")), "/api/v1/devices/sessions/b/events?with=a,c");
});

test("stream groups: an answer to one session may be the last word on the session", () => {
  const over = [204, 404].map((status) => fateOf(status, false));
  assert.deepEqual(over, ["over", "over"]);
  for (const status of [0, 200, 302, 400, 401, 403, 410, 429, 503]) assert.equal(fateOf(status, false), undefined, `${status}`);
});

test("stream groups: a refusal of several sessions gives each a stream of its own", () => {
  for (const status of [204, 400, 403, 404, 410, 414, 422]) assert.equal(fateOf(status, true), "separate", `${status}`);
  for (const status of [0, 200, 302, 401, 429, 500, 503]) assert.equal(fateOf(status, true), undefined, `${status}`);
});
