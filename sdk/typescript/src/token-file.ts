/// <reference types="node" />
/** The file of a token. */

import { readFile, stat } from "node:fs/promises";

import type { WatchedToken } from "./tokens.js";

/** The shortest pause between two looks at the file in milliseconds. */
const LOOK_INTERVAL = 1_000;

/**
 * Returns a source for `ClientOptions.token`: the file of a bearer token. The client reads the file again when the file
 * changes, and when the server rejects the token.
 */
export function tokenFile(path: string): WatchedToken {
  let seen: string | undefined;
  let lookAt = 0;
  const look = async () => {
    const { dev, ino, mtimeNs, size } = await stat(path, { bigint: true });
    return [dev, ino, mtimeNs, size].join();
  };
  const read = async () => {
    // A change after this look is seen by the next look.
    const found = await look();
    const text = await readFile(path, "utf8");
    seen = found;
    return text;
  };
  const hasChanged = async () => {
    const now = performance.now();
    if (now < lookAt) return false;
    lookAt = now + LOOK_INTERVAL;
    return look().then(
      (found) => found !== seen,
      () => false,
    );
  };
  return Object.assign(read, { hasChanged });
}
