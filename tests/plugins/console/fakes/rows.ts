/** Services for accounts, requests and money, over the fake world. */

import { GatewayError } from '../../../../core/contract/errors.ts';
import type { AccountAdmin, KeyView } from '../../../../plugins/common/domain/admin/accounts.ts';
import type {
  ChargeFilter,
  ChargeView,
  LedgerQueries,
  SpendGroup,
} from '../../../../plugins/common/domain/admin/ledger.ts';
import type { RequestQueries, RequestView } from '../../../../plugins/common/domain/admin/requests.ts';
import { type Money, money } from '../../../../plugins/common/domain/money.ts';
import { totalTokens } from '../../../../plugins/common/domain/usage.ts';
import { causeOf, groupBy, isAmong, matches, nameOfProject, paged, projectIdOf, sumsOf } from './lists.ts';
import { dayMs, minuteMs, type World } from './world.ts';

const missing = (what: string) => new GatewayError('not_found', `There is no such ${what}.`, { field: what });

export function fakeAccounts(world: World): AccountAdmin {
  const change = (accountId: string, more: object) => {
    const index = world.accounts.findIndex(({ id }) => id === accountId);
    if (index < 0) throw missing('account');
    world.accounts[index] = { ...world.accounts[index]!, ...more };
  };
  const changeKey = (accountId: string, keyId: string, more: (key: KeyView) => KeyView) => {
    const index = world.keys.findIndex((key) => key.id === keyId && key.accountId === accountId);
    if (index < 0) throw missing('key');
    const changed = more(world.keys[index]!);
    world.keys[index] = changed;
    return changed;
  };
  return {
    async search({ text, ids = [], plan, disabled }, page) {
      const rows = world.accounts
        .filter((row) => text === undefined || row.name.includes(text) || row.id === text || ids.includes(row.id))
        .filter((row) => plan === undefined || row.plan === plan)
        .filter((row) => disabled === undefined || row.disabled === disabled)
        .sort((left, right) => left.name.localeCompare(right.name));
      return paged(rows, page);
    },
    find: async (accountId) => world.accounts.find(({ id }) => id === accountId),
    rename: async (accountId, name) => change(accountId, { name }),
    setDisabled: async (accountId, disabled) => change(accountId, { disabled }),
    setMultiplier: async (accountId, multiplier) => change(accountId, { multiplier }),
    setRetention: async (accountId, retention) => change(accountId, { retention }),
    keys: async (accountId, page, person) =>
      paged(
        world.keys
          .filter((key) => accountId === undefined || key.accountId === accountId)
          .filter((key) => person === undefined || key.person === person)
          .toReversed(),
        page,
      ),
    key: async (accountId, keyId) => changeKey(accountId, keyId, (key) => key),
    keyIdsOf: async (accountId, person) =>
      world.keys.flatMap((key) => (key.accountId === accountId && key.person === person ? [key.id] : [])),
    async createKey(accountId, terms, person) {
      const id = world.nextId('key');
      const key = `sk-${id.replaceAll('-', '')}${id.replaceAll('-', '')}`;
      const prefix = key.slice(0, 11);
      world.keys.push({
        ...terms,
        id,
        accountId,
        prefix,
        person,
        createdAt: world.now(),
        lastUsedAt: undefined,
        revokedAt: undefined,
        replaced: [],
      });
      return { id, key, prefix };
    },
    updateKey: async (accountId, keyId, terms) =>
      changeKey(accountId, keyId, ({ id, prefix, person, createdAt, lastUsedAt, revokedAt, rotatedAt, replaced }) => ({
        ...terms,
        id,
        accountId,
        prefix,
        person,
        createdAt,
        lastUsedAt,
        revokedAt,
        rotatedAt,
        replaced,
      })),
    async rotateKey(accountId, keyId, overlapMs) {
      const overlapEndsAt = overlapMs === 0 ? undefined : world.now() + overlapMs;
      const key = `sk-${world.nextId('key').replaceAll('-', '').repeat(2)}`;
      const prefix = key.slice(0, 11);
      changeKey(accountId, keyId, (before) => {
        const earlier = overlapEndsAt === undefined ? [] : [{ prefix: before.prefix, endsAt: overlapEndsAt }];
        return { ...before, prefix, rotatedAt: world.now(), replaced: earlier };
      });
      return { id: keyId, key, prefix, overlapEndsAt };
    },
    setProject: async (accountId, keyId, project) => changeKey(accountId, keyId, (key) => ({ ...key, project })),
    async projects(accountId) {
      const own = <Row extends { readonly accountId: string | undefined }>(rows: readonly Row[]) =>
        rows.filter((row) => accountId === undefined || row.accountId === accountId);
      const keys = own(world.keys);
      const past = own(world.requests).flatMap(({ projectId }) =>
        projectId === undefined ? [] : nameOfProject(projectId),
      );
      const names = [...new Set([...keys.flatMap(({ project }) => project ?? []), ...past])];
      return names
        .sort((left, right) => left.localeCompare(right))
        .map((project) => {
          const keyIds = keys.filter((key) => key.project === project).map(({ id }) => id);
          return { project, ids: [projectIdOf(project)], keyIds };
        });
    },
    projectNames: async (ids) => new Map(ids.map((id) => [id, nameOfProject(id)])),
    namesOf: async (keyIds) =>
      new Map(world.keys.flatMap(({ id, name, project }) => (keyIds.includes(id) ? [[id, { name, project }]] : []))),
    expiringKeys: async () => [],
    revokeKey: async (accountId, keyId) =>
      changeKey(accountId, keyId, (key) => ({ ...key, revokedAt: key.revokedAt ?? world.now() })),
  };
}

