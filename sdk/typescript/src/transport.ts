import { whole } from "./core/json.js";
import type { Call, Response } from "./core/request.js";
import type { Opened, Server } from "./server.js";

/** One server, reached by `fetch`. */
export class Transport implements Server {
  readonly isSharing: boolean = true;
  readonly #base: string;
  readonly #fetch: typeof fetch;

  /** Parses the address. Throws a `TypeError` if it is none. */
  constructor(url: string, send: typeof fetch = (...request) => fetch(...request)) {
    const { origin, pathname } = new URL(url);
    this.#base = origin + pathname.replace(/\/+$/, "");
    this.#fetch = send;
  }

  async send(call: Call, token: string | undefined, signal: AbortSignal): Promise<Response> {
    const { method, body } = call;
    // `JSON.stringify` returns `undefined` for a call without a body.
    const options = { method, signal, keepalive: call.isOpen || method === "DELETE", body: JSON.stringify(body) };
    const answer = await this.#ask(call.path, token, options, body && { "Content-Type": "application/json" });
    return {
      status: answer.status,
      retryAfter: whole(Number(answer.headers.get("Retry-After") ?? NaN)),
      body: await this.read(answer),
      requestId: answer.headers.get("X-Request-Id") ?? undefined,
    };
  }

  async open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> {
    const answer = await this.#ask(path, token, { signal }, eventHeaders(lastEventId));
    // Safari iterates over no `ReadableStream`.
    const reader = answer.body?.getReader();
    return {
      status: answer.status,
      type: answer.headers.get("Content-Type") ?? "",
      read: async () => (await reader?.read())?.value,
    };
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
    return this.#fetch(this.#base + path, {
      ...options,
      headers: { ...headers, ...(token && { Authorization: `Bearer ${token}` }) },
      credentials: "omit",
      redirect: "manual",
    });
  }
}

/** Returns the headers of a request for an event stream. */
export function eventHeaders(lastEventId: string | undefined): Record<string, string> {
  return { Accept: "text/event-stream", ...(lastEventId && { "Last-Event-ID": lastEventId }) };
}
