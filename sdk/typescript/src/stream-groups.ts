/** Decides which seats share an event stream. Connections are the part of `shared-stream.ts`. */

import type { Door } from "./core/door.js";
import { eventsPath } from "./core/request.js";

/** The most members of a group: the server tells of no more sessions on one stream. */
export const MEMBERS_MAX = 100;

/** The seats that share one event stream. */
export interface StreamGroup<Member> {
  readonly door: Pick<Door, "api">;
  readonly members: Set<Member>;
}

/** The groups of the seats that have one token. Each API has groups of its own. */
export class StreamGroups<Member, Group extends StreamGroup<Member>> {
  readonly #groups = new Set<Group>();

  /** Adds a seat to the oldest group of its API with a free place, or else to the new group that `begin` returns. */
  join(member: Member, door: Pick<Door, "api">, begin: () => Group): Group {
    const hasPlace = (group: Group) => group.door.api === door.api && group.members.size < MEMBERS_MAX;
    const group = [...this.#groups].find(hasPlace) ?? begin();
    this.#groups.add(group);
    group.members.add(member);
    return group;
  }

  /** Removes a seat from its group, and drops a group without seats. */
  leave(member: Member, group: Group): void {
    group.members.delete(member);
    if (group.members.size === 0) this.#groups.delete(group);
  }
}

/** Returns the sessions of a group, each once, in the order in which the seats joined. */
export function sessionsOf(members: Iterable<{ readonly session: string }>): string[] {
  return [...new Set(Array.from(members, ({ session }) => session))];
}

/** Returns the path of the event stream of these sessions. A stream of one session has the plain path. */
export function sharedPath(door: Door, [first, ...others]: readonly string[]): string {
  const path = eventsPath(door, first!);
  return others.length === 0 ? path : `${path}?with=${others.join()}`;
}

/**
 * The consequence of an answer for a session: `over` ends the streams of the session, and with `separate` the session gets a
 * stream that it never shares.
 */
export type Fate = "over" | "separate";

/** Returns the fate of the sessions of a request that was answered `status`; `undefined` if the request is sent again. */
export function fateOf(status: number, isShared: boolean): Fate | undefined {
  // 204: the end of the session was told. 404: the session is none of the caller's.
  if (!isShared) return status === 204 || status === 404 ? "over" : undefined;
  // A proxy, or a server that knows no shared streams.
  const isRefusal = status >= 400 && status <= 499 && status !== 401 && status !== 429;
  return isRefusal || status === 204 ? "separate" : undefined;
}
