/**
 * The way of notices to one consumer: a callback, or a bounded queue with an async iterator.
 *
 * A queue that is full refuses a batch whole. Its owner then stops following and is called back
 * when the consumer has made room, to follow again from the last position it was given, so a slow
 * consumer costs a bounded amount of memory and loses nothing that the server still keeps.
 * State notices are always taken and fill no room: an undelivered one of the same scope gives way
 * to the newer when there are many. Else they could keep a batch out for ever that needs the whole
 * queue.
 */

import { reportListenerError } from "./errors.js";
import { checked } from "./limits.js";

/** Notices waiting for one consumer. */
export const QUEUE_LENGTH_MAX = 1_024;

/** What a delivery needs to know of what it carries. */
export interface Deliverable {
  readonly kind: string;
  readonly scope: string;
}

/** What a delivery calls. */
export interface DeliveryHooks<N> {
  /** The consumer is handed this one. */
  onTaken(notice: N): void;
  /** There is room again after a refusal. */
  onRoom(): void;
  /** The consumer wants no more. */
  onReturn(): void;
}

/** See the module. */
export class Delivery<N extends Deliverable> {
  readonly #listener: ((notice: N) => void) | undefined;
  readonly #hooks: DeliveryHooks<N>;
  readonly #lengthMax: number;
  #queue: N[] = [];
  #takers: ((result: IteratorResult<N, undefined>) => void)[] = [];
  /** Notices in the queue that are not states. */
  #length = 0;
  /** The room that the refused batch needs; undefined while nothing is refused. */
  #needed: number | undefined;
  #isClosed = false;

  constructor(
    listener: ((notice: N) => void) | undefined,
    hooks: DeliveryHooks<N>,
    lengthMax = QUEUE_LENGTH_MAX,
  ) {
    this.#listener = listener;
    this.#hooks = hooks;
    this.#lengthMax = checked("queueLengthMax", lengthMax, 1);
  }

  /** Takes all of `notices`, or none and returns false. */
  offer(notices: readonly N[]): boolean {
    if (this.#isClosed) return false;
    const isOnlyState = notices.every(({ kind }) => kind === "state");
    // A batch that is longer than the queue must get through some time: when the queue is empty.
    const hasRoom = this.#length === 0 || this.#length + notices.length <= this.#lengthMax;
    const isRefused = this.#needed !== undefined || !hasRoom;
    if (this.#listener === undefined && !isOnlyState && isRefused) {
      this.#needed = Math.min(notices.length, this.#lengthMax);
      return false;
    }
    this.push(notices);
    return true;
  }

  /** Takes all of `notices` whatever the bound: for what is bounded where it comes from. */
  push(notices: readonly N[]): void {
    for (const notice of notices) {
      if (this.#isClosed) return;
      if (this.#listener !== undefined) this.#call(this.#listener, notice);
      else this.#enqueue(notice);
    }
  }

  /** The next notice; done once closed and empty. */
  next(): Promise<IteratorResult<N, undefined>> {
    const notice = this.#queue.shift();
    if (notice !== undefined) {
      if (notice.kind !== "state") this.#length -= 1;
      this.#hooks.onTaken(notice);
      this.#offerRoom();
      return Promise.resolve({ done: false, value: notice });
    }
    if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** An iterator over the one queue; leaving the loop is the end of it. */
  iterator(): AsyncIterableIterator<N> {
    const iterator: AsyncIterableIterator<N> = {
      next: () => this.next(),
      return: () => {
        this.#hooks.onReturn();
        return Promise.resolve({ done: true, value: undefined });
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  /** Nothing more is taken; what is queued is dropped. */
  close(): void {
    this.#isClosed = true;
    this.#queue = [];
    for (const resolve of this.#takers.splice(0)) resolve({ done: true, value: undefined });
  }

  #call(listener: (notice: N) => void, notice: N): void {
    this.#hooks.onTaken(notice);
    try {
      listener(notice);
    } catch (error) {
      reportListenerError(error);
    }
  }

  #enqueue(notice: N): void {
    const taker = this.#takers.shift();
    if (taker !== undefined) {
      this.#hooks.onTaken(notice);
      taker({ done: false, value: notice });
      return;
    }
    const isFull = this.#queue.length >= this.#lengthMax;
    if (isFull && notice.kind === "state") this.#dropState(notice.scope);
    if (notice.kind !== "state") this.#length += 1;
    this.#queue.push(notice);
  }

  #dropState(scope: string): void {
    const isOlder = (queued: N) => queued.kind === "state" && queued.scope === scope;
    const at = this.#queue.findLastIndex(isOlder);
    if (at >= 0) this.#queue.splice(at, 1);
  }

  #offerRoom(): void {
    if (this.#needed === undefined || this.#length + this.#needed > this.#lengthMax) return;
    // Half of it at least: following again costs a request.
    if (this.#length > this.#lengthMax / 2) return;
    this.#needed = undefined;
    // Not within the consumer's own call: following again may hand over more at once.
    queueMicrotask(() => {
      if (!this.#isClosed) this.#hooks.onRoom();
    });
  }
}
