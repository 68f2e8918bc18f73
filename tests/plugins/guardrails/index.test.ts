/** Guardrails in a gateway: who is checked, what a refusal looks like, what a slow or broken check does, what is stored. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'drizzle-orm';
import {
  chatAnswer,
  chatStream,
  checkGateway,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../../plugins/common/author/testing.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { guardrailVerdicts } from '../../../plugins/common/guardrails/verdicts.ts';
import { rowsOf, tableOf } from '../../../plugins/common/kit/sql.ts';
import { VerdictRows } from '../../../plugins/guardrails/rows.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';

let vendor: Vendor;
let service: Vendor;
let gateway: TestGateway;
const keys: Record<string, string> = {};
let accountId: string;

const plugins = [
  'storage',
  'files',
  'auth',
  'providers',
  'models',
  'guardrails',
  'prompts',
  'billing',
  'cache',
  'route',
];
/** Each has a policy of its name, with a check of its name. */
const projects = ['slow', 'waved', 'allowed', 'beside', 'besides', 'freely', 'shape', 'model', 'judge'];

before(async () => {
  [vendor, service] = await Promise.all([startVendor(), startVendor()]);
  const at = `${vendor.origin}/v1`;
  const of = (kind: string) => ({ kind, owned_by: 'x', targets: ['vendor'], price: 'free' });
  const outside = { type: 'litellm', url: service.origin, allow_private: true, on: ['prompt'] };
  gateway = await startGateway({
    plugins: [...plugins, 'protocol-convert', 'endpoints'],
    providers: {
      vendor: {
        keys: 'k',
        speaks: {
          ...{ chat: at, 'openai-embeddings': at, 'openai-transcriptions': at, 'openai-moderations': at },
          'openai-decisions': at,
        },
      },
    },
    models: {
      m: { owned_by: 'x', targets: ['vendor'], price: { input: 10, output: 100 } },
      again: { owned_by: 'x', targets: ['vendor'], price: { input: 10, output: 100 } },
      ...{ e: of('embedding'), t: of('transcription'), judge: of('decision') },
      mod: { ...of('moderation'), price: { input: 10 } },
    },
    cache: { of: [{ models: ['again'], keep: '10m', price: 0 }] },
    guardrails: {
      checks: {
        mail: { type: 'patterns', find: ['email'], do: 'mask', restore: true },
        words: { type: 'words', list: ['banana'], message: 'No fruit.' },
        kindly: { type: 'words', list: ['cherry'], as: 'answer', message: 'Let us talk of something else.' },
        slow: { ...outside, within: '50ms', broken: 'refuse' },
        waved: { ...outside, within: '50ms', broken: 'allow' },
        allowed: { ...outside, within: '30s', broken: 'allow' },
        besides: { ...outside, beside: true, within: '5s' },
        freely: { type: 'moderation', model: 'mod', on: ['prompt'], paid_by: 'operator' },
        beside: { ...outside, beside: true, within: '5s' },
        size: { type: 'limits', prompt_characters: 200 },
        shape: { type: 'json_schema', on: ['answer'] },
        model: { type: 'moderation', model: 'mod', on: ['prompt'] },
        judge: { type: 'decisions', model: 'judge', ask: { bad: 'Is it bad?' }, at: 0.7, on: ['prompt'] },
      },
      policies: {
        besides: { checks: ['besides'], charge: 'attempt' },
        base: ['mail', 'words', 'kindly', 'size'],
        ...Object.fromEntries(projects.filter((name) => name !== 'besides').map((name) => [name, [name]])),
      },
      apply: [
        { policy: 'base' },
        ...projects.map((name) => ({
          policy: name,
          projects: [name],
        })),
      ],
      stream: { release: 20, overlap: 32 },
    },
  });
  const made = (await gateway.run('accounts create', { name: 'ada', credit: '10' })) as { id: string };
  accountId = made.id;
  for (const project of ['none', ...projects])
    keys[project] = (
      (await gateway.run('keys create', { account: 'ada', name: project, project })) as { key: string }
    ).key;
});
after(async () => {
  await gateway?.stop();
  await Promise.all([vendor?.stop(), service?.stop()]);
});
beforeEach(() => {
  vendor.requests.length = 0;
  service.requests.length = 0;
  vendor.play(chatAnswer('Noted.'));
});

