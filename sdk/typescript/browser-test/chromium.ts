/** Chromium, driven by the DevTools protocol over a pipe: the tests need no package. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdtempSync, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Readable, Writable } from "node:stream";

type Json = Record<string, unknown>;

interface Waiting {
  readonly resolve: (result: Json) => void;
  readonly reject: (error: Error) => void;
}

/** Returns the path of Chromium: the variable `CHROMIUM`, or the first of the usual names. */
export function findChromium(): string | undefined {
  const named = process.env["CHROMIUM"];
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const paths = named === undefined ? names.flatMap((name) => folders.map((folder) => join(folder, name))) : [named];
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** A headless browser with a profile of its own. */
export class Chromium {
  readonly #profile = mkdtempSync(join(tmpdir(), "seatkeeper-chromium-"));
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #input = "";

  private constructor(path: string, flags: readonly string[]) {
    const usual = ["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"];
    // Root may not use the sandbox.
    const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const command = [...usual, ...root, `--user-data-dir=${this.#profile}`, ...flags, "about:blank"];
    const log = openSync(join(this.#profile, "log"), "a");
    this.#process = spawn(path, command, { stdio: ["ignore", log, log, "pipe", "pipe"] });
    (this.#process.stdio[4] as Readable).setEncoding("utf8").on("data", (text: string) => this.#take(text));
  }

  /** Starts the browser. */
  static async start(path: string, flags: readonly string[] = []): Promise<Chromium> {
    const browser = new Chromium(path, flags);
    await browser.send("Browser.getVersion");
    return browser;
  }

  /** Returns the name and the version of the browser. */
  async version(): Promise<string> {
    return String((await this.send("Browser.getVersion"))["product"]);
  }

  /** Opens a page in a new tab, which is then the visible one. */
  async open(url: string): Promise<Page> {
    const { targetId } = await this.send("Target.createTarget", { url });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    return new Page(this, String(targetId), String(sessionId));
  }

  /** Sends a command and returns its result. */
  send(method: string, params: Json = {}, sessionId?: string): Promise<Json> {
    const id = this.#next;
    this.#next += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      const command = { id, method, params, ...(sessionId === undefined ? {} : { sessionId }) };
      (this.#process.stdio[3] as Writable).write(`${JSON.stringify(command)}\0`);
    });
  }

  #take(text: string): void {
    const messages = (this.#input + text).split("\0");
    this.#input = messages.pop() ?? "";
    for (const message of messages) {
      const { id, result, error } = JSON.parse(message) as { id?: number; result?: Json; error?: { message: string } };
      const waiting = this.#waiting.get(id ?? 0);
      this.#waiting.delete(id ?? 0);
      if (error === undefined) waiting?.resolve(result ?? {});
      else waiting?.reject(new Error(error.message));
    }
  }

  /** Ends the browser, and removes its profile. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, "exit");
    // The answer may not come any more.
    this.send("Browser.close").catch(() => undefined);
    const late = setTimeout(() => this.#process.kill("SIGKILL"), 5_000);
    await ended;
    clearTimeout(late);
    // Helpers of the browser may end a moment later.
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** A page in a tab. */
export class Page {
  constructor(
    private readonly browser: Chromium,
    private readonly target: string,
    private readonly session: string,
  ) {}

  /** Evaluates an expression in the page, and returns the value of its promise. */
  async evaluate<T>(expression: string): Promise<T> {
    const params = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = (await this.#send("Runtime.evaluate", params)) as {
      result: { value: T };
      exceptionDetails?: { exception?: { description?: string }; text: string };
    };
    if (exceptionDetails === undefined) return result.value;
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  }

  /** Waits until the expression is true. */
  async until(expression: string, milliseconds = 10_000): Promise<void> {
    const end = performance.now() + milliseconds;
    while (!(await this.evaluate<boolean>(`Boolean(${expression})`).catch(() => false))) {
      if (performance.now() > end) throw new Error(`not within ${milliseconds} ms: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async navigate(url: string): Promise<void> {
    await this.#send("Page.navigate", { url });
  }

  /** Goes back in the history, as the button of the browser does. */
  async back(): Promise<void> {
    const history = (await this.#send("Page.getNavigationHistory")) as { currentIndex: number; entries: { id: number }[] };
    const { id } = history.entries[history.currentIndex - 1]!;
    await this.#send("Page.navigateToHistoryEntry", { entryId: id });
  }

  /** Makes the tab the visible one. */
  async show(): Promise<void> {
    await this.browser.send("Target.activateTarget", { targetId: this.target });
  }

  /** Closes the tab. */
  async close(): Promise<void> {
    await this.browser.send("Target.closeTarget", { targetId: this.target });
  }

  #send(method: string, params: Json = {}): Promise<Json> {
    return this.browser.send(method, params, this.session);
  }
}
