/** License tokens: the client trades a license key for a short-lived token of one machine. */

import { type Micros, SECOND } from "./core/clocks.js";
import { parseObject, text, whole } from "./core/json.js";
import { problemOf } from "./core/problem.js";
import type { Response } from "./core/request.js";
import { type Server, TIMED_OUT, TransportError, unlessAborted } from "./server.js";
import { type Bearer, isToken, type Tokens } from "./tokens.js";

const PATH = "/api/v1/licenses/token";
/** The timeout of a request for a token in milliseconds. */
const TIMEOUT = 10_000;
/** The pause after a failed replacement ahead of time. */
const PAUSE = 10 * SECOND;
/** The number of machines above which expired tokens are dropped. */
const MACHINES_KEPT = 64;

const REMEDIES: Readonly<Record<string, string>> = {
  "license-not-found":
    "no license token: the key or the tenant is unknown, or the license is suspended, expired or closed to license tokens. Check the key and the tenant; an operator opens a license with `seatkeeper license update LICENSE_ID --clients key`",
  "not-found":
    "the server issues no license tokens: an operator sets auth.license_token_key_file on every node; else give the client a user's token",
};

interface Token {
  readonly text: string;
  readonly renewAt: Micros;
  readonly overAt: Micros;
}

/** The token of one machine. */
interface Slot {
  token: Token | undefined;
  /** The request in flight, which serves all seats. */
  fetching: Promise<Token> | undefined;
  /** The time before which no replacement ahead of time is tried. */
  pauseUntil: Micros;
  /** The number of tokens so far. */
  generation: number;
  readonly bearer: Bearer;
}

/** A license token for each machine of a client. Times are readings of `now`, the clock that counts sleep. */
export class LicenseTokens implements Tokens {
  readonly #machines = new Map<string, Slot>();

  constructor(
    private readonly server: Server,
    /** Returns the body of a request for a token of this machine. */
    private readonly body: (machineId: string) => Readonly<Record<string, unknown>>,
    private readonly now: () => Micros,
    private readonly timeout = TIMEOUT,
  ) {}

  bearer(machineId: string): Bearer {
    return this.#slot(machineId).bearer;
  }

  /**
   * Returns the token of a machine. Rejects with a `TransportError`, whose outcome may be the server's refusal.
   *
   * A token in the last fifth of its life is returned as well, and replaced in the background, so that no heartbeat waits
   * for the replacement.
   */
  async current(machineId: string): Promise<string> {
    const slot = this.#slot(machineId);
    const now = this.now();
    if (slot.token === undefined || now >= slot.token.overAt) return (await this.#fetch(machineId, slot)).text;
    if (now >= slot.token.renewAt && slot.fetching === undefined && now >= slot.pauseUntil) {
      this.#fetch(machineId, slot).catch(() => {
        slot.pauseUntil = this.now() + PAUSE;
      });
    }
    return slot.token.text;
  }

  /** Replaces a token that the server rejected. Rejects with a `TransportError` without a new token. */
  async refresh(machineId: string): Promise<void> {
    await this.#fetch(machineId, this.#slot(machineId));
  }

  /** The number of machines with a slot. */
  get size(): number {
    return this.#machines.size;
  }

  #fetch(machineId: string, slot: Slot): Promise<Token> {
    slot.fetching ??= this.#ask(machineId, slot).finally(() => {
      slot.fetching = undefined;
    });
    return slot.fetching;
  }

  /** Asks the server for a token, and keeps it. A refusal drops the old token, which the server rejects as well. */
  async #ask(machineId: string, slot: Slot): Promise<Token> {
    const began = this.now();
    const answer = await this.#send(machineId);
    if (answer.status !== 200) {
      const isRefusal = answer.status >= 400 && answer.status <= 499 && ![408, 429].includes(answer.status);
      if (isRefusal) slot.token = undefined;
      throw new TransportError(explained(answer));
    }
    const members = parseObject(answer.body) ?? {};
    const [line, seconds] = [text(members["token"]), whole(members["expiresInSeconds"])];
    if (line === undefined || seconds === undefined || !isToken(line)) throw new TransportError("garbage");
    const life = seconds * SECOND;
    slot.token = { text: line, renewAt: began + life * 0.8, overAt: began + life };
    slot.generation += 1;
    return slot.token;
  }

  async #send(machineId: string): Promise<Response> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(TIMED_OUT), this.timeout);
    // A request for a token alone keeps no Node.js process alive; browsers have no such notion.
    (timer as { unref?: () => void }).unref?.();
    const body = this.body(machineId);
    try {
      const answer = this.server.send({ method: "POST", path: PATH, body }, undefined, abort.signal);
      // A `fetch` of the program may take no notice of its signal, and would hold up every later request for a token.
      return await unlessAborted(answer, abort.signal);
    } catch (error) {
      throw abort.signal.aborted ? new TransportError("timeout", error) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  #slot(machineId: string): Slot {
    const found = this.#machines.get(machineId);
    if (found !== undefined) return found;
    if (this.#machines.size >= MACHINES_KEPT) {
      const now = this.now();
      for (const [name, { token, fetching }] of this.#machines) {
        if (fetching === undefined && now >= (token?.overAt ?? 0)) this.#machines.delete(name);
      }
    }
    const bearer = this.#newBearer(machineId);
    const slot: Slot = { token: undefined, fetching: undefined, pauseUntil: 0, generation: 0, bearer };
    this.#machines.set(machineId, slot);
    return slot;
  }

  /** A seat may outlive the slot of its machine, so the bearer looks for the slot. */
  #newBearer(machineId: string): Bearer {
    const slot = () => this.#slot(machineId);
    return {
      get generation() {
        return slot().generation;
      },
      current: (method) => this.current(machineId).catch((error: unknown) => { throw forRequest(method, error); }),
      replace: async (rejected) => (rejected < slot().generation ? undefined : this.refresh(machineId)),
    };
  }
}

/** Adds the remedy to the server's refusal of a license token. */
function explained(answer: Response): Response {
  const problem = problemOf(answer);
  const detail = REMEDIES[problem.code];
  if (detail === undefined || !("type" in problem)) return answer;
  return { ...answer, body: JSON.stringify({ ...parseObject(answer.body), detail }) };
}

/** A refused license token refuses an acquire as well, but tells nothing of a session. */
function forRequest(method: string, error: unknown): unknown {
  if (!(error instanceof TransportError) || typeof error.outcome === "string" || method === "POST") return error;
  const { status } = error.outcome;
  return status === 408 || status === 429 || status >= 500 ? error : new TransportError("no-token", error);
}