const post = (path: string, body: object, project = 'none') =>
  gateway.post(path, body, { authorization: `Bearer ${keys[project]}` });
const chat = (content: string, more: object = {}, project = 'none') =>
  post('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content }], ...more }, project);
// biome-ignore lint/suspicious/noExplicitAny: answers of several endpoints.
const jsonOf = (answer: Response) => answer.json() as Promise<any>;
const contentOf = async (answer: Response) => (await jsonOf(answer)).choices[0].message.content as string;

test('a masked address is what the vendor gets, and the client reads the original, whole and streamed', async () => {
  vendor.play(chatAnswer('I wrote to [EMAIL-1].'));
  const whole = await chat('Write to ada@example.com.');
  assert.equal(await contentOf(whole), 'I wrote to ada@example.com.');
  assert.match(whole.headers.get('x-gateway-guardrails')!, /^mail=masked\(1\), words=passed/);
  assert.match(vendor.requests[0]!.body.toString(), /Write to \[EMAIL-1\]\./);
  vendor.play(chatStream('I wrote to [EMA', 'IL-1', '] and to [EMAIL-2].'));
  const streamed = await (await chat('Write to ada@example.com.', { stream: true })).text();
  const said = [...streamed.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text).join('');
  assert.equal(said, 'I wrote to ada@example.com and to [EMAIL-2].');
});

test('a placeholder that the client has written itself stays what it is', async () => {
  vendor.play(chatAnswer('[EMAIL-1] and [EMAIL-2]'));
  assert.equal(await contentOf(await chat('[EMAIL-1] is not ada@example.com')), '[EMAIL-1] and ada@example.com');
});

test('a refused prompt is not sent and costs nothing, and its verdict is stored without its content', async () => {
  const answer = await chat('A banana, please.');
  assert.equal(answer.status, 400);
  assert.equal(answer.headers.get('x-should-retry'), 'false');
  const { error } = await jsonOf(answer);
  assert.deepEqual([error.message, error.code], ['No fruit.', 'content_policy_violation']);
  assert.equal(vendor.requests.length, 0);
  const id = answer.headers.get('x-request-id')!;
  const store = gateway.find(database)!;
  const rows = () =>
    rowsOf<Record<string, unknown>>(
      store.orm,
      sql`select check_name, stage, verdict, findings, digest from ${tableOf(store, 'guardrail_verdicts')}
          where account_id = ${accountId} and request_id = ${id} order by check_name`,
    );
  await until('the verdicts are stored', async () => (await rows()).length === 2);
  const [mail, words] = await rows();
  assert.deepEqual(
    { ...mail, digest: '' },
    { check_name: 'mail', stage: 'prompt', verdict: 'passed', findings: 0, digest: '' },
  );
  assert.equal(words!['verdict'], 'refused');
  assert.match(String(words!['digest']), /^[0-9a-f]{16}$/);
  const verdicts = gateway.find(guardrailVerdicts)!;
  const asked = [id, 'another'].map((requestId) => ({ requestId, accountId }));
  const said = answer.headers.get('x-gateway-guardrails')!;
  assert.deepEqual([...(await verdicts.of(asked))], [[id, said]]);
  assert.equal((await verdicts.of([{ requestId: id, accountId: 'another' }])).size, 0);
  const { checks } = (await gateway.run('guardrails report')) as {
    checks: { check: string; stage: string; verdicts: Record<string, number> }[];
  };
  assert.equal(checks.find(({ check, stage }) => check === 'words' && stage === 'prompt')!.verdicts['refused'], 1);
});

test('as an answer: the client gets a regular answer with the text, whole and streamed, for the prompt and for the answer', async () => {
  const whole = await jsonOf(await chat('A cherry, please.'));
  assert.equal(whole.choices[0].message.content, 'Let us talk of something else.');
  assert.equal(whole.choices[0].finish_reason, 'content_filter');
  assert.equal(vendor.requests.length, 0);
  assert.match(await (await chat('A cherry, please.', { stream: true })).text(), /something else[\s\S]*data: \[DONE\]/);
  vendor.play(chatStream('There was a che', 'rry in the tree, ', 'and more of them in all the other trees.'));
  const streamed = await (await chat('A fruit?', { stream: true })).text();
  assert.doesNotMatch(streamed, /cherry|rry in the tree/);
  assert.match(streamed, /something else[\s\S]*"finish_reason":"content_filter"[\s\S]*data: \[DONE\]/);
});

test('the request is too long: refused', async () => {
  assert.equal((await chat('x'.repeat(201))).status, 400);
});

test('a check that is too slow ends within its time: refused with 503, or let through', async () => {
  service.play({ headDelayMs: 30_000 });
  const start = performance.now();
  const refused = await chat('Hello', {}, 'slow');
  assert.equal(refused.status, 503);
  assert.equal((await jsonOf(refused)).error.code, 'guardrail_unavailable');
  assert.notEqual(refused.headers.get('x-should-retry'), 'false');
  assert.equal((await chat('Hello', {}, 'waved')).status, 200);
  assert.ok(performance.now() - start < 10_000);
});

test('beside: the call is made meanwhile, its answer waits, and a refusal costs nothing', async () => {
  service.play({ body: '{"action":"NONE"}' });
  assert.equal((await chat('Hello', {}, 'beside')).status, 200);
  service.play({ headDelayMs: 50, body: '{"action":"BLOCKED"}' });
  vendor.requests.length = 0;
  const answer = await chat('Hello', { stream: false }, 'beside');
  assert.equal(answer.status, 400);
  assert.equal(vendor.requests.length, 1);
  assert.match(answer.headers.get('x-gateway-guardrails')!, /beside=refused/);
  const id = answer.headers.get('x-request-id')!;
  const ended = async () => {
    const end = await gateway.find(ledger)!.endOf(id);
    return end === 'open' ? undefined : end;
  };
  assert.notEqual(await until('the call has ended', ended, 10_000), 'charged');
});

test('money: a refused prompt costs nothing, one that is refused beside the call what its policy says, and calls of checks who pays for them', async () => {
  /** In billionths of a dollar. */
  const balance = async () => {
    await gateway.find(ledger)!.safe();
    const { rows } = (await gateway.run('ledger', { name: 'ada', limit: '1' })) as {
      rows: { balance_after: string }[];
    };
    return Math.round(Number(rows[0]!.balance_after) * 1e9);
  };
  let expected = await balance();
  const costs = async (content: string, project: string, status: number, cost: number) => {
    const answer = await chat(content, {}, project);
    await answer.text();
    assert.equal(answer.status, status);
    expected -= cost;
    await until(`${project} costs ${cost}`, async () => (await balance()) === expected, 10_000);
  };
  // 10 tokens of the prompt and one of the answer, of a million at 10 and 100; of a check 5 at 10.
  const [whole, check] = [200_000, 50_000];
  const blocked = { headDelayMs: 30, body: '{"action":"BLOCKED"}' };
  const moderated = (flagged: boolean) => ({
    body: JSON.stringify({
      ...{ id: 'x', model: 'mod', results: [{ flagged, categories: {} }] },
      usage: { prompt_tokens: 5, total_tokens: 5 },
    }),
  });
  await costs('A banana', 'none', 400, 0);
  await costs('Hello', 'none', 200, whole);
  service.play(blocked);
  await costs('Hello', 'beside', 400, 0);
  service.play(blocked);
  await costs('Hello', 'besides', 400, whole);
  for (const flagged of [true, false]) {
    const own = flagged ? 0 : whole;
    vendor.play(moderated(flagged), chatAnswer('Noted.'));
    await costs('Hello', 'freely', flagged ? 400 : 200, own);
    vendor.play(moderated(flagged), chatAnswer('Noted.'));
    await costs('Hello', 'model', flagged ? 400 : 200, own + check);
  }
  assert.deepEqual(((await gateway.run('audit', {})) as { violations: unknown[] }).violations, []);
});

test('a finding that a person marks as mistaken is counted, with all of the same text', async () => {
  const rows = new VerdictRows(gateway.find(database)!);
  const ids: string[] = [];
  for (const content of ['A banana, please.', 'One banana', 'A cherry'])
    ids.push((await chat(content)).headers.get('x-request-id')!);
  const found = async () => (await rows.findings(0, 100)).filter(({ request }) => ids.includes(request));
  const [cherry, second, first] = await until('they are stored', async () => {
    const all = await found();
    return all.length === 3 ? all : undefined;
  });
  assert.deepEqual([cherry!.check, second!.check, first!.check], ['kindly', 'words', 'words']);
  assert.ok((await rows.mark(first!, 'false')) >= 2);
  assert.deepEqual(
    (await found()).map(({ mark }) => mark),
    ['', 'false', 'false'],
  );
  const mistaken = async () =>
    (await rows.rates(0)).find(({ check, stage }) => check === 'words' && stage === 'prompt')!.mistaken;
  assert.ok((await mistaken()) >= 2);
  await rows.mark(second!, '');
  assert.equal(await mistaken(), 0);
  assert.equal(await rows.mark({ ...first!, request: 'x' }, 'false'), 0);
});

test('an answer that is not like the schema of its request is refused, and one that is passes', async () => {
  const schema = {
    type: 'object',
    properties: { n: { type: 'number' } },
    required: ['n'],
    additionalProperties: false,
  };
  const asked = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } };
  vendor.play(chatAnswer('{"n":1}'));
  assert.equal((await chat('A number?', asked, 'shape')).status, 200);
  vendor.play(chatAnswer('{"n":"one"}'));
  assert.equal((await chat('A number?', asked, 'shape')).status, 400);
  assert.equal((await chat('A number?', {}, 'shape')).status, 200);
});

