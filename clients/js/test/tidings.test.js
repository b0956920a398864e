/** The client against a real server, over each transport. Skipped where there is none. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { WebSocket } from "ws";

import { connect } from "../dist/index.js";
import { until } from "./support/clock.js";
import { recorder } from "./support/network.js";
import { skip, Tidings } from "./support/tidings.js";

for (const transport of ["socket", "sse"]) {
  describe(`a real server over ${transport}`, { skip }, () => {
    const server = new Tidings();
    const folder = `/js-${transport}-${process.pid}`;

    before(() => server.start());
    after(() => server.stop());

    /** A client that ends with its test. */
    function open(t, options = {}) {
      const client = connect({ url: server.url, transport, WebSocket, ...options });
      t.after(() => client.close());
      return client;
    }

    test("P7: what is written after open() is told, with its position", async (t) => {
      const heard = recorder();
      await open(t).watch(`${folder}/`, {}, heard).open();
      const cursor = await server.write(`${folder}/a.md`, "one");
      await server.write(`/elsewhere-${process.pid}.md`, "two");
      await until(() => heard.of("change").length === 1);
      const [change] = heard.of("change");
      assert.equal(change.name, `${folder}/a.md`);
      assert.equal(change.op, "publish");
      if (cursor !== null) assert.equal(change.cursor, cursor);
      assert.equal(heard.of("gap").length, 0);
    });

    test("L65, T73: a client that returns with its cursor gets the rest, each once", async (t) => {
      const first = open(t);
      const watch = first.watch(`${folder}/`, {}, () => {});
      await watch.open();
      const since = watch.cursors.get(`doc:${folder}/`);
      first.close();
      for (let at = 0; at < 20; at++) await server.write(`${folder}/b.md`, `body ${at}`);
      const heard = recorder();
      await open(t).watch(`${folder}/`, { since }, heard).open();
      await until(() => heard.of("change").length >= 20);
      assert.equal(new Set(heard.cursors()).size, 20);
      assert.equal(heard.of("gap").length, 0);
    });

    test("P3: a cursor of another epoch is told as a gap", async (t) => {
      const heard = recorder();
      await open(t).watch(`${folder}/`, { since: "another:5" }, heard).open();
      await until(() => heard.of("gap").length === 1);
      assert.equal(heard.of("gap")[0].reason, "epoch");
    });

    test("L73: several scopes of one feed are followed together", async (t) => {
      const heard = recorder();
      const client = open(t);
      await client.watch([`${folder}/x/`, `${folder}/y.md`], {}, heard).open();
      await server.write(`${folder}/x/1.md`, "one");
      await server.write(`${folder}/y.md`, "two");
      await until(() => heard.of("change").length === 2);
      const scopes = heard.of("change").map(({ scope }) => scope);
      assert.deepEqual(scopes, [`doc:${folder}/x/`, `doc:${folder}/y.md`]);
    });

    test("L72: an undeclared channel is refused with a reason, once", async (t) => {
      const channel = open(t).channel("nowhere", {});
      await assert.rejects(channel.open(), (error) => typeof error.code === "string");
      assert.equal(channel.state, "refused");
    });

    test(
      "P5: after kill -9 the watch resumes without a gap",
      { skip: !server.isOwn },
      async (t) => {
        const heard = recorder();
        const watch = open(t).watch(`${folder}/`, {}, heard);
        await watch.open();
        await server.write(`${folder}/c.md`, "before");
        await until(() => heard.of("change").length === 1);
        await server.kill();
        await until(() => watch.state() === "stale");
        await server.restart();
        await server.write(`${folder}/c.md`, "after");
        await until(() => heard.of("change").length === 2);
        assert.equal(heard.of("gap").length, 0);
      },
    );

    test(
      "events and presence of a channel reach its members",
      { skip: !server.isOwn },
      async (t) => {
        const heard = recorder();
        const room = open(t).channel("room", { id: 42 }, {}, heard);
        await room.open();
        const other = open(t).channel("room", { id: 42 }, {}, () => {});
        await other.open();
        await other.publish("message", { text: "hi" });
        await until(() => heard.of("event").length === 1);
        assert.deepEqual(heard.of("event")[0].data, { text: "hi" });
        if (transport === "sse") return;
        await until(() => room.roster.total === 2);
        other.close();
        await until(() => room.roster.total === 1);
      },
    );
  });
}
