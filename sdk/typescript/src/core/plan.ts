import { type Micros, SECOND } from "./clocks.js";
import type { Door } from "./door.js";

/** The request of a holder: a seat, and how long to try. */
export interface Plan {
  readonly door: Door;
  /** How long to ask again while every seat is in use: `undefined` takes the first denial as final. */
  readonly wait?: Micros | undefined;
  /** How long to try a server that does not answer; a longer `wait` prevails. */
  readonly patience: Micros;
}

/** The default of `Plan.patience`. */
export const PATIENCE: Micros = 10 * SECOND;
