/** Requests for models that take texts and at most images: Converse's request of the same prompt, in pieces. */
import { type JsonObject, listOf, objectOf, textOf } from '../../core/json/json.ts';
import type { EncodeContext, ResponseMapping } from '../common/canonical/codec.ts';
import type { Prompt } from '../common/canonical/prompt.ts';
import type { Traits } from '../common/domain/traits.ts';
import { unshownText } from '../common/encoding/readable-media.ts';
import { encodeRequest } from './encode.ts';

interface PlainRequest {
  readonly system: readonly JsonObject[];
  readonly messages: readonly { readonly role: string; readonly content: readonly JsonObject[] }[];
  readonly toolConfig: JsonObject | undefined;
  readonly maxTokens: unknown;
  readonly temperature: unknown;
  readonly topP: unknown;
  readonly stop: readonly string[];
  readonly responseMapping: ResponseMapping;
}

/** `inputs`: absent if the model's format has no place for tools either. */
export function plainRequest(
  prompt: Prompt,
  context: EncodeContext,
  inputs?: NonNullable<Traits['inputs']>,
): PlainRequest {
  if (inputs === undefined && prompt.tools.length > 0 && prompt.toolChoice?.mode !== 'none')
    context.dropped.refuse('tools', 'takes no tools');
  const traits = {
    ...{ ...context.traits, reasoning: 'none' as const, structured: 'instruction' as const, cache_marks: false },
    inputs: inputs ?? [],
  };
  const { stop = [], ...others } = prompt;
  const { body, responseMapping } = encodeRequest(others, { ...context, traits });
  const { maxTokens, temperature, topP } = objectOf(body['inferenceConfig']) ?? {};
  return {
    system: listOf(body['system']) as JsonObject[],
    messages: listOf(body['messages']) as unknown as PlainRequest['messages'],
    toolConfig: objectOf(body['toolConfig']),
    // Without a bound these models end after 512 tokens.
    maxTokens: maxTokens ?? context.maxOutputTokens,
    ...{ temperature, topP, stop, responseMapping },
  };
}

export function textOfBlocks(blocks: readonly JsonObject[]): string {
  return blocks.flatMap(textsOf).join('\n\n');
}

function textsOf(block: JsonObject): string[] {
  const text = textOf(block['text']);
  if (text !== undefined) return [text];
  if (block['image'] !== undefined) return [unshownText('image')];
  const document = objectOf(block['document']);
  if (document !== undefined) {
    const bytes = textOf(objectOf(document['source'])?.['bytes']) ?? '';
    return [`${textOf(document['name'])}:\n\n${Buffer.from(bytes, 'base64').toString()}`];
  }
  const call = objectOf(block['toolUse']);
  if (call !== undefined) return [JSON.stringify({ name: call['name'], parameters: call['input'] })];
  const result = objectOf(block['toolResult']);
  return result === undefined ? [] : [textOfResult(result)];
}

export function textOfResult({ status, content }: JsonObject): string {
  return (status === 'error' ? 'Error: ' : '') + textOfBlocks(listOf(content) as JsonObject[]);
}
