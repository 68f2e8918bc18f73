/** Token log probabilities between chat and the canonical format. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../../core/json/json.ts';
import type { TokenLogprob } from '../../../common/canonical/prompt.ts';

/** From a choice's `logprobs`; undefined if there are none. */
export function decodeLogprobs(value: unknown): readonly TokenLogprob[] | undefined {
  const content = listOf(objectOf(value)?.['content']);
  if (content.length === 0) return undefined;
  const read = content.map(decodeToken).filter((token) => token !== undefined);
  return read.length > 0 ? read : undefined;
}

function decodeToken(value: unknown): TokenLogprob | undefined {
  const plain = decodePlain(value);
  if (plain === undefined) return undefined;
  const top = listOf((value as JsonObject)['top_logprobs'])
    .map(decodePlain)
    .filter((token) => token !== undefined);
  return top.length > 0 ? { ...plain, top } : plain;
}

function decodePlain(value: unknown): Omit<TokenLogprob, 'top'> | undefined {
  if (!isObject(value)) return undefined;
  const { token, logprob, bytes } = value;
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined;
  return { token, logprob, ...(Array.isArray(bytes) ? { bytes: bytes as number[] } : {}) };
}

/** As a choice's `logprobs`. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  return {
    content: tokens.map((token) => ({ ...encodeToken(token), top_logprobs: (token.top ?? []).map(encodeToken) })),
    refusal: null,
  };
}

function encodeToken({ token, logprob, bytes }: Omit<TokenLogprob, 'top'>): JsonObject {
  return { token, logprob, bytes: bytes ?? [...Buffer.from(token, 'utf8')] };
}
