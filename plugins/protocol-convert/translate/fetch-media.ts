/** Fetching of media that a client gives by URL, for upstreams that accept bytes alone. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { GuardedClient, type GuardOptions, Unfetchable } from '../../../core/tools/guarded-fetch.ts';
import type { MediaPart, Part, Prompt, Source, TextPart, ToolResultPart, Turn } from '../../common/canonical/prompt.ts';
import { fieldOf, isMedia, kindOfMedia, plainMediaType, truerType, withField } from '../../common/encoding/media.ts';
import { lastSaid, unshown } from '../../common/encoding/readable-media.ts';
import { sniffBytes } from '../../common/kit/sniff.ts';
import { invalid } from '../request/checks.ts';

export interface FetchOptions extends GuardOptions {
  /** Bytes of all files of one prompt together. */
  readonly maxTotalBytes: number;
  /** Different URLs in one prompt. */
  readonly maxFiles: number;
  readonly parallel: number;
  /** Time for all files of one prompt together. */
  readonly timeoutMs: number;
  readonly onMissing?: (part: MediaPart) => void;
}

export const defaultFetchOptions: FetchOptions = {
  allowPrivate: false,
  maxBytes: 20 * 2 ** 20,
  maxTotalBytes: 50 * 2 ** 20,
  maxFiles: 50,
  parallel: 4,
  timeoutMs: 30_000,
};

interface Bytes {
  readonly form: 'bytes';
  readonly mediaType: string;
  readonly base64: string;
}

/**
 * The prompt with bytes instead of every URL of these kinds; the same prompt if there is none. Each URL is fetched
 * once. Only public addresses are fetched (`GuardedClient`), redirects follow the same rule, and no data of the client
 * is sent. In earlier turns and tool results a text replaces media that cannot be fetched, and `options.onMissing` is called
 * with it. Throws invalid_request with the URL and the reason; throws the abort reason of `signal`.
 */
export async function fetchMedia(
  prompt: Prompt,
  kinds: readonly MediaPart['kind'][],
  options: FetchOptions,
  signal: AbortSignal,
): Promise<Prompt> {
  const wanted = wantedOf(prompt, kinds);
  if (wanted.length === 0) return prompt;
  const needed = wanted.filter(({ isNeeded }) => isNeeded).length;
  if (needed > options.maxFiles) {
    throw invalid(`The request names ${needed} files by URL; at most ${options.maxFiles} can be fetched.`);
  }
  const fetched = await fetchAll(wanted.slice(0, options.maxFiles), options, signal);
  return mapMedia(prompt, kinds, (part, url) => {
    const bytes = fetched.get(url);
    if (bytes !== undefined) return { ...part, source: inPlaceOf(part.source, bytes) };
    options.onMissing?.(part);
    return unshown(part);
  });
}

interface Wanted {
  readonly url: string;
  readonly part: MediaPart;
  /** The last turn of the user has it: nothing can take its place. */
  isNeeded: boolean;
}

/** Required media first, then the latest. */
function wantedOf(prompt: Prompt, kinds: readonly MediaPart['kind'][]): Wanted[] {
  const wanted = new Map<string, Wanted>();
  mapMedia(prompt, kinds, (part, url, isNeeded) => {
    const one = wanted.get(url) ?? { url, part, isNeeded };
    one.isNeeded ||= isNeeded;
    // The latest use of an address counts.
    wanted.delete(url);
    wanted.set(url, one);
    return part;
  });
  const all = [...wanted.values()];
  return [...all.filter(({ isNeeded }) => isNeeded), ...all.filter(({ isNeeded }) => !isNeeded).reverse()];
}

/** The bytes that replace the URL. */
function inPlaceOf(before: Source, bytes: Bytes): Bytes {
  const field = fieldOf(before);
  return field === undefined ? bytes : withField({ ...bytes }, field);
}

