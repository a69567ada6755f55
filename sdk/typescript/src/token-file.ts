/// <reference types="node" />
/** The file of a token. */

import { readFile, stat } from "node:fs/promises";

import { TokenCache, type TokenMaker } from "./tokens.js";

/** The shortest pause between two looks at the file in milliseconds. */
const LOOK_INTERVAL = 1_000;

/**
 * Returns a source for `ClientOptions.token`: the file of a bearer token. The client reads the file again when the file
 * changes, and when the server rejects the token.
 */
export function tokenFile(path: string): TokenMaker {
  return { tokens: () => new FileToken(path) };
}

/** The token of a file that may change. */
class FileToken extends TokenCache {
  readonly #path: string;
  #seen: string | undefined;
  #lookAt = 0;

  constructor(path: string) {
    super(async () => {
      // A change after this look is seen by the next look.
      const seen = await this.#look();
      const text = await readFile(path, "utf8");
      this.#seen = seen;
      return text;
    });
    this.#path = path;
  }

  /** The first request after a change waits for the new token; without a good one the old token stays. */
  override async current(): Promise<string> {
    const now = performance.now();
    if (this.#seen !== undefined && now >= this.#lookAt) {
      this.#lookAt = now + LOOK_INTERVAL;
      if ((await this.#look().catch(() => this.#seen)) !== this.#seen) await this.renew();
    }
    return super.current();
  }

  async #look(): Promise<string> {
    const { dev, ino, mtimeNs, size } = await stat(this.#path, { bigint: true });
    return [dev, ino, mtimeNs, size].join();
  }
}
