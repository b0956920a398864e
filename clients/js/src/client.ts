/**
 * The client: one connection for all watches and channels of a page.
 *
 * It is the shell around {@link Connection}: it owns the transport, the one timer and the token,
 * and passes frames to the subscriptions. Making one costs nothing: no timer, socket or listener
 * exists before something is watched or published, so it may be made while a page is rendered on a
 * server. When nothing is watched any more the connection is closed.
 */

import type { Random } from "./backoff.js";
import { Channel, type ChannelHost, type ChannelNotice, type ChannelOptions } from "./channel.js";
import { systemClock, type Clock } from "./clock.js";
import { Connection, type Action, type Phase } from "./connection.js";
import { reportListenerError, TidingsError } from "./errors.js";
import { PROTOCOL_VERSION, type ClientFrame, type ErrorFrame, type ServerFrame } from "./frames.js";
import type { Notice } from "./notice.js";
import * as page from "./page.js";
import { Publishes } from "./publishes.js";
import { channelPart, type Params } from "./scope.js";
import { Session } from "./session.js";
import { openStreams } from "./sse.js";
import { errorOf } from "./subscription.js";
import { Subscriptions } from "./subscriptions.js";
import type { TokenSource } from "./token.js";
import { CLOSE_ABNORMAL } from "./transport.js";
import type { Preference, Transport, TransportEvents, TransportKind } from "./transport.js";
import { checkedGap, Watch, type WatchOptions } from "./watch.js";
import { openSocket, type SocketConstructor } from "./ws.js";

