/** Wakes the reader of changes as soon as one is committed: a connection of its own that listens to notifications. */
import { createHash } from 'node:crypto';
import type { Log } from '../../core/contract/host-tools.ts';
import type { Outage } from '../../core/contract/outage.ts';
import { type DriverOptions, openLocalDriver } from './driver.ts';
import { isAway, marked } from './passing.ts';
import type { Driver } from './pool.ts';

const closeTimeoutSeconds = 1;
/** Proofs asked of one connection without an answer. */
const mostProofs = 3;

/** The channel of one schema: names of channels end after 63 bytes. */
export function channelOf(schema: string): string {
  return `changes_${createHash('sha256').update(schema).digest('hex').slice(0, 32)}`;
}

export interface ListenerOptions {
  readonly driver: DriverOptions;
  readonly channel: string;
  readonly onNotice: () => void;
  /** Notifies the channel by another connection. */
  readonly notify: () => Promise<unknown>;
  readonly log: Log;
  /** What a connection that cannot be made belongs to. */
  readonly outage?: Outage;
}

/**
 * Nothing depends on it: changes are in a table, which is polled. Where LISTEN does not work, such as behind a pooler that
 * assigns connections per transaction, changes are seen a moment later.
 */
export class Listener {
  readonly #options: ListenerOptions;
  #driver: Driver | undefined;
  #closed = false;
  #failed = false;
  #hears = false;
  #proofs = 0;
  /** Notifications so far. */
  notices = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** Whether notifications have been seen to arrive by the connection that listens now. */
  get hears(): boolean {
    return this.#hears;
  }

  /** A change has come without a notification: hearing must be proved again. */
  doubt(): void {
    this.#hears = false;
  }

  /** Listens, unless it does already. Call it every so often: a connection that is lost is made again. */
  async listen(): Promise<void> {
    if (this.#closed || this.#hears) return;
    if (this.#driver === undefined) await this.#open();
    if (this.#driver === undefined || this.#proofs >= mostProofs) return;
    this.#proofs += 1;
    await this.#options.notify().catch(() => undefined);
  }

  async #open(): Promise<void> {
    const { channel, log, onNotice, outage } = this.#options;
    const { target, applicationName } = this.#options.driver;
    const driver: Driver = openLocalDriver(
      { target, applicationName: `${applicationName} changes`, onNotify: () => this.#heard(driver) },
      () => {
        if (this.#driver === driver) this.#lose();
      },
    );
    this.#driver = driver;
    this.#proofs = 0;
    try {
      await driver.run({ text: `listen ${channel}`, parameters: [], prepare: false, asArrays: false });
      this.#failed = false;
      // Reads announcements from before the LISTEN.
      onNotice();
    } catch (error) {
      const shown = marked(error);
      if (isAway(error)) outage?.mark(shown);
      if (!this.#failed) log.warn({ error: shown }, 'changes cannot be listened to; they are polled');
      this.#failed = true;
      if (this.#driver === driver) this.#lose();
      await driver.end(0).catch(() => undefined);
    }
  }

  #heard(driver: Driver): void {
    this.notices += 1;
    if (driver === this.#driver) {
      this.#hears = true;
      this.#proofs = 0;
    }
    this.#options.onNotice();
  }

  #lose(): void {
    this.#driver = undefined;
    this.#hears = false;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#hears = false;
    await this.#driver?.end(closeTimeoutSeconds).catch(() => undefined);
  }
}
