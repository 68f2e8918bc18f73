/** What calls cost of which checks refuse the answer: what their vendors have done, in every protocol, reported or not. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startGateway, startVendor, type TestGateway, type Vendor } from '../../../plugins/common/author/testing.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { until } from '../../helpers/until.ts';
import { clients } from '../../matrix/clients/index.ts';
import { type ProtocolName, protocolNames } from '../../matrix/scenario.ts';
import { vendors as words } from '../../matrix/vendors/index.ts';

let vendors: Record<ProtocolName, Vendor>;
let service: Vendor;
let gateway: TestGateway;
let key: string;

/** What becomes of the answer of a model whose name begins so. */
const fates = ['refuse', 'instead', 'broken', 'beside', 'kindly'] as const;

before(async () => {
  service = await startVendor();
  const started = await Promise.all(protocolNames.map(async (name) => [name, await startVendor()] as const));
  vendors = Object.fromEntries(started) as typeof vendors;
  const bases = { chat: '/v1', responses: '/v1', messages: '', gemini: '/v1beta' };
  const outside = { type: 'litellm', url: service.origin, allow_private: true };
  const plugins = [
    'storage',
    'files',
    'auth',
    'providers',
    'models',
    'guardrails',
    'prompts',
    'idempotency',
    'billing',
  ];
  gateway = await startGateway({
    plugins: [...plugins, 'route', 'protocol-convert', 'endpoints'],
    providers: Object.fromEntries(
      protocolNames.map((name) => [name, { keys: 'k', speaks: { [name]: vendors[name].origin + bases[name] } }]),
    ),
    models: Object.fromEntries(
      fates.flatMap((fate) =>
        protocolNames.map((name) => [
          `${fate}-${name}`,
          { owned_by: 'x', targets: [name], price: { input: 10, output: 100 } },
        ]),
      ),
    ),
    guardrails: {
      checks: {
        refuse: { type: 'words', list: ['banana'], on: ['answer'] },
        instead: { type: 'words', list: ['banana'], on: ['answer'], as: 'answer', message: 'No fruit.' },
        broken: { ...outside, on: ['answer'] },
        beside: { ...outside, on: ['prompt'], beside: true },
        kindly: { ...outside, on: ['prompt'], beside: true, as: 'answer', message: 'No fruit.' },
      },
      policies: Object.fromEntries(fates.map((fate) => [fate, [fate]])),
      apply: fates.map((fate) => ({ policy: fate, models: [`${fate}-*`] })),
    },
  });
  await gateway.run('accounts create', { name: 'ada', credit: '10' });
  key = ((await gateway.run('keys create', { account: 'ada', name: 'one' })) as { key: string }).key;
});
after(async () => {
  await gateway?.stop();
  await Promise.all([service?.stop(), ...Object.values(vendors).map((vendor) => vendor.stop())]);
});

const withoutUsage = (json: string) =>
  JSON.stringify(JSON.parse(json), (name, value) => (/^usage(Metadata)?$/.test(name) ? undefined : value));

interface Asked {
  readonly client?: ProtocolName;
  readonly isStream: boolean;
  readonly reports: boolean;
  /** An Idempotency-Key. */
  readonly once?: string;
}

async function answerOf(fate: (typeof fates)[number], vendor: ProtocolName, asked: Asked) {
  const { client = vendor, isStream, reports, once } = asked;
  const model = `${fate}-${vendor}`;
  const usage = { input: 20, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };
  const play = { text: 'A banana is a fruit, and more is said of it here.', meaning: 'stop', usage } as const;
  const made = isStream ? words[vendor].stream(play, model).join('') : words[vendor].whole(play, model);
  const silent = isStream ? made.replace(/(?<=^data: ?)\{.*\}$/gm, withoutUsage) : withoutUsage(made);
  const type = isStream ? 'text/event-stream' : 'application/json';
  vendors[vendor].play({ headers: { 'content-type': type }, body: reports ? made : silent });
  const turns = [{ by: 'user', parts: [{ kind: 'text', text: 'What of it?' }] }] as const;
  const wording = clients[client].word({ turns, maxOutputTokens: 500 }, { model, isStream });
  const { 'x-api-key': _key, 'x-goog-api-key': _other, ...rest } = wording.headers as Record<string, string>;
  const headers = {
    'content-type': 'application/json',
    ...rest,
    authorization: `Bearer ${key}`,
    ...(once === undefined ? {} : { 'idempotency-key': once }),
  };
  const answer = await fetch(gateway.origin + wording.path, { method: 'POST', headers, body: wording.body });
  return {
    id: answer.headers.get('x-request-id')!,
    status: answer.status,
    headers: answer.headers,
    text: await answer.text(),
  };
}