test('a model of the gateway moderates and decides, for the account of the call', async () => {
  const flagged = (is: boolean) => ({
    body: JSON.stringify({ id: 'x', model: 'mod', results: [{ flagged: is, categories: {} }] }),
  });
  vendor.play(flagged(false), chatAnswer('Noted.'));
  assert.equal((await chat('Hello', {}, 'model')).status, 200);
  assert.deepEqual(JSON.parse(vendor.requests[0]!.body.toString()).input, ['Hello']);
  vendor.play(flagged(true));
  assert.equal((await chat('Hello', {}, 'model')).status, 400);
  const decided = (probability: number) => ({
    body: JSON.stringify({
      answers: [{ type: 'predicate', name: 'bad', probability }],
      model: 'judge',
      usage: { input_tokens: 1, output_tokens: 0, total_tokens: 1 },
    }),
  });
  vendor.play(decided(0.6), chatAnswer('Noted.'));
  assert.equal((await chat('Hello', {}, 'judge')).status, 200);
  vendor.play(decided(0.8));
  assert.equal((await chat('Hello', {}, 'judge')).status, 400);
});

test('embeddings and transcriptions: their texts, and the text of the answer', async () => {
  assert.equal((await post('/v1/embeddings', { model: 'e', input: ['x', 'a banana'] })).status, 400);
  vendor.play({ body: JSON.stringify({ text: 'Write to bob@example.com, he said.' }) });
  const form = new FormData();
  form.set('model', 't');
  form.set('file', new Blob([new Uint8Array([1, 2, 3])]), 'a.mp3');
  const answer = await fetch(`${gateway.origin}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys['none']}` },
    body: form,
  });
  assert.equal((await jsonOf(answer)).text, 'Write to [EMAIL-1], he said.');
});

