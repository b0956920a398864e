/**
 * All subscriptions of a client: at most one a scope, whoever and however many follow it.
 *
 * After a reconnect each one that is still followed is asked for once, from where its followers
 * stand. One that nobody follows any more is kept for a moment, so that a part of a page that goes
 * and comes back finds it live; a reconnect does not bring it back. A refused one is not asked for
 * again by itself. No more than a window of requests is unanswered at a time, so that a page with
 * many subscriptions stays within the server's frame budget.
 */

import type { Random } from "./backoff.js";
import type { TidingsError } from "./errors.js";
import type { ClientFrame, ErrorFrame, ServerFrame } from "./frames.js";
import { Subscription, type Follower } from "./subscription.js";

/** Subscribes without an answer yet; the server's budget is a burst of 256 frames. */
const UNANSWERED_MAX = 128;

/** See the module. */
export class Subscriptions {
  readonly #byScope = new Map<string, Subscription>();
  /** By the id of their latest subscribe on this connection. */
  readonly #asked = new Map<string, Subscription>();
  /** Those that the server spells otherwise than we ask; few, if any. */
  readonly #renamed = new Set<Subscription>();
  readonly #keepMs: number;
  readonly #random: Random;
  readonly #nextId: () => string;
  #send: ((frame: ClientFrame) => void) | undefined;

  constructor(keepMs: number, random: Random, nextId: () => string) {
    this.#keepMs = keepMs;
    this.#random = random;
    this.#nextId = nextId;
  }

  /** True if there is nothing to keep a connection for. */
  get isEmpty(): boolean {
    return this.#byScope.size === 0;
  }

  /** Follows `follower.scope` from `follower.cursor`, or from now on if it has none. */
  join(follower: Follower, now: number): void {
    let subscription = this.#byScope.get(follower.scope);
    if (subscription === undefined) {
      subscription = new Subscription(follower.scope);
      this.#byScope.set(follower.scope, subscription);
    }
    subscription.add(follower);
    this.#flush(now);
  }

  /** Stops following. What nobody follows is let go after the keep time, if it is live at all. */
  leave(follower: Follower, now: number): void {
    const subscription = this.#byScope.get(follower.scope);
    if (subscription === undefined) return;
    subscription.remove(follower);
    this.#letGoIfIdle(subscription, now);
  }

  /** Asks again for what was refused; all, or one scope. */
  retry(now: number, scope?: string): void {
    for (const subscription of this.#byScope.values()) {
      if (scope === undefined || subscription.scope === scope) subscription.retry();
    }
    this.#flush(now);
  }

