/** Every recorded chat answer is read without loss, and what is made of it is taken by the official client. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Choice, Reply } from '../../../../plugins/common/canonical/reply.ts';
import { chatCodec } from '../../../../plugins/protocol-convert/protocols/chat/codec.ts';
import { recordings } from '../../../helpers/recordings.ts';
import { collect, encodeStream, payloads, replyContext, replyEvents, streamEvents } from './chat-harness.ts';

/** The official client's own accumulator, fed with this stream. */
async function accumulate(stream: string) {
  const fetch = async () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://127.0.0.1:9/v1', fetch, maxRetries: 0 });
  const run = client.chat.completions.stream({
    model: 'm',
    messages: [{ role: 'user', content: 'Hi' }],
    stream_options: { include_usage: true },
  });
  return run.finalChatCompletion();
}

/** An upstream's choice as the tests read it, without the codec. */
interface ReadChoice {
  text: string;
  reasoning: string;
  refusal: string;
  names: string[];
  /** All arguments in the order they came. */
  input: string;
}
interface Delta {
  readonly content?: string | null | readonly { type: string; text?: string; thinking?: readonly { text: string }[] }[];
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
  readonly refusal?: string | null;
  readonly tool_calls?:
    | readonly { readonly function: { readonly name?: string; readonly arguments?: string } }[]
    | null;
}
type Chunk = {
  readonly choices?: readonly { readonly index?: number; readonly delta?: Delta; readonly message?: Delta }[];
};

function readPlainly(chunks: readonly Chunk[], isStream: boolean): ReadChoice[] {
  const sent: ReadChoice[] = [];
  for (const { choices = [] } of chunks)
    for (const { index = 0, delta, message } of choices) {
      sent[index] ??= { text: '', reasoning: '', refusal: '', names: [], input: '' };
      add(sent[index], (isStream ? delta : message) ?? {});
    }
  return sent;
}

function add(sent: ReadChoice, { content, reasoning_content, reasoning, refusal, tool_calls }: Delta): void {
  if (typeof content === 'string') sent.text += content;
  else
    for (const part of content ?? []) {
      sent.text += part.text ?? '';
      for (const { text } of part.thinking ?? []) sent.reasoning += text;
    }
  sent.reasoning += reasoning_content || reasoning || '';
  sent.refusal += refusal ?? '';
  for (const entry of tool_calls ?? []) {
    if (entry.function.name) sent.names.push(entry.function.name);
    sent.input += entry.function.arguments ?? '';
  }
}

function readChoice({ parts }: Choice): ReadChoice {
  const sent: ReadChoice = { text: '', reasoning: '', refusal: '', names: [], input: '' };
  for (const part of parts) {
    if (part.kind === 'text' || part.kind === 'reasoning' || part.kind === 'refusal') sent[part.kind] += part.text;
    if (part.kind !== 'tool-call') continue;
    sent.names.push(part.name);
    sent.input += part.input;
  }
  return sent;
}

async function assertTaken(stream: string, reply: Reply): Promise<void> {
  const completion = await accumulate(stream);
  assert.equal(completion.usage?.total_tokens, 7);
  assert.equal(completion.choices.length, reply.choices.length);
  for (const [index, choice] of reply.choices.entries()) {
    const { message } = completion.choices[index]!;
    const { text, refusal } = readChoice(choice);
    assert.equal(message.content ?? '', text);
    assert.equal(message.refusal ?? '', refusal);
    const calls = choice.parts.filter((part) => part.kind === 'tool-call');
    assert.deepEqual(
      (message.tool_calls ?? []).map(
        (call) => call.type === 'function' && [call.id, call.function.name, call.function.arguments],
      ),
      calls.map(({ id, name, input }) => [id, name, input]),
    );
  }
}

const answered = recordings('chat').filter(
  ({ status, name }) => status === 200 && !name.startsWith('azure-openllmetry-testing-text'),
);
for (const recording of answered) {
  test(`recorded ${recording.name}: nothing is lost, and the official client takes it`, async () => {
    const { isStream, response } = recording;
    const chunks = isStream ? payloads(response) : [JSON.parse(response.toString()) as JsonObject];
    const events = isStream ? streamEvents(chunks) : replyEvents(chunks[0]);
    const reply = collect(events);
    const sent = readPlainly(chunks as readonly Chunk[], isStream);
    for (const choice of sent)
      if (choice.names.length > 0 && choice.input === '') choice.input = '{}'.repeat(choice.names.length);
    assert.deepEqual(reply.choices.map(readChoice), sent);
    const context = replyContext({ stream_options: { include_usage: true } }, { input: 3, output: 4 });
    await assertTaken(encodeStream(events, context), reply);
    const again = collect(replyEvents(chatCodec.encodeReply(reply, context)));
    assert.deepEqual(again.choices.map(readChoice), sent);
    assert.deepEqual(
      again.choices.map(({ stop }) => stop),
      reply.choices.map(({ stop }) => stop),
    );
  });
}

test('the recordings are there', () => {
  assert.ok(answered.length > 60, `${answered.length} answers`);
});
