/** The client over real SSE streams, as it works where no socket gets through. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { WebSocket } from "ws";

import { connect } from "../dist/index.js";
import { FakeClock, settle, until } from "./support/clock.js";
import { recorder } from "./support/network.js";
import { Server } from "./support/server.js";

async function start(t, options = {}) {
  const server = await new Server().listen();
  const client = connect({ url: server.url, transport: "sse", random: () => 0, ...options });
  t.after(async () => {
    client.close();
    await server.close();
  });
  return { server, client };
}

test("changes come over a stream, with the token in a header", async (t) => {
  const { server, client } = await start(t, { token: "secret" });
  const heard = recorder();
  await client.watch("/notes/", {}, heard).open();
  server.write("/notes/a");
  await until(() => heard.of("change").length === 1);
  assert.equal(heard.of("change")[0].scope, "doc:/notes/");
  assert.deepEqual([...new Set(server.requests.map(({ token }) => token))], ["Bearer secret"]);
});

test("T11, L65: a cut stream resumes by since, nothing missed, nothing twice", async (t) => {
  const { server, client } = await start(t);
  const heard = recorder();
  const watch = client.watch("/notes/", {}, heard);
  await watch.open();
  for (let round = 0; round < 5; round++) {
    for (let at = 0; at < 10; at++) server.write("/notes/a");
    server.cut();
    for (let at = 0; at < 10; at++) server.write("/notes/a");
    await until(() => server.streams.size === 1 && watch.state() === "live");
  }
  await until(() => heard.of("change").length >= 100);
  assert.deepEqual(
    heard.cursors(),
    server.log.map(({ cursor }) => cursor),
  );
});

test("one stream a feed: scopes added later join it from where it stands", async (t) => {
  const { server, client } = await start(t);
  const [first, second] = [recorder(), recorder()];
  await client.watch("/notes/", {}, first).open();
  server.write("/notes/a");
  await until(() => first.of("change").length === 1);
  await client.watch("/other/", {}, second).open();
  await until(() => server.streams.size === 1);
  assert.deepEqual([...server.streams][0].scopes, ["doc:/notes/", "doc:/other/"]);
  server.write("/other/b");
  server.write("/notes/c");
  await until(() => first.of("change").length === 2 && second.of("change").length === 1);
  assert.deepEqual(first.cursors(), ["e:1", "e:3"]);
  assert.deepEqual(second.cursors(), ["e:2"]);
});

test("T9: a beat with an id moves the position of a quiet scope", async (t) => {
  const { server, client } = await start(t);
  const watch = client.watch("/notes/", {}, () => {});
  await watch.open();
  for (let at = 0; at < 5; at++) server.write("/elsewhere");
  const [stream] = server.streams;
  server.event(stream, "beat", {}, server.head);
  await until(() => watch.cursors.get("doc:/notes/") === "e:5");
  server.cut();
  await until(() => server.requestsFor("/v1/watch").length === 2);
  assert.match(server.requests.at(-1).url, /since=e%3A5/);
});

test("P3: a gap event is told, and the epoch it names is resumed from", async (t) => {
  const { server, client } = await start(t);
  const heard = recorder();
  await client.watch("/notes/", { since: "old:7" }, heard).open();
  await until(() => heard.of("gap").length === 1);
  assert.equal(heard.of("gap")[0].reason, "epoch");
  server.write("/notes/a");
  await until(() => heard.of("change").length === 1);
  assert.deepEqual(heard.cursors(), ["e:1"]);
});

test("T60: the delay of a closing event is obeyed", async (t) => {
  const { server, client } = await start(t);
  await client.watch("/notes/", {}, () => {}).open();
  const [stream] = server.streams;
  const toldAt = performance.now();
  server.event(stream, "closing", { retry_after_ms: 900, reason: "draining" }, server.head);
  stream.answer.end();
  await until(() => server.requestsFor("/v1/watch").length === 2);
  assert.ok(performance.now() - toldAt >= 895);
});

test("T10: a refusal that may pass comes as a stream with retry, and is obeyed", async (t) => {
  const { server, client } = await start(t);
  let isBusy = true;
  server.intercept = (request, answer) => {
    if (!isBusy || !request.url.startsWith("/v1/watch")) return false;
    isBusy = false;
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    answer.end('retry: 700\nevent: error\ndata: {"code":"overloaded","message":"busy"}\n\n');
    return true;
  };
  const begunAt = performance.now();
  await client.watch("/notes/", {}, () => {}).open();
  assert.ok(performance.now() - begunAt >= 695);
});

test("L40: an overloaded server's own delay is obeyed, in milliseconds or seconds", async (t) => {
  const { server, client } = await start(t);
  const delays = [{ retry_after_ms: 600 }, {}];
  server.intercept = (_, answer) => {
    const error = delays.shift();
    if (error === undefined) return false;
    answer.writeHead(503, { "Retry-After": "1" }).end(JSON.stringify({ error }));
    return true;
  };
  const begunAt = performance.now();
  await client.watch("/notes/", {}, () => {}).open();
  const took = performance.now() - begunAt;
  assert.ok(took >= 1_590 && took < 3_000, String(took));
});

test("L72: of several scopes on a stream only the refused one is refused", async (t) => {
  const { server, client } = await start(t);
  server.intercept = (request, answer) => {
    if (!request.url.includes("secret")) return false;
    const body = { error: { code: "not-permitted", message: "no", fix: "ask" } };
    answer.writeHead(403, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    return true;
  };
  const open = client.watch("/open/");
  const secret = client.watch("/secret/");
  const opened = open.open();
  await assert.rejects(secret.open(), { code: "not-permitted", fix: "ask" });
  await opened;
  assert.equal(server.requestsFor("/v1/watch").length, 3);
  server.cut();
  await until(() => server.requestsFor("/v1/watch").length > 3 && open.state() === "live");
  assert.deepEqual(
    server
      .requestsFor("/v1/watch")
      .slice(3)
      .map(({ url }) => url),
    ["/v1/watch?scope=doc%3A%2Fopen%2F&since=e%3A0"],
  );
});

test("T54: 401 ends the connection with a typed error, not a loop", async (t) => {
  const { server, client } = await start(t, { token: "forged" });
  server.intercept = (_, answer) => {
    const body = { error: { code: "unauthorized", message: "not a token of ours" } };
    answer.writeHead(401).end(JSON.stringify(body));
    return true;
  };
  await assert.rejects(client.watch("/notes/").open(), { code: "signed-out" });
  assert.equal(client.phase, "failed");
  assert.equal(server.requests.length, 1);
});

test("events and presence of a channel come over a stream, publish goes by POST", async (t) => {
  const { server, client } = await start(t);
  const heard = recorder();
  const channel = client.channel("room", { id: 42 }, {}, heard);
  await channel.open();
  const [stream] = server.streams;
  const scope = "channel:room?id=42";
  server.event(stream, "event", { scope, event: "message", data: 1, cursor: "h:1" }, "h:1");
  server.event(stream, "presence", { scope, kind: "sync", members: [{ id: "a", at: 1 }] });
  await until(() => heard.of("presence").length === 1);
  assert.deepEqual(
    heard.of("event").map(({ data, cursor }) => [data, cursor]),
    [[1, "h:1"]],
  );
  assert.equal(channel.roster.total, 1);
  assert.deepEqual(await channel.publish("message", "hi"), { cursor: "h:1" });
  assert.deepEqual(server.published, [
    { url: "/v1/channels/room?id=42", event: "message", data: "hi" },
  ]);
});

test("T65: a redirect is followed, and each reconnect starts at the first address", async (t) => {
  const { server, client } = await start(t);
  server.intercept = (request, answer) => {
    if (!request.url.startsWith("/v1/watch") || request.url.includes("moved")) return false;
    answer.writeHead(307, { Location: `${request.url}&moved=1` }).end();
    return true;
  };
  const heard = recorder();
  const watch = client.watch("/notes/", {}, heard);
  await watch.open();
  server.cut();
  await until(() => server.requestsFor("/v1/watch").length === 4);
  const moved = server.requestsFor("/v1/watch").map(({ url }) => url.includes("moved"));
  assert.deepEqual(moved, [false, true, false, true]);
});

test("a network without sockets falls back to streams, and stays with them", async (t) => {
  const { server, client } = await start(t, { transport: "auto", WebSocket });
  server.intercept = (request, socket) => {
    if (request.headers.upgrade === undefined) return false;
    socket.destroy();
    return true;
  };
  const heard = recorder();
  const watch = client.watch("/notes/", {}, heard);
  await watch.open();
  assert.equal(server.requests.filter(({ method }) => method === "UPGRADE").length, 2);
  server.cut();
  server.write("/notes/a");
  await until(() => heard.of("change").length === 1);
  assert.equal(server.requests.filter(({ method }) => method === "UPGRADE").length, 2);
});

test("no stream is left open once nothing is watched", async (t) => {
  const { server, client } = await start(t, { keepMs: 0 });
  const watch = client.watch("/notes/", {}, () => {});
  await watch.open();
  watch.close();
  await until(() => server.streams.size === 0);
  await settle();
  assert.equal(client.phase, "idle");
});

test("T61: one silent stream among others ends the link", async (t) => {
  const clock = new FakeClock();
  const { server, client } = await start(t, { clock });
  const notes = client.watch("/notes/", {}, () => {});
  await Promise.all([notes.open(), client.watch("channel:room?id=1", {}, () => {}).open()]);
  const talking = [...server.streams].find(({ scopes }) => scopes[0] === "doc:/notes/");
  for (let beat = 1; beat <= 2; beat++) {
    await clock.advance(14_000);
    server.event(talking, "beat", {}, `e:${beat}`);
    await until(() => notes.cursors.get("doc:/notes/") === `e:${beat}`);
  }
  assert.equal(client.phase, "live");
  await clock.advance(3_000);
  await until(() => server.requestsFor("/v1/whoami").length === 2);
});
