/** Packs the package as a user installs it, runs the example on it, and compares the page of the package with the example. */

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";

import { BINARY, Server } from "./server.js";

/** The compiled test stands in `build/test`. */
const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));

test("the page shows the example", () => {
  const page = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const example = readFileSync(join(PACKAGE, "examples/hold.mjs"), "utf8");
  assert.equal(/```js\n([^]*?)```/.exec(page)?.[1], example);
});

/** Uses each entry point of the package. */
const PROGRAM = `
import { Client, type Seat } from "@seatkeeper/client";
import { machineId, tokenFile } from "@seatkeeper/client/node";

export async function work(use: (seat: Seat) => Promise<void>): Promise<void> {
  await using client = new Client("https://seats.example", { token: tokenFile("token") });
  await using seat = await client.license("K").acquire({ machineId: machineId("com.example.program") });
  await use(seat);
}
`;

const skip = BINARY === undefined && "SDK_TEST_SERVER names no server";

/** Packs the package, and unpacks it into a folder of the test with the examples. */
function install(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "seatkeeper-npm-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: PACKAGE, stdio: "pipe" });
  const [archive] = readdirSync(folder);
  // An archive of npm is the folder `package`; a package without dependencies is installed by unpacking it.
  const home = join(folder, "node_modules/@seatkeeper");
  mkdirSync(home, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, archive!), "-C", home]);
  cpSync(join(home, "package"), join(home, "client"), { recursive: true });
  cpSync(join(PACKAGE, "examples"), folder, { recursive: true });
  return folder;
}

test("the examples run on the packed package", { skip, timeout: 240_000 }, async (t) => {
  await using server = await Server.start();
  server.license("TOUR-2030", { ttl: 3, clients: "key" });
  const cwd = install(t);
  const env = { ...process.env, SEATS_URL: server.url, SEATS_MACHINE: "workstation-7" };
  await t.test("a program without the types of Node.js compiles", () => {
    writeFileSync(join(cwd, "program.mts"), PROGRAM);
    const compiler = join(PACKAGE, "node_modules/typescript/bin/tsc");
    const options = ["--noEmit", "--strict", "--target", "ES2022", "--lib", "ES2022,DOM", "--skipLibCheck", "false"];
    for (const kind of [["nodenext"], ["esnext", "--moduleResolution", "bundler"]]) {
      const { stdout } = spawnSync(process.execPath, [compiler, ...options, "--module", ...kind, "program.mts"], { cwd, encoding: "utf8" });
      assert.equal(stdout, "", kind.join(" "));
    }
  });
  await t.test("hold", () => {
    const told = execFileSync(process.execPath, ["hold.mjs"], { cwd, env, encoding: "utf8" });
    assert.match(told, /is held\nstep 1\nstep 2\nstep 3\nthe seat is given back\n$/);
    assert.deepEqual(server.liveMachines(), []);
  });
  await t.test("the editor saves the work when its seat is lost", async () => {
    const editor = spawn(process.execPath, ["editor.mjs", "letter.txt"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(editor, "exit");
    const lines = createInterface(editor.stdout)[Symbol.asyncIterator]();
    assert.match(String((await lines.next()).value), /^Type your letter/);
    editor.stdin.write("Dear server,\n");
    server.run("sessions", "revoke", "--license", server.licenseId("TOUR-2030"));
    assert.match(String((await lines.next()).value), /^Your seat is lost \(revoked.*letter\.rescued/);
    assert.deepEqual(await ended, [1, null]);
    assert.equal(readFileSync(join(cwd, "letter.rescued"), "utf8"), "Dear server,\n");
  });
});
