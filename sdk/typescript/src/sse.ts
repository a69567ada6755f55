/** Server-sent events, parsed by the rules of the HTML standard. */

/** One event of a stream. */
export interface ServerEvent {
  readonly type: string;
  readonly data: string;
}

/** The longest text of one event: no event of a server comes near. */
const EVENT_CHARS_MAX = 1 << 16;

/** Parses a stream piece by piece. The field `retry` is ignored: the client has a backoff of its own. */
export class EventParser {
  /** The id of the latest event, for the header `Last-Event-ID`. */
  lastEventId: string | undefined;
  /** The id that the next dispatch makes the latest. */
  #id: string | undefined;
  #type = "";
  #data: string[] = [];
  #line = "";
  #size = 0;
  /** The last piece ended with a carriage return, so a line feed at the begin of the next piece ends no second line. */
  #afterReturn = false;
  #isFirst = true;

  /** Continues a stream after the event with this id. */
  constructor(lastEventId?: string) {
    this.lastEventId = this.#id = lastEventId;
  }

  /** Takes a piece of the stream, and returns the events that it completes. Throws if an event is too long. */
  push(piece: string): ServerEvent[] {
    if (piece === "") return [];
    if (this.#isFirst && piece.startsWith("\ufeff")) piece = piece.slice(1);
    this.#isFirst = false;
    if (this.#afterReturn && piece.startsWith("\n")) piece = piece.slice(1);
    this.#afterReturn = piece.endsWith("\r");
    const events: ServerEvent[] = [];
    const [first = "", ...lines] = piece.split(/\r\n|\r|\n/);
    this.#line += first;
    for (const line of lines) {
      this.#take(this.#line, events);
      this.#line = line;
    }
    if (this.#size + this.#line.length > EVENT_CHARS_MAX) throw new Error("an event is too long");
    return events;
  }

  #take(line: string, events: ServerEvent[]): void {
    if (line === "") return this.#dispatch(events);
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (field) {
      case "event":
        this.#type = value;
        break;
      case "data":
        this.#data.push(value);
        this.#size += value.length;
        break;
      case "id":
        if (!value.includes("\0")) this.#id = value;
    }
  }

  #dispatch(events: ServerEvent[]): void {
    this.lastEventId = this.#id;
    if (this.#data.length > 0) events.push({ type: this.#type || "message", data: this.#data.join("\n") });
    this.#type = "";
    this.#data = [];
    this.#size = 0;
  }
}
