import assert from "node:assert/strict";
import { test } from "node:test";

import { dataOf, idOf, nameOf, splitEvents } from "../src/sse.js";

/** Returns the texts of the events of one stream that arrives in pieces. */
function split(...pieces: string[]): string[] {
  let rest = "";
  return pieces.flatMap((piece) => {
    const events = splitEvents(rest + piece);
    rest = events.pop()!;
    return events;
  });
}

/** Returns the data of the events that have some, and the last id. */
function parse(...pieces: string[]): { events: string[]; id: string | undefined } {
  const events = split(...pieces);
  return { events: events.map(dataOf).filter((data) => data !== ""), id: events.map(idOf).findLast((id) => id !== undefined) };
}

const STREAM =
  ": still here\n\nid: 7\n\nevent: revoked\nid: 8\ndata:  {1}\n\ndata\n\ndata: x\n\n\nretry: 5\nother: y\nid: 9\n\n";
const EVENTS = [" {1}", "x"];

test("sse: events, ids and comments of a stream", () => {
  assert.deepEqual(parse(STREAM), { events: EVENTS, id: "9" });
});

test("sse: the pieces in which a stream arrives do not matter", () => {
  for (const text of [STREAM, STREAM.replaceAll("\n", "\r\n")]) {
    assert.deepEqual(parse(...text), { events: EVENTS, id: "9" });
    for (let at = 0; at <= text.length; at += 1) {
      assert.deepEqual(parse(text.slice(0, at), text.slice(at)), { events: EVENTS, id: "9" }, `cut at ${at}`);
    }
  }
});

test("sse: an event that breaks off is none, and neither is its id", () => {
  assert.deepEqual(parse("id: 1\ndata: a\n\nid: 2\ndata: b\n"), { events: ["a"], id: "1" });
});

test("sse: an id alone makes no event, and an empty id resets", () => {
  assert.deepEqual(parse("id: 1\n\nevent: revoked\n\ndata: a\n\n"), { events: ["a"], id: "1" });
  assert.equal(parse("id: 1\n\nid:\n\n").id, "");
});

test("sse: the name of an event, which may have none", () => {
  assert.deepEqual(split(STREAM).map(nameOf), [undefined, undefined, "revoked", undefined, undefined, undefined]);
  assert.equal(nameOf("data: x\r\nevent:unknown\r\nid: 1"), "unknown");
});

test("sse: one space is no data, and a separator of lines in a text is", () => {
  assert.deepEqual(parse("data:  a\u2028b\n\n").events, [" a\u2028b"]);
});

test("sse: an event has a longest length, and comments never end a stream", () => {
  const events = Array<string>(100).fill(`data: ${"x".repeat(1_000)}\n\n`);
  assert.equal(split(...events, ...Array<string>(100_000).fill(": still here\n\n")).length, 100_100);
  assert.throws(() => parse("data: ".padEnd(70_000, "x")));
  assert.throws(() => parse("data: xxxxxxxxxxxxxxxxxxxxx\n".repeat(4_000)));
});
