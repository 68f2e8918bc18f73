/** The vendor's prompt cache: known prefixes are billed as cache reads. */
import { createHash } from 'node:crypto';
import type { PromptCounts } from './counts.ts';
import { type CacheSpan, type ModelRequest, promptTokens, type Segment } from './script/model-request.ts';

/** No imitated vendor caches shorter prefixes. */
const leastCachedTokens = 1024;

/** Prefixes without a mark are cached in steps of this many tokens. */
const cacheStepTokens = 128;

const keptForMs: Record<CacheSpan | 'unmarked', number> = { '5m': 300_000, '1h': 3_600_000, unmarked: 1_800_000 };

interface Boundary {
  readonly digest: string;
  readonly tokens: number;
  readonly mark: CacheSpan | undefined;
}

/** What one protocol reports of the prompt's composition. */
interface Traits {
  /** Images and audio are reported in classes of their own, and end the cached prefix. */
  readonly media: boolean;
  /** Cache writes are reported; otherwise they count as plain input. */
  readonly writes: boolean;
}
const traits: Record<ModelRequest['protocol'], Traits> = {
  chat: { media: true, writes: true },
  responses: { media: false, writes: true },
  messages: { media: false, writes: true },
  gemini: { media: true, writes: false },
};

export class PromptCache {
  /** Digest of a prefix to its expiry time; the least recently used comes first. */
  readonly #expiresAt = new Map<string, number>();
  readonly #maxEntries: number;

  constructor(maxEntries = 20_000) {
    this.#maxEntries = maxEntries;
  }

  /** Counts a prompt and remembers its prefixes. `now` in wall-clock milliseconds. */
  count(modelRequest: ModelRequest, now: number): PromptCounts {
    const { media, writes } = traits[modelRequest.protocol];
    const total = promptTokens(modelRequest);
    const image = media ? tokensIn(modelRequest.prompt, 'image') : 0;
    const audio = media ? tokensIn(modelRequest.prompt, 'audio') : 0;
    const plain = { input: total - image - audio, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, image, audio };
    if (total < leastCachedTokens) return plain;
    const boundaries = boundariesOf(modelRequest, media);
    if (boundaries.length === 0) return plain;
    const step = modelRequest.marksOnly ? 1 : cacheStepTokens;
    const read = this.#read(boundaries, now, modelRequest.marksOnly, step);
    const written = this.#write(boundaries, now, modelRequest.marksOnly, read, step);
    const [cacheWrite5m, cacheWrite1h] = writes ? written : [0, 0];
    return {
      ...plain,
      input: plain.input - read - cacheWrite5m - cacheWrite1h,
      cacheRead: read,
      cacheWrite5m,
      cacheWrite1h,
    };
  }

  /** Tokens of the longest known prefix, with a renewed expiry time. */
  #read(boundaries: readonly Boundary[], now: number, marksOnly: boolean, step: number): number {
    const unmarked = marksOnly ? '5m' : 'unmarked';
    for (const boundary of boundaries.toReversed()) {
      const expiresAt = this.#expiresAt.get(boundary.digest);
      if (expiresAt === undefined || expiresAt <= now) continue;
      this.#keep(boundary.digest, now, boundary.mark ?? unmarked);
      return boundary.tokens - (boundary.tokens % step);
    }
    return 0;
  }

  #write(
    boundaries: readonly Boundary[],
    now: number,
    marksOnly: boolean,
    read: number,
    step: number,
  ): [fiveMinutes: number, oneHour: number] {
    const written: Record<CacheSpan, number> = { '5m': 0, '1h': 0 };
    let upTo = read;
    for (const boundary of boundaries) {
      if (marksOnly && boundary.mark === undefined) continue;
      this.#keep(boundary.digest, now, boundary.mark ?? 'unmarked');
      const tokens = boundary.tokens - (boundary.tokens % step);
      if (tokens <= upTo) continue;
      written[boundary.mark ?? '5m'] += tokens - upTo;
      upTo = tokens;
    }
    return [written['5m'], written['1h']];
  }

  #keep(digest: string, now: number, span: keyof typeof keptForMs): void {
    this.#expiresAt.delete(digest);
    this.#expiresAt.set(digest, now + keptForMs[span]);
    if (this.#expiresAt.size <= this.#maxEntries) return;
    const [oldest] = this.#expiresAt.keys();
    this.#expiresAt.delete(oldest!);
  }
}

function tokensIn(prompt: readonly Segment[], medium: Segment['medium']): number {
  let sum = 0;
  for (const segment of prompt) if (segment.medium === medium) sum += segment.tokens;
  return sum;
}

/** The ends of long enough prefixes; with marks only, up to the last mark. */
function boundariesOf(modelRequest: ModelRequest, stopAtMedia: boolean): Boundary[] {
  const lastMark = modelRequest.prompt.findLastIndex((segment) => segment.mark !== undefined);
  const end = modelRequest.marksOnly ? lastMark + 1 : modelRequest.prompt.length;
  const hash = createHash('sha1').update(`${modelRequest.protocol}\0${modelRequest.model}\0${modelRequest.cacheKey}`);
  const boundaries: Boundary[] = [];
  let tokens = 0;
  for (const segment of modelRequest.prompt.slice(0, end)) {
    if (stopAtMedia && segment.medium !== undefined) break;
    hash.update(`\0${segment.role}\0${segment.text}`);
    tokens += segment.tokens;
    if (tokens < leastCachedTokens) continue;
    boundaries.push({ digest: hash.copy().digest('base64'), tokens, mark: segment.mark });
  }
  return boundaries;
}
