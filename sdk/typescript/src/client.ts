import { type Micros, NEVER, SECOND } from "./core/clocks.js";
import { type ClientProgram, deviceDoor, type DeviceType, type Door, licenseDoor } from "./core/door.js";
import { PATIENCE, type Plan } from "./core/plan.js";
import type { State } from "./core/state.js";
import { Driver } from "./driver.js";
import { DeniedError, OfflineError, SeatkeeperError } from "./errors.js";
import type { Platform } from "./platform.js";
import { Seat } from "./seat.js";
import { Servers } from "./servers.js";
import type { Slot } from "./slot.js";
import type { TokenSource } from "./tokens.js";
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
   * Whether each seat keeps an event stream open, which tells the loss of the seat within a second. A stream costs one open
   * connection. Without streams the next heartbeat tells the loss. Default: true.
   */
  readonly eventStreams?: boolean;
  /**
   * The directory of the instance ids for `perProcess`, which is used for nothing else; Node.js alone. With `null` each
   * acquire has a random instance id. Default: `$XDG_STATE_HOME/seatkeeper` or `$HOME/.local/state/seatkeeper`; on macOS
   * `$HOME/Library/Application Support/Seatkeeper`; on Windows `%LOCALAPPDATA%\\Seatkeeper`.
   */
  readonly stateDir?: string | null;
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
  /** Seconds to try a server that does not answer; a longer `wait` prevails. Default: 10. */
  readonly patience?: number;
  /** Gives the acquire up; a seat that came too late is given back. */
  readonly signal?: AbortSignal;
  /** A callback for `Seat.onChange`. */
  readonly onChange?: (state: State) => unknown;
}

/** The options of an acquire. */
export interface AcquireOptions extends WaitOptions {
  /** A name of this machine that stays the same. */
  readonly machineId: string;
  /** A name of this process, for licenses that count processes. */
  readonly instanceId?: string;
  /**
   * Names the process by an id of the state directory, for licenses that count processes; Node.js alone. A program that is
   * started again after a crash gets its own seat back at once. An `instanceId` prevails.
   */
  readonly perProcess?: boolean;
  /** The program's name for itself, for the audit log; prevails over the client's `application`. */
  readonly userAgent?: string;
  /** An object of the program's own, for the audit log: at most 4 KiB. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** A device of the subscriber whom the client's token names. */
export interface DeviceIdentity {
  /** A name of this device that stays the same. */
  readonly deviceId: string;
  readonly deviceType: DeviceType;
  /** The owner's name for the device, shown to the owner's other devices. */
  readonly deviceName?: string;
}

/** The options of an admission. */
export interface AdmitOptions extends WaitOptions {
  /** The device's last session, if the program remembers one: a live session goes on. */
  readonly session?: string;
  /** The session that may end if every screen is in use: one of `DeniedError.devices`, by the user's choice. */
  readonly replace?: string;
}

/** A client of one server on some platform. */
export class PlatformClient {
  readonly #driver: Driver;
  readonly #program: ClientProgram | undefined;
  readonly #isKey: boolean;
  readonly #takeSlot: TakeSlot | undefined;
  readonly #platform: Platform;
  #detach: (() => void) | undefined;
  #isClosed = false;

  constructor(url: string | readonly string[], options: ClientOptions, platform: Platform) {
    const send = options.fetch ?? ((...request: Parameters<typeof fetch>) => fetch(...request));
    const urls = typeof url === "string" ? [url] : url;
    const servers = new Servers(urls, send, platform.opener(send, options.fetch !== undefined));
    const { application, eventStreams = true, stateDir } = options;
    // The server requires a name.
    this.#program = application && { name: application.name, version: application.version, sdk: SDK };
    this.#isKey = typeof options.token === "object";
    this.#takeSlot = platform.takeSlot?.bind(undefined, stateDir, urls[0]!);
    this.#platform = platform;
    this.#driver = new Driver(platform.clock(), servers, options.token, platform.report, eventStreams, platform.remedies);
  }

