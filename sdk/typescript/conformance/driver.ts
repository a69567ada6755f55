/** Drives the TypeScript client by JSON lines; `crates/sdk-conformance/src/driver.rs` explains the commands. */

import { readFile } from "node:fs/promises";
import process from "node:process";
import { createInterface } from "node:readline";

import { Client, LicenseKey, type Seat, SeatkeeperError, type State, type TokenSource } from "../src/index.node.js";

interface Command {
  readonly id: number;
  readonly do: string;
  readonly url: string;
  readonly token?: string;
  readonly token_file?: string;
  readonly license_key?: string;
  readonly event_streams: boolean;
  readonly seat: string;
  readonly machine: string;
  readonly wait: number | null;
  readonly patience: number;
  readonly calls: number;
  readonly count: number;
}

let client: Client;
const seats = new Map<string, Seat>();

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function source(command: Command): TokenSource {
  const { token, token_file: file, license_key: key } = command;
  if (token !== undefined) return token;
  if (file !== undefined) return () => readFile(file, "utf8");
  return new LicenseKey(key ?? "");
}

function newClient(command: Command): Client {
  return new Client(command.url.split(" "), { token: source(command), eventStreams: command.event_streams });
}

function tell(seat: string, state: State): void {
  const { kind } = state;
  const told = kind === "lost" ? { kind, reason: state.reason, by: state.by, retry: state.retry } : { kind };
  print({ seat, at: performance.now(), state: told });
}

async function acquire(command: Command): Promise<object> {
  const { seat: name, machine, license_key: key, wait, patience } = command;
  const seat = await client.license(key ?? "").acquire({ machineId: machine, patience, ...(wait === null ? {} : { wait }) });
  seats.set(name, seat);
  seat.onChange((state) => tell(name, state));
  return { session: seat.sessionId };
}

function states(): object {
  const states = [...seats].map(([name, seat]) => [name, { kind: seat.state.kind, valid: isHeld(seat) }]);
  return { states: Object.fromEntries(states) };
}

/** Measures `check`, the best of ten rounds, in nanoseconds. */
function priceOfCheck(seat: Seat, calls: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round += 1) {
    const start = performance.now();
    for (let call = 0; call < calls; call += 1) seat.check();
    best = Math.min(best, ((performance.now() - start) * 1e6) / calls);
  }
  return best;
}

/** Opens a client, acquires, releases and closes, again and again. */
async function cycles(command: Command): Promise<void> {
  for (let cycle = 0; cycle < command.count; cycle += 1) {
    const client = newClient(command);
    const seat = await client.license(command.license_key ?? "").acquire({ machineId: command.machine });
    await seat.release();
    await client.close();
  }
}

/** Returns the KiB in use after a collection: the heap, and buffers outside the heap. */
function memory(): number {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024;
}

/** Returns the answer of `check`. */
function isHeld(seat: Seat): boolean {
  try {
    seat.check();
    return true;
  } catch (error) {
    if (error instanceof SeatkeeperError) return false;
    throw error;
  }
}

async function obey(command: Command): Promise<object> {
  switch (command.do) {
    case "open":
      client = newClient(command);
      return { ok: true };
    case "acquire":
      return acquire(command);
    case "state":
      return states();
    case "activity":
      seats.get(command.seat)?.activity();
      return { ok: true };
    case "release":
      return { confirmed: await seats.get(command.seat)?.release() };
    case "close":
      await client.close();
      return { ok: true };
    case "check":
      return { nanoseconds: priceOfCheck(seats.get(command.seat)!, command.calls) };
    case "cycles":
      await cycles(command);
      return { ok: true };
    case "memory":
      return { kib: memory() };
    case "crash":
      process.kill(process.pid, "SIGKILL");
      return {};
    default:
      throw new Error(`no command is named ${command.do}`);
  }
}

async function answer(command: Command): Promise<void> {
  try {
    print({ id: command.id, ...(await obey(command)) });
  } catch (error) {
    if (!(error instanceof SeatkeeperError)) throw error;
    print({ id: command.id, error: { code: error.code } });
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  void answer(JSON.parse(line) as Command);
}
