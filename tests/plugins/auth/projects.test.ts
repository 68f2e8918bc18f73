/** Projects as objects of an account: their terms, names that their keys follow, and archives that refuse them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { caller, keyring } from '../../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { memberAdmin } from '../../../plugins/common/domain/organizations/members.ts';
import { projectAdmin } from '../../../plugins/common/domain/organizations/projects.ts';
import { fakeExchange, okAnswer } from '../../helpers/fakes.ts';
import { closeEmbedded } from './embedded.ts';
import { openGate } from './setup.ts';

after(closeEmbedded);

const refused = (code: string, field?: string) => (error: { kind: string; code?: string; field?: string }) => {
  assert.deepEqual([error.code ?? error.kind, error.field], [code, field]);
  return true;
};

async function openProjects() {
  const gate = await openGate();
  const admin = gate.host.get(accountAdmin);
  const projects = gate.host.get(projectAdmin);
  const keyIn = (project?: string) => admin.createKey(gate.accountId, { name: 'k', project }, 'ada');
  return { ...gate, admin, projects, keyIn };
}

test('calls of a key keep the id of its project and follow its name and its models within a second', async () => {
  const { projects, accountId, keyIn, send } = await openProjects();
  const made = await projects.create(accountId, { name: ' eval ', models: ['one', 'two'], owner: 'ada' });
  assert.deepEqual([made.name, made.models, made.owner, made.keys], ['eval', ['one', 'two'], 'ada', 0]);
  const { key } = await keyIn('eval');
  const before = await send(key);
  assert.deepEqual(
    [before.project, before.attribution?.project, [...before.projectModels!]],
    ['eval', made.id, ['one', 'two']],
  );
  assert.equal(before.models, undefined, "the key's own bounds are another thing");
  const changed = await projects.change(accountId, made.id, { name: 'evaluation' });
  assert.deepEqual(
    [changed.name, changed.models, changed.owner, changed.keys],
    ['evaluation', undefined, undefined, 1],
  );
  const now = await send(key);
  assert.deepEqual([now.project, now.attribution?.project, now.projectModels], ['evaluation', made.id, undefined]);
});

test('keys of an archived project are refused by its name until it is restored, and none is put into it', async () => {
  const { projects, admin, accountId, keyIn, send, refusal } = await openProjects();
  const { key, id } = await keyIn('old');
  const other = await keyIn('other');
  const project = (await projects.named(accountId, 'old'))!;
  assert.equal((await send(key)).project, 'old');
  const archived = await projects.setArchived(accountId, project.id, true);
  const again = await projects.setArchived(accountId, project.id, true);
  assert.equal(again.archivedAt, archived.archivedAt, 'the first time stays');
  const error = await refusal(key);
  assert.deepEqual(
    [error.kind, error.code, error.message],
    ['forbidden', 'project_archived', 'The project "old" of this API key is archived.'],
  );
  assert.equal((await send(other.key)).project, 'other');
  await assert.rejects(keyIn('old'), refused('project_archived', 'project'));
  await assert.rejects(admin.setProject(accountId, other.id, 'old'), refused('project_archived', 'project'));
  await assert.rejects(
    admin.updateKey(accountId, other.id, { name: 'k', project: 'old' }),
    refused('project_archived', 'project'),
  );
  assert.equal((await admin.updateKey(accountId, id, { name: 'called so', project: 'old' })).name, 'called so');
  assert.equal((await admin.setProject(accountId, id, undefined)).project, undefined, 'a key may leave it');
  assert.equal((await send(key)).project, undefined);
  await admin.setProject(accountId, other.id, undefined);
  await projects.setArchived(accountId, project.id, false);
  await admin.setProject(accountId, other.id, 'old');
  assert.equal((await send(other.key)).attribution?.project, project.id);
});

test('a project has one name in its account, is not seen from another one, and an account has at most 1,000', async () => {
  const { projects, book, accountId, keyIn, db } = await openProjects();
  const stranger = (await book.create('stranger', 'pro')).id;
  const one = await projects.create(accountId, { name: 'one' });
  const two = await projects.create(accountId, { name: 'two' });
  await projects.create(stranger, { name: 'one' });
  await assert.rejects(projects.create(accountId, { name: 'one' }), refused('conflict', 'name'));
  await assert.rejects(projects.change(accountId, two.id, { name: 'one' }), refused('conflict', 'name'));
  for (const terms of [{ name: '-' }, { name: ' ' }, { name: 'x', models: [] }, { name: 'x', owner: '' }])
    await assert.rejects(projects.create(accountId, terms), { kind: 'invalid_request' });
  assert.equal(await projects.find(stranger, one.id), undefined);
  for (const id of [one.id, 'no id', crypto.randomUUID()]) {
    await assert.rejects(projects.change(stranger, id, { name: 'mine' }), refused('not_found', 'project'));
    await assert.rejects(projects.setArchived(stranger, id, true), refused('not_found', 'project'));
  }
  assert.deepEqual([...(await projects.namesOf(stranger, [one.id]))], []);
  assert.deepEqual([...(await projects.namesOf(accountId, [one.id, 'no id']))], [[one.id, 'one']]);
  await projects.setArchived(accountId, two.id, true);
  const pages = [];
  for (let after: string | undefined; ; ) {
    const page = await projects.list(accountId, {}, { limit: 1, after });
    pages.push(page.rows.map(({ name }) => name));
    after = page.next;
    if (after === undefined) break;
  }
  assert.deepEqual(pages, [['one'], ['two']]);
  const archived = await projects.list(accountId, { archived: true }, { limit: 5 });
  assert.deepEqual(
    archived.rows.map(({ name }) => name),
    ['two'],
  );
  await db.orm.execute(
    sql.raw(
      `insert into "${db.schema}".projects (account_id, name) select '${accountId}', 'p' || n from generate_series(1, 998) n`,
    ),
  );
  await assert.rejects(projects.create(accountId, { name: 'one more' }), refused('conflict', 'project'));
  await assert.rejects(keyIn('one more'), refused('conflict', 'project'));
  await keyIn('p998');
});

test('commands create, list, change, archive and restore a project by its name', async () => {
  const { command, accountId, host } = await openProjects();
  const account = accountId;
  const stranger = refused('invalid_request', 'owner');
  await assert.rejects(command('projects create', { account, name: 'web', owner: 'ada' }), stranger);
  await host.get(memberAdmin).roleAtHome(accountId, 'ada');
  await command('projects create', { account, name: 'web', models: 'one, two', owner: 'ada' });
  const changed = await command('projects change', { account, project: 'web', name: 'site', models: 'all' });
  const { name, models, owner } = changed.json as { name: string; models?: string[]; owner?: string };
  assert.deepEqual([name, models, owner], ['site', undefined, 'ada'], 'what is not named stays');
  await assert.rejects(command('projects change', { account, project: 'site', owner: 'ben' }), stranger);
  await command('projects archive', { account, project: 'site' });
  assert.match((await command('projects list', { account })).text, /^site +0 +all +ada +archived \d{4}-/m);
  await command('projects restore', { account, project: 'site' });
  assert.match((await command('projects list', { account })).text, /^site .* in use /m);
  await assert.rejects(command('projects archive', { account, project: 'web' }), refused('not_found', 'project'));
});

test('a key of an organization is admitted below its own addresses alone, and never for work that outlives a request', async () => {
  const { admin, accountId, host, part } = await openProjects();
  const { id, key } = await admin.createKey(accountId, { name: 'admin', access: 'organization' });
  const ask = async (path: string) => {
    const exchange = fakeExchange({ request: { headers: { authorization: `Bearer ${key}` }, path } });
    await part.handle!(exchange, async () => okAnswer);
    return exchange.get(caller).access;
  };
  for (const path of ['/v1/organization/projects', '/v1/organization/costs'])
    assert.equal(await ask(path), 'organization');
  for (const path of ['/v1/chat/completions', '/v1/organization', '/v1/organizations/projects', '/'])
    await assert.rejects(ask(path), refused('organization_key'));
  await assert.rejects(host.get(keyring).callerOf(id, '192.0.2.1'), refused('organization_key'));
  const kept = await admin.updateKey(accountId, id, { name: 'called otherwise' });
  assert.equal(kept.access, 'organization');
  await assert.rejects(
    admin.createKey(accountId, { name: 'x', access: 'all' as 'organization' }),
    refused('invalid_request', 'access'),
  );
});
