/** Keeps what this process applies, in order; what the database did not take is tried again. */
import type { ConfigFiles } from '../../../core/contract/config-files.ts';
import type { Log } from '../../../core/contract/host-tools.ts';
import type { Applied, HistoryStore } from './history.ts';

/** Beyond it the oldest are given up. */
const mostWaiting = 50;

export class HistoryRecorder {
  readonly #store: Pick<HistoryStore, 'record'>;
  readonly #log: Log;
  readonly #waiting: Applied[] = [];
  #turn: Promise<void> = Promise.resolve();

  constructor(store: Pick<HistoryStore, 'record'>, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** Records what runs from now on. */
  follow(files: ConfigFiles): void {
    const keep = (source: Applied['source']) => void this.record({ texts: files.running(), source });
    keep('start');
    files.onApplied(keep);
  }

  /** Never rejects. */
  async record(applied: Applied): Promise<void> {
    this.#waiting.push(applied);
    if (this.#waiting.length > mostWaiting) this.#waiting.shift();
    await this.flush().catch((error: unknown) =>
      this.#log.warn({ error }, 'the applied configuration is not in the history yet'),
    );
  }

  /** Records what waits; rejects with what the database says. */
  flush(): Promise<void> {
    const result = this.#turn.then(async () => {
      for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
        await this.#store.record(next);
        this.#waiting.splice(this.#waiting.indexOf(next), 1);
      }
    });
    this.#turn = result.catch(() => {});
    return result;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0;
  }
}
