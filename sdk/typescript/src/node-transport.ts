/// <reference types="node" />
/** The way to a server from Node.js: named failures, bounded answers, and streams that keep no process alive. */

import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp, type RequestOptions } from "node:http";
import { Agent as TlsAgent, request as requestHttps } from "node:https";
import { getDefaultAutoSelectFamilyAttemptTimeout, type Socket } from "node:net";
import { urlToHttpOptions } from "node:url";

import { whole } from "./core/json.js";
import type { Call, Failure, Response } from "./core/request.js";
import { SeatkeeperError } from "./errors.js";
import { type Opened, TransportError } from "./server.js";
import { eventHeaders, Transport } from "./transport.js";

/** The largest answer that is read: no answer of a server comes near. */
const ANSWER_BYTES_MAX = 1 << 20;
/** An idle connection is closed after this many milliseconds: servers and proxies keep one for longer. */
const IDLE_MAX = 5_000;
/** Connections at a time: a server's queue of new connections is short. */
const CONNECTIONS_MAX = 64;
/**
 * The time to connect to one of several addresses of a host in milliseconds, but for the last. The default of Node.js, 250 ms,
 * is shorter than a slow link takes, and Node.js gives the connection up then. A try of a release lasts 1 s, and must reach the
 * second address.
 */
const ATTEMPT_MAX = 600;
/** The time to connect to one of several servers in milliseconds: the next server then gets the request. */
const CONNECT_MAX = 3_000;
/** The connections of all clients. An idle one keeps no process alive. */
const POOL = { keepAlive: true, timeout: IDLE_MAX, maxSockets: CONNECTIONS_MAX };
const HTTP = { request: requestHttp, agent: new Agent(POOL) };
const HTTPS = { request: requestHttps, agent: new TlsAgent(POOL) };

/** One server, reached from Node.js. */
export class NodeTransport extends Transport {
  override readonly isSharing: boolean;
  /** The address as the options of a request: an address as a text would be parsed for each request. */
  readonly #target: RequestOptions;
  /** The path before `/api`, behind a proxy. */
  readonly #prefix: string;

  /** Parses the address of one server, or of one of several. Throws a `SeatkeeperError` with the code `misuse` if it is none. */
  constructor(
    url: string,
    send: typeof fetch | undefined,
    private readonly isOneOfSeveral = false,
  ) {
    const { protocol, username, password } = new URL(URL.canParse(url) ? url : "none:");
    if (!/^https?:$/.test(protocol) || username + password !== "") {
      // An error may be logged, and the address may hold a password.
      if (url.includes("@")) throw new SeatkeeperError("misuse", "the address of a server has no user name: pass a token instead");
      const want = "want http://HOST:PORT or https://HOST:PORT";
      throw new SeatkeeperError("misuse", `${url} is not the address of a server: ${want}`);
    }
    super(url, send);
    // A `fetch` of the program may have reasons of its own.
    this.isSharing = send !== undefined;
    const target = new URL(url);
    const { protocol: scheme, hostname, port } = urlToHttpOptions(target);
    const attempt = { autoSelectFamilyAttemptTimeout: Math.max(ATTEMPT_MAX, getDefaultAutoSelectFamilyAttemptTimeout()) };
    this.#target = { protocol: scheme, hostname, port, ...attempt };
    this.#prefix = target.pathname.replace(/\/+$/, "");
  }

  override async send(call: Call, token: string | undefined, signal: AbortSignal): Promise<Response> {
    try {
      return await (this.isSharing ? super.send(call, token, signal) : this.#send(call, token, signal));
    } catch (error) {
      if (error instanceof TransportError) throw error;
      const failure = failureOf(error);
      // The error of an answer that is not HTTP has the bytes of the answer, which may hold a release code.
      throw new TransportError(failure, failure === "garbage" ? undefined : error);
    }
  }

  /** Opens the stream with a connection of its own, which keeps no process alive: `fetch` has no such choice. */
  override async open(path: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened> {
    if (this.isSharing) return super.open(path, token, lastEventId, signal);
    const headers = { ...eventHeaders(lastEventId), Authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      this.#request(path, { headers, signal, agent: false }, (answer) => {
        const { statusCode: status = 0, headers } = answer;
        const pieces = answer[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>;
        resolve({ status, type: headers["content-type"] ?? "", read: async () => (await pieces.next()).value });
      })
        .on("socket", (socket) => socket.unref())
        .on("error", reject)
        .end();
    });
  }

