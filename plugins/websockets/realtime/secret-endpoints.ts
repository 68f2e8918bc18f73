/** `POST /v1/realtime/client_secrets`, and the older `/v1/realtime/sessions`: the gateway's own short-lived keys. */
import { randomUUID } from 'node:crypto';
import type { Endpoint, Exchange, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, tryParseBytes } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { caller } from '../../common/domain/accounts.ts';
import { catalog } from '../../common/domain/models.ts';
import { envelopeAnswer } from '../../common/kit/error-envelope.ts';
import type { RealtimeSecrets } from './secrets.ts';

const longestBytes = 64 * 1024;
/** Lifetime of a secret in seconds, with the bounds of the vendor's interface. */
const seconds = { usual: 600, least: 10, most: 7_200, ofSessions: 60 };

interface SecretRequest {
  readonly session: JsonObject;
  readonly seconds: number;
}

export function secretEndpoints(host: Pick<Host, 'find' | 'clock'>, secrets: RealtimeSecrets): Endpoint[] {
  const common = { method: 'POST', body: 'whole', operation: 'realtime-secrets', renderError: envelopeAnswer } as const;
  const make = async (exchange: Exchange, { session, seconds: valid }: SecretRequest) => {
    const model = checkedModel(exchange, host, session['model'], 'session.model');
    const identity = exchange.find(caller);
    if (identity === undefined)
      throw new GatewayError('forbidden', 'Client secrets are made with a key of an account.');
    const { model: _model, type, ...settings } = session;
    const kept =
      Object.keys(settings).length === 0
        ? undefined
        : JSON.stringify({ ...(type === undefined ? {} : { type }), ...settings });
    if (kept !== undefined && identity.retention === 'none') throw settingsNotKept('session');
    const expiresAt = Math.floor(host.clock.now() / 1_000) + valid;
    const value = await secrets.create({ keyId: identity.keyId, model, session: kept }, expiresAt * 1_000);
    return { value, expiresAt, shown: { object: 'realtime.session', id: `sess_${randomUUID()}`, ...session, model } };
  };
  return [
    {
      ...common,
      path: '/v1/realtime/client_secrets',
      describes: [
        {
          summary: 'Makes a short-lived key with which a browser opens realtime sessions.',
          body: { types: ['application/json'] },
        },
      ],
      handle: async (exchange) => {
        const { value, expiresAt, shown } = await make(exchange, secretRequest(bodyOf(exchange)));
        return json({ value, expires_at: expiresAt, session: { type: 'realtime', ...shown } });
      },
    },
    {
      ...common,
      path: '/v1/realtime/sessions',
      describes: [
        { summary: 'The older form of client secrets.', body: { types: ['application/json'], required: ['model'] } },
      ],
      handle: async (exchange) => {
        const requested = { session: bodyOf(exchange), seconds: seconds.ofSessions };
        const { value, expiresAt, shown } = await make(exchange, requested);
        return json({ ...shown, client_secret: { value, expires_at: expiresAt } });
      },
    },
  ];
}

/** They are kept until the key expires, for an account of which nothing may be kept. */
export function settingsNotKept(field: string): GatewayError {
  const message = `Nothing of this account is kept (retention "none"): send the settings in the session, and not in "${field}".`;
  return new GatewayError('invalid_request', message, { field, code: 'retention_none', shouldRetry: false });
}

function bodyOf({ request: { body } }: Exchange): JsonObject {
  if (body.length > longestBytes) throw new GatewayError('too_large', 'The settings of a session have at most 64 KiB.');
  const value = body.length === 0 ? {} : tryParseBytes(body);
  if (!isObject(value)) throw new GatewayError('invalid_request', 'The body must be a JSON object.');
  return value;
}

function secretRequest(body: JsonObject): SecretRequest {
  const { session = {}, expires_after: after = {} } = body;
  if (!isObject(session)) throw invalid('The field "session" must be an object.', 'session');
  if (session['type'] === 'transcription')
    throw new GatewayError('unsupported', 'Sessions of the type "transcription" are not offered.', {
      field: 'session.type',
      shouldRetry: false,
    });
  if (!isObject(after)) throw invalid('The field "expires_after" must be an object.', 'expires_after');
  const valid = after['seconds'] ?? seconds.usual;
  if (!Number.isInteger(valid) || (valid as number) < seconds.least || (valid as number) > seconds.most)
    throw invalid(
      `The field "expires_after.seconds" must be a whole number from ${seconds.least} to ${seconds.most}.`,
      'expires_after.seconds',
    );
  return { session, seconds: valid as number };
}

/** Throws unless it is a realtime model that the key may call. */
export function checkedModel(exchange: Exchange, host: Pick<Host, 'find'>, model: unknown, field: string): string {
  if (typeof model !== 'string' || model === '') throw invalid(`The field "${field}" must name a model.`, field);
  const entry = host.find(catalog)?.find(model);
  const who = exchange.find(caller);
  const isAllowed = (names: ReadonlySet<string> | undefined) =>
    names?.has(model) !== false || names.has(entry?.id ?? model);
  if (entry?.kind !== 'realtime' || !isAllowed(who?.models) || !isAllowed(who?.projectModels))
    throw new GatewayError(
      'not_found',
      `The realtime model "${model.slice(0, 200)}" does not exist, or this key may not call it.`,
      {
        field,
        code: 'model_not_found',
        shouldRetry: false,
      },
    );
  return model;
}

function json(body: object): Answer {
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify(body),
  };
}
