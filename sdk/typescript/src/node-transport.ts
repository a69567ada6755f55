/// <reference types="node" />
/** The way to a server from Node.js: named failures, bounded answers, and streams that keep no process alive. */

import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";

import type { Call, Failure, Response } from "./core/request.js";
import { SeatkeeperError } from "./errors.js";
import { type Opened, TransportError } from "./server.js";
import { eventHeaders, Transport } from "./transport.js";

/** The largest answer that is read: no answer of a server comes near. */
const ANSWER_BYTES_MAX = 1 << 20;

/** One server, reached from Node.js. */
export class NodeTransport extends Transport {
  override readonly isSharing: boolean;
  readonly #url: string;

  /** Parses the address. Throws a `SeatkeeperError` with the code `misuse` if it is none. */
  constructor(url: string, send: typeof fetch | undefined) {
    const { protocol, username } = URL.canParse(url) ? new URL(url) : { protocol: "", username: "" };
    if (!/^https?:$/.test(protocol) || username !== "") {
      const want = "want http://HOST:PORT or https://HOST:PORT";
      throw new SeatkeeperError("misuse", `${url} is not the address of a server: ${want}`);
    }
    super(url, send);
    // A `fetch` of the program may have reasons of its own.
    this.isSharing = send !== undefined;
    this.#url = url.replace(/\/+$/, "");
  }

  override async send(call: Call, token: string | undefined, signal: AbortSignal): Promise<Response> {
    try {
      return await super.send(call, token, signal);
    } catch (error) {
      throw error instanceof TransportError ? error : new TransportError(failureOf(error), error);
    }
  }

  /** Opens the stream with a connection of its own, which keeps no process alive: `fetch` has no such choice. */
  override async open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> {
    if (this.isSharing) return super.open(path, token, lastEventId, signal);
    const get = this.#url.startsWith("https:") ? getHttps : getHttp;
    const headers = { ...eventHeaders(lastEventId), Authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      get(this.#url + path, { headers, signal, agent: false })
        .on("socket", (socket) => socket.unref())
        .on("error", reject)
        .on("response", (answer) => {
          const { statusCode: status = 0, headers } = answer;
          const pieces = answer[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>;
          resolve({ status, type: headers["content-type"] ?? "", read: async () => (await pieces.next()).value });
        });
    });
  }

  protected override async read(answer: globalThis.Response): Promise<string> {
    if (answer.body === null) return "";
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    try {
      for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
        bytes += piece.byteLength;
        if (bytes > ANSWER_BYTES_MAX) throw new TransportError("garbage");
        text += decoder.decode(piece, { stream: true });
      }
    } catch (error) {
      throw error instanceof TransportError ? error : new TransportError("truncated", error);
    }
    return text + decoder.decode();
  }
}

/** Causes of requests that never left the host. */
const UNSENT = /^(E(CONNREFUSED|NOTFOUND|AI_AGAIN|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|ADDRNOTAVAIL)|UND_ERR_CONNECT_TIMEOUT)$/;
/** Causes of a handshake that the certificate ended. */
const CERTIFICATE = /CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CRL/;

/** Returns the failure behind an error of `fetch`. Without a cause the server may have seen the request. */
export function failureOf(error: unknown): Failure {
  const cause = (error as { cause?: { code?: unknown } }).cause?.code;
  if (typeof cause !== "string") return "reset-after-send";
  if (cause.startsWith("HPE_")) return "garbage";
  if (CERTIFICATE.test(cause)) return "certificate";
  return UNSENT.test(cause) || cause.startsWith("ERR_SSL_") ? "refused" : "reset-after-send";
}
