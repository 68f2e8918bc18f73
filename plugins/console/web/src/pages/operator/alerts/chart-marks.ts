/** Where alerts ran, in the points of a chart. Pure. */
import type { ChartMark } from '../../../parts/chart-scale.ts';

interface Ran {
  readonly beganAt: string;
  readonly endedAt: string | null;
}

/** `starts`: when each point begins; the last one ends after `bucketMs`. What ran outside of them is left out. */
export function marksOf<Alert extends Ran>(
  alerts: readonly Alert[],
  starts: readonly number[],
  bucketMs: number,
  label: (alert: Alert) => string,
): ChartMark[] {
  const [first, last] = [starts[0], starts.at(-1)];
  if (first === undefined || last === undefined) return [];
  return alerts.flatMap((alert) => {
    const began = Date.parse(alert.beganAt);
    const ended = alert.endedAt === null ? Number.POSITIVE_INFINITY : Date.parse(alert.endedAt);
    if (ended < first || began >= last + bucketMs) return [];
    const from = Math.max(
      0,
      starts.findLastIndex((start) => start <= began),
    );
    return [
      {
        from,
        to: Math.max(
          from,
          starts.findLastIndex((start) => start <= ended),
        ),
        label: label(alert),
      },
    ];
  });
}
