/** The longest text of one event: no event of a server comes near. */
const EVENT_CHARS_MAX = 1 << 16;

/** Parses server-sent events piece by piece: the data and the ids, for a reader that needs no types and has its own backoff. */
export class EventParser {
  /** The id of the latest event, for the header `Last-Event-ID`. */
  lastEventId: string | undefined;
  #rest = "";

  /** Continues a stream after the event with this id. */
  constructor(lastEventId?: string) {
    this.lastEventId = lastEventId;
  }

  /** Takes a piece of the stream, and returns the data of the events that it completes. Throws if an event is too long. */
  push(piece: string): string[] {
    const events = (this.#rest + piece).split(/\r?\n\r?\n/);
    this.#rest = events.pop()!;
    if (this.#rest.length > EVENT_CHARS_MAX) throw new Error("an event is too long");
    return events.flatMap((event) => {
      const fields = (name: string) => {
        return [...event.matchAll(new RegExp(`^${name}: ?([^\\r\\n]*)`, "gm"))].map(([, value]) => value!);
      };
      this.lastEventId = fields("id").at(-1) ?? this.lastEventId;
      const data = fields("data");
      return data.length > 0 ? [data.join("\n")] : [];
    });
  }
}
