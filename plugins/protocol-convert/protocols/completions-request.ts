/** Requests for a completion: what the gateway must know of them, and the conversation of one turn that they are elsewhere. Pure. */

import { GatewayError } from '../../../core/contract/errors.ts';
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { notTranslatableCode } from '../../common/canonical/dropped-parameters.ts';
import type { Call } from '../../common/domain/calls.ts';
import type { RequestBody } from '../../common/wire/protocols.ts';
import { promptTokens } from '../metering/estimate.ts';
import { surcharges } from '../metering/surcharges.ts';
import { countOf, invalid, largest, modelOf, streamOf } from '../request/checks.ts';

/** Throws invalid_request that names the field. */
export function preflightCompletions({ json, bytes }: RequestBody): Call {
  const model = modelOf(json);
  const prompts = promptsIn(json['prompt']);
  const stream = streamOf(json);
  const answers = largest(countOf(json, 'n', 1), countOf(json, 'best_of', 1)) ?? 1;
  return {
    protocol: 'completions',
    model,
    stream,
    billable: true,
    inputTokens: promptTokens(bytes.length, { characters: 0, tokens: 0 }),
    maxOutputTokens: countOf(json, 'max_tokens', 0),
    choices: prompts * answers,
    ...surcharges({ tier: ['service_tier', json['service_tier']], toolCalls: 0 }),
  };
}

/** How many texts go on. Each is a string or a list of tokens. */
function promptsIn(prompt: unknown): number {
  if (prompt === undefined || prompt === null) throw invalid('The field "prompt" is missing.', 'prompt');
  if (typeof prompt === 'string') return 1;
  if (!Array.isArray(prompt) || prompt.length === 0)
    throw invalid('The field "prompt" must be a string or a list.', 'prompt');
  return prompt.every((item) => typeof item === 'number') ? 1 : prompt.length;
}

/** Members that change which text is answered with, and have no place in a conversation. */
const unsayable = ['suffix', 'echo', 'logprobs', 'best_of'] as const;

/** The same request as one of the chat protocol. Throws for what it cannot say there. */
export function asConversation(json: JsonObject): JsonObject {
  const { prompt, ...others } = json;
  for (const name of unsayable) {
    if (hasEffect(name, json)) throw notHere(name, `this model answers conversations, which have no "${name}"`);
    delete (others as Record<string, unknown>)[name];
  }
  return { ...others, messages: [{ role: 'user', content: textOf(prompt) }] };
}

function hasEffect(name: (typeof unsayable)[number], json: JsonObject): boolean {
  const value = json[name] ?? undefined;
  if (value === undefined || value === '' || value === false) return false;
  return name !== 'best_of' || value !== (json['n'] ?? 1);
}

function textOf(prompt: unknown): string {
  const text = Array.isArray(prompt) && prompt.length === 1 ? (prompt[0] as unknown) : prompt;
  if (typeof text === 'string') return text;
  const isTokens = Array.isArray(text) && !text.some((item) => typeof item === 'string' || isObject(item));
  throw notHere('prompt', isTokens ? 'this model takes a text, not tokens' : 'this model takes one text at a time');
}

function notHere(field: string, why: string): GatewayError {
  const message = `The field "${field}" cannot be used here: ${why}.`;
  return new GatewayError('invalid_request', message, { field, code: notTranslatableCode, shouldRetry: false });
}
