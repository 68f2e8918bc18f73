/** Wakes the reader of changes as soon as one is committed: a connection of its own that listens to notifications. */
import { createHash } from 'node:crypto';
import type { Log } from '../../core/contract.ts';
import { type DriverOptions, openLocalDriver } from './driver.ts';
import type { Driver } from './pool.ts';

const closeTimeoutSeconds = 1;

/** The channel of one schema: names of channels end after 63 bytes. */
export function channelOf(schema: string): string {
  return `changes_${createHash('sha256').update(schema).digest('hex').slice(0, 32)}`;
}

/**
 * Nothing depends on it: changes are in a table, which is polled, and where nobody can listen (behind a pooler that hands
 * out connections by transaction, say) they are seen a moment later.
 */
export class Listener {
  readonly #options: DriverOptions;
  readonly #channel: string;
  readonly #onNotice: () => void;
  readonly #log: Log;
  #driver: Driver | undefined;
  #closed = false;
  #failed = false;

  constructor(options: DriverOptions, channel: string, onNotice: () => void, log: Log) {
    this.#options = options;
    this.#channel = channel;
    this.#onNotice = onNotice;
    this.#log = log;
  }

  /** Listens, unless it does already. Call it every so often: a connection that is lost is made anew. */
  async listen(): Promise<void> {
    if (this.#driver !== undefined || this.#closed) return;
    const { target, applicationName } = this.#options;
    const driver: Driver = openLocalDriver(
      { target, applicationName: `${applicationName} changes`, onNotify: this.#onNotice },
      () => {
        if (this.#driver === driver) this.#driver = undefined;
      },
    );
    this.#driver = driver;
    try {
      await driver.run({ text: `listen ${this.#channel}`, parameters: [], prepare: false, asArrays: false });
      this.#failed = false;
      // What was announced while nobody listened.
      this.#onNotice();
    } catch (error) {
      if (!this.#failed) this.#log.warn({ error }, 'changes cannot be listened to; they are polled');
      this.#failed = true;
      if (this.#driver === driver) this.#driver = undefined;
      await driver.end(0).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#driver?.end(closeTimeoutSeconds).catch(() => undefined);
  }
}
