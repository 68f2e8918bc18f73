/** The vendor's memory of prompt prefixes: what it has seen before is read from the cache. */
import { createHash } from 'node:crypto';
import { type Ask, type CacheSpan, promptTokens, type Segment } from './ask.ts';
import type { PromptCounts } from './counts.ts';

/** Shorter prefixes are never cached, by any of the vendors that are imitated here. */
export const leastCachedTokens = 1024;

/** Prefixes that need no mark are cached in steps of this many tokens. */
export const cacheStepTokens = 128;

const keptForMs: Record<CacheSpan | 'unmarked', number> = { '5m': 300_000, '1h': 3_600_000, unmarked: 1_800_000 };

interface Boundary {
  readonly digest: string;
  readonly tokens: number;
  readonly mark: CacheSpan | undefined;
}

/** What one protocol tells of the prompt's parts. */
interface Traits {
  /** Images and sounds are reported in classes of their own, and end the cached prefix. */
  readonly media: boolean;
  /** Writing to the cache is reported; otherwise it counts as plain input. */
  readonly writes: boolean;
}
const traits: Record<Ask['protocol'], Traits> = {
  chat: { media: true, writes: true },
  responses: { media: false, writes: true },
  messages: { media: false, writes: true },
  gemini: { media: true, writes: false },
};

export class PromptCache {
  /** Digest of a prefix to the moment it is forgotten; the least recently used comes first. */
  readonly #expiresAt = new Map<string, number>();
  readonly #maxEntries: number;

  constructor(maxEntries = 20_000) {
    this.#maxEntries = maxEntries;
  }

  /** Counts a prompt and remembers its prefixes. `now` in wall-clock milliseconds. */
  count(ask: Ask, now: number): PromptCounts {
    const { media, writes } = traits[ask.protocol];
    const total = promptTokens(ask);
    const image = media ? tokensIn(ask.prompt, 'image') : 0;
    const audio = media ? tokensIn(ask.prompt, 'audio') : 0;
    const plain = { input: total - image - audio, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, image, audio };
    if (total < leastCachedTokens) return plain;
    const boundaries = boundariesOf(ask, media);
    if (boundaries.length === 0) return plain;
    const step = ask.marksOnly ? 1 : cacheStepTokens;
    const read = this.#read(boundaries, now, ask.marksOnly, step);
    const written = this.#write(boundaries, now, ask.marksOnly, read, step);
    const [cacheWrite5m, cacheWrite1h] = writes ? written : [0, 0];
    return {
      ...plain,
      input: plain.input - read - cacheWrite5m - cacheWrite1h,
      cacheRead: read,
      cacheWrite5m,
      cacheWrite1h,
    };
  }

  /** Tokens of the longest known prefix, which is kept for its time anew. */
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
function boundariesOf(ask: Ask, stopAtMedia: boolean): Boundary[] {
  const lastMark = ask.prompt.findLastIndex((segment) => segment.mark !== undefined);
  const end = ask.marksOnly ? lastMark + 1 : ask.prompt.length;
  const hash = createHash('sha1').update(`${ask.protocol}\0${ask.model}\0${ask.cacheKey}`);
  const boundaries: Boundary[] = [];
  let tokens = 0;
  for (const segment of ask.prompt.slice(0, end)) {
    if (stopAtMedia && segment.medium !== undefined) break;
    hash.update(`\0${segment.role}\0${segment.text}`);
    tokens += segment.tokens;
    if (tokens < leastCachedTokens) continue;
    boundaries.push({ digest: hash.copy().digest('base64'), tokens, mark: segment.mark });
  }
  return boundaries;
}
