/** An example of each JSON request that needs nothing but a model of the gateway, and the kind of model that it needs. */
import { table } from '../../../../core/contract/table.ts';
import type { ModelKind } from '../../domain/models.ts';

export interface Example {
  readonly kind: ModelKind;
  /** Without the model, which is one that the gateway sells. */
  readonly body: Readonly<Record<string, unknown>>;
}

const chat = (body: Example['body']): Example => ({ kind: 'chat', body });
const turns = [{ role: 'user', content: 'Say hello in one word.' }];
const contents = [{ role: 'user', parts: [{ text: 'Say hello in one word.' }] }];
const content = { parts: [{ text: 'A lighthouse at the coast' }] };
const ranked: Example = {
  kind: 'rerank',
  body: { query: 'Where do ships find their way?', documents: ['A lighthouse', 'A meadow'], top_n: 1 },
};

/** By path, whatever its version, for the path with the model in it. */
export const examples: Readonly<Record<string, Example>> = table({
  '/v1/chat/completions': chat({ messages: turns, max_completion_tokens: 64 }),
  '/v1/responses': chat({ input: 'Say hello in one word.', max_output_tokens: 64 }),
  '/v1/responses/input_tokens': chat({ input: 'Say hello in one word.' }),
  '/v1/messages': chat({ max_tokens: 64, messages: turns }),
  '/v1/messages/count_tokens': chat({ messages: turns }),
  '/v1/completions': chat({ prompt: 'Once upon a time', max_tokens: 16 }),
  ':generateContent': chat({ contents, generationConfig: { maxOutputTokens: 64 } }),
  ':streamGenerateContent': chat({ contents, generationConfig: { maxOutputTokens: 64 } }),
  ':countTokens': chat({ contents }),
  '/v1/embeddings': { kind: 'embedding', body: { input: ['A lighthouse', 'A meadow'] } },
  ':embedContent': { kind: 'embedding', body: { content } },
  '/v1/rerank': ranked,
  '/v2/rerank': ranked,
  '/v1/moderations': { kind: 'moderation', body: { input: 'A friendly sentence.' } },
  '/v1/audio/speech': { kind: 'speech', body: { input: 'Good morning.', voice: 'alloy' } },
  '/v1/images/generations': { kind: 'image', body: { prompt: 'A lighthouse at the coast', n: 1 } },
  '/v1/videos': { kind: 'video', body: { prompt: 'Waves at the coast' } },
});
