/** The socket transport: sync protocol frames as text messages of one WebSocket. */

import type { Clock } from "./clock.js";
import { decode, type ClientFrame } from "./frames.js";
import { CLOSE_ABNORMAL, type Transport, type TransportEvents } from "./transport.js";

/** The part of a WebSocket that is used here; browsers, Node 22 and npm `ws` all have it. */
export interface SocketLike {
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

/** A constructor of sockets. */
export type SocketConstructor = new (url: string) => SocketLike;

/** What a socket is opened with. */
export interface SocketConfig {
  /** The `http` or `https` address of `/v1/socket`, with its query. */
  url: URL;
  Socket: SocketConstructor;
  clock: Clock;
}

/** Dials; a constructor that throws is reported as a close, like any other failed dial. */
export function openSocket(config: SocketConfig, events: TransportEvents): Transport {
  const url = new URL(config.url);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let socket: SocketLike;
  try {
    socket = new config.Socket(url.href);
  } catch {
    queueMicrotask(() => events.onClosed(CLOSE_ABNORMAL));
    return { send: () => {}, close: () => {} };
  }
  return new SocketTransport(socket, config.clock, events);
}

class SocketTransport implements Transport {
  readonly #socket: SocketLike;
  #isOpen = false;

  constructor(socket: SocketLike, clock: Clock, events: TransportEvents) {
    this.#socket = socket;
    socket.onopen = () => {
      this.#isOpen = true;
      events.onOpened();
    };
    socket.onmessage = ({ data }: { data: unknown }) => {
      events.onHeard(clock.now());
      const frame = typeof data === "string" ? decode(data) : undefined;
      if (frame !== undefined) events.onFrame(frame);
    };
    socket.onclose = ({ code }: { code?: number }) => {
      this.#silence();
      events.onClosed(code ?? CLOSE_ABNORMAL);
    };
    // The close event that always follows says as much as may be known.
    socket.onerror = () => {};
  }

  send(frame: ClientFrame): void {
    if (this.#isOpen) this.#socket.send(JSON.stringify(frame));
  }

  close(code: number, reason: string): void {
    this.#silence();
    this.#socket.close(code, reason);
  }

  /** From here on nothing of this socket is heard. `onerror` stays: npm `ws` throws without it. */
  #silence(): void {
    this.#isOpen = false;
    this.#socket.onopen = null;
    this.#socket.onmessage = null;
    this.#socket.onclose = null;
  }
}
