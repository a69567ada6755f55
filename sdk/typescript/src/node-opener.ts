/// <reference types="node" />
import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";

import type { Opened, StreamOpener } from "./stream-opener.js";

/** Opens streams with a connection of their own, which keeps no Node.js process alive: `fetch` has no such choice. */
export class NodeOpener implements StreamOpener {
  readonly isSharing = false;

  open(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Opened> {
    const get = url.startsWith("https:") ? getHttps : getHttp;
    return new Promise((resolve, reject) => {
      get(url, { headers, signal, agent: false })
        .on("socket", (socket) => socket.unref())
        .on("error", reject)
        .on("response", (answer) => {
          resolve({ status: answer.statusCode ?? 0, type: answer.headers["content-type"] ?? "", pieces: answer });
        });
    });
  }
}
