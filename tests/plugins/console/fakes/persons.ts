/** People, tokens and the audit log in memory: signed in by saying so. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Actor, Role } from '../../../../plugins/console/actor.ts';
import type {
  Audit,
  AuditRow,
  KeyRequests,
  People,
  PersonView,
  Tokens,
  TokenView,
  View,
  Views,
} from '../../../../plugins/console/people.ts';
import { paged } from './lists.ts';
import { clientAccount, dayMs, type World } from './world.ts';

/** Who is signed in: by the cookie `fake=operator`, the header `x-fake: operator`, or the token `Bearer fake-token`. */
export function fakePeople(world: World, fallback: Role | undefined): People & { readonly rows: PersonView[] } {
  const rows: PersonView[] = (['client', 'auditor', 'operator'] as const).map((role, index) => ({
    id: `person-${role}`,
    email: `${role}@example.test`,
    name: role === 'client' ? 'Ada Client' : role === 'auditor' ? 'Olga Auditor' : 'Oscar Operator',
    role,
    blocked: false,
    emailVerified: true,
    twoFactor: role === 'operator',
    accountId: role === 'client' ? clientAccount : role === 'operator' ? world.accounts[2]!.id : undefined,
    createdAt: world.now() - (30 - index) * dayMs,
    seenAt: world.now() - index * 3_600_000,
  }));
  const change = (id: string, more: Partial<PersonView>) => {
    const index = rows.findIndex((row) => row.id === id);
    rows[index] = { ...rows[index]!, ...more };
  };
  const handover = (path: string) => ({ mailed: false, link: `/console/${path}` });
  return {
    rows,
    async identify(headers) {
      if (headers.get('authorization') === 'Bearer fake-token')
        return { kind: 'token', id: 'token-1', label: 'nightly export', role: 'operator' };
      const requested = headers.get('x-fake') ?? /\bfake=(\w+)/.exec(headers.get('cookie') ?? '')?.[1] ?? fallback;
      const person = rows.find((row) => row.role === requested);
      if (person === undefined || person.blocked) return undefined;
      return { kind: 'person', id: person.id, label: person.email, role: person.role } satisfies Actor;
    },
    find: async (id) => rows.find((row) => row.id === id),
    search: async ({ text, role }, page) =>
      paged(
        rows
          .filter((row) => text === undefined || `${row.name} ${row.email}`.includes(text))
          .filter((row) => role === undefined || row.role === role),
        page,
      ),
    ownersOf: async (ids) =>
      new Map(
        rows
          .filter(({ accountId }) => accountId !== undefined && ids.includes(accountId))
          .map(({ id, name, email, accountId }) => [accountId!, { id, name, email }]),
      ),
    seenOf: async (ids) =>
      new Map(rows.flatMap(({ id, seenAt }) => (ids.includes(id) && seenAt !== undefined ? [[id, seenAt]] : []))),
    rename: async (id, name) => change(id, { name }),
    setRole: async (id, role) => change(id, { role }),
    setBlocked: async (id, blocked) => change(id, { blocked }),
    confirm: async (id) => change(id, { emailVerified: true }),
    release: async () => undefined,
    async create({ email, name, role }) {
      if (rows.some((row) => row.email === email))
        throw new GatewayError('conflict', 'Somebody has this address already.', { field: 'email' });
      const person: PersonView = {
        id: world.nextId('person'),
        email,
        name,
        role,
        blocked: false,
        emailVerified: false,
        twoFactor: false,
        accountId: undefined,
        createdAt: world.now(),
        seenAt: undefined,
      };
      rows.push(person);
      return { person, handover: handover('reset-password?token=fake') };
    },
    waysIn: async () => ({ password: true, providerOnly: false }),
    reset: async () => handover('reset-password?token=fake'),
    invite: async (email) => handover(`sign-up?invite=fake&email=${encodeURIComponent(email)}`),
    async accountOf(id) {
      const known = rows.find((row) => row.id === id)?.accountId;
      if (known === undefined) throw new GatewayError('not_found', 'There is no account.');
      return known;
    },
    async membershipOf({ id }) {
      const accountId = rows.find((row) => row.id === id)?.accountId;
      if (accountId === undefined) throw new GatewayError('not_found', 'There is no account.');
      return { accountId, role: world.memberRole };
    },
    choose: async () => undefined,
    firstOperatorMissing: async () => false,
    makeFirstOperator: async () => {
      throw new GatewayError('forbidden', 'This link is used or too old.', { field: 'token' });
    },
  };
}

