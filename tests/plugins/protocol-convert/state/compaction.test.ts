/** Compaction for vendors that have none: the prompt that asks for a summary, and the item, stream and object that carry it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import type { Event, Reply } from '../../../../plugins/common/canonical/reply.ts';
import {
  compactionAnswerCodec,
  compactionItemCodec,
} from '../../../../plugins/protocol-convert/protocols/responses/compaction-reply.ts';
import { compactionMaker } from '../../../../plugins/protocol-convert/protocols/responses/decode/input.ts';
import { decodeRequest } from '../../../../plugins/protocol-convert/protocols/responses/decode/request.ts';
import { compactionPrompt, sealedSummary } from '../../../../plugins/protocol-convert/state/compaction.ts';
import { targetFor } from '../harness.ts';
import { user, world } from './harness.ts';

const conversation: Prompt = {
  turns: [
    { role: 'user', parts: [{ kind: 'text', text: 'fix src/a.ts' }] },
    { role: 'assistant', parts: [{ kind: 'tool-call', id: 'c', name: 'read', input: '{}' }] },
    { role: 'user', parts: [{ kind: 'tool-result', callId: 'c', parts: [{ kind: 'text', text: 'code' }] }] },
  ],
  tools: [{ kind: 'function', name: 'read' }],
  toolChoice: { mode: 'required' },
  parallelTools: true,
  maxOutputTokens: 900,
  stop: ['END'],
  choices: 2,
  output: { form: 'json' },
  reasoning: { effort: 'high' },
};

test('the order to summarise follows the whole conversation, and no tool may be called', () => {
  const prompt = compactionPrompt(conversation);
  assert.deepEqual(prompt.turns.slice(0, 3), conversation.turns);
  assert.equal(prompt.turns.length, 4);
  assert.equal(prompt.turns[3]!.role, 'user');
  assert.deepEqual([prompt.tools, prompt.toolChoice], [conversation.tools, { mode: 'none' }]);
  assert.deepEqual([prompt.maxOutputTokens, prompt.reasoning], [900, { effort: 'high' }]);
  for (const gone of ['stop', 'choices', 'output', 'parallelTools'] as const) assert.equal(gone in prompt, false, gone);
});

test('the order asks for goals, decisions, files, open work and exact names', () => {
  const [part] = compactionPrompt(conversation).turns[3]!.parts;
  const text = part?.kind === 'text' ? part.text : '';
  for (const word of ['Goals', 'Decisions', 'Files and names', 'Open work', 'exact'])
    assert.ok(text.includes(word), word);
});

test('a compaction without tools sends no tool choice', () => {
  const { toolChoice, ...rest } = conversation;
  assert.equal(toolChoice?.mode, 'required');
  assert.equal('toolChoice' in compactionPrompt({ ...rest, tools: [] }), false);
});

function contextFor(more: Partial<ReplyContext> = {}): ReplyContext {
  return {
    exchangeId: 'ex',
    call: {
      protocol: 'responses',
      model: 'm',
      stream: true,
      billable: true,
      inputTokens: 1,
      maxOutputTokens: undefined,
      choices: 1,
    },
    request: { model: 'm', input: [user('hi'), { type: 'compaction_trigger' }] },
    createdAt: 1_700_000_000,
    now: () => 1_700_000_009,
    seal: () => assert.fail('a summary is no keepsake of the vendor'),
    usage: () => ({ usage: { input: 100, cache_read: 20, output: 30, reasoning: 5 }, estimated: false }),
    ...more,
  };
}

const seal = (summary: string) => `gw1.${Buffer.from(summary).toString('base64url')}`;
const noFailure = (error: GatewayError): void => assert.fail(error.message);

/** What a decoder would tell of an answer that thinks, writes in pieces and stops. */
function summarised(texts: readonly string[], stop: 'stop' | 'length' = 'stop'): Event[] {
  const events: Event[] = [];
  const reported = new ReplyEvents((event) => void events.push(event), { names: new Map(), idSeed: 's' });
  reported.start('up_1', 1_700_000_001);
  reported.reasoning(0, 'let me see');
  for (const text of texts) reported.text(0, text);
  reported.stop(0, stop);
  return events;
}

function streamed(events: readonly Event[], context = contextFor(), onFailure = noFailure): string {
  const encoder = compactionItemCodec(seal, onFailure).createEncoder(context);
  return events.map((event) => encoder.event(event)).join('') + encoder.finish();
}

const payloads = (text: string) =>
  text
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as JsonObject);

test('pitfall 212: a stream that was to compact holds exactly one item, the compaction', () => {
  let kept = '';
  const text = streamed(
    summarised(['All ', 'of it.']),
    contextFor({
      onResponse: (response) => {
        kept = response;
      },
    }),
  );
  const reported = payloads(text);
  assert.deepEqual(
    reported.map(({ type }) => type),
    [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.output_item.done',
      'response.completed',
    ],
  );
  assert.deepEqual(
    reported.map((payload) => payload['sequence_number']),
    [0, 1, 2, 3, 4],
  );
  const response = reported[4]!['response'] as JsonObject;
  const item = reported[3]!['item'] as JsonObject;
  assert.deepEqual(response['output'], [item]);
  assert.equal(item['type'], 'compaction');
  assert.equal(item['encrypted_content'], seal(sealedSummary('All of it.')!));
  assert.deepEqual([response['status'], (response['usage'] as JsonObject)['total_tokens']], ['completed', 155]);
  assert.deepEqual(JSON.parse(kept), response);
  assert.ok(text.endsWith('\n\n'));
});

