/**
 * `TEST_DATABASE_URL=postgres://… npm run test:rolling -- [--restarts 50] [--reloads 50] [--workers 2] [--clients 12]`: replaces
 * the workers and takes changed files up under load, again and again. Exit 1 when a client was dropped, or when clients,
 * vendor and ledger do not agree.
 */
import { parseArgs } from 'node:util';
import { databaseUrl } from '../helpers/database.ts';
import { roll } from './rolling.ts';
import { Stage } from './stage.ts';

const { values } = parseArgs({
  options: {
    restarts: { type: 'string', default: '50' },
    reloads: { type: 'string', default: '50' },
    workers: { type: 'string', default: '2' },
    clients: { type: 'string', default: '12' },
  },
});
if (databaseUrl === undefined) {
  console.error('TEST_DATABASE_URL must name a PostgreSQL: workers need one.');
  process.exit(1);
}
const stage = await Stage.build({ workers: Number(values.workers), database: databaseUrl });
try {
  await stage.openAccounts(4);
  await stage.start();
  const { account, drops, violations } = await roll(stage, {
    restarts: Number(values.restarts),
    reloads: Number(values.reloads),
    clients: Number(values.clients),
    report: (sentence) => void process.stderr.write(`${sentence}\n`),
  });
  for (const line of account) console.log(line);
  for (const { at, what, reused } of drops)
    console.log(`  DROP: ${at} ${what}${reused ? ' (on a kept connection)' : ''}`);
  for (const line of violations) console.log(`  VIOLATION: ${line}`);
  process.exitCode = drops.length + violations.length === 0 ? 0 : 1;
} finally {
  await stage.close();
}
process.exit();
