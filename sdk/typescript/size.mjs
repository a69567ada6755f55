// Measures the package as a page loads it: bundled, minified and compressed. Fails above a bound.

import { gzipSync } from "node:zlib";

import { build } from "esbuild";

/** Modules for Node.js alone. */
const NODE = ["node-client", "node-platform", "node-transport", "servers", "state-dir", "remedies", "token-file", "machine-id"];
/**
 * Programs, the bound of each, and the modules that must not be loaded. The goal for a page is 8 kB; the bounds keep the
 * package from growing away from the goal.
 */
const PROGRAMS = [
  {
    name: "a page with a user's token",
    code: 'export { Client } from "./src/index.ts";',
    bytesMax: 8_700,
    without: [...NODE, "license-key", "license-tokens"],
  },
  { name: "the whole package", code: 'export * from "./src/index.ts";', bytesMax: 9_650, without: NODE },
];

for (const { name, code, bytesMax, without } of PROGRAMS) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: "." },
    bundle: true,
    format: "esm",
    metafile: true,
    minify: true,
    outdir: "dist",
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
  const [{ inputs }] = Object.values(metafile.outputs);
  const loaded = without.filter((module) => inputs[`src/${module}.ts`]?.bytesInOutput > 0);
  if (loaded.length > 0) {
    console.error(`pages load ${loaded.join(", ")}`);
    process.exitCode = 1;
  }
}
