/** Requests that hold every member which a decoder reads, each at least once. Data. */
import { pdf, png } from '../completeness/table.ts';

type Json = Record<string, unknown>;
const long = { type: 'ephemeral', ttl: '1h' };
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
const user = { role: 'user', content: 'Hi' };
const pngUrl = `data:image/png;base64,${png}`;
const pdfUrl = `data:application/pdf;base64,${pdf}`;

export const messages: readonly Json[] = [
  {
    system: [{ type: 'text', text: 'Be brief.', cache_control: long }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look', cache_control: long },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png }, cache_control: long },
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: pdf },
            title: 'T',
            context: 'about',
            citations: { enabled: true },
            cache_control: long,
          },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm', signature: 'foreign' },
          { type: 'redacted_thinking', data: 'foreign' },
          {
            type: 'text',
            text: 'See',
            citations: [{ type: 'web_search_result_location', url: 'https://a.example', title: 't' }],
          },
          { type: 'tool_use', id: 'c1', name: 'look', input: { a: 'b' }, cache_control: long },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'c1',
            content: [
              { type: 'text', text: 'seen', cache_control: long },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
            ],
            is_error: true,
            cache_control: long,
          },
        ],
      },
    ],
    tools: [
      {
        name: 'look',
        description: 'Looks',
        input_schema: schema,
        strict: true,
        cache_control: long,
        input_examples: [{ a: 'b' }],
        allowed_callers: ['code_execution_20250825'],
      },
    ],
    tool_choice: { type: 'tool', name: 'look', disable_parallel_tool_use: true },
    metadata: { user_id: 'u' },
  },
  {
    messages: [
      {
        role: 'user',
        content: [
          {
            type: 'search_result',
            source: 'https://a.example',
            title: 'A',
            content: [{ type: 'text', text: 'words' }],
            citations: { enabled: true },
            cache_control: long,
          },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' }, title: 'Words' },
          { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'inner' }] } },
        ],
      },
      { role: 'assistant', content: [{ type: 'compaction', content: 'So far', cache_control: long }] },
      {
        role: 'assistant',
        content: [
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
          {
            type: 'web_search_tool_result',
            tool_use_id: 'srvtoolu_1',
            content: [{ type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'x' }],
          },
        ],
      },
      { role: 'system', content: 'Mind' },
      user,
    ],
    tools: [
      {
        type: 'computer_20250124',
        name: 'computer',
        display_width_px: 10,
        display_height_px: 20,
        cache_control: long,
        strict: true,
      },
    ],
    max_tokens: 30_000,
    thinking: { type: 'enabled', budget_tokens: 20_000, display: 'omitted' },
    cache_control: long,
    output_config: { format: { type: 'json_schema', schema } },
  },
  {
    messages: [{ role: 'system', content: 'Gone', clear_at: 'next_user_message' }, user],
    output_config: { effort: 'xhigh' },
    output_format: { type: 'json_schema', schema },
  },
  {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'document', source: { type: 'url', url: 'http://127.0.0.1:1/a.pdf' }, title: 'A paper' },
          { type: 'image', source: { type: 'url', url: 'http://127.0.0.1:1/i.png' } },
        ],
      },
    ],
  },
  { messages: [user, { role: 'system', content: 'Mind', output_config: { effort: 'low' } }, user] },
  { messages: [{ role: 'user', content: [{ type: 'tool_reference', tool_name: 'x', cache_control: long }] }] },
];

const chatTool = {
  type: 'function',
  function: { name: 'look', description: 'Looks', parameters: schema, strict: true, defer_loading: true },
};
export const chat: readonly Json[] = [
  {
    messages: [
      { role: 'system', content: 'Be brief.', name: 'sys' },
      {
        role: 'user',
        name: 'Ann',
        content: [
          { type: 'text', text: 'Look', cache_control: long },
          { type: 'image_url', image_url: { url: pngUrl, detail: 'high' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: pdfUrl } },
        ],
      },
      {
        role: 'assistant',
        content: 'See',
        refusal: 'No',
        annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example' } }],
        audio: { id: 'a' },
        reasoning_content: 'Hm',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"a":"b"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'seen', cache_control: long },
    ],
    tools: [chatTool],
    tool_choice: { type: 'function', function: { name: 'look' } },
    response_format: { type: 'json_schema', json_schema: { name: 'n', description: 'about', schema, strict: true } },
  },
  {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
          { type: 'text', text: 'x' },
        ],
        cache_control: long,
      },
      {
        role: 'assistant',
        content: 'Hm',
        reasoning_details: [{ type: 'reasoning.text', text: 'thought', signature: 'foreign' }],
      },
      user,
    ],
    tools: [
      {
        type: 'custom',
        custom: {
          name: 'p',
          description: 'd',
          format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: X' } },
        },
      },
    ],
    tool_choice: { type: 'custom', custom: { name: 'p' } },
    reasoning: { effort: 'high', exclude: true },
  },
  { messages: [user], thinking: { type: 'enabled', budget_tokens: 3_000 } },
  { messages: [user], thinking: { type: 'disabled' } },
  { messages: [user], include_reasoning: true },
  { messages: [user], include_reasoning: false },
  { messages: [user], enable_thinking: true },
  { messages: [user], thinking: { type: 'enabled' } },
  { messages: [user], reasoning: { max_tokens: 3_000, enabled: true } },
  { messages: [user], functions: [{ name: 'f', description: 'd', parameters: schema }], function_call: { name: 'f' } },
];