export function fakeTokens(world: World): Tokens {
  const rows: TokenView[] = [
    {
      id: 'token-1',
      name: 'nightly export',
      prefix: 'op-1a2b3c',
      role: 'operator',
      createdBy: 'operator@example.test',
      createdAt: world.now() - 5 * dayMs,
      expiresAt: undefined,
      lastUsedAt: world.now() - 3_600_000,
    },
  ];
  return {
    list: async () => rows,
    async create({ name, role, expiresAt, createdBy }) {
      const id = world.nextId('token');
      const token = `op-${id.replaceAll('-', '')}`;
      const view = {
        id,
        name,
        prefix: token.slice(0, 9),
        role,
        createdBy,
        createdAt: world.now(),
        expiresAt,
        lastUsedAt: undefined,
      };
      rows.push(view);
      return { view, token };
    },
    async revoke(id) {
      const index = rows.findIndex((row) => row.id === id);
      if (index < 0) throw new GatewayError('not_found', 'There is no such token.', { field: 'id' });
      rows.splice(index, 1);
    },
  };
}

export function fakeAudit(world: World): Audit & { readonly rows: AuditRow[] } {
  const rows: AuditRow[] = [];
  const operator = { actorKind: 'person', actorId: 'person-operator', changes: [] } as const;
  const seed = (action: string, subject: string, reason: string, agoMs: number) =>
    rows.push({
      ...operator,
      id: world.nextId('audit'),
      at: world.now() - agoMs,
      actor: 'operator@example.test',
      role: 'operator',
      action,
      subject,
      reason,
      address: '203.0.113.7',
      result: 'done',
    });
  seed('account.credit', clientAccount, '40.00 USD: top-up by bank', 3 * dayMs);
  seed('upstream.disable', 'xai', 'the vendor has an outage', 2 * dayMs);
  seed('codes.create', 'spring', '20 codes', dayMs);
  rows.push({
    ...{ id: world.nextId('audit'), at: world.now() - dayMs, actorKind: 'person', actorId: 'person-client' },
    ...{ actor: 'client@example.test', role: 'client', action: 'member.invite', subject: 'dan@example.test' },
    ...{ changes: [{ field: 'role', before: null, after: 'developer' }], reason: undefined },
    ...{ address: '203.0.113.7', result: 'done' },
  });
  const accounts = new Map([[rows.at(-1)!.id, clientAccount]]);
  return {
    rows,
    async begin({ actor, action, subject, reason, address, changes = [], accountId }) {
      const index = rows.length;
      const row = { id: world.nextId('audit'), at: world.now(), actor: actor.label, role: actor.role, action, subject };
      const by = { actorKind: actor.kind, actorId: actor.id };
      rows.push({ ...row, ...by, changes, reason, address, result: 'begun' });
      if (accountId !== undefined) accounts.set(row.id, accountId);
      const end = async (result: string) => {
        rows[index] = { ...rows[index]!, result };
      };
      return Object.assign(end, { id: row.id });
    },
    list: async ({ accountId, people, actor, action, subject, from, until }, page) =>
      paged(
        rows
          .filter((row) => accountId === undefined || accounts.get(row.id) === accountId)
          .filter((row) => people === undefined || row.role === 'client' || people.includes(row.actorId ?? ''))
          .filter((row) => actor === undefined || row.actor.includes(actor))
          .filter((row) => action === undefined || row.action.startsWith(action))
          .filter((row) => subject === undefined || row.subject.includes(subject))
          .filter((row) => (from === undefined || row.at >= from) && (until === undefined || row.at < until))
          .toReversed(),
        page,
      ),
  };
}

export function fakeViews(): Views {
  const kept = new Map<string, View>();
  const keyOf = (personId: string, page: string, name = '') => `${personId} ${page} ${name}`;
  return {
    list: async (personId, page) =>
      [...kept].filter(([key]) => key.startsWith(keyOf(personId, page))).map(([, view]) => view),
    async save(personId, page, view) {
      kept.set(keyOf(personId, page, view.name), view);
    },
    async remove(personId, page, name) {
      kept.delete(keyOf(personId, page, name));
    },
  };
}

/** One program waits with the code that examples have; what it is granted or denied, it asks for again. */
export function fakeKeyRequests(now: () => number): KeyRequests {
  const waiting = { program: 'claude-code', machine: 'a laptop', address: '203.0.113.9' };
  const isKnown = (code: string) => code.toUpperCase().replace(/[^A-Z]/g, '') === 'WDJBMJHT';
  return {
    make: async () => ({ deviceCode: 'device', userCode: 'WDJB-MJHT', lastsMs: 600_000, intervalMs: 5_000 }),
    find: async (code) => (isKnown(code) ? { ...waiting, createdAt: now(), expiresAt: now() + 600_000 } : undefined),
    grant: async (code) => (isKnown(code) ? {} : undefined),
    deny: async (code) => (isKnown(code) ? {} : undefined),
    take: async () => ({ state: 'waiting' }),
    prune: async () => undefined,
  };
}
