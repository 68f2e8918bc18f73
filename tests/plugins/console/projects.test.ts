/** Projects: whatever calls were for them, their sums, series and rows are those of these calls, and together they are all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatUsd, money, parseUsd } from '../../../plugins/common/domain/money.ts';
import { fc } from '../../helpers/properties.ts';
import { caller } from './caller.ts';
import { type FakeConsole, fakeConsole } from './fake-console.ts';
import { nameOfProject, projectIdOf } from './fakes/lists.ts';
import { clientAccount } from './fakes/world.ts';

const names = ['web', 'shop', 'a b/c', '=1+1'];
const assignment = fc.record({
  projects: fc.array(fc.option(fc.constantFrom(...names), { nil: undefined }), { minLength: 14, maxLength: 14 }),
  /** Which key of its account a request has; the last: none. */
  keys: fc.array(fc.nat({ max: 3 }), { minLength: 7, maxLength: 23 }),
  ofClient: fc.boolean(),
});

/** Puts each request, with its charge, under one of the keys of its account and into a project; keys are in others by now. */
function assign(
  services: FakeConsole,
  { projects, keys }: typeof assignment extends fc.Arbitrary<infer T> ? T : never,
) {
  const { world } = services;
  for (const [index, key] of world.keys.entries()) world.keys[index] = { ...key, project: names[index % names.length] };
  for (const [index, row] of world.requests.entries()) {
    const own = world.keys.filter(({ accountId }) => accountId === row.accountId);
    const chosen = keys[index % keys.length]!;
    const keyId = chosen === 3 ? undefined : own[chosen % own.length]!.id;
    const name = projects[index % projects.length];
    const projectId = name === undefined ? undefined : projectIdOf(name);
    world.requests[index] = { ...row, keyId, projectId };
    const place = world.charges.findIndex(({ requestId }) => requestId === row.id);
    if (place >= 0) world.charges[place] = { ...world.charges[place]!, keyId: keyId ?? '', project: projectId };
  }
}

interface Listed {
  readonly group: string;
  readonly requests: number;
  readonly cost: string;
}
interface Bucket {
  readonly requests: number;
  readonly cost: string;
}
const nameOf = (id: string | undefined) => (id === undefined ? '-' : nameOfProject(id));
const totalOf = (series: readonly Bucket[]) => ({
  requests: series.reduce((sum, { requests }) => sum + requests, 0),
  cost: series.reduce((sum, { cost }) => sum + parseUsd(cost), 0n),
});

test('sums by project are those of the calls that were for it, whatever its keys are in now, and no call is in two projects', async () => {
  await fc.assert(
    fc.asyncProperty(assignment, async (given) => {
      const services = fakeConsole();
      assign(services, given);
      const { ofClient } = given;
      const send = caller(services, ofClient ? 'client' : 'operator');
      const from = new Date(services.clock.now() - 5 * 86_400_000).toISOString();
      const span = `from=${from}&traffic=all`;
      const [base, sums] = ofClient ? ['/usage', '/usage/sums'] : ['/admin/monitor', '/admin/monitor'];
      const rows = services.world.requests.filter(
        ({ receivedAt, accountId }) => receivedAt >= Date.parse(from) && (!ofClient || accountId === clientAccount),
      );
      const ids = Map.groupBy(rows, ({ projectId }) => nameOf(projectId));
      const charges = services.world.charges.filter(
        ({ at, accountId }) => at >= Date.parse(from) && (!ofClient || accountId === clientAccount),
      );
      const costs = Map.groupBy(charges, ({ project }) => nameOf(project));
      const expected = new Map(
        [...ids].map(([project, { length }]) => {
          const cost = (costs.get(project) ?? []).reduce((sum, charge) => sum + charge.cost, 0n);
          return [project, { requests: length, cost }];
        }),
      );
      const { groups, all } = (await send(`GET ${base}/activity?${span}&by=project`)).json;
      const stacked = groups as { group: string; series: Bucket[] }[];
      assert.deepEqual(new Map(stacked.map(({ group, series }) => [group, totalOf(series)])), expected);
      assert.deepEqual(
        stacked.map(({ group }) => expected.get(group)!.cost),
        [...expected.values()].map(({ cost }) => cost).toSorted((one, other) => Number(other - one)),
        'what costs most comes first',
      );
      if (!ofClient) {
        const table = (await send(`GET ${base}/groups?${span}&by=project`)).json.rows as Listed[];
        assert.deepEqual(
          new Map(table.map(({ group, requests, cost }) => [group, { requests, cost: parseUsd(cost) }])),
          expected,
        );
        const counts = table.map(({ requests }) => requests);
        assert.deepEqual(
          counts,
          counts.toSorted((one, other) => other - one),
          'what has most requests comes first',
        );
      }
      for (const [index, bucket] of (all as Bucket[]).entries())
        assert.deepEqual(totalOf(stacked.map(({ series }) => series[index]!)), totalOf([bucket]));
      for (const project of [...names, '-']) {
        const named = `${span}&project=${encodeURIComponent(project)}`;
        const wanted = expected.get(project) ?? { requests: 0, cost: 0n };
        const found = (await send(`GET ${sums}?${named}`)).json;
        assert.deepEqual([found.requests, found.cost], [wanted.requests, formatUsd(money(wanted.cost))], project);
        const alone = (await send(`GET ${base}/activity?${named}&by=project`)).json;
        const group = stacked.filter((one) => one.group === project);
        if (!ofClient) {
          const rows = (await send(`GET ${base}/groups?${named}&by=project`)).json.rows as Listed[];
          assert.deepEqual(
            rows.map((row) => [row.group, row.requests]),
            group.map((one) => [project, totalOf(one.series).requests]),
          );
        }
        assert.deepEqual(alone.groups, group, 'one project is the same alone as beside the others');
        const list = await send(`GET ${ofClient ? '/usage' : '/admin/requests'}?${named}&limit=500`);
        const listed = list.json.rows as { id: string; project: string | null }[];
        const own = (ids.get(project) ?? []).map(({ id }) => id).toReversed();
        assert.deepEqual(
          listed.map(({ id }) => id),
          own.slice(0, 500),
        );
        for (const row of listed) assert.equal(row.project ?? '-', project);
      }
    }),
    { numRuns: 25, endOnFailure: true },
  );
});

