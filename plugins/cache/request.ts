/** A request that the cache is for: its rule, its key, and the form of its answer. Pure. */
import { isUtf8 } from 'node:buffer';
import type { Exchange } from '../../core/contract/contract.ts';
import { isObject, type JsonObject, tryParseBytes } from '../../core/json/json.ts';
import { membersIn } from '../../core/json/members.ts';
import { type Caller, caller } from '../common/domain/accounts.ts';
import { answerPolicies, call } from '../common/domain/calls.ts';
import { type Model, model } from '../common/domain/models.ts';
import { type Opened, opened } from '../common/wire/protocols.ts';
import type { CacheConfig } from './config.ts';
import { formOf } from './form.ts';
import { canonicalText, digestOf, type Hole, modelMark } from './key.ts';
import { isRepeatable, mayRepeat, type Rule, ruleFor } from './rules.ts';
import type { Place } from './stores/store.ts';

export interface CachedRequest {
  readonly place: Place;
  readonly rule: Rule;
  readonly form: string;
  readonly opened: Opened | undefined;
  readonly model: Model | undefined;
  readonly json: JsonObject;
  /** The digest of the policies that its answer is made under. */
  readonly policies: string | undefined;
  /** The key of all but this text. */
  readonly groupWithout: (hole: Hole) => string | undefined;
}

interface KeySettings {
  readonly rules: readonly Rule[];
  readonly scope: CacheConfig['scope'];
  readonly largestBytes: number;
  /** Wall-clock milliseconds. */
  readonly now: () => number;
}

/** The account of callers without one. */
const anybody = '-';

/** undefined: the cache is not for it. */
export function cachedRequest(exchange: Exchange, settings: KeySettings): CachedRequest | undefined {
  const { body } = exchange.request;
  if (body.length === 0 || body.length > settings.largestBytes || !mayRepeat(exchange)) return undefined;
  const json = tryParseBytes(body);
  // Bytes that are no text are all read as the same sign.
  if (!isObject(json) || !isUtf8(body)) return undefined;
  const rule = ruleFor(settings.rules, exchange, json);
  if (rule === undefined || !isRepeatable(exchange, json)) return undefined;
  const request = exchange.find(opened);
  const text = canonicalText(json, request !== undefined);
  if (text === undefined || text.members !== membersIn(body)) return undefined;
  const by = exchange.find(caller);
  const entry = exchange.find(model);
  const policies = exchange.find(answerPolicies)?.digest();
  const around = surroundings(exchange, by, policies, settings);
  return {
    place: { accountId: by?.accountId ?? anybody, key: digestOf([...around, text.text]) },
    rule,
    form: formOf(exchange, request),
    opened: request,
    model: entry,
    json,
    policies,
    groupWithout(hole) {
      const rest = canonicalText(json, request !== undefined, hole)?.text;
      return rest === undefined ? undefined : digestOf(['similar', ...around, rest]);
    },
  };
}

/** Everything but the body that decides on the answer, or on who gets it. */
function surroundings(
  exchange: Exchange,
  by: Caller | undefined,
  policies: string | undefined,
  { scope, now }: KeySettings,
): (string | undefined)[] {
  const { endpoint, request } = exchange;
  const protocol = exchange.find(opened)?.protocol;
  const entry = exchange.find(model);
  return [
    by?.accountId,
    scope,
    scope === 'key' ? by?.keyId : scope === 'project' ? by?.project : undefined,
    endpoint.operation,
    endpoint.path,
    // In chat it says how the answer is sent, beside the model.
    protocol === undefined ? request.path : protocol.name,
    exchange.get(call).model,
    entry && modelMark(entry, now()),
    policies,
    queryOf(request.query),
    headersOf(request.headers, protocol?.passedHeaders ?? ['accept']),
  ];
}

/** Members of the query that carry a key, or say how the answer is sent. */
const ownQuery = new Set(['key', 'access_token', 'oauth_token', 'api_key', 'api-key', 'alt', '$alt']);

function queryOf(query: URLSearchParams): string {
  return JSON.stringify([...query].filter(([name]) => !ownQuery.has(name.toLowerCase())).sort());
}

/** Vendors get these, and answer by them. */
const versionHeader = /^[a-z-]+-(?:beta|version)$/;

function headersOf(headers: Readonly<Record<string, string>>, passed: readonly string[]): string {
  const names = Object.keys(headers).filter((name) => passed.includes(name) || versionHeader.test(name));
  return JSON.stringify(names.sort().map((name) => [name, headers[name]]));
}
