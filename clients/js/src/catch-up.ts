/**
 * The read that follows a gap, and the notices held while it runs.
 *
 * A gap that comes while a read runs makes it run once more, since the first may have read too
 * early. A read that fails is tried again with growing delay until it works or this is closed.
 * Held notices are given out once, in order, after the read; more than the bound of them are
 * dropped for one more read, which covers them.
 */

import { delayAfter, type Random } from "./backoff.js";
import type { Clock } from "./clock.js";
import { DELAY_MAX_MS } from "./limits.js";
import type { GapNotice, Notice } from "./notice.js";

/** Notices held while a read runs. */
export const HELD_MAX = 1_000;

/** Reads the application's state again. */
export type Read<T> = (gap: GapNotice, signal: AbortSignal) => Promise<T>;

/** What a catch-up is made of. */
export interface CatchUpConfig<T> {
  readonly read: Read<T>;
  readonly clock: Clock;
  readonly random: Random;
  /** The read is done: here is its result, and what was held meanwhile. */
  readonly onDone: (data: T, gap: GapNotice, held: Notice[]) => void;
  /** A read has failed and will be tried again. */
  readonly onFailed: (error: unknown) => void;
}

/** See the module. */
export class CatchUp<T> {
  readonly #config: CatchUpConfig<T>;
  #gap: GapNotice | undefined;
  #held: Notice[] = [];
  #isReading = false;
  #again = false;
  #failures = 0;
  #cancelTimer: (() => void) | undefined;
  readonly #closed = new AbortController();

  constructor(config: CatchUpConfig<T>) {
    this.#config = config;
  }

  /** True from a gap until its read is done. */
  get isRunning(): boolean {
    return this.#gap !== undefined;
  }

  /** Something was missed. */
  begin(gap: GapNotice): void {
    const wasRunning = this.isRunning;
    this.#gap = gap;
    if (this.#isReading) this.#again = true;
    if (!wasRunning) this.#after(delayOf(gap));
  }

  /** Keeps `notices` until the read is done. */
  hold(notices: readonly Notice[]): void {
    this.#held.push(...notices);
    if (this.#held.length <= HELD_MAX) return;
    this.#held = [];
    if (this.#isReading) this.#again = true;
  }

  close(): void {
    this.#closed.abort();
    this.#cancelTimer?.();
    this.#held = [];
  }

  #after(delayMs: number): void {
    this.#cancelTimer = this.#config.clock.schedule(delayMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    const gap = this.#gap;
    if (gap === undefined || this.#closed.signal.aborted) return;
    this.#isReading = true;
    this.#again = false;
    try {
      const data = await this.#config.read(gap, this.#closed.signal);
      this.#isReading = false;
      if (!this.#closed.signal.aborted) this.#handleRead(data);
    } catch (error) {
      this.#isReading = false;
      if (!this.#closed.signal.aborted) this.#handleFailure(error);
    }
  }

  #handleRead(data: T): void {
    this.#failures = 0;
    if (this.#gap === undefined) return;
    if (this.#again) return this.#after(delayOf(this.#gap));
    const [gap, held] = [this.#gap, this.#held];
    this.#gap = undefined;
    this.#held = [];
    this.#config.onDone(data, gap, held);
  }

  #handleFailure(error: unknown): void {
    this.#after(delayAfter(this.#failures++, this.#config.random));
    this.#config.onFailed(error);
  }
}

/** How long the server asks to wait, so that not all read at once. */
function delayOf({ delayMs = 0 }: GapNotice): number {
  return Math.min(delayMs, DELAY_MAX_MS);
}
