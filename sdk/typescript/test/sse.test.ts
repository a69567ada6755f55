import assert from "node:assert/strict";
import { test } from "node:test";

import { EventParser, type ServerEvent } from "../src/sse.js";

/** Parses the pieces of one stream; returns the events and the last id. */
function parse(...pieces: string[]): { events: ServerEvent[]; id: string | undefined } {
  const parser = new EventParser();
  const events = pieces.flatMap((piece) => parser.push(piece));
  return { events, id: parser.lastEventId };
}

const of = (data: string, type = "message") => ({ type, data });

const STREAM =
  ": still here\n\nid: 7\n\nevent: revoked\r\nid: 8\r\ndata: {\r\ndata:  1}\r\n\r\ndata\rdata: x\r\rretry: 5\nother: y\nid: 9\n\n";
const EVENTS = [of("{\n 1}", "revoked"), of("\nx")];

test("sse: events, ids and comments by the rules of the standard", () => {
  assert.deepEqual(parse(STREAM), { events: EVENTS, id: "9" });
});

test("sse: the pieces in which a stream arrives do not matter", () => {
  assert.deepEqual(parse(...STREAM), { events: EVENTS, id: "9" });
  for (let at = 0; at <= STREAM.length; at += 1) {
    for (const text of [STREAM, STREAM.replaceAll(/\r\n|\r|\n/g, "\r\n"), STREAM.replaceAll(/\r\n|\r|\n/g, "\r")]) {
      assert.deepEqual(parse(text.slice(0, at), text.slice(at)), { events: EVENTS, id: "9" }, `cut at ${at}`);
    }
  }
});

test("sse: an event that breaks off is none, and neither is its id", () => {
  assert.deepEqual(parse("id: 1\ndata: a\n\nid: 2\ndata: b\n"), { events: [of("a")], id: "1" });
});

test("sse: an id alone makes no event, and a type without data is forgotten", () => {
  assert.deepEqual(parse("id: 1\n\nevent: revoked\n\ndata: a\n\n"), { events: [of("a")], id: "1" });
});

test("sse: an id with a null character is ignored, and an empty id resets", () => {
  assert.equal(parse("id: 1\n\nid: a\0b\n\n").id, "1");
  assert.equal(parse("id: 1\n\nid\n\n").id, "");
  assert.equal(new EventParser("5").lastEventId, "5");
});

test("sse: one space and one byte order mark are no data", () => {
  assert.deepEqual(parse("\ufeffdata:  a\n\n").events, [of(" a")]);
  assert.deepEqual(parse("\ufeff", "data:a\n\n\ufeffdata:b\n\n").events, [of("a")]);
  assert.deepEqual(parse("data:a\n\n", "\ufeffdata:b\n\n").events, [of("a")]);
});

test("sse: an event has a longest length, and comments never end a stream", () => {
  const parser = new EventParser();
  for (let events = 0; events < 100; events += 1) parser.push(`data: ${"x".repeat(1_000)}\n\n`);
  for (let lines = 0; lines < 100_000; lines += 1) parser.push(": still here\n");
  assert.throws(() => parse("data: ".padEnd(70_000, "x")));
  assert.throws(() => parse("data: xxxxxxxxxxxxxxxxxxxxx\n".repeat(4_000)));
});
