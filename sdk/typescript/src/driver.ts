import type { Clock } from "./clock.js";
import { NEVER, type Now, SECOND, sleptSince } from "./core/clocks.js";
import type { Action, Event, Finish } from "./core/events.js";
import { TOKEN_TIMEOUT } from "./core/exchange.js";
import { Machine } from "./core/machine.js";
import type { Plan } from "./core/plan.js";
import { eventsPath, releaseByCode, type Request } from "./core/request.js";
import type { State } from "./core/state.js";
import { TokenKeeper } from "./core/tokens.js";
import { EventStream } from "./event-stream.js";
import { type Servers, TIMED_OUT } from "./servers.js";
import { Shared } from "./shared.js";
import type { Slot } from "./slot.js";
import { NoToken, TokenCache, type Tokens, type TokenSource } from "./tokens.js";
import { TransportError } from "./transport.js";

/** The longest pause between two readings of the clocks in milliseconds: timers of many hosts do not count sleep. */
const LOOK_INTERVAL = 1_000;

/** One seat of the driver. */
interface Entry {
  readonly plan: Plan;
  readonly machine: Machine;
  readonly shared: Shared;
  /** The event stream of the session, and the number of its server. */
  stream: { readonly events: EventStream; server: number } | undefined;
  flight: { readonly request: number; readonly abort: AbortController } | undefined;
  readonly tokenOwner: string;
  sentWith: number;
  wantsToken: boolean;
}

/** Steps the machine of every seat of a client, and carries out the actions, with one timer. */
export class Driver {
  readonly #seats = new Map<number, Entry>();
  /** One for each owner of a token with a seat. */
  readonly #keepers = new Map<string, TokenKeeper>();
  readonly #tokens: Tokens;
  #nextKey = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last: Now;
  /** Calls of the program that wait: meanwhile the timer keeps a Node.js process alive. */
  #waiting = 0;
  /** The page goes away: requests are to outlive it. */
  #isLeaving = false;
  /** The page is in the back/forward cache, which an open connection would end. */
  #isSuspended = false;

  constructor(
    readonly clock: Clock,
    private readonly servers: Servers,
    source: TokenSource,
    /** Reports an error of the program's own code. */
    readonly report: (error: unknown) => void,
    private readonly hasStreams: boolean,
    /** The remedies in the texts of errors. */
    readonly remedies: Readonly<Record<string, string>> = {},
  ) {
    const now = () => clock().boot;
    this.#tokens = typeof source === "object" ? source.tokens(servers, now) : new TokenCache(source);
    this.#last = clock();
  }

  /** Starts an acquire. Returns the key of the seat and its state. The seat has the slot until its release is over. */
  start(plan: Plan, slot?: Slot): { key: number; shared: Shared } {
    const key = this.#nextKey;
    this.#nextKey += 1;
    const [machine, actions] = Machine.start(plan, this.clock());
    const tokenOwner = this.#tokens.owner(plan.door.holder);
    const shared = new Shared(slot);
    const [stream, flight] = [undefined, undefined];
    const entry: Entry = { plan, machine, shared, stream, flight, tokenOwner, sentWith: 0, wantsToken: false };
    this.#seats.set(key, entry);
    this.#carryOut(key, entry, actions);
    this.#setTimer();
    return { key, shared };
  }

  /** Starts the release of a seat. */
  release(key: number): void {
    this.#step(key, { kind: "release" });
    this.#setTimer();
  }

