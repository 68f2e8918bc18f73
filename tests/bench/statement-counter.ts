/**
 * Counts the statements that this process gives to the database's driver, by their first words: each is an order to the
 * drivers' thread. Loaded beside a gateway (`--import`), it answers any message of its parent with the counts so far.
 */
import { Worker } from 'node:worker_threads';

export type Counts = Readonly<Record<string, number>>;

const counts: Record<string, number> = {};

/** What has run so far: words of statements, and how often. */
export const statementCounts = (): Counts => ({ ...counts });

const wordCount = 6;
const send = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (this: Worker, ...given: Parameters<typeof send>) {
  const order = given[0] as { kind?: string; statement?: { text: string } };
  if (order?.kind === 'run' && order.statement !== undefined) {
    const words = order.statement.text.trim().split(/\s+/, wordCount).join(' ');
    counts[words] = (counts[words] ?? 0) + 1;
  }
  return send.apply(this, given);
};

if (process.send !== undefined) process.on('message', () => process.send!(statementCounts()));
