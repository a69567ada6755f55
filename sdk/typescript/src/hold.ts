import type { Terms } from "./core/answer.js";
import { type Micros, SECOND } from "./core/clocks.js";
import type { Plan } from "./core/door.js";
import type { Event, Finish, Host } from "./core/events.js";
import { Machine } from "./core/machine.js";
import { eventsPath, releaseByCode, type Request } from "./core/request.js";
import { type State, stateAt } from "./core/state.js";
import type { Driver } from "./driver.js";
import { EventStream } from "./event-stream.js";
import { rejectedBy, TIMED_OUT, TransportError } from "./server.js";
import type { Bearer } from "./tokens.js";

/** One seat of a driver: steps the machine, sends its requests, keeps the event stream, and tells the listeners. */
export class Hold implements Host {
  /** The terms of the latest session. */
  grant: Terms | undefined;
  /** The end of validity on the clock that counts sleep; 0 is invalid. */
  validUntil: Micros = 0;
  /** Settles with the result of the release. */
  readonly finished: Promise<Finish>;
  #finish!: (finish: Finish) => void;
  readonly #driver: Driver;
  readonly #plan: Plan;
  readonly #bearer: Bearer;
  readonly #machine: Machine;
  readonly #listeners = new Set<(state: State) => void>();
  #state: State = { kind: "acquiring" };
  /** The request in flight, and the generation of its token. */
  #flight: AbortController | undefined;
  #generation = 0;
  #stream: EventStream | undefined;
  /** The node of the stream. */
  #node = 0;

  /** Starts an acquire. */
  constructor(driver: Driver, plan: Plan) {
    this.#driver = driver;
    this.#plan = plan;
    this.#bearer = driver.tokens.bearer(plan.door.holder);
    this.finished = new Promise((resolve) => (this.#finish = resolve));
    this.#machine = new Machine(plan, this, driver.clock());
  }

  /** The state of this instant. */
  get state(): State {
    return stateAt(this.#state, this.#driver.clock().boot);
  }

  /** The time at which the machine wants a tick. */
  get wakeAt(): Micros {
    return this.#machine.wakeAt;
  }

  /** Tells `listener` the present state and every change; returns a function that ends this. */
  listen(listener: (state: State) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#state);
    return () => this.#listeners.delete(listener);
  }

  /** Notes that the user of the seat is active. */
  activity(): void {
    this.#machine.activity(this.#driver.clock().boot);
  }

  /** Starts the release of the seat. */
  release(): void {
    this.step({ kind: "release" });
  }

  /** Fires the timers that are due; after a sleep of the host, steps the machine anyhow. */
  tick(slept = false): void {
    if (slept || this.#machine.wakeAt <= this.#driver.clock().boot) this.step({ kind: "tick" });
    this.#stream?.tick();
  }

  /** Steps the machine. A seat that is released takes no event. */
  step(event: Event): void {
    if (!this.#driver.seats.has(this)) return;
    const { clock } = this.#driver;
    const isTold = this.#machine.step(event, clock(), Math.random());
    const { lease, finish } = this.#machine;
    this.grant = lease?.grant ?? this.grant;
    this.#publish(this.#machine.state(clock().boot), isTold);
    if (finish !== undefined) this.#end(finish);
    this.#driver.setTimer();
  }

  /** Gives the seat of a page that goes away back: by a beacon with the release code, else by a release. */
  leave(): void {
    const { session, releaseCode } = this.#machine.lease?.grant ?? {};
    const { server } = this.#driver;
    const canTell = session !== undefined && releaseCode !== undefined;
    if (!canTell || !server.beacon(releaseByCode(this.#plan.door, session, releaseCode))) return this.release();
    this.#flight?.abort();
    this.#publish({ kind: "released" }, true);
    this.#end("unconfirmed");
  }

  /** Closes the event stream until the next step. */
  suspend(): void {
    this.#stream?.close();
    this.#stream = undefined;
  }

  /** Closes the event stream for a while. */
  yieldConnection(): void {
    this.#stream?.yieldConnection();
  }

  send(request: Request): void {
    const flight = new AbortController();
    this.#flight = flight;
    const timer = setTimeout(() => flight.abort(TIMED_OUT), request.timeout / (SECOND / 1_000));
    void this.#exchange(request, flight.signal).then((event) => {
      clearTimeout(timer);
      if (this.#flight === flight) this.#flight = undefined;
      if (flight.signal.reason === TIMED_OUT) this.#driver.yieldConnections();
      this.step(event);
    });
  }

  cancel(): void {
    this.#flight?.abort();
  }

  refreshToken(): void {
    void this.#bearer.replace(this.#generation).then((isFresh) => {
      if (isFresh) this.#stream?.reconnect();
      this.step({ kind: isFresh ? "token-ready" : "token-failed" });
    });
  }

  /** Sends the request, and returns its outcome; the promise is never rejected. */
  async #exchange({ id, timeout: _, ...call }: Request, signal: AbortSignal): Promise<Event> {
    const { server, isLeaving } = this.#driver;
    // A release outlives its page.
    const keepalive = isLeaving || call.method === "DELETE";
    const ask = async () => {
      const token = call.isOpen ? undefined : await this.#bearer.current(call.method);
      this.#generation = this.#bearer.generation;
      return server.send(call, token, signal, keepalive);
    };
    try {
      // A token source does not see the signal.
      const response = await Promise.race([ask(), rejectedBy(signal)]);
      return { kind: "answered", request: id, response };
    } catch (error) {
      const { failure, response } = error instanceof TransportError ? error : new TransportError("reset-after-send");
      if (response !== undefined) return { kind: "answered", request: id, response };
      return { kind: "failed", request: id, failure: signal.aborted ? "timeout" : failure };
    }
  }

  #publish(state: State, isTold: boolean): void {
    this.#state = state;
    this.validUntil = "until" in state ? state.until : 0;
    this.#watch();
    if (isTold) for (const listener of [...this.#listeners]) listener(state);
  }

  #end(finish: Finish): void {
    this.#driver.seats.delete(this);
    this.#finish(finish);
  }

  /** Keeps the event stream of a held session open, at the node that gets the requests. */
  #watch(): void {
    const { server, mayStream } = this.#driver;
    const isHeld = ["active", "offline", "grace"].includes(this.#state.kind);
    const session = isHeld && mayStream ? this.grant?.session : undefined;
    if (this.#stream?.session !== session) {
      this.suspend();
      if (session !== undefined) this.#stream = this.#streamOf(session);
      this.#node = server.inUse;
      this.#stream?.tick();
    } else if (this.#node !== server.inUse) {
      this.#node = server.inUse;
      this.#stream?.reconnect();
    }
  }

  #streamOf(session: string): EventStream {
    const { clock, server } = this.#driver;
    const path = eventsPath(this.#plan.door, session);
    return new EventStream(session, {
      now: () => clock().boot,
      token: () => this.#bearer.current("GET"),
      open: (...request) => server.open(path, ...request),
      ended: (reason, by) => this.step({ kind: "ended", session, reason, by }),
      // Timers of a hidden page are late by a minute; bytes are not.
      heard: () => this.#machine.wakeAt <= clock().boot && this.#driver.tick(),
    });
  }
}
