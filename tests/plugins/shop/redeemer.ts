/** A process of its own that redeems one code many times at once: `redeemer.ts SCHEMA CODE TIMES ACCOUNT…`; prints the statuses. */
import { openStall, redeem, statuses } from './stall.ts';

const [schema, code, times, ...accountIds] = process.argv.slice(2) as [string, string, string, ...string[]];
const stall = await openStall(schema);
process.stdout.write('ready\n');
// All processes begin at once.
await new Promise((resolve) => process.stdin.once('data', resolve));
const reported = await statuses(
  Array.from({ length: Number(times) }, (_, index) => {
    const account = { id: accountIds[index % accountIds.length]! };
    return redeem(stall, account, code);
  }),
);
process.stdout.write(`${JSON.stringify(reported)}\n`);
await stall.database.close();
process.exit(0);
