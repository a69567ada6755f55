import type { Call, Failure, Response } from "./core/request.js";

/** The begin of an answer whose body is read piece by piece. */
export interface Opened {
  readonly status: number;
  readonly type: string;
  /** Returns the next piece of the body; `undefined` at its end. */
  read(): Promise<Uint8Array | undefined>;
}

/** The server of a client, and the way to it. */
export interface Server {
  /** Sends one request and returns its response, or rejects. A release outlives its page. */
  send(call: Call, token: string | undefined, signal: AbortSignal): Promise<Response>;
  /** Opens an event stream after the event `lastEventId`. */
  open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened>;
  /** Hands a call without a token to the browser, which sends the call even if the page closes. Returns false if not. */
  beacon(call: Call): boolean;
  /** True if streams may use up the connections that requests need: browsers open six to a host over HTTP/1.1. */
  readonly isSharing: boolean;
}

/** A request got no response, or had no token. */
export class TransportError extends Error {
  constructor(
    /** The failure, or an answer that stands for the answer to the request. */
    readonly outcome: Failure | Response,
    cause?: unknown,
  ) {
    super("no answer", { cause });
  }
}

/** The reason of a signal that ends a request for lack of an answer. */
export const TIMED_OUT = new TransportError("timeout");

/** Settles as `promise` does, or rejects once the signal aborts. */
export function unlessAborted<T>(promise: Promise<T> | T, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });
  return Promise.race([promise, aborted]);
}
