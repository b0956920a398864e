/**
 * Positions in a feed: `<epoch>:<seq>` in the protocol, `<epoch>-<seq>` as an id of an SSE event.
 *
 * A cursor is opaque to applications: keep it, hand it back as `since`. Sequences are compared as
 * decimal text, because they may exceed what a JavaScript number holds exactly.
 */

/** A position as the server gave it. Store it as a string. */
export type Cursor = string & { readonly cursor?: never };

/** How one cursor stands to another; `unrelated` if their epochs differ. */
export type Order = "before" | "same" | "after" | "unrelated";

// An epoch of 1 to 64 characters, then a u64 without leading zeros: 20 digits at most.
const CURSOR = /^([A-Za-z0-9._-]{1,64})[:-](0|[1-9][0-9]{0,19})$/;

/** Reads a cursor in either spelling, returns the one with the colon; undefined if it is none. */
export function parse(text: unknown): Cursor | undefined {
  if (typeof text !== "string") return undefined;
  const match = CURSOR.exec(text);
  return match ? `${match[1]}:${match[2]}` : undefined;
}

/** The epoch of a cursor: another epoch means that the sequence began anew. */
export function epochOf(cursor: Cursor): string {
  return cursor.slice(0, cursor.lastIndexOf(":"));
}

/** Where `a` stands, seen from `b`. */
export function compare(a: Cursor, b: Cursor): Order {
  if (a === b) return "same";
  if (epochOf(a) !== epochOf(b)) return "unrelated";
  const [left, right] = [seqOf(a), seqOf(b)];
  if (left.length !== right.length) return left.length < right.length ? "before" : "after";
  return left < right ? "before" : "after";
}

/** True if `a` is not later than `b` in the same epoch: what `a` names was already seen at `b`. */
export function isCovered(a: Cursor, b: Cursor): boolean {
  const order = compare(a, b);
  return order === "before" || order === "same";
}

function seqOf(cursor: Cursor): string {
  return cursor.slice(cursor.lastIndexOf(":") + 1);
}