/** How to reach a server. */
export interface ConnectOptions {
  /** The server's address, with its path prefix if it has one; the page's own origin by default. */
  url?: string | URL;
  /** A token, or a function that gets one: called at first, before it expires, and when refused. */
  token?: TokenSource;
  /** The build of this application; the server tells when another one is out. */
  build?: string;
  /** `auto` takes SSE where no socket gets through. */
  transport?: Preference;
  /** The constructor of sockets, for a Node without one. */
  WebSocket?: SocketConstructor;
  /** The way to make requests. */
  fetch?: typeof fetch;
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
const TOKEN_CODES = ["unauthenticated", "token-expired", "token-invalid"];

/** Makes a client. Nothing is opened before it is used. */
export function connect(options: ConnectOptions = {}): Client {
  return new Client(options);
}

/** See the module. */
export class Client {
  readonly #options: ConnectOptions;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #connection: Connection;
  readonly #subscriptions: Subscriptions;
  readonly #publishes = new Publishes();
  readonly #session: Session;
  readonly #open = new Set<{ close(): void }>();
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

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    const preference = options.transport ?? (this.#socketConstructor() ? "auto" : "sse");
    this.#connection = new Connection(preference, this.#random);
    const keepMs = checkedGap(options.keepMs ?? KEEP_MS);
    this.#subscriptions = new Subscriptions(keepMs, this.#random, () => this.#nextId());
    this.#session = new Session(options.token, this.#clock, this.#random, {
      onRenewed: (token) => this.#handleRenewed(token),
      onSignedOut: () => this.#handleSignedOut(),
      onError: (error) => this.#report(error),
    });
  }

  /** Where the connection stands. */
  get phase(): Phase {
    return this.#connection.phase;
  }

  /** Follows one scope or several of one feed; with a callback it starts at once. */
  watch(
    scopes: string | readonly string[],
    options?: WatchOptions,
    listener?: (notice: Notice) => void,
  ): Watch {
    this.#checkOpen();
    return this.#keep(new Watch(this.#host(), scopes, options, listener));
  }

  /** Follows a declared channel; with a callback it starts at once. */
  channel<T = unknown>(
    name: string,
    params: Params = {},
    options?: ChannelOptions<T>,
    listener?: (notice: ChannelNotice<T>) => void,
  ): Channel<T> {
    this.#checkOpen();
    return this.#keep(new Channel<T>(this.#host(), name, params, options, listener));
  }

  /** Gives up the connection there is and dials at once; brings back one that has failed. */
  reconnectNow(): void {
    this.#lastError = undefined;
    this.#act((now) => {
      this.#connection.reconnectNow(now);
      this.#subscriptions.retry(now);
    });
  }

  /** Takes another token, after a sign-in or out; what was refused is asked for again. */
  setToken(token: TokenSource | undefined): void {
    this.#lastError = undefined;
    this.#session.replace(token);
  }

  /** Ends every watch and channel and the connection; this client can't be used again. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const each of [...this.#open]) each.close();
    this.#publishes.rejectAll(new TidingsError("closed", "the client was closed"));
    this.#session.close();
    this.#unlisten?.();
    this.#act(() => this.#connection.release());
  }

  #host(): ChannelHost {
    return {
      clock: this.#clock,
      random: this.#random,
      join: (follower) => this.#act((now) => this.#subscriptions.join(follower, now)),
      leave: (follower) => this.#act((now) => this.#subscriptions.leave(follower, now)),
      retry: (scope) => this.#act((now) => this.#subscriptions.retry(now, scope)),
      forget: (each) => this.#open.delete(each),
      publish: (scope, event, data) => this.#publish(scope, event, data),
      readJson: (url, signal) => this.#readJson(url, signal),
    };
  }

  #keep<W extends { close(): void }>(each: W): W {
    this.#open.add(each);
    return each;
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new TidingsError("closed", "the client was closed");
  }

  async #publish(scope: string, event: string, data: unknown): Promise<object> {
    this.#checkOpen();
    if (event === "") throw new TidingsError("bad-request", "an event needs a name");
    if (this.#isOver) throw this.#failure();
    const channel = channelPart(scope);
    const frame = { t: "publish", id: this.#nextId(), channel, event, data: data ?? null } as const;
    const answer = this.#publishes.add(frame, this.#clock.now());
    this.#act(() => {});
    return answer;
  }

  async #readJson(text: string, signal: AbortSignal): Promise<unknown> {
    const base = this.#base();
    const url = new URL(text, base);
    const { token } = this.#session;
    // A catch-up URL may lead anywhere; the token is for its own server only.
    const isOwn = url.origin === base.origin && token !== undefined;
    const authorization = isOwn && { Authorization: `Bearer ${token}` };
    const headers = { Accept: "application/json", ...authorization };
    const answer = await this.#fetch()(url, { headers, signal, cache: "no-store" });
    if (!answer.ok) throw new TidingsError("bad-answer", `the server answered ${answer.status}`);
    return await answer.json();
  }

  /** Does something, then whatever follows from it. Every input of the client goes through here. */
  #act(input: (now: number) => void): void {
    input(this.#clock.now());
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
      this.#connection.want(this.#clock.now());
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
      this.#transport = this.#openTransport(kind, this.#eventsOf(generation));
    } catch (cause) {
      const details = { cause, retry: true };
      this.#report(new TidingsError("dial-failed", "the connection could not be begun", details));
      this.#act((now) => this.#connection.handleClosed(generation, CLOSE_ABNORMAL, now));
    }
  }

  #openTransport(kind: TransportKind, events: TransportEvents): Transport {
    const clock = this.#clock;
    const base = this.#base();
    const Socket = this.#socketConstructor();
    if (kind === "sse" || Socket === undefined) {
      return openStreams({ base, fetch: this.#fetch(), clock }, events);
    }
    const url = new URL("socket", base);
    if (this.#options.build !== undefined) url.searchParams.set("build", this.#options.build);
    return openSocket({ url, Socket, clock }, events);
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
    const now = this.#clock.now();
    const waits = [this.#connection.pollTimeout(now, this.#clock.wall())];
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
    const cancel = this.#clock.schedule(dueAt - now, () => this.#handleTimer());
    this.#timer = { dueAt, cancel };
  }

  #handleTimer(): void {
    this.#timer = undefined;
    this.#act((now) => {
      this.#connection.handleTime(now, this.#clock.wall());
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

  #base(): URL {
    const own = typeof location === "undefined" ? undefined : location.origin;
    const given = this.#options.url ?? own;
    if (given === undefined) {
      throw new TidingsError("bad-request", "outside of a page the client needs a url");
    }
    const url = new URL(given, own);
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/`;
    url.search = "";
    url.hash = "";
    return url;
  }

  #socketConstructor(): SocketConstructor | undefined {
    return this.#options.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket;
  }

  #fetch(): typeof fetch {
    return this.#options.fetch ?? ((input, init) => fetch(input, init));
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
