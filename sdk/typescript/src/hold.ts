import type { Seats, Terms } from "./core/answer.js";
import { type Micros, NEVER, SECOND } from "./core/clocks.js";
import type { Door, Plan } from "./core/door.js";
import { EventKind, type Event, type Host } from "./core/events.js";
import { Machine } from "./core/machine.js";
import { releaseByCode, type Request } from "./core/request.js";
import { type State, stateAt } from "./core/state.js";
import type { Driver } from "./driver.js";
import { SeatkeeperError, SeatLostError } from "./errors.js";
import type { Follower, SeatStream } from "./event-stream.js";
import type { Seat } from "./seat.js";
import { TIMED_OUT, TransportError, unlessAborted } from "./server.js";
import type { Bearer } from "./tokens.js";

/**
 * One seat of a driver: steps the machine, sends its requests, keeps the event stream, and tells the listeners.
 *
 * Programs see a `Seat`. Further members are for the driver, the machine and the event stream alone.
 */
export class Hold implements Seat, Host, Follower {
  /** Settles at the end of the release with its result: see `Machine.finish`. */
  readonly finished: Promise<boolean>;
  /** The error behind the latest failure, of the network or of the program's own code. */
  cause: unknown;
  #finish!: (isGivenBack: boolean) => void;
  #aborter: AbortController | undefined;
  readonly #driver: Driver;
  readonly #door: Door;
  readonly #bearer: Bearer;
  readonly #machine: Machine;
  /** An empty list is smaller than an empty `Set`. */
  #listeners: readonly ((state: State) => void)[] = [];
  #state: State = { kind: "acquiring" };
  /** The terms of the latest session. */
  #grant: Terms = {};
  /** The request in flight, and the generation of its token. */
  #flight: AbortController | undefined;
  #generation = 0;
  #stream: SeatStream | undefined;

