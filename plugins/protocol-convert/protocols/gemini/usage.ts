/** Encodes usage as `usageMetadata`. Pure. */
import type { JsonObject } from '../../../../core/json/json.ts';
import { totalTokens, type Usage } from '../../../common/domain/usage.ts';

/** The prompt includes tokens read from or written to a cache; candidates exclude thoughts. `tier` is a canonical name. */
export function usageMetadata(usage: Usage, tier: string | undefined): JsonObject {
  const inputText = sum(usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h);
  const promptTokenCount = sum(inputText, usage.input_audio, usage.input_image);
  const candidatesTokenCount = sum(usage.output, usage.output_audio, usage.output_image);
  return {
    promptTokenCount,
    candidatesTokenCount,
    ...(usage.reasoning ? { thoughtsTokenCount: usage.reasoning } : {}),
    ...(usage.cache_read ? { cachedContentTokenCount: usage.cache_read } : {}),
    totalTokenCount: totalTokens(usage),
    ...details('promptTokensDetails', inputText, usage.input_image, usage.input_audio),
    ...details('candidatesTokensDetails', usage.output, usage.output_image, usage.output_audio),
    ...(tier === undefined ? {} : { serviceTier: tier === 'default' ? 'standard' : tier }),
  };
}

function sum(...counts: readonly (number | undefined)[]): number {
  return counts.reduce<number>((total, count) => total + (count ?? 0), 0);
}

/** By modality; omitted if unknown. */
function details(name: string, text = 0, image = 0, audio = 0): JsonObject {
  const all: readonly (readonly [string, number])[] = [
    ['TEXT', text],
    ['IMAGE', image],
    ['AUDIO', audio],
  ];
  const known = all.filter(([, tokenCount]) => tokenCount > 0);
  return known.length === 0 ? {} : { [name]: known.map(([modality, tokenCount]) => ({ modality, tokenCount })) };
}
