import { whole } from "./core/json.js";
import type { Call, Response } from "./core/request.js";
import type { Opened, Server } from "./server.js";

/** An id that a header can carry. */
const EVENT_ID = /^[\x20-\x7e]{1,200}$/;

/** One server, reached by `fetch`. */
export class Transport implements Server {
  readonly inUse: number = 0;
  readonly isSharing: boolean = true;
  readonly #base: string;
  readonly #fetch: typeof fetch;

  /** Parses the address. Throws a `TypeError` if it is none. */
  constructor(url: string, send: typeof fetch = (...request) => fetch(...request)) {
    const { origin, pathname } = new URL(url);
    this.#base = origin + pathname.replace(/\/+$/, "");
    this.#fetch = send;
  }

  async send({ method, path, body }: Call, token: string | undefined, signal: AbortSignal, keepalive: boolean): Promise<Response> {
    const headers = body && { "Content-Type": "application/json" };
    const text = body && JSON.stringify(body);
    const answer = await this.#ask(path, token, { method, signal, keepalive, ...(text && { body: text }) }, headers);
    return {
      status: answer.status,
      retryAfter: whole(Number(answer.headers.get("Retry-After") ?? NaN)),
      body: await this.read(answer),
      requestId: answer.headers.get("X-Request-Id") ?? undefined,
    };
  }

  async open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> {
    const { status, headers, body } = await this.#ask(path, token, { signal }, eventHeaders(lastEventId));
    return { status, type: headers.get("Content-Type") ?? "", pieces: piecesOf(body) };
  }

  beacon({ path, body }: Call): boolean {
    try {
      // A text needs no preflight.
      return navigator.sendBeacon(this.#base + path, JSON.stringify(body));
    } catch {
      return false;
    }
  }

  /** Reads the body of an answer. */
  protected read(answer: globalThis.Response): Promise<string> {
    return answer.text();
  }

  #ask(path: string, token: string | undefined, options: RequestInit, headers?: Record<string, string>) {
    const bearer = token && { Authorization: `Bearer ${token}` };
    return this.#fetch(this.#base + path, {
      ...options,
      headers: { ...headers, ...(bearer || {}) },
      cache: "no-store",
      credentials: "omit",
      redirect: "manual",
    });
  }
}

/** Returns the headers of a request for an event stream. */
export function eventHeaders(lastEventId: string | undefined): Record<string, string> {
  const isTold = lastEventId !== undefined && EVENT_ID.test(lastEventId);
  return { Accept: "text/event-stream", ...(isTold && { "Last-Event-ID": lastEventId }) };
}

/** Safari iterates over no `ReadableStream`. */
async function* piecesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  for (;;) {
    const piece = await reader?.read();
    if (piece?.value === undefined) return;
    yield piece.value;
  }
}