  /** Returns the license with this key. No request is sent. */
  license(key: string): License {
    return new License(key, this.#program, () => this.#open(), this.#takeSlot);
  }

  /** Returns the device with this identity. No request is sent. Throws `SeatkeeperError` `misuse` with a `LicenseKey`. */
  device(identity: DeviceIdentity): Device {
    if (this.#isKey) throw new SeatkeeperError("misuse", "a device needs a user's token, not a license key");
    return new Device(identity, () => this.#open());
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
    this.#detach ??= this.#platform.attach(this.#driver);
    return this.#driver;
  }
}

/** Takes the instance id of a seat of one process. */
type TakeSlot = (license: string, machineId: string) => Promise<Slot>;

/** A license on one server. */
export class License {
  // Private fields keep the key out of a log that shows the object.
  readonly #key: string;
  readonly #program: ClientProgram | undefined;
  readonly #open: () => Driver;
  readonly #takeSlot: TakeSlot | undefined;

  /** Made by `Client.license` alone. */
  constructor(key: string, program: ClientProgram | undefined, open: () => Driver, takeSlot: TakeSlot | undefined) {
    this.#key = key;
    this.#program = program;
    this.#open = open;
    this.#takeSlot = takeSlot;
  }

  /**
   * Acquires a seat, and keeps it until it is given back.
   *
   * Rejects with `DeniedError` if the server refuses, with `OfflineError` if the server does not answer, and with the reason
   * of `options.signal`.
   */
  async acquire(options: AcquireOptions): Promise<Seat> {
    const { machineId, instanceId, userAgent, metadata } = options;
    if (machineId === "") {
      throw new SeatkeeperError("misuse", "machineId is empty: want a name of this machine that stays the same");
    }
    const holder = { licenseKey: this.#key, machineId, instanceId, userAgent, metadata, client: this.#program };
    const planned = (id = instanceId) => plan(licenseDoor({ ...holder, instanceId: id }), options);
    if (!options.perProcess || instanceId !== undefined) return acquire(planned(), options, this.#open);
    if (this.#takeSlot === undefined) {
      throw new SeatkeeperError("misuse", "perProcess needs the files of Node.js: pass an instanceId instead");
    }
    // An option that is none throws before the slot is taken.
    planned();
    options.signal?.throwIfAborted();
    const slot = await this.#takeSlot(this.#key, machineId);
    return acquire(planned(slot.instanceId), options, this.#open, slot);
  }
}

/** A device of a subscriber. */
export class Device {
  /** Made by `Client.device` alone. */
  constructor(
    private readonly identity: DeviceIdentity,
    private readonly open: () => Driver,
  ) {}

  /**
   * Takes a screen of the subscriber's plan, and keeps it until it is given back.
   *
   * If every screen is in use, the plan decides: the stalest device is evicted, or the promise is rejected with a
   * `DeniedError` whose `devices` have the screens. Let the user choose a session, and admit again with `replace`. Only a
   * person takes a screen back that is lost as `evicted`: players would evict each other for ever.
   */
  async admit(options: AdmitOptions = {}): Promise<Seat> {
    const { deviceId, deviceType, deviceName } = this.identity;
    if (deviceId === "") {
      throw new SeatkeeperError("misuse", "deviceId is empty: want a name of this device that stays the same");
    }
    const { session, replace } = options;
    const door = deviceDoor({ deviceId, deviceType, deviceName, session, replaces: replace });
    return acquire(plan(door, options), options, this.open);
  }
}

/** Starts a seat, and waits for the outcome. */
async function acquire(
  wanted: Plan,
  { signal, onChange }: WaitOptions,
  open: () => Driver,
  slot?: Slot,
): Promise<Seat> {
  let driver: Driver;
  try {
    signal?.throwIfAborted();
    driver = open();
  } catch (error) {
    slot?.close();
    throw error;
  }
  const { key, shared } = driver.start(wanted, slot);
  const abort = () => driver.release(key);
  signal?.addEventListener("abort", abort);
  const result = new Promise<State>((resolve) => {
    shared.listen((state) => state.kind !== "acquiring" && resolve(state));
  });
  const state = await driver.wait(result).finally(() => signal?.removeEventListener("abort", abort));
  if (state.kind === "released") throw signal?.aborted ? signal.reason : closed();
  if (state.kind === "refused") {
    driver.release(key);
    const { remedies } = driver;
    if ("problem" in state) throw new DeniedError(state.problem, remedies[state.code]);
    throw new OfflineError(state.failure, state.requestId, remedies[state.failure]);
  }
  const seat = new Seat(key, shared, driver);
  if (onChange !== undefined) seat.onChange(onChange);
  return seat;
}

function plan(door: Door, { wait, patience }: WaitOptions): Plan {
  return {
    door,
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
