/** The ways to open an event stream: the program's `fetch`, or a socket of Node.js that keeps no process alive. */

/** The begin of an answer whose body is read piece by piece. */
export interface Opened {
  readonly status: number;
  readonly type: string;
  readonly pieces: AsyncIterable<Uint8Array>;
}

/** Sends a GET and returns the begin of the answer. Rejects if there is none; `signal` ends the answer. */
export interface StreamOpener {
  open(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Opened>;
  /** True if streams may use up the connections that requests need: browsers open six to a host over HTTP/1.1. */
  readonly isSharing: boolean;
}

/** Opens streams with a `fetch`. */
export class FetchOpener implements StreamOpener {
  readonly isSharing = true;

  constructor(private readonly send: typeof fetch) {}

  async open(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Opened> {
    const options = { headers, signal, cache: "no-store", credentials: "omit", redirect: "manual" } as const;
    const answer = await this.send(url, options);
    return { status: answer.status, type: answer.headers.get("Content-Type") ?? "", pieces: piecesOf(answer.body) };
  }
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

interface NodeSocket {
  unref(): void;
}

interface NodeAnswer extends AsyncIterable<Uint8Array> {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

interface NodeRequest {
  on(event: "socket", listener: (socket: NodeSocket) => void): this;
  on(event: "response", listener: (answer: NodeAnswer) => void): this;
  on(event: "error", listener: (error: Error) => void): this;
}

interface NodeHttp {
  get(url: string, options: Readonly<Record<string, unknown>>): NodeRequest;
}

interface NodeHost {
  readonly getBuiltinModule?: (name: string) => unknown;
}

/** Opens streams with a connection of their own, which keeps no Node.js process alive: `fetch` has no such choice. */
export class NodeOpener implements StreamOpener {
  readonly isSharing = false;

  private constructor(
    private readonly http: NodeHttp,
    private readonly https: NodeHttp,
  ) {}

  /** Returns `undefined` outside of Node.js 20.16 and newer. */
  static ofHost(): NodeOpener | undefined {
    const load = (globalThis as { process?: NodeHost }).process?.getBuiltinModule;
    const [http, https] = [load?.("node:http"), load?.("node:https")];
    return http === undefined || https === undefined ? undefined : new NodeOpener(http as NodeHttp, https as NodeHttp);
  }

  open(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Opened> {
    const http = url.startsWith("https:") ? this.https : this.http;
    return new Promise((resolve, reject) => {
      http
        .get(url, { headers, signal, agent: false })
        .on("socket", (socket) => socket.unref())
        .on("error", reject)
        .on("response", (answer) => {
          resolve({ status: answer.statusCode, type: answer.headers["content-type"] ?? "", pieces: answer });
        });
    });
  }
}
