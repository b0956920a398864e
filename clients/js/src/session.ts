/**
 * The caller's token over the life of a client: got once, renewed before it expires, and once more
 * when the server refuses it.
 *
 * A source that throws is asked again with growing delay, and the old token is used meanwhile. A
 * source that has no token any more means that the user has signed out. A token that is refused
 * right after its renewal is not renewed again: that is an end, not a loop.
 */

import { delayAfter, type Random } from "./backoff.js";
import type { Clock } from "./clock.js";
import { TidingsError } from "./errors.js";
import { obtain, renewAfterMs, type TokenSource } from "./token.js";

/** What a session calls. */
export interface SessionHooks {
  /** There is another token. */
  onRenewed(token: string | undefined): void;
  /** There is none any more, or it was refused for good. */
  onSignedOut(): void;
  onError(error: TidingsError): void;
}

/** See the module. */
export class Session {
  #source: TokenSource | undefined;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #hooks: SessionHooks;
  #token: string | undefined;
  #hasToken = false;
  #obtainedAt = 0;
  /** True since a renewal that the server has not accepted yet. */
  #isOnTrial = false;
  #isRenewing = false;
  /** Counts sources: an answer of a former one is dropped. */
  #generation = 0;
  #failures = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(source: TokenSource | undefined, clock: Clock, random: Random, hooks: SessionHooks) {
    this.#source = source;
    this.#clock = clock;
    this.#random = random;
    this.#hooks = hooks;
  }

  /** The token of now. */
  get token(): string | undefined {
    return this.#token;
  }

  /** True while another token is awaited. */
  get isRenewing(): boolean {
    return this.#isRenewing;
  }

  /** Gets the token for a dial, if there is none yet or its time is over. */
  async obtain(): Promise<void> {
    const after = this.#token === undefined ? undefined : renewAfterMs(this.#token);
    const isOld = after !== undefined && this.#clock.now() - this.#obtainedAt >= after;
    if (this.#hasToken && !(isOld && typeof this.#source === "function")) return;
    const generation = this.#generation;
    const token = await obtain(this.#source);
    if (generation === this.#generation) this.#keep(token);
  }

  /** The server has taken the token: from here its renewal is planned. */
  handleAccepted(): void {
    this.#isOnTrial = false;
    this.#plan();
  }

  /** The connection is gone: the next dial looks whether the token's time is over. */
  handleLost(): void {
    this.#cancelTimer?.();
  }

  /** Another source, after a sign-in or out. */
  replace(source: TokenSource | undefined): void {
    this.#generation += 1;
    this.#source = source;
    this.#hasToken = false;
    this.#isOnTrial = false;
    this.#isRenewing = false;
    this.#failures = 0;
    void this.#fetch();
  }

  /** Gets another token now. */
  renew(): void {
    if (typeof this.#source !== "function" || this.#isRenewing) return;
    void this.#fetch();
  }

  /** The connection was refused: true if another token is being got to try once more. */
  renewOnce(): boolean {
    if (typeof this.#source !== "function" || this.#isOnTrial) return false;
    this.#isOnTrial = true;
    this.renew();
    return true;
  }

  close(): void {
    this.#generation += 1;
    this.#cancelTimer?.();
  }

  async #fetch(): Promise<void> {
    const generation = this.#generation;
    const before = this.#token;
    this.#isRenewing = true;
    try {
      const token = await obtain(this.#source);
      if (generation !== this.#generation) return;
      this.#isRenewing = false;
      this.#handleFetched(before, token);
    } catch (cause) {
      if (generation === this.#generation) this.#handleFetchError(cause);
    }
  }

  #handleFetched(before: string | undefined, token: string | undefined): void {
    this.#failures = 0;
    this.#keep(token);
    const isSpent = token === undefined || (this.#isOnTrial && token === before);
    if (isSpent && typeof this.#source === "function") return this.#hooks.onSignedOut();
    this.#hooks.onRenewed(token);
    this.#plan();
  }

  #handleFetchError(cause: unknown): void {
    const details = { cause, retry: true };
    this.#hooks.onError(new TidingsError("token-renewal-failed", "no token could be got", details));
    this.#after(delayAfter(this.#failures++, this.#random));
  }

  #keep(token: string | undefined): void {
    this.#token = token;
    this.#hasToken = true;
    this.#obtainedAt = this.#clock.now();
  }

  #plan(): void {
    const after = this.#token === undefined ? undefined : renewAfterMs(this.#token);
    if (after === undefined || typeof this.#source !== "function") return;
    this.#after(Math.max(0, this.#obtainedAt + after - this.#clock.now()));
  }

  #after(delayMs: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.schedule(delayMs, () => void this.#fetch());
  }
}
