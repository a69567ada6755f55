import type { Call, Failure, Response } from "./core/request.js";
import { SeatkeeperError } from "./errors.js";
import type { Opened, StreamOpener } from "./stream-opener.js";

/** An id that a header can carry. */
const EVENT_ID = /^[\x20-\x7e]{1,200}$/;
/** The largest answer that is read: no answer of a server comes near. */
const ANSWER_BYTES_MAX = 1 << 20;

/** A request got no response. */
export class TransportError extends Error {
  constructor(
    readonly failure: Failure,
    options?: ErrorOptions,
  ) {
    super(failure, options);
  }
}

/** A server, and the way to it. */
export class Transport {
  readonly #base: string;
  readonly #fetch: typeof fetch;
  readonly #opener: StreamOpener;

  /** Parses the address; throws `SeatkeeperError` with the code `misuse` if it is none. */
  constructor(url: string, send: typeof fetch, opener: StreamOpener) {
    let base: URL | undefined;
    try {
      base = new URL(url);
    } catch {
      // The check below reports the address.
    }
    if (base === undefined || !/^https?:$/.test(base.protocol) || base.username !== "") {
      const want = "want http://HOST:PORT or https://HOST:PORT";
      throw new SeatkeeperError("misuse", `${url} is not the address of a server: ${want}`);
    }
    this.#base = base.origin + base.pathname.replace(/\/+$/, "");
    this.#fetch = send;
    this.#opener = opener;
  }

  /** Sends one request and returns its response. Throws `TransportError`. `keepalive` lets it outlive a page. */
  async send(call: Call, token: string | undefined, signal: AbortSignal, keepalive: boolean): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
    if (call.body !== undefined) headers["Content-Type"] = "application/json";
    let answer: globalThis.Response;
    try {
      answer = await this.#fetch(this.#base + call.path, {
        method: call.method,
        headers,
        body: call.body === undefined ? null : JSON.stringify(call.body),
        cache: "no-store",
        credentials: "omit",
        redirect: "manual",
        keepalive,
        signal,
      });
    } catch (error) {
      throw new TransportError(failureOf(error), { cause: error });
    }
    const retryAfter = answer.headers.get("Retry-After") ?? "";
    return {
      status: answer.status,
      retryAfter: /^\d{1,15}$/.test(retryAfter) ? Number(retryAfter) : undefined,
      body: await read(answer),
      requestId: answer.headers.get("X-Request-Id") ?? undefined,
    };
  }

  /** Opens an event stream after the event `lastEventId`. */
  open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> {
    const headers: Record<string, string> = { Accept: "text/event-stream", Authorization: `Bearer ${token}` };
    if (lastEventId !== undefined && EVENT_ID.test(lastEventId)) headers["Last-Event-ID"] = lastEventId;
    return this.#opener.open(this.#base + path, headers, signal);
  }

  /** Hands a call without a token to the browser, which sends the call even if the page closes. Returns false if not. */
  beacon(call: Call): boolean {
    // A text needs no preflight.
    return sendBeacon(this.#base + call.path, JSON.stringify(call.body));
  }
}

/** Sends a `navigator.sendBeacon`: a POST of a page that closes, in the background and without a preflight. */
function sendBeacon(url: string, text: string): boolean {
  const { navigator } = globalThis as { navigator?: { sendBeacon?: (url: string, text: string) => boolean } };
  try {
    return navigator?.sendBeacon?.(url, text) ?? false;
  } catch {
    return false;
  }
}

async function read(answer: globalThis.Response): Promise<string> {
  if (answer.body === null) return "";
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      bytes += value.byteLength;
      if (bytes > ANSWER_BYTES_MAX) {
        await reader.cancel();
        throw new TransportError("garbage");
      }
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    throw error instanceof TransportError ? error : new TransportError("truncated", { cause: error });
  }
}

/** Causes of requests that never left the host. */
const UNSENT = /^(E(CONNREFUSED|NOTFOUND|AI_AGAIN|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|ADDRNOTAVAIL)|UND_ERR_CONNECT_TIMEOUT)$/;
/** Causes of a handshake that the certificate ended. */
const CERTIFICATE = /CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CRL/;

/** Node.js names the cause of a failed `fetch`. Browsers hide the cause, so the server may have seen the request. */
export function failureOf(error: unknown): Failure {
  const cause = (error as { cause?: { code?: unknown } }).cause?.code;
  if (typeof cause !== "string") return "reset-after-send";
  if (cause.startsWith("HPE_")) return "garbage";
  if (CERTIFICATE.test(cause)) return "certificate";
  return UNSENT.test(cause) || cause.startsWith("ERR_SSL_") ? "refused" : "reset-after-send";
}
