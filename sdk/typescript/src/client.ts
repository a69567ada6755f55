import { type Micros, NEVER, SECOND } from "./core/clocks.js";
import {
  type ClientProgram,
  deviceDoor,
  type DeviceIdentity,
  type Door,
  licenseDoor,
  type LicenseHolder,
  PATIENCE_SECONDS,
  type Plan,
} from "./core/door.js";
import { EventKind } from "./core/events.js";
import type { State } from "./core/state.js";
import { Driver } from "./driver.js";
import { DeniedError, OfflineError, SeatkeeperError } from "./errors.js";
import type { Hold } from "./hold.js";
import type { Platform } from "./platform.js";
import type { Seat } from "./seat.js";
import { type Server, unlessAborted } from "./server.js";
import { TokenCache, type TokenSource } from "./tokens.js";
import { SDK } from "./version.js";

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
  /** The name and the version of the program, for the audit log. */
  readonly application?: Application;
  /**
   * Keeps event streams open, which tell the loss of a seat within a second. A stream costs one open connection; in Node.js up
   * to 100 seats share a stream. Without streams the next heartbeat tells the loss. Default: true.
   */
  readonly eventStreams?: boolean;
}

/** A program, as the audit log names it: each part has 1 to 100 characters. */
export interface Application {
  readonly name: string;
  readonly version?: string;
}

/** The options of every wait for a seat. */
export interface WaitOptions {
  /** Seconds to ask again while every seat is in use, or `forever`. By default the first denial is final. */
  readonly wait?: number | "forever";
  /**
   * Seconds to try a server that does not answer, with at least two seconds for each try; a longer `wait` prevails.
   * Default: 10.
   */
  readonly patience?: number;
  /** Gives the acquire up; a seat that came too late is given back. */
  readonly signal?: AbortSignal;
  /** A callback for `Seat.onChange`. */
  readonly onChange?: (state: State) => unknown;
}

/** The options of an acquire. */
export interface AcquireOptions extends WaitOptions, LicenseHolder {}

/** The options of an admission. */
export interface AdmitOptions extends WaitOptions {
  /** The device's last session, if the program remembers one: a live session goes on. */
  readonly session?: string;
  /** The session that may end if every screen is in use: one of `DeniedError.devices`, by the user's choice. */
  readonly replace?: string;
}

/** A license on one server. */
export interface License<Options = AcquireOptions> {
  /**
   * Acquires a seat, and keeps it until it is given back.
   *
   * Rejects with `DeniedError` if the server refuses, with `OfflineError` if the server does not answer, and with the reason
   * of `options.signal`.
   */
  acquire(options: Options): Promise<Seat>;
}

/** A device of a subscriber. */
export interface Device {
  /**
   * Takes a screen of the subscriber's plan, and keeps it until it is given back.
   *
   * If every screen is in use, the plan decides: the stalest device is evicted, or the promise is rejected with a
   * `DeniedError` whose `devices` have the screens. Let the user choose a session, and admit again with `replace`. Only a
   * person takes a screen back that is lost as `evicted`: players would evict each other for ever.
   */
  admit(options?: AdmitOptions): Promise<Seat>;
}

/** A client of one server on some platform. */
export class PlatformClient {
  readonly #driver: Driver;
  /** The program, for the audit log. */
  protected readonly program: ClientProgram | undefined;
  readonly #detach: () => void;
  #isClosed = false;

  constructor(server: Server, { token, application, eventStreams = true }: ClientOptions, platform: Platform) {
    const clock = platform.clock();
    const tokens = typeof token === "object" ? token.tokens(server, () => clock().boot) : new TokenCache(token);
    this.program = application && { ...application, sdk: SDK };
    this.#driver = new Driver(platform, clock, server, tokens, eventStreams);
    this.#detach = platform.attach(this.#driver);
  }

  /** Returns the license with this key. No request is sent. */
  license(key: string): License {
    return { acquire: async (options) => this.acquire(licenseDoor(key, options, this.program), options) };
  }

  /** Returns the device with this identity. No request is sent. */
  device(identity: DeviceIdentity): Device {
    return {
      admit: async (options = {}) => this.acquire(deviceDoor(identity, options.session, options.replace), options),
    };
  }

  /** Makes every seat ask the server at once, for a host that knows of a sleep or a new network. */
  wake(): void {
    this.#driver.wake();
  }

  /** Gives every seat back within two seconds. The promise is never rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#driver.releaseAll();
    this.#detach();
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Acquires a seat; `started` gets the seat before the outcome. */
  protected async acquire(door: Door, options: WaitOptions, started?: (hold: Hold) => void): Promise<Seat> {
    const { signal = new AbortController().signal, onChange } = options;
    await this.settle(door, signal);
    signal.throwIfAborted();
    if (this.#isClosed) throw closed();
    const hold = this.#driver.start(planOf(door, options));
    started?.(hold);
    const state = await this.#driver.platform.wait(outcome(hold, signal));
    if (state.kind === "released") {
      signal.throwIfAborted();
      throw closed();
    }
    if (state.kind === "refused") {
      // The requests of the release have causes of their own.
      const error = "problem" in state ? new DeniedError(state.problem) : new OfflineError(state.failure, state.requestId, hold.cause);
      void hold.release();
      throw this.#driver.platform.explain(error);
    }
    if (onChange) hold.onChange(onChange);
    return hold;
  }

  /**
   * Waits for the releases of this holder, which take two seconds at most, or for `signal`: an acquire would resume the session
   * that a release ends.
   */
  protected async settle(door: Door, signal: AbortSignal): Promise<void> {
    for (const hold of this.#driver.holds) {
      if (!signal.aborted && hold.isReleasing(door)) await unlessAborted(hold.release(), signal);
    }
  }
}

/** Waits for the first state after `acquiring`; `signal` gives the seat up meanwhile. */
async function outcome(hold: Hold, signal: AbortSignal): Promise<State> {
  const abandon = () => hold.step({ kind: EventKind.Abandon });
  signal.addEventListener("abort", abandon);
  let { state } = hold;
  for await (state of hold.states()) if (state.kind !== "acquiring") break;
  signal.removeEventListener("abort", abandon);
  return state;
}

/** Returns the plan of a wait. Throws a `SeatkeeperError` with the code `misuse` if a span of it is none. */
export function planOf(door: Door, { wait = 0, patience = PATIENCE_SECONDS }: WaitOptions): Plan {
  return { door, wait: wait === "forever" ? NEVER : micros(wait), patience: micros(patience) };
}

function micros(seconds: number): Micros {
  if (seconds >= 0) return Math.round(seconds * SECOND);
  throw new SeatkeeperError("misuse", `${seconds} is no number of seconds`);
}

function closed(): SeatkeeperError {
  return new SeatkeeperError("closed", "the client is closed");
}