export const responses: readonly Json[] = [
  {
    instructions: 'Be brief.',
    input: [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look', prompt_cache_breakpoint: { type: 'ephemeral', ttl: '12h' } },
          { type: 'input_image', image_url: pngUrl, detail: 'high' },
          { type: 'input_file', filename: 'a.pdf', file_data: pdfUrl },
        ],
      },
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'Hm' }], encrypted_content: 'foreign' },
      {
        type: 'message',
        role: 'assistant',
        phase: 'commentary',
        content: [
          {
            type: 'output_text',
            text: 'See',
            annotations: [{ type: 'url_citation', url: 'https://a.example', title: 'a', start_index: 0, end_index: 3 }],
          },
        ],
      },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"a":"b"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'seen' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'p', input: 'free' },
      { type: 'custom_tool_call_output', call_id: 'c2', output: 'done' },
      { type: 'web_search_call', id: 'ws', action: { type: 'search', query: 'q' } },
      { type: 'tool_search_call', call_id: 'c3', execution: 'client', arguments: { query: 'late' } },
      {
        type: 'tool_search_output',
        call_id: 'c3',
        tools: [
          { type: 'function', name: 'late', description: 'Waits', parameters: schema, defer_loading: true },
          { type: 'namespace', name: 'far', description: 'Afar', tools: [{ type: 'function', name: 'h' }] },
        ],
      },
      user,
    ],
    tools: [
      { type: 'function', name: 'look', description: 'Looks', parameters: schema, strict: true, defer_loading: true },
      { type: 'custom', name: 'p', description: 'd', format: { type: 'grammar', syntax: 'regex', definition: 'a+' } },
      { type: 'namespace', name: 'ns', tools: [{ type: 'function', name: 'g', parameters: schema }] },
      { type: 'tool_search', execution: 'client', description: 'Finds', parameters: schema },
    ],
    tool_choice: { type: 'function', name: 'look' },
    text: { format: { type: 'json_schema', name: 'n', description: 'about', schema, strict: true }, verbosity: 'low' },
    reasoning: { effort: 'high', summary: 'auto' },
  },
  {
    input: 'Hi',
    tools: [
      { type: 'function', name: 'f' },
      { type: 'web_search', external_web_access: false },
    ],
  },
  { input: 'Hi', tools: [{ type: 'function', name: 'f', output_schema: schema, allowed_callers: ['programmatic'] }] },
];

export const gemini: readonly Json[] = [
  {
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    contents: [
      {
        role: 'user',
        parts: [
          { text: 'Look' },
          { inlineData: { mimeType: 'image/png', data: png } },
          { inlineData: { mimeType: 'application/pdf', data: pdf, displayName: 'a.pdf' } },
        ],
      },
      {
        role: 'model',
        parts: [
          { text: 'Hm', thought: true },
          { text: 'See', thoughtSignature: 'foreign' },
          { functionCall: { id: 'c1', name: 'look', args: { a: 'b' } } },
        ],
      },
      {
        role: 'user',
        parts: [
          {
            functionResponse: {
              id: 'c1',
              name: 'look',
              response: { a: 1 },
              scheduling: 'SILENT',
              willContinue: true,
              parts: [{ inlineData: { mimeType: 'image/png', data: png } }],
            },
          },
        ],
      },
    ],
    tools: [
      {
        functionDeclarations: [
          {
            name: 'look',
            description: 'Looks',
            parametersJsonSchema: schema,
            behavior: 'BLOCKING',
            responseJsonSchema: schema,
          },
        ],
      },
    ],
    toolConfig: {
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['look'], streamFunctionCallArguments: true },
    },
    generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } },
  },
  {
    contents: [
      { parts: [{ text: 'x' }, { fileData: { mimeType: 'image/png', fileUri: 'http://127.0.0.1:1/i.png' } }] },
    ],
    generationConfig: { thinkingConfig: { thinkingBudget: 5_000 } },
    tools: [{ functionDeclarations: [{ name: 'f', parameters: schema, response: schema }] }],
  },
];
