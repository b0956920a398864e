/** One feed's stream: the scopes on it, where each stands, and its events as protocol frames. */

import { compare, epochOf, parse as parseCursor, type Cursor } from "./cursor.js";
import type { StreamEvent } from "./event-stream.js";
import { decode, isFields, readChange, readEvent, type ServerFrame } from "./frames.js";

/** A scope's place on a stream. */
export interface Place {
  /** The id of the subscribe that is answered. */
  readonly id: string;
  cursor: Cursor | undefined;
  readonly minGapMs?: number | undefined;
  isAnswered?: boolean;
}

/** See the module. The reading of the stream itself is its owner's. */
export class Feed {
  readonly name: string;
  /** True if no other scope may join: its scope was refused among others and is tried alone. */
  readonly #isAlone: boolean;
  readonly #open: () => void;
  readonly #emit: (frame: ServerFrame) => void;
  readonly #places = new Map<string, Place>();
  #stream: AbortController | undefined;
  #isOpening = false;
  /** When this stream was last heard; one that was never begun holds nobody back. */
  heardAt = Infinity;

  constructor(
    name: string,
    isAlone: boolean,
    open: () => void,
    emit: (frame: ServerFrame) => void,
  ) {
    this.name = name;
    this.#isAlone = isAlone;
    this.#open = open;
    this.#emit = emit;
  }

  get places(): Iterable<[string, Place]> {
    return this.#places;
  }

  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  /** True if a scope of feed `name` that stands at `since` can share this stream's one position. */
  admits(name: string, since: Cursor | undefined): boolean {
    if (this.#isAlone || name !== this.name) return false;
    const oldest = this.#oldest();
    return since === undefined || oldest === undefined || epochOf(since) === epochOf(oldest);
  }

  /** Adds a scope; the stream is opened again once for all that are added together. */
  add(scope: string, place: Place): void {
    this.#places.set(scope, { ...place, isAnswered: false });
    if (this.#isOpening) return;
    this.#isOpening = true;
    queueMicrotask(() => {
      this.#isOpening = false;
      if (!this.isEmpty) this.#open();
    });
  }

  /** Takes a scope off. The stream stays as it is: what still comes for the scope is dropped. */
  remove(scope: string): boolean {
    return this.#places.delete(scope);
  }

  /** Ends the stream there is; the signal returned ends the next one. */
  restart(): AbortSignal {
    this.stop();
    this.#stream = new AbortController();
    return this.#stream.signal;
  }

  stop(): void {
    this.#stream?.abort();
    this.heardAt = Infinity;
  }

  /** Where to read all scopes from their oldest position on. */
  address(base: URL): URL {
    const url = new URL("watch", base);
    for (const scope of this.#places.keys()) url.searchParams.append("scope", scope);
    const since = this.#oldest();
    if (since !== undefined) url.searchParams.set("since", since);
    const gaps = [...this.#places.values()].map((place) => place.minGapMs ?? 0);
    if (Math.min(...gaps) > 0) url.searchParams.set("min_gap_ms", String(Math.min(...gaps)));
    return url;
  }

  /** The stream is open, and its position is known if the answer's head says so. */
  handleOpened(position: string | null): void {
    const cursor = parseCursor(position);
    for (const [scope, place] of this.#places) {
      if (place.cursor !== undefined || cursor !== undefined) this.#answer(scope, place, cursor);
    }
  }

  handleEvent(event: StreamEvent): void {
    const cursor = parseCursor(event.id);
    // A subscription without a position is answered only where it would not be lost by a cut:
    // at the first sign of where the stream stands.
    for (const [scope, place] of this.#places) this.#answer(scope, place, cursor);
    if (event.data === undefined || event.event === "beat") return this.#moveAll(cursor);
    const value = parseJson(event.data);
    for (const scope of this.#concerned(isFields(value) ? value["scope"] : undefined)) {
      const frame = frameOf(event.event, scope, value, cursor);
      if (frame === undefined) continue;
      this.#emit(frame);
      const place = this.#places.get(scope);
      if (place !== undefined && "cursor" in frame && frame.cursor) place.cursor = frame.cursor;
    }
  }

  #answer(scope: string, place: Place, head: Cursor | undefined): void {
    if (place.isAnswered) return;
    place.isAnswered = true;
    const resumed = place.cursor !== undefined;
    place.cursor ??= head;
    const position = place.cursor === undefined ? {} : { cursor: place.cursor };
    this.#emit({ t: "ack", id: place.id, scope, resumed, ended: false, ...position });
  }

  #moveAll(cursor: Cursor | undefined): void {
    const cursors = new Map<string, Cursor>();
    if (cursor !== undefined) {
      for (const [scope, place] of this.#places) {
        place.cursor = cursor;
        cursors.set(scope, cursor);
      }
    }
    this.#emit({ t: "beat", cursors });
  }

  /** The scopes an event is for. One that is not spelled as we asked goes to all: none is worse. */
  #concerned(named: unknown): string[] {
    if (typeof named === "string" && this.#places.has(named)) return [named];
    return [...this.#places.keys()];
  }

  #oldest(): Cursor | undefined {
    let oldest: Cursor | undefined;
    for (const { cursor } of this.#places.values()) {
      if (cursor === undefined) continue;
      if (oldest === undefined || compare(cursor, oldest) === "before") oldest = cursor;
    }
    return oldest;
  }
}

function frameOf(
  event: string,
  scope: string,
  value: unknown,
  id: Cursor | undefined,
): ServerFrame | undefined {
  if (event === "event") {
    const one = readEvent(value);
    return one && { t: "events", scope, events: [one], ...(one.cursor && { cursor: one.cursor }) };
  }
  if (event === "gap" || event === "presence") {
    const fields = isFields(value) ? value : {};
    return decode(JSON.stringify({ ...(id && { cursor: id }), ...fields, t: event, scope }));
  }
  const change = readChange(value);
  return change && { t: "changes", scope, cursor: change.cursor, changes: [change] };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
