/** Members of a chat completion as any of its readers understands them. */
import type OpenAI from 'openai';
import { noUsage, type StopUnderstood, type Understood, type UsageUnderstood } from './understood.ts';

/** Members that several vendors add to a message. */
export interface MessageExtras {
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
  readonly images?: readonly { readonly image_url: { readonly url: string } }[];
}

export function citationUnderstood(
  annotation: OpenAI.ChatCompletionMessage.Annotation,
): Understood['citations'][number] {
  const { url, title, start_index, end_index } = annotation.url_citation;
  return { url, title, start: start_index, end: end_index };
}

export function usageUnderstood(usage: OpenAI.CompletionUsage | null | undefined): UsageUnderstood {
  if (usage == null) return noUsage;
  const read = usage.prompt_tokens_details as { cached_tokens?: number; cache_write_tokens?: number } | undefined;
  return {
    input: usage.prompt_tokens,
    output: usage.completion_tokens,
    cacheRead: read?.cached_tokens,
    cacheWrite: read?.cache_write_tokens,
    reasoning: usage.completion_tokens_details?.reasoning_tokens,
  };
}

const stops: Readonly<Record<string, StopUnderstood>> = {
  stop: 'stop',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  length: 'length',
  content_filter: 'refusal',
};

export function stopOf(word: string | null | undefined): StopUnderstood | undefined {
  return word == null ? undefined : (stops[word] ?? 'other');
}