  /** Everything is refused: the connection itself was. */
  refuseAll(error: TidingsError): void {
    this.#send = undefined;
    for (const subscription of [...this.#byScope.values()]) {
      if (subscription.phase !== "refused") subscription.refuse(error);
    }
  }

  /** The connection is live: `send` works until `handleLost`. */
  handleLive(send: (frame: ClientFrame) => void, now: number): void {
    this.#send = send;
    this.#flush(now);
  }

  handleLost(): void {
    if (this.#send === undefined) return;
    this.#send = undefined;
    for (const subscription of [...this.#byScope.values()]) {
      subscription.handleLost();
      if (!subscription.isFollowed) this.#letGo(subscription);
    }
    this.#asked.clear();
  }

  /** Takes a frame; false if it is about no subscription of ours. */
  handleFrame(frame: ServerFrame, now: number): boolean {
    switch (frame.t) {
      case "ack":
        return this.#handleAck(frame, now);
      case "changes":
        return this.#eachLive(frame.scope, (subscription) => subscription.handleChanges(frame));
      case "events":
        return this.#eachLive(frame.scope, (subscription) => subscription.handleEvents(frame));
      case "presence":
        return this.#eachLive(frame.scope, (subscription) => subscription.handlePresence(frame));
      case "gap":
        return this.#eachLive(frame.scope, (subscription) => subscription.handleGap(frame));
      case "beat":
      case "reconnect":
        for (const [scope, cursor] of frame.cursors) {
          this.#eachLive(scope, (subscription) => subscription.handlePosition(cursor));
        }
        return true;
      case "error":
        return this.#handleError(frame, now);
      default:
        return false;
    }
  }

  handleTime(now: number): void {
    for (const subscription of [...this.#byScope.values()]) {
      if (subscription.lingerUntil === undefined || now < subscription.lingerUntil) continue;
      this.#letGo(subscription);
    }
    this.#flush(now);
  }

  /** When `handleTime` has something to do; undefined if never. */
  nextAt(now: number): number | undefined {
    let next: number | undefined;
    for (const subscription of this.#byScope.values()) {
      const isDelayed = this.#send && subscription.phase === "waiting" && subscription.askAt > now;
      const at = subscription.lingerUntil ?? (isDelayed ? subscription.askAt : undefined);
      if (at !== undefined) next = Math.min(next ?? at, at);
    }
    return next;
  }

  #handleAck(frame: Extract<ServerFrame, { t: "ack" }>, now: number): boolean {
    const subscription = this.#byId(frame.id);
    if (subscription === undefined) return false;
    subscription.handleAck(frame);
    if (subscription.answeredAs !== subscription.scope) this.#renamed.add(subscription);
    this.#flush(now);
    return true;
  }

  #handleError(frame: ErrorFrame, now: number): boolean {
    const named = frame.id === undefined ? undefined : this.#byId(frame.id);
    if (frame.id !== undefined && named === undefined) return false;
    const concerned = named ? [named] : this.#answeredAs(frame.scope);
    if (frame.id !== undefined) this.#asked.delete(frame.id);
    for (const subscription of concerned) subscription.handleError(frame, now, this.#random);
    if (concerned.length > 0) this.#flush(now);
    return concerned.length > 0;
  }

  #byId(id: string): Subscription | undefined {
    const subscription = this.#asked.get(id);
    return subscription?.id === id ? subscription : undefined;
  }

  #answeredAs(scope: string | undefined): Subscription[] {
    if (scope === undefined) return [];
    const same = this.#byScope.get(scope);
    const concerned = same?.answeredAs === scope ? [same] : [];
    for (const subscription of this.#renamed) {
      if (subscription.answeredAs === scope) concerned.push(subscription);
    }
    return concerned;
  }

  /**
   * What is sent before the answer to our latest request belongs to an earlier one: its followers
   * get it again, from their positions.
   */
  #eachLive(scope: string, apply: (subscription: Subscription) => void): boolean {
    for (const subscription of this.#answeredAs(scope)) {
      if (subscription.phase === "live") apply(subscription);
    }
    return true;
  }

  #flush(now: number): void {
    if (this.#send === undefined) return;
    let unanswered = 0;
    for (const { phase } of this.#byScope.values()) if (phase === "asked") unanswered += 1;
    for (const subscription of this.#byScope.values()) {
      if (unanswered >= UNANSWERED_MAX) return;
      const isDue = subscription.phase === "waiting" && now >= subscription.askAt;
      if (!subscription.isFollowed || !(isDue || subscription.needsReask)) continue;
      if (subscription.needsReask) this.#unsubscribe(subscription);
      if (subscription.id !== undefined) this.#asked.delete(subscription.id);
      const id = this.#nextId();
      this.#asked.set(id, subscription);
      this.#send(subscription.ask(id));
      unanswered += 1;
    }
  }

  #letGoIfIdle(subscription: Subscription, now: number): void {
    if (subscription.isFollowed) return;
    if (subscription.phase === "live" && this.#keepMs > 0) {
      subscription.lingerUntil = now + this.#keepMs;
    } else {
      this.#letGo(subscription);
    }
  }

  #letGo(subscription: Subscription): void {
    this.#byScope.delete(subscription.scope);
    this.#renamed.delete(subscription);
    if (subscription.id === undefined) return;
    this.#asked.delete(subscription.id);
    this.#unsubscribe(subscription);
  }

  /** The server knows one subscription a canonical scope: another of ours may still need it. */
  #unsubscribe(subscription: Subscription): void {
    const others = this.#answeredAs(subscription.answeredAs);
    if (others.some((other) => other !== subscription && other.id !== undefined)) return;
    this.#send?.({ t: "unsubscribe", id: this.#nextId(), scope: subscription.answeredAs });
  }
}
