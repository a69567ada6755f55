import type { Micros } from "./core/clocks.js";
import { LicenseTokens } from "./license-tokens.js";
import type { Server } from "./server.js";
import type { TokenMaker, Tokens } from "./tokens.js";

/** The key of a license that issues license tokens (`--clients key`): a program with the key needs no other token. */
export class LicenseKey implements TokenMaker {
  // Private fields keep the key out of a log that shows the object.
  readonly #key: string;
  /** The tenant that owns the license; `undefined` is the tenant `default`. */
  readonly tenant: string | undefined;

  constructor(key: string, options: { readonly tenant?: string } = {}) {
    this.#key = key;
    this.tenant = options.tenant;
  }

  /** Used by the client alone, which thus has the code of license tokens in programs with a `LicenseKey` only. */
  tokens(server: Server, now: () => Micros): Tokens {
    const { tenant } = this;
    // `JSON.stringify` leaves an `undefined` tenant out.
    return new LicenseTokens(server, (machineId) => ({ license_key: this.#key, machine_id: machineId, tenant }), now);
  }
}
