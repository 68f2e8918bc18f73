/** `console company`: how the people of an account sign in, and the way back where they cannot. */
import { hostname, userInfo } from 'node:os';
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Database } from '../../common/domain/database.ts';
import { accountOf, textOf, type Values } from '../../common/kit/commands/arguments.ts';
import { openAudit } from '../people/audit.ts';
import { consoleTables, peopleTables } from '../people/tables.ts';
import { accounts } from '../services.ts';
import { type CompanyStore, openCompanyStore } from './store.ts';
import { companyTables } from './tables.ts';
import { isLapsed } from './watch.ts';

interface Parts {
  readonly host: Host;
  readonly store: Database;
}

export function companyCommand(parts: Parts): Command {
  return {
    name: 'console company',
    summary: 'Shows by what the people of an account sign in, and lets them in another way where their company cannot',
    arguments: ['<account>'],
    options: {
      '--any-way': 'passwords, passkeys and other providers let people of its domains in again',
      '--reason <text>': 'why, for the audit log',
    },
    run: (values) => run(parts, values),
  };
}

async function run({ host, store }: Parts, values: Values): Promise<CommandResult> {
  const account = await accountOf(host.get(accounts), values);
  const { orm, schema } = store;
  const companies = openCompanyStore(orm, companyTables(schema), peopleTables(schema));
  if (values['anyWay'] === true) await openAgain({ host, store }, companies, account, textOf(values, 'reason'));
  return shown(companies, account, host.clock.now());
}

interface Named {
  readonly id: string;
  readonly name: string;
}

async function openAgain({ host, store }: Parts, companies: CompanyStore, account: Named, reason: string | undefined) {
  if (reason === undefined) throw invalid('Say why: --reason TEXT.', 'reason');
  const { clock, random } = host;
  const newId = () => random.bytes(16).toString('hex');
  const end = await openAudit(store.orm, consoleTables(store.schema), { clock, newId }).begin({
    actor: { kind: 'token', id: 'command', label: 'operator', role: 'operator' },
    action: 'sign-in.required',
    subject: account.name,
    // The account's owners read all of the row but this.
    reason: `${reason} (command line, ${userInfo().username}@${hostname()})`,
    address: 'local',
    accountId: account.id,
    changes: [{ field: 'required', before: String(await companies.isRequired(account.id)), after: 'false' }],
  });
  await companies.setRequired(account.id, false);
  await end('done');
}

async function shown(companies: CompanyStore, { id, name }: Named, now: number): Promise<CommandResult> {
  const [domains, provider, required] = await Promise.all([
    companies.domainsOf(id),
    companies.providerOf(id),
    companies.isRequired(id),
  ]);
  const json = {
    account: name,
    provider: provider?.name ?? null,
    required,
    domains: domains.map((one) => ({ domain: one.domain, state: stateOf(one, now) })),
  };
  const how = required ? 'sign in by it alone' : 'may sign in by it, or another way';
  const first =
    provider === undefined ? `${name} has no provider.` : `${name}: people of its domains ${how} (${provider.name}).`;
  return { json, text: [first, ...json.domains.map(({ domain, state }) => `  ${domain}: ${state}`)].join('\n') };
}

function stateOf(domain: Awaited<ReturnType<CompanyStore['domainsOf']>>[number], now: number): string {
  if (domain.verifiedAt === undefined) return 'not verified';
  if (domain.missingSince === undefined) return 'verified';
  return isLapsed(domain, now) ? 'its record is gone: it brings in no one new' : 'its record is gone';
}
