/** Counts the statements that this process gives to the database's driver, by their first words: each is an order to the drivers' thread. */
import { Worker } from 'node:worker_threads';

const counts: Record<string, number> = {};

/** What has run so far: words of statements, and how often. */
export const statementCounts = (): Readonly<Record<string, number>> => ({ ...counts });

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
