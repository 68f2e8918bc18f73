/** A gateway that is killed in the middle of runs with tools: what was done is charged once, nothing stays held, and nothing is done again. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { establish } from './process.ts';
import { until } from './testbed.ts';

/** Where a run stands when its gateway is killed. */
const places = ['first turn', 'tool', 'second turn'] as const;
type Place = (typeof places)[number];

// biome-ignore lint/suspicious/noExplicitAny: requests of two protocols
type Json = any;

/** A model that calls the one tool that it is given, and the server of that tool; each falls silent where the question says so. */
async function startVendor(context: TestContext) {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Json;
    const answer = request.url === '/mcp' ? toolAnswer(body, seen) : modelAnswer(body, seen);
    if (answer === undefined) return;
    response.writeHead(answer.id === null ? 202 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

type Answer = { readonly id: unknown } & Readonly<Record<string, unknown>>;

/** undefined: no answer ever comes. */
function modelAnswer({ messages, tools }: Json, seen: string[]): Answer | undefined {
  const place = messages.find(({ role }: Json) => role === 'user').content as Place;
  const now = messages.some(({ role }: Json) => role === 'tool') ? 'second turn' : 'first turn';
  seen.push(`${place}: ${now}`);
  if (place === now) return undefined;
  const call = { name: tools[0].function.name, arguments: JSON.stringify({ place }) };
  return {
    id: 'c',
    ...{ object: 'chat.completion', created: 1, model: 'm' },
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: call }] },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
  };
}

const inputSchema = { type: 'object', properties: { place: { type: 'string' } } };

function toolAnswer({ id = null, method, params }: Json, seen: string[]): Answer | undefined {
  const answer = (result: object) => ({ jsonrpc: '2.0', id, result });
  if (method === 'initialize') {
    const { protocolVersion } = params;
    const about = { capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };
    return answer({ protocolVersion, ...about });
  }
  if (method === 'tools/list') return answer({ tools: [{ name: 'look', inputSchema }] });
  if (method === 'tools/call') {
    const { place } = params.arguments;
    seen.push(`${place}: tool`);
    return place === 'tool' ? undefined : answer({ content: [{ type: 'text', text: 'seen' }] });
  }
  if (id === null) return { id };
  return { id, ...{ jsonrpc: '2.0', error: { code: -32_601, message: 'Method not found' } } };
}

test('a gateway that is killed in a turn or a tool of runs leaves each step that was sent charged once, nothing held, and no run that goes on', async (context) => {
  const { origin, seen } = await startVendor(context);
  const testbed = await establish(
    {
      plugins: [
        ...['storage', 'request-log', 'auth', 'plans', 'agent-loop', 'rate-limit', 'providers', 'models'],
        ...['idempotency', 'billing', 'mcp', 'route', 'protocol-convert'],
      ],
      providers: { vendor: { keys: 'key', speaks: { chat: `${origin}/v1` } } },
      models: {
        m: {
          ...{ owned_by: 'x', context: '100k', max_output: 1000, targets: ['vendor'] },
          price: { input: 1, output: 10 },
        },
      },
      mcp: { servers: { eyes: { url: `${origin}/mcp`, allow_private: true, price: { call: 0.5 } } } },
      'agent-loop': {},
    },
    places.length,
  );
  context.after(() => testbed.close());
  const serving = await testbed.start();
  const tools = [{ type: 'mcp', server_label: 'eyes', server_url: 'gateway://eyes', require_approval: 'never' }];
  const runs = places.map(async (place, index) => {
    const { key } = testbed.customers[index]!;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'm', input: place, tools });
    const answer = await fetch(`${testbed.origin}/v1/responses`, { method: 'POST', headers, body });
    return `${answer.status} ${await answer.text()}`;
  });
  const ended = Promise.all(runs.map((run) => run.catch(() => 'broken off')));
  const expected = [
    ...['first turn: first turn', 'second turn: first turn', 'second turn: second turn', 'second turn: tool'],
    ...['tool: first turn', 'tool: tool'],
  ];
  await until('every run stands where it is killed', () => seen.length >= expected.length);
  serving.kill('SIGKILL');
  await once(serving, 'exit');
  assert.deepEqual(new Set(await ended), new Set(['broken off']));
  const again = await testbed.start();
  again.kill('SIGTERM');
  await once(again, 'exit');
  // Nothing was done twice, or went on.
  assert.deepEqual(seen.toSorted(), expected);
  await testbed.runAsCommand(async (gateway) => {
    // A turn of 100 and 10 tokens, and the tool.
    const [turn, tool] = [200_000n, 500_000_000n];
    const steps = [[], [turn], [turn, tool]];
    for (const [index, done] of steps.entries()) {
      const customer = testbed.customers[index]!;
      const { charges } = await gateway.records(customer, done.length + 1);
      const costs = charges.map(({ cost }) => cost);
      const [brokenOff] = charges.filter(({ estimated }) => estimated);
      assert.deepEqual(costs.slice(0, -1), done, places[index]!);
      assert.equal(brokenOff, charges.at(-1), 'what was sent and not answered is charged by estimate');
      if (places[index] === 'tool') assert.equal(costs.at(-1), tool);
      else assert.ok(costs.at(-1)! > 0n && !brokenOff!.classes.output, 'the prompt alone');
      const sum = costs.reduce((all, cost) => all + cost, 0n);
      assert.equal(await gateway.balance(customer), 100_000_000_000n - sum);
    }
    await gateway.audit();
  });
});
