/** `console company`: how the people of an account sign in, and the way back where they cannot. */
import { readFile } from 'node:fs/promises';
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Database } from '../../common/domain/database.ts';
import { accountOf, textOf, type Values } from '../../common/kit/commands/arguments.ts';
import type { ConsoleConfig } from '../config.ts';
import { auditedCommand } from '../members/command-audit.ts';
import { loadSecrets } from '../people/secrets.ts';
import { consoleTables, peopleTables } from '../people/tables.ts';
import type { AuditChange } from '../people.ts';
import { accounts } from '../services.ts';
import { companyProviders } from './providers.ts';
import { type CompanyStore, openCompanyStore } from './store.ts';
import { companyTables } from './tables.ts';
import { isLapsed } from './watch.ts';

interface Parts {
  readonly host: Host;
  readonly store: Database;
  /** As configured. */
  readonly secrets: readonly string[];
  readonly settings: Pick<ConsoleConfig, 'companies' | 'oidc' | 'domains'>;
}

export function companyCommand(parts: Parts): Command {
  return {
    name: 'console company',
    summary: 'Shows by what the people of an account sign in, and lets them in another way where their company cannot',
    arguments: ['<account>'],
    options: {
      '--any-way': 'passwords, passkeys and other providers let people of its domains in again',
      '--saml <metadata>': 'sets its provider (SAML 2.0): a file with the metadata, or their https address',
      '--name <text>': 'how people know this provider',
      '--reason <text>': 'why, for the audit log',
    },
    run: (values) => run(parts, values),
  };
}

async function run(parts: Parts, values: Values): Promise<CommandResult> {
  const { host, store } = parts;
  const account = await accountOf(host.get(accounts), values);
  const { orm, schema } = store;
  const companies = openCompanyStore(orm, companyTables(schema), peopleTables(schema));
  const reason = textOf(values, 'reason');
  const metadata = textOf(values, 'saml');
  if (metadata !== undefined)
    await setSaml(parts, { companies, account, reason, metadata, name: textOf(values, 'name') });
  if (values['anyWay'] === true) await openAgain(parts, companies, account, reason);
  return shown(companies, account, host.clock.now());
}

interface Named {
  readonly id: string;
  readonly name: string;
}

async function openAgain(parts: Parts, companies: CompanyStore, account: Named, reason: string | undefined) {
  const before = String(await companies.isRequired(account.id));
  const change = { action: 'sign-in.required', reason, changes: [{ field: 'required', before, after: 'false' }] };
  await noted(parts, account, change, async () => {
    await companies.setRequired(account.id, false);
  });
}

interface SamlSetting {
  readonly companies: CompanyStore;
  readonly account: Named;
  readonly reason: string | undefined;
  readonly metadata: string;
  readonly name: string | undefined;
}

/** Role and groups stay as its owner has set them. */
async function setSaml(parts: Parts, { companies, account, reason, metadata, name }: SamlSetting): Promise<void> {
  const { host, store, settings } = parts;
  const { clock, random } = host;
  const secrets = await loadSecrets(store.orm, consoleTables(store.schema), parts.secrets, random);
  const providers = companyProviders({ host, store: companies, clock, random, secrets: () => secrets, settings });
  const before = await providers.of(account.id);
  const shown = name ?? before?.name;
  if (shown === undefined) throw invalid('Say how people know it: --name TEXT.', 'name');
  const change = {
    action: 'sign-in.provider',
    reason,
    changes: [{ field: 'metadata', before: null, after: metadata }],
  };
  await noted(parts, account, change, async () =>
    providers.saveSaml(account.id, {
      name: shown,
      metadata: metadata.startsWith('https://') ? metadata : await readFile(metadata, 'utf8'),
      emailAttribute: before?.saml?.emailAttribute ?? '',
      role: before?.role ?? 'developer',
      groups: before?.groups ?? [],
    }),
  );
}

interface Change {
  readonly action: string;
  readonly reason: string | undefined;
  readonly changes: readonly AuditChange[];
}

const noted = (parts: Parts, { id: accountId, name: subject }: Named, change: Change, work: () => Promise<void>) =>
  auditedCommand(parts, { ...change, accountId, subject }, work);

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
