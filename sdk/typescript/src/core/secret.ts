/** A text that no log shows. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the text, for a request that needs it. */
  reveal(): string {
    return this.#text;
  }
}
