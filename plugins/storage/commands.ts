/** The operator's command about the schema. */
import type { Command } from '../../core/contract.ts';
import type { Database } from '../../core/vocabulary.ts';
import { migrationsIn } from './migrate.ts';

/** Whatever starts has applied what the schema lacked, a command too: so this one has nothing left to do but to tell. */
export function commandsOf({ orm, schema }: Database): Command[] {
  return [
    {
      name: 'migrate',
      summary: 'Applies what the schema lacks, as every start does, and lists what it has',
      async run() {
        const migrations = await migrationsIn(orm, schema);
        const lines = migrations.map(({ plugin, name, appliedAt }) => `${appliedAt}  ${plugin.padEnd(16)}  ${name}`);
        return { json: { schema, migrations }, text: [`Schema ${schema}:`, ...lines].join('\n') };
      },
    },
  ];
}
