/** A site of another origin than the server of the seats: its pages import the package as it is built for pages. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** The compiled test stands in `build/browser-test`. */
const PACKAGE = new URL("../../dist/index.js", import.meta.url);
const PAGE = `<!doctype html><meta charset="utf-8"><title>seats</title><script type="module">
window.told = [];
window.shown = [];
addEventListener("pageshow", (event) => shown.push(event.persisted));
addEventListener("pagehide", () => window.onAway?.());
window.seatkeeper = await import("/seatkeeper.js");
</script>`;

export class Site {
  private constructor(private readonly server: Server) {}

  static async start(): Promise<Site> {
    const server = createServer((request, answer) => {
      const path = new URL(request.url ?? "/", "http://site").pathname;
      if (path === "/seatkeeper.js") {
        answer.writeHead(200, { "Content-Type": "text/javascript" }).end(readFileSync(PACKAGE));
      } else if (path === "/" || path === "/other") {
        answer.writeHead(200, { "Content-Type": "text/html" }).end(path === "/" ? PAGE : "<!doctype html>another page");
      } else {
        answer.writeHead(404).end();
      }
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Site(server);
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
  }
}
