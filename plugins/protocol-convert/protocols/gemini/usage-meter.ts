/** Meters generate-content: every frame has usage, so every frame is parsed. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import type { Services } from '../../../common/domain/prices.ts';
import { readCount, type Usage } from '../../../common/domain/usage.ts';
import { Counts, type Reading, split } from '../../../common/wire/counts.ts';
import { TextMeter, textBytesIn } from '../../../common/wire/text-meter.ts';
import type { UsageMeter, UsageMeterOptions, Verdict } from '../../../common/wire/usage-meter.ts';
import { grantedServices } from '../../metering/surcharges.ts';
import { payloadOf } from './decode/payload.ts';
import { imagesIn, unreportedImageTokens } from './image-call.ts';

const textNames = new Set(['text', 'code', 'output']);
const opaqueNames = new Set(['args']);
const none: JsonObject = {};
const runNames = [
  [/SEARCH_(WEB|IMAGE)|GOOGLE_SEARCH/, 'searchRuns'],
  [/MAPS/, 'mapRuns'],
  [/FILE_SEARCH/, 'fileSearches'],
] as const;

export class GeminiUsageMeter implements UsageMeter {
  readonly text = new TextMeter();
  error: JsonObject | undefined;
  upstreamId: string | undefined;
  finish: string | undefined;
  readonly #counts = new Counts();
  readonly #issued: UsageMeterOptions['issued'];
  readonly #choices: number;
  #finished: Set<unknown> | undefined;
  #tier: unknown;
  #isBlocked = false;
  #isWhole = false;
  /** Bytes of text of the last frame, if it has one candidate. */
  #last: number | undefined;
  #lastReports = false;
  readonly #countsImages: boolean;
  #images = 0;

  constructor(call: Call, options?: UsageMeterOptions) {
    this.#countsImages = call.kind === 'image';
    this.#choices = call.choices;
    this.#issued = options?.issued;
  }

  /** There is no terminal event: a finish reason for each candidate, or a blocked prompt, then the end of the stream. */
  get complete(): boolean {
    return (
      this.error === undefined && (this.#isWhole || this.#isBlocked || (this.#finished?.size ?? 0) >= this.#choices)
    );
  }

  get reading(): Reading {
    const counted = this.#counts.reading(readUsage);
    // Thoughts alone are no report of a text that has come.
    const isSilent = this.#counts.get('candidates') === undefined && this.#counts.get('total') === undefined;
    const reading = isSilent && this.text.bytes > 0 ? { ...counted, hasOutput: false } : counted;
    return this.#isBlocked && this.text.bytes === 0 ? asBlocked(reading, this.text.reports > 0) : reading;
  }

  get services(): Services {
    return grantedServices(this.#tier, 'global');
  }

  frame(raw: Buffer): Verdict {
    const payload = payloadOf(raw);
    return payload === undefined ? 'pass' : this.payload(payload);
  }

  payload(payload: JsonObject): Verdict {
    const { bytes, reports } = this.text;
    this.#answer(payload);
    const isOne = listOf(payload['candidates']).length === 1 && !payload['error'];
    this.#last = isOne ? this.text.bytes - bytes : undefined;
    this.#lastReports = this.text.reports > reports;
    if (!payload['error']) return 'pass';
    this.error = payload;
    return 'error';
  }

  again(growth: number): boolean {
    if (this.#last === undefined) return false;
    this.#last += growth;
    this.text.add(this.#last);
    if (this.#lastReports) this.text.reported();
    return true;
  }

  whole(json: JsonObject): void {
    if (json['error'] && json['candidates'] === undefined) this.error = json;
    this.#answer(json);
    this.#isWhole = true;
  }

  #answer(answer: JsonObject): void {
    this.upstreamId ??= textOf(answer['responseId'] ?? answer['response_id']);
    for (const candidate of listOf(answer['candidates'])) this.#candidate(objectOf(candidate) ?? none);
    const feedback = objectOf(either(answer, 'promptFeedback', 'prompt_feedback')) ?? none;
    const blocked = textOf(either(feedback, 'blockReason', 'block_reason'));
    if (blocked !== undefined) {
      this.#isBlocked = true;
      this.finish = blocked;
    }
    const usage = objectOf(answer['usageMetadata'] ?? answer['usage_metadata']);
    if (usage !== undefined) this.#takeUsage(usage);
  }

  #candidate(candidate: JsonObject): void {
    const content = objectOf(candidate['content']);
    if (content !== undefined) this.#issued?.(content);
    const grounding = objectOf(either(candidate, 'groundingMetadata', 'grounding_metadata')) ?? none;
    const queries = either(grounding, 'webSearchQueries', 'web_search_queries');
    const images = either(grounding, 'imageSearchQueries', 'image_search_queries');
    if (Array.isArray(queries) || Array.isArray(images))
      this.#counts.take('searches', listOf(queries).length + listOf(images).length);
    const chunks = listOf(either(grounding, 'groundingChunks', 'grounding_chunks'));
    if (chunks.some((chunk) => objectOf(chunk)?.['maps'] !== undefined)) this.#counts.take('maps', 1);
    this.#takeRuns(listOf(content?.['parts']));
    this.text.add(textBytesIn(content?.['parts'], textNames, opaqueNames));
    if (this.#countsImages) {
      this.#images += imagesIn(content?.['parts']);
      this.#counts.take('images', this.#images);
    }
    const reason = textOf(either(candidate, 'finishReason', 'finish_reason'));
    if (reason === undefined) return;
    this.finish = reason;
    this.#finished ??= new Set();
    this.#finished.add(candidate['index'] ?? 0);
  }

  /** Calls of the vendor's own tools; some are reported by parts alone. */
  #takeRuns(parts: readonly unknown[]): void {
    for (const part of parts) {
      const call = objectOf(either(objectOf(part) ?? none, 'toolCall', 'tool_call'));
      const type = textOf(either(call ?? none, 'toolType', 'tool_type')) ?? '';
      const name = runNames.find(([pattern]) => pattern.test(type))?.[1];
      if (call === undefined || name === undefined) continue;
      const queries = listOf(objectOf(call['args'])?.['queries']).length;
      this.#counts.take(name, (this.#counts.get(name) ?? 0) + Math.max(1, name === 'searchRuns' ? queries : 1));
    }
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
    if (either(usage, 'candidatesTokenCount', 'candidates_token_count') == null) takeUnnamed(counts, usage);
    this.text.reported();
  }
}

/** The report leaves the candidates out, which earlier ones of the stream have counted: what its total has beside the other counters. */
function takeUnnamed(counts: Counts, usage: JsonObject): void {
  const known = counts.get('candidates');
  const total = readCount(either(usage, 'totalTokenCount', 'total_token_count'));
  const prompt = counts.get('prompt');
  if (known === undefined || total === undefined || prompt === undefined) return;
  const left = total - prompt - (counts.get('thoughts') ?? 0) - (counts.get('tools') ?? 0);
  if (left > known) counts.take('candidates', left);
}

/** `[{modality: "AUDIO", tokenCount: 12}]` becomes the counter `promptAUDIO`. */
function takeModalities(counts: Counts, prefix: string, details: unknown): void {
  for (const detail of listOf(details)) {
    if (isObject(detail))
      counts.take(`${prefix}${String(detail['modality'])}`, detail['tokenCount'] ?? detail['token_count']);
  }
}

/** A blocked prompt consumes what the vendor reports: missing counts are zero, and uncertain without any report. */
function asBlocked({ usage }: Reading, isReported: boolean): Reading {
  return { usage: { input: 0, output: 0, ...usage }, hasInput: true, hasOutput: true, isUncertain: !isReported };
}

/**
 * The prompt includes tokens read from the cache; tool prompts are separate. Candidates exclude thoughts. The total supplies
 * candidates that are not reported, and thoughts that only the total includes.
 */
function readUsage(counts: Counts): Reading {
  const prompt = counts.get('prompt');
  const thoughts = thoughtsOf(counts);
  const tools = counts.get('tools');
  const searches = largestOf(counts, 'searches', 'searchRuns');
  const maps = largestOf(counts, 'maps', 'mapRuns');
  const files = counts.get('fileSearches');
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
    ...(maps === undefined ? {} : { call: maps }),
    ...(files === undefined ? {} : { file_search: files }),
    ...imagesOf(counts.get('images'), hasOutput),
  };
  const isUncertain = thoughts !== counts.get('thoughts') && (counts.get('thoughts') ?? 0) > 0;
  return { usage, hasInput: prompt !== undefined, hasOutput, isUncertain };
}

