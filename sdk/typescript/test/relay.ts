/** A TCP relay between a client and a server, which breaks or swallows event streams. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class Relay {
  /** The number of event streams that were asked for. */
  streams = 0;
  /** The number of event streams whose connection is open. */
  openStreams = 0;
  readonly #sockets = new Set<Socket>();

  private constructor(private readonly listener: Server) {}

  /** Starts a relay before the server at `url`. */
  static async start(url: string, { swallowStreams = false } = {}): Promise<Relay> {
    const { hostname, port } = new URL(url);
    const listener = createServer();
    const relay = new Relay(listener);
    listener.on("connection", (inner) => {
      const outer = connect(Number(port), hostname);
      for (const socket of [inner, outer]) {
        relay.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          relay.#sockets.delete(socket);
          inner.destroy();
          outer.destroy();
        });
      }
      let isSwallowed = false;
      inner.on("data", (bytes) => {
        if (/^GET \S+\/events[? ]/.test(bytes.toString("latin1"))) {
          relay.streams += 1;
          relay.openStreams += 1;
          inner.once("close", () => (relay.openStreams -= 1));
          isSwallowed = swallowStreams;
        }
        if (!isSwallowed) outer.write(bytes);
      });
      outer.on("data", (bytes) => inner.write(bytes));
    });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    return relay;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.listener.address() as AddressInfo).port}`;
  }

  /** Breaks every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.listener.close();
    this.cut();
  }
}
