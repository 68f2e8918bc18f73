/** The official OpenAI client as a reader of chat completions: its accumulating stream, its plain stream, its whole answer. */
import OpenAI from 'openai';
import { ChatGrammar } from './grammar-chat.ts';
import {
  type Answered,
  Draft,
  fetchOf,
  noUsage,
  parsedArguments,
  type StopUnderstood,
  type Understood,
  type UsageUnderstood,
} from './understood.ts';

const params = {
  model: 'MODEL',
  messages: [{ role: 'user', content: 'Hello' }],
} satisfies OpenAI.ChatCompletionCreateParamsNonStreaming;

export function openaiClient(answer: Answered): OpenAI {
  return new OpenAI({
    apiKey: 'key',
    baseURL: 'http://oracle.invalid/v1',
    maxRetries: 0,
    fetch: fetchOf(answer),
    logLevel: 'off',
  });
}

/** `client.chat.completions.stream(…).finalChatCompletion()`. */
export async function chatAccumulated(answer: Answered): Promise<Understood> {
  const stream = openaiClient(answer).chat.completions.stream(params);
  // Of members that the client does not know it keeps the last piece alone: applications add them up by themselves.
  let reasoning = '';
  stream.on('chunk', ({ choices }) => {
    const delta: MessageExtras | undefined = choices.find(({ index }) => index === 0)?.delta as
      | MessageExtras
      | undefined;
    reasoning += delta?.reasoning_content ?? delta?.reasoning ?? '';
  });
  return { ...completionUnderstood(await stream.finalChatCompletion()), reasoning };
}

/** `client.chat.completions.create({ stream: true })`, each chunk held against the protocol's rules. */
export async function chatIterated(answer: Answered): Promise<Understood> {
  const stream = await openaiClient(answer).chat.completions.create({ ...params, stream: true });
  const grammar = new ChatGrammar(answer);
  for await (const chunk of stream) grammar.chunk(chunk);
  return grammar.finish();
}

/** `client.chat.completions.create()`. */
export async function chatWhole(answer: Answered): Promise<Understood> {
  return completionUnderstood(await openaiClient(answer).chat.completions.create(params));
}

/** Members that several vendors add to a message. */
export interface MessageExtras {
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
  readonly images?: readonly { readonly image_url: { readonly url: string } }[];
}

function completionUnderstood({ choices, usage }: OpenAI.ChatCompletion): Understood {
  const choice = choices[0];
  if (choice === undefined) throw new Error('the answer holds no choice');
  const message = choice.message as typeof choice.message & MessageExtras;
  const draft = new Draft();
  draft.text = message.content ?? '';
  draft.refusal = message.refusal ?? '';
  draft.reasoning = message.reasoning_content ?? message.reasoning ?? '';
  draft.images = (message.images ?? []).map(({ image_url }) => image_url.url);
  draft.tools = (message.tool_calls ?? []).map(toolUnderstood);
  draft.citations = (message.annotations ?? []).map(citationUnderstood);
  return draft.finish(stopOf(choice.finish_reason), choice.finish_reason, usageUnderstood(usage));
}

function toolUnderstood(call: OpenAI.ChatCompletionMessageToolCall): Understood['tools'][number] {
  return call.type === 'custom'
    ? { id: call.id, name: call.custom.name, arguments: call.custom.input }
    : { id: call.id, name: call.function.name, arguments: parsedArguments(call.function.arguments) };
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
