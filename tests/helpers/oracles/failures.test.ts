/** The judges can condemn: answers that break their protocol, and which of the clients notices. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamOracles, wholeOracles } from '../oracles.ts';
import { type Family, recording } from '../recordings.ts';

/** Streams that every client understands, with text or reasoning and tool calls. */
const legal: Readonly<Record<Family, string>> = {
  chat: 'vercel-gateway-gpt-5-redacted-thinking-partools-tools-stream-b61c',
  responses: 'azure-gpt-5-mini-tools-thinking-rsummary-stream-2f36',
  messages: 'anthropic-claude-sonnet-4-20250514-partools-tools-stream-72ac',
  gemini: 'google-gemini-3-pro-preview-partools-tools-stream-e916',
};

type Spoil = (frames: string[]) => string[];
const without =
  (what: RegExp): Spoil =>
  (frames) =>
    frames.filter((frame) => !what.test(frame));
const changed =
  (what: RegExp, to: string): Spoil =>
  (frames) =>
    frames.map((frame) => frame.replace(what, to));
const first = (frames: string[], what: RegExp) => frames.findIndex((frame) => what.test(frame));
const twice =
  (what: RegExp): Spoil =>
  (frames) => {
    const at = first(frames, what);
    return frames.toSpliced(at, 0, frames[at]!);
  };
/** Moves the first frame that is `what` behind the first that is `behind`. */
const late =
  (what: RegExp, behind: RegExp): Spoil =>
  (frames) => {
    const [frame] = frames.splice(first(frames, what), 1);
    return frames.toSpliced(first(frames, behind) + 1, 0, frame!);
  };

/** The rules behind this judge of each protocol notice every crime; it stands in no list. */
const strict: Readonly<Record<Family, string>> = {
  chat: 'openai iterated',
  responses: 'openai iterated',
  messages: 'anthropic iterated',
  gemini: 'google iterated',
};
const openai = ['openai accumulated'];
const anthropic = ['anthropic accumulated'];
const sdk = ['ai-sdk'];
const none: readonly string[] = [];

