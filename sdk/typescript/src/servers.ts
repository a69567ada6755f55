import type { Call, Response } from "./core/request.js";
import { SeatkeeperError } from "./errors.js";
import { type Opened, type Server, TIMED_OUT, TransportError } from "./server.js";

/** Several servers: equal nodes, of which one is in use until it does not serve. */
export class Servers implements Server {
  /** The changes of the node in use. A late answer belongs to its turn: the node may be in use again. */
  #turn = 0;
  /** The 5xx in a row of the node in use. */
  #unavailable = 0;
  /** The streams of the node in use: a signal of them all would have a listener for each, of which Node.js warns. */
  readonly #streams = new Set<AbortController>();

  /** Throws a `SeatkeeperError` with the code `misuse` without nodes. */
  constructor(private readonly nodes: readonly Server[]) {
    if (nodes.length === 0) throw new SeatkeeperError("misuse", "a client needs the address of a server");
  }

  /**
   * Sends one request to the node in use and returns its response. Rejects with a `TransportError`.
   *
   * After a refused connection the next node gets the request. After another failure, a 503 without `Retry-After`, or the
   * second 5xx in a row, the next node gets the next request: a node that is cut off tells `Retry-After` with every 503.
   */
  async send(call: Call, token: string | undefined, signal: AbortSignal): Promise<Response> {
    let last: unknown;
    for (let tries = 0; tries < this.nodes.length; tries += 1) {
      const turn = this.#turn;
      try {
        const response = await this.#node.send(call, token, signal);
        this.#count(turn, response);
        return response;
      } catch (error) {
        last = error;
        // A request that the machine gave up tells nothing of the node.
        if (signal.aborted && signal.reason !== TIMED_OUT) break;
        this.#leave(turn);
        if (!(error instanceof TransportError) || error.outcome !== "refused") break;
      }
    }
    throw last;
  }

  get isSharing(): boolean {
    return this.#node.isSharing;
  }

  /**
   * Opens an event stream at the node in use, until another one is. A failure leaves the node in use: the stream is a help
   * alone.
   */
  open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> {
    const stream = new AbortController();
    this.#streams.add(stream);
    const end = () => {
      this.#streams.delete(stream);
      stream.abort();
    };
    signal.addEventListener("abort", end);
    return this.#node.open(path, token, lastEventId, stream.signal);
  }

  beacon(call: Call): boolean {
    return this.#node.beacon(call);
  }

  get #node(): Server {
    return this.nodes[this.#turn % this.nodes.length]!;
  }

  /** Leaves a node that cannot serve. An answer of an earlier turn counts for nothing. */
  #count(turn: number, { status, retryAfter }: Response): void {
    if (this.#turn !== turn) return;
    // Every node answers 501 and 505 alike.
    this.#unavailable = status < 500 || status === 501 || status === 505 ? 0 : this.#unavailable + 1;
    if (this.#unavailable > 1 || (status === 503 && retryAfter === undefined)) this.#leave(turn);
  }

  /** Puts the next node in use, unless another request has ended the turn already. */
  #leave(turn: number): void {
    if (this.#turn !== turn || this.nodes.length === 1) return;
    this.#turn += 1;
    this.#unavailable = 0;
    for (const stream of this.#streams) stream.abort();
    this.#streams.clear();
  }
}
