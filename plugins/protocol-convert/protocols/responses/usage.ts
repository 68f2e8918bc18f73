/** Encodes usage as the responses protocol's `usage`. Pure. */
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Usage } from '../../../common/domain/usage.ts';

/**
 * Token counts: `input_tokens` includes cache reads and writes, `output_tokens` includes reasoning. Both details objects are
 * always present, with all numbers: terminal clients fail on empty ones.
 */
export function usageObject(usage: Usage): JsonObject {
  const cached = usage.cache_read ?? 0;
  const written = usage.cache_write_5m ?? 0;
  const writtenLong = usage.cache_write_1h ?? 0;
  const reasoning = usage.reasoning ?? 0;
  const media = (usage.input_audio ?? 0) + (usage.input_image ?? 0);
  const input = (usage.input ?? 0) + cached + written + writtenLong + media;
  const output = (usage.output ?? 0) + reasoning + (usage.output_audio ?? 0) + (usage.output_image ?? 0);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: written + writtenLong,
      ...(writtenLong === 0
        ? {}
        : { cache_write_tokens_details: { ttl_30m_tokens: written, ttl_12h_tokens: writtenLong } }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

/** `tool_usage`, if searches were counted. */
export function toolUsage(usage: Usage): JsonObject | undefined {
  return usage.web_search === undefined ? undefined : { web_search: { num_requests: usage.web_search } };
}
