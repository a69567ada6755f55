import { type Answer, failed, readAnswer } from "./answer.js";
import { type Micros, NEVER, SECOND } from "./clocks.js";
import type { Event, Host } from "./events.js";
import type { Call } from "./request.js";
import { Retry } from "./retry.js";

/** The time that the token source has for a fresh token. */
export const TOKEN_TIMEOUT: Micros = 30 * SECOND;

/** The phase of a machine, as its exchange sees it. */
export interface Asker {
  /** Returns the call to send now, and its timeout. */
  call(): [call: Call, timeout: Micros];
  /** Returns true if a fresh token may be sent once after a 401. */
  mayRefresh(): boolean;
  /** Takes the outcome of the call; `start` then plans the next call. */
  answered(answer: Answer): void;
}

/** The events for which an exchange waits. */
type Waiting<T> = Generator<undefined, T, Event>;

/** One request at a time: its timer, the request, at most one fresh token, its answer. */
export class Exchange {
  /** The time of the step under way. */
  now: Micros = 0;
  /** The time of the next request, or the end of the time for a fresh token; the driver ends a request in flight. */
  wakeAt: Micros = NEVER;
  /** The requests of the present acquire and of its session. */
  retry = new Retry();
  readonly #host: Host;
  readonly #asker: Asker;
  #steps: Waiting<void> | undefined;
  #inFlight: number | undefined;
  #latest = 0;

  constructor(
    host: Host,
    asker: Asker,
  ) {
    this.#host = host;
    this.#asker = asker;
  }

  /** Cancels the present request, and asks at `at`, or at once. */
  start(at?: Micros): void {
    this.stop();
    this.#steps = this.#run(at);
    this.#steps.next();
  }

  /** Cancels the present request; returns false if none is in flight. */
  stop(): boolean {
    const request = this.#inFlight;
    this.#steps = this.#inFlight = undefined;
    this.wakeAt = NEVER;
    if (request === undefined) return false;
    this.#host.cancel(request);
    return true;
  }

  /** True while a request is in flight. */
  get isInFlight(): boolean {
    return this.#inFlight !== undefined;
  }

  /** Takes an event; one that does not belong to the present request changes nothing. */
  take(event: Event): void {
    this.#steps?.next(event);
  }

  *#run(at: Micros | undefined): Waiting<void> {
    if (at !== undefined) {
      // A token may come late.
      do yield* this.#until(at);
      while (this.now < at);
    }
    let answer = yield* this.#ask();
    if (answer.kind === "unauthenticated" && this.#asker.mayRefresh()) {
      this.#host.refreshToken();
      const isFresh = yield* this.#until(this.now + TOKEN_TIMEOUT);
      answer = isFresh ? yield* this.#ask() : failed("no-token");
    }
    this.#steps = undefined;
    this.#asker.answered(answer);
  }

  /** Waits until `at`; returns true if a fresh token arrives before, and false at once if there is none. */
  *#until(at: Micros): Waiting<boolean> {
    this.wakeAt = at;
    for (;;) {
      const { kind } = yield;
      if (kind === "token-ready" || kind === "token-failed" || (kind === "tick" && this.now >= at)) {
        this.wakeAt = NEVER;
        return kind === "token-ready";
      }
    }
  }

  *#ask(): Waiting<Answer> {
    const [call, timeout] = this.#asker.call();
    const sent = this.now;
    const id = (this.#latest += 1);
    this.retry.count(sent);
    this.#inFlight = id;
    this.#host.send({ ...call, id, timeout });
    for (;;) {
      const event = yield;
      if (event.kind !== "over" || event.request !== id) continue;
      const { outcome } = event;
      this.#inFlight = undefined;
      return typeof outcome === "string" ? failed(outcome) : readAnswer(outcome, call.method, sent);
    }
  }
}
