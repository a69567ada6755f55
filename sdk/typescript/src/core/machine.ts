import { Acquiring } from "./acquiring.js";
import { type Micros, type Now, SECOND, sleptSince } from "./clocks.js";
import type { Action, Event } from "./events.js";
import { Context } from "./exchange.js";
import type { Lease } from "./lease.js";
import type { Phase } from "./phase.js";
import type { Plan } from "./plan.js";
import { isLike, type State, stateAt } from "./state.js";

/** A timer this late means a suspended host. */
const TIMER_LATE = 10 * SECOND;

/**
 * The holder's state machine for one seat, without I/O, clocks, timers or randomness.
 *
 * The driver calls `step` for each event and at `wakeAt`, and carries out the actions. At most one request is in flight
 * at any time.
 */
export class Machine {
  readonly #plan: Plan;
  #phase: Phase;
  #last: Now;
  #told: State = { kind: "acquiring" };
  #nextRequest = 1;
  #activeAt: Micros | undefined;
  #lastSession: string | undefined;

  /** Creates a machine and starts its acquire. Returns the machine and the first actions. */
  static start(plan: Plan, now: Now): [Machine, Action[]] {
    const context = new Context(plan, now.boot, 0, 1, undefined, undefined);
    const machine = new Machine(plan, now, new Acquiring(undefined, context));
    return [machine, machine.#conclude(context)];
  }

  private constructor(plan: Plan, now: Now, phase: Phase) {
    this.#plan = plan;
    this.#last = now;
    this.#phase = phase;
  }

  /** Takes one event at `now`, and returns the actions that follow. `jitter` is a new random number in 0.0..1.0. */
  step(event: Event, now: Now, jitter: number): Action[] {
    const { wakeAt } = this;
    const isLate = wakeAt !== undefined && now.boot >= wakeAt + TIMER_LATE;
    const woke = event.kind === "wake" || sleptSince(now, this.#last) || isLate;
    this.#last = now;
    const random = Math.min(Math.max(jitter, 0), 1);
    const context = new Context(this.#plan, now.boot, random, this.#nextRequest, this.#activeAt, this.#lastSession);
    if (woke) this.#phase = this.#phase.wake(context);
    if (event.kind !== "wake") this.#phase = this.#phase.step(event, context);
    return this.#conclude(context);
  }

  /** Notes that the user is active at `now`: from the first call on, every heartbeat tells the idle time. */
  activity(now: Micros): void {
    this.#activeAt = now;
  }

  /** The time at which the machine wants a tick; `undefined` if the machine waits for other events alone. */
  get wakeAt(): Micros | undefined {
    return this.#phase.wakeAt;
  }

  /** Returns the state at `now`. No answer is `active` after its deadline, also between two steps. */
  state(now: Micros): State {
    return stateAt(this.#phase.state, now);
  }

  /** The lease, while the machine has one. */
  get lease(): Lease | undefined {
    return this.#phase.lease;
  }

  #conclude(context: Context): Action[] {
    this.#nextRequest = context.nextRequest;
    this.#lastSession = this.#phase.lease?.session ?? this.#lastSession;
    const { state } = this.#phase;
    if (!isLike(state, this.#told)) context.actions.push({ kind: "tell", state });
    this.#told = state;
    return context.actions;
  }
}
