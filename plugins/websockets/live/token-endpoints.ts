/** `POST /v1alpha/auth_tokens`: the gateway's own short-lived tokens of live sessions. */
import type { Endpoint, Exchange, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, textOf, tryParseBytes } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { caller } from '../../common/domain/accounts.ts';
import { googleErrorAnswer } from '../../common/kit/error-envelope.ts';
import { checkedModel, settingsNotKept } from '../realtime/secret-endpoints.ts';
import { pathsIn } from './constraints.ts';
import type { LiveTokens, NewToken } from './tokens.ts';

const longestBytes = 64 * 1024;
const mostUses = 1_000_000;
const minuteMs = 60_000;
/** The bounds of the vendor's interface. */
const lifetime = { usualMs: 30 * minuteMs, usualToBeginMs: minuteMs, mostMs: 20 * 60 * minuteMs };
const versions = ['v1alpha', 'v1beta', 'v1'] as const;

type Tools = Pick<Host, 'find' | 'clock'>;

export function tokenEndpoints(host: Tools, tokens: LiveTokens): Endpoint[] {
  return versions.map((version) => ({
    method: 'POST',
    path: `/${version}/auth_tokens`,
    body: 'whole',
    operation: 'realtime-secrets',
    renderError: googleErrorAnswer,
    describes:
      version === 'v1alpha'
        ? [
            {
              summary: 'Makes a short-lived token with which a browser opens live sessions.',
              body: { types: ['application/json'] },
            },
          ]
        : [],
    handle: (exchange) => create(exchange, host, tokens),
  }));
}

async function create(exchange: Exchange, host: Tools, tokens: LiveTokens): Promise<Answer> {
  const identity = exchange.find(caller);
  if (identity === undefined) throw new GatewayError('forbidden', 'Tokens are made with a key of an account.');
  const requested = tokenRequest(bodyOf(exchange), host.clock.now());
  const model = requested.setup?.['model'];
  if (model !== undefined)
    checkedModel(exchange, host, textOf(model)?.replace(/^models\//, ''), 'bidiGenerateContentSetup.model');
  const { setup, ...token } = requested;
  if (setup !== undefined && identity.retention === 'none') throw settingsNotKept('bidiGenerateContentSetup');
  const kept = { ...token, keyId: identity.keyId, setup: setup === undefined ? undefined : JSON.stringify(setup) };
  const shown = {
    name: await tokens.create(kept),
    uses: token.uses,
    expireTime: new Date(token.expiresAt).toISOString(),
    newSessionExpireTime: new Date(token.newSessionExpiresAt).toISOString(),
  };
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify(shown),
  };
}

function bodyOf({ request: { body } }: Exchange): JsonObject {
  if (body.length > longestBytes) throw new GatewayError('too_large', 'The settings of a token have at most 64 KiB.');
  const value = body.length === 0 ? {} : tryParseBytes(body);
  if (isObject(value)) return value;
  throw new GatewayError('invalid_request', 'The body must be a JSON object.');
}

interface TokenRequest extends Omit<NewToken, 'keyId' | 'setup'> {
  readonly setup: JsonObject | undefined;
}

function tokenRequest(body: JsonObject, now: number): TokenRequest {
  const member = (camel: string, snake: string): unknown => body[camel] ?? body[snake] ?? undefined;
  const uses = body['uses'] ?? 1;
  if (typeof uses !== 'number' || !Number.isInteger(uses) || uses < 0 || uses > mostUses)
    throw invalid(`The field "uses" must be a whole number from 0 to ${mostUses}; 0 is any number.`, 'uses');
  const expires = timeIn(member('expireTime', 'expire_time'), 'expireTime', now);
  const begins = timeIn(member('newSessionExpireTime', 'new_session_expire_time'), 'newSessionExpireTime', now);
  const expiresAt = expires ?? now + lifetime.usualMs;
  const setup = member('bidiGenerateContentSetup', 'bidi_generate_content_setup');
  if (setup !== undefined && !isObject(setup))
    throw invalid('The field "bidiGenerateContentSetup" must be an object.', 'bidiGenerateContentSetup');
  const mask = member('fieldMask', 'field_mask');
  if (mask !== undefined && (typeof mask !== 'string' || pathsIn(mask) === undefined))
    throw invalid('The field "fieldMask" must be names of fields with commas between them.', 'fieldMask');
  return {
    setup,
    fieldMask: mask,
    uses,
    expiresAt,
    newSessionExpiresAt: Math.min(begins ?? now + lifetime.usualToBeginMs, expiresAt),
  };
}

function timeIn(value: unknown, field: string, now: number): number | undefined {
  if (value === undefined) return undefined;
  const at = typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(at)) throw invalid(`The field "${field}" must be a time such as 2027-01-01T00:00:00Z.`, field);
  if (at > now && at < now + lifetime.mostMs) return at;
  throw invalid(`The field "${field}" must be in the future, by less than 20 hours.`, field);
}
