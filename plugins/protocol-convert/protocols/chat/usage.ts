/** Encodes usage as chat reports it: totals include their details. Pure. */
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Usage } from '../../../common/domain/usage.ts';

export function encodeUsage(usage: Usage): JsonObject {
  const of = (name: keyof Usage) => usage[name] ?? 0;
  const cacheWrite = of('cache_write_5m') + of('cache_write_1h');
  const prompt = of('input') + of('cache_read') + cacheWrite + of('input_audio') + of('input_image');
  const completion = of('output') + of('reasoning') + of('output_audio') + of('output_image');
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: of('cache_read'),
      cache_write_tokens: cacheWrite,
      audio_tokens: of('input_audio'),
      image_tokens: of('input_image'),
    },
    completion_tokens_details: {
      reasoning_tokens: of('reasoning'),
      audio_tokens: of('output_audio'),
      image_tokens: of('output_image'),
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
