/** A real `seatkeeper serve` for tests, from the binary that the variable `SDK_TEST_SERVER` names. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The path of the server's binary. Tests that need a server are skipped without it. */
export const BINARY = process.env["SDK_TEST_SERVER"];

/** A session, as an operator sees it. */
export interface Session {
  readonly session_id: string;
  readonly machine_id: string;
  readonly user_agent?: string;
  readonly device_name?: string;
}

/** An embedded server with a data directory of its own. */
export class Server {
  readonly dataDir = mkdtempSync(join(tmpdir(), "seatkeeper-sdk-"));
  url = "http://127.0.0.1:0";
  #process: ChildProcess | undefined;

  /** `settings` are variables of the server. */
  private constructor(private readonly settings: Readonly<Record<string, string>>) {}

  /** Starts a server on a free port. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
    const server = new Server(settings);
    await server.restart();
    return server;
  }

  /** Starts the server on the port of the last start, and waits until it listens. */
  async restart(): Promise<void> {
    const listen = this.url.replace("http://", "");
    const log = openSync(join(this.dataDir, "log"), "a");
    const server = spawn(BINARY!, ["serve", "--listen", listen, "--data-dir", this.dataDir], {
      stdio: ["ignore", "pipe", log],
      env: { ...process.env, ...this.settings },
    });
    this.#process = server;
    for await (const line of createInterface(server.stdout!)) {
      if (!line.startsWith("listening on ")) continue;
      this.url = line.split(" ").at(-1)!;
      server.stdout!.resume();
      return;
    }
    throw new Error(`the server did not start: see ${this.dataDir}/log`);
  }

  /** Ends the server as a crash does. */
  async kill(): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    if (server === undefined) return;
    const ended = once(server, "exit");
    server.kill("SIGKILL");
    await ended;
  }

  /** Ends the server, and removes its data. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** Runs a command of the binary against this server. */
  run(...command: string[]): string {
    const place = ["--data-dir", this.dataDir, ...(command[0] === "token" ? [] : ["--server", this.url])];
    return execFileSync(BINARY!, [...command, ...place], { encoding: "utf8" });
  }

  /** Creates a license, and returns its key. */
  license(key: string, { seats = 1, ttl = 3, clients = "token" } = {}): string {
    const terms = ["--seats", `${seats}`, "--ttl-seconds", `${ttl}`, "--clients", clients];
    this.run("license", "create", "--key", key, ...terms);
    return key;
  }

  /** Returns the id of a license. */
  licenseId(key: string): string {
    const { items } = JSON.parse(this.run("license", "list", "--json")) as { items: Record<string, string>[] };
    return items.find((license) => license["license_key"] === key)!["license_id"]!;
  }

  /** Returns a bearer token for `user`. */
  token(user = "ann"): string {
    return this.run("token", "--user", user).trim();
  }

  /** Ends a session as an operator does. */
  revoke(session: string | undefined): void {
    this.run("sessions", "revoke", session ?? "none");
  }

  /** Returns the live sessions. */
  liveSessions(): Session[] {
    return (JSON.parse(this.run("sessions", "list", "--live", "--json")) as { items: Session[] }).items;
  }

  /** Returns the machines that hold a seat now, in order. */
  liveMachines(): string[] {
    return this.liveSessions()
      .map((session) => session.machine_id)
      .sort();
  }
}
