// Builds the package for pages: `dist/index.js`, one module whose internal names have one or two letters.
//
// The bundler of a page shortens the names of variables, and must keep those of properties. Here the internal ones are known.

import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { minify } from "terser";

/**
 * Properties and methods of the package's own. A name that is public, a member of an answer or a property of the platform must
 * not stand here, for each of its uses gets another name. `page-names.mjs` finds public ones.
 */
export const INTERNAL = [
  ...["afterFailure", "answered", "api", "ask", "askAt", "attach", "attempts", "beacon", "bearer", "boot", "call", "cancel"],
  ...["clock", "connect", "count", "current", "door", "driver", "ended", "expiresIn", "explain", "failures", "finish", "finished"],
  ...["full", "generation", "grace", "grant", "holder", "holds", "instant", "interval", "isInDoubt"],
  ...["isInFlight", "isOpen", "isOver", "isPunctual", "isReleasing", "isSharing", "isSpent", "lastEventId", "lease"],
  ...["listen", "mayStream", "mono", "nextBeat", "open", "openSince", "outcome", "path", "platform", "program"],
  ...["reacquires", "reconnect", "refreshToken", "releaseAll", "releasingCode", "renew", "report", "request", "seat", "send", "sent"],
  ...["sentAt", "server", "setTimer", "settle", "start", "step", "stop", "Stream", "suspend", "take", "terms", "tick"],
  ...["tickBy", "tokenOver", "unload", "wakeAt", "wall", "yieldConnection", "yieldConnections"],
];

/** Inlined calls are repeated text, which compresses worse than a name. Functions that stand together compress better. */
const COMPRESS = { ecma: 2022, hoist_funs: true, inline: 0, module: true, passes: 3, reduce_funcs: false };

/** Returns the code of the package for pages. */
export async function pageBundle() {
  const { outputFiles } = await build({
    bundle: true,
    entryPoints: ["src/index.ts"],
    format: "esm",
    mangleProps: new RegExp(`^(${INTERNAL.join("|")})$`),
    minifySyntax: true,
    platform: "browser",
    target: "es2022",
    write: false,
  });
  const { code } = await minify(outputFiles[0].text, { compress: COMPRESS, ecma: 2022, mangle: { module: true }, module: true });
  return code;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile("dist/index.js", await pageBundle());
