/** The official Google client as a reader of generated content, streamed and whole. */
import {
  type GenerateContentResponse,
  type GenerateContentResponseUsageMetadata,
  GoogleGenAI,
  type Part,
} from '@google/genai';
import {
  type Answered,
  Draft,
  fetchOf,
  noUsage,
  rule,
  type StopUnderstood,
  type Understood,
  type UsageUnderstood,
} from './understood.ts';

const params = { model: 'MODEL', contents: 'Hello' };

function client(answer: Answered): GoogleGenAI {
  return new GoogleGenAI({
    apiKey: 'key',
    httpOptions: { baseUrl: 'http://oracle.invalid', fetch: fetchOf(answer), retryOptions: { attempts: 1 } },
  });
}

/** `client.models.generateContentStream()`; a stream without a reason to end is refused, as Google's own clients do. */
export async function geminiIterated(answer: Answered): Promise<Understood> {
  const reading = new Reading();
  for await (const chunk of await client(answer).models.generateContentStream(params)) reading.chunk(chunk);
  return reading.finish();
}

/** `client.models.generateContent()`. */
export async function geminiWhole(answer: Answered): Promise<Understood> {
  const reading = new Reading();
  reading.chunk(await client(answer).models.generateContent(params));
  return reading.finish();
}

class Reading {
  readonly #draft = new Draft();
  #finish: string | undefined;
  #usage = noUsage;

  chunk({ candidates, usageMetadata, promptFeedback }: GenerateContentResponse): void {
    const candidate = candidates?.find(({ index }) => (index ?? 0) === 0);
    const parts = candidate?.content?.parts ?? [];
    rule(this.#finish === undefined || parts.every(isEmpty), 'content comes after the finishReason');
    for (const part of parts) this.#part(part);
    for (const { web } of candidate?.groundingMetadata?.groundingChunks ?? [])
      this.#draft.citations.push({ url: web?.uri, title: web?.title });
    this.#finish ??= candidate?.finishReason ?? promptFeedback?.blockReason;
    if (usageMetadata !== undefined) this.#usage = usageUnderstood(usageMetadata);
  }

  finish(): Understood {
    rule(this.#finish !== undefined, 'the answer has no finishReason');
    const stop = stopOf(this.#finish, this.#draft.tools.length > 0);
    return this.#draft.finish(stop, this.#finish, this.#usage);
  }

  #part(part: Part): void {
    const draft = this.#draft;
    if (part.functionCall !== undefined) {
      const { id, name, args } = part.functionCall;
      rule(typeof name === 'string' && name !== '', 'a functionCall has no name');
      rule(
        args === undefined || (typeof args === 'object' && !Array.isArray(args)),
        `the args of ${name} are no object`,
      );
      draft.tools.push({ id: id ?? '', name, arguments: args ?? {} });
    } else if (part.inlineData !== undefined)
      draft.images.push(`data:${part.inlineData.mimeType};base64,${part.inlineData.data}`);
    else if (part.thought === true) draft.reasoning += part.text ?? '';
    else draft.text += part.text ?? '';
  }
}

function isEmpty(part: Part): boolean {
  return (part.text ?? '') === '' && part.functionCall === undefined && part.inlineData === undefined;
}

function usageUnderstood(usage: GenerateContentResponseUsageMetadata): UsageUnderstood {
  const {
    promptTokenCount: prompt,
    toolUsePromptTokenCount: tools,
    candidatesTokenCount: candidates,
    thoughtsTokenCount: thoughts,
  } = usage;
  return {
    input: prompt === undefined ? undefined : prompt + (tools ?? 0),
    output: candidates === undefined && thoughts === undefined ? undefined : (candidates ?? 0) + (thoughts ?? 0),
    cacheRead: usage.cachedContentTokenCount,
    cacheWrite: undefined,
    reasoning: thoughts,
  };
}

function stopOf(word: string, hasCalls: boolean): StopUnderstood {
  if (word === 'STOP') return hasCalls ? 'tool-calls' : 'stop';
  if (word === 'MAX_TOKENS') return 'length';
  return /MALFORMED|UNEXPECTED|OTHER/.test(word) ? 'other' : 'refusal';
}
