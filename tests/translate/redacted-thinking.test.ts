/** Redacted thinking of a messages vendor goes through a responses client and back as it was: whole, streamed, by id. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type MatrixStage, modelOf, startMatrixStage } from '../matrix/stage.ts';

type Json = Record<string, unknown>;
let stage: MatrixStage;
before(async () => {
  stage = await startMatrixStage();
});
after(() => stage.stop());

const thinking = { type: 'thinking', thinking: 'Let me see.', signature: 'c2lnbmF0dXJl' };
const redacted = { type: 'redacted_thinking', data: 'ZW5jcnlwdGVk' };
const call = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'it' } };
const shown = { type: 'text', text: 'I look.' };

const usage = { input_tokens: 5, output_tokens: 5 };
const head = { id: 'msg_1', type: 'message', role: 'assistant', model: modelOf('messages'), usage };

/** The answer with these blocks, whole. */
function wholeAnswer(blocks: readonly Json[]): string {
  const stop_reason = blocks.includes(call) ? 'tool_use' : 'end_turn';
  return JSON.stringify({ ...head, content: blocks, stop_reason, stop_sequence: null });
}

/** The same as events. */
function streamedAnswer(blocks: readonly Json[]): string {
  const events: Json[] = [
    { type: 'message_start', message: { ...head, content: [], stop_reason: null, stop_sequence: null } },
  ];
  for (const [index, block] of blocks.entries()) {
    const [start, deltas] = piecesOf(block);
    events.push({ type: 'content_block_start', index, content_block: start });
    for (const delta of deltas) events.push({ type: 'content_block_delta', index, delta });
    events.push({ type: 'content_block_stop', index });
  }
  const stop_reason = blocks.includes(call) ? 'tool_use' : 'end_turn';
  events.push({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage }, { type: 'message_stop' });
  return events.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

function piecesOf(block: Json): [start: Json, deltas: Json[]] {
  if (block === thinking) {
    const { thinking: words, signature } = thinking;
    const start = { type: 'thinking', thinking: '', signature: '' };
    return [
      start,
      [
        { type: 'thinking_delta', thinking: words },
        { type: 'signature_delta', signature },
      ],
    ];
  }
  if (block === call)
    return [{ ...call, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(call.input) }]];
  if (block === shown) return [{ type: 'text', text: '' }, [{ type: 'text_delta', text: shown.text }]];
  return [block, []];
}

async function send(body: Json): Promise<Json> {
  const answer = await fetch(`${stage.origin}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: modelOf('messages'), ...body }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  if (body['stream'] !== true) return JSON.parse(text) as Json;
  const last = text.split('\n').findLast((line) => line.startsWith('data: {'))!;
  return (JSON.parse(last.slice('data: '.length)) as { response: Json }).response;
}

const orders: Readonly<Record<string, readonly Json[]>> = {
  'alone before a call': [redacted, call],
  'after thinking': [thinking, redacted, shown, call],
  'between texts': [redacted, shown],
};

for (const [name, blocks] of Object.entries(orders)) {
  for (const stream of [false, true]) {
    for (const continued of ['input', 'previous_response_id'] as const) {
      test(`redacted thinking ${name}, ${stream ? 'streamed' : 'whole'}, comes back by ${continued}`, async () => {
        const { messages: vendor } = stage.vendors;
        const headers = { 'content-type': stream ? 'text/event-stream' : 'application/json' };
        vendor.play({ headers, body: stream ? streamedAnswer(blocks) : wholeAnswer(blocks) });
        const first = await send({ input: 'Go.', stream });
        const items = first['output'] as Json[];
        assert.deepEqual(
          items.filter(({ type }) => type === 'reasoning').map(({ summary }) => (summary as unknown[]).length),
          blocks.flatMap((block) => (block === thinking ? [1] : block === redacted ? [0] : [])),
        );
        assert.ok(!JSON.stringify(items).includes(redacted.data));
        vendor.play({ headers: { 'content-type': 'application/json' }, body: wholeAnswer([shown]) });
        const next = blocks.includes(call)
          ? { type: 'function_call_output', call_id: 'toolu_1', output: 'Seen.' }
          : { role: 'user', content: 'Go on.' };
        await send(
          continued === 'input'
            ? { input: [{ role: 'user', content: 'Go.' }, ...items, next] }
            : { input: [next], previous_response_id: first['id'] },
        );
        const sent = JSON.parse(vendor.requests.at(-1)!.body.toString()) as { messages: { content: Json[] }[] };
        const given = sent.messages[1]!.content.map(({ cache_control: _mark, ...block }) => block);
        assert.deepEqual(given, blocks);
      });
    }
  }
}
