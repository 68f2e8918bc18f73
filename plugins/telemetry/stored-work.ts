/** The instruments of batches and files, read when metrics are collected. */
import type { Meter } from '@opentelemetry/api';
import type { Host } from '../../core/contract/contract.ts';
import { batchStatistics, fileStatistics } from '../common/domain/admin/stored-work.ts';

/** Reports nothing without the plugins, or while the database does not answer. */
export function observeStoredWork(meter: Meter, host: Host): void {
  const gauge = (name: string, description: string, unit?: string) =>
    meter.createObservableGauge(`gateway.${name}`, { description, ...(unit && { unit }) });
  const open = gauge('batches.open', 'Batches of the gateway that have not ended; the same in every process.');
  const oldest = gauge('batches.oldest', 'Age of the oldest batch that has not ended; the same in every process.', 's');
  const lines = meter.createObservableCounter('gateway.batches.lines', {
    description: 'Lines of batches that ended in this process, by their result.',
  });
  meter.addBatchObservableCallback(
    async (result) => {
      const statistics = host.find(batchStatistics);
      for (const [name, count] of Object.entries(statistics?.lines ?? {}))
        result.observe(lines, count, { result: name });
      const figures = await statistics?.figures().catch(() => undefined);
      if (figures === undefined) return;
      result.observe(open, figures.open);
      result.observe(oldest, figures.oldestMs / 1_000);
    },
    [open, oldest, lines],
  );
  gauge('bucket.healthy', '1 while the bucket of files gives answers.').addCallback((result) => {
    const awayMs = host.find(fileStatistics)?.bucketAwayMs();
    if (awayMs !== undefined) result.observe(awayMs === 0 ? 1 : 0);
  });
  gauge('files.kept', 'Bytes of all files that are kept; the same in every process.', 'By').addCallback(
    async (result) => {
      const bytes = await host
        .find(fileStatistics)
        ?.keptBytes()
        .catch(() => undefined);
      if (bytes !== undefined) result.observe(bytes);
    },
  );
}