async function fetchAll(
  wanted: readonly Wanted[],
  options: FetchOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Bytes>> {
  const fetched = new Map<string, Bytes>();
  const client = new GuardedClient(options);
  const stop = new AbortController();
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const any = AbortSignal.any([signal, timeout, stop.signal]);
  let totalBytes = 0;
  let next = 0;
  const fetchOne = async ({ url, part, isNeeded }: Wanted) => {
    try {
      const { bytes, contentType } = await client.get(url, any);
      if (totalBytes + bytes.length > options.maxTotalBytes)
        throw new Unfetchable('the files of this request are too large together');
      totalBytes += bytes.length;
      fetched.set(url, sourceOf(part, bytes, contentType));
    } catch (error) {
      if (isNeeded || signal.aborted || stop.signal.aborted)
        throw encodedSource(error, url, { client: signal, timeout });
    }
  };
  const work = async () => {
    for (let entry = wanted[next++]; entry !== undefined; entry = wanted[next++]) await fetchOne(entry);
  };
  try {
    await Promise.all(Array.from({ length: Math.max(1, Math.min(options.parallel, wanted.length)) }, work));
    return fetched;
  } finally {
    stop.abort();
    await client.close();
  }
}

function sourceOf(part: MediaPart, bytes: Buffer, contentType: string | undefined): Bytes {
  if (bytes.length === 0) throw new Unfetchable('it is empty');
  const received = plainMediaType(contentType);
  // Servers that do not know the type send the generic binary type.
  const declared = received === undefined || received === 'application/octet-stream' ? mediaTypeOf(part) : received;
  const mediaType = truerType(sniffBytes(bytes), declared);
  if (part.kind !== 'document' && kindOfMedia(mediaType) !== part.kind) {
    throw new Unfetchable(
      `it is ${mediaType}, not ${part.kind === 'image' || part.kind === 'audio' ? 'an' : 'a'} ${part.kind}`,
    );
  }
  return { form: 'bytes', mediaType, base64: bytes.toString('base64') };
}

function mediaTypeOf({ source }: MediaPart): string | undefined {
  return source.form === 'url' ? source.mediaType : undefined;
}

function encodedSource(error: unknown, url: string, signals: { client: AbortSignal; timeout: AbortSignal }): unknown {
  if (signals.client.aborted) return signals.client.reason;
  const cause = error instanceof Error && error.cause instanceof Unfetchable ? error.cause : error;
  const reason = signals.timeout.aborted
    ? 'it took too long'
    : cause instanceof Unfetchable
      ? cause.message
      : 'its server could not be reached or broke off';
  return new GatewayError('invalid_request', `The file at ${shortened(url)} cannot be fetched: ${reason}.`, {
    code: 'media_not_fetched',
    cause: error,
  });
}

/** Without query and credentials, which may be secret. */
function shortened(address: string): string {
  const url = URL.parse(address);
  const plain = url === null ? address : `${url.protocol}//${url.host}${url.pathname}`;
  return plain.length > 200 ? `${plain.slice(0, 200)}…` : plain;
}

// ------------------------------------------------------------------------------------------------ positions of media

function mapMedia(
  prompt: Prompt,
  kinds: readonly MediaPart['kind'][],
  change: (part: MediaPart, url: string, isNeeded: boolean) => MediaPart | TextPart,
): Prompt {
  const last = lastSaid(prompt.turns);
  const changed = <P extends Part>(part: P, isNeeded: boolean): P | MediaPart | TextPart => {
    if (!isMedia(part) || part.source.form !== 'url' || !kinds.includes(part.kind)) return part;
    return change(part, part.source.url, isNeeded);
  };
  const inside = (part: Part, isNeeded: boolean): Part =>
    part.kind === 'tool-result'
      ? ({
          ...part,
          parts: part.parts.map((inner: TextPart | MediaPart) => changed(inner, false)),
        } satisfies ToolResultPart)
      : changed(part, isNeeded);
  const turnOf = (turn: Turn, index: number): Turn => {
    const isNeeded = turn.role !== 'assistant' && index >= last;
    return { ...turn, parts: turn.parts.map((part) => inside(part, isNeeded)) };
  };
  return { ...prompt, turns: prompt.turns.map(turnOf) };
}