  /** Starts an acquire. */
  constructor(driver: Driver, plan: Plan) {
    this.#driver = driver;
    this.#door = plan.door;
    this.#bearer = driver.tokens.bearer(plan.door.holder);
    this.finished = new Promise((resolve) => (this.#finish = resolve));
    this.#machine = new Machine(plan, this, driver.clock());
  }

  get state(): State {
    return stateAt(this.#state, this.boot);
  }

  get isValid(): boolean {
    return this.remaining > 0;
  }

  get remaining(): number {
    const { until = 0 } = this.#state as { until?: Micros };
    return Math.max(0, until - this.boot) / SECOND;
  }

  check(): void {
    if (!this.isValid) throw this.#error;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get sessionId(): string | undefined {
    return this.#grant.session;
  }

  get licenseId(): string | undefined {
    return this.#grant.licenseId;
  }

  get seats(): Seats | undefined {
    return this.#grant.seats;
  }

  activity(): void {
    this.#machine.activity(this.boot);
  }

  onChange(callback: (state: State) => unknown): () => void {
    return this.listen((state) => {
      Promise.resolve(state).then(callback).catch(this.#driver.platform.report);
    });
  }

  async *states(): AsyncGenerator<State, void, undefined> {
    const told: State[] = [];
    let wake: () => void = () => undefined;
    const stop = this.listen((state) => {
      told.push(state);
      wake();
    });
    try {
      for (;;) {
        const state = told.shift();
        if (state === undefined) {
          await new Promise<void>((resolve) => (wake = resolve));
          continue;
        }
        yield state;
        if (state.kind === "released" || (state.kind === "lost" && !state.retry)) return;
      }
    } finally {
      stop();
    }
  }

  release(): Promise<boolean> {
    this.step({ kind: EventKind.Release });
    return this.#driver.platform.wait(this.finished);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Tells `listener` the present state and every change at once; returns a function that ends this. */
  listen(listener: (state: State) => void): () => void {
    this.#listeners = [...this.#listeners, listener];
    listener(this.#state);
    return () => (this.#listeners = this.#listeners.filter((other) => other !== listener));
  }

  /** Returns true while the seat of this holder is being released. The server may ignore the name of a process. */
  isReleasing(door: Door): boolean {
    const { holder, body } = this.#door;
    return this.#state.kind === "released" && holder === door.holder && body["license_key"] === door.body["license_key"];
  }

  /**
   * The latest time for the next tick. The hundredth part of an interval lets the heartbeats of many seats share one tick; the
   * machine takes a timer that is much later for a sleep of the host.
   */
  get tickBy(): Micros {
    const { wakeAt, lease } = this.#machine;
    return Math.min(wakeAt + Math.min((lease?.interval ?? 0) / 100, SECOND), this.#stream?.wakeAt ?? NEVER);
  }

  /** Fires the timers that are due; after a sleep of the host, steps the machine anyhow. */
  tick(now: Micros, slept: boolean): void {
    if (slept || this.#machine.wakeAt <= now) this.step({ kind: EventKind.Tick });
    this.#stream?.tick(now);
  }

  /** Steps the machine. A seat that is released takes no event. */
  step(event: Event): void {
    const driver = this.#driver;
    const machine = this.#machine;
    if (this.#state.kind === "released" && !driver.holds.has(this)) return;
    const isTold = machine.step(event, driver.clock(), Math.random(), driver.platform.isPunctual);
    this.#grant = machine.lease?.grant ?? this.#grant;
    this.#publish(machine.state(this.boot), isTold, machine.isOver || machine.finish);
    driver.setTimer(this.tickBy);
  }

  leave(): void {
    // A release under way goes on.
    if (this.#state.kind === "released") return;
    this.#flight?.abort();
    this.#publish({ kind: "released" }, true, false);
  }

  /**
   * Gives the seat of a page that goes away back: by a beacon with the release code, else by a release. A release under
   * way gets a beacon as well: an answer to the release that wants another try, such as 401, finds no page.
   */
  unload(): void {
    const { session, releasingCode } = this.#grant;
    if (releasingCode && this.#driver.server.beacon(releaseByCode(this.#door, session!, releasingCode))) this.leave();
    else this.step({ kind: EventKind.Release });
  }

  /** Closes the event stream until the next step. The server's last word on a session counts for good. */
  suspend(): void {
    if (this.#stream?.wakeAt === NEVER) return;
    this.#stream?.close();
    this.#stream = undefined;
  }

  /** Asks the server about a held seat, unless a request is in flight. */
  ask(): void {
    if (!this.#flight) this.ended();
  }

  /** Closes the event stream for a while. */
  yieldConnection(): void {
    this.#stream?.yieldConnection();
  }

  send(request: Request): void {
    const flight = new AbortController();
    this.#flight = flight;
    const timer = setTimeout(() => flight.abort(TIMED_OUT), request.timeout / (SECOND / 1_000));
    void this.#exchange(request, flight.signal).then((outcome) => {
      clearTimeout(timer);
      if (this.#flight === flight) this.#flight = undefined;
      if (flight.signal.reason === TIMED_OUT) this.#driver.yieldConnections();
      this.step({ kind: EventKind.Over, request: request.id, outcome });
    });
  }

  cancel(): void {
    this.#flight?.abort();
  }

  refreshToken(): void {
    void this.#bearer.replace(this.#generation).then(
      () => {
        this.#stream?.reconnect();
        this.step({ kind: EventKind.TokenReady });
      },
      (error) => {
        this.cause = error;
        this.step({ kind: EventKind.TokenFailed });
      },
    );
  }

  get boot(): Micros {
    return this.#driver.boot;
  }

  /** Takes the end of the session, or of its stream: a heartbeat asks the server. */
  ended(reason?: string, by?: string): void {
    this.step({ kind: EventKind.Ended, session: this.#grant.session!, reason, by });
  }

  /** The error of a state without a valid seat. */
  get #error(): SeatkeeperError {
    const { state } = this;
    const code = state.kind === "released" ? "released" : "unconfirmed";
    const error = state.kind === "lost" ? new SeatLostError(state) : new SeatkeeperError(code, `the seat is ${code}`);
    return this.#driver.platform.explain(error);
  }

  /** Sends the request, and returns its outcome; the promise is never rejected. */
  async #exchange(request: Request, signal: AbortSignal): Promise<TransportError["outcome"]> {
    let isSent = false;
    const ask = async () => {
      const token = request.isOpen ? undefined : await this.#bearer.current(request.method);
      // A token that comes after the end of the request must send nothing.
      signal.throwIfAborted();
      isSent = true;
      this.#generation = this.#bearer.generation;
      return this.#driver.server.send(request, token, signal);
    };
    this.cause = undefined;
    try {
      // A token source does not see the signal.
      return await unlessAborted(ask(), signal);
    } catch (error) {
      this.cause = error;
      if (error instanceof TransportError && (isSent || error !== TIMED_OUT)) return error.outcome;
      return isSent ? "reset-after-send" : "no-token";
    }
  }

  #publish(state: State, isTold: boolean, finish: boolean | undefined): void {
    const isFinished = finish !== undefined;
    this.#state = state;
    if (isFinished) this.#driver.holds.delete(this);
    this.#watch();
    if (isTold) for (const listener of this.#listeners) listener(state);
    // Last: a listener of the program may release the seat, which is the next change.
    if (state.kind === "lost" || state.kind === "released") this.#abort.abort(this.#error);
    if (isFinished) this.#finish(finish);
  }

  /** A signal is larger than the rest of a seat, and most programs ask for none. */
  get #abort(): AbortController {
    return (this.#aborter ??= new AbortController());
  }

  /** Keeps the event stream of a held session open. */
  #watch(): void {
    const isHeld = this.#driver.mayStream && "until" in this.#state;
    const session = isHeld ? this.#grant.session : undefined;
    if (this.#stream?.session === session) return;
    this.suspend();
    if (session) (this.#stream = new this.#driver.platform.Stream(session, this, this.#driver, this.#door)).tick(this.boot);
  }
}
