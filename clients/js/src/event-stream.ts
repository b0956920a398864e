/**
 * Reading of `text/event-stream`, in whatever pieces it arrives.
 *
 * Lines end in LF, CR or CRLF, also when a chunk ends between CR and LF. A block that has no blank
 * line yet is kept and, at the end of the stream, dropped whole together with its id.
 */

/** One block of the stream. */
export interface StreamEvent {
  /** The event's name; `message` if the block has none. */
  readonly event: string;
  /** The joined data; undefined for a block that only moves the id. */
  readonly data: string | undefined;
  /** The id in force after this block. */
  readonly id: string;
}

/** A block longer than this is taken for an attack or a mistake, and the stream is given up. */
export const EVENT_LENGTH_MAX = 4 * 1024 * 1024;

/** The parser of one stream. */
export class EventStreamParser {
  /** The last reconnection time the server gave. */
  retryMs: number | undefined;
  #rest = "";
  #skipLineFeed = false;
  #event = "";
  #data: string[] = [];
  #length = 0;
  #id = "";
  #blockId: string | undefined;

  /** Takes text and returns the blocks it completes. Throws `RangeError` on one too long. */
  push(text: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    let start = 0;
    if (this.#skipLineFeed && text !== "") {
      if (text[0] === "\n") start = 1;
      this.#skipLineFeed = false;
    }
    for (let at = start; at < text.length; at++) {
      const char = text[at];
      if (char !== "\n" && char !== "\r") continue;
      this.#line(this.#rest + text.slice(start, at), events);
      this.#rest = "";
      if (char === "\r") {
        if (at + 1 === text.length) this.#skipLineFeed = true;
        else if (text[at + 1] === "\n") at += 1;
      }
      start = at + 1;
    }
    this.#rest += text.slice(start);
    this.#checkLength();
    return events;
  }

  #line(line: string, events: StreamEvent[]): void {
    if (line === "") return this.#blank(events);
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? "" : line.slice(colon + 1);
    this.#field(name, raw.startsWith(" ") ? raw.slice(1) : raw);
  }

  #field(name: string, value: string): void {
    if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#blockId = value;
    else if (name === "retry" && /^[0-9]+$/.test(value)) this.retryMs = Number(value);
    else if (name === "data") {
      this.#data.push(value);
      this.#length += value.length + 1;
      this.#checkLength();
    }
  }

  #blank(events: StreamEvent[]): void {
    if (this.#blockId !== undefined) this.#id = this.#blockId;
    const data = this.#data.length > 0 ? this.#data.join("\n") : undefined;
    if (data !== undefined || this.#blockId !== undefined) {
      events.push({ event: this.#event || "message", data, id: this.#id });
    }
    this.#event = "";
    this.#data = [];
    this.#length = 0;
    this.#blockId = undefined;
  }

  #checkLength(): void {
    if (this.#length + this.#rest.length > EVENT_LENGTH_MAX) {
      throw new RangeError(`an event longer than ${EVENT_LENGTH_MAX} characters`);
    }
  }
}
