/** Reads a request's JSON body: the bytes, what they say, and where each member stands; unknown members pass. Pure. */
import { GatewayError } from '../contract/errors.ts';
import { type JsonObject, tryParseBytes } from './json.ts';
import { BoundError } from './scanner.ts';
import { parseInSlices, type SlicedJson } from './slices.ts';
import { DepthError, defaultMaxDepth, type ObjectScan, scanObject } from './splice.ts';

/** A request's body as it came and as it reads. */
export interface RequestBody {
  readonly bytes: Uint8Array;
  readonly json: JsonObject;
  /** The members' places in `bytes`. */
  readonly scan: ObjectScan;
}

/** Bodies above this size are parsed in slices before an endpoint is opened, so that others are served meanwhile. */
export const slicedAboveBytes = 256 * 1024;

/** Bodies that were parsed in slices, for `readBody`. */
const parsedInSlices = new WeakMap<Uint8Array, SlicedJson>();

/**
 * Parses a large body in slices, with a `pause` between them; `readBody` of the same bytes then has its result. Throws
 * invalid_request as `readBody` does, and for more than `maxValues` members and elements.
 */
export async function parseAhead(bytes: Uint8Array, maxValues: number, pause: () => Promise<void>): Promise<void> {
  if (!beginsAsObject(bytes)) return;
  try {
    parsedInSlices.set(bytes, await parseInSlices(bytes, { maxValues, maxDepth: defaultMaxDepth, pause }));
  } catch (error) {
    if (error instanceof BoundError)
      throw invalid(`The request body has more than ${maxValues} members and elements, or a name that is too long.`);
    throw error instanceof GatewayError ? error : scanError(bytes, error);
  }
}

/** Members by which clients of other gateways point at an upstream of their own. */
const upstreamMembers = ['api_base', 'base_url', 'api_key', 'extra_headers'];

/**
 * Reads a body. `singleMembers` may be there once: what the gateway reads and the upstream reads again must be the same.
 * Throws invalid_request for a body that is empty, no JSON object, too deep, or carries a member that must not be there.
 */
export function readBody(bytes: Uint8Array, singleMembers: ReadonlySet<string>): RequestBody {
  if (bytes.length === 0) throw invalid('The request body is empty; a JSON object is needed.');
  const { scan, json } = parsedInSlices.get(bytes) ?? { scan: scanBody(bytes), json: tryParseBytes(bytes) };
  if (json === undefined) throw invalid('The request body is not valid JSON.');
  for (let index = 0; index < scan.members.length; index++) checkMember(scan, index, singleMembers);
  return { bytes, json: json as JsonObject, scan };
}

function checkMember({ members }: ObjectScan, index: number, singleMembers: ReadonlySet<string>): void {
  const { key } = members[index]!;
  if (key === '__proto__') throw invalid('The field "__proto__" is not accepted.', key);
  if (upstreamMembers.includes(key))
    throw invalid(`The field "${key}" is not accepted: upstreams are chosen here.`, key);
  if (!singleMembers.has(key)) return;
  for (let before = 0; before < index; before++) {
    if (members[before]!.key === key) throw invalid(`The field "${key}" is there more than once.`, key);
  }
}

function scanBody(bytes: Uint8Array): ObjectScan {
  try {
    return scanObject(bytes);
  } catch (error) {
    throw scanError(bytes, error);
  }
}

function scanError(bytes: Uint8Array, error: unknown): GatewayError {
  if (error instanceof DepthError) return invalid(`The request body is nested deeper than ${defaultMaxDepth} levels.`);
  return invalid(
    beginsAsObject(bytes) ? 'The request body is not valid JSON.' : 'The request body must be a JSON object.',
  );
}

function beginsAsObject(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 64)).toString('latin1').trimStart().startsWith('{');
}

export function invalid(message: string, field?: string): GatewayError {
  return new GatewayError('invalid_request', message, field === undefined ? {} : { field });
}
