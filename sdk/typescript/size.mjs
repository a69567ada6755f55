// Measures the package as a page loads it: bundled with a program, minified and compressed. Fails above a bound.

import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { INTERNAL } from "./page-bundle.mjs";
import { publicNames } from "./page-names.mjs";

/** Programs, and the bound of each in bytes. */
const PROGRAMS = [
  { name: "a page with a user's token", code: 'export { Client } from "./dist/index.js";', bytesMax: 8_000 },
  { name: "the whole package", code: 'export * from "./dist/index.js";', bytesMax: 9_000 },
];
/** Texts of code that pages must not load: modules of Node.js, and license tokens in a page with a user's token. */
const NODE = ["node:", "NODE_EXTRA_CA_CERTS", "XDG_STATE_HOME"];

function fail(complaint) {
  console.error(complaint);
  process.exitCode = 1;
}

for (const { name, code, bytesMax } of PROGRAMS) {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: "." },
    bundle: true,
    format: "esm",
    minify: true,
    platform: "browser",
    target: "es2022",
    write: false,
  });
  const [{ contents, text }] = outputFiles;
  const bytes = gzipSync(contents, { level: 9 }).length;
  console.log(`${name}: ${contents.length} bytes minified, ${bytes} bytes with gzip`);
  if (bytes > bytesMax) fail(`more than ${bytesMax} bytes with gzip`);
  const without = code.includes("*") ? NODE : [...NODE, "/licenses/token"];
  const loaded = without.filter((part) => text.includes(part));
  if (loaded.length > 0) fail(`pages load ${loaded.join(", ")}`);
}

// A shortened name that a page sees would be missing there.
const known = publicNames();
const shortened = INTERNAL.filter((name) => known.has(name));
if (shortened.length > 0) fail(`page-bundle.mjs shortens public names: ${shortened.join(", ")}`);
