import { type Micros, SECOND } from "./clocks.js";

/** The request of a holder: a seat of a license for a machine, and how long to try. */
export interface Plan {
  readonly licenseKey: string;
  readonly machineId: string;
  /** The process on the machine, for licenses that count processes. */
  readonly instanceId?: string | undefined;
  /** The program's name for itself, for the audit log. */
  readonly userAgent?: string | undefined;
  /** An object of the program's own, for the audit log. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** How long to ask again while every seat is in use: `undefined` takes the first denial as final. */
  readonly wait?: Micros | undefined;
  /** How long to try a server that does not answer; a longer `wait` prevails. */
  readonly patience: Micros;
}

/** The default of `Plan.patience`. */
export const PATIENCE: Micros = 10 * SECOND;
