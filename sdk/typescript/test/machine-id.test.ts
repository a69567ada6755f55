/** Ids of machines, with the known answers of every language. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { SeatkeeperError } from "../src/index.node.js";
import { derive, machineIdOn } from "../src/machine-id.js";
import { machineId } from "../src/node.js";

interface Fixture {
  known: { os_id: string; app_id: string; id: string }[];
  app_id: string;
  hosts: Host[];
}

interface Host {
  name: string;
  os: string;
  files?: Record<string, string>;
  commands?: Record<string, string>;
  id?: string;
  error?: string;
}

/** The compiled test stands in `build/test`. */
const FIXTURE = JSON.parse(readFileSync(new URL("../../../machine-ids.json", import.meta.url), "utf8")) as Fixture;
const PLATFORMS: Record<string, string> = { linux: "linux", macos: "darwin", windows: "win32", plan9: "plan9" };

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof SeatkeeperError && error.code === code;
}

test("each known answer is given", () => {
  assert.ok(FIXTURE.known.length >= 6);
  for (const { os_id, app_id, id } of FIXTURE.known) assert.equal(derive(os_id, app_id), id);
});

test("each host has its id or its error", () => {
  assert.ok(FIXTURE.hosts.length >= 19);
  for (const { name, os, files = {}, commands = {}, id, error } of FIXTURE.hosts) {
    const run = (command: readonly string[]) => commands[command.join(" ")];
    const machine = { platform: PLATFORMS[os]!, read: (path: string) => files[path], run };
    if (id !== undefined) assert.equal(machineIdOn(machine, FIXTURE.app_id), id, name);
    else assert.throws(() => machineIdOn(machine, FIXTURE.app_id), hasCode(error!), name);
    assert.throws(() => machineIdOn(machine, ""), hasCode("misuse"), name);
  }
});

test("this machine has the same id twice, or a reason", () => {
  try {
    assert.equal(machineId("com.example.cad"), machineId("com.example.cad"));
  } catch (error) {
    assert.ok(hasCode("container")(error) || hasCode("no-machine-id")(error));
  }
});