/** What is broken, how, and who notices beside the strict judge. */
const crimes: readonly [Family, string, Spoil, readonly string[]][] = [
  [
    'chat',
    'without finish_reason',
    changed(/"finish_reason":"tool_calls"/, '"finish_reason":null'),
    [...openai, ...sdk],
  ],
  ['chat', 'without [DONE]', without(/\[DONE\]/), none],
  [
    'chat',
    'with a call whose index skips one',
    changed(/"tool_calls":\[\{"index":1/, '"tool_calls":[{"index":2'),
    openai,
  ],
  ['chat', 'with two calls of one index', changed(/"tool_calls":\[\{"index":1/, '"tool_calls":[{"index":0'), openai],
  ['chat', 'with a call that never gets its id', changed(/"id":"call_[^"]*",/, ''), none],
  ['chat', 'whose arguments break off', changed(/\\"b\\":3\}"/, '\\"b\\":"'), openai],
  ['chat', 'that goes on behind finish_reason', twice(/finish_reason":"tool_calls/), none],
  ['responses', 'without terminal event', without(/^event: response\.completed/), [...openai, ...sdk]],
  ['responses', 'without output_item.done', without(/^event: response\.output_item\.done/), none],
  ['responses', 'with one output index for two items', changed(/"output_index":1/, '"output_index":0'), openai],
  ['responses', 'with an index no one added', changed(/("delta":.*)"output_index":1/, '$1"output_index":7'), openai],
  ['responses', 'that begins in the middle', without(/^event: response\.created/), openai],
  ['responses', 'whose numbers skip one', changed(/"sequence_number":5\b/, '"sequence_number":6'), none],
  ['responses', 'without event names', changed(/^event: .*\n/, ''), none],
  [
    'responses',
    'without details of usage',
    changed(/"output_tokens_details":\{[^}]*\}/, '"output_tokens_details":{}'),
    none,
  ],
  ['messages', 'without message_stop', without(/^event: message_stop/), [...anthropic, ...sdk]],
  ['messages', 'without message_delta', without(/^event: message_delta/), sdk],
  ['messages', 'without event names', changed(/^event: .*\n/, ''), anthropic],
  ['messages', 'with blocks that overlap', late(/^event: content_block_stop/, /content_block_start.*"index":1/s), none],
  ['messages', 'with a block of the wrong index', changed(/"index":2/, '"index":3'), none],
  ['messages', 'with a block that no one started', without(/content_block_start.*"index":1/s), none],
  ['messages', 'that starts twice', twice(/^event: message_start/), anthropic],
  ['messages', 'whose input breaks off', changed(/" 3\}"/, '" 3"'), none],
  [
    'messages',
    'whose start tells no usage',
    changed(/"usage":\{"input_tokens":502,[^}]*\},?/, ''),
    [...anthropic, ...sdk],
  ],
  ['gemini', 'without finishReason', changed(/"finishReason": "STOP",/, ''), sdk],
  ['gemini', 'whose last frame has no blank line', (frames) => [frames.join('').trimEnd()], sdk],
  ['gemini', 'with arguments as text', changed(/"args": \{"a": 2,"b": 3\}/, '"args": "{}"'), none],
  ['gemini', 'with a frame that is no JSON', changed(/"finishReason": "STOP"/, '"finishReason" "STOP"'), sdk],
];

for (const [family, broken, spoil, others] of crimes) {
  const noticedBy = [...others, strict[family]];
  test(`a stream of ${family} ${broken} is rejected by ${noticedBy.join(', ')} alone`, async () => {
    const { response } = recording(family, legal[family]);
    const frames = response.toString().split(/(?<=\n\n)/);
    const body = spoil([...frames]).join('');
    assert.notEqual(body, response.toString());
    const condemned: string[] = [];
    for (const { name, understand } of streamOracles[family])
      await understand({ body, contentType: 'text/event-stream' }).catch(() => condemned.push(name));
    assert.deepEqual(condemned.sort(), noticedBy.sort());
  });
}

test('a legal stream is read by every client, in any chunks', async () => {
  for (const [family, name] of Object.entries(legal) as [Family, string][])
    for (const { understand } of streamOracles[family])
      for (const pieceBytes of [7, 100_000]) {
        const body = recording(family, name).response;
        const { tools, stop } = await understand({ body, contentType: 'text/event-stream', pieceBytes });
        assert.ok(tools.length > 0 && stop === 'tool-calls');
      }
});

test('a call of an undeclared tool is rejected by the client that checks it', async () => {
  const body = recording('messages', legal.messages).response;
  const judge = streamOracles.messages.find(({ name }) => name === 'ai-sdk')!;
  await judge.understand({ body, contentType: 'text/event-stream', tools: ['add', 'multiply'] });
  await assert.rejects(judge.understand({ body, contentType: 'text/event-stream', tools: ['add'] }), /multiply/);
});

test('a whole answer that is invalid in its protocol is rejected by every client', async () => {
  for (const [family, oracles] of Object.entries(wholeOracles))
    for (const { name, understand } of oracles)
      for (const body of ['{}', '{"error":{"message":"No"}}', 'not JSON'])
        await assert.rejects(understand({ body, contentType: 'application/json' }), /./, `${family}, ${name}: ${body}`);
});

test("an error status is raised as the client's own error", async () => {
  const openaiError = { error: { message: 'Slow down', type: 'rate_limit_error', param: null, code: null } };
  const errors: Readonly<Record<Family, object>> = {
    chat: openaiError,
    responses: openaiError,
    messages: { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down' } },
    gemini: { error: { code: 429, message: 'Slow down', status: 'RESOURCE_EXHAUSTED' } },
  };
  for (const oracles of [streamOracles, wholeOracles])
    for (const [family, judges] of Object.entries(oracles) as [Family, (typeof oracles)[Family]][]) {
      const answer = { body: JSON.stringify(errors[family]), contentType: 'application/json', status: 429 };
      for (const { understand } of judges) await assert.rejects(understand(answer), /Slow down/);
    }
});
