/** Tools and the choice among them. Data. */
import { functions, type Row } from './table.ts';

const other = { type: 'function', function: { name: 'g', parameters: { type: 'object', properties: {} } } };
const both = [functions.chat, other];
const namedTools = (found: unknown) => (found as { name: string }[]).map(({ name }) => name).join();
const chatNames = (found: unknown) =>
  (found as { function: { name: string } }[]).map((tool) => tool.function.name).join();
const strictSchema = { type: 'object', properties: {}, required: [], additionalProperties: false };

export const tools: readonly Row[] = [
  {
    what: 'a function and no choice',
    from: 'gemini',
    request: { tools: [functions.gemini] },
    to: {
      chat: { has: { 'tools.0.function.parameters.required': ['a'], tool_choice: undefined } },
      responses: { has: { 'tools.0.parameters.required': ['a'], 'tools.0.strict': false } },
      messages: { has: { 'tools.0.input_schema.required': ['a'] } },
    },
  },
  {
    what: 'a function without a schema',
    from: 'chat',
    request: { tools: [{ type: 'function', function: { name: 'f' } }] },
    to: {
      responses: { has: { 'tools.0.parameters': { type: 'object', properties: {} } } },
      messages: { has: { 'tools.0.input_schema': { type: 'object', properties: {} } } },
      gemini: { has: { 'tools.0.functionDeclarations.0.name': 'f' } },
    },
  },
  {
    what: 'a strict function',
    from: 'responses',
    request: { tools: [{ type: 'function', name: 'f', parameters: strictSchema, strict: true }] },
    to: {
      chat: { has: { 'tools.0.function.strict': true } },
      messages: { has: { 'tools.0.strict': true } },
      gemini: { dropped: ['strict'] },
    },
  },
  ...(
    [
      ['auto', 'auto', { type: 'auto' }, { mode: 'AUTO' }],
      ['none', 'none', { type: 'none' }, { mode: 'NONE' }],
      ['required', 'required', { type: 'any' }, { mode: 'ANY' }],
    ] as const
  ).map(
    ([choice, responses, messages, calling]): Row => ({
      what: `the choice ${choice}`,
      from: 'chat',
      request: { tools: [functions.chat], tool_choice: choice },
      to: {
        responses: { has: { tool_choice: responses } },
        messages: { has: { tool_choice: messages } },
        gemini: { has: { 'toolConfig.functionCallingConfig': calling } },
      },
    }),
  ),
  ...(['chat', 'responses'] as const).map(
    (from): Row => ({
      what: 'the choice validated, which clients send to models of any vendor',
      from,
      request: { tools: [functions[from]], tool_choice: 'validated' },
      to: {
        chat: { has: { tool_choice: 'auto' } },
        responses: { has: { tool_choice: 'auto' } },
        messages: { has: { 'tool_choice.type': 'auto' } },
        gemini: { has: { 'toolConfig.functionCallingConfig': { mode: 'VALIDATED' } } },
      },
    }),
  ),
  {
    what: 'a forced function',
    from: 'messages',
    request: { tools: [functions.messages], tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true } },
    to: {
      chat: { has: { tool_choice: { type: 'function', function: { name: 'f' } }, parallel_tool_calls: false } },
      responses: { has: { tool_choice: { type: 'function', name: 'f' }, parallel_tool_calls: false } },
      gemini: {
        has: { 'toolConfig.functionCallingConfig': { mode: 'ANY', allowedFunctionNames: ['f'] } },
        dropped: ['tool_choice.disable_parallel_tool_use'],
      },
    },
  },
  {
    what: 'a forced function of models that cannot be forced',
    from: 'gemini',
    request: { tools: [functions.gemini], toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
    to: Object.fromEntries(
      (['chat', 'responses', 'messages'] as const).map((target) => [
        target,
        { traits: { forced_tools: false }, dropped: ['toolConfig.functionCallingConfig'] },
      ]),
    ),
  },
  {
    what: 'some of the tools, forced',
    from: 'responses',
    request: {
      tools: [functions.responses, { type: 'function', name: 'g' }, { type: 'function', name: 'h' }],
      tool_choice: {
        type: 'allowed_tools',
        mode: 'required',
        tools: [
          { type: 'function', name: 'f' },
          { type: 'function', name: 'g' },
        ],
      },
    },
    to: {
      chat: { has: { tools: (found: unknown) => chatNames(found) === 'f,g', tool_choice: 'required' } },
      messages: { has: { tools: (found: unknown) => namedTools(found) === 'f,g', tool_choice: { type: 'any' } } },
      gemini: { has: { 'toolConfig.functionCallingConfig': { mode: 'ANY', allowedFunctionNames: ['f', 'g'] } } },
    },
  },
  {
    what: 'some of the tools, for a chat server that knows such a choice',
    from: 'gemini',
    request: {
      tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'g' }] }],
      toolConfig: { functionCallingConfig: { mode: 'VALIDATED', allowedFunctionNames: ['f'] } },
    },
    to: {
      chat: {
        has: { 'tool_choice.type': 'allowed_tools', tools: (found: unknown) => chatNames(found) === 'f,g' },
        traits: { allowed_tools: true },
      },
      responses: { has: { 'tool_choice.type': 'allowed_tools' } },
      messages: { has: { tools: (found: unknown) => namedTools(found) === 'f' } },
    },
  },
  {
    what: 'some of the tools of a chat client',
    from: 'chat',
    request: {
      tools: both,
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'g' } }] },
      },
    },
    to: {
      responses: {
        has: { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'g' }] } },
      },
      messages: { has: { tools: (found: unknown) => namedTools(found) === 'g' } },
      gemini: { has: { 'toolConfig.functionCallingConfig.allowedFunctionNames': ['g'] } },
    },
  },
  {
    what: 'one call at a time',
    from: 'responses',
    request: { tools: [functions.responses], parallel_tool_calls: false },
    to: {
      chat: { has: { parallel_tool_calls: false } },
      messages: { has: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } } },
      gemini: { dropped: ['parallel_tool_calls'] },
    },
  },
  {
    what: 'free text by a grammar',
    from: 'responses',
    request: {
      tools: [{ type: 'custom', name: 'p', format: { type: 'grammar', syntax: 'lark', definition: 'start: X' } }],
    },
    to: {
      chat: { has: { 'tools.0.function.description': (text: string) => /lark grammar:\nstart: X/.test(text) } },
      messages: { has: { 'tools.0.description': (text: string) => /start: X/.test(text) } },
      gemini: { has: { 'tools.0.functionDeclarations.0.description': (text: string) => /start: X/.test(text) } },
    },
  },
  {
    what: 'a namespace, tools among the input, a tool that waits, and the client’s search for it',
    from: 'responses',
    request: {
      input: [
        {
          type: 'additional_tools',
          role: 'developer',
          tools: [{ type: 'namespace', name: 'ns', tools: [functions.responses] }],
        },
        { role: 'user', content: 'hi' },
      ],
      tools: [
        { type: 'function', name: 'late', defer_loading: true },
        { type: 'tool_search', execution: 'client' },
      ],
    },
    to: {
      chat: { has: { tools: (found: unknown) => chatNames(found) === 'late,tool_search,ns__f' } },
      messages: { has: { tools: (found: unknown) => namedTools(found) === 'late,tool_search,ns__f' } },
      gemini: { has: { 'tools.0.functionDeclarations.2.name': 'ns__f' } },
    },
  },
  {
    what: 'tools that wait, and the search for them',
    from: 'messages',
    request: {
      tools: [
        {
          ...functions.messages,
          defer_loading: true,
          eager_input_streaming: true,
          cache_control: { type: 'ephemeral' },
        },
        { name: 'DeferredToolPlaceholder', input_schema: { type: 'object' }, defer_loading: true },
        { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
      ],
    },
    to: {
      chat: { has: { tools: (found: unknown) => chatNames(found) === 'f' }, dropped: ['cache_control'] },
      responses: { has: { tools: (found: unknown) => namedTools(found) === 'f' }, dropped: ['cache_control'] },
      gemini: { has: { 'tools.0.functionDeclarations.0.name': 'f' }, dropped: ['cache_control'] },
    },
  },
  {
    what: 'a search of the web',
    from: 'chat',
    request: {
      web_search_options: {
        search_context_size: 'low',
        user_location: { type: 'approximate', approximate: { country: 'DE' } },
      },
    },
    to: {
      responses: {
        has: {
          tools: [
            { type: 'web_search', search_context_size: 'low', user_location: { type: 'approximate', country: 'DE' } },
          ],
        },
      },
      messages: {
        has: { 'tools.0.type': 'web_search_20250305', 'tools.0.user_location.country': 'DE' },
        dropped: ['search_context_size'],
      },
      gemini: {
        has: { tools: [{ googleSearch: {} }] },
        dropped: ['tools (web_search_options: contextSize)', 'tools (web_search_options: location)'],
      },
    },
  },
  {
    what: 'a search of the web that is all there is',
    from: 'messages',
    request: { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }] },
    to: {
      chat: { refused: 'tools' },
      responses: { has: { tools: [{ type: 'web_search' }] }, dropped: ['max_uses'] },
      gemini: { has: { tools: [{ googleSearch: {} }] }, dropped: ['tools (web_search_20250305: maxUses)'] },
    },
  },
  {
    what: 'a search within domains',
    from: 'responses',
    request: { tools: [{ type: 'web_search', filters: { allowed_domains: ['a.example'] } }] },
    to: {
      chat: { refused: 'tools', traits: { hosted_tools: ['web_search'] } },
      messages: { has: { 'tools.0.allowed_domains': ['a.example'] } },
      gemini: { refused: 'tools' },
    },
  },
  {
    what: 'a forced search beside functions',
    from: 'responses',
    request: { tools: [functions.responses, { type: 'web_search' }], tool_choice: { type: 'web_search' } },
    to: {
      chat: { has: { web_search_options: {} }, traits: { hosted_tools: ['web_search'] }, dropped: ['tool_choice'] },
      messages: { has: { tool_choice: { type: 'tool', name: 'web_search' } } },
    },
  },
  {
    what: 'code that the vendor runs, and its reading of addresses',
    from: 'gemini',
    request: { tools: [functions.gemini, { codeExecution: {} }, { urlContext: {} }] },
    to: {
      chat: { has: { tools: (found: unknown) => chatNames(found) === 'f' }, dropped: ['tools'] },
      responses: { has: { 'tools.1.type': 'code_interpreter' }, dropped: ['tools.urlContext'] },
      messages: { has: { 'tools.1.type': 'code_execution_20250825', 'tools.2.type': 'web_fetch_20250910' } },
    },
  },
  {
    what: 'a tool of the vendor alone',
    from: 'responses',
    request: { tools: [{ type: 'file_search', vector_store_ids: ['v'] }] },
    to: { chat: { refused: 'tools' }, messages: { refused: 'tools' }, gemini: { refused: 'tools' } },
  },
  {
    what: 'a tool of the vendor alone beside a function',
    from: 'gemini',
    request: { tools: [functions.gemini, { googleMaps: {} }] },
    to: {
      chat: { dropped: ['tools[1].googleMaps'] },
      responses: { dropped: ['tools[1].googleMaps'] },
      messages: { dropped: ['tools[1].googleMaps'] },
    },
  },
  {
    what: 'pictures that a tool draws',
    from: 'responses',
    request: { tools: [{ type: 'image_generation', size: '1536x1024', quality: 'high' }] },
    to: {
      chat: { refused: 'tools' },
      messages: { refused: 'tools' },
      gemini: {
        has: {
          'generationConfig.responseModalities': ['TEXT', 'IMAGE'],
          'generationConfig.imageConfig': { aspectRatio: '3:2' },
        },
        dropped: ['tools.image_generation'],
      },
    },
  },
  {
    what: 'tools of the vendor that any client can carry out itself',
    from: 'messages',
    request: {
      tools: [
        { type: 'bash_20250124', name: 'bash' },
        { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
      ],
    },
    to: {
      chat: { has: { tools: (found: unknown) => chatNames(found) === 'bash,str_replace_based_edit_tool' } },
      responses: { has: { 'tools.0.parameters.properties.command.type': 'string' } },
      gemini: { has: { 'tools.0.functionDeclarations.0.name': 'bash' } },
    },
  },
  {
    what: 'servers whose tools the vendor calls',
    from: 'messages',
    request: { mcp_servers: [{ type: 'url', url: 'https://a.example', name: 's' }] },
    to: { chat: { refused: 'mcp_servers' }, responses: { refused: 'mcp_servers' }, gemini: { refused: 'mcp_servers' } },
  },
  {
    what: 'options of a hosted tool that no one else knows',
    from: 'messages',
    request: {
      tools: [
        functions.messages,
        {
          type: 'web_fetch_20250910',
          name: 'web_fetch',
          citations: { enabled: true },
          max_content_tokens: 9,
          cache_control: { type: 'ephemeral' },
        },
      ],
    },
    to: {
      gemini: {
        has: { 'tools.1': { urlContext: {} } },
        dropped: ['web_fetch_20250910.citations', 'web_fetch_20250910.max_content_tokens', 'cache_control'],
      },
    },
  },
  {
    what: 'options of a hosted search that no one else knows',
    from: 'responses',
    request: {
      tools: [
        { type: 'web_search', search_content_types: ['text', 'image'], return_token_budget: 'high' },
        { type: 'code_interpreter', container: { type: 'auto', file_ids: ['f'] } },
      ],
    },
    to: {
      messages: {
        has: { 'tools.1.type': 'code_execution_20250825' },
        dropped: ['web_search.search_content_types', 'web_search.return_token_budget', 'code_interpreter.container'],
      },
    },
  },
];
