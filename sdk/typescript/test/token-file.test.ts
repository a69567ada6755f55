/** The file of a token: changes, and a file server that hangs. */

import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { tokenFile } from "../src/node.js";
import type { Bearer } from "../src/tokens.js";
import { Transport } from "../src/transport.js";

/** A file with the token `first`, the tokens of a client that has read the file, and a function that replaces the file. */
async function opened(t: TestContext): Promise<{ path: string; tokens: Bearer; write: (text: string) => void }> {
  const folder = mkdtempSync(join(tmpdir(), "seatkeeper-token-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "token");
  const write = (text: string) => {
    writeFileSync(join(folder, "fresh"), text);
    renameSync(join(folder, "fresh"), path);
  };
  write("first\n");
  const tokens = tokenFile(path).tokens(new Transport("http://127.0.0.1:1"), () => 0).bearer("m");
  assert.equal(await tokens.current("POST"), "first");
  return { path, tokens, write };
}

/** Asks for the token until it is the wanted one. */
async function expect(tokens: Bearer, wanted: string): Promise<void> {
  const end = performance.now() + 10_000;
  while ((await tokens.current("POST")) !== wanted && performance.now() < end) await sleep(20);
  assert.equal(await tokens.current("POST"), wanted);
}

test("a token file that changes is read before the server rejects the old token", async (t) => {
  const { path, tokens, write } = await opened(t);
  for (const [text, wanted] of [["second", "second"], ["no token at all", "second"], ["third", "third"]] as const) {
    write(text);
    // The client looks at the file once per second at most.
    for (const end = performance.now() + 1_100; performance.now() < end; await sleep(50)) await tokens.current("POST");
    assert.equal(await tokens.current("POST"), wanted);
  }
  rmSync(path);
  await sleep(1_100);
  assert.equal(await tokens.current("POST"), "third");
});

for (const hanging of ["stat", "readFile"] as const) {
  test(`a file server that hangs in ${hanging} delays one request for a moment, and holds one thread`, async (t) => {
    const { tokens, write } = await opened(t);
    const original = files[hanging] as (...parameters: unknown[]) => Promise<unknown>;
    let answer!: () => void;
    const answers = new Promise<void>((resolve) => (answer = resolve));
    let uses = 0;
    Object.assign(files, {
      [hanging]: async (...parameters: unknown[]) => {
        uses += 1;
        await answers;
        return original(...parameters);
      },
    });
    syncBuiltinESMExports();
    t.after(() => {
      Object.assign(files, { [hanging]: original });
      syncBuiltinESMExports();
    });
    const alive = setInterval(() => undefined, 1_000);
    t.after(() => clearInterval(alive));
    write("second");
    // The time of more than two looks.
    const rejected = tokens.generation;
    for (const end = performance.now() + 2_500; performance.now() < end; await sleep(50)) {
      const began = performance.now();
      assert.equal(await Promise.race([tokens.current("POST"), sleep(5_000)]), "first");
      assert.ok(performance.now() - began < 2_000);
    }
    const replaced = tokens.replace(rejected);
    await sleep(50);
    assert.equal(uses, 1);
    answer();
    await replaced;
    await expect(tokens, "second");
  });
}
