/** The table of what clients saw of each fault: how many requests failed, how, which, and from when to when. */
import type { Answers } from './answers.ts';

/** In a cell. */
const mostKinds = 8;

type Phase = Answers['phases'][number];

export function tableOf({ phases }: Answers): string[] {
  const head = [
    'fault',
    'lasted',
    'requests',
    'failed',
    'answered with',
    'from, to, after its start',
    'longest',
    'which',
  ];
  const rows = [head, head.map(() => '---'), ...phases.flatMap(rowsOf)];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map(
    (row) =>
      `| ${row.map((cell, column) => (cell === '---' ? '-'.repeat(widths[column]!) : cell.padEnd(widths[column]!))).join(' | ')} |`,
  );
}

function rowsOf({ name, beganAt, endedAt, requests, failures }: Phase): string[][] {
  const common = [name, seconds(endedAt - beganAt), String(requests)];
  if (failures.length === 0) return [[...common, '0', '', '', '', '']];
  const byStatus = Map.groupBy(failures, ({ status }) => status);
  return [...byStatus].map(([status, failed], index) => {
    const times = failed.map(({ afterMs }) => afterMs);
    return [
      ...(index === 0 ? common : ['', '', '']),
      String(failed.length),
      status,
      `${seconds(Math.min(...times))} – ${seconds(Math.max(...times))}`,
      seconds(Math.max(...failed.map(({ tookMs }) => tookMs))),
      kindsOf(failed),
    ];
  });
}

function kindsOf(failed: Phase['failures']): string {
  const kinds = [...Map.groupBy(failed, ({ kind }) => kind)]
    .map(([kind, { length }]) => ({ kind, length }))
    .toSorted((one, other) => other.length - one.length);
  const shown = kinds.slice(0, mostKinds).map(({ kind, length }) => `${kind}: ${length}`);
  const more = kinds.slice(mostKinds).reduce((sum, { length }) => sum + length, 0);
  return [...shown, ...(more > 0 ? [`others: ${more}`] : [])].join('; ');
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
