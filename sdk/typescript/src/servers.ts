import type { Call, Response } from "./core/request.js";
import { SeatkeeperError } from "./errors.js";
import type { Opened, StreamOpener } from "./stream-opener.js";
import { Transport, TransportError } from "./transport.js";

/** The reason of a signal that ends a request for lack of an answer. */
export const TIMED_OUT = new Error("no answer in time");

/** The servers of a client: equal nodes, of which one is in use until it does not serve. */
export class Servers {
  readonly #nodes: readonly Transport[];
  #inUse = 0;

  /** Parses the addresses; throws `SeatkeeperError` with the code `misuse` if one is none. */
  constructor(
    urls: readonly string[],
    send: typeof fetch,
    readonly opener: StreamOpener,
  ) {
    if (urls.length === 0) throw new SeatkeeperError("misuse", "a client needs the address of a server");
    this.#nodes = urls.map((url) => new Transport(url, send, opener));
  }

  /**
   * Sends one request to the node in use and returns its response. Throws `TransportError`.
   *
   * After a refused connection the next node gets the request. After another failure, or a 503 without `Retry-After`, the
   * next node gets the next request.
   */
  async send(call: Call, token: string | undefined, signal: AbortSignal, keepalive: boolean): Promise<Response> {
    let last: unknown = new TransportError("refused");
    for (let tries = 0; tries < this.#nodes.length; tries += 1) {
      const node = this.#inUse;
      try {
        const response = await this.#nodes[node]!.send(call, token, signal, keepalive);
        if (response.status === 503 && response.retryAfter === undefined) this.#leave(node);
        return response;
      } catch (error) {
        last = error;
        // A request that the machine gave up tells nothing of the node.
        if (signal.aborted && signal.reason !== TIMED_OUT) break;
        this.#leave(node);
        if (!(error instanceof TransportError) || error.failure !== "refused") break;
      }
    }
    throw last;
  }

  /** The number of the node in use. */
  get inUse(): number {
    return this.#inUse;
  }

  /** Opens an event stream at the node in use. A failure leaves the node in use: the stream is a help alone. */
  open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> {
    return this.#nodes[this.#inUse]!.open(path, token, lastEventId, signal);
  }

  /** Hands a call without a token to the browser; returns false if not. */
  beacon(call: Call): boolean {
    return this.#nodes[this.#inUse]!.beacon(call);
  }

  /** Puts the next node in use, unless another request has left `node` already. */
  #leave(node: number): void {
    if (this.#inUse === node) this.#inUse = (node + 1) % this.#nodes.length;
  }
}
