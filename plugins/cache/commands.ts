/** `cache`: what the cache has answered and saved. */
import type { Command } from '../../core/contract/commands.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { CacheReport, CacheSums } from '../common/domain/admin/cache.ts';
import { formatUsd } from '../common/domain/money.ts';

const dayMs = 86_400_000;
const usualDays = 30;

export function cacheCommand(report: CacheReport, clock: Clock): Command {
  return {
    name: 'cache',
    summary: 'what the cache has answered and saved, by model',
    options: { '--days <count>': `days to sum up, this one included; by default ${usualDays}` },
    async run({ days = `${usualDays}` }) {
      if (!/^[1-9]\d{0,2}$/.test(String(days)))
        throw new GatewayError('invalid_request', '--days is a number from 1 to 999.', { field: 'days' });
      const now = clock.now();
      const sums = await report.sums({ from: now - (Number(days) - 1) * dayMs, until: now });
      const rows = sums.map(({ saved, ...counts }) => ({ ...counts, saved: formatUsd(saved) }));
      const text = sums.length === 0 ? 'The cache has seen no calls.' : sums.map(lineOf).join('\n');
      return { json: { rows }, text };
    },
  };
}

function lineOf(sums: CacheSums): string {
  const { model, operation, hits, similar, misses, saved } = sums;
  const of = `${hits + similar} of ${hits + similar + misses}`;
  const nearly = similar === 0 ? '' : ` (${similar} nearly the same)`;
  return `${model} ${operation}: ${of} answered${nearly}, ${formatUsd(saved)} USD saved`;
}