  /** Starts the release of every seat, and settles when all are over. */
  async releaseAll(): Promise<void> {
    const finished = [...this.#seats].map(([key, { shared }]) => {
      this.release(key);
      return shared.finished;
    });
    await this.wait(Promise.all(finished));
  }

  /** Notes that the user of a seat is active. */
  activity(key: number): void {
    this.#seats.get(key)?.machine.activity(this.clock().boot);
  }

  /** Gives back every seat of a page that goes away: by a beacon with the release code, else by a release. */
  leave(): void {
    this.#isLeaving = true;
    for (const [key, entry] of [...this.#seats]) if (!this.#sendBeacon(key, entry)) this.release(key);
    this.#isLeaving = false;
  }

  /** Closes the event streams of a page that enters the back/forward cache, until `wake`. */
  suspend(): void {
    this.#isSuspended = true;
    for (const entry of this.#seats.values()) this.#follow(entry, undefined);
  }

  /** Makes every seat ask the server at once. */
  wake(): void {
    this.#isSuspended = false;
    for (const key of [...this.#seats.keys()]) this.#step(key, { kind: "wake" });
    this.#setTimer();
  }

  /** Fires the timers that are due; after a sleep of the host, steps every machine. */
  readonly tick = (): void => {
    const now = this.clock();
    const slept = sleptSince(now, this.#last);
    this.#last = now;
    for (const [key, { machine, stream }] of [...this.#seats]) {
      if (slept || (machine.wakeAt ?? NEVER) <= now.boot) this.#step(key, { kind: "tick" });
      stream?.events.tick();
    }
    this.#setTimer();
  };

  /** Keeps a Node.js process alive until `promise` settles. */
  async wait<T>(promise: Promise<T>): Promise<T> {
    this.#waiting += 1;
    this.#setTimer();
    try {
      return await promise;
    } finally {
      this.#waiting -= 1;
      this.#setTimer();
    }
  }

  /** True while there are seats. */
  get hasSeats(): boolean {
    return this.#seats.size > 0;
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#seats.size === 0) return;
    let wakeAt = NEVER;
    for (const { machine } of this.#seats.values()) wakeAt = Math.min(wakeAt, machine.wakeAt ?? NEVER);
    const remaining = Math.max(0, wakeAt - this.clock().boot) / 1_000;
    this.#timer = setTimeout(this.tick, Math.min(Math.ceil(remaining), LOOK_INTERVAL));
    // A held seat alone keeps no Node.js process alive; browsers have no such notion.
    if (this.#waiting === 0) (this.#timer as { unref?: () => void }).unref?.();
  }

  #step(key: number, event: Event): void {
    const entry = this.#seats.get(key);
    if (entry !== undefined) this.#carryOut(key, entry, entry.machine.step(event, this.clock(), Math.random()));
  }

  #carryOut(key: number, entry: Entry, actions: readonly Action[]): void {
    let isTold = false;
    let finish: Finish | undefined;
    for (const action of actions) {
      switch (action.kind) {
        case "send":
          this.#send(key, entry, action.request);
          break;
        case "cancel":
          if (entry.flight?.request === action.request) {
            entry.flight.abort.abort();
            entry.flight = undefined;
          }
          break;
        case "refresh-token":
          this.#refreshToken(key, entry);
          break;
        case "tell":
          isTold = true;
          break;
        case "finish":
          finish = action.finish;
          break;
      }
    }
    this.#publish(entry, isTold);
    this.#watch(key, entry);
    if (finish !== undefined) {
      this.#forget(key, entry);
      entry.shared.finish(finish);
    }
  }

  /** Removes a seat, and the keeper of its token with the token's last seat. */
  #forget(key: number, { tokenOwner }: Entry): void {
    this.#seats.delete(key);
    if (tokenOwner === "") return;
    for (const other of this.#seats.values()) if (other.tokenOwner === tokenOwner) return;
    this.#keepers.delete(tokenOwner);
  }

  /** Sends the release code of a seat in a beacon, and forgets the seat; returns false if the seat needs a release. */
  #sendBeacon(key: number, entry: Entry): boolean {
    const { machine, plan, shared } = entry;
    const { session, releaseCode } = machine.lease ?? {};
    if (session === undefined || releaseCode === undefined) return false;
    if (!this.servers.beacon(releaseByCode(plan.door, session, releaseCode))) return false;
    entry.flight?.abort.abort();
    this.#follow(entry, undefined);
    this.#forget(key, entry);
    shared.publish({ kind: "released" }, true);
    shared.finish("unconfirmed");
    return true;
  }

  /** Keeps the event stream of a held session open, at the server that gets the requests. */
  #watch(key: number, entry: Entry): void {
    if (!this.hasStreams || this.#isSuspended) return;
    const { machine, plan, tokenOwner } = entry;
    const { inUse } = this.servers;
    const session = isHeld(machine.state(this.clock().boot)) ? machine.lease?.session : undefined;
    if (entry.stream?.events.session !== session) {
      this.#follow(entry, session === undefined ? undefined : this.#streamOf(key, plan, session, tokenOwner));
    } else if (entry.stream !== undefined && entry.stream.server !== inUse) {
      entry.stream.server = inUse;
      entry.stream.events.reconnect();
    }
  }

  /** Replaces the event stream of a seat. */
  #follow(entry: Entry, events: EventStream | undefined): void {
    entry.stream?.events.close();
    entry.stream = events && { events, server: this.servers.inUse };
    events?.tick();
  }

  #streamOf(key: number, { door }: Plan, session: string, owner: string): EventStream {
    return new EventStream(session, {
      now: () => this.clock().boot,
      random: Math.random,
      token: () => this.#tokens.current(owner),
      open: (token, lastEventId, signal) => this.servers.open(eventsPath(door, session), token, lastEventId, signal),
      ended: (reason, by) => {
        this.#step(key, { kind: "ended", session, reason, by });
        this.#setTimer();
      },
      // Timers of a hidden page are late by a minute; bytes are not.
      heard: () => {
        const wakeAt = this.#seats.get(key)?.machine.wakeAt ?? NEVER;
        if (wakeAt <= this.clock().boot) this.tick();
      },
    });
  }

  #keeper(owner: string): TokenKeeper {
    let keeper = this.#keepers.get(owner);
    if (keeper === undefined) this.#keepers.set(owner, (keeper = new TokenKeeper()));
    return keeper;
  }

  #publish({ machine, shared }: Entry, isTold: boolean): void {
    const { lease } = machine;
    if (lease !== undefined) {
      shared.session = { id: lease.session, licenseId: lease.licenseId, seats: lease.seats };
    }
    shared.publish(machine.state(this.clock().boot), isTold);
  }

  #send(key: number, entry: Entry, request: Request): void {
    const abort = new AbortController();
    entry.flight = { request: request.id, abort };
    entry.sentWith = this.#keeper(entry.tokenOwner).current;
    const timer = setTimeout(() => abort.abort(TIMED_OUT), request.timeout / (SECOND / 1_000));
    // A release outlives its page.
    const keepalive = this.#isLeaving || request.method === "DELETE";
    this.#exchange(request, entry.tokenOwner, abort.signal, keepalive)
      .then((event) => {
        clearTimeout(timer);
        if (entry.flight?.request === request.id) entry.flight = undefined;
        if (event.kind === "failed" && event.failure === "timeout") this.#yieldConnections();
        this.#step(key, event);
        this.#setTimer();
      })
      .catch(this.report);
  }

  /** Closes streams for a while: over HTTP/1.1 the streams of a browser's tabs may leave a request no connection. */
  #yieldConnections(): void {
    if (!this.servers.opener.isSharing) return;
    for (const { stream } of this.#seats.values()) stream?.events.yieldConnection();
  }

  /** Sends the request, and returns its outcome; the promise is never rejected. */
  async #exchange(request: Request, owner: string, signal: AbortSignal, keepalive: boolean): Promise<Event> {
    const { id, ...call } = request;
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(new TransportError("timeout")));
    });
    try {
      // A token source does not see the signal.
      const token = call.isOpen ? undefined : await Promise.race([this.#tokens.current(owner), aborted]);
      const response = await Promise.race([this.servers.send(call, token, signal, keepalive), aborted]);
      return { kind: "answered", request: id, response };
    } catch (error) {
      if (signal.aborted) return { kind: "failed", request: id, failure: "timeout" };
      if (error instanceof NoToken) return withoutToken(request, error);
      const failure = error instanceof TransportError ? error.failure : "garbage";
      return { kind: "failed", request: id, failure };
    }
  }

  #refreshToken(key: number, entry: Entry): void {
    const rejected = this.#keeper(entry.tokenOwner).reject(entry.sentWith);
    if (rejected === "superseded") {
      queueMicrotask(() => {
        this.#step(key, { kind: "token-ready" });
        this.#setTimer();
      });
      return;
    }
    entry.wantsToken = true;
    if (rejected === "wait") return;
    this.#tokens
      .refresh(entry.tokenOwner, TOKEN_TIMEOUT / (SECOND / 1_000))
      .then((isFresh) => this.#refreshed(entry.tokenOwner, isFresh))
      .catch(this.report);
  }

  #refreshed(owner: string, isFresh: boolean): void {
    this.#keeper(owner).finish(isFresh);
    for (const [key, entry] of [...this.#seats]) {
      if (!entry.wantsToken || entry.tokenOwner !== owner) continue;
      entry.wantsToken = false;
      if (isFresh) entry.stream?.events.reconnect();
      this.#step(key, { kind: isFresh ? "token-ready" : "token-failed" });
    }
    this.#setTimer();
  }
}

/** Returns true for the states in which the server may tell the end of the session. */
function isHeld({ kind }: State): boolean {
  return kind === "active" || kind === "offline" || kind === "grace";
}

/**
 * Returns the outcome of a request whose token the server did not give. A refused license token refuses the acquire as
 * well, but tells nothing of a session.
 */
function withoutToken({ id, method }: Request, { answer }: NoToken): Event {
  const isTransient = answer !== undefined && ([408, 429].includes(answer.status) || answer.status >= 500);
  if (answer !== undefined && (method === "POST" || isTransient)) {
    return { kind: "answered", request: id, response: answer };
  }
  return { kind: "failed", request: id, failure: "no-token" };
}
