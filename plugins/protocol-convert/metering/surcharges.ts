/** Costs of a request beside its tokens: service tiers, regions, and tools that the vendor runs itself. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import type { Call } from '../../common/domain/calls.ts';
import type { Services } from '../../common/domain/prices.ts';

/** Names of the standard tier in the protocols, and names that leave the choice to the vendor. */
const standardNames = new Set(['', 'auto', 'default', 'standard', 'standard_only', 'on_demand', 'unspecified']);
/** Names for no particular region. */
const commonRegions = new Set(['', 'global', 'not_available']);

/** Calls that a reservation covers for a tool without its own bound, and the maximum that it covers. */
const usualToolCalls = 10;
const mostToolCalls = 100;

export type Surcharges = Pick<Call, 'services' | 'serviceFields' | 'toolCalls'>;

/** A member of the request: its name and its value. */
export type RequestMember = readonly [field: string, value: unknown];

/** `tier` and `region` as in the request, `toolCalls` as counted by the protocol. */
export function surcharges(requested: { tier: RequestMember; region?: RequestMember; toolCalls: number }): Surcharges {
  const tier = tierName(requested.tier[1]);
  const region = nameOf(requested.region?.[1]);
  const toolCalls = Math.min(requested.toolCalls, mostToolCalls);
  if (standardNames.has(tier) && commonRegions.has(region)) return { toolCalls };
  const services = {
    ...(standardNames.has(tier) ? {} : { tier }),
    ...(commonRegions.has(region) ? {} : { region }),
  };
  const serviceFields = {
    ...('tier' in services ? { tier: requested.tier[0] } : {}),
    ...('region' in services && requested.region !== undefined ? { region: requested.region[0] } : {}),
  };
  return { services, serviceFields, toolCalls };
}

/** The services that an upstream reports as granted; a name that leaves the choice open is ignored. */
export function grantedServices(tier: unknown, region?: unknown): Services {
  const name = tierName(tier);
  const regionName = nameOf(region);
  const isStandard = name === '' || name === 'auto';
  if (isStandard && regionName === 'global') return globalServices;
  return {
    ...(isStandard ? {} : { tier: name }),
    ...(regionName === '' ? {} : { region: regionName }),
  };
}

/** The report of most answers, shared by them. */
export const globalServices: Services = { region: 'global' };

/** `SERVICE_TIER_FLEX` and `flex` are the same tier. */
function tierName(value: unknown): string {
  return value === undefined ? '' : nameOf(value).replace(/^service_tier_/, '');
}

function nameOf(value: unknown): string {
  return (textOf(value) ?? '').slice(0, 50).toLowerCase();
}

/** Pictures that a reservation covers where the vendor may draw. */
const usualPictures = 2;

/** Where the vendor's own tool may draw: among `tools`, or as a translated request has it that asks for these kinds of answers. */
export function picturesOf(tools: unknown, kinds?: unknown): Pick<Call, 'images' | 'media'> | undefined {
  if (tools === undefined && kinds === undefined) return undefined;
  const tool = listOf(tools)
    .map(objectOf)
    .find((one) => one?.['type'] === 'image_generation');
  if (tool === undefined) {
    const isRequested = listOf(kinds).some((kind) => nameOf(kind) === 'image');
    return isRequested ? { images: usualPictures } : undefined;
  }
  const media = [tool['size'], tool['quality']].flatMap((word) => textOf(word)?.slice(0, 40).toLowerCase() ?? []);
  const known = media.filter((word) => word !== 'auto');
  return { images: usualPictures, ...(known.length === 0 ? {} : { media: known }) };
}

/** The calls that a list of tools allows: `callsOf` returns those of one tool, 0 for a tool that the client runs. */
export function toolCallsOf(tools: unknown, callsOf: (tool: JsonObject) => number): number {
  let sum = 0;
  for (const tool of listOf(tools)) if (isObject(tool)) sum += callsOf(tool);
  return sum;
}

/** A tool's own bound, if it is valid. */
export function boundedCalls(bound: unknown): number {
  return typeof bound === 'number' && Number.isSafeInteger(bound) && bound >= 0 ? bound : usualToolCalls;
}
