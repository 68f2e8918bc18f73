/** Reads a request's JSON body: the bytes, what they say, and where each member stands; unknown members pass. Pure. */
import { GatewayError } from './errors.ts';
import { type JsonObject, tryParseBytes } from './json.ts';
import { DepthError, defaultMaxDepth, type ObjectScan, scanObject } from './splice.ts';

/** A request's body as it came and as it reads. */
export interface RequestBody {
  readonly bytes: Uint8Array;
  readonly json: JsonObject;
  /** The members' places in `bytes`. */
  readonly scan: ObjectScan;
}

/** Members by which clients of other gateways point at an upstream of their own. */
const upstreamMembers = ['api_base', 'base_url', 'api_key', 'extra_headers'];

/**
 * Reads a body. `singleMembers` may be there once: what the gateway reads and the upstream reads again must be the same.
 * Throws invalid_request for a body that is empty, no JSON object, too deep, or carries a member that must not be there.
 */
export function readBody(bytes: Uint8Array, singleMembers: ReadonlySet<string>): RequestBody {
  if (bytes.length === 0) throw invalid('The request body is empty; a JSON object is needed.');
  const scan = scanBody(bytes);
  const json = tryParseBytes(bytes);
  if (json === undefined) throw invalid('The request body is not valid JSON.');
  for (const [index, { key }] of scan.members.entries()) checkMember(scan, key, index, singleMembers);
  return { bytes, json: json as JsonObject, scan };
}

function checkMember({ members }: ObjectScan, key: string, index: number, singleMembers: ReadonlySet<string>): void {
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
    if (error instanceof DepthError) throw invalid(`The request body is nested deeper than ${defaultMaxDepth} levels.`);
    const isObject = Buffer.from(bytes.subarray(0, 64)).toString('latin1').trimStart().startsWith('{');
    throw invalid(isObject ? 'The request body is not valid JSON.' : 'The request body must be a JSON object.');
  }
}

export function invalid(message: string, field?: string): GatewayError {
  return new GatewayError('invalid_request', message, field === undefined ? {} : { field });
}
