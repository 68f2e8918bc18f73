/** Messages on their way to sinks: each is tried a few times, by one process. */
import type { Host } from '../../core/contract/contract.ts';
import type { AlertMessage, AlertSink } from '../common/domain/admin/alerts.ts';
import { faultOf } from '../common/kit/fetch/post.ts';
import type { AlertRows, DueMessage } from './rows.ts';

/** After 10 s, 40 s, about 3, 11 and 43 minutes. */
export const mostAttempts = 6;
const firstRetryMs = 10_000;
const sendTimeoutMs = 10_000;
/** Longer than sending takes, so that no other process sends the same message. */
const takenMs = 60_000;
const mostAtOnce = 20;

export class Deliveries {
  readonly #host: Pick<Host, 'clock' | 'log'>;
  readonly #rows: AlertRows;
  readonly #find: (sink: string) => AlertSink | undefined;

  constructor(host: Pick<Host, 'clock' | 'log'>, rows: AlertRows, find: (sink: string) => AlertSink | undefined) {
    this.#host = host;
    this.#rows = rows;
    this.#find = find;
  }

  /** Sends due messages. Returns whether some still wait. */
  async advance(): Promise<boolean> {
    const now = this.#host.clock.now();
    const due = await this.#rows.takeDue(now, now + takenMs, mostAttempts, mostAtOnce);
    await Promise.all(due.map((one) => this.#deliver(one)));
    return (await this.#rows.waiting(mostAttempts)) > 0;
  }

  async #deliver(due: DueMessage): Promise<void> {
    const fault = await this.send(due.sink, JSON.parse(due.message) as AlertMessage);
    const now = this.#host.clock.now();
    const dueAt = now + firstRetryMs * 4 ** (due.attempts - 1);
    if (fault !== undefined) {
      const isLast = due.attempts >= mostAttempts;
      const fields = { sink: due.sink, alert: due.alertId, attempt: due.attempts, reason: fault };
      this.#host.log.warn(
        fields,
        isLast ? 'an alert was given up: its sink takes nothing' : 'a sink did not take an alert',
      );
    }
    await this.#rows.settle(due, fault, now, dueAt);
  }

  /** undefined: it was taken. */
  async send(name: string, message: AlertMessage): Promise<string | undefined> {
    const sink = this.#find(name);
    if (sink === undefined) return 'there is no sink of this name any more';
    try {
      await sink.send(message, AbortSignal.timeout(sendTimeoutMs));
      return undefined;
    } catch (error) {
      return faultOf(error);
    }
  }
}
