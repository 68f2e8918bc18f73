/** Model entries of the model list in the three protocol families. Pure. */

import type { Model } from '../common/domain/models.ts';
import type { Dialect } from '../common/kit/dialects.ts';

export const entryOf: Record<Dialect, (model: Model, isCallable: boolean) => object> = {
  /** Section 2.2 of the interface; https://platform.openai.com/docs/api-reference/models/object */
  chat: (model) => ({ id: model.id, object: 'model', created: model.created, owned_by: model.ownedBy }),

  /** https://platform.claude.com/docs/en/api/models/list; unknown values are null, as in that API. */
  messages: (model) => ({
    type: 'model',
    id: model.id,
    display_name: model.displayName,
    created_at: new Date(model.created * 1000).toISOString().replace('.000Z', 'Z'),
    max_input_tokens: model.contextTokens ?? null,
    max_tokens: model.maxOutputTokens ?? null,
    capabilities: null,
    lifecycle: 'active',
    line: null,
    deprecated_at: null,
    retires_at: null,
  }),

  /** https://ai.google.dev/api/models#Model */
  gemini: (model, isCallable) => ({
    name: `models/${model.id}`,
    displayName: model.displayName,
    inputTokenLimit: model.contextTokens,
    outputTokenLimit: model.maxOutputTokens,
    supportedGenerationMethods: methodsOf(model, isCallable),
  }),
};

/** A conversion between embedding protocols needs no translation of chat. */
function methodsOf({ kind }: Model, isCallable: boolean): readonly string[] {
  if (kind === 'embedding') return ['embedContent', 'batchEmbedContents'];
  if (!isCallable) return [];
  if (kind === 'image') return ['generateContent'];
  return kind === 'chat' ? ['generateContent', 'countTokens'] : [];
}
