/** Ways to ask for reasoning and for structured answers. Data. */
import { answerSchema, functions, type Row } from './table.ts';

const newFormats = [
  'generationConfig.responseFormat[1].audio',
  'generationConfig.responseFormat[1].image.delivery',
  'generationConfig.responseFormat[1].image',
];
const imageOptions = (name: string) => ({
  chat: { has: {}, dropped: [name] },
  responses: { has: {}, dropped: [name] },
  messages: { has: {}, dropped: [name] },
});

export const reasoning: readonly Row[] = [
  {
    what: 'an effort',
    from: 'chat',
    request: { reasoning_effort: 'xhigh' },
    to: {
      responses: { has: { 'reasoning.effort': 'high' } },
      messages: { has: { thinking: { type: 'adaptive', display: 'summarized' }, 'output_config.effort': 'high' } },
      gemini: { has: { 'generationConfig.thinkingConfig.thinkingLevel': 'HIGH' } },
    },
  },
  {
    what: 'no reasoning',
    from: 'responses',
    request: { reasoning: { effort: 'none' } },
    to: {
      chat: { has: { reasoning_effort: 'none' } },
      messages: { has: { thinking: { type: 'disabled' } } },
      gemini: { has: { 'generationConfig.thinkingConfig.thinkingBudget': 0 }, traits: { reasoning: 'budget' } },
    },
  },
  {
    what: 'no reasoning, of models that always reason',
    from: 'messages',
    request: { thinking: { type: 'disabled' } },
    to: {
      chat: { has: { reasoning_effort: 'low' }, traits: { reasoning_off: false }, dropped: ['thinking'] },
      responses: { has: { 'reasoning.effort': 'low' }, traits: { reasoning_off: false }, dropped: ['thinking'] },
    },
  },
  {
    what: 'a budget',
    from: 'messages',
    request: { max_tokens: 32_000, thinking: { type: 'enabled', budget_tokens: 31_999 } },
    to: {
      chat: { has: { reasoning_effort: 'high' } },
      responses: { has: { reasoning: { effort: 'high', summary: 'auto' } } },
      gemini: {
        has: { 'generationConfig.thinkingConfig': { includeThoughts: true, thinkingBudget: 24_576 } },
        traits: { reasoning: 'budget', max_budget: 24_576 },
      },
    },
  },
  {
    what: 'a budget of generate-content',
    from: 'gemini',
    request: {
      generationConfig: { maxOutputTokens: 20_000, thinkingConfig: { includeThoughts: true, thinkingBudget: 8192 } },
    },
    to: {
      chat: { has: { reasoning_effort: 'medium' } },
      responses: { has: { reasoning: { effort: 'medium', summary: 'auto' } } },
      messages: {
        has: { thinking: { type: 'enabled', budget_tokens: 8192 } },
        traits: { reasoning: 'budget' },
      },
    },
  },
  {
    what: 'reasoning of a model that does none',
    from: 'gemini',
    request: { generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH' } } },
    to: Object.fromEntries(
      (['chat', 'responses', 'messages'] as const).map((target) => [
        target,
        { traits: { reasoning: 'none' }, dropped: ['generationConfig.thinkingConfig'] },
      ]),
    ),
  },
];

const named = { name: 'n', description: 'about', schema: answerSchema, strict: true };

export const structured: readonly Row[] = [
  {
    what: 'an answer by schema',
    from: 'chat',
    request: { response_format: { type: 'json_schema', json_schema: named } },
    to: {
      responses: { has: { 'text.format': { type: 'json_schema', ...named } } },
      messages: { has: { 'output_config.format.schema': { ...answerSchema, description: 'about' } } },
      gemini: {
        has: {
          'generationConfig.responseMimeType': 'application/json',
          'generationConfig.responseJsonSchema': { ...answerSchema, description: 'about' },
        },
      },
    },
  },
  {
    what: 'an answer by schema, of a model that is forced to call a tool for it',
    from: 'gemini',
    request: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: answerSchema } },
    to: {
      chat: { has: { 'tool_choice.type': 'function' }, traits: { structured: 'tool' } },
      responses: { has: { 'tool_choice.type': 'function' }, traits: { structured: 'tool' } },
      messages: { has: { 'tool_choice.type': 'tool' }, traits: { structured: 'tool' } },
    },
  },
  {
    what: 'an answer by schema in the list of formats that the newest types of generate-content have',
    from: 'gemini',
    request: {
      generationConfig: {
        responseFormat: [
          { text: { mimeType: 'APPLICATION_JSON', schema: answerSchema } },
          { audio: { bitRate: 1 }, image: { aspectRatio: '1:1', delivery: 'INLINE' } },
        ],
      },
    },
    to: {
      chat: { has: { 'response_format.json_schema.schema': answerSchema }, dropped: newFormats },
      responses: { has: { 'text.format.schema': answerSchema }, dropped: newFormats },
      messages: { has: { 'output_config.format.schema': answerSchema }, dropped: newFormats },
    },
  },
  {
    what: 'options of images where none is asked for',
    from: 'gemini',
    request: { generationConfig: { imageConfig: { aspectRatio: '16:9', imageSize: '2K' } } },
    to: imageOptions('generationConfig.imageConfig'),
  },
  {
    what: 'a format of images where none is asked for, in snake case',
    from: 'gemini',
    request: { generation_config: { response_format: { image: { aspect_ratio: '16:9' } } } },
    to: imageOptions('generation_config.response_format.image'),
  },
  {
    what: 'an answer by schema in the list of formats, in snake case and not in a list',
    from: 'gemini',
    request: {
      generation_config: {
        response_format: { text: { mime_type: 'application/json', schema: { ...answerSchema, title: 'snake_case' } } },
      },
    },
    to: {
      chat: { has: { 'response_format.json_schema.name': 'snake_case' } },
      responses: { has: { 'text.format.name': 'snake_case' } },
      messages: { has: { 'output_config.format.type': 'json_schema' } },
    },
  },
  {
    what: 'JSON by the list of formats',
    from: 'gemini',
    request: { generationConfig: { responseFormat: [{ text: { mimeType: 'application/json' } }] } },
    to: {
      chat: { has: { 'response_format.type': 'json_object' } },
      responses: { has: { 'text.format.type': 'json_object' } },
      messages: { has: { system: (found: unknown) => JSON.stringify(found).includes('JSON') } },
    },
  },
  {
    what: 'an answer by schema in the upper case types of generate-content',
    from: 'gemini',
    request: {
      generationConfig: { responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true } } } },
    },
    to: {
      chat: { has: { 'response_format.json_schema.schema.properties.a.type': ['string', 'null'] } },
      responses: { has: { 'text.format.schema.type': 'object' } },
      messages: { has: { 'output_config.format.schema.additionalProperties': false } },
    },
  },
  {
    what: 'the schema of a messages client',
    from: 'messages',
    request: { output_config: { format: { type: 'json_schema', schema: answerSchema } } },
    to: {
      chat: { has: { 'response_format.json_schema': { name: 'response', schema: answerSchema, strict: true } } },
      responses: {
        has: { 'text.format': { type: 'json_schema', name: 'response', schema: answerSchema, strict: true } },
      },
      gemini: { has: { 'generationConfig.responseJsonSchema': answerSchema } },
    },
  },
  {
    what: 'a JSON object',
    from: 'responses',
    request: { text: { format: { type: 'json_object' } } },
    to: {
      chat: { has: { response_format: { type: 'json_object' } } },
      messages: { has: { 'system.0.text': (text: string) => /JSON object/.test(text) } },
      gemini: { has: { 'generationConfig.responseMimeType': 'application/json' } },
    },
  },
  {
    what: 'a schema beside tools where both do not go together',
    from: 'chat',
    request: { tools: [functions.chat], response_format: { type: 'json_schema', json_schema: named } },
    to: {
      gemini: {
        has: { 'systemInstruction.parts.0.text': (text: string) => /JSON Schema/.test(text) },
        lacks: ['responseJsonSchema'],
        traits: { structured_with_tools: false },
      },
    },
  },
];
