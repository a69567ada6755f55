import { Acquiring } from "./acquiring.js";
import type { Event, Finish } from "./events.js";
import type { Context } from "./exchange.js";
import type { Orphan } from "./orphan.js";
import type { Phase } from "./phase.js";
import { releaseOrphan } from "./releasing.js";
import type { State } from "./state.js";

/** A seat that is lost, refused or released; only the program begins again. */
export class Ended implements Phase {
  readonly wakeAt = undefined;

  constructor(
    readonly state: State,
    /** The session that may live at the server. */
    private readonly orphan?: Orphan,
  ) {}

  wake(): Phase {
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (event.kind === "acquire") return new Acquiring(this.orphan, context);
    if (event.kind === "release") return releaseOrphan(this.orphan, context);
    return this;
  }
}

/** Ends a release; `orphan` is the session that may still live. */
export function released(finish: Finish, orphan: Orphan, context: Context): Phase {
  context.actions.push({ kind: "finish", finish });
  return new Ended({ kind: "released" }, orphan);
}