/** What these calls have cost, in their order. */
async function costsOf(ids: readonly string[]): Promise<bigint[]> {
  const { safe, endOf } = gateway.find(ledger)!;
  const end = async (id: string) => {
    await safe();
    const known = await endOf(id);
    return known === 'open' ? undefined : known;
  };
  for (const id of ids) await until('the call has ended', () => end(id), 10_000);
  const { rows } = (await gateway.run('ledger', { name: 'ada', limit: '500' })) as {
    rows: { request: string; change: string }[];
  };
  const rowOf = (id: string) => rows.find(({ request }) => request === id);
  return ids.map((id) => -BigInt(Math.round(Number(rowOf(id)?.change ?? '0') * 1e9)));
}

/** 20 tokens at 10 dollars a million, and 30 at 100. */
const full = 3_200_000n;

test('a refused answer costs what its vendor has done, in each protocol and from one to another, whole and streamed, reported or not', async () => {
  const calls: { readonly id: string; readonly what: string; readonly isWhole: boolean }[] = [];
  service.play({ status: 500, body: '{}' });
  for (const vendor of protocolNames)
    for (const client of [vendor, protocolNames[(protocolNames.indexOf(vendor) + 1) % protocolNames.length]!])
      for (const isStream of [false, true])
        for (const reports of [true, false])
          for (const fate of ['refuse', 'instead', 'broken'] as const) {
            const { id, status, headers, text } = await answerOf(fate, vendor, { client, isStream, reports });
            const what = `${fate} ${client} on ${vendor}, ${isStream ? 'streamed' : 'whole'}, ${reports ? '' : 'not '}reported: ${text}`;
            assert.doesNotMatch(text, /banana/, what);
            if (!isStream) assert.equal(status, { refuse: 400, instead: 200, broken: 503 }[fate], what);
            // What was paid for is not asked for again.
            if (status === 503) assert.equal(headers.get('x-should-retry'), 'false', what);
            // A stream that was refused is not read to its report.
            calls.push({ id, what, isWhole: reports && !isStream });
          }
  const costs = await costsOf(calls.map(({ id }) => id));
  for (const [index, { what, isWhole }] of calls.entries())
    if (isWhole) assert.equal(costs[index], full, what);
    else assert.ok(costs[index]! > 0n, what);
  assert.deepEqual(((await gateway.run('audit', {})) as { violations: unknown[] }).violations, []);
});

test('an answer whose prompt was refused beside it is not kept under its key: asking again when the service works gives nothing for nothing', async () => {
  const calls: string[] = [];
  for (const fate of ['beside', 'kindly'] as const)
    for (const isStream of [false, true])
      for (const body of fate === 'beside' ? ['{}', '{"action":"BLOCKED"}'] : ['{"action":"BLOCKED"}']) {
        const asked = { isStream, reports: true, once: `${fate} ${isStream} ${body.length}` };
        service.play({ body });
        const refused = await answerOf(fate, 'chat', asked);
        assert.equal(refused.status, body === '{}' ? 503 : fate === 'beside' ? 400 : 200);
        service.play({ body: '{"action":"NONE"}' });
        const again = await answerOf(fate, 'chat', asked);
        assert.equal(again.status, 409, again.text);
        assert.doesNotMatch(refused.text + again.text, /banana/);
        calls.push(refused.id);
      }
  assert.deepEqual(
    await costsOf(calls),
    calls.map(() => 0n),
  );
});
