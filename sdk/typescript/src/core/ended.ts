import { Acquiring } from "./acquiring.js";
import type { Event, Finish } from "./events.js";
import type { Context } from "./exchange.js";
import type { Phase } from "./phase.js";
import type { State } from "./state.js";

/** A seat that is lost, refused or released; only the program begins again. */
export class Ended implements Phase {
  readonly wakeAt = undefined;

  constructor(readonly state: State) {}

  wake(): Phase {
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (event.kind === "acquire") return new Acquiring(context);
    if (event.kind === "release") return released("given-back", context);
    return this;
  }
}

/** Ends a release. */
export function released(finish: Finish, context: Context): Phase {
  context.actions.push({ kind: "finish", finish });
  return new Ended({ kind: "released" });
}
