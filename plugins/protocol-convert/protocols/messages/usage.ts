/** Encodes usage for clients of the messages protocol. Pure. */
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Usage } from '../../../common/domain/usage.ts';

/**
 * The protocol's counters: `input_tokens` excludes cache reads and writes, `output_tokens` includes reasoning. Every member
 * is present, as clients of the newer version require.
 */
export function usageJson(usage: Usage, serviceTier: string | undefined): JsonObject {
  const shortWrites = usage.cache_write_5m ?? 0;
  const longWrites = usage.cache_write_1h ?? 0;
  return {
    input_tokens: inputOf(usage),
    cache_creation_input_tokens: shortWrites + longWrites,
    cache_read_input_tokens: usage.cache_read ?? 0,
    cache_creation: { ephemeral_5m_input_tokens: shortWrites, ephemeral_1h_input_tokens: longWrites },
    output_tokens: (usage.output ?? 0) + (usage.reasoning ?? 0) + (usage.output_audio ?? 0) + (usage.output_image ?? 0),
    output_tokens_details: usage.reasoning === undefined ? null : { thinking_tokens: usage.reasoning },
    server_tool_use: toolUse(usage),
    service_tier: tiers.has(serviceTier ?? '') ? serviceTier : 'standard',
    inference_geo: null,
  };
}

function toolUse({ web_search: searches = 0, web_fetch: fetches = 0 }: Usage): JsonObject | null {
  return searches + fetches === 0 ? null : { web_search_requests: searches, web_fetch_requests: fetches };
}

const tiers = new Set(['priority', 'batch']);

/** Prompt tokens without cache reads and writes. */
function inputOf(usage: Usage): number {
  return (usage.input ?? 0) + (usage.input_audio ?? 0) + (usage.input_image ?? 0);
}

/** Usage for the first event of a stream: the known counts, otherwise the estimate of the prompt. */
export function usageAtStart(usage: Usage, estimate: number): Usage {
  const known = inputOf(usage) + (usage.cache_read ?? 0) + (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0);
  return known > 0 ? usage : { input: estimate };
}
