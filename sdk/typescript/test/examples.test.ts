/** Packs the package as a user installs it, runs the example on it, and compares the page of the package with the example. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { BINARY, Server } from "./server.js";

/** The compiled test stands in `build/test`. */
const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));

test("the page shows the example", () => {
  const page = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const example = readFileSync(join(PACKAGE, "examples/hold.mjs"), "utf8");
  assert.equal(/```js\n([^]*?)```/.exec(page)?.[1], example);
});

const skip = BINARY === undefined && "SDK_TEST_SERVER names no server";

test("the example runs on the packed package", { skip, timeout: 120_000 }, async () => {
  await using server = await Server.start();
  server.license("TOUR-2030", { ttl: 3, clients: "key" });
  const folder = mkdtempSync(join(tmpdir(), "seatkeeper-npm-"));
  try {
    execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: PACKAGE, stdio: "pipe" });
    const [archive] = readdirSync(folder);
    // An archive of npm is the folder `package`; a package without dependencies is installed by unpacking it.
    const home = join(folder, "node_modules/@seatkeeper");
    mkdirSync(home, { recursive: true });
    execFileSync("tar", ["-xzf", join(folder, archive!), "-C", home]);
    cpSync(join(home, "package"), join(home, "client"), { recursive: true });
    cpSync(join(PACKAGE, "examples/hold.mjs"), join(folder, "hold.mjs"));
    const env = { ...process.env, SEATS_URL: server.url, SEATS_MACHINE: "workstation-7" };
    const told = execFileSync(process.execPath, ["hold.mjs"], { cwd: folder, env, encoding: "utf8" });
    assert.match(told, /is held\nstep 1\nstep 2\nstep 3\nthe seat is given back\n$/);
    assert.deepEqual(server.liveMachines(), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
