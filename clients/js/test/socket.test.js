/** The client over real sockets: npm `ws` on both sides. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { WebSocket } from "ws";

import { connect } from "../dist/index.js";
import { until } from "./support/clock.js";
import { recorder } from "./support/network.js";
import { Server } from "./support/server.js";

async function start(t, options = {}) {
  const server = await new Server().listen();
  const client = connect({ url: server.url, WebSocket, random: () => 0, ...options });
  t.after(async () => {
    client.close();
    await server.close();
  });
  return { server, client };
}

test("changes come over a socket, and a publish goes over it", async (t) => {
  const { server, client } = await start(t);
  const heard = recorder();
  const watch = client.watch("/notes/", {}, heard);
  await watch.open();
  server.write("/notes/a");
  server.write("/elsewhere");
  server.write("/notes/b");
  await until(() => heard.of("change").length === 2);
  assert.deepEqual(heard.cursors(), ["e:1", "e:3"]);
  const answer = await client.channel("room", { id: 42 }).publish("message", { text: "hi" });
  assert.deepEqual(answer, { cursor: "h:1" });
  assert.equal(server.published[0].channel, "room?id=42");
});

test("L65: cut again and again under writes, nothing is missed or comes twice", async (t) => {
  const { server, client } = await start(t);
  const heard = recorder();
  const watch = client.watch("/notes/", {}, heard);
  await watch.open();
  for (let round = 0; round < 8; round++) {
    for (let at = 0; at < 25; at++) server.write("/notes/a");
    server.cut();
    for (let at = 0; at < 25; at++) server.write("/notes/a");
    await until(() => server.sockets.size === 1 && watch.state() === "live");
  }
  await until(() => heard.of("change").length >= 400);
  assert.deepEqual(
    heard.cursors(),
    server.log.map(({ cursor }) => cursor),
  );
});

test("a close before the socket is open raises nothing", async (t) => {
  const { client } = await start(t);
  const watch = client.watch("/notes/");
  const opening = watch.open();
  watch.close();
  await assert.rejects(opening, { code: "closed" });
  assert.equal(client.phase, "idle");
});

test("L40: a network that answers HTML to everything is dialled with growing delay", async (t) => {
  const { server, client } = await start(t);
  server.intercept = (_, answer) => {
    if (answer.writeHead) answer.writeHead(200, { "Content-Type": "text/html" }).end("<p>Sign in");
    else answer.end("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<p>");
    return true;
  };
  const watch = client.watch("/notes/", {}, () => {});
  await until(() => server.requests.length >= 3);
  assert.equal(watch.state(), "connecting");
  server.intercept = () => false;
  client.reconnectNow();
  await watch.open();
});
