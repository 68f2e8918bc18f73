/** `npm run bench:in-process -- [subject…]`: that part of the benchmark alone, which needs no quiet machine for its counts. */
import { reportFootprints } from './footprints.ts';
import type { SubjectName } from './subjects.ts';

const names = process.argv.slice(2);
await reportFootprints(
  Number(process.env['BENCH_WARM_UP'] ?? 30_000),
  names.length === 0 ? undefined : (names as SubjectName[]),
);
