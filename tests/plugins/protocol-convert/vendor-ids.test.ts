/** Ids of what vendors keep are found wherever a request can name them, and nowhere else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../core/json/json.ts';
import { mostVendorIds, vendorIdsIn } from '../../../plugins/protocol-convert/request/vendor-ids.ts';

const places = (json: JsonObject, options = {}) =>
  vendorIdsIn(json, options).map(({ id, field }) => `${field} = ${id}`);
const hosts = () => new Set(['vendor.example']);

for (const [what, json, expected] of [
  ['a conversation', { conversation: 'conv_1' }, 'conversation = conv_1'],
  ['a conversation as an object', { conversation: { id: 'conv_1' } }, 'conversation.id = conv_1'],
  ['a stored prompt', { prompt: { id: 'pmpt_1', variables: {} } }, 'prompt.id = pmpt_1'],
  [
    'a file of a stored prompt',
    { prompt: { variables: { page: { type: 'input_file', file_id: 'file-1' } } } },
    'prompt.variables.page.file_id = file-1',
  ],
  [
    'an image of a message',
    { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }] },
    'input[0].content[0].file_id = file-1',
  ],
  [
    'a file in the output of a function',
    { input: [{ type: 'function_call_output', output: [{ type: 'input_file', file_id: 'file-1' }] }] },
    'input[0].output[0].file_id = file-1',
  ],
  [
    'a screenshot',
    { input: [{ type: 'computer_call_output', output: { type: 'computer_screenshot', file_id: 'file-1' } }] },
    'input[0].output.file_id = file-1',
  ],
  ['a code container', { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }, 'tools[0].container = cntr_1'],
  [
    'a file of a code container',
    { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['file-1'] } }] },
    'tools[0].container.file_ids[0] = file-1',
  ],
  [
    'the container of an earlier run',
    { input: [{ type: 'code_interpreter_call', id: 'ci', container_id: 'cntr_1' }] },
    'input[0].container_id = cntr_1',
  ],
  ['an image that is named alone', { input: [{ type: 'image_generation_call', id: 'ig_1' }] }, 'input[0].id = ig_1'],
  [
    'a mask',
    { tools: [{ type: 'image_generation', input_image_mask: { file_id: 'file-1' } }] },
    'tools[0].input_image_mask.file_id = file-1',
  ],
  [
    'a vector store',
    { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
    'tools[0].vector_store_ids[0] = vs_1',
  ],
  [
    'a file of a chat',
    { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] },
    'messages[0].content[0].file.file_id = file-1',
  ],
  [
    'an earlier sound',
    { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] },
    'messages[0].audio.id = audio_1',
  ],
  ['a voice', { audio: { format: 'wav', voice: { id: 'voice_1' } } }, 'audio.voice.id = voice_1'],
  ['a container of messages', { container: 'container_1' }, 'container = container_1'],
  [
    'a container and a skill of messages',
    { container: { id: 'container_1', skills: [{ type: 'custom', skill_id: 'skill_1', version: '1' }] } },
    'container.id = container_1, container.skills[0].skill_id = skill_1',
  ],
  [
    'a document in a tool result',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'tool_result', content: [{ type: 'document', source: { type: 'file', file_id: 'file_1' } }] },
          ],
        },
      ],
    },
    'messages[0].content[0].content[0].source.file_id = file_1',
  ],
  [
    'an upload to a container',
    { messages: [{ role: 'user', content: [{ type: 'container_upload', file_id: 'file_1' }] }] },
    'messages[0].content[0].file_id = file_1',
  ],
  ['a cache', { cachedContent: 'cachedContents/1' }, 'cachedContent = cachedContents/1'],
  ['a cache in the other case', { cached_content: 'cachedContents/1' }, 'cached_content = cachedContents/1'],
  [
    'a file in the result of a function',
    { contents: [{ parts: [{ functionResponse: { response: {}, parts: [{ fileData: { fileUri: 'files/1' } }] } }] }] },
    'contents[0].parts[0].functionResponse.parts[0].fileData.fileUri = files/1',
  ],
  [
    'a file in a count',
    { generateContentRequest: { contents: [{ parts: [{ file_data: { file_uri: 'gs://bucket/film' } }] }] } },
    'generateContentRequest.contents[0].parts[0].file_data.file_uri = gs://bucket/film',
  ],
  [
    'a search store',
    { tools: [{ fileSearch: { fileSearchStoreNames: ['fileSearchStores/1'] } }] },
    'tools[0].fileSearch.fileSearchStoreNames[0] = fileSearchStores/1',
  ],
  [
    'a data store',
    { tools: [{ retrieval: { vertexAiSearch: { datastore: 'projects/p/dataStores/1' } } }] },
    'tools[0].retrieval.vertexAiSearch.datastore = projects/p/dataStores/1',
  ],
] as const satisfies readonly (readonly [string, JsonObject, string])[]) {
  test(`an id in ${what} is found`, () => assert.equal(places(json, { hosts }).join(', '), expected));
}

for (const uri of [
  'https://vendor.example/anything',
  'https://VENDOR.example./anything',
  'https://proxy.example/v1beta/files/abc',
  'https://proxy.example/x/v1beta/%66iles/abc',
  'HTTP://proxy.example/upload/v1/files',
  'files/abc',
  'gs://bucket/object',
  'no address at all',
]) {
  test(`an address that the vendor reads with its own rights is found: ${uri}`, () => {
    assert.equal(vendorIdsIn({ contents: [{ parts: [{ fileData: { fileUri: uri } }] }] }, { hosts }).length, 1);
  });
}

for (const uri of ['https://video.example/watch?v=1', 'https://a.example/files/x.pdf', 'data:text/plain,hello']) {
  test(`a public address is no id: ${uri}`, () => {
    assert.deepEqual(places({ contents: [{ parts: [{ fileData: { fileUri: uri } }] }] }, { hosts }), []);
  });
}

for (const [what, json] of [
  ['arguments of a call', { messages: [{ content: [{ type: 'tool_use', input: { file_id: 'x', container: 'y' } }] }] }],
  ['arguments of a call of Gemini', { contents: [{ parts: [{ functionCall: { args: { file_id: 'x' } } }] }] }],
  ['the result of a function', { contents: [{ parts: [{ functionResponse: { response: { file_id: 'x' } } }] }] }],
  ['a schema of a tool', { tools: [{ parameters: { properties: { file_id: { type: 'string' } }, file_id: 'x' } }] }],
  ['a schema of messages', { tools: [{ input_schema: { default: { file_id: 'x' } } }] }],
  ['metadata', { metadata: { file_id: 'x', conversation: 'y' } }],
  ['texts', { messages: [{ content: '{"file_id":"x"}' }], prompt: 'file_id', audio: 'x' }],
  ['nothing', { conversation: null, container: null, tools: [{ container: { type: 'auto' } }], file_id: '' }],
  ['an image with its bytes', { input: [{ type: 'image_generation_call', id: 'ig_1', result: 'AAAA' }] }],
  ['a skill for all', { container: { skills: [{ type: 'standard', skill_id: 'pptx' }] } }],
] as const satisfies readonly (readonly [string, JsonObject])[]) {
  test(`${what}: no id is found`, () => assert.deepEqual(places(json), []));
}

test('ids of earlier answers are distinguished from ids that a request needs', () => {
  const input = [
    { type: 'code_interpreter_call', container_id: 'cntr_1' },
    { role: 'assistant', content: [{ type: 'output_text', annotations: [{ type: 'file_citation', file_id: 'f' }] }] },
    { role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] },
    { role: 'user', content: [{ type: 'tool_result', content: [{ source: { type: 'file', file_id: 'file-2' } }] }] },
    { content: [{ type: 'bash_code_execution_tool_result', content: { content: [{ file_id: 'file-3' }] } }] },
  ];
  assert.deepEqual(
    vendorIdsIn({ input }).map(({ isEcho }) => isEcho),
    [true, true, false, false, true],
  );
});

test('ids in texts of other servers are none that the answer issues', () => {
  const content = [
    { type: 'mcp_tool_result', content: [{ type: 'document', source: { type: 'file', file_id: 'file_other' } }] },
    {
      type: 'code_execution_tool_result',
      content: { content: [{ type: 'code_execution_output', file_id: 'file_1' }] },
    },
  ];
  assert.deepEqual(
    vendorIdsIn({ content }, { isAnswer: true }).map(({ id }) => id),
    ['file_1'],
  );
});

test('more ids than are looked up are not hidden behind the others', () => {
  const tools = [{ vector_store_ids: Array.from({ length: mostVendorIds + 500 }, (_, index) => `vs_${index}`) }];
  assert.equal(vendorIdsIn({ tools }).length, mostVendorIds + 1);
});

test('an answer of any depth is walked without an overflow', () => {
  let nested: JsonObject = { file_id: 'deep' };
  for (let depth = 0; depth < 200_000; depth++) nested = { nested };
  assert.deepEqual(places(nested), []);
});
