import type { Micros } from "./core/clocks.js";
import type { Response } from "./core/request.js";
import type { LicenseKey } from "./license-key.js";
import type { Servers } from "./servers.js";

/** A bearer token, a function that returns a fresh one, or a license key. */
export type TokenSource = string | (() => string | Promise<string>) | WatchedToken | LicenseKey;

/** A function that returns a fresh bearer token, and knows whether there is another one. */
export interface WatchedToken {
  (): Promise<string>;
  /** Settles with true if the next call may return another token than the last. */
  hasChanged(): Promise<boolean>;
}

/** The token source has no token. */
export class NoToken extends Error {
  /** The server's answer to a request for a license token. */
  readonly answer: Response | undefined;

  constructor(message: string, options: ErrorOptions & { readonly answer?: Response } = {}) {
    super(message, options);
    this.answer = options.answer;
  }
}

/** The tokens of a client, each under the name of its owner. */
export interface Tokens {
  /** Returns the owner of the token for a seat of this machine. */
  owner(machineId: string): string;
  /** Returns the token of the moment; the first call fetches it. Throws `NoToken`. */
  current(owner: string): Promise<string>;
  /** Replaces a rejected token; returns false if none comes within `timeout` milliseconds. */
  refresh(owner: string, timeout: number): Promise<boolean>;
}

/** A source whose tokens the client asks its servers for. */
export interface KeyedTokens {
  tokens(servers: Servers, now: () => Micros): Tokens;
}

/** Returns true for one line of ASCII without spaces. */
export function isToken(line: string): boolean {
  return /^[\x21-\x7e]+$/.test(line);
}

/** The token of the moment, fetched once for all requests that need it. */
export class TokenCache implements Tokens {
  readonly #source: Exclude<TokenSource, LicenseKey>;
  #current: Promise<string> | undefined;

  constructor(source: Exclude<TokenSource, LicenseKey>) {
    this.#source = source;
  }

  /** Returns one name for all machines: they share the token. */
  owner(): string {
    return "";
  }

  async current(): Promise<string> {
    const source = this.#source;
    if (this.#current !== undefined && typeof source === "function" && "hasChanged" in source) {
      const old = this.#current;
      // The first request after the change waits for the new token; without a good one the old token stays.
      if (await source.hasChanged()) this.#current = this.#fetch().catch(() => old);
    }
    this.#current ??= this.#fetch().catch((error: unknown) => {
      this.#current = undefined;
      throw error;
    });
    return this.#current;
  }

  /** Replaces the token by a fresh one; returns false and keeps the old token if none comes within `timeout` milliseconds. */
  async refresh(_owner: string, timeout: number): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const over = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new NoToken("the token source does not answer")), timeout);
      // A token source alone keeps no Node.js process alive; browsers have no such notion.
      (timer as { unref?: () => void }).unref?.();
    });
    try {
      this.#current = Promise.resolve(await Promise.race([this.#fetch(), over]));
      return true;
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  async #fetch(): Promise<string> {
    let token: string;
    try {
      token = typeof this.#source === "string" ? this.#source : await this.#source();
    } catch (error) {
      throw new NoToken("the token source failed", { cause: error });
    }
    const line = String(token).trim();
    if (!isToken(line)) throw new NoToken("a token is one line of ASCII");
    return line;
  }
}
