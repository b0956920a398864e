/**
 * The shell around {@link Connection}: the one that owns a transport, a timer and the clock.
 *
 * Everything that happens, from the application, the page, the network or the timer, goes through
 * one method, which then does whatever follows from it. Nothing is opened while there is nothing
 * to follow or to publish, and what was opened is closed when that is over.
 */

import type { Random } from "./backoff.js";
import { systemClock, type Clock } from "./clock.js";
import { Connection, type Action, type Phase } from "./connection.js";
import { Endpoint, type EndpointOptions } from "./endpoint.js";
import { reportListenerError, TidingsError } from "./errors.js";
import { PROTOCOL_VERSION, type ClientFrame, type ErrorFrame, type ServerFrame } from "./frames.js";
import { checked } from "./limits.js";
import * as page from "./page.js";
import { Publishes, type Published } from "./publishes.js";
import { channelPart } from "./scope.js";
import { Session } from "./session.js";
import { errorOf, type Follower } from "./subscription.js";
import { Subscriptions } from "./subscriptions.js";
import type { TokenSource } from "./token.js";
import { CLOSE_ABNORMAL } from "./transport.js";
import type { Transport, TransportEvents, TransportKind } from "./transport.js";

/** How to be connected. */
export interface LinkOptions extends EndpointOptions {
  /** A token, or a function that gets one: called at first, before it expires, and when refused. */
  token?: TokenSource;
  /** How long a scope stays subscribed after its last watch has gone. */
  keepMs?: number;
  /** The connection's phase has changed; with the error when it is `failed`. */
  onPhase?: (phase: Phase, error?: TidingsError) => void;
  /** Another build of the application is out; told once for each. */
  onUpdateAvailable?: (build: string) => void;
  /** An error that is about no watch, channel or call. */
  onError?: (error: TidingsError) => void;
  /** Replaced in tests. */
  clock?: Clock;
  /** Replaced in tests. */
  random?: Random;
}

/** A part of a page that is replaced by its successor finds the scope still live. */
const KEEP_MS = 500;

/** Errors of the connection that a fresh token may mend. */
const TOKEN_CODES = ["unauthorized", "token-expired", "token-invalid"];

