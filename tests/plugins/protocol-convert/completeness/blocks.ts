/** What a conversation may hold: texts, media, calls and their results, in all places. Data. */
import { functions, pdf, png, type Row, wav } from './table.ts';

const film = 'https://www.youtube.com/watch?v=abc';
const dataUrl = (type: string, base64: string) => `data:${type};base64,${base64}`;
const said = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] });
const report = (...parts: unknown[]) => ({ contents: [{ role: 'user', parts }] });
const given = (...content: unknown[]) => ({ input: [{ role: 'user', content }] });
const pngSource = { type: 'base64', media_type: 'image/png', data: png };
const callOf = (found: unknown) => JSON.parse((found as { arguments: string }).arguments) as unknown;
const bigNumber = '{"id":12345678901234567890,"x":1.0}';

/** A chat conversation in which a tool was called and gave this. */
const step = (content: unknown, args = '{"a":"b"}') => ({
  tools: [functions.chat],
  messages: [
    { role: 'user', content: 'go' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: args } }],
    },
    { role: 'tool', tool_call_id: 'c1', content },
  ],
});
const messagesStep = (content: unknown, more = {}) => ({
  tools: [functions.messages],
  messages: [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: { a: 'b' } }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c1', content, ...more },
        { type: 'text', text: 'next' },
      ],
    },
  ],
});

export const texts: readonly Row[] = [
  {
    what: 'system words in front and later',
    from: 'chat',
    request: {
      messages: [
        { role: 'system', content: 'one' },
        { role: 'developer', content: 'two' },
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'ho' },
        { role: 'system', content: 'three' },
        { role: 'user', content: 'go' },
      ],
    },
    to: {
      responses: { has: { instructions: 'one\n\ntwo', 'input.2.role': 'developer' } },
      messages: { has: { 'system.1.text': 'two', 'messages.2.role': 'system' } },
      gemini: {
        has: {
          'systemInstruction.parts': [{ text: 'one' }, { text: 'two' }],
          'contents.2.parts.0.text': '<system-reminder>\nthree\n</system-reminder>',
        },
      },
    },
  },
  {
    what: 'names of participants',
    from: 'chat',
    request: { messages: [{ role: 'user', name: 'Ann', content: 'hi' }] },
    to: {
      responses: { dropped: ['messages.name'] },
      messages: { has: { 'messages.0.content.0.text': 'Ann: hi' } },
      gemini: { dropped: ['messages.name'] },
    },
  },
  {
    what: 'phases and annotations of what was answered',
    from: 'responses',
    request: {
      input: [
        { role: 'user', content: 'hi' },
        {
          type: 'message',
          role: 'assistant',
          phase: 'commentary',
          content: [
            {
              type: 'output_text',
              text: 'see a',
              annotations: [
                { type: 'url_citation', url: 'https://a.example', title: 'a', start_index: 0, end_index: 5 },
              ],
            },
          ],
        },
        { role: 'user', content: 'go' },
      ],
    },
    to: {
      chat: { dropped: ['phase', 'annotations'] },
      messages: { dropped: ['phase', 'annotations'] },
      gemini: { dropped: ['phase', 'annotations'] },
    },
  },
  {
    what: 'annotations of what a chat model answered',
    from: 'chat',
    request: {
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: 'see a',
          annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example' } }],
        },
        { role: 'user', content: 'go' },
      ],
    },
    to: {
      responses: { dropped: ['messages[1].annotations'] },
      messages: { dropped: ['messages[1].annotations'] },
      gemini: { dropped: ['messages[1].annotations'] },
    },
  },
  {
    what: 'refusals of the model',
    from: 'chat',
    request: {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, refusal: 'never' },
        { role: 'user', content: 'go' },
      ],
    },
    to: {
      responses: { has: { 'input.1.content': [{ type: 'refusal', refusal: 'never' }] } },
      messages: { has: { 'messages.1.content': [{ type: 'text', text: 'never' }] } },
      gemini: { has: { 'contents.1.parts': [{ text: 'never' }] } },
    },
  },
  {
    what: 'marks of what to cache',
    from: 'messages',
    request: said({ type: 'text', text: 'hi', cache_control: { type: 'ephemeral', ttl: '1h' } }),
    to: {
      chat: { has: { 'messages.0.content': 'hi' }, dropped: ['cache_control'] },
      responses: { has: { 'input.0.content.0.prompt_cache_breakpoint.ttl': '12h' }, traits: { cache_marks: true } },
      gemini: { dropped: ['cache_control'] },
    },
  },
  {
    what: 'turns that begin and end with the model, and empty texts',
    from: 'gemini',
    request: {
      contents: [
        { role: 'model', parts: [{ text: 'ho' }] },
        { role: 'user', parts: [{ text: '' }] },
        { role: 'model', parts: [{ text: 'and' }] },
      ],
    },
    to: {
      chat: { has: { 'messages.0.role': 'assistant' } },
      messages: { has: { 'messages.0.role': 'user', 'messages.2.content.0.text': 'Continue.' } },
    },
  },
  {
    what: 'reasoning that another vendor signed',
    from: 'messages',
    request: {
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'foreign' },
            { type: 'redacted_thinking', data: 'x' },
            { type: 'text', text: 'ho' },
          ],
        },
        { role: 'user', content: 'go' },
      ],
    },
    to: {
      chat: { lacks: ['foreign', 'hm'], dropped: ['messages.content.thinking'] },
      responses: { lacks: ['foreign'], dropped: ['messages.content.thinking'] },
      gemini: { lacks: ['foreign'], dropped: ['messages.content.thinking'] },
    },
  },
];

