/** What is published: a bundle for browsers without anything of Node in it, and no dependency. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const entry = new URL("../dist/index.js", import.meta.url).pathname;

function bundle(format) {
  return build({
    entryPoints: [entry],
    bundle: true,
    platform: "browser",
    format,
    globalName: "tidings",
    metafile: true,
    minify: true,
    write: false,
    logLevel: "silent",
  });
}

test("no Node built-in is reached, and nothing but our own files", async () => {
  const { metafile } = await bundle("esm");
  for (const [file, { imports }] of Object.entries(metafile.inputs)) {
    assert.match(file, /dist\//);
    for (const { path, external } of imports)
      assert.ok(!external && !path.startsWith("node:"), path);
  }
});

test("the bundle stays small enough for a page", async () => {
  const { outputFiles } = await bundle("esm");
  const { length } = gzipSync(outputFiles[0].contents);
  assert.ok(length < 16 * 1024, String(length));
});

test("L74: the bundle runs without any global of Node or of a page", async () => {
  const { outputFiles } = await bundle("iife");
  const pageless = { URL, queueMicrotask, Headers, AbortController };
  const state = runInNewContext(
    `${outputFiles[0].text}; tidings.connect({ url: "http://h" }).watch("/a").state()`,
    pageless,
  );
  assert.equal(state, "pending");
});

test("nothing is needed at run time, and the lock names no registry", async () => {
  const read = (name) => readFile(new URL(`../${name}`, import.meta.url), "utf8");
  const manifest = JSON.parse(await read("package.json"));
  assert.equal(manifest.dependencies, undefined);
  for (const version of Object.values(manifest.devDependencies)) assert.match(version, /^\d/);
  assert.doesNotMatch(await read("package-lock.json"), /"resolved"/);
});
