import { type Answer, failed, Kind, readAnswer } from "./answer.js";
import { type Micros, NEVER, SECOND } from "./clocks.js";
import { EventKind, type Event, type Host } from "./events.js";
import type { Call, Request } from "./request.js";
import { Retry } from "./retry.js";

/** The time that the token source has for a fresh token. */
export const TOKEN_TIMEOUT: Micros = 30 * SECOND;

/** The token of the present request. */
const enum Token {
  /** The server has not rejected it. */
  First,
  /** The server rejected it, and the token source has not answered. */
  Awaited,
  /** A fresh token came: another rejection is final. */
  Fresh,
}

/** A request in flight. */
interface Flight extends Request {
  readonly sent: Micros;
}

/** One request at a time: its timer, the request, at most one fresh token, its answer. */
export abstract class Exchange {
  /** The time of the step under way. */
  protected instant!: Micros;
  /** The time of the next request, or the end of the time for a fresh token; the driver ends a request in flight. */
  protected askAt!: Micros;
  /** The requests of the present acquire and of its session. */
  protected attempts!: Retry;
  readonly #host: Host;
  #token!: Token;
  #flight: Flight | undefined;
  #latest = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Returns the call to send now, and its timeout. */
  protected abstract call(): [call: Call, timeout: Micros];

  /** Returns the end of the time for a fresh token after a 401. A passed point means that no fresh token is sent. */
  protected abstract tokenOver(): Micros;

  /** Takes the outcome of the call, then plans the next call by `start`, or `stop`s. */
  protected abstract answered(answer: Answer): void;

  /** Cancels the present request, and asks at `at`, or at once. */
  protected start(at?: Micros): void {
    this.stop();
    if (at === undefined) this.#ask();
    else this.askAt = at;
  }

  /** Cancels the present request; returns false if none is in flight. */
  protected stop(): boolean {
    const flight = this.#flight;
    if (flight) this.#host.cancel(flight.id);
    this.#flight = undefined;
    this.#token = Token.First;
    this.askAt = NEVER;
    return !!flight;
  }

  /** True while a request is in flight. */
  protected get isInFlight(): boolean {
    return !!this.#flight;
  }

  /** The time of the request in flight. */
  protected get sentAt(): Micros {
    return this.#flight!.sent;
  }

  /** Takes an event; one that does not belong to the present request changes nothing. */
  protected take(event: Event): void {
    const { kind } = event;
    const isDue = kind === EventKind.Tick && this.instant >= this.askAt;
    if (kind === EventKind.Over) {
      const flight = this.#flight;
      if (flight?.id !== event.request) return;
      this.#flight = undefined;
      const { outcome } = event;
      this.#over(typeof outcome === "string" ? failed(outcome) : readAnswer(outcome, flight.method, flight.sent));
    } else if (this.#token !== Token.Awaited) {
      // A token may come late.
      if (isDue) this.#ask();
    } else if (kind === EventKind.TokenReady) {
      this.#token = Token.Fresh;
      this.#ask();
    } else if (kind === EventKind.TokenFailed || isDue) {
      this.#over(failed("no-token"));
    }
  }

  #ask(): void {
    const [call, timeout] = this.call();
    this.askAt = NEVER;
    this.attempts.count(this.instant);
    this.#flight = { ...call, id: (this.#latest += 1), timeout, sent: this.instant };
    this.#host.send(this.#flight);
  }

  #over(answer: Answer): void {
    const over = this.tokenOver();
    if (answer.kind === Kind.Unauthenticated && this.#token === Token.First && over > this.instant) {
      this.#token = Token.Awaited;
      this.askAt = over;
      return this.#host.refreshToken();
    }
    this.answered(answer);
  }
}
