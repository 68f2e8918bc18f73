/** The official OpenAI client as a reader of responses: its accumulating stream, its plain stream, its whole answer. */
import type OpenAI from 'openai';
import { ResponsesGrammar } from './grammar-responses.ts';
import { openaiClient } from './openai-chat.ts';
import {
  type Answered,
  Draft,
  noUsage,
  parsedArguments,
  rule,
  type StopUnderstood,
  type Understood,
  type UsageUnderstood,
} from './understood.ts';

type Response = OpenAI.Responses.Response;
type Item = OpenAI.Responses.ResponseOutputItem;
const params = { model: 'MODEL', input: 'Hello' } as const;

/** `client.responses.stream(…).finalResponse()`. */
export async function responsesAccumulated(answer: Answered): Promise<Understood> {
  return responseUnderstood(await openaiClient(answer).responses.stream(params).finalResponse());
}

/** `client.responses.create({ stream: true })`, each event held against the protocol's rules. */
export async function responsesIterated(answer: Answered): Promise<Understood> {
  const stream = await openaiClient(answer).responses.create({ ...params, stream: true });
  const grammar = new ResponsesGrammar(answer);
  for await (const event of stream) grammar.event(event);
  return responseUnderstood(grammar.finish());
}

/** `client.responses.create()`. */
export async function responsesWhole(answer: Answered): Promise<Understood> {
  return responseUnderstood(await openaiClient(answer).responses.create(params));
}

function responseUnderstood(response: Response): Understood {
  if (response.error != null) throw new Error(`the response failed: ${response.error.message}`);
  const { status } = response;
  rule(status === 'completed' || status === 'incomplete', `the response is ${status} in the end`);
  const draft = new Draft();
  const isIncomplete = response.status === 'incomplete';
  for (const item of response.output) itemUnderstood(item, draft, isIncomplete);
  const word = response.incomplete_details?.reason ?? response.status;
  return draft.finish(stopOf(word, draft.tools.length > 0), word, usageUnderstood(response.usage));
}

function itemUnderstood(item: Item, draft: Draft, isIncomplete: boolean): void {
  if (item.type === 'message') for (const part of item.content) partUnderstood(part, draft);
  else if (item.type === 'reasoning') {
    for (const { text } of [...item.summary, ...(item.content ?? [])]) draft.reasoning += text;
  } else if (item.type === 'function_call') {
    // The arguments of a call that was cut off are not to be used.
    if (isIncomplete && item.status === 'incomplete') return;
    draft.tools.push({ id: item.call_id, name: item.name, arguments: parsedArguments(item.arguments) });
  } else if (item.type === 'custom_tool_call')
    draft.tools.push({ id: item.call_id, name: item.name, arguments: item.input });
  else if (item.type === 'image_generation_call' && item.result != null)
    draft.images.push(`data:image/png;base64,${item.result}`);
}

function partUnderstood(part: OpenAI.Responses.ResponseOutputMessage['content'][number], draft: Draft): void {
  if (part.type === 'refusal') {
    draft.refusal += part.refusal;
    return;
  }
  draft.text += part.text;
  for (const annotation of part.annotations ?? []) {
    if (annotation.type !== 'url_citation') continue;
    const { url, title, start_index, end_index } = annotation;
    draft.citations.push({ url, title, start: start_index, end: end_index });
  }
}

function usageUnderstood(usage: OpenAI.Responses.ResponseUsage | null | undefined): UsageUnderstood {
  if (usage == null) return noUsage;
  return {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cacheRead: usage.input_tokens_details?.cached_tokens,
    cacheWrite: usage.input_tokens_details?.cache_write_tokens,
    reasoning: usage.output_tokens_details?.reasoning_tokens,
  };
}

function stopOf(word: string | undefined, hasCalls: boolean): StopUnderstood | undefined {
  if (word === 'completed') return hasCalls ? 'tool-calls' : 'stop';
  if (word === 'max_output_tokens') return 'length';
  if (word === 'content_filter') return 'refusal';
  return word === undefined ? undefined : 'other';
}
