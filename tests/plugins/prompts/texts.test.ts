/** The texts of requests of each protocol: role, kind, place and message, and what a replaced one looks like. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinedTexts } from '../../../plugins/common/wire/prompt-rules.ts';
import { JsonTexts } from '../../../plugins/prompts/texts.ts';

const textsOf = (body: unknown) => new JsonTexts(Buffer.from(JSON.stringify(body)));
const short = ({ texts }: JsonTexts) => texts.map(({ role, kind, turn, text }) => `${role} ${kind} ${turn} ${text}`);
const png = 'iVBORw0KGgo=';

test('a chat request gives system, parts, calls, results and descriptions with their roles', () => {
  const texts = textsOf({
    model: 'm',
    messages: [
      { content: 'S', role: 'system' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'U1' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
          { type: 'text', text: 'U2' },
        ],
      },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'R',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"q":"A"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'T' },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: 'f',
          description: 'D',
          parameters: {
            type: 'object',
            properties: { data: { type: 'string', description: 'P', enum: ['E'] } },
            required: ['data'],
          },
        },
      },
    ],
    metadata: { id: 'M' },
  });
  assert.deepEqual(short(texts), [
    'system text 1 S',
    'user text 2 U1',
    'user text 2 U2',
    'assistant reasoning 3 R',
    'assistant call 3 {"q":"A"}',
    'tool result 4 T',
    'system description 0 D',
    'system description 0 P',
    'system description 0 E',
    'user other 0 M',
  ]);
  assert.deepEqual(texts.unread, ['messages[1].content[1].image_url.url']);
  assert.equal(texts.texts[1]!.field, 'messages[1].content[0].text');
});

test('a responses request gives instructions, items, calls and outputs', () => {
  const texts = textsOf({
    model: 'm',
    instructions: 'S',
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'U' }] },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'R' }], encrypted_content: 'opaque' },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"q":1}' },
      { output: 'T', call_id: 'c1', type: 'function_call_output' },
      { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'T2' }] },
      { type: 'custom_tool_call', call_id: 'c3', name: 'g', input: 'C' },
    ],
    text: { format: { type: 'json_schema', name: 'n', schema: { description: 'D' } } },
    reasoning: { effort: 'low' },
  });
  assert.deepEqual(short(texts), [
    'system text 0 S',
    'user text 1 U',
    'user reasoning 2 R',
    'assistant call 3 {"q":1}',
    'tool result 4 T',
    'tool result 5 T2',
    'assistant call 6 C',
    'system description 0 D',
  ]);
});

test('a messages request gives system blocks, tool input of any form and tool results, wherever type and role stand', () => {
  const texts = textsOf({
    model: 'm',
    max_tokens: 9,
    system: [
      { type: 'text', text: 'S1' },
      { type: 'text', text: 'S2' },
    ],
    messages: [
      { content: [{ text: 'U', type: 'text' }], role: 'user' },
      {
        role: 'assistant',
        content: [{ input: { data: 'A', deep: [{ id: 'B' }] }, id: 't1', name: 'f', type: 'tool_use' }],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 't1',
            content: [
              { type: 'text', text: 'T' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
            ],
          },
          { type: 'document', title: 'N', source: { type: 'text', media_type: 'text/plain', data: 'Doc' } },
        ],
      },
    ],
  });
  assert.deepEqual(short(texts), [
    'system text 0 S1',
    'system text 0 S2',
    'user text 1 U',
    'assistant call 2 data',
    'assistant call 2 A',
    'assistant call 2 deep',
    'assistant call 2 id',
    'assistant call 2 B',
    'tool result 3 T',
    'user text 3 N',
    'user text 3 Doc',
  ]);
  assert.deepEqual(texts.unread, ['messages[2].content[0].content[1].source.data']);
});

test('a generate-content request gives its parts, calls and responses of functions', () => {
  const texts = textsOf({
    systemInstruction: { role: 'user', parts: [{ text: 'S' }] },
    contents: [
      { role: 'user', parts: [{ text: 'U' }, { inlineData: { mimeType: 'image/png', data: png } }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { data: 'A' } }, thoughtSignature: 'opaque' }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { id: 'T' } } }] },
    ],
    tools: [{ functionDeclarations: [{ name: 'f', description: 'D' }] }],
  });
  assert.deepEqual(short(texts), [
    'system text 0 S',
    'user text 1 U',
    'assistant call 2 data',
    'assistant call 2 A',
    'tool result 3 id',
    'tool result 3 T',
    'system description 0 D',
  ]);
  assert.deepEqual(texts.unread, ['contents[0].parts[1].inlineData.data']);
});

test('requests of other operations give their inputs, and tokens and pictures are named as unread', () => {
  const cases: [unknown, string[], string[]][] = [
    [{ model: 'm', input: 'a' }, ['user text 1 a'], []],
    [{ model: 'm', input: ['a', 'b'] }, ['user text 1 a', 'user text 2 b'], []],
    [{ model: 'm', input: [[1, 2], [3]] }, [], ['input[0]', 'input[1]']],
    [{ requests: [{ content: { parts: [{ text: 'a' }, { text: 'b' }] } }] }, ['user text 1 a', 'user text 1 b'], []],
    [
      { model: 'm', query: 'q', documents: ['a', { text: 'b' }] },
      ['user text 0 q', 'user text 1 a', 'user text 2 b'],
      [],
    ],
    [{ model: 'm', prompt: 'p', image: `data:image/png;base64,${png}` }, ['user text 0 p'], ['image']],
    [{ model: 'm', content: [{ type: 'text', text: 'p' }] }, ['user text 1 p'], []],
    [{ model: 'm', input: 'say', voice: 'v', instructions: 'i' }, ['user text 1 say', 'system text 0 i'], []],
    [{ type: 'session.update', session: { instructions: 'i' } }, ['system text 0 i'], []],
    [
      {
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'u' }] },
      },
      ['user text 1 u'],
      [],
    ],
    [{ type: 'input_audio_buffer.append', audio: 'AAAA' }, [], ['audio']],
    [
      { clientContent: { turns: [{ role: 'user', parts: [{ text: 'a' }, { text: 'b' }] }] } },
      ['user text 1 a', 'user text 1 b'],
      [],
    ],
  ];
  for (const [body, texts, unread] of cases) {
    const read = textsOf(body);
    assert.deepEqual(short(read), texts, JSON.stringify(body));
    assert.deepEqual(read.unread, unread, JSON.stringify(body));
  }
});

test('a word split over parts of one message is whole in the joined texts, and parts of two inputs stay apart', () => {
  const joined = (body: unknown) => joinedTexts(textsOf(body).texts);
  const parts = [
    { type: 'text', text: 'ba' },
    { type: 'text', text: 'nana' },
  ];
  assert.deepEqual(joined({ messages: [{ role: 'user', content: parts }] }), ['banana']);
  assert.deepEqual(joined({ system: parts, messages: [] }), ['banana']);
  assert.deepEqual(joined({ input: ['ba', 'nana'] }), ['ba', 'nana']);
});

test('a repeated member gives both of its texts, and each can be replaced', () => {
  const texts = new JsonTexts(Buffer.from('{"messages":[{"role":"user","content":"b\\u0061d","content":"good"}]}'));
  assert.deepEqual(
    texts.texts.map(({ text }) => text),
    ['bad', 'good'],
  );
  texts.replace(texts.texts[0]!, 'x');
  texts.replace(texts.texts[0]!, 'y "z"');
  assert.equal(
    Buffer.from(texts.written()!).toString(),
    '{"messages":[{"role":"user","content":"y \\"z\\"","content":"good"}]}',
  );
});

test('without a change nothing is written, and a replaced text leaves every other byte', () => {
  const body = '{ "input" : "a" ,\n "n":1.50, "x":12345678901234567890 }';
  const texts = new JsonTexts(Buffer.from(body));
  assert.equal(texts.written(), undefined);
  texts.replace(texts.texts[0]!, 'é');
  assert.equal(Buffer.from(texts.written()!).toString(), body.replace('"a"', '"é"'));
});

test("a request that is no JSON, too deep or with too many texts is refused as the client's mistake", () => {
  for (const body of ['', '[]', '{"a":', '{"a" "b"', '{"a":"b', '{a:1}', `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`])
    assert.throws(() => new JsonTexts(Buffer.from(body)), { kind: 'invalid_request' }, body.slice(0, 20));
  const many = `{"input":[${Array(100_001).fill('"a"').join(',')}]}`;
  assert.throws(() => new JsonTexts(Buffer.from(many)), { kind: 'invalid_request' });
});
