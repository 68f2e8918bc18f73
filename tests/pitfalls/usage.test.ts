/** What vendors report oddly, as clients of other protocols read it and as it is charged. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cost } from '../../plugins/common/domain/money.ts';
import type { Usage } from '../../plugins/common/domain/usage.ts';
import { clients } from '../matrix/clients/index.ts';
import type { Play, ProtocolName, Seen } from '../matrix/scenario.ts';
import { protocolNames } from '../matrix/scenario.ts';
import { readBody, relay, streamAnswer } from '../plugins/protocol-convert/harness.ts';
import { bytesOf, hello, nameOf, pairs, streamed, streamOf } from './relayed.ts';

const cached = { input: 5210, cacheRead: 4096, cacheWrite: 1024, output: 230, reasoning: 180 };
const withCache: Play = { ...hello, reasoning: { text: 'Hm.', signature: 'c2ln' }, usage: cached };

/** The classes that are charged, of a stream that comes like this. */
async function metered(vendor: ProtocolName, stream: string): Promise<Usage> {
  const client = vendor === 'chat' ? 'messages' : 'chat';
  const request = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;
  const wording = clients[client].word(request, { model: 'model', isStream: true });
  const relayed = await relay({ ...wording, target: { protocol: vendor } }, streamAnswer([stream]));
  await readBody(relayed.answer.body);
  return relayed.report!.usage;
}

/** What chat clients do not see of a vendor of chat, the others do: the same change of its stream, for each of them. */
async function eachOther(vendor: ProtocolName, stream: string, check: (seen: Seen, client: ProtocolName) => void) {
  for (const client of protocolNames.filter((name) => name !== vendor))
    check(await streamed({ client, vendor }, stream), client);
}

test('pitfall 160: a client that did not ask for the usage chunk gets none, although the gateway asks upstream', async () => {
  const request = { model: 'model', messages: [{ role: 'user', content: 'Hello?' }], stream: true };
  for (const vendor of protocolNames) {
    for (const options of [undefined, { include_usage: false }]) {
      const { answer } = await relay(
        {
          path: '/v1/chat/completions',
          body: { ...request, ...(options === undefined ? {} : { stream_options: options }) },
          target: { protocol: vendor, upstream: { streamUsageOption: true } },
        },
        streamAnswer([streamOf(vendor).replaceAll(',"usage":null', '')]),
      );
      const body = (await readBody(answer.body)).toString();
      assert.ok(!body.includes('"usage"'), vendor);
    }
  }
});

test('pitfall 161: of several reports of usage the last counts, wherever it stands', async () => {
  const report = (output: number) =>
    `"usage":{"prompt_tokens":31,"completion_tokens":${output},"total_tokens":${31 + output}}`;
  let count = 0;
  const cumulative = streamOf('chat').replaceAll('"usage":null', () => report(++count));
  await eachOther('chat', cumulative, (seen, client) => assert.equal(seen.usage?.output, 17, client));
  // In the chunk with the finish reason, and no chunk of its own.
  const frames = streamOf('chat').split('\n\n');
  const inFinish = frames
    .filter((frame) => !frame.includes('"choices":[]'))
    .map((frame) => (frame.includes('"finish_reason":"stop"') ? frame.replace('"usage":null', report(17)) : frame));
  await eachOther('chat', inFinish.join('\n\n'), (seen, client) => assert.equal(seen.usage?.output, 17, client));
});

test('pitfall 162: what input means is another thing in each protocol, and is never below zero', async () => {
  for (const pair of pairs) {
    const { usage } = await streamed(pair, streamOf(pair.vendor, withCache));
    assert.equal(usage?.input, cached.input, nameOf(pair));
    assert.equal(usage?.cacheRead, cached.cacheRead, nameOf(pair));
  }
});

test('pitfall 163: tokens read from a cache are charged once, at their own price', async () => {
  const price = {
    input: 3_000_000_000n,
    cache_read: 300_000_000n,
    cache_write_5m: 3_750_000_000n,
    output: 15_000_000_000n,
  };
  const expected = 90n * 3_000n + 4096n * 300n + 1024n * 3_750n + 230n * 15_000n;
  for (const vendor of ['chat', 'responses', 'messages'] as const) {
    const usage = await metered(vendor, streamOf(vendor, withCache));
    assert.equal(cost(usage, price), expected, vendor);
  }
});

