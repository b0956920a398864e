/** The client in a page: the network's events and the back/forward cache, in a page of ours. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Network, settle } from "./support/network.js";

/** Stands in for the browser's globals during one test. */
function openPage(t) {
  const page = new EventTarget();
  page.visibilityState = "visible";
  const names = ["addEventListener", "document"];
  const before = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
  const set = (name, value) =>
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  set("document", page);
  set("addEventListener", page.addEventListener.bind(page));
  t.after(() => {
    names.forEach((name, at) => {
      if (before[at]) Object.defineProperty(globalThis, name, before[at]);
      else delete globalThis[name];
    });
  });
  return (type, fields = {}) => page.dispatchEvent(Object.assign(new Event(type), fields));
}

async function liveClient(t) {
  const fire = openPage(t);
  const network = new Network();
  network.heads.set("doc:/a", "e:1");
  const client = network.connect();
  const watch = client.watch("/a", {}, () => {});
  await settle();
  return { fire, network, client, watch };
}

test("L61: a page in the cache has no socket, and is live again when it returns", async (t) => {
  const { fire, network, client, watch } = await liveClient(t);
  fire("pagehide", { persisted: true });
  assert.equal(network.last.closedWith.code, 1000);
  assert.equal(client.phase, "idle");
  assert.equal(network.clock.pending, 0);
  await network.clock.advance(300_000);
  fire("pageshow", { persisted: true });
  await settle();
  assert.equal(watch.state(), "live");
  assert.equal(network.sockets.length, 2);
  assert.equal(network.last.of("subscribe")[0].since, "e:1");
});

test("a page that is left for good keeps its socket until the browser ends it", async (t) => {
  const { fire, network, client } = await liveClient(t);
  fire("pagehide", { persisted: false });
  fire("pageshow", { persisted: false });
  assert.equal(client.phase, "live");
  assert.equal(network.sockets.length, 1);
});

test("L66: coming online asks a live link for a sign of life and ends a wait", async (t) => {
  const { fire, network, client } = await liveClient(t);
  fire("online");
  assert.equal(network.last.of("beat").length, 1);
  network.last.cut();
  assert.equal(client.phase, "waiting");
  fire("online");
  await settle();
  assert.equal(client.phase, "live");
});

test("going offline is asked about, not believed", async (t) => {
  const { fire, network, client } = await liveClient(t);
  fire("offline");
  await network.clock.advance(10_000);
  assert.equal(client.phase, "live");
  network.kill();
  fire("offline");
  await network.clock.advance(2_500);
  assert.equal(network.sockets[0].closedWith.code, 4000);
});

test("a closed client no longer listens to the page", async (t) => {
  const { fire, network, client } = await liveClient(t);
  client.close();
  fire("online");
  fire("pageshow", { persisted: true });
  await settle();
  assert.equal(network.sockets.length, 1);
  assert.equal(network.clock.pending, 0);
});
