/** A gateway's process with nothing but storage: inserts numbers one by one and prints each committed one. */
import { writeSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../plugins/storage/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const [directory, first] = process.argv.slice(2) as [string, string];
const database = await openDatabase(fakeHost({ directory, schema: 'test' }), {
  database: 'embedded',
  maxConnections: 4,
});
await database.orm.execute(sql`create table if not exists test.numbers (value int primary key, filler text)`);
writeSync(1, 'ready\n');
let next = Number(first);
const insertAll = async () => {
  for (;;) {
    const value = next++;
    await database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`insert into test.numbers values (${value}, ${'x'.repeat(2_000)})`);
    });
    writeSync(1, `${value}\n`); // Synchronous: it is printed even if this process dies next.
  }
};
await Promise.all([insertAll(), insertAll(), insertAll()]);
