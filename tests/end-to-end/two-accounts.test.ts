/** Two accounts with the same things and a person in both: probes of every route of the interface and the console, made from their own descriptions, find nothing of the other account. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { access, rightOf } from '../../plugins/console/api/routing/access.ts';
import { until } from '../helpers/until.ts';
import type { Browser } from '../plugins/console/browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from '../plugins/console/start-console.ts';
import { type Caller, type Document, documentAt, keyAt, sendExamples } from '../sdk/example-calls.ts';
import { idsIn, madeUp, tuplesFor } from './other-ids.ts';

let testbed: TestConsole;
let described: Document;
let [boss, ada, ben, cleo]: Browser[] = [];
let [adas, bens]: Side[] = [];

/** An account with one of everything that the interface makes, and its owner. */
interface Side extends Caller {
  readonly owner: Browser;
  readonly account: string;
  /** Ids of what it has. */
  readonly ids: readonly string[];
  /** Addresses at which it reads something of its own, by their pattern. */
  readonly reads: ReadonlyMap<string, readonly string[]>;
}

const limits = 'plans: { offers: { free: { limits: { rpm: 1000000, tpm: 1000M, concurrency: 1000 } } } }';

before(async () => {
  testbed = await startDemo('demo', limits);
  described = await documentAt(testbed.origin);
  boss = await operatorOf(testbed);
  [ada, ben, cleo] = await Promise.all(['ada', 'ben', 'cleo'].map((name) => clientOf(testbed, `${name}@example.test`)));
  adas = await sideOf(ada!, ben!);
  bens = await sideOf(ben!, cleo!);
});
after(() => testbed?.stop());

async function sideOf(owner: Browser, member: Browser): Promise<Side> {
  const { account } = (await owner.send('/me')).json;
  const headers = { 'idempotency-key': `credit-${account.id}` };
  await boss!.send(`/admin/accounts/${account.id}/credit`, { body: { amount: '500', reason: 'a test' }, headers });
  const keyOf = async (more: object) => (await owner.send('/keys', { body: { name: 'k', ...more } })).json.key;
  const keys = { good: await keyOf({}), admin: await keyOf({ access: 'organization' }) };
  const invited = await owner.send('/members/invitations', { body: { email: await emailOf(member), role: 'viewer' } });
  const own = (await member.send('/me')).json;
  await member.send('/members/join', { body: { token: new URL(invited.json.link).searchParams.get('join') } });
  await member.send('/members/choose', { body: { accountId: own.account.id } });
  const caller = { origin: testbed.origin, keys };
  await owner.send('/budgets', { body: { of: 'account', amount: '5000', every: 'month' } });
  const made: Record<string, string> = { bundle: 'harbour', user_id: own.person.id };
  const answers = await sendExamples(caller, described, made);
  const listed = [await runOf(caller)];
  for (const path of listPaths()) listed.push(...idsIn((await get(caller, path)).text).slice(0, 2));
  for (const path of ownLists) listed.push(...idsIn((await owner.send(path)).text).slice(0, 2));
  // Both accounts see who is in both.
  const people = await Promise.all([ben!, cleo!].map(async (who) => (await who.send('/me')).json.person.id));
  const kept = [...listed, ...Object.values(made).filter((id) => id.length >= 8)];
  const known = [...new Set([...kept, ...answers.flatMap(({ text }) => idsIn(text).slice(0, 1))])];
  const things = known.filter((id) => !people.includes(id));
  // Videos and files of stores are made meanwhile; the second account has no member who is not in the first.
  const reads = await until('something of its own at every address', async () => {
    const found = await readsOf(caller, things);
    return [...found].every(([pattern, paths]) => paths.length > 0 || pattern.includes('user')) && found;
  });
  const paths = [...reads.values()].flat();
  const isUsed = (id: string) => kept.includes(id) || paths.some((path) => path.includes(id));
  const ids = things.filter(isUsed);
  return { ...caller, owner, account: account.id, ids, reads };
}

type Row = { readonly id: string } & Readonly<Record<string, unknown>>;

/** Lists of the console with what an account has. */
const ownLists = ['/keys', '/projects', '/members', '/members/invitations', '/tasks', '/files', '/batches', '/budgets'];

const emailOf = async (who: Browser) => (await who.send('/me')).json.person.email as string;

