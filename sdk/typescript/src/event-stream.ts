import { type Micros, NEVER, part, SECOND } from "./core/clocks.js";
import { parseObject, text } from "./core/problem.js";
import { EventParser, type ServerEvent } from "./sse.js";
import type { Opened } from "./stream-opener.js";

/** The server sends a comment every 15 s: three missed comments are a dead connection. */
const SILENCE_MAX = 45 * SECOND;
/** The longest backoff before the second try; each later backoff doubles. */
const BACKOFF_FIRST = SECOND;
const BACKOFF_MAX = 60 * SECOND;
/** A stream that lived this long starts the backoff anew. */
const LIFE_MIN = 60 * SECOND;

/** The driver's side of a stream. */
export interface StreamHost {
  /** The clock that counts sleep. */
  readonly now: () => Micros;
  /** A new random number in 0.0..1.0. */
  readonly random: () => number;
  /** Returns the token of the moment. */
  readonly token: () => Promise<string>;
  /** Sends the request for the stream. */
  readonly open: (token: string, lastEventId: string | undefined, signal: AbortSignal) => Promise<Opened>;
  /** Takes the end of the session. */
  readonly ended: (reason: string, by: string | undefined) => void;
  /** Takes the arrival of bytes, also of a comment. */
  readonly heard: () => void;
}

/** The result of a connection. */
type Outcome = "cut" | "over" | { readonly rejected: string };

/**
 * The event stream of one session: tells the end of the session at once.
 *
 * A stream is a help alone: a failure is retried with backoff, and told to nobody. `tick` is due at `wakeAt`.
 */
export class EventStream {
  #connection: AbortController | undefined;
  /** The next try, or the end of patience with a silent connection. */
  #at: Micros;
  #failures = 0;
  /** The time at which the answer of the connection began. */
  #openSince: Micros | undefined;
  #lastEventId: string | undefined;
  /** The token that the server rejected: no try before there is another. */
  #rejected: string | undefined;

  /** Opens the stream of `session` at the next tick. */
  constructor(
    readonly session: string,
    private readonly host: StreamHost,
  ) {
    this.#at = host.now();
  }

  /** The time at which the stream wants a tick. */
  get wakeAt(): Micros {
    return this.#at;
  }

  /** Connects when the backoff is over, and drops a connection that has been silent for too long. */
  tick(): void {
    if (this.host.now() < this.#at) return;
    if (this.#connection === undefined) this.#connect();
    else this.#ended("cut");
  }

  /** Connects anew at once: the server is another one, or the token is fresh. */
  reconnect(): void {
    if (this.#at === NEVER) return;
    this.#drop();
    this.#failures = 0;
    this.#connect();
  }

  /** Drops the connection for one long backoff, so that requests get the connection. */
  yieldConnection(): void {
    if (this.#connection === undefined) return;
    this.#failures = Math.log2(BACKOFF_MAX / BACKOFF_FIRST);
    this.#openSince = undefined;
    this.#ended("cut");
  }

  /** Ends the stream for good. */
  close(): void {
    this.#drop();
    this.#at = NEVER;
  }

  #drop(): void {
    this.#connection?.abort();
    this.#connection = this.#openSince = undefined;
  }

  #connect(): void {
    const connection = new AbortController();
    this.#connection = connection;
    this.#at = this.host.now() + SILENCE_MAX;
    this.#read(connection.signal)
      .catch((): Outcome => "cut")
      .then((outcome) => {
        if (this.#connection === connection) this.#ended(outcome);
      });
  }

  /** Closes the connection, and plans the next try. */
  #ended(outcome: Outcome): void {
    const now = this.host.now();
    if (this.#openSince !== undefined && now - this.#openSince >= LIFE_MIN) this.#failures = 0;
    this.#drop();
    if (outcome === "over") {
      this.#at = NEVER;
      return;
    }
    if (outcome !== "cut") this.#rejected = outcome.rejected;
    const backoff = Math.min(BACKOFF_FIRST * 2 ** this.#failures, BACKOFF_MAX);
    this.#failures += 1;
    this.#at = now + part(backoff, this.host.random());
  }

  async #read(signal: AbortSignal): Promise<Outcome> {
    const token = await this.host.token();
    if (signal.aborted || token === this.#rejected) return "cut";
    const { status, type, pieces } = await this.host.open(token, this.#lastEventId, signal);
    if (signal.aborted) return "cut";
    // 204: the end of the session was told. 404: the session is none of the caller's.
    if (status === 204 || status === 404) return "over";
    if (status === 401) return { rejected: token };
    if (status !== 200 || !/^text\/event-stream\b/i.test(type)) return "cut";
    this.#openSince = this.host.now();
    const parser = new EventParser(this.#lastEventId);
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    for await (const piece of pieces) {
      if (signal.aborted) break;
      this.#at = this.host.now() + SILENCE_MAX;
      const events = parser.push(decoder.decode(piece, { stream: true }));
      this.#lastEventId = parser.lastEventId;
      for (const event of events) this.#take(event);
      if (!signal.aborted) this.host.heard();
    }
    return "cut";
  }

  /** Tells an end. Every event with a reason is one; events of later servers are ignored. */
  #take({ data }: ServerEvent): void {
    const members = parseObject(data);
    const reason = text(members?.["reason"]);
    if (reason === undefined || members?.["session_id"] !== this.session) return;
    this.host.ended(reason, causeOf(members["by"]));
  }
}

/** Returns the cause of an end: the name, the type or the session of the successor. */
function causeOf(by: unknown): string | undefined {
  if (typeof by !== "object" || by === null) return text(by);
  const successor = by as Readonly<Record<string, unknown>>;
  return text(successor["device_name"]) ?? text(successor["device_type"]) ?? text(successor["session_id"]);
}
