/** The errors of authentication; every invalid key gets the same one, whatever the reason. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { Carrier } from './carriers.ts';

const unauthenticated = (message: string) =>
  new GatewayError('unauthenticated', message, {
    code: 'invalid_api_key',
    headers: { 'www-authenticate': 'Bearer' },
  });

const headers: Readonly<Partial<Record<Carrier, string>>> = {
  bearer: '"Authorization: Bearer <API_KEY>"',
  'x-api-key': '"x-api-key: <API_KEY>"',
  'x-goog-api-key': '"x-goog-api-key: <API_KEY>"',
};

const names: Readonly<Record<Carrier, string>> = {
  bearer: 'Authorization',
  'x-api-key': 'x-api-key',
  'x-goog-api-key': 'x-goog-api-key',
  query: '?key=',
};

/**
 * Names every header that is read, so that a client which sent the key elsewhere sees why it was not found. A key in
 * the URL ends up in logs, so it is suggested only if there is no other way.
 */
export function missingKey(carriers: readonly Carrier[]): GatewayError {
  const named = carriers.flatMap((carrier) => headers[carrier] ?? []);
  const place = named.length === 0 ? 'in the address: "?key=<API_KEY>"' : `in the header ${named.join(' or ')}`;
  return unauthenticated(`An API key is missing. Send it ${place}.`);
}
export function conflictingKeys(carriers: readonly Carrier[]): GatewayError {
  const named = carriers.map((carrier) => names[carrier]).join(' and ');
  return unauthenticated(`Two different API keys were sent with this request, in ${named}. Send one of them.`);
}
export const invalidKey = () => unauthenticated('The API key is not valid.');

export const disabledAccount = () =>
  new GatewayError('forbidden', 'The account of this API key is disabled.', { code: 'account_disabled' });

export const organizationKey = () =>
  new GatewayError('forbidden', 'This key administers an organization, and may ask for nothing else.', {
    code: 'organization_key',
  });

export const projectArchived = (name: string) =>
  new GatewayError('forbidden', `The project "${name}" of this API key is archived.`, { code: 'project_archived' });

/** An endpoint that keeps something, for an account of which nothing may be kept. */
export const keepsWhatIsNotKept = (what: string) =>
  new GatewayError('forbidden', `Nothing of the calls of this account is kept (retention "none"), and ${what} are.`, {
    code: 'retention_none',
    shouldRetry: false,
  });

/** The message does not list the allowed addresses: only the key's owner may see them. */
export const wrongAddress = () =>
  new GatewayError('forbidden', 'This API key may not be used from this address.', { code: 'address_not_allowed' });

export const tooManyFailures = (retryAfterMs: number) =>
  new GatewayError('rate_limited', 'Too many requests without a valid API key came from this address.', {
    code: 'failed_attempts',
    retryAfterMs,
  });

export const keysUnavailable = (cause?: unknown) =>
  new GatewayError('overloaded', 'API keys cannot be checked at the moment. Try again shortly.', {
    code: 'keys_unavailable',
    retryAfterMs: 1_000,
    cause,
  });
