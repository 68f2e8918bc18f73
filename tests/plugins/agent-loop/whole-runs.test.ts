/** Runs with everything at once: three tools called in one turn, of which one fails and one may wait for approval, for clients and models of four protocols. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { streamOracles, wholeOracles } from '../../helpers/oracles.ts';
import { until } from '../../helpers/until.ts';
import { families, type Json, openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.gateway.stop());

const question = 'What is the weather in Atlantis, what is the time in Europe/Oslo, and where is order 7?';
const server = 'gateway://sandbox';
const toolPrice = parseUsd('0.5');

type Protocol = (typeof families)[number];
type Account = Awaited<ReturnType<World['account']>>;

interface Request {
  readonly path: string;
  readonly body: object;
  readonly headers?: Record<string, string>;
}

const asked = (tool: object) => [{ type: 'mcp', server_label: 'town', server_url: server, ...tool }];

const requests: Readonly<Record<Protocol, (model: string, stream: boolean) => Request>> = {
  chat: (model, stream) => ({
    path: '/v1/chat/completions',
    body: { model, stream, messages: [{ role: 'user', content: question }], tools: asked({}) },
  }),
  responses: (model, stream) => ({
    path: '/v1/responses',
    body: { model, stream, input: question, tools: asked({ require_approval: 'never' }) },
  }),
  messages: (model, stream) => ({
    path: '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'mcp-client-2025-11-20' },
    body: {
      ...{ model, stream, max_tokens: 900, messages: [{ role: 'user', content: question }] },
      mcp_servers: [{ type: 'url', url: server, name: 'town' }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'town' }],
    },
  }),
  gemini: (model, stream) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: {
      contents: [{ role: 'user', parts: [{ text: question }] }],
      tools: [{ mcpServers: [{ name: 'town', streamableHttpTransport: { url: server } }] }],
    },
  }),
};

/** The answer's bytes, which every official client of the protocol reads, and what one of them understands; the id of the run. */
async function judged(protocol: Protocol, stream: boolean, { path, body, headers }: Request, { key }: Account) {
  const response = await world.post(path, key, body, headers);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const answered = { body: text, contentType: response.headers.get('content-type')! };
  const readings = [];
  for (const oracle of (stream ? streamOracles : wholeOracles)[protocol])
    readings.push(await oracle.understand(answered).catch((error) => assert.fail(`${oracle.name}: ${error}\n${text}`)));
  return { text, said: readings[0]!.text, run: response.headers.get('x-request-id')! };
}

/** Each step of these runs is on a bill and in the ledger once, at its price to the nano-dollar, and nothing is held. */
async function isPaid({ id, key }: Account, runs: readonly string[], tools: number, turns: number): Promise<void> {
  const charges = await world.charges(id, tools + turns);
  const steps: Json[] = [];
  for (const run of runs) {
    const bill = await fetch(`${world.gateway.origin}/v1/usage/runs/${run}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    steps.push(...((await bill.json()) as Json).steps);
  }
  assert.deepEqual(
    steps.map(({ request_id, cost }) => `${request_id} -${cost}`).sort(),
    charges.map(({ request, change }) => `${request} ${change}`).sort(),
  );
  let sum = 0n;
  for (const { kind, cost, usage } of steps) {
    const { input = 0, output = 0 } = usage;
    const price = kind === 'tool' ? toolPrice : BigInt(input) * 1_000n + BigInt(output) * 10_000n;
    assert.equal(parseUsd(cost), price, JSON.stringify(usage));
    sum += price;
  }
  assert.deepEqual([steps.filter(({ kind }) => kind === 'tool').length, steps.length], [tools, tools + turns]);
  const ledger = world.gateway.gateway.commands.find(({ name }) => name === 'ledger')!;
  await until('nothing is held', async () => {
    const { held } = (await ledger.run({ account: id, limit: '1' })).json as Json;
    return held === '0.00';
  });
  assert.equal(parseUsd(await world.balance(id)), parseUsd('100') - sum);
}

const done = /sandbox__order answered: .*"number":7/;

for (const protocol of families)
  for (const family of families)
    test(`a client of ${protocol} reads what three tools have said to a model of ${family}, one of which has failed, whole and streamed, and pays for the others`, async () => {
      for (const stream of [false, true]) {
        const account = await world.account();
        const { said, run } = await judged(protocol, stream, requests[protocol](`of-${family}`, stream), account);
        assert.match(said, done);
        assert.match(said, /sandbox__time answered: .*Europe\/Oslo/);
        assert.match(said, /There is no weather in Atlantis/);
        await isPaid(account, [run], 2, 2);
      }
    });

for (const family of families)
  test(`three tools that a model of ${family} calls at once: one is made, one fails and one waits for approval, whole and streamed, and each is paid once`, async () => {
    for (const stream of [false, true]) {
      const account = await world.account();
      const approval = { never: { tool_names: ['weather', 'time'] } };
      const ask = async (more: object) => {
        const body = { model: `of-${family}`, stream, tools: asked({ require_approval: approval }), ...more };
        const { text, run } = await judged('responses', stream, { path: '/v1/responses', body }, account);
        const answer: Json = stream ? JSON.parse(text.trim().split('data: ').at(-1)!).response : JSON.parse(text);
        return { answer, run };
      };
      const first = await ask({ input: question });
      const [list, ...items] = first.answer.output;
      const byName = Object.fromEntries(items.map((item: Json) => [item.name, item]));
      assert.equal(list.type, 'mcp_list_tools');
      assert.deepEqual(Object.keys(byName).sort(), ['sandbox__order', 'sandbox__time', 'sandbox__weather']);
      const { sandbox__order: order, sandbox__time: time, sandbox__weather: weather } = byName;
      assert.deepEqual([order.type, time.type, weather.type], ['mcp_approval_request', 'mcp_call', 'mcp_call']);
      assert.deepEqual([order.arguments, weather.status, weather.error].map(String), [
        '{"number":7}',
        'failed',
        'There is no weather in Atlantis.',
      ]);
      assert.equal(JSON.parse(time.output).zone, 'Europe/Oslo');
      const verdict = { type: 'mcp_approval_response', approval_request_id: order.id, approve: true };
      const second = await ask({ previous_response_id: first.answer.id, input: [verdict] });
      assert.deepEqual(
        second.answer.output.map(({ type }: Json) => type),
        ['mcp_call', 'message'],
      );
      assert.match(second.answer.output[1].content[0].text, done);
      await isPaid(account, [first.run, second.run], 2, 2);
    }
  });
