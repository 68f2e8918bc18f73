/** Every stream that a vendor has answered, translated to each other protocol: all of its clients understand it, and the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../core/json/json.ts';
import type { ReplyContext } from '../../../plugins/common/canonical/codec.ts';
import { ReplyEvents } from '../../../plugins/common/canonical/events.ts';
import { FrameReader, parseFrame } from '../../../plugins/common/kit/sse.ts';
import { protocols } from '../../../plugins/protocol-convert/protocols/index.ts';
import { type AnswerPart, type Oracle, streamOracles, type Understood } from '../oracles.ts';
import { type Family, families, type Recording, recordings } from '../recordings.ts';

/** Requests whose answers show all that there is. */
const requests: Readonly<Record<Family, JsonObject>> = {
  chat: { stream: true, stream_options: { include_usage: true } },
  responses: { stream: true, input: 'Hello', include: ['reasoning.encrypted_content'] },
  messages: { stream: true, thinking: { type: 'adaptive', display: 'summarized' } },
  gemini: { contents: [], generationConfig: { thinkingConfig: { includeThoughts: true } } },
};

/** By recording: what the AI SDK tells otherwise than the others. */
const differentParts: Readonly<Record<string, AnswerPart>> = {
  'openai-gpt-4o-2024-08-06-n-choices-stream-7bef': 'text',
  'openai-gpt-4o-refusal-json-schema-stream-81a5': 'text',
};

const codecOf = (family: Family) => protocols.find(({ name }) => name === family)!.codec!;

for (const from of families)
  for (const to of families.filter((family) => family !== from))
    test(`vendors' recorded streams of ${from} are read by every client of ${to}`, async () => {
      let understoodCount = 0;
      for (const recording of recordings(from).filter(isWholeStream)) {
        const body = translated(recording, from, to);
        if (body === undefined) continue;
        const understood: [Oracle, Understood][] = [];
        for (const oracle of streamOracles[to]) {
          const where = `${recording.name}, ${oracle.name}`;
          const one = await oracle
            .understand({ body, contentType: 'text/event-stream' })
            .catch((error: unknown) => assert.fail(`${where}: ${error}`));
          understood.push([oracle, one]);
          understoodCount++;
        }
        assertSame(recording, understood);
      }
      assert.ok(understoodCount >= 20, `only ${understoodCount} were understood`);
    });

function isWholeStream({ status, isStream, name }: Recording): boolean {
  return status === 200 && isStream && !/jsonarray|midstream-err/.test(name);
}

/** The client's stream; undefined where the vendor says that there is no answer. */
function translated(recording: Recording, from: Family, to: Family): string | undefined {
  const encoder = codecOf(to).createEncoder(contextOf(recording, to));
  let stream = '';
  const events = new ReplyEvents(
    (event) => {
      stream += encoder.event(event);
    },
    { names: new Map(), idSeed: 'seed' },
  );
  const decoder = codecOf(from).createDecoder(events);
  const reader = new FrameReader((raw) => {
    const frame = parseFrame(raw);
    if (frame?.data.startsWith('{')) decoder.payload(JSON.parse(frame.data), frame.event);
  });
  reader.feed(recording.response);
  reader.feed(Buffer.from('\n\n'));
  decoder.end();
  return events.failure === undefined ? stream + encoder.finish() : undefined;
}

function contextOf({ name }: Recording, to: Family): ReplyContext {
  return {
    exchangeId: 'exchange',
    call: {
      protocol: to,
      model: 'asked',
      stream: true,
      billable: true,
      inputTokens: 1,
      maxOutputTokens: undefined,
      choices: name.includes('n-choices') ? 3 : 1,
    },
    request: requests[to],
    query: new URLSearchParams('alt=sse'),
    createdAt: 1_700_000_000,
    now: () => 1_700_000_009,
    seal: (opaqueState) => `gw1.${Buffer.from(opaqueState).toString('base64url')}`,
    usage: () => ({ usage: { input: 1_000, cache_read: 200, output: 40, reasoning: 10 }, estimated: false }),
  };
}

function assertSame({ name }: Recording, understood: readonly [Oracle, Understood][]): void {
  const [[, first], ...others] = understood as [[Oracle, Understood], ...[Oracle, Understood][]];
  assert.deepEqual(countsOf(first), { input: 1_200, output: 50, cacheRead: 200, reasoning: 10 });
  for (const [oracle, other] of others) {
    const where = `${name}, ${oracle.name}`;
    assert.deepEqual(countsOf(other), countsOf(first), where);
    assert.equal(other.stop, first.stop, where);
    assert.deepEqual(other.tools, first.tools, where);
    for (const member of ['text', 'reasoning'] as const)
      if (!oracle.blindTo?.includes(member) && !(oracle.name === 'ai-sdk' && differentParts[name] === member))
        assert.equal(other[member], first[member], `${where}: ${member}`);
  }
}

function countsOf({ usage: { input, output, cacheRead, reasoning } }: Understood): object {
  return { input, output, cacheRead, reasoning };
}
