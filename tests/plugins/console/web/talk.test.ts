/** The playground's talk: events however they are cut, turns as they grow, the request as curl. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { codeOf } from '../../../../plugins/console/web/src/calls/code.ts';
import {
  callOf,
  grown,
  type ProtocolName,
  protocolNames,
} from '../../../../plugins/console/web/src/pages/client/playground/chat/protocols.ts';
import { eventsOf } from '../../../../plugins/console/web/src/pages/client/playground/chat/talk.ts';
import {
  type Message,
  noTurn,
  type Parameters,
  TalkError,
  type Turn,
} from '../../../../plugins/console/web/src/pages/client/playground/chat/turn.ts';
import { fc } from '../../../helpers/properties.ts';

const requestOf = (
  protocol: ProtocolName,
  messages: readonly Message[],
  parameters: Parameters = {},
  system = '',
  tools: readonly string[] = [],
) => callOf(protocol, { model: 'm', system, messages, parameters, tools });
const access = { base: 'http://gate.example', key: 'KEY' };

function streamOf(bytes: Uint8Array, cuts: readonly number[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      let from = 0;
      for (const cut of [...cuts].sort((left, right) => left - right)) {
        const to = Math.min(bytes.length, Math.max(from, cut));
        if (to > from) controller.enqueue(bytes.slice(from, to));
        from = to;
      }
      controller.enqueue(bytes.slice(from));
      controller.close();
    },
  });
}

test('events are the same wherever the network cuts them', async () => {
  const data = ['{"a":"é✓"}', '{"b":2}', '[DONE]'];
  const bytes = new TextEncoder().encode(`: hello\r\n\r\n${data.map((line) => `data: ${line}\n\n`).join('')}`);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: bytes.length })), async (cuts) => {
      const seen: string[] = [];
      for await (const event of eventsOf(streamOf(bytes, cuts))) seen.push(event);
      assert.deepEqual(seen, data);
    }),
    { numRuns: 50 },
  );
});

/** One whole answer in each protocol: thoughts, two pieces of text, usage. */
const streams: Record<ProtocolName, readonly object[]> = {
  chat: [
    { choices: [{ delta: { reasoning_content: 'Hm.' } }] },
    { choices: [{ delta: { content: 'Hel' } }] },
    { choices: [{ delta: { content: 'lo' } }] },
    { choices: [], usage: { prompt_tokens: 12, completion_tokens: 3 } },
  ],
  responses: [
    { type: 'response.created', response: { usage: null, error: null } },
    { type: 'response.reasoning_summary_text.delta', delta: 'Hm.' },
    { type: 'response.output_text.delta', delta: 'Hel' },
    { type: 'response.output_text.delta', delta: 'lo' },
    { type: 'response.output_text.done', text: 'Hello' },
    { type: 'response.completed', response: { error: null, usage: { input_tokens: 12, output_tokens: 3 } } },
  ],
  messages: [
    { type: 'message_start', message: { usage: { input_tokens: 2, cache_read_input_tokens: 10, output_tokens: 1 } } },
    { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'Hm.' } },
    { type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hel' } },
    { type: 'ping' },
    { type: 'content_block_delta', delta: { type: 'text_delta', text: 'lo' } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } },
  ],
  gemini: [
    { candidates: [{ content: { parts: [{ text: 'Hm.', thought: true }] } }] },
    { candidates: [{ content: { parts: [{ text: 'Hel' }] } }] },
    {
      candidates: [{ content: { parts: [{ text: 'lo' }] } }],
      usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 2, thoughtsTokenCount: 1 },
    },
  ],
};
const failures: Record<ProtocolName, object> = {
  chat: { error: { message: 'gone' } },
  responses: { type: 'response.failed', response: { error: { message: 'gone' } } },
  messages: { type: 'error', error: { message: 'gone' } },
  gemini: { error: { code: 503, message: 'gone' } },
};

for (const protocol of protocolNames)
  test(`a turn in ${protocol} grows by text, thoughts and usage, and ends with the stream's error`, () => {
    const turn = streams[protocol].reduce<Turn>(
      (before, event) => grown(protocol, before, JSON.stringify(event)),
      noTurn,
    );
    assert.deepEqual([turn.text, turn.reasoning, turn.tokensIn, turn.tokensOut], ['Hello', 'Hm.', 12, 3]);
    assert.throws(() => grown(protocol, turn, JSON.stringify(failures[protocol])), new TalkError('gone'));
  });

