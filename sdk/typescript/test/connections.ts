/** A driver of event streams, with a clock, a token and connections of the tests' own. */

import { setImmediate as turn } from "node:timers/promises";

import { SECOND } from "../src/core/clocks.js";
import { licenseDoor } from "../src/core/door.js";
import type { StreamDriver } from "../src/event-stream.js";
import type { Opened } from "../src/server.js";
import type { Bearer } from "../src/tokens.js";

export const DOOR = licenseDoor("K", { machineId: "m" });

/** A connection that a stream opened. */
export class Connection {
  isClosed = false;
  #wake: () => void = () => undefined;
  readonly #queue: (Uint8Array | undefined)[] = [];

  constructor(
    readonly path: string,
    readonly token: string,
    readonly lastEventId: string | undefined,
    private readonly resolve: (opened: Opened) => void,
    private readonly reject: (error: unknown) => void,
    signal: AbortSignal,
  ) {
    // Bytes that have arrived before the end are still read.
    signal.addEventListener("abort", () => (this.isClosed = true));
  }

  async answer(status: number, type = "text/event-stream"): Promise<void> {
    this.resolve({ status, type, read: () => this.#read() });
    await turn();
  }

  async fail(): Promise<void> {
    this.reject(new Error("no connection"));
    await turn();
  }

  /** Sends a piece, or ends the answer. */
  async send(piece: string | Uint8Array | undefined): Promise<void> {
    this.#queue.push(typeof piece === "string" ? new TextEncoder().encode(piece) : piece);
    this.#wake();
    await turn();
  }

  async #read(): Promise<Uint8Array | undefined> {
    if (this.#queue.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#queue.shift();
  }
}

/** A driver that notes the connections of its streams. */
export class StreamDesk implements StreamDriver {
  boot = 1_000 * SECOND;
  random = 0.5;
  arrivals = 0;
  readonly bearer = { token: "t1", generation: 0, current: async () => this.bearer.token, replace: async () => undefined };
  readonly tokens = { bearer: (): Bearer => this.bearer };
  readonly connections: Connection[] = [];

  constructor() {
    Math.random = () => this.random;
  }

  readonly server = {
    open: (path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> =>
      new Promise((resolve, reject) => {
        this.connections.push(new Connection(path, token, lastEventId, resolve, reject, signal));
      }),
  };

  tick(): void {
    this.arrivals += 1;
  }
}