/** A run with a tool of the gateway, which has a bill of its own. */
async function runOf(caller: Caller): Promise<string> {
  const tools = [{ type: 'mcp', server_label: 'town', server_url: 'gateway://sandbox', require_approval: 'never' }];
  const body = { model: 'gpt-5.4-mini', input: 'What is the weather in Oslo?', tools };
  const answer = await fetch(`${caller.origin}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${caller.keys.good}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, await answer.text());
  const run = answer.headers.get('x-request-id')!;
  await until('the bill of the run', async () => (await get(caller, `/v1/usage/runs/${run}`)).status === 200);
  return run;
}

interface Reply {
  readonly status: number;
  readonly text: string;
}

async function send(caller: Caller, method: string, path: string, body?: object): Promise<Reply> {
  const answer = await fetch(caller.origin + path, {
    method,
    headers: {
      authorization: `Bearer ${keyAt(caller, path)}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
}

const get = (caller: Caller, path: string) => send(caller, 'GET', path);

/** What names a thing of an account: models and bundles are the gateway's. */
const isOwned = (path: string) => /\{(?!model\}|bundle\})/.test(path);

/** Lists of things that have addresses of their own. */
const listPaths = () =>
  Object.keys(described.paths).filter(
    (path) =>
      !path.includes('{') &&
      described.paths[path]!['get'] !== undefined &&
      Object.keys(described.paths).some((one) => one.startsWith(`${path}/{`) && isOwned(one)),
  );

async function readsOf(caller: Caller, ids: readonly string[]): Promise<Map<string, string[]>> {
  const reads = new Map<string, string[]>();
  const known = new Set(ids);
  // What is within something comes behind it.
  for (const pattern of Object.keys(described.paths).filter(isOwned).toSorted()) {
    const { get: read } = described.paths[pattern]!;
    if (read === undefined) continue;
    const found: string[] = [];
    for (const path of tuplesFor(pattern, [...known], reads)) {
      const { status, text } = await get(caller, path);
      if (status !== 200) continue;
      found.push(path);
      if (pattern.endsWith('s')) for (const id of idsIn(text).slice(0, 2)) known.add(id);
    }
    reads.set(pattern, found.slice(0, 3));
  }
  return reads;
}

/** Without what differs between two requests of the same thing. */
const plain = (text: string, ids: readonly string[]) =>
  ids.reduce((all, id) => all.replaceAll(id, 'ID'), text).replace(/"request_id":\s*"[^"]*"/g, '');

interface Probe {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
  /** The other account reads something there. */
  readonly isRead: boolean;
}

/** Every operation that names a thing, with each id of the other account, and with each behind a thing of one's own. */
function* probes(): Generator<Probe> {
  for (const [pattern, operations] of Object.entries(described.paths).filter(([path]) => isOwned(path))) {
    const read = adas!.reads.get(pattern) ?? [];
    const paths = new Set([...read, ...tuplesFor(pattern, adas!.ids, bens!.reads)]);
    for (const [method, { security, requestBody }] of Object.entries(operations)) {
      // The address itself is the secret of an upload that has begun.
      if (security.length === 0) continue;
      const body = requestBody?.content['application/json']?.example;
      for (const path of paths) yield { method: method.toUpperCase(), path, body, isRead: read.includes(path) };
    }
  }
}

/** Fails unless the answer is that of an id that nothing has. */
async function findsNothing({ method, path, body, isRead }: Probe): Promise<void> {
  const used = adas!.ids.filter((id) => path.includes(id));
  const ids = used.length > 0 ? used : [path.split('/').at(-1)!];
  const other = ids.reduce((all, id) => all.replaceAll(id, madeUp(id)), path);
  const reply = await send(bens!, method, path, body);
  const unknown = await send(bens!, method, other, body);
  const what = `${method} ${path}: ${reply.status} ${reply.text.slice(0, 300)}`;
  assert.ok(isRead ? reply.status === 404 : reply.status >= 400 && reply.status < 500, what);
  assert.deepEqual(
    [reply.status, plain(reply.text, ids)],
    [unknown.status, plain(unknown.text, ids.map(madeUp))],
    what,
  );
}

test('every address of the interface that names a thing is 404 for the key of another account, as one of a thing that there is not', async () => {
  const unread = [...adas!.reads].flatMap(([pattern, paths]) => (paths.length === 0 ? [pattern] : []));
  assert.deepEqual(unread, [], 'the account itself reads each of them');
  let count = 0;
  for (const probe of probes()) {
    await findsNothing(probe);
    count += 1;
  }
  assert.ok(count > 300, `${count} probes`);
  for (const path of [...adas!.reads.values()].flat())
    assert.equal((await get(adas!, path)).status, 200, `${path} is there still`);
});

test('no list of the interface has a thing of another account, whatever its query names', async () => {
  let probes = 0;
  for (const [path, { get: list }] of Object.entries(described.paths)) {
    if (list === undefined || path.includes('{') || list.security.length === 0) continue;
    const names = (list.parameters ?? []).filter((one) => one.in === 'query').map(({ name }) => name);
    const queries = names.flatMap((name) => [...adas!.ids, adas!.account].map((id) => `?${name}=${id}`));
    for (const query of ['', ...queries]) {
      const { text } = await get(bens!, path + query);
      for (const id of [...adas!.ids, adas!.account])
        assert.ok(query.includes(id) || !text.includes(id), `${path}${query} has ${id}: ${text.slice(0, 300)}`);
      probes += 1;
    }
  }
  assert.ok(probes > 100, `${probes} probes`);
});