/** Two calls of a tool by the gateway, of which the second one fails. */
const runs: Record<ProtocolName, readonly object[]> = {
  gemini: [
    { candidates: [{ content: { parts: [{ toolCall: { id: 'g1', args: { name: 't__a', arguments: { x: 1 } } } }] } }] },
    {
      candidates: [
        {
          content: {
            parts: [
              { toolResponse: { id: 'g1', response: { result: 'one' } } },
              { toolCall: { id: 'g2', args: { name: 't__b', arguments: {} } } },
              { toolResponse: { id: 'g2', response: { error: 'no' } } },
            ],
          },
        },
      ],
    },
  ],
  chat: [
    { choices: [{ delta: { executed_tools: [{ index: 0, name: 't__a', arguments: '{"x":1}', output: 'one' }] } }] },
    {
      choices: [
        { delta: { executed_tools: [{ index: 1, name: 't__b', arguments: '{}', output: 'no', is_error: true }] } },
      ],
    },
  ],
  responses: [
    { type: 'response.output_item.added', item: { type: 'mcp_call', name: 't__a' } },
    {
      type: 'response.output_item.done',
      item: { type: 'mcp_call', name: 't__a', arguments: '{"x":1}', output: 'one', error: null },
    },
    {
      type: 'response.output_item.done',
      item: { type: 'mcp_call', name: 't__b', arguments: '{}', output: 'no', error: 'no' },
    },
  ],
  messages: [
    {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'mcp_tool_use', id: 'u1', name: 't__a', input: {} },
    },
    { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"x"' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: ':1}' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'mcp_tool_use', id: 'u2', name: 't__b', input: {} },
    },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{}' } },
    {
      type: 'content_block_start',
      index: 2,
      content_block: {
        type: 'mcp_tool_result',
        tool_use_id: 'u1',
        is_error: false,
        content: [{ type: 'text', text: 'one' }],
      },
    },
    {
      type: 'content_block_start',
      index: 3,
      content_block: {
        type: 'mcp_tool_result',
        tool_use_id: 'u2',
        is_error: true,
        content: [{ type: 'text', text: 'no' }],
      },
    },
  ],
};

for (const protocol of protocolNames)
  test(`a turn in ${protocol} has the calls of tools that the gateway has made, with their ends`, () => {
    const turn = runs[protocol].reduce<Turn>((before, event) => grown(protocol, before, JSON.stringify(event)), noTurn);
    assert.deepEqual(turn.steps, [
      { name: 't__a', input: '{"x":1}', output: 'one', failed: false },
      { name: 't__b', input: '{}', output: 'no', failed: true },
    ]);
  });

test('the request as curl is quoted for a shell, with any text', () => {
  const messages = [{ role: 'user', content: 'it\'s "$HOME" `date` \\ é\n!' }] as const;
  for (const protocol of protocolNames) {
    const request = requestOf(protocol, messages, { temperature: 0.5 });
    const command = codeOf('curl', request, access).replace(/^curl -N/, "printf '%s\\0'");
    const words = execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' }).split('\0').slice(0, -1);
    assert.equal(words[0], `http://gate.example${request.path}`);
    assert.deepEqual(JSON.parse(words.at(-1)!), JSON.parse(JSON.stringify(request.body)));
  }
});

test('thoughts are not sent again; parameters and instructions are sent only where they are given', () => {
  const said = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi', reasoning: 'Hm.' },
  ] as const;
  for (const protocol of protocolNames) {
    assert.doesNotMatch(JSON.stringify(requestOf(protocol, said).body), /Hm|temperature|system|instructions|: 7/i);
    const given = JSON.stringify(requestOf(protocol, said, { temperature: 0.5, maxTokens: 7 }, 'Be brief.').body);
    assert.match(given, /"temperature":0.5/);
    assert.match(given, /_?tokens"?:7|maxOutputTokens":7/i);
    assert.match(given, /Be brief\./);
  }
});

test("an image is sent in each protocol's form; a program reads it from a file", () => {
  const data = 'A'.repeat(2_000);
  const image = `data:image/png;base64,${data}`;
  const said = [{ role: 'user', content: 'What is it? $HOME `date` \\n', images: [image] }] as const;
  for (const protocol of protocolNames) {
    const request = requestOf(protocol, said);
    const text = JSON.stringify(request.body);
    assert.ok(text.includes(data), protocol);
    assert.match(text, protocol === 'chat' || protocol === 'responses' ? /data:image\/png;base64,/ : /"image\/png"/);
    const script = codeOf('curl', request, access);
    assert.ok(script.length < 1_500, protocol);
    // The shell sends what the page sent, with the bytes of the file in their place.
    const read = script.replace(/^curl[\s\S]*? -d @-/, 'cat').replaceAll(/base64 < image\.png/g, `printf %s ${data}`);
    const sent = execFileSync('/bin/sh', ['-c', read], { encoding: 'utf8' });
    assert.deepEqual(JSON.parse(sent), JSON.parse(text), protocol);
    for (const language of ['python', 'javascript'] as const)
      assert.match(codeOf(language, request, access), /Path\("image\.png"\)|readFileSync\("image\.png"/, protocol);
  }
});