/** See the module. */
export class Link {
  readonly clock: Clock;
  readonly random: Random;
  readonly #options: LinkOptions;
  readonly #endpoint: Endpoint;
  readonly #connection: Connection;
  readonly #subscriptions: Subscriptions;
  readonly #publishes = new Publishes();
  readonly #session: Session;
  #transport: Transport | undefined;
  /** The link whose frames and sends count; undefined while there is none. */
  #liveGeneration: number | undefined;
  #timer: { dueAt: number; cancel: () => void } | undefined;
  #unlisten: (() => void) | undefined;
  #toldPhase: Phase = "idle";
  #toldBuild: string | undefined;
  #lastError: TidingsError | undefined;
  #isHidden = false;
  #isClosed = false;
  #idCount = 0;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.#endpoint = new Endpoint(options, this.clock);
    this.#connection = new Connection(this.#endpoint.preference, this.random);
    const keepMs = checked("keepMs", options.keepMs ?? KEEP_MS);
    this.#subscriptions = new Subscriptions(keepMs, this.random, () => this.#nextId());
    this.#session = new Session(options.token, this.clock, this.random, {
      onRenewed: (token) => this.#handleRenewed(token),
      onSignedOut: () => this.#handleSignedOut(),
      onError: (error) => this.#report(error),
    });
  }

  get phase(): Phase {
    return this.#connection.phase;
  }

  join(follower: Follower): void {
    this.#act((now) => this.#subscriptions.join(follower, now));
  }

  leave(follower: Follower): void {
    this.#act((now) => this.#subscriptions.leave(follower, now));
  }

  retry(scope: string): void {
    this.#act((now) => this.#subscriptions.retry(now, scope));
  }

  async publish(scope: string, event: string, data: unknown): Promise<Published> {
    if (event === "") throw new TidingsError("bad-request", "an event needs a name");
    if (this.#isOver) throw this.#failure();
    const channel = channelPart(scope);
    const frame = { t: "publish", id: this.#nextId(), channel, event, data: data ?? null } as const;
    const answer = this.#publishes.add(frame, this.clock.now());
    this.#act(() => {});
    return answer;
  }

  readJson(url: string, signal: AbortSignal): Promise<unknown> {
    return this.#endpoint.readJson(url, this.#session.token, signal);
  }

  reconnectNow(): void {
    this.#lastError = undefined;
    this.#act((now) => {
      this.#connection.reconnectNow(now);
      this.#subscriptions.retry(now);
    });
  }

  setToken(token: TokenSource | undefined): void {
    this.#lastError = undefined;
    this.#session.replace(token);
  }

  close(): void {
    this.#isClosed = true;
    this.#publishes.rejectAll(new TidingsError("closed", "the client was closed"));
    this.#session.close();
    this.#unlisten?.();
    this.#act(() => this.#connection.release());
  }

  /** Does something, then whatever follows from it. Every input of the client goes through here. */
  #act(input: (now: number) => void): void {
    input(this.clock.now());
    this.#wantOrRelease();
    for (;;) {
      const action = this.#connection.pollAction();
      if (action === undefined) break;
      this.#perform(action);
    }
    this.#noticeLoss();
    // Also for what was asked for after the failure.
    if (this.#isOver) this.#refuseAll();
    this.#tellPhase();
    this.#schedule();
  }

  /** True if the connection has failed and no other token is awaited. */
  get #isOver(): boolean {
    return this.#connection.phase === "failed" && !this.#session.isRenewing;
  }

  #wantOrRelease(): void {
    const isNeeded = !this.#subscriptions.isEmpty || !this.#publishes.isEmpty;
    if (isNeeded && !this.#isHidden && !this.#isClosed) {
      this.#unlisten ??= this.#listenToPage();
      this.#connection.want(this.clock.now());
    } else if (this.#connection.phase !== "idle") {
      this.#connection.release();
    }
  }

  #perform(action: Action): void {
    switch (action.do) {
      case "dial":
        void this.#dial(action.generation, action.transport);
        break;
      case "greet": {
        const { token } = this.#session;
        const { build } = this.#options;
        const v = PROTOCOL_VERSION;
        this.#transport?.send({ t: "hello", v, ...(build && { build }), ...(token && { token }) });
        break;
      }
      case "beat":
        this.#transport?.send({ t: "beat" });
        break;
      case "close":
        this.#transport?.close(action.code, action.reason);
        this.#transport = undefined;
        break;
      case "fail":
        this.#handleFailure(action.cause);
        break;
    }
  }

  async #dial(generation: number, kind: TransportKind): Promise<void> {
    try {
      await this.#session.obtain();
      if (generation !== this.#connection.generation) return;
      this.#transport = this.#endpoint.open(kind, this.#eventsOf(generation));
    } catch (cause) {
      const details = { cause, retry: true };
      this.#report(new TidingsError("dial-failed", "the connection could not be begun", details));
      this.#act((now) => this.#connection.handleClosed(generation, CLOSE_ABNORMAL, now));
    }
  }

  /** What one link reports; nothing of it counts once another one has taken its place. */
  #eventsOf(generation: number): TransportEvents {
    const connection = this.#connection;
    const ifCurrent = (input: (now: number) => void) => {
      if (generation === connection.generation) this.#act(input);
    };
    return {
      onOpened: () => ifCurrent((now) => connection.handleOpened(generation, now)),
      onHeard: (at) => connection.handleHeard(generation, at),
      onFrame: (frame) => ifCurrent((now) => this.#handleFrame(generation, frame, now)),
      onClosed: (code) => ifCurrent((now) => connection.handleClosed(generation, code, now)),
    };
  }

  #handleFrame(generation: number, frame: ServerFrame, now: number): void {
    switch (frame.t) {
      case "hello":
        this.#connection.handleHello(generation, frame, now);
        if (this.#connection.isLive) this.#handleLive(generation, now);
        break;
      case "reconnect":
        this.#subscriptions.handleFrame(frame, now);
        this.#connection.handleReconnect(generation, frame.delayMs, now);
        break;
      case "update-available":
        this.#handleUpdate(frame.build);
        break;
      case "ack":
        if (this.#subscriptions.handleFrame(frame, now)) break;
        this.#publishes.handleAck(frame.id, frame.cursor);
        break;
      case "error":
        this.#handleError(frame, now);
        break;
      default:
        this.#subscriptions.handleFrame(frame, now);
    }
  }

  #handleLive(generation: number, now: number): void {
    if (this.#liveGeneration === generation) return;
    this.#liveGeneration = generation;
    this.#lastError = undefined;
    this.#session.handleAccepted();
    const send = (frame: ClientFrame) => {
      if (generation === this.#connection.generation) this.#transport?.send(frame);
    };
    this.#subscriptions.handleLive(send, now);
    this.#publishes.handleLive(send);
  }

  #handleError(frame: ErrorFrame, now: number): void {
    if (this.#subscriptions.handleFrame(frame, now) || this.#publishes.handleError(frame)) return;
    if (frame.id !== undefined || frame.scope !== undefined) return;
    this.#lastError = errorOf(frame);
    if (this.#connection.isLive && TOKEN_CODES.includes(frame.code)) this.#session.renew();
    this.#report(this.#lastError);
  }

  #handleUpdate(build: string): void {
    if (build === this.#toldBuild || build === this.#options.build) return;
    this.#toldBuild = build;
    this.#call(() => this.#options.onUpdateAvailable?.(build));
  }

  #handleFailure(cause: "refused" | "protocol-version"): void {
    if (this.#lastError?.code === "signed-out") return;
    if (cause === "refused" && this.#session.renewOnce()) return;
    if (cause === "protocol-version") {
      const details = { fix: "reload the page, or update this library or the server" };
      const message = `the server does not speak version ${PROTOCOL_VERSION} of the protocol`;
      this.#lastError = new TidingsError("protocol-version", message, details);
    } else if (this.#options.token !== undefined) {
      this.#lastError = this.#signedOut();
    }
  }

  #signedOut(): TidingsError {
    const details = { fix: "sign in again", cause: this.#lastError };
    return new TidingsError("signed-out", "the token is not good any more", details);
  }

  #handleSignedOut(): void {
    this.#lastError = this.#signedOut();
    this.#act(() => this.#connection.refuse());
  }

  #refuseAll(): void {
    const error = this.#failure();
    this.#liveGeneration = undefined;
    this.#subscriptions.refuseAll(error);
    this.#publishes.rejectAll(error);
  }

  #failure(): TidingsError {
    return this.#lastError ?? new TidingsError("refused", "the server refused the connection");
  }

  #handleRenewed(token: string | undefined): void {
    this.#act((now) => {
      const { phase } = this.#connection;
      if (phase === "live" && token !== undefined) this.#transport?.send({ t: "token", token });
      else if (phase === "live" || phase === "failed") this.#connection.reconnectNow(now);
      this.#subscriptions.retry(now);
    });
  }

  /** The link that was live is not any more, for whichever reason. */
  #noticeLoss(): void {
    const isUp = this.#connection.phase === "live" || this.#connection.phase === "leaving";
    if (this.#liveGeneration === undefined) return;
    if (isUp && this.#liveGeneration === this.#connection.generation) return;
    this.#liveGeneration = undefined;
    this.#session.handleLost();
    this.#subscriptions.handleLost();
    this.#publishes.handleLost();
    this.#wantOrRelease();
  }

  #tellPhase(): void {
    const { phase } = this.#connection;
    if (phase === this.#toldPhase || (phase === "failed" && !this.#isOver)) return;
    this.#toldPhase = phase;
    const error = phase === "failed" ? this.#failure() : undefined;
    this.#call(() => this.#options.onPhase?.(phase, error));
  }

  #schedule(): void {
    const now = this.clock.now();
    const waits = [this.#connection.pollTimeout(now, this.clock.wall())];
    for (const at of [this.#subscriptions.nextAt(now), this.#publishes.nextAt()]) {
      if (at !== undefined) waits.push(at - now);
    }
    const delayMs = Math.min(...waits.filter((wait) => wait !== undefined));
    const dueAt = now + Math.max(0, delayMs);
    // A timer that runs out too early does no harm and costs less than a new one for every frame.
    if (this.#timer !== undefined && this.#timer.dueAt <= dueAt && dueAt < Infinity) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (dueAt === Infinity) return;
    const cancel = this.clock.schedule(dueAt - now, () => this.#handleTimer());
    this.#timer = { dueAt, cancel };
  }

  #handleTimer(): void {
    this.#timer = undefined;
    this.#act((now) => {
      this.#connection.handleTime(now, this.clock.wall());
      this.#subscriptions.handleTime(now);
      this.#publishes.handleTime(now);
    });
  }

  #listenToPage(): () => void {
    return page.listen({
      onDoubt: () => this.#act((now) => this.#connection.probe(now)),
      onHide: () => {
        this.#isHidden = true;
        this.#act(() => {});
      },
      onShow: () => {
        this.#isHidden = false;
        this.#act((now) => this.#connection.reconnectNow(now));
      },
    });
  }

  #nextId(): string {
    this.#idCount += 1;
    return String(this.#idCount);
  }

  #report(error: TidingsError): void {
    this.#call(() => this.#options.onError?.(error));
  }

  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      reportListenerError(error);
    }
  }
}
