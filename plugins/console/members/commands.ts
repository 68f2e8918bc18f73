/** `console members`: who is in an account, another role for one of them, and removing one. */
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Database } from '../../common/domain/database.ts';
import { memberRoles } from '../../common/domain/organizations/rights.ts';
import { accountOf, columns, textOf, timeText, type Values } from '../../common/kit/commands/arguments.ts';
import { openPeopleStore, type PeopleStore } from '../people/store.ts';
import { peopleTables } from '../people/tables.ts';
import type { Owner } from '../people.ts';
import { accounts, memberAdmin } from '../services.ts';
import { auditedCommand } from './command-audit.ts';
import { ownersOf, settleOwner } from './in-charge.ts';

interface Parts {
  readonly host: Host;
  readonly store: Database;
}

/** Operators do what owners may. */
const owner = { role: 'owner' } as const;

export function membersCommand(parts: Parts): Command {
  return {
    name: 'console members',
    summary: 'Lists the members of an account, gives one of them another role, or removes one',
    arguments: ['<account>'],
    options: {
      '--member <mail>': 'the member who is changed',
      '--role <role>': `their role from now on: ${memberRoles.join(', ')}`,
      '--remove': 'takes them out of the account at once, and revokes their keys',
      '--keys-to <mail>': 'with --remove: the member who gets their keys',
      '--reason <text>': 'why, for the audit log',
    },
    async run(values) {
      const { host, store } = parts;
      const { id, name } = await accountOf(host.get(accounts), values);
      const people = openPeopleStore(store.orm, peopleTables(store.schema));
      const members = host.get(memberAdmin);
      await settleOwner(members, await ownersOf({ host, store: people }, [id]), id);
      if (textOf(values, 'member') !== undefined) await change(parts, people, id, values);
      return listed(host, people, { id, name });
    },
  };
}

async function change(parts: Parts, people: PeopleStore, accountId: string, values: Values): Promise<void> {
  const members = parts.host.get(memberAdmin);
  const { id, email: subject } = await personOf(people, values, 'member');
  const before = await members.roleOf(accountId, id);
  if (before === undefined) throw noSuch('member', 'member');
  const common = { accountId, subject, reason: textOf(values, 'reason') };
  if (values['remove'] === true) {
    const receiver = textOf(values, 'keysTo') === undefined ? undefined : await personOf(people, values, 'keysTo');
    const changes = [{ field: 'keys', before: null, after: receiver?.email ?? 'revoke' }];
    return auditedCommand(parts, { ...common, action: 'member.remove', changes }, () =>
      members.remove(accountId, id, receiver === undefined ? 'revoke' : { handTo: receiver.id }, owner),
    );
  }
  const role = memberRoles.find((one) => one === values['role']);
  if (role === undefined) throw invalid(`Say --remove, or --role with ${memberRoles.join(', ')}.`, 'role');
  const changes = [{ field: 'role', before, after: role }];
  await auditedCommand(parts, { ...common, action: 'member.change', changes }, () =>
    members.setRole(accountId, id, role, owner),
  );
}

const noSuch = (what: string, field: string) => new GatewayError('not_found', `There is no such ${what}.`, { field });

async function personOf(people: PeopleStore, values: Values, field: 'member' | 'keysTo'): Promise<Owner> {
  const person = await people.byEmail((textOf(values, field) ?? '').toLowerCase());
  if (person === undefined) throw noSuch('person', field);
  return person;
}

async function listed(
  host: Host,
  people: PeopleStore,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<CommandResult> {
  const rows = await host.get(memberAdmin).list(id);
  const ids = rows.map(({ person }) => person);
  const [known, seen] = await Promise.all([people.named(ids), people.seenOf(ids)]);
  const json = rows.map(({ person, role, keys, keysUsedAt }) => ({
    ...{ id: person, email: known.get(person)?.email ?? null, role, keys },
    keysUsedAt: timeText(keysUsedAt, '') || null,
    signedInAt: timeText(seen.get(person), '') || null,
  }));
  if (json.length === 0) return { json, text: `${name} has no members.` };
  const lines = json.map((row) => [
    row.email ?? row.id,
    row.role,
    String(row.keys),
    row.keysUsedAt ?? 'never',
    row.signedInAt ?? '-',
  ]);
  return { json, text: columns(['member', 'role', 'keys', 'keys used', 'signed in'], lines) };
}
