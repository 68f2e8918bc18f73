/**
 * `npm run bench:stalls [-- TEXT]`: the longest turn of the gateway's event loop while it handles large and hostile bodies (those with TEXT in
 * their name). The method is in README.md.
 */
import { gzipSync } from 'node:zlib';
import { answerOf, measuredCore, otherCore, start, stop } from './processes.ts';
import { modelOf, type ProtocolName } from './words.ts';

const mebi = 2 ** 20;
const rounds = 4;
const image = `data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA${'A'.repeat(10 * mebi)}`;

interface Case {
  readonly name: string;
  readonly path: string;
  readonly body: string | Buffer;
  readonly encoding?: string;
}

const chatBody = (model: string, content: unknown, more = '') =>
  `{"model":"${model}","messages":[{"role":"user","content":${JSON.stringify(content)}}]${more}}`;

function chat(name: string, body: string | Buffer, encoding?: string): Case {
  return { name, path: '/v1/chat/completions', body, ...(encoding === undefined ? {} : { encoding }) };
}

const picture = [
  { type: 'text', text: 'What is this?' },
  { type: 'image_url', image_url: { url: image } },
];
const to = (upstream: ProtocolName) => modelOf(upstream);
const turns = (count: number, length: number) =>
  Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `${index} ${'word "quoted"\n'.repeat(length)}`,
  }));

/** Without it a body of few bytes would not be a large one. */
const padding = 'x'.repeat(100_000);
const toolWith = (properties: number) => ({
  type: 'function',
  function: {
    name: 'f',
    parameters: {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: properties }, (_, index) => [`p${index}`, { type: 'string' }]),
      ),
    },
  },
});
const callWith = (input: string) => ({
  role: 'assistant',
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: input } }],
});
const thinking = (thoughts: number) => ({
  role: 'assistant',
  content: 'x',
  reasoning_details: Array.from({ length: thoughts }, () => ({ type: 'reasoning.text', text: padding.slice(0, 10) })),
});

const cases: readonly Case[] = [
  chat('a small request', chatBody(to('chat'), 'Hello')),
  chat('a 10 MB image, relayed', chatBody(to('chat'), picture)),
  chat('a 10 MB image, translated to messages', chatBody(to('messages'), picture)),
  chat('a 10 MB image, translated to responses', chatBody(to('responses'), picture)),
  chat('a 10 MB image, translated to gemini', chatBody(to('gemini'), picture)),
  chat('a conversation of 2,000 turns, 5 MB', JSON.stringify({ model: to('chat'), messages: turns(2_000, 180) })),
  chat('as many values as are taken, relayed', JSON.stringify({ model: to('chat'), messages: turns(33_000, 1) })),
  ...(['messages', 'responses', 'gemini'] as const).flatMap((upstream) => [
    chat(
      `as many turns as are translated to ${upstream}`,
      JSON.stringify({ model: to(upstream), messages: turns(8_200, 1) }),
    ),
    chat(
      `as many properties of a tool, to ${upstream}`,
      chatBody(to(upstream), padding, `,"tools":[${JSON.stringify(toolWith(12_000))}]`),
    ),
  ]),
  chat('more values than are translated', JSON.stringify({ model: to('messages'), messages: turns(33_000, 1) })),
  chat(
    '30 MB of [] in the arguments of a call',
    JSON.stringify({
      model: to('messages'),
      messages: [...turns(1, 1), callWith(`{"a":[${'[],'.repeat(10 * mebi)}[]]}`)],
    }),
  ),
  chat(
    '6,000 thoughts of one message',
    JSON.stringify({ model: to('messages'), messages: [...turns(1, 1), thinking(6_000), ...turns(1, 1)] }),
  ),
  chat(
    '12 MB with a million members',
    chatBody(to('chat'), 'Hello', `,${Array.from({ length: mebi }, (_, index) => `"k${index}":1`).join(',')}`),
  ),
  chat('30 MB of []', `{"model":"${to('chat')}","messages":[${'[],'.repeat(10 * mebi - 50)}[]]}`),
  chat('30 MB of nesting', `{"model":"${to('chat')}","messages":${'['.repeat(30 * mebi)}}`),
  chat('30 MB of white space', `{"model":"${to('chat')}",${' '.repeat(30 * mebi)}"messages":[]}`),
  chat('30 MB of escapes', chatBody(to('chat'), '"\\'.repeat(7 * mebi))),
  chat('a gzip bomb', gzipSync(Buffer.alloc(30 * mebi, '[],')), 'gzip'),
];

const upstream = await start('upstream.ts', [], otherCore);
const gateway = await start('gateway.ts', [String(upstream.port), 'full', 'turns'], measuredCore);
const key = gateway.key;

async function send({ path, body, encoding }: Case): Promise<number> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
  };
  const answer = await fetch(`http://127.0.0.1:${gateway.port}${path}`, {
    method: 'POST',
    headers,
    body: body as string,
  });
  await answer.arrayBuffer();
  return answer.status;
}

console.log('longest turn of the event loop, ms of processor time; best and worst of the rounds after the first\n');
for (const each of cases.filter(({ name }) => name.includes(process.argv[2] ?? ''))) {
  const longest: number[] = [];
  let status = 0;
  for (let round = 0; round <= rounds; round++) {
    await answerOf(gateway);
    status = await send(each);
    if (round > 0) longest.push(await answerOf(gateway));
  }
  const figures = `${Math.min(...longest).toFixed(1)}–${Math.max(...longest).toFixed(1)}`;
  console.log(`${each.name.padEnd(44)} ${status}  ${figures}`);
}
for (const started of [gateway, upstream]) stop(started);
