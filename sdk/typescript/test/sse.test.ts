import assert from "node:assert/strict";
import { test } from "node:test";

import { EventParser } from "../src/sse.js";

/** Parses the pieces of one stream; returns the data of the events and the last id. */
function parse(...pieces: string[]): { events: string[]; id: string | undefined } {
  const parser = new EventParser();
  const events = pieces.flatMap((piece) => parser.push(piece));
  return { events, id: parser.lastEventId };
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

test("sse: another connection goes on after the last id, and with a whole event", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("id: 1\ndata: a\n\nid: 2\nda"), ["a"]);
  parser.reset();
  assert.equal(parser.lastEventId, "1");
  assert.deepEqual(parser.push("ta: b\n\ndata: c\n\n"), ["c"]);
});

test("sse: one space is no data, and a separator of lines in a text is", () => {
  assert.deepEqual(parse("data:  a\u2028b\n\n").events, [" a\u2028b"]);
});

test("sse: an event has a longest length, and comments never end a stream", () => {
  const parser = new EventParser();
  for (let events = 0; events < 100; events += 1) parser.push(`data: ${"x".repeat(1_000)}\n\n`);
  for (let comments = 0; comments < 100_000; comments += 1) parser.push(": still here\n\n");
  assert.throws(() => parse("data: ".padEnd(70_000, "x")));
  assert.throws(() => parse("data: xxxxxxxxxxxxxxxxxxxxx\n".repeat(4_000)));
});
