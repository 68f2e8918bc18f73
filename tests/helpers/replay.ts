/** How a recording is asked for at the gateway, and what it must have reported: read from the recorded bytes by other means than the taps. */
import type { Usage } from '../../plugins/common/domain/usage.ts';
import type { Family, Recording } from './recordings.ts';

/** The request that a client would have sent for this recording. Official forms only; recorded bodies where they are that. */
export function requestFor(recording: Recording): { path: string; body: string } {
  const recorded = recording.request?.toString();
  const json = recorded === undefined ? undefined : JSON.parse(recorded);
  if (recording.family === 'gemini') {
    const method = /:(\w+)/.exec(recording.path.replace(/@[^:]*/, ''))?.[1] ?? 'generateContent';
    const alt = recording.path.includes('alt=sse') ? '?alt=sse' : '';
    const isOfficial = recorded !== undefined && !/"[a-z]+_[a-z_]+" *:/.test(recorded);
    const model = encodeURIComponent(recording.model);
    return { path: `/v1beta/models/${model}:${method}${alt}`, body: isOfficial ? recorded : '{"contents":[]}' };
  }
  const stream = recording.isStream ? { stream: true } : {};
  const plain: Record<Exclude<Family, 'gemini'>, [string, object]> = {
    chat: ['/v1/chat/completions', { messages: [] }],
    responses: ['/v1/responses', { input: 'hi' }],
    messages: ['/v1/messages', { max_tokens: 100, messages: [] }],
  };
  const [path, rest] = plain[recording.family];
  // Some recorders left the model out of the body because the vendor's path had it.
  if (typeof json?.model === 'string' && (json.stream ?? false) === recording.isStream)
    return { path, body: recorded! };
  return { path, body: JSON.stringify({ model: recording.model, ...rest, ...stream }) };
}

/** The counters that vendors report, by all the names they have for them. */
interface RecordedUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number };
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number };
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly input_tokens_details?: { readonly cached_tokens?: number };
  readonly output_tokens_details?: { readonly reasoning_tokens?: number; readonly thinking_tokens?: number };
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
}

interface Payload {
  readonly usage?: RecordedUsage;
  readonly x_groq?: { readonly usage?: RecordedUsage };
  readonly response?: { readonly usage?: RecordedUsage };
  readonly message?: { readonly usage?: RecordedUsage };
  readonly usageMetadata?: {
    readonly promptTokenCount?: number;
    readonly candidatesTokenCount?: number;
    readonly thoughtsTokenCount?: number;
    readonly toolUsePromptTokenCount?: number;
    readonly cachedContentTokenCount?: number;
    readonly totalTokenCount?: number;
  };
}

/** Every JSON object of the answer: the body, or each frame's data. */
function payloads(recording: Recording): Payload[] {
  const text = recording.response.toString();
  if (!recording.isStream) return [JSON.parse(text)];
  if (text.trimStart().startsWith('[')) return JSON.parse(text);
  return text
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:') && !line.includes('[DONE]'))
    .map((line) => JSON.parse(line.slice(5)));
}

/** What the vendor counted on either side; a side is undefined when it reported nothing. */
export interface Counted {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly reasoning: number | undefined;
  readonly cached: number | undefined;
}

const nothing: Counted = { input: undefined, output: undefined, reasoning: undefined, cached: undefined };

export function countedIn(recording: Recording): Counted {
  return readers[recording.family](payloads(recording));
}

const readers: Record<Family, (all: Payload[]) => Counted> = {
  chat(all) {
    const usage = all.map((one) => one.usage ?? one.x_groq?.usage).findLast((one) => one);
    if (usage === undefined) return nothing;
    const reasoning = usage.completion_tokens_details?.reasoning_tokens;
    // The vendor that counts reasoning apart says so by its total.
    const isApart = usage.total_tokens === usage.prompt_tokens + usage.completion_tokens + (reasoning ?? 0);
    const cached = usage.prompt_tokens_details?.cached_tokens;
    return {
      input: usage.prompt_tokens,
      output: usage.completion_tokens + (isApart ? (reasoning ?? 0) : 0),
      reasoning,
      cached: cached === undefined ? undefined : Math.min(cached, usage.prompt_tokens),
    };
  },
  responses(all) {
    const usage = all.map((one) => one.response?.usage ?? one.usage).findLast((one) => one);
    if (usage === undefined) return nothing;
    return {
      input: usage.input_tokens,
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details?.reasoning_tokens,
      cached: usage.input_tokens_details?.cached_tokens,
    };
  },
  messages(all) {
    const merged: Partial<RecordedUsage> = {};
    for (const one of all) Object.assign(merged, one.message?.usage, one.usage);
    if (merged.output_tokens === undefined) return nothing;
    return {
      input: merged.input_tokens! + merged.cache_read_input_tokens! + merged.cache_creation_input_tokens!,
      output: merged.output_tokens,
      reasoning: merged.output_tokens_details?.thinking_tokens,
      cached: merged.cache_read_input_tokens,
    };
  },
  gemini(all) {
    const usage = all.map((one) => one.usageMetadata).findLast((one) => one);
    if (usage === undefined) return nothing;
    const { promptTokenCount: prompt, candidatesTokenCount: candidates, totalTokenCount: total } = usage;
    const thoughts = usage.thoughtsTokenCount;
    const tools = usage.toolUsePromptTokenCount ?? 0;
    const output = prompt === undefined ? candidates! + (thoughts ?? 0) : total! - prompt - tools;
    return {
      input: prompt === undefined ? undefined : prompt + tools,
      output,
      reasoning: thoughts,
      cached: usage.cachedContentTokenCount,
    };
  },
};

/** The two sides of a metered report. */
export function sidesOf(usage: Usage): { input: number; output: number } {
  const sum = (...counts: (number | undefined)[]) => counts.reduce<number>((all, one) => all + (one ?? 0), 0);
  return {
    input: sum(
      usage.input,
      usage.cache_read,
      usage.cache_write_5m,
      usage.cache_write_1h,
      usage.input_audio,
      usage.input_image,
    ),
    output: sum(usage.output, usage.reasoning, usage.output_audio, usage.output_image),
  };
}
