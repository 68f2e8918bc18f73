/** Requests and answers that one protocol reads differently from another: what was meant must arrive. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Traits } from '../../plugins/common/domain/traits.ts';
import { clients } from '../matrix/clients/index.ts';
import { type ClientRequest, type ProtocolName, protocolNames } from '../matrix/scenario.ts';
import { readBody, relay, streamAnswer, wholeAnswer } from '../plugins/protocol-convert/harness.ts';
import { translated } from '../translate/translated.ts';
import { sent } from './relayed.ts';

const requestOf = (output: string): ClientRequest => ({
  tools: [{ name: 'read', description: 'Reads.', schema: { type: 'object', properties: {} } }],
  turns: [
    { by: 'user', parts: [{ kind: 'text', text: 'Which schema?' }] },
    { by: 'assistant', calls: [{ id: 'call_1', name: 'read', input: {} }] },
    { by: 'tools', results: [{ callId: 'call_1', name: 'read', text: output }] },
  ],
});

test('a tool result with a $ref goes to generate-content upstreams as text', () => {
  const objects: [json: string, isText: boolean][] = [
    ['{"$ref":"#/$defs/A"}', true],
    ['{"a":[1,{"b":{"$defs":{}}}]}', true],
    ['{"\\u0024ref":"x"}', true],
    ['{"price":"$5","a$":{"b":["$ref"]}}', false],
  ];
  for (const client of protocolNames)
    for (const [json, isText] of objects) {
      const { body } = clients[client].word(requestOf(json), { model: 'model', isStream: false });
      const { contents } = translated(client, JSON.parse(body as string) as Record<string, unknown>, 'gemini').body as {
        contents: { parts: { functionResponse?: { response: Record<string, unknown> } }[] }[];
      };
      const { response } = contents.at(-1)!.parts[0]!.functionResponse!;
      if (isText) assert.deepEqual(JSON.parse(response['output'] as string), JSON.parse(json), client);
      else assert.deepEqual(response, JSON.parse(json), client);
    }
});

const said = 'The café is open.';
const grounded = (groundingMetadata: object) => ({
  candidates: [
    { index: 0, content: { role: 'model', parts: [{ text: said }] }, finishReason: 'STOP', groundingMetadata },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
});
const answered = (annotations: readonly object[]) => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: said, annotations, logprobs: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
});
const sources = [
  { maps: { uri: 'https://maps.google.com/?cid=7', title: 'Marker', placeId: 'places/7' } },
  { retrievedContext: { title: 'hours.pdf' } },
];
const support = { segment: { startIndex: 0, endIndex: 9, text: 'The café' }, groundingChunkIndices: [0] };
const fileSources = [
  { type: 'file_citation', file_id: 'file-1', filename: 'hours.pdf', index: 3 },
  {
    type: 'container_file_citation',
    container_id: 'c1',
    file_id: 'cfile_2',
    filename: 'Marker',
    start_index: 0,
    end_index: 3,
  },
  { type: 'file_citation', file_id: 'file-nameless', index: 3 },
];

const cited: [vendor: 'gemini' | 'responses', body: object, sources: readonly string[]][] = [
  ['gemini', grounded({ groundingChunks: sources, groundingSupports: [support] }), ['cid=7', 'Marker', 'hours.pdf']],
  ['gemini', grounded({ groundingChunks: sources }), ['cid=7', 'Marker', 'hours.pdf']],
  ['responses', answered(fileSources), ['hours.pdf', 'Marker', 'file-nameless']],
];

test('places on maps and files that an answer cites reach every client, and no search is made up for them', async () => {
  for (const [vendor, body, names] of cited)
    for (const client of protocolNames.filter((name) => name !== vendor))
      for (const isStream of [false, true]) {
        const { word } = clients[client];
        const requests = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Open?' }] }] } as const;
        const wording = word(requests, { model: 'model', isStream });
        const requested = { ...wording, target: { protocol: vendor } };
        const frames =
          vendor === 'gemini'
            ? [`data: ${JSON.stringify(body)}\r\n\r\n`]
            : [
                `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response: body })}\n\n`,
              ];
        const { answer } = await relay(requested, isStream ? streamAnswer(frames) : wholeAnswer(JSON.stringify(body)));
        const text = (await readBody(answer.body)).toString();
        for (const name of names) assert.ok(text.includes(name), `${vendor} to ${client}: ${name} in ${text}`);
        assert.doesNotMatch(
          text,
          /web_search_call|"type":"server_tool_use"|webSearchQueries/,
          `${vendor} to ${client}`,
        );
      }
});

test('a page that a vendor opened without a search is no search with an empty query', async () => {
  const action = { type: 'open_page', url: 'https://example.org/a' };
  const item = { id: 'ws_1', type: 'web_search_call', status: 'completed', action };
  const whole = answered([]);
  const body = JSON.stringify({ ...whole, output: [item, ...whole.output] });
  for (const client of ['chat', 'messages', 'gemini'] as const) {
    const requests = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Open?' }] }] } as const;
    const requested = clients[client].word(requests, { model: 'model', isStream: false });
    const { answer } = await relay({ ...requested, target: { protocol: 'responses' } }, wholeAnswer(body));
    assert.doesNotMatch((await readBody(answer.body)).toString(), /"query":""|"type":"server_tool_use"/, client);
  }
});

test('parameters that were left out are named by the words that the client used', async () => {
  const user = { role: 'user', content: 'Hi' };
  const marked = { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } };
  const quoted = {
    type: 'text',
    text: 'So it is.',
    citations: [{ type: 'web_search_result_location', url: 'https://a.example', title: 'A', cited_text: 'x' }],
  };
  const rows: [client: ProtocolName, vendor: ProtocolName, body: Record<string, unknown>, Traits, string][] = [
    ['chat', 'gemini', { messages: [{ role: 'user', content: [marked] }] }, {}, 'cache_control'],
    ['chat', 'messages', { messages: [user], reasoning: { effort: 'high' } }, { reasoning: 'none' }, 'reasoning'],
    ['chat', 'gemini', { messages: [user], user: 'u1' }, {}, 'user'],
    [
      'messages',
      'gemini',
      { messages: [user, { role: 'assistant', content: [quoted] }, user] },
      {},
      'messages.content.citations',
    ],
    [
      'messages',
      'chat',
      { messages: [user, { role: 'assistant', content: [quoted] }, user] },
      {},
      'messages.content.citations',
    ],
    [
      'messages',
      'gemini',
      { messages: [user], output_config: { effort: 'high' } },
      { reasoning: 'none' },
      'output_config.effort',
    ],
    [
      'gemini',
      'responses',
      { contents: [{ parts: [{ text: 'Hi' }] }], generation_config: { top_k: 3 } },
      {},
      'generation_config.top_k',
    ],
    ['gemini', 'responses', { contents: [{ parts: [{ text: 'Hi' }] }], topK: 3 }, {}, 'topK'],
  ];
  for (const [client, vendor, body, traits, name] of rows) {
    const { dropped } = translated(
      client,
      { model: 'm', ...(client === 'messages' ? { max_tokens: 9 } : {}), ...body },
      vendor,
      { traits },
    );
    assert.deepEqual(dropped, [name], `${client} to ${vendor}`);
  }
  const history = [user, { role: 'assistant', content: 'x', reasoning: 'because' }, user];
  const { dropped } = await sent({ client: 'chat', vendor: 'gemini' }, { messages: history });
  assert.equal(dropped, 'reasoning');
});
