/**
 * A small server over real sockets: one feed of documents on `/v1/socket` and `/v1/watch`, one
 * channel, and ways to misbehave. It keeps a log of everything, so that a resume can be judged.
 */

import { once } from "node:events";
import { createServer } from "node:http";

import { WebSocketServer } from "ws";

export class Server {
  epoch = "e";
  log = [];
  /** Requests seen: method, path with query, and the token. */
  requests = [];
  streams = new Set();
  sockets = new Set();
  /** Answers a request in place of the server by returning true. */
  intercept = () => false;
  published = [];
  #http = createServer((request, answer) => this.#handle(request, answer));
  #ws = new WebSocketServer({ noServer: true });

  async listen() {
    this.#http.on("upgrade", (request, socket, head) => {
      this.requests.push({ method: "UPGRADE", url: request.url });
      if (this.intercept(request, socket)) return;
      this.#ws.handleUpgrade(request, socket, head, (ws) => this.#greet(ws));
    });
    this.#http.listen(0, "127.0.0.1");
    await once(this.#http, "listening");
    this.url = `http://127.0.0.1:${this.#http.address().port}`;
    return this;
  }

  async close() {
    this.cut();
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, "close");
  }

  /** Ends every stream and socket without a word. */
  cut() {
    for (const { answer } of this.streams) answer.destroy();
    for (const { ws } of this.sockets) ws.terminate();
  }

  get head() {
    return `${this.epoch}:${this.log.length}`;
  }

  write(name) {
    const version = this.log.length + 1;
    const change = { cursor: `${this.epoch}:${version}`, op: "publish", name, version };
    this.log.push(change);
    for (const stream of this.streams) this.#toStream(stream, change);
    for (const socket of this.sockets) this.#toSocket(socket, change);
  }

  requestsFor(path) {
    return this.requests.filter(({ url }) => url.startsWith(path));
  }

  #handle(request, answer) {
    const token = request.headers.authorization;
    this.requests.push({ method: request.method, url: request.url, token });
    if (this.intercept(request, answer)) return;
    const url = new URL(request.url, this.url);
    if (url.pathname === "/v1/whoami") answer.end("{}");
    else if (url.pathname === "/v1/watch") this.#watch(url, answer);
    else if (url.pathname.startsWith("/v1/channels/")) this.#publish(request, answer);
    else answer.writeHead(404).end();
  }

  async #publish(request, answer) {
    let body = "";
    for await (const chunk of request) body += chunk;
    this.published.push({ url: request.url, ...JSON.parse(body) });
    answer.writeHead(200, { "Content-Type": "application/json" }).end('{"cursor":"h:1"}');
  }

  #watch(url, answer) {
    const since = url.searchParams.get("since");
    const stream = { answer, scopes: url.searchParams.getAll("scope") };
    answer.writeHead(200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Tidings-Cursor": since ?? this.head,
    });
    answer.write(":\n");
    this.streams.add(stream);
    answer.on("close", () => this.streams.delete(stream));
    if (since !== null && since.split(":")[0] !== this.epoch) {
      this.event(stream, "gap", { reason: "epoch", cursor: this.head }, this.head);
    } else if (since !== null) {
      for (const change of this.log.slice(Number(since.split(":")[1])))
        this.#toStream(stream, change);
    }
  }

  /** Sends one event on one stream. */
  event(stream, event, data, cursor) {
    const id = cursor === undefined ? "" : `id: ${cursor.replace(":", "-")}\n`;
    stream.answer.write(`event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`);
  }

  #toStream(stream, change) {
    for (const scope of stream.scopes) {
      if (covers(scope, change.name))
        this.event(stream, change.op, { scope, ...change }, change.cursor);
    }
  }

  #greet(ws) {
    const socket = { ws, scopes: new Set(), frames: [] };
    this.sockets.add(socket);
    ws.on("close", () => this.sockets.delete(socket));
    ws.on("message", (text) => this.#handleFrame(socket, JSON.parse(String(text))));
  }

  #handleFrame(socket, frame) {
    const say = (answer) => socket.ws.send(JSON.stringify(answer));
    socket.frames.push(frame);
    if (frame.t === "hello") say({ t: "hello", v: 1, session: "s", heartbeat_ms: 15_000 });
    if (frame.t === "beat") say({ t: "beat", cursors: {} });
    if (frame.t === "publish") {
      this.published.push(frame);
      say({ t: "ack", id: frame.id, cursor: "h:1" });
    }
    if (frame.t === "unsubscribe") socket.scopes.delete(frame.scope);
    if (frame.t !== "subscribe") return;
    socket.scopes.add(frame.scope);
    const resumed = frame.since !== undefined;
    say({ t: "ack", id: frame.id, scope: frame.scope, cursor: this.head, resumed });
    if (!resumed) return;
    for (const change of this.log.slice(Number(frame.since.split(":")[1]))) {
      this.#toSocket({ ...socket, scopes: new Set([frame.scope]) }, change);
    }
  }

  #toSocket({ ws, scopes }, change) {
    for (const scope of scopes) {
      if (!covers(scope, change.name)) continue;
      ws.send(JSON.stringify({ t: "changes", scope, cursor: change.cursor, changes: [change] }));
    }
  }
}

function covers(scope, name) {
  const path = scope.slice("doc:".length);
  return path.endsWith("/") ? name.startsWith(path) : name === path;
}
