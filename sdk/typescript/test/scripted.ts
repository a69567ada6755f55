/** A server whose answers a test computes. The server notes every request. */

import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";

/** A request as it arrived. */
export interface Arrived {
  /** The method and the path. */
  readonly target: string;
  readonly token: string | undefined;
  readonly body: Record<string, unknown>;
}

/** An answer, and the milliseconds before the answer. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly retryAfter?: number;
  readonly delay?: number;
}

/** A running server. */
export interface Scripted {
  readonly url: string;
  /** Returns the requests whose target begins with `target`. */
  arrived(target?: string): Arrived[];
  close(): void;
}

export const GRANT = { session_id: "0198a0aa-0000-7000-8000-000000000001", expires_in_seconds: 360 };

/** Starts a server. `reply` gets each request with the number of earlier requests for the same target. */
export async function scripted(reply: (request: Arrived, earlier: number) => Reply): Promise<Scripted> {
  const noted: Arrived[] = [];
  const server = createServer((message, answer) => {
    void read(message).then((request) => {
      const earlier = noted.filter((other) => other.target === request.target).length;
      noted.push(request);
      const { status, body = {}, retryAfter, delay = 0 } = reply(request, earlier);
      const headers = retryAfter === undefined ? {} : { "Retry-After": `${retryAfter}` };
      setTimeout(() => answer.writeHead(status, headers).end(JSON.stringify(body)), delay).unref();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    arrived: (target = "") => noted.filter((request) => request.target.startsWith(target)),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function read(message: IncomingMessage): Promise<Arrived> {
  let text = "";
  for await (const chunk of message) text += String(chunk);
  return {
    target: `${message.method} ${message.url}`,
    token: message.headers.authorization?.replace("Bearer ", ""),
    body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
  };
}
