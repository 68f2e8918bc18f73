/** What of a request costs beside its tokens: services beyond the standard one, and tools that the vendor runs itself. Pure. */
import type { Services } from '../../core/prices.ts';
import type { Call } from '../../core/vocabulary.ts';
import { isObject, type JsonObject, listOf, textOf } from './json.ts';

/** Names by which protocols call the standard service, or leave the choice to the vendor. */
const standardNames = new Set(['', 'auto', 'default', 'standard', 'standard_only', 'on_demand', 'unspecified']);
/** Regions that cost what every region does. */
const commonRegions = new Set(['', 'global', 'not_available']);

/** Calls that are covered where a tool has no bound of its own, and that a bound counts for at most. */
const usualToolCalls = 10;
const mostToolCalls = 100;

export type Surcharges = Pick<Call, 'services' | 'toolCalls'>;

/** `tier` and `region` as the request has them, `toolCalls` as counted by the protocol. */
export function surcharges(asked: { tier?: unknown; region?: unknown; toolCalls: number }): Surcharges {
  const tier = tierName(asked.tier);
  const region = nameOf(asked.region);
  const services = {
    ...(standardNames.has(tier) ? {} : { tier }),
    ...(commonRegions.has(region) ? {} : { region }),
  };
  const toolCalls = Math.min(asked.toolCalls, mostToolCalls);
  return Object.keys(services).length === 0 ? { toolCalls } : { services, toolCalls };
}

/** What an upstream says it has granted; a name that leaves the choice open says nothing. */
export function grantedServices(tier: unknown, region?: unknown): Services {
  const name = tierName(tier);
  const place = nameOf(region);
  return { ...(name === '' || name === 'auto' ? {} : { tier: name }), ...(place === '' ? {} : { region: place }) };
}

/** `SERVICE_TIER_FLEX` and `flex` are one name. */
function tierName(value: unknown): string {
  return nameOf(value).replace(/^service_tier_/, '');
}

function nameOf(value: unknown): string {
  return (textOf(value) ?? '').slice(0, 50).toLowerCase();
}

/** The calls that a list of tools allows: `callsOf` tells those of one; 0 for a tool that the client runs. */
export function toolCallsOf(tools: unknown, callsOf: (tool: JsonObject) => number): number {
  let sum = 0;
  for (const tool of listOf(tools)) if (isObject(tool)) sum += callsOf(tool);
  return sum;
}

/** A tool's own bound, if it is one. */
export function boundedCalls(bound: unknown): number {
  return typeof bound === 'number' && Number.isSafeInteger(bound) && bound >= 0 ? bound : usualToolCalls;
}
