import {
  type AcquireOptions as AnyAcquireOptions,
  type ClientOptions as AnyClientOptions,
  type Device,
  type License as AnyLicense,
  planOf,
  PlatformClient,
  type WaitOptions,
} from "./client.js";
import { type DeviceIdentity, type Door, licenseDoor } from "./core/door.js";
import { SeatkeeperError } from "./errors.js";
import type { Hold } from "./hold.js";
import { endWithProcess, node } from "./node-platform.js";
import { NodeTransport } from "./node-transport.js";
import type { Seat } from "./seat.js";
import { Servers } from "./servers.js";
import { takeSlot } from "./state-dir.js";

/** The options of a client on Node.js. */
export interface ClientOptions extends AnyClientOptions {
  /**
   * The directory of the instance ids for `perProcess`, which is used for nothing else. With `null` each acquire has a random
   * instance id. Default: `$XDG_STATE_HOME/seatkeeper` or `$HOME/.local/state/seatkeeper`; on macOS
   * `$HOME/Library/Application Support/Seatkeeper`; on Windows `%LOCALAPPDATA%\\Seatkeeper`.
   */
  readonly stateDir?: string | null;
}

/** The options of an acquire on Node.js. */
export interface AcquireOptions extends AnyAcquireOptions {
  /**
   * Names the process by an id of the state directory, for licenses that count processes. A program that is started again
   * after a crash gets its own seat back at once. An `instanceId` prevails.
   */
  readonly perProcess?: boolean;
}

/** A license on one server, or on the nodes of one installation. */
export type License = AnyLicense<AcquireOptions>;

/** A client of one server, or of the nodes of one installation. All seats of a client share one timer. */
export class Client extends PlatformClient {
  readonly #server: string;
  readonly #stateDir: string | null | undefined;
  readonly #isKey: boolean;

  /**
   * Describes the server at `url`, `http://HOST:PORT` or `https://HOST:PORT`; sends no request. Several addresses are nodes
   * of one installation: the client stays with one node; after a failed connection, a 503 without `Retry-After`, or the
   * second 5xx in a row, the next node takes over. Throws a `SeatkeeperError` with the code `misuse` if `url` is no address.
   */
  constructor(url: string | readonly string[], options: ClientOptions) {
    const urls = typeof url === "string" ? [url] : url;
    super(new Servers(urls.map((url) => new NodeTransport(url, options.fetch, urls.length > 1))), options, node);
    this.#server = urls[0]!;
    this.#stateDir = options.stateDir;
    this.#isKey = typeof options.token === "object" && "tenant" in options.token;
  }

  override license(key: string): License {
    return { acquire: (options) => this.#acquire(key, options) };
  }

  /** Returns the device with this identity. No request is sent. Throws `SeatkeeperError` `misuse` with a `LicenseKey`. */
  override device(identity: DeviceIdentity): Device {
    if (this.#isKey) throw new SeatkeeperError("misuse", "a device needs a user's token, not a license key");
    const device = super.device(identity);
    if (identity.deviceId !== "") return device;
    return { admit: async () => Promise.reject(nameless("deviceId", "device")) };
  }

  protected override acquire(door: Door, options: WaitOptions, started?: (hold: Hold) => void): Promise<Seat> {
    return super.acquire(door, options, (hold) => {
      endWithProcess(hold);
      started?.(hold);
    });
  }

  async #acquire(license: string, options: AcquireOptions): Promise<Seat> {
    const { machineId, perProcess = false, instanceId, signal = new AbortController().signal } = options;
    if (machineId === "") throw nameless("machineId", "machine");
    const metadata = copyOf(options.metadata);
    const door = (instanceId?: string) => licenseDoor(license, { ...options, metadata, instanceId }, this.program);
    const own = door(instanceId);
    // An option that is none throws before a slot is taken.
    planOf(own, options);
    if (!perProcess || instanceId !== undefined) return this.acquire(own, options);
    // A release under way still has its slot.
    await this.settle(own, signal);
    const slot = await takeSlot(this.#stateDir, { server: this.#server, license, machineId }, signal);
    let held = undefined as Hold | undefined;
    const started = (hold: Hold) => {
      held = hold;
      // The next process may have the id once no release of this seat is on its way.
      void hold.finished.then(() => slot.close());
    };
    try {
      const seat = await this.acquire(door(slot.instanceId), options, started);
      return Object.assign(seat, { warning: slot.warning });
    } catch (error) {
      // Under another id the next acquire could be denied because of this one's session.
      if (!signal.aborted) await held?.release();
      throw error;
    } finally {
      if (!held) slot.close();
    }
  }
}

/** Returns the metadata as JSON has them: the program may change its object while requests are sent. */
function copyOf(metadata: AcquireOptions["metadata"]): AcquireOptions["metadata"] {
  try {
    return metadata && (JSON.parse(JSON.stringify(metadata)) as AcquireOptions["metadata"]);
  } catch (error) {
    throw new SeatkeeperError("misuse", `the metadata are no JSON: ${String(error)}`);
  }
}

function nameless(option: string, owner: string): SeatkeeperError {
  return new SeatkeeperError("misuse", `${option} is empty: want a name of this ${owner} that stays the same`);
}
