/** Parts of guardrails by themselves: who matches, what is covered, schemas of requests, earlier turns, JSON, verdicts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../../core/contract/contract.ts';
import { DepthError } from '../../../core/json/splice.ts';
import type { Prompt } from '../../../plugins/common/canonical/prompt.ts';
import type { Caller } from '../../../plugins/common/domain/accounts.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import { prompts } from '../../../plugins/common/wire/prompt-rules.ts';
import { opened } from '../../../plugins/common/wire/protocols.ts';
import { guardrailPage } from '../../../plugins/guardrails/admin.ts';
import { config } from '../../../plugins/guardrails/config.ts';
import { coverageNotices } from '../../../plugins/guardrails/coverage.ts';
import type { CallTools } from '../../../plugins/guardrails/guarded-call.ts';
import plugin from '../../../plugins/guardrails/index.ts';
import { KeptTurns } from '../../../plugins/guardrails/kept/kept-turns.ts';
import { nonceBytes, sealed, unsealed } from '../../../plugins/guardrails/kept/seal.ts';
import { Breaker, type OpenCheck } from '../../../plugins/guardrails/open-checks.ts';
import { jsonPiece } from '../../../plugins/guardrails/pieces.ts';
import { Policies } from '../../../plugins/guardrails/policies.ts';
import { requestedSchema } from '../../../plugins/guardrails/request-schema.ts';
import { Verdicts } from '../../../plugins/guardrails/verdicts.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';

const clock = { now: () => 0, monotonic: () => 0 };
const words = { type: 'words', list: ['x'] };
const section = config.parse({
  checks: { a: words, b: words, c: { ...words, on: ['answer'] } },
  policies: { one: ['a'], two: ['b', 'a'], open: { checks: ['c'], uncovered: 'allow' }, strict: ['c'] },
  apply: [
    { policy: 'one', plans: ['pro'] },
    { policy: 'two', models: ['gpt-*-mini'] },
    { policy: 'two', tags: { team: 'search' }, projects: ['hr'] },
  ],
});

function openCheck(name: string): OpenCheck {
  const check = { judge: () => ({ isHit: false }) };
  return { name, settings: section.checks[name]!, check, breaker: new Breaker(clock), digest: '' };
}

const open = new Map(['a', 'b', 'c'].map((name) => [name, openCheck(name)]));

test('all policies that match are added up, and a call that none matches has none', () => {
  const policies = new Policies(section, open);
  const of = (caller: Partial<Caller>, ...models: string[]) =>
    policies.of({ caller: caller as Caller, models })?.checks.map(({ name }) => name);
  assert.equal(of({ plan: 'free' }, 'm'), undefined);
  assert.deepEqual(of({ plan: 'pro' }, 'm'), ['a']);
  assert.deepEqual(of({ plan: 'pro' }, 'gpt-5-mini'), ['a', 'b']);
  assert.equal(of({ plan: 'free' }, 'gpt-5-minimal'), undefined);
  const tags = new Map([['team', 'search']]);
  assert.equal(of({ plan: 'free', tags }, 'm'), undefined);
  assert.deepEqual(of({ plan: 'free', tags, project: 'hr' }, 'm'), ['b', 'a']);
  // The model of a message in a session is not known.
  assert.deepEqual(of({ plan: 'free' }), ['b', 'a']);
});

test('a warning names the operations with answers that cannot be checked, unless the policy allows them', () => {
  const endpoint = (operation: string, ...setsOnOpen: NonNullable<Endpoint['setsOnOpen']>) =>
    ({ method: 'POST', path: '/', operation, setsOnOpen }) as Endpoint;
  const endpoints = [
    endpoint('chat', call, opened),
    endpoint('embeddings', call),
    endpoint('realtime', call),
    endpoint('spoken', call),
  ];
  const noticesOf = (policy: string) => coverageNotices({ ...section, apply: [{ policy }] }, endpoints);
  assert.match(noticesOf('strict')[0]!.text, /cannot be checked.*\(strict\): spoken\.$/);
  assert.deepEqual(noticesOf('open'), []);
});

test('the schema that a request asks for is found in every protocol', () => {
  const schema = { type: 'object', properties: { n: { type: 'number' } } };
  const google = { type: 'OBJECT', properties: { n: { type: 'NUMBER' } }, propertyOrdering: ['n'] };
  for (const json of [
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
    { text: { format: { type: 'json_schema', name: 'x', schema } } },
    { output_format: { type: 'json_schema', schema } },
    { generationConfig: { responseJsonSchema: schema } },
    { generationConfig: { responseSchema: google } },
  ])
    assert.deepEqual(requestedSchema(json), schema);
  assert.equal(requestedSchema({ text: 'x' }), undefined);
});

test('earlier turns are written to their places, and without a change the prompt is the same object', () => {
  const prompt: Prompt = {
    tools: [],
    turns: [
      { role: 'user', parts: [{ kind: 'text', text: 'one' }] },
      { role: 'assistant', parts: [{ kind: 'tool-call', id: 'c', name: 'f', input: '{"a":"two"}' }] },
      { role: 'user', parts: [{ kind: 'tool-result', callId: 'c', parts: [{ kind: 'text', text: 'three' }] }] },
    ],
  };
  const texts = new KeptTurns(prompt);
  assert.equal(texts.written(), prompt);
  assert.deepEqual(
    texts.texts.map(({ kind, text }) => [kind, text]),
    [
      ['text', 'one'],
      ['call', '{"a":"two"}'],
      ['result', 'three'],
    ],
  );
  texts.replace(texts.texts[2]!, '3');
  texts.replace(texts.texts[0]!, '1');
  const [first, second, third] = texts.written().turns;
  assert.deepEqual(first!.parts, [{ kind: 'text', text: '1' }]);
  assert.equal(second!.parts[0], prompt.turns[1]!.parts[0]);
  assert.deepEqual(third!.parts, [{ kind: 'tool-result', callId: 'c', parts: [{ kind: 'text', text: '3' }] }]);
});

test('strings, names and numbers of JSON are texts, and a changed number becomes one', () => {
  let written = '';
  const piece = jsonPiece('{"card": 4111111111111111, "to": ["x"]}', 'assistant', (by) => {
    written = by;
  })!;
  assert.deepEqual(
    piece.texts.map(({ text }) => text),
    ['card', '4111111111111111', 'to', 'x'],
  );
  piece.write(new Map([[1, [{ start: 0, end: 16, by: '[CARD-1]' }]]]));
  assert.equal(written, '{"card":"[CARD-1]","to":["x"]}');
  assert.equal(
    jsonPiece('plain', 'assistant', () => {}),
    undefined,
  );
});

test('arguments in which a member stands twice keep the last one, and those that are nested too deeply are not judged', () => {
  let written = '';
  const write = (by: string) => {
    written = by;
  };
  const piece = jsonPiece('{"to":"\\u0061 secret","to":"x"}', 'assistant', write)!;
  assert.deepEqual([piece.texts.map(({ text }) => text), written], [['to', 'x'], '{"to":"x"}']);
  for (const depth of [200, 200_000])
    assert.throws(() => jsonPiece('['.repeat(depth) + ']'.repeat(depth), 'assistant', write), DepthError);
});

test('sealed placeholders are opened by their own account and answer alone', () => {
  const key = Buffer.alloc(32, 7);
  const texts = new Map([['[EMAIL-1]', 'ada@example.com']]);
  const text = sealed(texts, Buffer.alloc(nonceBytes, 1), { key, about: 'account answer' });
  assert.deepEqual(unsealed(text, { key, about: 'account answer' }), texts);
  assert.equal(unsealed(text, { key, about: 'other answer' }).size, 0);
  assert.equal(unsealed(text, { key: Buffer.alloc(32, 8), about: 'account answer' }).size, 0);
  assert.equal(unsealed('no seal', { key, about: 'account answer' }).size, 0);
});

test('the gravest verdict of a check counts, with all of its findings', () => {
  const verdicts = new Verdicts();
  const said = { check: 'a', ms: 1, digest: '' };
  verdicts.add({ ...said, stage: 'prompt', said: 'masked', findings: 2 });
  verdicts.add({ ...said, stage: 'prompt', said: 'passed', findings: 0 });
  verdicts.add({ ...said, stage: 'answer', said: 'passed', findings: 0 });
  verdicts.add({ ...said, check: 'b', stage: 'prompt', said: 'passed', findings: 0 });
  assert.equal(verdicts.header, 'a=masked(2), b=passed');
  assert.equal(verdicts.all.length, 3);
});

test('a check that fails five times in a row rests, and is tried again', () => {
  let now = 0;
  const breaker = new Breaker({ now: () => now, monotonic: () => now });
  for (let times = 0; times < 5; times++) {
    assert.equal(breaker.isOpen, false);
    breaker.failed();
  }
  assert.equal(breaker.isOpen, true);
  now = 10_000;
  assert.equal(breaker.isOpen, false);
  // One call tries it.
  assert.equal(breaker.isOpen, true);
  breaker.succeeded();
  assert.equal(breaker.isOpen, false);
});

test('without a policy no call enters the plugin, and no text of a request is looked for', async () => {
  const endpoint = { method: 'POST', path: '/', operation: 'chat', setsOnOpen: [call, opened] } as Endpoint;
  const appliesWith = async (more: object) => {
    const host = fakeHost();
    const part = await setUp(plugin, host, { checks: { a: words }, policies: { p: ['a'] }, ...more });
    await part.lifecycle!.start!();
    const [rule] = host.extensions(prompts);
    const context = { operation: 'chat', requestId: 'r', find: () => undefined };
    // No call of this id has policies.
    assert.notEqual(rule?.applies?.(context), true);
    return part.applies!(endpoint);
  };
  assert.equal(await appliesWith({}), false);
  assert.equal(await appliesWith({ apply: [{ policy: 'p' }] }), true);
});

test("the operators' page shows rates and policies, and tries a text", async () => {
  const tools: CallTools = { clock, log: { warn: () => {} }, broken: () => {}, digest: () => '', said: () => {} };
  const policies = async () => new Policies(section, open);
  const { routes } = guardrailPage({ rows: undefined, clock, tools, policies });
  const actor = { label: 'x', role: 'operator' } as const;
  const request = { params: {}, query: { days: 7 }, body: undefined, actor };
  assert.deepEqual(await routes![0]!.handle(request), {
    policies: ['one', 'two', 'open', 'strict'],
    ...{ checks: [], findings: [] },
  });
  const body = { policy: 'two', text: 'hello', stage: 'prompt' };
  const tried = (await routes![2]!.handle({ ...request, body })) as { text: string; checks: { check: string }[] };
  assert.deepEqual([tried.text, tried.checks.map(({ check }) => check)], ['hello', ['b', 'a']]);
  await assert.rejects(async () => routes![2]!.handle({ ...request, body: { ...body, policy: 'x' } }), /no policy "x"/);
});
