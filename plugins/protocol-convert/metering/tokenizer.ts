/**
 * Token counts of texts by a public vocabulary, in a thread of its own: loading the vocabulary takes a quarter of a second,
 * and 1 MB of text about 50 ms, which requests of others would wait for.
 */
import { Worker } from 'node:worker_threads';

/** Messages to the thread, and from it. */
export interface ToCount {
  readonly call: number;
  readonly texts: readonly string[];
}
export interface Counted {
  readonly call: number;
  readonly tokens: number;
}

/** Longer texts are estimated by size, not tokenized. */
const mostCharacters = 2 * 2 ** 20;
/** Texts that wait for the thread at most; more are estimated by size. */
const mostWaiting = 16 * 2 ** 20;
/** The thread and its vocabulary take about 40 MB, which are given back after so long without a text. */
const idleMs = 60_000;
/**
 * Approximate bytes of a token in the estimate; slightly below the measured value, so that the estimate is not too
 * low.
 */
const bytesPerToken = 3;

/** Tokens of these texts, each counted separately. */
export async function countText(texts: readonly string[]): Promise<number> {
  let characters = 0;
  for (const text of texts) characters += text.length;
  if (characters === 0) return 0;
  if (characters > mostCharacters) return estimateBySize(texts);
  current ??= new TokenizerThread(() => {
    current = undefined;
  });
  return (await current.count(texts, characters)) ?? estimateBySize(texts);
}

interface Waiting {
  readonly characters: number;
  /** undefined: the thread has ended. */
  readonly resolve: (tokens: number | undefined) => void;
}

class TokenizerThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #onEnd: () => void;
  #calls = 0;
  #characters = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
    // Node strips the types by itself, so the thread needs none of the loaders that this one was started with.
    this.#worker = new Worker(new URL('./tokenizer-entry.ts', import.meta.url), { execArgv: [] });
    this.#worker.unref();
    this.#worker.on('message', ({ call, tokens }: Counted) => this.#settle(call, tokens));
    this.#worker.on('error', () => this.#end());
    this.#worker.on('exit', () => this.#end());
  }

  count(texts: readonly string[], characters: number): number | undefined | Promise<number | undefined> {
    if (this.#characters + characters > mostWaiting) return undefined;
    const call = ++this.#calls;
    clearTimeout(this.#idle);
    this.#characters += characters;
    this.#worker.ref();
    this.#worker.postMessage({ call, texts } satisfies ToCount);
    return new Promise((resolve) => this.#waiting.set(call, { characters, resolve }));
  }

  #settle(call: number, tokens: number | undefined): void {
    const waiting = this.#waiting.get(call);
    if (waiting === undefined) return;
    this.#waiting.delete(call);
    this.#characters -= waiting.characters;
    if (this.#waiting.size === 0) {
      this.#worker.unref();
      this.#idle = setTimeout(() => void this.#worker.terminate(), idleMs).unref();
    }
    waiting.resolve(tokens);
  }

  /** The next text is counted in a new thread. */
  #end(): void {
    this.#onEnd();
    for (const call of [...this.#waiting.keys()]) this.#settle(call, undefined);
    clearTimeout(this.#idle);
  }
}

let current: TokenizerThread | undefined;

function estimateBySize(texts: readonly string[]): number {
  let bytes = 0;
  for (const text of texts) bytes += Buffer.byteLength(text);
  return Math.ceil(bytes / bytesPerToken);
}