export const media: readonly Row[] = [
  {
    what: 'an image, and how closely to look at it',
    from: 'chat',
    request: said({ type: 'image_url', image_url: { url: dataUrl('image/jpeg', png), detail: 'high' } }),
    to: {
      responses: {
        has: { 'input.0.content.0': { type: 'input_image', image_url: dataUrl('image/png', png), detail: 'high' } },
      },
      messages: { has: { 'messages.0.content.0.source': pngSource }, dropped: ['image_url.detail'] },
      gemini: {
        has: { 'contents.0.parts.0.inlineData': { mimeType: 'image/png', data: png } },
        dropped: ['image_url.detail'],
      },
    },
  },
  {
    what: 'an image by address',
    from: 'responses',
    request: given({ type: 'input_image', image_url: 'https://a.example/i.png' }),
    to: {
      chat: { has: { 'messages.0.content.0.image_url.url': 'https://a.example/i.png' } },
      messages: { has: { 'messages.0.content.0.source': { type: 'url', url: 'https://a.example/i.png' } } },
    },
  },
  {
    what: 'a document',
    from: 'messages',
    request: said({
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: pdf },
      title: 'T',
      context: 'about',
      citations: { enabled: true },
    }),
    to: {
      chat: {
        has: { 'messages.0.content.1.file.file_data': dataUrl('application/pdf', pdf) },
        dropped: ['messages.content.citations'],
      },
      responses: {
        has: { 'input.0.content.0.text': 'about', 'input.0.content.1.filename': 'T' },
        dropped: ['messages.content.citations'],
      },
      gemini: {
        has: { 'contents.0.parts.0.text': 'about', 'contents.0.parts.1.inlineData.data': pdf },
        dropped: ['messages.content.citations', 'messages.content.title'],
      },
    },
  },
  {
    what: 'a sound',
    from: 'chat',
    request: said({ type: 'text', text: 'hear' }, { type: 'input_audio', input_audio: { data: wav, format: 'wav' } }),
    to: {
      responses: { refused: 'messages[0].content[1].input_audio' },
      messages: { refused: 'messages[0].content[1].input_audio' },
      gemini: { has: { 'contents.0.parts.1.inlineData.mimeType': 'audio/wav' } },
    },
  },
  {
    what: 'a film',
    from: 'gemini',
    request: report(
      { text: 'see' },
      { inlineData: { mimeType: 'video/mp4', data: 'AAAA' }, videoMetadata: { fps: 2 } },
    ),
    to: {
      chat: { refused: 'contents[0].parts[1].inlineData' },
      responses: { refused: 'contents[0].parts[1].inlineData' },
      messages: { refused: 'contents[0].parts[1].inlineData' },
    },
  },
  {
    what: 'a film, as a client of underscores writes it',
    from: 'gemini',
    request: report({ inline_data: { mime_type: 'video/mp4', data: 'AAAA' } }),
    to: { messages: { refused: 'contents[0].parts[0].inline_data' } },
  },
  {
    what: 'a film to be watched at its page',
    from: 'gemini',
    request: report({ fileData: { fileUri: film } }),
    to: {
      chat: { refused: 'contents[0].parts[0].fileData' },
      responses: { refused: 'contents[0].parts[0].fileData' },
      messages: { refused: 'contents[0].parts[0].fileData' },
    },
  },
  {
    what: 'a film to be watched at its page, of a chat client',
    from: 'chat',
    request: said({ type: 'video_url', video_url: { url: film } }),
    to: {
      responses: { refused: 'messages[0].content[0].video_url' },
      messages: { refused: 'messages[0].content[0].video_url' },
      gemini: { has: { 'contents.0.parts': [{ fileData: { fileUri: film } }] } },
    },
  },
  {
    what: 'files that another vendor keeps',
    from: 'responses',
    request: given({ type: 'input_file', file_id: 'file-1' }),
    to: {
      chat: { refused: 'input[0].content[0]' },
      messages: { refused: 'input[0].content[0]' },
      gemini: { refused: 'input[0].content[0]' },
    },
  },
  {
    what: 'an image for a model that sees none',
    from: 'messages',
    request: said({ type: 'text', text: 'see' }, { type: 'image', source: pngSource }),
    to: {
      chat: { refused: 'messages[0].content[1].source', traits: { inputs: [] } },
      responses: { refused: 'messages[0].content[1].source', traits: { inputs: [] } },
      gemini: { refused: 'messages[0].content[1].source', traits: { inputs: [] } },
    },
  },
  {
    what: 'text documents for a model that sees nothing',
    from: 'messages',
    request: said({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' } }),
    to: Object.fromEntries(
      (['chat', 'responses', 'gemini'] as const).map((target) => [
        target,
        { traits: { inputs: [] }, lacks: ['data:'] },
      ]),
    ),
  },
];

const shown = [
  { type: 'text', text: 'seen' },
  { type: 'image', source: pngSource },
];
const unshown = (text: unknown) => /image that cannot be shown/.test(JSON.stringify(text));

export const calls: readonly Row[] = [
  {
    what: 'a call and its result',
    from: 'chat',
    request: step('{"x":1}'),
    to: {
      responses: {
        has: {
          'input.1': { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":"b"}' },
          'input.2.output': '{"x":1}',
        },
      },
      messages: { has: { 'messages.1.content.0.input': { a: 'b' }, 'messages.2.content.0.tool_use_id': 'c1' } },
      gemini: {
        has: {
          'contents.1.parts.0.functionCall': { id: 'c1', name: 'f', args: { a: 'b' } },
          'contents.2.parts.0.functionResponse': { id: 'c1', name: 'f', response: { x: 1 } },
        },
      },
    },
  },
  {
    what: 'an error of a tool',
    from: 'messages',
    request: messagesStep('broke', { is_error: true }),
    to: {
      chat: { has: { 'messages.2.content': 'Error: broke' } },
      responses: { has: { 'input.2.output': 'Error: broke' } },
      gemini: { has: { 'contents.2.parts.0.functionResponse.response': { error: 'broke' } } },
    },
  },
  {
    what: 'an image that a tool gives',
    from: 'messages',
    request: messagesStep(shown),
    to: {
      chat: {
        has: {
          'messages.2.content': (text: string) => text.startsWith('seen'),
          'messages.3.content.1.type': 'image_url',
        },
      },
      responses: { has: { 'input.2.output.1.type': 'input_image' } },
      gemini: {
        has: { 'contents.2.parts.0.functionResponse.parts': [{ inlineData: { mimeType: 'image/png', data: png } }] },
      },
    },
  },
  {
    what: 'an image that a tool gives to a model that sees none',
    from: 'messages',
    request: messagesStep(shown),
    to: Object.fromEntries(
      (['chat', 'responses', 'gemini'] as const).map((target) => [
        target,
        {
          traits: { inputs: [] },
          has: { [target === 'chat' ? 'messages' : target === 'gemini' ? 'contents' : 'input']: unshown },
          lacks: [png],
          dropped: ['messages.content.image'],
        },
      ]),
    ),
  },
  {
    what: 'a sound that a tool gives',
    from: 'gemini',
    request: {
      contents: [
        { role: 'user', parts: [{ text: 'go' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
        {
          role: 'user',
          parts: [
            {
              functionResponse: {
                name: 'f',
                response: { output: 'x' },
                parts: [{ inlineData: { mimeType: 'audio/ogg', data: 'AAAA' } }],
              },
            },
          ],
        },
      ],
    },
    to: {
      responses: { dropped: ['contents[].parts[].inlineData'] },
      messages: { dropped: ['contents[].parts[].inlineData'] },
    },
  },
  {
    what: 'numbers that no double holds',
    from: 'chat',
    request: step('ok', bigNumber),
    to: {
      responses: { has: { 'input.1.arguments': bigNumber } },
      messages: { has: { 'messages.1.content.0.input.x': 1 } },
      gemini: { has: { 'contents.1.parts.0.functionCall.args.x': 1 } },
    },
  },
  {
    what: 'results without a call, calls without a result, and results that come twice',
    from: 'responses',
    request: {
      input: [
        { role: 'user', content: 'go' },
        { type: 'function_call_output', call_id: 'missing', output: 'x' },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '' },
        { type: 'function_call', call_id: 'c2', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c2', output: 'old' },
        { type: 'function_call_output', call_id: 'c2', output: 'new' },
      ],
    },
    to: {
      chat: {
        has: {
          'messages.1.tool_calls.0.function': (found: unknown) => Object.keys(callOf(found) as object).length === 0,
          'messages.3.content': 'new',
        },
        lacks: ['missing', 'old'],
        dropped: ['function_call_output'],
      },
      messages: {
        has: { 'messages.2.content.0.content': '(no result)', 'messages.2.content.1.content': 'new' },
        lacks: ['missing'],
        dropped: ['function_call_output'],
      },
      gemini: {
        has: { 'contents.2.parts.1.functionResponse.response.output': 'new' },
        lacks: ['missing'],
        dropped: ['function_call_output'],
      },
    },
  },
  {
    what: 'free text calls',
    from: 'responses',
    request: {
      tools: [{ type: 'custom', name: 'p' }],
      input: [
        { role: 'user', content: 'go' },
        { type: 'custom_tool_call', call_id: 'c1', name: 'p', input: 'raw' },
        { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
      ],
    },
    to: {
      chat: { has: { 'messages.1.tool_calls.0.function.arguments': '{"input":"raw"}' } },
      messages: { has: { 'messages.1.content.0.input': { input: 'raw' } } },
      gemini: { has: { 'contents.1.parts.0.functionCall.args': { input: 'raw' } } },
    },
  },
  {
    what: 'items and blocks of tools that only their vendor runs',
    from: 'messages',
    request: {
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: [
            { type: 'server_tool_use', id: 's', name: 'code_execution', input: {} },
            { type: 'text', text: 'ok' },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'container_upload', file_id: 'f' },
            { type: 'text', text: 'on' },
          ],
        },
      ],
    },
    to: Object.fromEntries(
      (['chat', 'responses', 'gemini'] as const).map((target) => [
        target,
        { dropped: ['server_tool_use', 'container_upload'] },
      ]),
    ),
  },
  {
    what: 'searches that the vendor made',
    from: 'responses',
    request: {
      input: [
        { role: 'user', content: 'go' },
        { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
        { type: 'file_search_call', id: 'fs_1', queries: ['q'] },
        { type: 'shell_call', id: 'sh_1', action: { commands: ['ls'] } },
        { role: 'user', content: 'on' },
      ],
    },
    to: {
      chat: { dropped: ['web_search_call', 'file_search_call', 'shell_call'] },
      gemini: { dropped: ['web_search_call', 'file_search_call', 'shell_call'] },
    },
  },
];