test('pitfall 164: a cached count above the prompt is cut to the prompt', async () => {
  const stream = streamOf('chat').replace('"cached_tokens":0', '"cached_tokens":400');
  const usage = await metered('chat', stream);
  assert.equal(usage.cache_read, 31);
  assert.equal(usage.input, 0);
  await eachOther('chat', stream, (seen, client) => assert.equal(seen.usage?.input, 31, client));
});

test('pitfall 165: a partial report at the end is merged over the one at the start, and not added to it', async () => {
  await eachOther('messages', streamOf('messages', withCache), ({ usage }, client) => {
    assert.deepEqual([usage?.input, usage?.output], [cached.input, cached.output], client);
  });
});

test('pitfall 166: zeros before the end are placeholders', async () => {
  const zeros = '"usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}';
  const frames = streamOf('gemini').split('\r\n\r\n');
  const stream = frames.map((frame, index) =>
    index === 0 ? frame.replace(/"usageMetadata":\{.*\](?=\})\}/, zeros) : frame,
  );
  assert.ok(stream[0]!.includes(zeros));
  await eachOther('gemini', stream.join('\r\n\r\n'), (seen, client) => {
    assert.deepEqual([seen.usage?.input, seen.usage?.output], [31, 17], client);
  });
});

test('pitfall 167: thoughts are output beside the candidates', async () => {
  await eachOther('gemini', streamOf('gemini', withCache), ({ usage }, client) => {
    assert.deepEqual([usage?.output, usage?.reasoning], [cached.output, cached.reasoning], client);
  });
});

test('pitfall 170: reasoning that the vendor leaves out of its completion is output all the same', async () => {
  const stream = streamOf('chat', { ...withCache, usage: { ...cached, output: 50 } }).replaceAll(
    `"total_tokens":${cached.input + 50}`,
    `"total_tokens":${cached.input + 230}`,
  );
  await eachOther('chat', stream, ({ usage }, client) => assert.equal(usage?.output, 230, client));
});

test('pitfall 171: without any report usage is estimated, said to be so, and reported where clients insist on it', async () => {
  const stream = streamOf('chat').replace(/data: [^\n]*"choices":\[\][^\n]*\n\n/, '');
  const { answer, report } = await relay(
    {
      ...clients.messages.word(
        { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] },
        { model: 'model', isStream: true },
      ),
      target: { protocol: 'chat' },
    },
    streamAnswer([stream]),
  );
  const seen = clients.messages.readStream((await readBody(answer.body)).toString());
  assert.equal(report?.estimated, true);
  assert.ok(seen.usage!.input! > 0 && seen.usage!.output! > 0);
});

test('pitfall 172: input tokens are estimated at the start of a messages stream and exact at its end', async () => {
  for (const vendor of ['chat', 'responses', 'gemini'] as const) {
    const bytes = await bytesOf({ client: 'messages', vendor }, [streamOf(vendor, withCache)]);
    const [, start] = /event: message_start\ndata: (.*)/.exec(bytes.toString())!;
    const { message } = JSON.parse(start!) as { message: { usage: { input_tokens: number } } };
    assert.ok(message.usage.input_tokens > 0, vendor);
    const [, delta] = /event: message_delta\ndata: (.*)/.exec(bytes.toString())!;
    const { usage } = JSON.parse(delta!) as { usage: Record<string, number> };
    const isWritten = vendor !== 'gemini';
    assert.deepEqual(
      [usage['input_tokens'], usage['cache_read_input_tokens'], usage['cache_creation_input_tokens']],
      [isWritten ? 90 : 1114, 4096, isWritten ? 1024 : 0],
      vendor,
    );
  }
});

test('pitfall 174: searches that the vendor made are counted apart, and reported to clients that have a word for it', async () => {
  const searched = streamOf('messages').replaceAll('"service_tier"', '"server_tool_use":{"web_search_requests":2},$&');
  const usage = await metered('messages', searched);
  assert.equal(usage.web_search, 2);
  assert.equal(cost(usage, { input: 0n, output: 0n, web_search: 10_000_000n }), 20_000_000n);
});
