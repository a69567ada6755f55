/// <reference types="node" />
/** The file of a token. */

import { readFile, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

import { TokenCache, type TokenMaker } from "./tokens.js";

/** The shortest pause between two looks at the file in milliseconds. */
const LOOK_INTERVAL = 1_000;
/** The longest wait of a request for the file in milliseconds: a file server may hang. */
const LOOK_PATIENCE = 1_000;

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
  #isLooking = false;
  /** The latest use of the file. */
  #use: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    super(() => this.#inTurn(() => this.#read()));
    this.#path = path;
  }

  /**
   * The first request after a change waits for the new token; without a good one the old token stays. A file that takes
   * longer than `LOOK_PATIENCE` replaces the token for a later request.
   */
  override async current(): Promise<string> {
    const now = performance.now();
    if (this.#seen !== undefined && !this.#isLooking && now >= this.#lookAt) {
      this.#lookAt = now + LOOK_INTERVAL;
      await Promise.race([this.#renewIfChanged(), sleep(LOOK_PATIENCE, undefined, { ref: false })]);
    }
    return super.current();
  }

  async #renewIfChanged(): Promise<void> {
    this.#isLooking = true;
    const seen = await this.#inTurn(() => this.#look()).catch(() => this.#seen);
    if (seen !== this.#seen) await this.renew().catch(() => undefined);
    this.#isLooking = false;
  }

  /** Uses the file after every earlier use: each use that hangs holds one of the four threads that serve the whole program. */
  #inTurn(use: () => Promise<string>): Promise<string> {
    const turn = this.#use.then(use, use);
    this.#use = turn;
    return turn;
  }

  async #read(): Promise<string> {
    // A change after this look is seen by the next look.
    const seen = await this.#look();
    const text = await readFile(this.#path, "utf8");
    this.#seen = seen;
    return text;
  }

  async #look(): Promise<string> {
    const { dev, ino, mtimeNs, size } = await stat(this.#path, { bigint: true });
    return [dev, ino, mtimeNs, size].join();
  }
}