/** Members of bodies that name a thing of the account, by where they stand. */
const references: Readonly<Record<string, readonly [path: string, body: (id: string) => object]>> = {
  'an answer to go on from': [
    '/v1/responses',
    (id) => ({ model: 'gpt-5.4-mini', input: 'Hello', previous_response_id: id }),
  ],
  'a conversation': ['/v1/responses', (id) => ({ model: 'gpt-5.4-mini', input: 'Hello', conversation: id })],
  'a file of an answer': [
    '/v1/responses',
    (id) => ({
      model: 'gpt-5.4-mini',
      input: [{ role: 'user', content: [{ type: 'input_file', file_id: id }] }],
    }),
  ],
  'a file of a chat': [
    '/v1/chat/completions',
    (id) => ({
      model: 'gpt-5.4-mini',
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
    }),
  ],
  'a file of messages': [
    '/v1/messages',
    (id) => ({
      ...{ model: 'claude-opus-5', max_tokens: 64 },
      messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: id } }] }],
    }),
  ],
  'a store of a search': [
    '/v1/responses',
    (id) => ({ model: 'gpt-5.4-mini', input: 'Hello', tools: [{ type: 'file_search', vector_store_ids: [id] }] }),
  ],
  'a file of a batch': [
    '/v1/batches',
    (id) => ({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }),
  ],
};

test('no body of a request reaches a thing of another account by its id', async () => {
  for (const [what, [path, bodyWith]] of Object.entries(references)) {
    let own = 0;
    for (const id of adas!.ids) {
      const ours = await send(adas!, 'POST', path, bodyWith(id));
      if (ours.status !== 200) continue;
      own += 1;
      const reply = await send(bens!, 'POST', path, bodyWith(id));
      const unknown = await send(bens!, 'POST', path, bodyWith(madeUp(id)));
      assert.ok([400, 404].includes(reply.status), `${what} ${id}: ${reply.status} ${reply.text}`);
      assert.deepEqual(
        [reply.status, plain(reply.text, [id])],
        [unknown.status, plain(unknown.text, [madeUp(id)])],
        what,
      );
    }
    assert.ok(own > 0, `the account itself uses ${what}`);
  }
});

test('no route of the console shows or changes anything of an account that a person has not chosen, although they are in it', async () => {
  const routes = Object.entries(access).flatMap(([route, needed]) => (rightOf(needed) === undefined ? [] : [route]));
  const me = (await ben!.send('/me')).json;
  assert.equal(me.account.id, bens!.account);
  assert.ok(me.accounts.some(({ id }: { id: string }) => id === adas!.account));
  // What others could change; charges and batches of one's own go on meanwhile.
  const stateOf = async () => {
    const lists = await Promise.all(ownLists.map(async (path) => (await ada!.send(path)).json.rows as Row[]));
    return lists
      .flat()
      .flatMap(({ id, name, role, amount, revokedAt, archivedAt, rotatedAt, cancelAt }) =>
        adas!.ids.includes(id) ? [[id, name, role, amount, revokedAt, archivedAt, rotatedAt, cancelAt]] : [],
      );
  };
  const before = await stateOf();
  for (const route of routes.filter((one) => one !== 'POST /members/leave')) {
    const [method, path] = route.split(' ') as [string, string];
    // Codes and changes of a company's sign-in are tried some times in a minute.
    const isBounded = /^\/(?:members\/sign-in|connect)\//.test(path);
    const ids = path.includes(':') && !isBounded ? adas!.ids : adas!.ids.slice(0, path.includes(':') ? 3 : 1);
    for (const id of ids) {
      const target = path.includes(':') ? path.replace(/:\w+/g, id) : `${path}?accountId=${adas!.account}&keyId=${id}`;
      const body = { name: 'taken', accountId: adas!.account, role: 'owner', keys: 'take', code: 'x', file: id };
      const reply = await ben!.send(target, { method, ...(method === 'GET' ? {} : { body }) });
      const what = `${route} with ${id}: ${reply.status} ${reply.text.slice(0, 200)}`;
      assert.notEqual(reply.status, 429, what);
      if (path.includes(':')) assert.ok(reply.status >= 400 && reply.status < 500, what);
      for (const known of adas!.ids) assert.ok(target.includes(known) || !reply.text.includes(known), what);
    }
  }
  assert.deepEqual(await stateOf(), before);
});
