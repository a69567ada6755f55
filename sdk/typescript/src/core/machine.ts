import { type Answer, FOREIGN, goneReason, Kind, type Setback, type Terms } from "./answer.js";
import { jittered, type Micros, NEVER, type Now, SECOND, sleptSince } from "./clocks.js";
import type { Plan } from "./door.js";
import { EventKind, type Event, type Host, type SessionEnd } from "./events.js";
import { Exchange, TOKEN_TIMEOUT } from "./exchange.js";
import { Lease } from "./lease.js";
import type { Problem } from "./problem.js";
import { acquire, type Call, heartbeat, release, releaseByCode } from "./request.js";
import { Retry } from "./retry.js";
import { isLike, type LossReason, lost, type State, stateAt, unreachable } from "./state.js";

/** A timer this late means a suspended host, where timers are punctual. */
const TIMER_LATE = 10 * SECOND;
/** The interval that bounds retries before the first grant. */
const INTERVAL = 60 * SECOND;
/** The timeout of an acquire: longer than a server's own limit on a commit. */
const TIMEOUT = 10 * SECOND;
/** The shortest timeout of an acquire near the end of patience: a token, a connection and an answer need time. */
const TIMEOUT_MIN = 2 * SECOND;
/** The seconds to wait after a denial without `retry_after_seconds`. */
const PAUSE_SECONDS = 10;
/** Holders of expired sessions acquire again within this. */
const SPREAD = 5 * SECOND;
/** The longest time that a heartbeat tells: a year. */
const AWAY_SECONDS_MAX = 31_536_000;
/** The budget of a release, retry included. */
const RELEASE_BUDGET = 2 * SECOND;
/** The timeout of one try of a release: half of the budget, which leaves time for the retry. */
const RELEASE_TIMEOUT = SECOND;
/** The DELETEs of a release; and its acquires, which learn the id of a session. */
const RELEASE_TRIES_MAX = 2;

/** A phase of the machine: a number, which a page loads in a byte. The phases of a release come last. */
const enum Phase {
  /** The seat is lost, refused or released; only the program begins again. */
  Ended,
  /** Asks until the server grants or refuses a seat, or the wait is over. */
  Acquiring,
  /** The seat is held: heartbeats, and the report of an outage, until the deadline. */
  Holding,
  /** The deadline passed, or the server ended the session: acquires again, or renews where the vendor forbids that. */
  Regaining,
  /** A release waits for an acquire, of the program or of its own, to learn the id of a session. */
  Finding,
  /** A release ends a known session. */
  Deleting,
}

/**
 * The session of this holder that a release has to end; `undefined` if no session of this holder lives. After a lost reply to
 * an acquire the id is unknown. An acquire is idempotent by holder: another acquire tells the id.
 */
type Orphan = Pick<Terms, "session" | "releasingCode"> | "unknown" | undefined;

/**
 * The holder's state machine for one seat, without I/O, clocks, timers or randomness.
 *
 * The driver calls `step` for each event and at `wakeAt`. The machine sends its requests through the `Host`, at most one at any
 * time.
 */
export class Machine extends Exchange {
  /**
   * The result of a release that ended in the last step. `true`: the server holds no seat for this holder. `false`: the server may
   * hold a seat, free one TTL after the last acquire or heartbeat at the latest.
   */
  finish: boolean | undefined;
  /** The lease, while the machine holds or regains a seat. */
  lease: Lease | undefined;
  readonly #plan: Plan;
  #phase!: Phase;
  #state!: State;
  #told: State;
  #last: Now;
  #jitter!: number;
  /** The end of the phase as it is: the deadline of the seat or of the grace, or the end of a release's budget. */
  #turnAt: Micros = NEVER;
  #activeAt: Micros | undefined;

  /** The begin of the acquire. */
  #began!: Micros;
  /** The try under way is the last one of the acquire. */
  #isLast!: boolean;

  #lastSession: string | undefined;
  #orphan: Orphan;

