/**
 * The life of one connection as a state machine without sockets, timers or clocks.
 *
 * It decides when to dial, by which transport, when to greet, beat, probe, give up and come back.
 * The shell ({@link Link}) tells it what happened and when, then takes what to do:
 *
 * - `want`, `release`, `reconnectNow`, `probe`: what the application or the page asks for;
 * - `handle…`: what came from the network or the clock;
 * - `pollAction`: what to do next, until undefined; `pollTimeout`: when to call `handleTime`.
 *
 * Promises: at most one link at a time, known by its generation, and nothing said about an older
 * generation has any effect. At most one timer. A delay the server gave is used for that one
 * reconnect even though the close that follows would start a delay of our own. A link that is
 * silent for two heartbeats is given up. A machine that slept is noticed by either clock, and the
 * link is then probed rather than believed. A link that was refused for good is not dialled again
 * until the caller says so.
 *
 * It keeps no subscriptions and no positions: nothing of an old link is needed by the next one.
 */

import { delayAfter, directedDelay, type Random } from "./backoff.js";
import { PROTOCOL_VERSION } from "./frames.js";
import { TransportChoice, type Preference, type TransportKind } from "./transport.js";

/** Where the connection stands. Frames are applied while `live` and `leaving`. */
export type Phase =
  | "idle" // nothing is wanted
  | "waiting" // until the next dial
  | "dialling" // the transport is being opened
  | "greeting" // it is open, the server's hello is awaited
  | "live"
  | "leaving" // the server said when to come back and has not closed yet
  | "failed"; // refused for good

/** Something for the shell to do. */
export type Action =
  | { do: "dial"; generation: number; transport: TransportKind }
  | { do: "greet" }
  | { do: "beat" }
  | { do: "close"; code: number; reason: string }
  | { do: "fail"; cause: "refused" | "protocol-version" };

/** Used until the server's hello says otherwise. */
const HEARTBEAT_MS = 15_000;

/** A server that asks for more is not obeyed: its frame budget would end the connection. */
const HEARTBEAT_MIN_MS = 1_000;

/** A dial and the greeting after it take no longer than this together. */
const DIAL_LIMIT_MS = 10_000;

/** So many silent heartbeats mean a dead link. */
const SILENT_HEARTBEATS = 2;

/** How often a live connection looks at the clock. With `PROBE_MS` it stays below five seconds. */
const LOOK_MS = 2_000;

/** How long a probed link has to answer. */
const PROBE_MS = 2_500;

/** A timer that is late by more than this, by either clock, means that the machine slept. */
const LATE_MS = 2_000;

/** A link that lived so long was a success: the next failure starts from the shortest delay. */
const STABLE_MS = 5_000;

/** The close code of a client that gives up a link. */
export const CLOSE_GIVEN_UP = 4000;
const CLOSE_NORMAL = 1000;
const CLOSE_REFUSED = 1008;

/** See the module. */
export class Connection {
  #phase: Phase = "idle";
  #generation = 0;
  #failures = 0;
  #heartbeatMs = HEARTBEAT_MS;
  /** When to dial, in `waiting` and `leaving`. */
  #resumeAt = 0;
  /** True if the server chose `#resumeAt`: then waking or coming online does not shorten it. */
  #directed = false;
  /** When to give up, in `dialling` and `greeting`. */
  #dialLimitAt = 0;
  #liveSince = 0;
  #heardAt = 0;
  #beatAt = 0;
  /** Set while a probe is unanswered. */
  #probe: { sentAt: number; until: number } | undefined;
  /** Both clocks at the last look, and when the next one was due. */
  #look: { now: number; wall: number; dueAt: number } | undefined;
  readonly #actions: Action[] = [];
  readonly #choice: TransportChoice;
  readonly #random: Random;

  constructor(preference: Preference, random: Random) {
    this.#choice = new TransportChoice(preference);
    this.#random = random;
  }

  /** Where the connection stands. */
  get phase(): Phase {
    return this.#phase;
  }

  /** The link that counts. */
  get generation(): number {
    return this.#generation;
  }