export function fakeRequests(world: World): RequestQueries {
  const name = {
    model: 'model',
    provider: 'provider',
    operation: 'operation',
    account: 'accountId',
    key: 'keyId',
    project: 'projectId',
  } as const;
  const personOf = ({ keyId }: RequestView) => world.keys.find(({ id }) => id === keyId)?.person;
  const groupOf = (by: Parameters<RequestQueries['groups']>[1]) => (row: RequestView) =>
    by === 'person' ? personOf(row) : row[name[by]];
  const found = (filter: Parameters<RequestQueries['sums']>[0]) =>
    world.requests.filter(
      (row) => matches(row, filter) && (filter.personId === undefined || filter.personId === personOf(row)),
    );
  const groupsOf: (
    ...requested: Parameters<RequestQueries['groups']>
  ) => Awaited<ReturnType<RequestQueries['groups']>> = (filter, by, limit) =>
    [...groupBy(found(filter), groupOf(by))]
      .map(([group, rows]) => ({ group, ...sumsOf(rows) }))
      .sort((left, right) => right.requests - left.requests)
      .slice(0, limit);
  return {
    written: () => world.requests.length,
    async list({ sort, ...filter }, page) {
      const rows = found(filter);
      if (sort === undefined) return paged(rows.toReversed(), page);
      const value = {
        time: (row: RequestView) => row.receivedAt,
        cost: ({ id }: RequestView) => Number(world.charges.find(({ requestId }) => requestId === id)?.cost ?? -1n),
        tokens: ({ usage }: RequestView) => totalTokens(usage ?? {}),
        firstByte: (row: RequestView) => row.firstByteMs ?? -1,
        duration: (row: RequestView) => row.totalMs,
      }[sort.by];
      const sign = sort.order === 'desc' ? -1 : 1;
      return paged(
        rows.toReversed().sort((left, right) => sign * (value(left) - value(right))),
        page,
      );
    },
    async durations(filter) {
      const edges = [0, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000];
      const counts = (values: readonly number[]) =>
        edges.map((from, index) => values.filter((ms) => ms >= from && ms < (edges[index + 1] ?? Infinity)).length);
      const rows = found(filter);
      return {
        edges,
        firstByte: counts(rows.flatMap(({ firstByteMs }) => firstByteMs ?? [])),
        total: counts(rows.map(({ totalMs }) => totalMs)),
      };
    },
    async causes(filter, limit, among) {
      const rows = (['upstream_error', 'client_error'] as const).flatMap((result) =>
        [...groupBy(found({ ...filter, result }), causeOf)].map(([cause, some]) => {
          return { result, cause, requests: some.length };
        }),
      );
      return rows
        .filter(({ cause }) => among === undefined || among.includes(cause))
        .sort((left, right) => right.requests - left.requests)
        .slice(0, limit);
    },
    find: async (id, accountId) =>
      world.requests.find((row) => row.id === id && (accountId === undefined || row.accountId === accountId)),
    sums: async (filter) => sumsOf(found(filter)),
    async seriesBetween(filter, bounds) {
      return bounds.slice(0, -1).map((at, index) => {
        const span = { from: at, until: bounds[index + 1]! };
        return { at, ...sumsOf(found({ ...filter, ...span })) };
      });
    },
    async seriesOfGroups(filter, bounds, by, groups) {
      return bounds.slice(0, -1).flatMap((at, index) => {
        const rows = found({ ...filter, from: at, until: bounds[index + 1]! });
        return [...groupBy(rows, groupOf(by))]
          .filter(([group]) => groups.includes(group))
          .map(([group, some]) => ({ at, group, ...sumsOf(some) }));
      });
    },
    groups: async (filter, by, limit) => groupsOf(filter, by, limit),
    groupCounts: async (filter, by, limit) =>
      groupsOf(filter, by, limit).map(({ group, requests, results }) => ({ group, requests, results })),
    async recentGroups(filter, limit) {
      return { model: groupsOf(filter, 'model', limit), provider: groupsOf(filter, 'provider', limit) };
    },
    async groupTimes(filter, by) {
      const groups = new Map(groupsOf(filter, by, world.requests.length).map((sums) => [sums.group, sums]));
      return (group) => {
        const { firstByte, total } = groups.get(group) ?? sumsOf([]);
        return { firstByte, total };
      };
    },
  };
}

