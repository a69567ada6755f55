/** A server whose answers a test computes. The server notes every request. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

// A test that failed leaves its server open, which would keep the process alive for ever.
after(() => setTimeout(() => process.exit(), 2_000).unref());

/** A request as it arrived. */
export interface Arrived {
  /** The method and the path. */
  readonly target: string;
  /** The time after the whole request was read, in milliseconds of `performance.now()`. */
  readonly at: number;
  readonly token: string | undefined;
  readonly body: Record<string, unknown>;
}

/** An answer, and the milliseconds before the answer. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly retryAfter?: number;
  readonly delay?: number | Promise<void>;
  readonly requestId?: string;
}

/** An event stream that a client asked for. */
export interface Stream {
  readonly target: string;
  readonly token: string | undefined;
  readonly accept: string | undefined;
  readonly lastEventId: string | undefined;
  /** Settles when the connection is closed. */
  readonly closed: Promise<unknown>;
  /** Answers without a stream. */
  refuse(status: number): void;
  /** Answers with a stream, or goes on with it. */
  send(text: string, type?: string): void;
  /** Breaks the connection. */
  cut(): void;
}

/** A running server. */
export interface Scripted {
  readonly url: string;
  /** Returns the requests whose target begins with `target`. */
  arrived(target?: string): Arrived[];
  /** The streams that clients asked for, in order. */
  readonly streams: readonly Stream[];
  /** Returns the stream with this number, from 0 up, as soon as a client asks for it. */
  stream(number: number): Promise<Stream>;
  close(): void;
}

export const GRANT = { session_id: "0198a0aa-0000-7000-8000-000000000001", expires_in_seconds: 360 };

/**
 * Starts a server. `reply` gets each request with the number of earlier requests for the same target, and `listen` each
 * event stream. Without `listen` every stream is refused with 503.
 */
export async function scripted(
  reply: (request: Arrived, earlier: number) => Reply,
  listen: (stream: Stream, earlier: number) => void = (stream) => stream.refuse(503),
): Promise<Scripted> {
  const noted: Arrived[] = [];
  const streams: Stream[] = [];
  const server = createServer((message, answer) => {
    if (message.method === "GET") {
      const stream = streamOf(message, answer);
      listen(stream, streams.push(stream) - 1);
      return;
    }
    void read(message).then((request) => {
      const earlier = noted.filter((other) => other.target === request.target).length;
      noted.push(request);
      const { status, body = {}, retryAfter, delay = 0, requestId } = reply(request, earlier);
      const headers: Record<string, string> = retryAfter === undefined ? {} : { "Retry-After": `${retryAfter}` };
      if (requestId !== undefined) headers["X-Request-Id"] = requestId;
      void (typeof delay === "number" ? sleep(delay, undefined, { ref: false }) : delay).then(() => {
        // A release that the test grants is answered as by a real server.
        const isReleased = message.method === "DELETE" && status >= 200 && status <= 299;
        if (isReleased) answer.writeHead(204, headers).end();
        else answer.writeHead(status, headers).end(JSON.stringify(body));
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    arrived: (target = "") => noted.filter((request) => request.target.startsWith(target)),
    streams,
    stream: async (number) => {
      for (const end = performance.now() + 10_000; performance.now() < end; await sleep(5)) {
        const stream = streams[number];
        if (stream !== undefined) return stream;
      }
      throw new Error(`no client asks for stream ${number}`);
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function streamOf(message: IncomingMessage, answer: ServerResponse): Stream {
  return {
    target: `${message.method} ${message.url}`,
    token: message.headers.authorization?.replace("Bearer ", ""),
    accept: message.headers.accept,
    lastEventId: message.headers["last-event-id"] as string | undefined,
    closed: once(answer, "close"),
    refuse: (status) => answer.writeHead(status).end(),
    send: (text, type = "text/event-stream") => {
      if (!answer.headersSent) answer.writeHead(200, { "Content-Type": type });
      answer.write(text);
    },
    cut: () => message.socket.destroy(),
  };
}

async function read(message: IncomingMessage): Promise<Arrived> {
  let text = "";
  for await (const chunk of message) text += String(chunk);
  return {
    target: `${message.method} ${message.url}`,
    at: performance.now(),
    token: message.headers.authorization?.replace("Bearer ", ""),
    body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
  };
}
