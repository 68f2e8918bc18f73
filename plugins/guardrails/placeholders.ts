/** Placeholders of one call, and the texts that they stand for. They are gone with the call, and stand in no log and no row. */

/** Letters in front of the number; longer names are cut. */
const longestKind = 20;
const mostKept = 10_000;
/** Characters of all texts that are kept. */
const mostCharacters = 4 * 2 ** 20;
const form = /\[[A-Z_]{1,20}-\d{1,6}\]/g;

export class Placeholders {
  readonly #byText = new Map<string, string>();
  readonly #texts = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #first: number;
  readonly #isSession: boolean;
  #characters = 0;
  /** Those that the client itself has written. */
  readonly #taken = new Set<string>();

  /**
   * `first`: numbers begin here: earlier turns of a conversation that goes on by an id have had others. `isSession`: it may go on for ever, so
   * the oldest make room for new ones, and their numbers are not used again.
   */
  constructor(first: number, isSession = false) {
    this.#first = first;
    this.#isSession = isSession;
  }

  /** Texts of the client, before any of them is masked. */
  avoid(text: string): void {
    for (const [written] of text.matchAll(form)) {
      if (this.#texts.has(written)) continue;
      this.#taken.add(written);
      if (this.#isSession && this.#taken.size > mostKept) forgetFirst(this.#taken);
    }
  }

  /** Those of earlier calls of the conversation stay what they are. */
  recall(kept: ReadonlyMap<string, string>): void {
    for (const [placeholder, text] of kept) {
      this.#byText.set(`${placeholder.slice(1, placeholder.lastIndexOf('-'))} ${text}`, placeholder);
      this.#texts.set(placeholder, text);
    }
  }

  /** The same for the same text. `restored`: it becomes the text again in the answer. */
  of(kind: string, text: string, restored: boolean): string {
    const key = `${kind} ${text}`;
    const known = this.#byText.get(key);
    if (known !== undefined) {
      if (restored) this.#texts.set(known, text);
      return known;
    }
    const made = this.#next(kind.slice(0, longestKind));
    if (this.#hasRoom(text.length)) {
      this.#byText.set(key, made);
      this.#characters += text.length;
      if (restored) this.#texts.set(made, text);
    }
    return made;
  }

  #hasRoom(length: number): boolean {
    const isFull = () => this.#byText.size >= mostKept || this.#characters + length > mostCharacters;
    while (this.#isSession && this.#byText.size > 0 && isFull()) this.#forgetOldest();
    return !isFull();
  }

  #forgetOldest(): void {
    const [key, placeholder] = this.#byText.entries().next().value!;
    this.#byText.delete(key);
    this.#texts.delete(placeholder);
    this.#characters -= key.length - key.indexOf(' ') - 1;
  }

  /** How much is kept, for tests. */
  get kept(): { readonly texts: number; readonly characters: number; readonly taken: number } {
    return { texts: this.#byText.size, characters: this.#characters, taken: this.#taken.size };
  }

  /** What stands for what. Empty: nothing is restored. */
  get restored(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  #next(kind: string): string {
    for (;;) {
      const number = (this.#counts.get(kind) ?? this.#first - 1) + 1;
      this.#counts.set(kind, number);
      const made = `[${kind}-${number}]`;
      if (!this.#taken.has(made)) return made;
    }
  }
}

function forgetFirst(names: Set<string>): void {
  for (const first of names) return void names.delete(first);
}
