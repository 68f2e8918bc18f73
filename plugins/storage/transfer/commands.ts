/** The commands that bring a database from the embedded one to a Postgres server and back. */
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { ledgerQueries } from '../../common/domain/admin/ledger.ts';
import type { OpenedDatabase } from '../database.ts';
import { type Count, exportTo } from './export.ts';
import { importFrom } from './import.ts';

export function transferCommands(host: Host, database: OpenedDatabase): Command[] {
  return [
    {
      name: 'storage export',
      summary: 'Writes all rows of all gateways in this database into a file, while no gateway runs on it',
      arguments: ['<file>'],
      run: async ({ file }) => {
        await mustRest(database);
        await mustAddUp(host, 'Nothing was exported');
        const counts = await database.patiently((orm) => exportTo(String(file), orm, host.clock.now()));
        return resultOf(counts, `${file} holds`);
      },
    },
    {
      name: 'storage import',
      summary: 'Fills this empty database with the rows of an export, and checks sums and ledger',
      arguments: ['<file>'],
      run: async ({ file }) => {
        await mustRest(database);
        const { makeTables } = database;
        const counts = await database.patiently((orm) => importFrom(String(file), { orm, makeTables }));
        await mustAddUp(host, 'The rows are there as they were exported, but');
        return resultOf(counts, 'Imported, each table with the sum that it had:');
      },
    },
  ];
}

/** What a running gateway writes would be in neither copy or in both. */
async function mustRest(database: OpenedDatabase): Promise<void> {
  const user = await database.userBeside();
  if (user === undefined) return;
  throw new GatewayError('conflict', `The database is in use by ${user}: stop that first.`);
}

async function mustAddUp(host: Host, then: string): Promise<void> {
  const report = await host.find(ledgerQueries)?.reconcile();
  if (report === undefined || report.ok) return;
  const findings = report.findings.slice(0, 5).join(' ');
  throw new GatewayError('conflict', `${then}: the audit of this gateway finds: ${findings}`);
}

function resultOf(schemas: readonly Count[], begin: string): CommandResult {
  const lines = schemas.map(({ schema, tables, rows }) => `  ${schema}: ${rows} rows in ${tables} tables`);
  const others = schemas.length > 1 ? ['Run "gateway audit" with the file of each other gateway, too.'] : [];
  return { json: { schemas }, text: [begin, ...lines, ...others].join('\n') };
}
