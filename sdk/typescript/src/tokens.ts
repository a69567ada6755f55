/** A bearer token, or a function that returns a fresh one. */
export type TokenSource = string | (() => string | Promise<string>);

/** The token source has no token. */
export class NoToken extends Error {}

/** The token of the moment, fetched once for all requests that need it. */
export class TokenCache {
  readonly #source: TokenSource;
  #current: Promise<string> | undefined;

  constructor(source: TokenSource) {
    this.#source = source;
  }

  /** Returns the token of the moment; the first call fetches it. Throws `NoToken`. */
  current(): Promise<string> {
    this.#current ??= this.#fetch().catch((error: unknown) => {
      this.#current = undefined;
      throw error;
    });
    return this.#current;
  }

  /** Replaces the token by a fresh one; returns false and keeps the old token if there is none. */
  async refresh(): Promise<boolean> {
    try {
      this.#current = Promise.resolve(await this.#fetch());
      return true;
    } catch {
      return false;
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
    if (!/^[\x21-\x7e]+$/.test(line)) throw new NoToken("a token is one line of ASCII");
    return line;
  }
}
