import { type Micros, MILLISECOND } from "./core/clocks.js";
import { TOKEN_TIMEOUT } from "./core/exchange.js";
import { type Server, unlessAborted } from "./server.js";

/** A bearer token, a function that returns a fresh one, or a source that makes tokens by itself. */
export type TokenSource = string | (() => string | Promise<string>) | TokenMaker;

/** A `LicenseKey`, or a file of `tokenFile`. */
export interface TokenMaker {
  /** Used by the client alone. `now` is the clock that counts sleep. */
  tokens(server: Server, now: () => Micros): Tokens;
}

/** The tokens of a client. */
export interface Tokens {
  /** Returns the token of a seat of this machine or device. Seats with one token have one bearer, and share event streams. */
  bearer(holder: string): Bearer;
}

/** A token that is replaced from time to time. */
export interface Bearer {
  /** The number of times that a fresh token came. */
  readonly generation: number;
  /**
   * Returns the token of the moment for a request of this method. Rejects with the error of the token source; a
   * `TransportError` has the outcome of the request.
   */
  current(method: string): Promise<string>;
  /** Replaces the token of a generation, unless there is a later one. Rejects with the error of the source if none comes. */
  replace(rejected: number): Promise<void>;
}

/** Returns true for one line of ASCII without spaces. */
export function isToken(line: string): boolean {
  return /^[!-~]+$/.test(line);
}

/** The token of all seats of a client, fetched once for all requests that need it. */
export class TokenCache implements Tokens, Bearer {
  generation = 0;
  readonly #source: () => string | Promise<string>;
  #current: Promise<string> | undefined;
  #refresh: Promise<void> | undefined;

  constructor(source: Exclude<TokenSource, TokenMaker>) {
    this.#source = typeof source === "string" ? () => source : source;
  }

  bearer(): this {
    return this;
  }

  current(): Promise<string> {
    return (this.#current ??= this.#fetch().catch((error: unknown) => {
      this.#current = undefined;
      throw error;
    }));
  }

  /** Without a fresh token the old one stays. */
  async replace(rejected: number): Promise<void> {
    if (rejected >= this.generation) {
      await (this.#refresh ??= this.renew().finally(() => (this.#refresh = undefined)));
    }
  }

  /** Fetches another token; rejects and keeps the old one if none comes in time. */
  protected async renew(): Promise<void> {
    const fresh = this.#fetch();
    await fresh;
    this.#current = fresh;
    this.generation += 1;
  }

  /** Asks the source; a source that hangs has no token. */
  async #fetch(): Promise<string> {
    const token = await unlessAborted(this.#source(), AbortSignal.timeout(TOKEN_TIMEOUT / MILLISECOND));
    const line = String(token).trim();
    if (isToken(line)) return line;
    throw new Error("no bearer token");
  }
}
