/** The AI SDK as a reader of all four protocols: `streamText` read part by part, and `generateText`. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import {
  type FinishReason,
  generateText,
  jsonSchema,
  type LanguageModel,
  type LanguageModelUsage,
  NoSuchToolError,
  streamText,
  type ToolSet,
} from 'ai';
import {
  type Answered,
  Draft,
  fetchOf,
  rule,
  type StopUnderstood,
  type Understood,
  type UsageUnderstood,
} from './understood.ts';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const models: Readonly<Record<string, (fetch: typeof globalThis.fetch) => LanguageModel>> = {
  chat: (fetch) => createOpenAI({ apiKey: 'key', baseURL: 'http://oracle.invalid/v1', fetch }).chat('MODEL'),
  responses: (fetch) => createOpenAI({ apiKey: 'key', baseURL: 'http://oracle.invalid/v1', fetch }).responses('MODEL'),
  messages: (fetch) => createAnthropic({ apiKey: 'key', baseURL: 'http://oracle.invalid/v1', fetch })('MODEL'),
  gemini: (fetch) => createGoogle({ apiKey: 'key', baseURL: 'http://oracle.invalid/v1beta', fetch })('MODEL'),
};

function question(protocol: string, answer: Answered) {
  return { model: models[protocol]!(fetchOf(answer)), prompt: 'Hello', maxRetries: 0, tools: toolsOf(answer) };
}

function toolsOf({ tools = [] }: Answered): ToolSet {
  const set: ToolSet = {};
  for (const name of tools) set[name] = { inputSchema: jsonSchema({ type: 'object' }) };
  return set;
}

/** `streamText(…).fullStream`. */
export const aiSdkStreamed = (protocol: string) =>
  async function aiSdkStream(answer: Answered): Promise<Understood> {
    const result = streamText({ ...question(protocol, answer), onError: () => {} });
    const draft = new Draft();
    let end:
      | { finishReason: FinishReason; rawFinishReason: string | undefined; totalUsage: LanguageModelUsage }
      | undefined;
    for await (const part of result.fullStream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'text-delta') draft.text += part.text;
      else if (part.type === 'reasoning-delta') draft.reasoning += part.text;
      else if (part.type === 'tool-call') callUnderstood(part, draft, answer);
      else if (part.type === 'file') draft.images.push(`data:${part.file.mediaType};base64,${part.file.base64}`);
      else if (part.type === 'source' && part.sourceType === 'url')
        draft.citations.push({ url: part.url, title: part.title });
      else if (part.type === 'finish') end = part;
    }
    if (end === undefined) throw new Error('the stream has no finish part');
    return finished(draft, end.finishReason, end.rawFinishReason, end.totalUsage);
  };

/** `generateText()`. */
export const aiSdkWhole = (protocol: string) =>
  async function aiSdkWholeAnswer(answer: Answered): Promise<Understood> {
    const result = await generateText(question(protocol, answer));
    const draft = new Draft();
    draft.text = result.text;
    draft.reasoning = result.reasoningText ?? '';
    for (const call of result.toolCalls) callUnderstood(call, draft, answer);
    for (const file of result.files) draft.images.push(`data:${file.mediaType};base64,${file.base64}`);
    for (const source of result.sources)
      if (source.sourceType === 'url') draft.citations.push({ url: source.url, title: source.title });
    return finished(draft, result.finishReason, result.rawFinishReason, result.totalUsage);
  };

interface SdkCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly providerExecuted?: boolean | undefined;
  readonly invalid?: boolean | undefined;
  readonly error?: unknown;
}

function callUnderstood(call: SdkCall, draft: Draft, { tools }: Answered): void {
  if (call.providerExecuted) return;
  const isMerelyUnknown = tools === undefined && NoSuchToolError.isInstance(call.error);
  if (call.invalid && !isMerelyUnknown) throw call.error;
  draft.tools.push({ id: call.toolCallId, name: call.toolName, arguments: call.input });
}

const stops: Readonly<Record<FinishReason, StopUnderstood>> = {
  stop: 'stop',
  'tool-calls': 'tool-calls',
  length: 'length',
  'content-filter': 'refusal',
  error: 'other',
  interrupted: 'other',
  other: 'other',
};

function finished(draft: Draft, reason: FinishReason, word: string | undefined, usage: LanguageModelUsage): Understood {
  // It reads a stream that breaks off without a reason, or is none, as an answer that ended somehow.
  rule(stops[reason] !== 'other' || word !== undefined, 'the answer tells no reason to end');
  return draft.finish(stops[reason], word, usageUnderstood(usage));
}

function usageUnderstood(usage: LanguageModelUsage): UsageUnderstood {
  return {
    input: usage.inputTokens,
    output: usage.outputTokens,
    cacheRead: usage.inputTokenDetails.cacheReadTokens,
    cacheWrite: usage.inputTokenDetails.cacheWriteTokens,
    reasoning: usage.outputTokenDetails.reasoningTokens,
  };
}