test('a conversation that goes on by an id: the vendor never gets the originals that the client has read', async () => {
  vendor.play(chatAnswer('I wrote to [EMAIL-1].'));
  const first = await jsonOf(await post('/v1/responses', { model: 'm', input: 'Write to ada@example.com.' }));
  assert.match(JSON.stringify(first.output), /I wrote to ada@example\.com/);
  vendor.play(chatAnswer('I wrote to [EMAIL-1] before.'));
  const next = { model: 'm', input: 'And to bob@example.com?', previous_response_id: first.id };
  const second = await post('/v1/responses', next);
  assert.equal(second.status, 200, await second.clone().text());
  const sent = vendor.requests.at(-1)!.body.toString();
  assert.doesNotMatch(sent, /@example/);
  assert.match(sent, /I wrote to \[EMAIL-1\]\./);
  assert.match(await second.text(), /I wrote to ada@example\.com before/);
  const store = gateway.find(database)!;
  const kept = await rowsOf<{ sealed: string }>(
    store.orm,
    sql`select sealed from ${tableOf(store, 'guardrail_placeholders')}`,
  );
  assert.ok(kept.length > 1 && kept.every(({ sealed }) => !Buffer.from(sealed, 'base64').includes('ada@')));
});

test('the cache gives no answer again where the masked text is another one, or where a check was broken or has refused', async () => {
  const asked = async (content: string, project = 'none') => {
    const answer = await chat(content, { model: 'again' }, project);
    return `${answer.headers.get('x-cache')} ${await contentOf(answer)}`;
  };
  vendor.play(chatAnswer('I wrote to [EMAIL-1].'));
  assert.equal(await asked('Write to ada@example.com.'), 'miss I wrote to ada@example.com.');
  assert.equal(await asked('Write to bob@example.com.'), 'miss I wrote to bob@example.com.');
  assert.equal(await asked('Write to ada@example.com.'), 'hit I wrote to ada@example.com.');
  vendor.play(chatAnswer('{}'));
  assert.equal(await asked('Write to ada@example.com.', 'shape'), 'miss {}', 'other policies');
  service.play({ status: 500 });
  assert.match(await asked('Hello', 'allowed'), /^(null|miss) /);
  service.play({ body: '{"action":"NONE"}' });
  assert.match(await asked('Hello', 'allowed'), /^miss /, 'its answer was made without the check');
  assert.match(await asked('Hello', 'allowed'), /^hit /);
  vendor.play(chatAnswer('A cherry.'));
  assert.match(await asked('A fruit?'), /something else/);
  vendor.play(chatAnswer('A pear.'));
  assert.equal(await asked('A fruit?'), 'miss A pear.');
});

