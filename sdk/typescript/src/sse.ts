/** The longest text of one event: no event of a server comes near. */
const EVENT_CHARS_MAX = 1 << 16;

/** Parses the server-sent events of a server, each with at most one line of data, piece by piece. */
export class EventParser {
  /** The id of the latest event, for the header `Last-Event-ID`. */
  lastEventId: string | undefined;
  #rest = "";

  /** Starts with the first piece of another connection: drops an event that the last one cut off. */
  reset(): void {
    this.#rest = "";
  }

  /** Takes a piece of the stream, and returns the data of the events that it completes. Throws if an event is too long. */
  push(piece: string): string[] {
    const events = (this.#rest + piece).split(/\r?\n\r?\n/);
    this.#rest = events.pop()!;
    if (this.#rest.length > EVENT_CHARS_MAX) throw new Error("too long");
    return events.flatMap((event) => {
      // A header can carry no other id.
      this.lastEventId = /^id: ?([ -~]*)$/m.exec(event)?.[1] ?? this.lastEventId;
      return /^data: ?([^\r\n]*)/m.exec(event)?.[1] ?? [];
    });
  }
}
