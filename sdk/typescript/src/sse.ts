/** The longest text of one event: no event of a server comes near. */
const EVENT_CHARS_MAX = 1 << 16;

/** Splits the text of a stream into its events; the last one is not whole. Throws if that one is too long. */
export function splitEvents(stream: string): string[] {
  const events = stream.split(/\r?\n\r?\n/);
  if (events.at(-1)!.length > EVENT_CHARS_MAX) throw new Error("too long");
  return events;
}

/** Returns the id of an event; `undefined` without one that the header `Last-Event-ID` can carry. */
export function idOf(event: string): string | undefined {
  return /^id: ?([ -~]*)$/m.exec(event)?.[1];
}

/** Returns the data of an event, which is one line; the empty text if the event has none. */
export function dataOf(event: string): string {
  return /^data: ?([^\r\n]*)/m.exec(event)?.[1] ?? "";
}

/** Returns the name of an event; `undefined` if the event has none. */
export function nameOf(event: string): string | undefined {
  return /^event: ?([^\r\n]*)/m.exec(event)?.[1];
}