test('a dry run of a file says what a policy finds', async () => {
  const file = join(temporaryDirectory('guardrails-'), 'text.txt');
  await writeFile(file, 'Write to ada@example.com.');
  const tried = (await gateway.run('guardrails try', { file, policy: 'base' })) as { text: string; checks: unknown[] };
  assert.equal(tried.text, 'Write to [EMAIL-1].');
  assert.equal(tried.checks.length, 4);
  await assert.rejects(gateway.run('guardrails try', { file, policy: 'none' }), /no policy "none"/);
});

test('one sentence for what cannot work: a type, a name, a pattern, a place in the list', async () => {
  const sentences = (guardrails: object, list = plugins) =>
    checkGateway({ plugins: [...list, 'protocol-convert'], guardrails, providers: {}, models: {} });
  const words = { type: 'words', list: ['x'] };
  assert.match(
    (await sentences({ checks: { a: { ...words, type: 'wrods' } } })).join(),
    /no type of check "wrods".*words/,
  );
  assert.match((await sentences({ checks: { a: { ...words, lsit: [] } } })).join(), /lsit/);
  const look = { type: 'patterns', own: { x: '(?=a)' } };
  assert.match((await sentences({ checks: { a: look } })).join(), /no regular expression of RE2/);
  assert.match((await sentences({ checks: { a: words }, policies: { p: ['b'] } })).join(), /the check "b"/);
  assert.match((await sentences({ checks: { a: words }, apply: [{ policy: 'q' }] })).join(), /the policy "q"/);
  const below = ['storage', 'files', 'auth', 'providers', 'models', 'prompts', 'guardrails', 'billing', 'route'];
  assert.match(
    (await sentences({ checks: { a: words }, policies: { p: ['a'] }, apply: [{ policy: 'p' }] }, below)).join(),
    /move "guardrails" above "prompts"|move "prompts" below/,
  );
  assert.deepEqual(await sentences({ checks: { a: words }, policies: { p: ['a'] }, apply: [{ policy: 'p' }] }), []);
});