  /** The time at which the next heartbeat is, or was, due. */
  #due!: Micros;
  /** Heartbeats fail; the outage is told at this time. */
  #tellAt: Micros = NEVER;
  /** The outage was told, and began at this time. */
  #offlineSince: Micros | undefined;
  /** The last answer was a refusal: a later outage has no grace. */
  #isRefused!: boolean;
  /** An end from the event stream, before a heartbeat confirms. */
  #toldEnd: SessionEnd | undefined;
  /**
   * The deadline passed without a word of the server: heartbeats ask, until the server has told the end of the session. Meanwhile
   * an operator may have revoked the session, another screen may have evicted the session, and another program may have kept the
   * session. An acquire would seat a revoked holder again, and would evict the other screen.
   */
  #isInDoubt!: boolean;
  /** The reason of a loss while the seat is regained. */
  #reason!: LossReason;

  /** The requests of the release of the present kind. */
  #tries!: number;
  /** The release has sent its code, which is its last request. */
  #isByCode!: boolean;

  /** Creates a machine and starts its acquire. */
  constructor(plan: Plan, host: Host, now: Now) {
    super(host);
    this.#plan = plan;
    this.#last = now;
    this.instant = now.boot;
    this.#acquire();
    this.#told = this.#state;
  }

  /**
   * Takes one event at `now`; returns true if the state is another one. `jitter` is a new random number in 0.0..1.0. Without
   * `isPunctual` the timers of a host that is awake may be late: a late timer means a suspended host after the deadline alone.
   */
  step(event: Event, now: Now, jitter: number, isPunctual?: boolean): boolean {
    this.instant = now.boot;
    const isLate = this.#passed(this.wakeAt + TIMER_LATE) && (isPunctual || this.#passed(this.#turnAt));
    const woke = event.kind === EventKind.Wake || sleptSince(now, this.#last) || isLate;
    this.#last = now;
    this.#jitter = jitter;
    this.finish = undefined;
    if (woke) this.#wake();
    this.#tellOutage();
    this.#take(event);
    this.#tellOutage();
    const isChanged = !isLike(this.#state, this.#told);
    this.#told = this.#state;
    return isChanged;
  }

  /** Notes that the user is active at `now`: from the first call on, every heartbeat tells the idle time. */
  activity(now: Micros): void {
    this.#activeAt = now;
  }

  /** The time at which the machine wants a tick; `NEVER` if the machine waits for other events alone. */
  get wakeAt(): Micros {
    return Math.min(this.askAt, this.#tellAt, this.#turnAt);
  }

  /** Returns the state at `now`. No answer is `active` after its deadline, also between two steps. */
  state(now: Micros): State {
    return stateAt(this.#state, now);
  }

  /** True if the server holds no session of this holder, and the machine acquires none: a release has nothing to send. */
  get isOver(): boolean {
    return this.#phase === Phase.Ended && !this.#orphan;
  }

  #take(event: Event): void {
    switch (event.kind) {
      case EventKind.Wake:
        return;
      case EventKind.Release:
      case EventKind.Abandon:
        return this.#release(event.kind === EventKind.Release);
      case EventKind.Acquire:
        return this.#phase === Phase.Ended ? this.#acquire() : undefined;
      case EventKind.Ended:
        return this.#hear(event);
    }
    const phase = this.#phase;
    // An answer may still renew a seat at its deadline, and ends the regaining of a seat.
    const isFirst = phase === Phase.Regaining || (phase === Phase.Holding && event.kind === EventKind.Over);
    if (!isFirst && this.#turn()) return;
    this.take(event);
    if (phase === this.#phase && !this.#isReleasing) this.#turn();
  }

  /** Returns true at `point` and later. */
  #passed(point: Micros): boolean {
    return this.instant >= point;
  }

  get #isReleasing(): boolean {
    return this.#phase >= Phase.Finding;
  }

  /** The next request of a seat is a heartbeat: the seat is held or in doubt, or the vendor forbids a second session. */
  get #renews(): boolean {
    const phase = this.#phase;
    return phase === Phase.Holding || (phase === Phase.Regaining && (this.#isInDoubt || !this.lease!.reacquires));
  }

  /** Ends the phase if its time is over. Returns false if not. */
  #turn(): boolean {
    if (!this.#passed(this.#turnAt)) return false;
    if (this.#phase === Phase.Holding) {
      this.stop();
      if (!this.#overAsTold()) {
        this.#regain();
        this.#retry(0);
      }
    } else if (this.#phase === Phase.Regaining) {
      this.#lose();
    } else {
      if (this.#phase === Phase.Finding && this.isInFlight) this.#orphan = "unknown";
      this.#released();
    }
    return true;
  }

  /**
   * Voids the request in flight after a sleep of the host, and asks the server before any other work. A heartbeat asks also after
   * the deadline.
   */
  #wake(): void {
    if (this.#phase === Phase.Ended || this.#isReleasing) return;
    if (this.stop() && !this.#renews) this.#orphan = "unknown";
    if (this.#phase === Phase.Holding) {
      this.#offlineSince ??= this.instant;
      if (!this.#passed(this.#turnAt)) this.#showOutage();
      else if (this.#overAsTold()) return;
      else this.#regain();
    }
    this.start();
  }

  protected override call(): [Call, Micros] {
    const { door } = this.#plan;
    if (this.#isReleasing) this.#tries += 1;
    if (this.#phase === Phase.Deleting) {
      const { session, releasingCode } = this.#orphan as Terms;
      const call = this.#isByCode ? releaseByCode(door, session!, releasingCode!) : release(door, session!);
      return [call, RELEASE_TIMEOUT];
    }
    const rest = this.#phase === Phase.Acquiring ? this.#givenUpAt - this.instant : TIMEOUT;
    const timeout = this.#phase === Phase.Finding ? RELEASE_TIMEOUT : Math.min(TIMEOUT, Math.max(TIMEOUT_MIN, rest));
    if (!this.#renews) return [acquire(door, this.#lastSession), timeout];
    const offline = this.#secondsSince(this.#offlineSince) || undefined;
    const call = heartbeat(door, this.#lastSession!, this.#secondsSince(this.#activeAt), offline);
    return [call, this.#phase === Phase.Holding ? this.lease!.timeout : timeout];
  }

  #secondsSince(point: Micros | undefined): number | undefined {
    if (point === undefined) return undefined;
    return Math.min(Math.floor((this.instant - point) / SECOND), AWAY_SECONDS_MAX);
  }

  protected override answered(answer: Answer): void {
    if (this.#phase === Phase.Deleting) return this.#deleted(answer);
    const renews = this.#renews;
    if (answer.kind === Kind.Granted) {
      const { terms, sent } = answer;
      if (renews && this.#isRenewal(terms)) return this.#renewed(terms, sent);
      if (!renews && terms.session && terms.expiresIn !== undefined) return this.#granted(terms, sent);
      answer = FOREIGN;
    }
    if (!renews) this.#noteOrphan(answer);
    if (this.#phase === Phase.Acquiring) this.#notAcquired(answer);
    else if (this.#phase === Phase.Finding) this.#notFound(answer);
    else this.#notRenewed(answer);
  }

  /** Returns false for the answer of a gateway: the server always tells the TTL of a license, and no other session. */
  #isRenewal(terms: Terms): boolean {
    return (terms.expiresIn !== undefined || !this.#isLicense) && (terms.session ?? this.#lastSession) === this.#lastSession;
  }

  #isFull(setback: Setback): boolean {
    return setback.kind === Kind.Refused && setback.problem.code === this.#plan.door.full;
  }

  /** Notes the session that an acquire without a grant may have left. */
  #noteOrphan(setback: Setback): void {
    if (setback.kind === Kind.Transient && setback.isInDoubt) this.#orphan = "unknown";
    // The server would have resumed a session of this holder.
    if (this.#isFull(setback)) this.#orphan = undefined;
  }

  #acquire(): void {
    this.#phase = Phase.Acquiring;
    this.#state = { kind: "acquiring" };
    this.#began = this.instant;
    this.#isLast = false;
    this.attempts = new Retry();
    this.start();
  }

  #notAcquired(setback: Setback): void {
    if (setback.kind === Kind.Transient) return this.#notAnswered(setback);
    const { problem } = setback;
    if (setback.kind === Kind.Hopeless) return this.#end(unreachable("unavailable", problem.requestId));
    const over = this.#began + this.#plan.wait;
    if (!this.#isFull(setback) || this.#passed(over)) return this.#end({ kind: "refused", code: problem.code, problem });
    // Every seat is in use: asks again when the server says, and a last time when the wait is over.
    this.attempts.failures = 0;
    const pause = Math.max(problem.retryAfterSeconds ?? PAUSE_SECONDS, 1) * SECOND;
    this.start(Math.min(this.instant + jittered(pause, 1, 1.25, this.#jitter), over));
  }

  /** The end of patience with a server that does not answer, or of a longer wait. */
  get #givenUpAt(): Micros {
    return this.#began + Math.max(this.#plan.wait, this.#plan.patience);
  }

  #notAnswered({ failure, retryAfter, problem }: Setback & { kind: Kind.Transient }): void {
    const { instant: now, attempts } = this;
    const over = this.#givenUpAt;
    if (this.#isLast || this.#passed(over)) return this.#end(unreachable(failure, problem?.requestId));
    const at = attempts.afterFailure(now, INTERVAL, retryAfter, NEVER, this.#jitter);
    this.#isLast = at >= over;
    // Jitter keeps a fleet from a common last try.
    this.start(this.#isLast ? now + jittered(over - now, 0.75, 1, this.#jitter) : at);
  }

  #granted(grant: Terms, sent: Micros): void {
    if (this.#phase === Phase.Finding) return this.#pursue(grant);
    this.lease = new Lease(grant, sent);
    this.#orphan = grant;
    this.#lastSession = grant.session;
    this.#hold(sent, 0.3);
  }

  #renewed(terms: Terms, sent: Micros): void {
    this.lease!.renew(terms, sent);
    this.#hold(sent, 0.9);
  }

  /** Holds the seat of an answer; the next heartbeat comes `low` to 1.0 of the interval after `sent`. */
  #hold(sent: Micros, low: number): void {
    const lease = this.lease!;
    this.#phase = Phase.Holding;
    this.#state = { kind: "active", until: lease.until };
    this.#due = lease.nextBeat(sent, low, this.#jitter);
    this.#turnAt = lease.until;
    this.#tellAt = NEVER;
    this.#offlineSince = this.#toldEnd = undefined;
    this.#isRefused = false;
    this.attempts.failures = 0;
    this.start(this.#due);
  }

  #tellOutage(): void {
    if (!this.#passed(this.#tellAt)) return;
    this.#offlineSince = this.#due;
    this.#showOutage();
  }

  #showOutage(): void {
    this.#tellAt = NEVER;
    this.#state = { kind: "offline", since: this.#offlineSince!, until: this.lease!.until };
  }

  /**
   * Asks by a heartbeat after an end from the event stream, for a stream may lag behind the session; and after the end of the
   * stream, for the session may have ended while the stream was cut. A proxy can answer 404, so the answer of a stream ends no
   * session. A told end has its heartbeat already, and a server that forgets every session would be asked without a pause.
   */
  #hear(end: SessionEnd): void {
    if (this.#phase !== Phase.Holding || end.session !== this.#lastSession) return;
    if (!end.reason && (this.#toldEnd || this.attempts.isSpent(this.instant, this.lease!.interval))) return;
    if (end.reason) this.#toldEnd = end;
    this.start();
  }

  /** Handles a heartbeat that renewed nothing, and an acquire that regained nothing. */
  #notRenewed(setback: Setback): void {
    const { kind } = setback;
    if (kind === Kind.Refused) return this.#rejected(setback.problem);
    if (kind === Kind.Hopeless) return this.#retryHopeless(false);
    if (kind === Kind.Unauthenticated) this.#isRefused = true;
    if (!this.#overAsTold()) this.#retry(kind === Kind.Transient ? setback.retryAfter : 0);
  }

  /** Ends the seat by the end that the stream told: no answer contradicts the stream. Returns false without such an end. */
  #overAsTold(): boolean {
    const end = this.#toldEnd;
    this.#toldEnd = undefined;
    if (end) this.#over(end.reason!, undefined, end.by);
    return !!end;
  }

  #rejected(problem: Problem): void {
    const { status, by, requestId } = problem;
    const reason = goneReason(problem);
    const end = this.#toldEnd;
    if (!this.#renews) this.#end(lost(this.#reason, requestId));
    else if (status === 403) this.#end(lost("unauthorized", requestId));
    else if (status === 404) this.#over("not_found", requestId);
    // The stream may know the cause that the answer leaves out.
    else if (status === 410) this.#over(reason, requestId, by ?? (end?.reason === reason ? end.by : undefined));
    else this.#retryHopeless(true);
  }

  /** The session is over: acquires again where the policy allows. */
  #over(reason: string, requestId: string | undefined, by?: string): void {
    const { until, interval, reacquires } = this.lease!;
    const { instant: now } = this;
    const isExpired = reason === "expired";
    const isHeld = this.#phase === Phase.Holding;
    this.#orphan = undefined;
    if (!reacquires || (!isExpired && reason !== "not_found")) return this.#end(lost(reason, requestId, by));
    if (isHeld) this.#regain();
    this.#isInDoubt = false;
    // A grace goes on, and a loss is told once.
    if (this.#state.kind === "offline") {
      this.#state = { kind: "reacquiring" };
      this.#turnAt = Math.max(until, now + interval);
      this.#reason = reason;
    }
    this.start(isHeld && isExpired ? now + jittered(SPREAD, 0, 1, this.#jitter) : undefined);
  }

  #retry(retryAfter: Micros): void {
    this.#unreached();
    const lease = this.lease;
    if (lease) this.start(this.attempts.afterFailure(this.instant, lease.interval, retryAfter, this.#turnAt, this.#jitter));
  }

  /** Tries again after an answer that a quick retry cannot change. */
  #retryHopeless(isRefused: boolean): void {
    if (this.#overAsTold()) return;
    if (this.#renews) this.#isRefused = isRefused;
    this.#unreached();
    if (this.lease) this.start(this.lease.nextBeat(this.instant, 0.9, this.#jitter));
  }

  /** Notes a try without a decision. After a sleep past the deadline the first such try starts the grace or tells the loss. */
  #unreached(): void {
    const { until, interval, grace } = this.lease!;
    const end = until + grace;
    const isOffline = this.#state.kind === "offline";
    if (this.#phase === Phase.Holding) {
      // The outage is told once the heartbeat is half an interval late.
      if (this.#offlineSince === undefined) this.#tellAt = this.#due + Math.floor(interval / 2);
    } else if (isOffline && !this.#isRefused && !this.#passed(end)) {
      this.#state = { kind: "grace", until: end };
      this.#turnAt = end;
    } else if (isOffline || (this.#state.kind === "grace" && this.#isRefused)) {
      this.#lose();
    }
  }

  /** Starts to regain the seat after its deadline or the end of its session. */
  #regain(): void {
    this.#phase = Phase.Regaining;
    this.#isInDoubt = true;
    this.#offlineSince ??= this.#due;
    this.#reason = "deadline";
    this.#toldEnd = undefined;
    this.#turnAt = NEVER;
    this.#showOutage();
  }

  /** Tells the loss, and goes on trying if another session is allowed. */
  #lose(): void {
    this.#turnAt = NEVER;
    if (this.lease!.reacquires) this.#state = { ...lost(this.#reason), retry: true };
    else this.#end(lost(this.#reason));
  }

  #end(state: State): void {
    this.stop();
    this.#phase = Phase.Ended;
    this.#state = state;
    this.lease = undefined;
    this.#turnAt = this.#tellAt = NEVER;
  }

  /**
   * Releases the seat: one retry within a budget of two seconds, and no heartbeat after the call.
   *
   * A session with a known id is deleted, or released by its code if the server accepts no token. A `finish` of `true` rests
   * on the server's word, or on a holder that has sent nothing that could have taken a seat. A release that nobody awaits gives
   * an acquire in flight its whole timeout before the budget: the server may grant late.
   */
  #release(isAwaited: boolean): void {
    const over = this.instant + RELEASE_BUDGET;
    if (isAwaited && this.#isReleasing) this.#turnAt = Math.min(this.#turnAt, over);
    if (this.#isReleasing) return;
    const isAcquire = this.isInFlight && !this.#renews;
    this.lease = undefined;
    this.#state = { kind: "released" };
    this.#tellAt = NEVER;
    this.#turnAt = isAcquire && !isAwaited ? this.sentAt + TIMEOUT + RELEASE_BUDGET : over;
    this.#tries = 0;
    this.#isByCode = false;
    this.#phase = Phase.Finding;
    if (!isAcquire) this.#pursue(this.#orphan);
  }

  /** Deletes a known session, asks for the id of an unknown one, or finishes. */
  #pursue(orphan?: Orphan): void {
    this.#orphan = orphan;
    const isUnknown = orphan === "unknown";
    if (!orphan || (isUnknown && !(this.#isLicense && this.#tries < RELEASE_TRIES_MAX))) return this.#released();
    if (!isUnknown) {
      this.#phase = Phase.Deleting;
      this.#tries = 0;
    }
    this.start();
  }

  /** A release finds the session of a license alone: an admission of a device may evict another device. */
  get #isLicense(): boolean {
    return this.#plan.door.api === "licenses";
  }

  #notFound(setback: Setback): void {
    // Another acquire would be answered like one that is not transient.
    if (setback.kind !== Kind.Transient) this.#tries = RELEASE_TRIES_MAX;
    this.#pursue(this.#orphan);
  }

  #deleted(answer: Answer): void {
    // The server answers 204 to a wrong code as well.
    if (!this.#isByCode) {
      const { kind, failure, problem }: { kind: Kind; failure?: string; problem?: Problem } = answer;
      if (kind === Kind.Granted || [404, 410].includes(problem?.status!)) return this.#pursue();
      const isRejected = kind === Kind.Unauthenticated || failure === "no-token";
      const mayRetry = kind === Kind.Transient || kind === Kind.Hopeless;
      this.#isByCode = isRejected && !!(this.#orphan as Terms).releasingCode;
      if (this.#isByCode || (mayRetry && this.#tries < RELEASE_TRIES_MAX)) return this.start();
    }
    this.#released();
  }

  protected override tokenOver(): Micros {
    const phase = this.#phase;
    const isDeleting = phase === Phase.Deleting;
    const mayRefresh = isDeleting
      ? !this.#isByCode && this.#tries < RELEASE_TRIES_MAX
      : phase !== Phase.Finding || (this.#orphan === "unknown" && this.#isLicense);
    if (!mayRefresh) return 0;
    // A slow token source leaves the time of a try for the release by code.
    const code = isDeleting && (this.#orphan as Terms).releasingCode;
    return code ? this.#turnAt - RELEASE_TIMEOUT : this.instant + TOKEN_TIMEOUT;
  }

  /** Ends a release; the orphan is the session that may still live. */
  #released(): void {
    this.#end({ kind: "released" });
    this.finish = !this.#orphan;
  }
}
