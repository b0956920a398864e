/** A server in the same thread: sockets that a test opens, answers, cuts and inspects. */

import { connect } from "../../dist/index.js";
import { FakeClock, settle } from "./clock.js";

/** One end of a socket, as the client sees it; `server` is the test's view of it. */
class FakeSocket {
  onopen = null;
  onmessage = null;
  onclose = null;
  onerror = null;
  /** Frames the client has sent. */
  sent = [];
  closedWith = undefined;

  constructor(url, network) {
    this.url = url;
    this.network = network;
  }

  send(text) {
    if (this.network.isDead(this)) return;
    const frame = JSON.parse(text);
    this.sent.push(frame);
    this.network.handle(this, frame);
  }

  close(code, reason) {
    this.closedWith = { code, reason };
  }

  /** The server's side. */
  accept() {
    this.onopen?.({});
  }

  say(frame) {
    this.sayText(JSON.stringify(frame));
  }

  sayText(text) {
    this.onmessage?.({ data: text });
  }

  cut(code = 1006) {
    this.onclose?.({ code });
  }

  of(kind) {
    return this.sent.filter((frame) => frame.t === kind);
  }
}

/**
 * A network with a clock and a server that accepts, greets and acknowledges unless told otherwise.
 * `onFrame(socket, frame)` may take a frame over by returning true.
 */
export class Network {
  clock = new FakeClock();
  sockets = [];
  heartbeatMs = 15_000;
  accepts = true;
  onFrame = () => false;
  /** Positions by scope, told in acknowledgements. */
  heads = new Map();
  phases = [];
  errors = [];
  #dead = new Set();

  connect(options = {}) {
    const network = this;
    return connect({
      url: "http://server.test/",
      transport: "socket",
      WebSocket: function (url) {
        const socket = new FakeSocket(url, network);
        network.sockets.push(socket);
        if (network.accepts) queueMicrotask(() => socket.accept());
        return socket;
      },
      clock: this.clock,
      random: () => 0.5,
      keepMs: 0,
      onPhase: (phase, error) => this.phases.push(error ? `${phase}:${error.code}` : phase),
      onError: (error) => this.errors.push(error),
      ...options,
    });
  }

  get last() {
    return this.sockets.at(-1);
  }

  /** From now on nothing goes through this socket, and nobody is told. */
  kill(socket = this.last) {
    this.#dead.add(socket);
  }

  isDead(socket) {
    return this.#dead.has(socket);
  }

  handle(socket, frame) {
    if (this.onFrame(socket, frame)) return;
    if (frame.t === "hello") {
      socket.say({
        t: "hello",
        v: 1,
        session: "s",
        heartbeat_ms: this.heartbeatMs,
        server: "fake",
      });
    } else if (frame.t === "subscribe") {
      const cursor = this.heads.get(frame.scope);
      socket.say({ t: "ack", id: frame.id, scope: frame.scope, cursor, resumed: "since" in frame });
    } else if (frame.t === "beat") {
      socket.say({ t: "beat", cursors: {} });
    } else if (frame.t === "unsubscribe") {
      socket.say({ t: "ack", id: frame.id, scope: frame.scope, ended: true });
    }
  }
}

export function change(seq, name = "/a", epoch = "e") {
  return { cursor: `${epoch}:${seq}`, op: "publish", name, version: seq };
}

export function changes(scope, ...seqs) {
  const list = seqs.map((seq) => change(seq));
  return { t: "changes", scope, cursor: list.at(-1).cursor, changes: list };
}

/** A listener that keeps what it hears, and short forms of it. */
export function recorder() {
  const notices = [];
  const listener = (notice) => notices.push(notice);
  return Object.assign(listener, {
    notices,
    of: (kind) => notices.filter((notice) => notice.kind === kind),
    cursors: () => notices.filter(({ kind }) => kind === "change").map(({ cursor }) => cursor),
    states: () => notices.filter(({ kind }) => kind === "state").map(({ state }) => state),
  });
}

export { settle };