  /** True if frames may be sent. */
  get isLive(): boolean {
    return this.#phase === "live";
  }

  /** Somebody needs the connection. */
  want(now: number): void {
    if (this.#phase === "idle") this.#dial(now);
  }

  /** Nobody needs the connection any more. */
  release(): void {
    if (this.#phase === "failed") return;
    this.#drop(CLOSE_NORMAL, "done");
    this.#enter("idle");
  }

  /** Gives up what there is and dials at once, whatever delay was running. */
  reconnectNow(now: number): void {
    if (this.#phase === "idle") return;
    this.#drop(CLOSE_GIVEN_UP, "reconnect");
    this.#failures = 0;
    this.#dial(now);
  }

  /**
   * Something happened that often breaks or mends a network: asks a live link for a sign of life,
   * and ends a wait that the server did not choose.
   */
  probe(now: number): void {
    if (this.#phase === "waiting" && !this.#directed) this.#dial(now);
    if (this.#phase !== "live" || this.#probe !== undefined) return;
    this.#probe = { sentAt: now, until: now + PROBE_MS };
    this.#beat(now);
  }

  /** The caller has no right to this connection any more. */
  refuse(): void {
    if (this.#phase !== "idle" && this.#phase !== "failed") this.#fail("refused");
  }

  /** The transport is open. */
  handleOpened(generation: number, now: number): void {
    if (generation !== this.#generation || this.#phase !== "dialling") return;
    this.#enter("greeting");
    this.#heardAt = now;
    this.#actions.push({ do: "greet" });
  }

  /** Something arrived at `at`, whatever it was. */
  handleHeard(generation: number, at: number): void {
    if (generation !== this.#generation) return;
    this.#heardAt = Math.max(this.#heardAt, at);
    if (this.#probe !== undefined && at >= this.#probe.sentAt) this.#probe = undefined;
  }

  /** The server greets. */
  handleHello(generation: number, hello: { v: number; heartbeatMs?: number }, now: number): void {
    if (generation !== this.#generation || this.#phase !== "greeting") return;
    if (hello.v !== PROTOCOL_VERSION) return this.#fail("protocol-version");
    this.#heartbeatMs = Math.max(hello.heartbeatMs ?? HEARTBEAT_MS, HEARTBEAT_MIN_MS);
    this.#choice.handleGreeted();
    this.#liveSince = now;
    this.#beatAt = now + this.#heartbeatMs;
    this.#enter("live");
  }

  /** The server says when to come back; what it still sends before it closes counts. */
  handleReconnect(generation: number, delayMs: number | undefined, now: number): void {
    if (generation !== this.#generation || !this.#isLinked()) return;
    this.#directed = delayMs !== undefined;
    this.#resumeAt = now + this.#nextDelay(delayMs);
    this.#enter("leaving");
  }

  /** The link is gone, or never came up. */
  handleClosed(generation: number, code: number, now: number): void {
    if (generation !== this.#generation || !this.#isLinked()) return;
    if (code === CLOSE_REFUSED) return this.#fail("refused");
    this.#lose(now);
  }

  /** Time has passed: to be called when the last `pollTimeout` has run out, or later. */
  handleTime(now: number, wall: number): void {
    const sleptMs = this.#sleptMs(now, wall);
    this.#look = undefined;
    if (sleptMs > 0) this.#handleWake(now, sleptMs);
    switch (this.#phase) {
      case "waiting":
        if (now >= this.#resumeAt) this.#dial(now);
        break;
      case "leaving":
        if (now >= this.#resumeAt) {
          this.#drop(CLOSE_GIVEN_UP, "still open at the time to come back");
          this.#dial(now);
        }
        break;
      case "dialling":
      case "greeting":
        if (now >= this.#dialLimitAt) this.#giveUp(now, "no greeting in time");
        break;
      case "live":
        this.#attend(now);
        break;
      default:
        break;
    }
  }

  /** What to do next; call until undefined. */
  pollAction(): Action | undefined {
    return this.#actions.shift();
  }

  /** Milliseconds until `handleTime` must be called; undefined if never. */
  pollTimeout(now: number, wall: number): number | undefined {
    const dueAt = this.#dueAt(now);
    if (dueAt === undefined) {
      this.#look = undefined;
      return undefined;
    }
    this.#look ??= { now, wall, dueAt };
    this.#look.dueAt = Math.min(this.#look.dueAt, dueAt);
    return Math.max(0, this.#look.dueAt - now);
  }

  #dueAt(now: number): number | undefined {
    switch (this.#phase) {
      case "waiting":
      case "leaving":
        return this.#resumeAt;
      case "dialling":
      case "greeting":
        return this.#dialLimitAt;
      case "live":
        return Math.min(now + LOOK_MS, this.#beatAt, this.#probe?.until ?? this.#silentAt());
      default:
        return undefined;
    }
  }

  /** A live link: is it silent, does it answer, is a beat due? */
  #attend(now: number): void {
    if (this.#probe !== undefined) {
      if (now >= this.#probe.until) return this.#giveUp(now, "no answer to a probe");
    } else if (now >= this.#silentAt()) {
      return this.#giveUp(now, "silent for two heartbeats");
    }
    if (now >= this.#beatAt) this.#beat(now);
    if (now - this.#liveSince >= STABLE_MS) this.#failures = 0;
  }

  #silentAt(): number {
    return this.#heardAt + SILENT_HEARTBEATS * this.#heartbeatMs;
  }

  #beat(now: number): void {
    this.#beatAt = now + this.#heartbeatMs;
    this.#actions.push({ do: "beat" });
  }

  /** How long the machine slept since the last look; 0 if it did not. */
  #sleptMs(now: number, wall: number): number {
    if (this.#look === undefined) return 0;
    const late = now - this.#look.dueAt;
    const stoodStill = wall - this.#look.wall - (now - this.#look.now);
    const slept = Math.max(late, stoodStill);
    return slept > LATE_MS ? slept : 0;
  }

  #handleWake(now: number, sleptMs: number): void {
    // A clock that stood still has not counted the wait down. One that ran on has, and then the
    // wait is over anyway.
    if (this.#phase === "waiting" || this.#phase === "leaving") this.#resumeAt -= sleptMs;
    if (this.#phase === "dialling" || this.#phase === "greeting") this.#dialLimitAt = now;
    this.probe(now);
  }

  #isLinked(): boolean {
    return ["dialling", "greeting", "live", "leaving"].includes(this.#phase);
  }

  #dial(now: number): void {
    this.#generation += 1;
    this.#directed = false;
    this.#dialLimitAt = now + DIAL_LIMIT_MS;
    this.#enter("dialling");
    const transport = this.#choice.next();
    this.#actions.push({ do: "dial", generation: this.#generation, transport });
  }

  #giveUp(now: number, reason: string): void {
    this.#drop(CLOSE_GIVEN_UP, reason);
    this.#lose(now);
  }

  #lose(now: number): void {
    const wasLive = this.#phase === "live" || this.#phase === "leaving";
    if (wasLive && now - this.#liveSince >= STABLE_MS) this.#failures = 0;
    if (this.#phase === "dialling" || this.#phase === "greeting") this.#choice.handleFailed();
    if (this.#phase !== "leaving") this.#resumeAt = now + this.#nextDelay(undefined);
    // What the lost link still reports is about a generation that no longer counts.
    this.#generation += 1;
    this.#enter("waiting");
  }

  #nextDelay(givenMs: number | undefined): number {
    if (givenMs !== undefined) return directedDelay(givenMs, this.#random);
    const delay = delayAfter(this.#failures, this.#random);
    this.#failures += 1;
    return delay;
  }

  #drop(code: number, reason: string): void {
    if (this.#isLinked()) this.#actions.push({ do: "close", code, reason });
    this.#generation += 1;
  }

  #fail(cause: "refused" | "protocol-version"): void {
    this.#drop(CLOSE_NORMAL, cause);
    this.#enter("failed");
    this.#actions.push({ do: "fail", cause });
  }

  #enter(phase: Phase): void {
    this.#phase = phase;
    this.#probe = undefined;
    this.#look = undefined;
  }
}
