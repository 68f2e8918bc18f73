/** Parameters of requests. Data. */
import type { Row } from './table.ts';

const some = (value: unknown) => value !== undefined;

export const parameters: readonly Row[] = [
  {
    what: 'the bound on the answer',
    from: 'chat',
    request: { max_completion_tokens: 10, max_tokens: 20 },
    to: {
      responses: { has: { max_output_tokens: 16 } },
      messages: { has: { max_tokens: 10 } },
      gemini: { has: { 'generationConfig.maxOutputTokens': 10 } },
    },
  },
  {
    what: 'no bound on the answer',
    from: 'responses',
    request: {},
    to: { chat: { lacks: ['max_'] }, messages: { has: { max_tokens: 8192 } }, gemini: { lacks: ['maxOutput'] } },
  },
  {
    what: 'the bound of a messages client',
    from: 'messages',
    request: { max_tokens: 128_000 },
    to: {
      chat: { has: { max_completion_tokens: 128_000 }, traits: { max_tokens_field: 'max_completion_tokens' } },
      responses: { has: { max_output_tokens: 128_000 } },
      gemini: { has: { 'generationConfig.maxOutputTokens': 128_000 } },
    },
  },
  {
    what: 'temperature above 1',
    from: 'chat',
    request: { temperature: 1.5 },
    to: {
      responses: { has: { temperature: 1.5 } },
      messages: { has: { temperature: 1 }, dropped: ['temperature'] },
      gemini: { has: { 'generationConfig.temperature': 1.5 } },
    },
  },
  {
    what: 'sampling for models that take none',
    from: 'gemini',
    request: { generationConfig: { temperature: 0.5, topP: 0.9, topK: 3 } },
    to: Object.fromEntries(
      (['chat', 'responses', 'messages'] as const).map((target) => [
        target,
        {
          traits: { sampling: false },
          lacks: ['temperature', 'top_'],
          dropped: ['generationConfig.temperature', 'generationConfig.topP', 'generationConfig.topK'],
        },
      ]),
    ),
  },
  {
    what: 'temperature and top_p together',
    from: 'responses',
    request: { temperature: 0.5, top_p: 0.9 },
    to: {
      chat: { has: { temperature: 0.5, top_p: 0.9 } },
      messages: { has: { temperature: 0.5, top_p: undefined }, dropped: ['top_p'] },
      gemini: { has: { 'generationConfig.temperature': 0.5, 'generationConfig.topP': 0.9 } },
    },
  },
  {
    what: 'top_k',
    from: 'messages',
    request: { top_k: 5 },
    to: {
      chat: { dropped: ['top_k'] },
      responses: { dropped: ['top_k'] },
      gemini: { has: { 'generationConfig.topK': 5 } },
    },
  },
  {
    what: 'texts to stop at',
    from: 'chat',
    request: { stop: ['a', ' ', 'c', 'd'] },
    to: {
      // What an upstream cannot do the gateway does itself on the way back.
      responses: { lacks: ['"stop'] },
      messages: { has: { stop_sequences: ['a', 'c', 'd'] } },
      gemini: { has: { 'generationConfig.stopSequences': ['a', ' ', 'c', 'd'] } },
    },
  },
  {
    what: 'more texts to stop at than chat takes',
    from: 'messages',
    request: { stop_sequences: ['a', 'b', 'c', 'd', 'e', 'f'] },
    to: {
      chat: { has: { stop: ['a', 'b', 'c', 'd'] } },
      gemini: { has: { 'generationConfig.stopSequences': ['a', 'b', 'c', 'd', 'e'] } },
    },
  },
  {
    what: 'several answers',
    from: 'chat',
    request: { n: 2 },
    to: {
      responses: { refused: 'n' },
      messages: { refused: 'n' },
      gemini: { has: { 'generationConfig.candidateCount': 2 } },
    },
  },
  {
    what: 'several candidates',
    from: 'gemini',
    request: { generationConfig: { candidateCount: 2 } },
    to: {
      chat: { has: { n: 2 } },
      responses: { refused: 'generationConfig.candidateCount' },
      messages: { refused: 'generationConfig.candidateCount' },
    },
  },
  {
    what: 'seed, penalties and bias',
    from: 'chat',
    request: { seed: 7, frequency_penalty: 1, presence_penalty: 0.5, logit_bias: { 1: 2 } },
    to: {
      responses: { dropped: ['seed', 'frequency_penalty', 'presence_penalty', 'logit_bias'] },
      messages: { dropped: ['seed', 'frequency_penalty', 'presence_penalty', 'logit_bias'] },
      gemini: {
        has: {
          'generationConfig.seed': 7,
          'generationConfig.frequencyPenalty': 1,
          'generationConfig.presencePenalty': 0.5,
        },
        dropped: ['logit_bias'],
      },
    },
  },
  {
    what: 'probabilities of tokens',
    from: 'chat',
    request: { logprobs: true, top_logprobs: 3 },
    to: {
      responses: {
        has: { top_logprobs: 3, include: ['reasoning.encrypted_content', 'message.output_text.logprobs'] },
      },
      messages: { dropped: ['logprobs'] },
      gemini: { has: { 'generationConfig.responseLogprobs': true, 'generationConfig.logprobs': 3 } },
    },
  },
  {
    what: 'verbosity, user, metadata and the key of a cache',
    from: 'responses',
    request: { text: { verbosity: 'low' }, safety_identifier: 'u', metadata: { a: 'b' }, prompt_cache_key: 'k' },
    to: {
      chat: { has: { verbosity: 'low', user: 'u', prompt_cache_key: 'k' }, dropped: ['metadata'] },
      messages: { has: { 'metadata.user_id': 'u' }, dropped: ['text.verbosity', 'metadata'] },
      gemini: { dropped: ['text.verbosity', 'safety_identifier', 'metadata', 'prompt_cache_key'] },
    },
  },
  {
    what: 'a user that is a whole document',
    from: 'messages',
    request: { metadata: { user_id: JSON.stringify({ device: 'd'.repeat(64), session: 's'.repeat(36) }) } },
    to: {
      chat: { has: { user: (user: string) => user.length <= 64 } },
      responses: { has: { safety_identifier: (user: string) => user.length <= 64 } },
      gemini: { dropped: ['metadata.user_id'] },
    },
  },
  ...(['standard_only', 'standard'] as const).map(
    (tier): Row => ({
      what: `the tier ${tier} of messages`,
      from: 'messages',
      request: { service_tier: tier },
      to: {
        chat: { has: { service_tier: 'default' } },
        responses: { has: { service_tier: 'default' } },
        gemini: { has: { serviceTier: 'standard' } },
      },
    }),
  ),
  {
    what: 'the standard tier of generate-content',
    from: 'gemini',
    request: { serviceTier: 'standard' },
    to: {
      chat: { has: { service_tier: 'default' } },
      responses: { has: { service_tier: 'default' } },
      messages: { has: { service_tier: 'standard_only' } },
    },
  },
  {
    what: 'the fast speed of messages',
    from: 'messages',
    request: { speed: 'fast', service_tier: 'auto' },
    to: {
      chat: { has: { service_tier: 'fast' } },
      responses: { has: { service_tier: 'fast' } },
      gemini: { has: { serviceTier: 'priority' } },
    },
  },
  ...(
    [
      ['fast', { speed: 'fast' }, 'priority', []],
      ['priority', { service_tier: 'auto' }, 'priority', []],
      ['default', { service_tier: 'standard_only' }, 'standard', []],
      ['flex', {}, 'flex', ['service_tier']],
      ['auto', { service_tier: 'auto' }, undefined, []],
    ] as const
  ).map(
    ([tier, has, gemini, dropped]): Row => ({
      what: `the tier ${tier} of chat`,
      from: 'chat',
      request: { service_tier: tier },
      to: {
        responses: { has: { service_tier: tier } },
        messages: { has, dropped },
        gemini: { has: { serviceTier: gemini } },
      },
    }),
  ),
  {
    what: 'a tier that no one else knows',
    from: 'responses',
    request: { service_tier: 'ultrafast' },
    to: {
      chat: { dropped: ['service_tier'] },
      messages: { dropped: ['service_tier'] },
      gemini: { dropped: ['service_tier'] },
    },
  },
  {
    what: 'state that only its vendor keeps',
    from: 'gemini',
    request: { cachedContent: 'cachedContents/1' },
    to: {
      chat: { refused: 'cachedContent' },
      responses: { refused: 'cachedContent' },
      messages: { refused: 'cachedContent' },
    },
  },
  {
    what: 'members that chat alone has',
    from: 'chat',
    request: {
      store: true,
      prediction: { type: 'content', content: 'x' },
      prompt_cache_retention: '24h',
      top_logprobs: 2,
    },
    to: {
      responses: { dropped: ['store', 'prediction', 'prompt_cache_retention', 'top_logprobs'] },
      messages: { dropped: ['store', 'prediction', 'prompt_cache_retention', 'top_logprobs'] },
      gemini: { dropped: ['store', 'prediction', 'prompt_cache_retention', 'top_logprobs'] },
    },
  },
  {
    what: 'members that messages alone has',
    from: 'messages',
    request: {
      container: 'c',
      inference_geo: 'eu',
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      output_config: { task_budget: { type: 'tokens', total: 9 }, new_member: 1 },
    },
    to: Object.fromEntries(
      (['chat', 'responses', 'gemini'] as const).map((target) => [
        target,
        {
          dropped: [
            'container',
            'inference_geo',
            'context_management',
            'output_config.task_budget',
            'output_config.new_member',
          ],
        },
      ]),
    ),
  },
  {
    what: 'members that generate-content alone has',
    from: 'gemini',
    request: {
      safetySettings: [{ category: 'HARM', threshold: 'BLOCK_NONE' }],
      labels: { a: 'b' },
      generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW', logprobs: 2 },
    },
    to: Object.fromEntries(
      (['chat', 'responses', 'messages'] as const).map((target) => [
        target,
        {
          dropped: ['safetySettings', 'labels', 'generationConfig.mediaResolution', 'generationConfig.logprobs'],
        },
      ]),
    ),
  },
  {
    what: 'members that responses alone has',
    from: 'responses',
    request: { truncation: 'auto', include: ['file_search_call.results'], max_tool_calls: 3, top_logprobs: 2 },
    to: {
      chat: { has: { top_logprobs: 2, logprobs: true }, dropped: ['truncation', 'include', 'max_tool_calls'] },
      messages: { dropped: ['truncation', 'include', 'max_tool_calls', 'top_logprobs'] },
      gemini: { has: { 'generationConfig.logprobs': 2 }, dropped: ['truncation', 'include', 'max_tool_calls'] },
    },
  },
  {
    what: 'answers in sound',
    from: 'chat',
    request: { modalities: ['text', 'audio'], audio: { voice: 'v', format: 'wav' } },
    to: {
      responses: { refused: 'modalities' },
      messages: { refused: 'modalities' },
      gemini: { has: { 'generationConfig.responseModalities': ['AUDIO'], 'generationConfig.speechConfig': some } },
    },
  },
  {
    what: 'answers in pictures',
    from: 'gemini',
    request: { generationConfig: { responseModalities: ['TEXT', 'IMAGE'], imageConfig: { aspectRatio: '16:9' } } },
    to: {
      chat: { has: { modalities: ['image', 'text'], image_config: { aspect_ratio: '16:9' } } },
      responses: { has: { tools: [{ type: 'image_generation' }] }, dropped: ['generationConfig.imageConfig'] },
      messages: { refused: 'generationConfig.responseModalities' },
    },
  },
];
