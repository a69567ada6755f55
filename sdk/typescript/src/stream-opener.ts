/** The way to open an event stream. */

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
