/** Log probabilities of tokens, to and from chat's words. Pure. */
import type { TokenLogprob } from '../../canon.ts';
import { isObject, type JsonObject, listOf, objectOf } from '../../json.ts';

/** Of a choice's `logprobs`; undefined where it tells none. */
export function readLogprobs(value: unknown): readonly TokenLogprob[] | undefined {
  const content = listOf(objectOf(value)?.['content']);
  if (content.length === 0) return undefined;
  const read = content.map(readToken).filter((token) => token !== undefined);
  return read.length > 0 ? read : undefined;
}

function readToken(value: unknown): TokenLogprob | undefined {
  const plain = readPlain(value);
  if (plain === undefined) return undefined;
  const top = listOf((value as JsonObject)['top_logprobs'])
    .map(readPlain)
    .filter((token) => token !== undefined);
  return top.length > 0 ? { ...plain, top } : plain;
}

function readPlain(value: unknown): Omit<TokenLogprob, 'top'> | undefined {
  if (!isObject(value)) return undefined;
  const { token, logprob, bytes } = value;
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined;
  return { token, logprob, ...(Array.isArray(bytes) ? { bytes: bytes as number[] } : {}) };
}

/** As a choice's `logprobs`. */
export function wordLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  return {
    content: tokens.map((token) => ({ ...wordToken(token), top_logprobs: (token.top ?? []).map(wordToken) })),
    refusal: null,
  };
}

function wordToken({ token, logprob, bytes }: Omit<TokenLogprob, 'top'>): JsonObject {
  return { token, logprob, bytes: bytes ?? [...Buffer.from(token, 'utf8')] };
}
