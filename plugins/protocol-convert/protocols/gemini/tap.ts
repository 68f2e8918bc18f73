/** Meters generate-content: every frame carries usage, so every frame is parsed. Pure. */
import type { Services } from '../../../../core/prices.ts';
import type { Call } from '../../../../core/vocabulary.ts';
import { Counts, type Reading, split } from '../../counts.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { Tap, Verdict } from '../../protocol.ts';
import { grantedServices } from '../../surcharges.ts';
import { TextMeter, textBytesIn } from '../../text-meter.ts';
import { payloadOf } from './payload.ts';

const textNames = new Set(['text', 'code', 'output']);
const opaqueNames = new Set(['args']);

export class GeminiTap implements Tap {
  readonly text = new TextMeter();
  error: JsonObject | undefined;
  upstreamId: string | undefined;
  finish: string | undefined;
  readonly #counts = new Counts();
  readonly #choices: number;
  readonly #finished = new Set<unknown>();
  #tier: unknown;
  #isBlocked = false;
  #isWhole = false;

  constructor(call: Call) {
    this.#choices = call.choices;
  }

  /** There is no terminal event: a finish reason for each candidate, or a blocked prompt, then the stream's end. */
  get complete(): boolean {
    return this.error === undefined && (this.#isWhole || this.#isBlocked || this.#finished.size >= this.#choices);
  }

  get reading(): Reading {
    return this.#counts.reading(readUsage);
  }

  get services(): Services {
    return grantedServices(this.#tier, 'global');
  }

  frame(raw: Buffer): Verdict {
    const payload = payloadOf(raw);
    return payload === undefined ? 'pass' : this.payload(payload);
  }

  payload(payload: JsonObject): Verdict {
    this.#answer(payload);
    if (!payload['error']) return 'pass';
    this.error = payload;
    return 'error';
  }

  whole(json: JsonObject): void {
    if (json['error'] && json['candidates'] === undefined) this.error = json;
    this.#answer(json);
    this.#isWhole = true;
  }

  #answer(answer: JsonObject): void {
    this.upstreamId ??= textOf(answer['responseId'] ?? answer['response_id']);
    for (const candidate of listOf(answer['candidates'])) {
      const { index, content, finishReason, finish_reason: snakeReason, ...others } = objectOf(candidate) ?? {};
      const grounding = objectOf(others['groundingMetadata'] ?? others['grounding_metadata']) ?? {};
      const queries = either(grounding, 'webSearchQueries', 'web_search_queries');
      if (Array.isArray(queries)) this.#counts.take('searches', queries.length);
      this.text.add(textBytesIn(objectOf(content)?.['parts'], textNames, opaqueNames));
      const reason = textOf(finishReason ?? snakeReason);
      if (reason === undefined) continue;
      this.finish = reason;
      this.#finished.add(index ?? 0);
    }
    const blocked = textOf(objectOf(answer['promptFeedback'])?.['blockReason']);
    if (blocked !== undefined) {
      this.#isBlocked = true;
      this.finish = blocked;
    }
    const usage = objectOf(answer['usageMetadata'] ?? answer['usage_metadata']);
    if (usage !== undefined) this.#takeUsage(usage);
  }

  #takeUsage(usage: JsonObject): void {
    const counts = this.#counts;
    this.#tier = either(usage, 'serviceTier', 'service_tier') ?? this.#tier;
    counts.take('prompt', either(usage, 'promptTokenCount', 'prompt_token_count'));
    counts.take('cached', either(usage, 'cachedContentTokenCount', 'cached_content_token_count'));
    counts.take('candidates', either(usage, 'candidatesTokenCount', 'candidates_token_count'));
    counts.take('thoughts', either(usage, 'thoughtsTokenCount', 'thoughts_token_count'));
    counts.take('tools', either(usage, 'toolUsePromptTokenCount', 'tool_use_prompt_token_count'));
    counts.take('total', either(usage, 'totalTokenCount', 'total_token_count'));
    takeModalities(counts, 'prompt', either(usage, 'promptTokensDetails', 'prompt_tokens_details'));
    takeModalities(counts, 'cached', either(usage, 'cacheTokensDetails', 'cache_tokens_details'));
    takeModalities(counts, 'candidates', either(usage, 'candidatesTokensDetails', 'candidates_tokens_details'));
    this.text.reported();
  }
}

/** `[{modality: "AUDIO", tokenCount: 12}]` becomes the counter `promptAUDIO`. */
function takeModalities(counts: Counts, prefix: string, details: unknown): void {
  for (const detail of listOf(details)) {
    if (isObject(detail))
      counts.take(`${prefix}${String(detail['modality'])}`, detail['tokenCount'] ?? detail['token_count']);
  }
}

/**
 * The prompt includes what was read from the cache; tool prompts stand beside it. Candidates exclude thoughts.
 * Where a vendor leaves candidates out, the total tells them.
 */
function readUsage(counts: Counts): Reading {
  const prompt = counts.get('prompt');
  const thoughts = counts.get('thoughts');
  const tools = counts.get('tools');
  const searches = counts.get('searches');
  const answered = candidatesOf(counts);
  const hasOutput = answered !== undefined || thoughts !== undefined;
  const input =
    prompt === undefined
      ? undefined
      : split(prompt, 'input', [
          ['cache_read', counts.get('cached')],
          ['input_audio', uncached(counts, 'AUDIO')],
          ['input_image', uncached(counts, 'IMAGE')],
        ]);
  const output = hasOutput
    ? split(answered ?? 0, 'output', [
        ['output_audio', counts.get('candidatesAUDIO')],
        ['output_image', counts.get('candidatesIMAGE')],
      ])
    : {};
  const usage = {
    ...input,
    ...(input !== undefined && tools !== undefined ? { input: (input.input ?? 0) + tools } : {}),
    ...output,
    ...(thoughts === undefined ? {} : { reasoning: thoughts }),
    ...(searches === undefined ? {} : { web_search: searches }),
  };
  return { usage, hasInput: prompt !== undefined, hasOutput };
}

/** Tokens of one modality that did not come from the cache. */
function uncached(counts: Counts, modality: string): number | undefined {
  const count = counts.get(`prompt${modality}`);
  return count === undefined ? undefined : Math.max(0, count - (counts.get(`cached${modality}`) ?? 0));
}

function candidatesOf(counts: Counts): number | undefined {
  const candidates = counts.get('candidates');
  const total = counts.get('total');
  const prompt = counts.get('prompt');
  if (candidates !== undefined || total === undefined || prompt === undefined) return candidates;
  return Math.max(0, total - prompt - (counts.get('thoughts') ?? 0) - (counts.get('tools') ?? 0));
}

/** Some hosts in between word their reports in the other case. */
function either(usage: JsonObject, camel: string, snake: string): unknown {
  return usage[camel] ?? usage[snake];
}
