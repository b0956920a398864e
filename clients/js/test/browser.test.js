/**
 * The bundle in a real browser, against a real server: WebSocket and EventSource, two tabs, a
 * network that goes away, a page that is left and returned to.
 *
 * A page comes from an origin of its own, which the server lists. What the network does is done by
 * a relay between the two, because a browser's own offline mode leaves open sockets alone.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { until } from "./support/clock.js";
import { Browser, skip } from "./support/browser.js";

describe("a page in Chromium", { skip }, () => {
  const browser = new Browser();

  before(() => browser.start());
  after(() => browser.stop());

  for (const transport of ["socket", "sse"]) {
    test(`the bundle follows documents over ${transport}`, async () => {
      const folder = `/browser-${transport}`;
      const page = await browser.open();
      await page.evaluate(follow, { transport, scope: `${folder}/` });
      await browser.server.write(`${folder}/tea.md`, "# Tea");
      await until(async () => (await told(page, "change")).length === 1);
      const [change] = await told(page, "change");
      assert.equal(change.name, `${folder}/tea.md`);
      assert.equal((await told(page, "gap")).length, 0);
      await page.close();
    });

    test(`L66: offline and back over ${transport}, nothing is missed`, async () => {
      const folder = `/offline-${transport}`;
      const page = await browser.open();
      await page.evaluate(follow, { transport, scope: `${folder}/` });
      await browser.server.write(`${folder}/a.md`, "# Before");
      await until(async () => (await told(page, "change")).length === 1);
      await browser.cut();
      await until(async () => (await lastState(page)) === "stale");
      for (const name of ["b", "c"]) await browser.server.write(`${folder}/${name}.md`, "# Away");
      await browser.mend();
      await until(async () => (await told(page, "change")).length === 3);
      const names = (await told(page, "change")).map(({ name }) => name);
      assert.deepEqual(
        names,
        ["a", "b", "c"].map((name) => `${folder}/${name}.md`),
      );
      assert.equal((await told(page, "gap")).length, 0);
      await page.close();
    });
  }

  test("T73: an EventSource of the browser comes back by itself with its position", async () => {
    const page = await browser.open();
    await page.evaluate((url) => {
      window.told = [];
      window.opened = 0;
      const source = new EventSource(`${url}/v1/watch?scope=doc:/plain/`);
      source.onopen = () => window.opened++;
      for (const name of ["publish", "gap"]) {
        source.addEventListener(name, ({ data }) => {
          window.told.push({ kind: name, ...JSON.parse(data) });
        });
      }
    }, browser.url);
    await until(() => page.evaluate(() => window.opened === 1));
    await browser.server.write("/plain/a.md", "# One");
    await until(async () => (await told(page, "publish")).length === 1);
    await browser.server.kill();
    await browser.server.restart();
    await browser.server.write("/plain/b.md", "# Two");
    await until(async () => (await told(page, "publish")).length === 2);
    assert.equal((await told(page, "gap")).length, 0);
    await page.close();
  });

  test("C51: two tabs are two members, and each is told of events once", async () => {
    const [first, second] = [await browser.open(), await browser.open()];
    for (const page of [first, second]) await page.evaluate(join, { id: 7 });
    const total = (page) => page.evaluate(() => window.room.roster.total);
    await until(async () => (await total(first)) === 2 && (await total(second)) === 2);
    await second.evaluate(() => window.room.publish("message", { text: "hi" }));
    for (const page of [first, second]) {
      await until(async () => (await told(page, "event")).length === 1);
      assert.deepEqual((await told(page, "event"))[0].data, { text: "hi" });
    }
    await second.close();
    await until(async () => (await total(first)) === 1);
    await first.close();
  });

  test("L61: a page that was left and is returned to is live again", async () => {
    const page = await browser.open();
    await page.evaluate(follow, { transport: "socket", scope: "/returned/" });
    await page.evaluate(() => {
      window.addEventListener("pageshow", ({ persisted }) => (window.wasKept = persisted));
    });
    await page.goto("about:blank");
    await browser.server.write("/returned/a.md", "# Away");
    // A page that was kept does not load, so only its return can be waited for.
    await page.goBack({ waitUntil: "commit" });
    await until(() => page.evaluate(() => window.wasKept === true));
    await until(async () => (await told(page, "change")).length === 1);
    assert.equal((await told(page, "gap")).length, 0);
    await page.close();
  });

  test("T16: a page of an origin that is not listed opens no socket", async () => {
    const page = await browser.open(browser.foreignUrl);
    const outcome = await page.evaluate(
      (url) =>
        new Promise((resolve) => {
          const socket = new WebSocket(`${url.replace("http", "ws")}/v1/socket`);
          socket.onopen = () => resolve("open");
          socket.onclose = ({ code }) => resolve(code);
        }),
      browser.url,
    );
    assert.equal(outcome, 1006);
    const answer = await page.evaluate(
      (url) =>
        fetch(`${url}/v1/whoami`).then(
          () => "readable",
          () => "refused",
        ),
      browser.url,
    );
    assert.equal(answer, "refused");
    await page.close();
  });
});

/** Runs in the page: follows `scope` and keeps what is told. */
async function follow({ transport, scope }) {
  window.told = [];
  window.client = window.tidings.connect({ url: window.serverUrl, transport });
  const watch = window.client.watch(scope, {}, (notice) => window.told.push({ ...notice }));
  await watch.open();
}

/** Runs in the page: joins a room. */
async function join(params) {
  window.told = [];
  window.client = window.tidings.connect({ url: window.serverUrl });
  window.room = window.client.channel("room", params, {}, (notice) => {
    window.told.push({ kind: notice.kind, data: notice.data });
  });
  await window.room.open();
}

/** What the page was told of one kind. */
function told(page, kind) {
  return page.evaluate((kind) => window.told.filter((notice) => notice.kind === kind), kind);
}

/** The last state that the page was told. */
async function lastState(page) {
  return (await told(page, "state")).at(-1)?.state;
}
