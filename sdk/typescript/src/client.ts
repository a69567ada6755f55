import { hostClock } from "./clock.js";
import { type Micros, NEVER, SECOND } from "./core/clocks.js";
import { PATIENCE, type Plan } from "./core/plan.js";
import type { State } from "./core/state.js";
import { Driver } from "./driver.js";
import { DeniedError, OfflineError, SeatkeeperError } from "./errors.js";
import { attach, report } from "./host.js";
import { Seat } from "./seat.js";
import { Servers } from "./servers.js";
import type { TokenSource } from "./tokens.js";

/** The options of a client. */
export interface ClientOptions {
  /**
   * The bearer token, or a function that returns a fresh one. The client calls the function for the first request, and when
   * the server rejects the token. One call at a time serves every seat. A `LicenseKey` gets a license token of each
   * machine, and replaces the token ahead of its end.
   */
  readonly token: TokenSource;
  /** The function that sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** The options of an acquire. */
export interface AcquireOptions {
  /** A name of this machine that stays the same. */
  readonly machineId: string;
  /** A name of this process, for licenses that count processes. */
  readonly instanceId?: string;
  /** Seconds to ask again while every seat is in use, or `forever`. By default the first denial is final. */
  readonly wait?: number | "forever";
  /** Seconds to try a server that does not answer; a longer `wait` prevails. Default: 10. */
  readonly patience?: number;
  /** The program's name for itself, for the audit log. */
  readonly userAgent?: string;
  /** An object of the program's own, for the audit log: at most 4 KiB. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Gives the acquire up; a seat that came too late is given back. */
  readonly signal?: AbortSignal;
  /** A callback for `Seat.onChange`. */
  readonly onChange?: (state: State) => unknown;
}

/** A client of one server. All seats of a client share one timer. */
export class Client {
  readonly #driver: Driver;
  #detach: (() => void) | undefined;
  #isClosed = false;

  /**
   * Describes the server at `url`, `http://HOST:PORT` or `https://HOST:PORT`; sends no request. Several addresses are nodes
   * of one installation: the client stays with one node; after a failed connection, or a 503 without `Retry-After`, the
   * next node takes over. Throws a `SeatkeeperError` with the code `misuse` if `url` is no address.
   */
  constructor(url: string | readonly string[], options: ClientOptions) {
    const send = options.fetch ?? ((...request: Parameters<typeof fetch>) => fetch(...request));
    const servers = new Servers(typeof url === "string" ? [url] : url, send);
    this.#driver = new Driver(hostClock(), servers, options.token, report);
  }

  /** Returns the license with this key. No request is sent. */
  license(key: string): License {
    return new License(key, () => this.#open());
  }

  /** Makes every seat ask the server at once, for a host that knows of a sleep or a new network. */
  wake(): void {
    this.#driver.wake();
  }

  /** Gives every seat back within two seconds. The promise is never rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#driver.releaseAll();
    this.#detach?.();
    this.#detach = undefined;
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #open(): Driver {
    if (this.#isClosed) throw closed();
    this.#detach ??= attach(this.#driver);
    return this.#driver;
  }
}

/** A license on one server. */
export class License {
  // Private fields keep the key out of a log that shows the object.
  readonly #key: string;
  readonly #open: () => Driver;

  /** Made by `Client.license` alone. */
  constructor(key: string, open: () => Driver) {
    this.#key = key;
    this.#open = open;
  }

  /**
   * Acquires a seat, and keeps it until it is given back.
   *
   * Rejects with `DeniedError` if the server refuses, with `OfflineError` if the server does not answer, and with the reason
   * of `options.signal`.
   */
  async acquire(options: AcquireOptions): Promise<Seat> {
    const wanted = plan(this.#key, options);
    const { signal } = options;
    signal?.throwIfAborted();
    const driver = this.#open();
    const { key, shared } = driver.start(wanted);
    const abort = () => driver.release(key);
    signal?.addEventListener("abort", abort);
    const result = new Promise<State>((resolve) => {
      shared.listen((state) => state.kind !== "acquiring" && resolve(state));
    });
    const state = await driver.wait(result).finally(() => signal?.removeEventListener("abort", abort));
    if (state.kind === "released") throw signal?.aborted ? signal.reason : closed();
    if (state.kind === "refused") {
      driver.release(key);
      throw "problem" in state ? new DeniedError(state.problem) : new OfflineError(state.failure);
    }
    const seat = new Seat(key, shared, driver, report);
    if (options.onChange !== undefined) seat.onChange(options.onChange);
    return seat;
  }
}

function plan(licenseKey: string, options: AcquireOptions): Plan {
  const { machineId, instanceId, userAgent, metadata, wait, patience } = options;
  if (machineId === "") {
    throw new SeatkeeperError("misuse", "machineId is empty: want a name of this machine that stays the same");
  }
  return {
    licenseKey,
    machineId,
    instanceId,
    userAgent,
    metadata,
    wait: wait === undefined ? undefined : wait === "forever" ? NEVER : micros("wait", wait),
    patience: patience === undefined ? PATIENCE : micros("patience", patience),
  };
}

function micros(name: string, seconds: number): Micros {
  if (!(seconds >= 0)) throw new SeatkeeperError("misuse", `${name} is ${seconds}: want seconds from zero up`);
  return Math.round(seconds * SECOND);
}

function closed(): SeatkeeperError {
  return new SeatkeeperError("closed", "the client is closed");
}
