/**
 * `npm run test:fleet [-- --short] [--rate 8] [--no-proxy] [--only NAME]`: clients of all kinds call two gateways behind nginx, while faults come one
 * after the other; then the vendor's own bill, the ledger and what clients hold are held against each other. Prints what clients
 * saw of each fault. Exit 1: something was lost, charged twice, or cost an answer that it must not. Exit 77: PostgreSQL or Redis is missing.
 */
import { parseArgs } from 'node:util';
import { endWithAllStarted } from '../runner/end.ts';
import { drive } from './drive.ts';
import { faults } from './faults.ts';
import { hasStores, Stage } from './stage.ts';
import { tableOf } from './table.ts';

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    /** Operations a second. */
    rate: { type: 'string', default: '8' },
    /** `--no-proxy`: as where there is no nginx. */
    proxy: { type: 'boolean', default: true },
    /** Those faults alone that have this in their name. */
    only: { type: 'string' },
  },
  allowNegative: true,
});
if (!hasStores) {
  console.error('PostgreSQL or Redis is not installed. Nothing was tested.');
  process.exit(77);
}
endWithAllStarted();
const beganAt = performance.now();
const chosen = faults.filter(({ isShort, name }) =>
  values.only === undefined ? isShort === true || !values.short : name.includes(values.only),
);
const stage = await Stage.open(values.proxy);
try {
  const { answers, account, violations } = await drive(stage, chosen, Number(values.rate), values.short ? 500 : 10_000);
  const way = stage.parts.front === undefined ? 'without a proxy' : 'behind nginx';
  console.log(`two gateways ${way}, ${chosen.length} faults, ${Math.round((performance.now() - beganAt) / 1_000)} s`);
  for (const line of tableOf(answers)) console.log(line);
  for (const line of account) console.log(`  ${line}`);
  for (const line of violations) console.log(`  VIOLATION: ${line}`);
  if (violations.length > 0) for (const line of stage.lastWords()) console.log(line);
  console.log(`${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
} finally {
  await stage.close();
}
process.exit();