const tagsOf = ({ tags }: ChargeView) => tags?.split(',') ?? [];

export function fakeMoney(world: World): LedgerQueries {
  const found = ({ from, until, accountId, keyId, keys, projectIds, model }: ChargeFilter) =>
    world.charges.filter(
      (row) =>
        row.at >= from &&
        row.at < until &&
        (accountId === undefined || row.accountId === accountId) &&
        (keyId === undefined || row.keyId === keyId) &&
        (keys === undefined || isAmong(row.keyId, keys)) &&
        projectIds?.includes(row.project ?? '') !== false &&
        (model === undefined || row.model === model),
    );
  const names: Record<Parameters<LedgerQueries['spend']>[1], (row: ChargeView) => string | undefined> = {
    day: ({ at }) => String(Math.floor(at / dayMs) * dayMs),
    hour: ({ at }) => String(Math.floor(at / (60 * minuteMs)) * 60 * minuteMs),
    model: ({ model }) => model,
    key: ({ keyId }) => keyId,
    account: ({ accountId }) => accountId,
    provider: ({ provider }) => provider,
    person: ({ person }) => person,
    project: ({ project }) => project ?? '',
  };
  return {
    async ledger(accountId, { kinds, from, until }, page) {
      const rows = world.ledger
        .filter((row) => accountId === undefined || row.accountId === accountId)
        .filter((row) => kinds === undefined || kinds.includes(row.kind))
        .filter((row) => (from === undefined || row.at >= from) && (until === undefined || row.at < until));
      return paged(rows.toReversed(), page);
    },
    chargesOf: async (requestIds, accountId) =>
      world.charges.filter(
        (charge) =>
          requestIds.includes(charge.requestId) && (accountId === undefined || charge.accountId === accountId),
      ),
    charge: async (requestId, accountId) =>
      world.charges.find(
        (row) => row.requestId === requestId && (accountId === undefined || row.accountId === accountId),
      ),
    async spend(filter, by, limit) {
      return [...groupBy(found(filter), names[by])]
        .map(([group, rows]) => spendOf(group, rows))
        .sort((left, right) => (left.cost < right.cost ? 1 : -1))
        .slice(0, limit);
    },
    async spendBetween(filter, bounds) {
      return bounds.slice(0, -1).map((at, index) => {
        return { at, ...spendOf('', found({ ...filter, from: at, until: bounds[index + 1]! })) };
      });
    },
    async spendOfGroups(filter, bounds, by, groups) {
      return bounds.slice(0, -1).flatMap((at, index) => {
        const rows = found({ ...filter, from: at, until: bounds[index + 1]! });
        return [...groupBy(rows, names[by])]
          .filter(([group]) => groups.includes(group))
          .map(([group, some]) => ({ at, ...spendOf(group, some) }));
      });
    },
    async tagNames(accountId) {
      const own = world.charges.filter((row) => row.accountId === accountId);
      return [...new Set(own.flatMap(tagsOf).map((tag) => tag.split('=', 1)[0]!))].sort();
    },
    async spendTable({ accountId, tags: [tag = ''] = [], bounds: [from = 0, until = 0], by: [by] }) {
      const tagged = found({ accountId, from, until }).flatMap((row) =>
        tagsOf(row)
          .filter((own) => own === tag || own.startsWith(`${tag}=`))
          .map((own) => ({ row, group: by === 'tag' ? own : row.model })),
      );
      return [...Map.groupBy(tagged, ({ group }) => group)].map(([group, some]) => {
        return {
          slot: 0,
          ...spendOf(
            group,
            some.map(({ row }) => row),
          ),
          group: [group],
        };
      });
    },
    async totals(span) {
      const { group: _, ...calls } = spendOf('', found(span));
      const credited = total(world.ledger.filter(({ kind }) => kind === 'CREDIT').map(({ change }) => change));
      const none = money(0n);
      return { calls, credited, sold: money(60_000_000_000n), lapsed: none };
    },
    flows: async () => {
      const none = money(0n);
      const given = { givenByPlans: none, givenByCodes: none, givenByPromotions: none };
      return { card: none, byHand: none, paidBack: none, ...given, usedPaid: none, usedGiven: none, owed: none };
    },
    balances: async (accountIds) => new Map(accountIds.map((id) => [id, balanceOf(world, id)])),
    reconcile: async () => ({ checkedAt: world.now(), ok: true, findings: [], rows: world.ledger.length }),
    journal: () => undefined,
    async nodes() {
      const base = { version: '0.1.0', startedAt: world.now() - 3 * dayMs, leases: 4, leased: money(8_000_000_000n) };
      return [
        { name: 'node-a', self: true, seenAt: world.now(), journalPending: 3, ...base },
        { name: 'node-b', self: false, seenAt: world.now() - 900, journalPending: undefined, ...base },
      ];
    },
  };
}

export function balanceOf(world: World, accountId: string): Money {
  return world.ledger.findLast((row) => row.accountId === accountId)?.balanceAfter ?? money(0n);
}

const total = (amounts: readonly Money[]): Money => money(amounts.reduce<bigint>((sum, amount) => sum + amount, 0n));

function spendOf(group: string, rows: readonly ChargeView[]): SpendGroup {
  const usage: Record<string, number> = {};
  for (const row of rows)
    for (const [name, units] of Object.entries(row.usage)) usage[name] = (usage[name] ?? 0) + units;
  return {
    group,
    requests: rows.length,
    cost: total(rows.map(({ cost }) => cost)),
    ownCost: total(rows.map((row) => row.ownCost ?? money(0n))),
    usage,
  };
}