test('the official SDK takes the stream and finds the compaction in its final response', async () => {
  const body = streamed(summarised(['All of it.']));
  const client = new OpenAI({
    apiKey: 'k',
    baseURL: 'http://127.0.0.1:9/v1',
    fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const response = await client.responses.stream({ model: 'm', input: 'x' }).finalResponse();
  assert.deepEqual(
    response.output.map(({ type }) => type),
    ['compaction'],
  );
});

for (const [what, events] of [
  ['missing', summarised([])],
  ['blank', summarised([' \n '])],
  ['cut off', summarised(['half of'], 'length')],
] as const) {
  test(`a summary that is ${what} fails the stream instead of losing the conversation`, () => {
    let failure: GatewayError | undefined;
    const text = streamed(events, contextFor({ onResponse: () => assert.fail('nothing to keep') }), (error) => {
      failure = error;
    });
    assert.deepEqual(
      payloads(text).map(({ type }) => type),
      ['response.created', 'response.in_progress', 'error', 'response.failed'],
    );
    assert.equal(failure?.code, 'compaction_failed');
  });
}

function replyOf(text: string): Reply {
  const parts = [
    { kind: 'reasoning', text: 'hm' },
    { kind: 'text', text },
  ] as const;
  return {
    id: 'up',
    createdAt: 1,
    serviceTier: undefined,
    choices: [{ parts, stop: 'stop', sequence: undefined, cutCalls: new Set() }],
  };
}

test('a whole answer that was to compact is a response with one item', () => {
  let kept = '';
  const onResponse = (text: string) => {
    kept = text;
  };
  const response = compactionItemCodec(seal, noFailure).encodeReply(replyOf('Sum.'), contextFor({ onResponse }));
  assert.deepEqual(JSON.parse(kept), response);
  assert.deepEqual([response['object'], response['status']], ['response', 'completed']);
  assert.deepEqual(response['output'], [
    { id: 'cmp_ex_0', type: 'compaction', encrypted_content: seal(sealedSummary('Sum.')!) },
  ]);
  assert.throws(() => compactionItemCodec(seal, noFailure).encodeReply(replyOf(''), contextFor()), GatewayError);
});

test('the compaction endpoint answers with all messages of the user and then the compaction', () => {
  const json = {
    model: 'm',
    input: [
      { role: 'developer', content: 'rules' },
      user('one'),
      { type: 'message', role: 'assistant', content: 'no' },
      { role: 'user', content: [{ type: 'input_text', text: 'two' }] },
    ],
  };
  const answer = compactionAnswerCodec(json, seal).encodeReply(replyOf('Sum.'), contextFor());
  assert.equal(answer['object'], 'response.compaction');
  const output = answer['output'] as JsonObject[];
  assert.deepEqual(
    output.map(({ type, role }) => [type, role]),
    [
      ['message', 'user'],
      ['message', 'user'],
      ['compaction', undefined],
    ],
  );
  assert.deepEqual(output[0]!['content'], [{ type: 'input_text', text: 'one' }]);
  assert.deepEqual(answer['usage'], {
    input_tokens: 120,
    input_tokens_details: { cached_tokens: 20, cache_write_tokens: 0 },
    output_tokens: 35,
    output_tokens_details: { reasoning_tokens: 5 },
    total_tokens: 155,
  });
});

test('pitfall 210: the compaction comes back as text that any model can read', () => {
  const sealed = new Map<string, string>();
  const sealing = (summary: string) => {
    sealed.set('gw1.x', summary);
    return 'gw1.x';
  };
  const answer = compactionAnswerCodec({ input: 'go' }, sealing).encodeReply(
    replyOf('We fixed src/a.ts.'),
    contextFor(),
  );
  const prompt = decodeRequest(
    { model: 'm', input: [...(answer['output'] as JsonObject[]), user('on')] },
    { dropped: new DroppedParameters({}), open: (text) => ({ maker: compactionMaker, value: sealed.get(text)! }) },
  );
  assert.ok(JSON.stringify(prompt.turns).includes('We fixed src/a.ts.'));
});

test('the order to compact is taken out of a translated request and stays in a relayed one', async () => {
  const here = await world();
  const body = { model: 'm', input: [user('hi'), { type: 'compaction_trigger' }] };
  const { request } = await here.open(body);
  assert.equal(request.compaction, 'item');
  assert.deepEqual(request.json['input'], [user('hi')]);
  const sent = request.prepare(targetFor('responses', 'm')).body;
  assert.equal(Buffer.from(sent).toString(), JSON.stringify(body));
});

test('an order to compact counts only as the last item', async () => {
  const here = await world();
  const { request } = await here.open({ model: 'm', input: [{ type: 'compaction_trigger' }, user('hi')] });
  assert.equal(request.compaction, undefined);
});
