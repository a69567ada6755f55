/** The step after a token was rejected. */
export type Rejected =
  /** A fresh token came since the request was sent: send again at once. */
  | "superseded"
  /** A refresh is under way: wait for its result. */
  | "wait"
  /** Start the refresh, and call `TokenKeeper.finish` with its result. */
  | "refresh";

/** Coalesces refreshes: at most one at a time, for all seats of a client. */
export class TokenKeeper {
  /** The generation of the token to send; each fresh token has the next one. */
  current = 0;
  #isRefreshing = false;

  /** Decides on a request that was sent with the token of `sentWith` and answered 401. */
  reject(sentWith: number): Rejected {
    if (sentWith < this.current) return "superseded";
    if (this.#isRefreshing) return "wait";
    this.#isRefreshing = true;
    return "refresh";
  }

  /** Ends the refresh; `isFresh` says that a token came. */
  finish(isFresh: boolean): void {
    this.#isRefreshing = false;
    if (isFresh) this.current += 1;
  }
}