/** Images, and their tokens where the vendor reports none. */
function imagesOf(images: number | undefined, isReported: boolean): Usage {
  if (images === undefined) return {};
  return { image: images, ...(isReported ? {} : { output_image: images * unreportedImageTokens }) };
}

/** The same runs are reported in two places. */
function largestOf(counts: Counts, ...names: readonly string[]): number | undefined {
  const found = names.map((name) => counts.get(name)).filter((count) => count !== undefined);
  return found.length === 0 ? undefined : Math.max(...found);
}

/** Tokens of one modality that were not read from the cache. */
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

/** Tokens of the total that no counter includes are reasoning tokens. */
function thoughtsOf(counts: Counts): number | undefined {
  const [prompt, candidates] = [counts.get('prompt'), counts.get('candidates')];
  const thoughts = counts.get('thoughts');
  const total = counts.get('total');
  if (prompt === undefined || candidates === undefined || total === undefined) return thoughts;
  const unnamed = total - prompt - candidates - (counts.get('tools') ?? 0) - (thoughts ?? 0);
  return unnamed > 0 ? (thoughts ?? 0) + unnamed : thoughts;
}

/** Some intermediate hosts report in snake_case. */
function either(usage: JsonObject, camel: string, snake: string): unknown {
  return usage[camel] ?? usage[snake];
}
