/** Hold a license seat of a Seatkeeper server: acquire, heartbeats, loss, release. */

import { type ClientOptions, PlatformClient } from "./client.js";
import { page } from "./page.js";

export * from "./api.js";

/** A client of one server. All seats of a client share one timer. */
export class Client extends PlatformClient {
  /**
   * Describes the server at `url`, `http://HOST:PORT` or `https://HOST:PORT`; sends no request. Several addresses are nodes
   * of one installation: the client stays with one node; after a failed connection, or a 503 without `Retry-After`, the
   * next node takes over. Throws a `SeatkeeperError` with the code `misuse` if `url` is no address.
   */
  constructor(url: string | readonly string[], options: ClientOptions) {
    super(url, options, page);
  }
}
