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

  /** Replaces the token by a fresh one; returns false and keeps the old token if none comes within `timeout` milliseconds. */
  async refresh(timeout: number): Promise<boolean> {
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
    if (!/^[\x21-\x7e]+$/.test(line)) throw new NoToken("a token is one line of ASCII");
    return line;
  }
}
