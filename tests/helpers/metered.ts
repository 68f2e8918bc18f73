/** Compares a metered report with what the vendor has counted. */
import assert from 'node:assert/strict';
import type { UsageReport } from '../../plugins/common/domain/calls.ts';
import type { Recording } from './recordings.ts';
import { countedIn, sidesOf } from './replay.ts';

/** The metered classes add up to what the vendor counted; what it did not count is estimated and marked. */
export function assertMetered(recording: Recording, report: UsageReport): void {
  const counted = countedIn(recording);
  const sides = sidesOf(report.usage);
  if (counted.input !== undefined) assert.equal(sides.input, counted.input, 'input');
  if (counted.output !== undefined) assert.equal(sides.output, counted.output, 'output');
  if (counted.reasoning !== undefined) assert.equal(report.usage.reasoning, counted.reasoning, 'reasoning');
  if (counted.cached !== undefined) assert.equal(report.usage.cache_read, counted.cached, 'cached');
  const isCounted = counted.input !== undefined && counted.output !== undefined;
  const isFree = recording.path.includes(':countTokens') || Object.keys(report.usage).length === 0;
  if (!isFree) assert.equal(report.estimated, !isCounted, 'estimated');
}
