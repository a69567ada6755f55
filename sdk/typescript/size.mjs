// Measures the package as a page loads it: bundled, minified and compressed. Fails above a bound.

import { gzipSync } from "node:zlib";

import { build } from "esbuild";

/** Programs, and the bound of each. The goal is 8 KiB; the bounds keep the package from growing further away. */
const PROGRAMS = [
  { name: "a page with a user's token", code: 'export { Client } from "./src/index.ts";', bytesMax: 9_150 },
  { name: "the whole package", code: 'export * from "./src/index.ts";', bytesMax: 10_100 },
];

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
  const [{ contents }] = outputFiles;
  const bytes = gzipSync(contents, { level: 9 }).length;
  console.log(`${name}: ${contents.length} bytes minified, ${bytes} bytes with gzip`);
  if (bytes > bytesMax) {
    console.error(`more than ${bytesMax} bytes with gzip`);
    process.exitCode = 1;
  }
}
