/** Plays every vector of `sdk/vectors` against the machine. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Fleet, files, playFleet, playVector, type Vector } from "./vectors.js";

/** A missing or truncated folder of vectors fails the test. */
const VECTORS_MIN = 255;

const names: string[] = [];

for (const { file, vectors } of files()) {
  for (const vector of vectors as (Vector | Fleet)[]) {
    names.push(vector.name);
    test(vector.name, () => (file === "storm.json" ? playFleet(vector as Fleet) : playVector(vector as Vector)));
  }
}

test("no vector is missing, and no two vectors share a name", () => {
  assert.ok(names.length >= VECTORS_MIN, `${names.length} vectors`);
  assert.equal(new Set(names).size, names.length);
});