  /** Sends a request without `fetch`, whose streams cost more than the rest of a heartbeat. */
  #send({ method, path, body }: Call, token: string | undefined, signal: AbortSignal): Promise<Response> {
    const text = body && JSON.stringify(body);
    const headers = {
      Accept: "application/json",
      ...(text !== undefined && { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) }),
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    };
    return new Promise((resolve, reject) => {
      const request = this.#request(path, { method, headers }, (answer) => readWhole(answer).then(resolve, reject));
      // The option `signal` costs more: Node.js would also watch for the end of the stream.
      const abort = () => void request.destroy(signal.reason as Error);
      signal.addEventListener("abort", abort);
      if (this.isOneOfSeveral) request.once("socket", (socket) => limitConnect(request, socket));
      request
        .on("error", reject)
        .on("close", () => signal.removeEventListener("abort", abort))
        .end(text);
      if (signal.aborted) abort();
    });
  }

  #request(path: string, options: RequestOptions, answered: (answer: IncomingMessage) => void): ClientRequest {
    const { request, agent } = this.#target.protocol === "https:" ? HTTPS : HTTP;
    return request({ agent, ...this.#target, path: this.#prefix + path, ...options }, answered);
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

/** Ends a request whose connection does not come in time, with the error of a request that was not sent. */
function limitConnect(request: ClientRequest, socket: Socket): void {
  if (!socket.connecting) return;
  const error = Object.assign(new Error("connect: no connection in time"), { code: "ETIMEDOUT", syscall: "connect" });
  const timer = setTimeout(() => request.destroy(error), CONNECT_MAX);
  const stop = () => clearTimeout(timer);
  socket.once("connect", stop).once("close", stop);
}

/** Reads an answer to its end. */
function readWhole(answer: IncomingMessage): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { statusCode: status = 0, headers } = answer;
    const pieces: Buffer[] = [];
    let bytes = 0;
    answer.on("data", (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > ANSWER_BYTES_MAX) answer.destroy(new TransportError("garbage"));
      else pieces.push(piece);
    });
    answer.on("error", (error) => {
      reject(error instanceof TransportError ? error : new TransportError("truncated", error));
    });
    answer.on("end", () => {
      resolve({
        status,
        retryAfter: whole(Number(headers["retry-after"] ?? NaN)),
        body: Buffer.concat(pieces).toString(),
        requestId: headers["x-request-id"] as string | undefined,
      });
    });
  });
}

/** Errors of connections without the name of their call. */
const UNSENT = /^(E(CONNREFUSED|NOTFOUND|AI_AGAIN|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|ADDRNOTAVAIL)|UND_ERR_CONNECT_TIMEOUT)$/;
/** Calls that come before a request leaves the host. */
const CALLS_BEFORE_SENT = ["getaddrinfo", "connect"];
/** Causes of a handshake that the certificate ended. */
const CERTIFICATE = /CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CRL/;

/** An error of the system or of Node.js. A host with several addresses has an error for each. */
interface Cause {
  readonly code?: unknown;
  readonly syscall?: string;
  readonly errors?: readonly Cause[];
}

/** Returns the failure behind an error of a request or of `fetch`. Without a code the server may have seen the request. */
export function failureOf(error: unknown): Failure {
  const cause = causeOf(error);
  const { code } = cause;
  if (isUnsent(cause)) return "refused";
  if (typeof code !== "string") return "reset-after-send";
  if (code.startsWith("HPE_")) return "garbage";
  if (CERTIFICATE.test(code)) return "certificate";
  return UNSENT.test(code) || code.startsWith("ERR_SSL_") ? "refused" : "reset-after-send";
}

/** Returns true for the error of a host name without an address. */
export function isUnresolved(error: unknown): boolean {
  return causeOf(error).syscall === "getaddrinfo";
}

/** Returns the error of the system, which `fetch` puts into an error of its own. */
function causeOf(error: unknown): Cause {
  const { cause = error } = Object(error) as { cause?: unknown };
  return Object(cause) as Cause;
}

function isUnsent({ syscall = "", errors = [] }: Cause): boolean {
  return errors.length > 0 ? errors.every(isUnsent) : CALLS_BEFORE_SENT.includes(syscall);
}
