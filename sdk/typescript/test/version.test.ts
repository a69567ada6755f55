import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { SDK } from "../src/version.js";

test("the name of the package has the version of the package", () => {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  assert.equal(SDK, `typescript/${(JSON.parse(text) as { version: string }).version}`);
});
