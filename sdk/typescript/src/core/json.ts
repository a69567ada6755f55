/** JSON of the server, whose members need not have the types that they should have. */

/** The members of a JSON object, each under its name in camel case: `session_id` is `sessionId`. */
export type Members = Readonly<Record<string, unknown>>;

/** Parses a JSON object; `undefined` for everything else. */
export function parseObject(body: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(body, inCamelCase);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a value that is a text. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns a value that is a whole number from zero up. */
export function whole(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** Returns the objects of a list that have a text of this name; further members are taken to have the types of `T`. */
export function objects<T>(value: unknown, name: keyof T & string): T[] {
  const list: (Members | null)[] = Array.isArray(value) ? value : [];
  return list.filter((member) => text(member?.[name]) !== undefined) as T[];
}

export function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function inCamelCase(_: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  const camel = (_: string, letter: string) => letter.toUpperCase();
  return Object.fromEntries(Object.entries(value).map(([name, value]) => [name.replace(/_(.)/g, camel), value]));
}
