/** Hold a seat of a Seatkeeper server in a page: acquire, heartbeats, loss, release. */

import { type ClientOptions, PlatformClient } from "./client.js";
import { page } from "./page.js";
import { Transport } from "./transport.js";

export type { AcquireOptions, ClientOptions } from "./client.js";
export * from "./names.js";

/** A client of one server. All seats of a client share one timer. */
export class Client extends PlatformClient {
  /**
   * Describes the server at `url`, `http://HOST:PORT` or `https://HOST:PORT`; sends no request. Throws a `TypeError` if `url`
   * is no address.
   */
  constructor(url: string, options: ClientOptions) {
    super(new Transport(url, options.fetch), options, page);
  }
}