test('an operator moves a key with a reason that the audit log keeps; an auditor cannot, and "-" is no name', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const [key] = services.world.keys;
  const path = `POST /admin/accounts/${clientAccount}/keys/${key!.id}/project`;
  assert.equal((await send(path, { project: 'moved', reason: 'a new team' })).json.project, 'moved');
  const projects = (await send(`GET /admin/projects?accountId=${clientAccount}`)).json.rows;
  assert.deepEqual(projects, [
    { project: 'builds', keys: 1 },
    { project: 'moved', keys: 1 },
    // Its past calls stay in it.
    { project: 'web shop', keys: 0 },
  ]);
  const [row] = (await send('GET /admin/audit')).json.rows;
  assert.deepEqual(
    [row.action, row.subject, row.reason, row.result],
    ['account.key.project', key!.id, 'moved: a new team', 'done'],
  );
  assert.equal((await send(path, { project: null, reason: 'the team is gone' })).json.project, null);
  for (const body of [
    { project: 'x' },
    { reason: 'r' },
    { project: '', reason: 'r' },
    { project: 'x'.repeat(101), reason: 'r' },
  ])
    assert.equal((await send(path, body)).status, 400, JSON.stringify(body));
  assert.equal((await caller(services, 'auditor')(path, { project: 'x', reason: 'r' })).status, 403);
});

test('sums by tag are those of the charges of one account, by value or by model, and each row of a CSV file says its tags', async () => {
  const services = fakeConsole();
  const { world } = services;
  for (const [index, charge] of world.charges.entries())
    if (index % 3 > 0) world.charges[index] = { ...charge, tags: `env=prod,team=${index % 3 === 1 ? 'a' : 'b'}` };
  const own = world.charges.filter(({ accountId, tags }) => accountId === clientAccount && tags !== undefined);
  const costOf = (value: string) =>
    formatUsd(money(own.reduce((sum, { tags, cost }) => sum + (tags!.endsWith(value) ? cost : 0n), 0n)));
  const client = caller(services, 'client');
  const operator = caller(services, 'operator');
  const from = `from=${new Date(services.clock.now() - 30 * 86_400_000).toISOString()}`;
  const { json } = await client(`GET /usage/tags?${from}&tag=team`);
  assert.deepEqual(json.names, ['env', 'team']);
  const found = Object.fromEntries(json.rows.map(({ group, cost }: Listed) => [group, parseUsd(cost)]));
  assert.deepEqual(found, { a: parseUsd(costOf('=a')), b: parseUsd(costOf('=b')) });
  assert.equal(Date.parse(json.from) % 900_000, 0);
  const same = await operator(`GET /admin/tags?${from}&tag=team&accountId=${clientAccount}`);
  assert.deepEqual(same.json.rows, json.rows);
  const models = await client(`GET /usage/tags?${from}&tag=env=prod`);
  const requests = models.json.rows.reduce((sum: number, row: Listed) => sum + row.requests, 0);
  assert.equal(requests, own.length);
  assert.equal((await operator(`GET /admin/tags?${from}&tag=team`)).status, 400);
  const ofAll = await operator('GET /admin/requests?tag=team=a');
  assert.deepEqual([ofAll.status, ofAll.json.error.field ?? ofAll.json.error.param], [400, 'tag']);
  const file = await client(`GET /usage.csv?${from}`);
  assert.match(file.text.split('\r\n', 1)[0]!, /,project,tags,/);
  assert.match(file.text, /"env=prod,team=a"/);
});
