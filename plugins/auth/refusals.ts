/** The words in which a request is turned away: the same for every key that does not admit, whatever the reason. */
import { GatewayError } from '../../core/errors.ts';

const unauthenticated = (message: string) =>
  new GatewayError('unauthenticated', message, {
    code: 'invalid_api_key',
    headers: { 'www-authenticate': 'Bearer' },
  });

export const missingKey = () =>
  unauthenticated('An API key is missing. Send it in the header "Authorization: Bearer <API_KEY>".');
export const conflictingKeys = () =>
  unauthenticated('Two different API keys were sent with this request. Send one of them.');
export const invalidKey = () => unauthenticated('The API key is not valid.');

export const disabledAccount = () =>
  new GatewayError('forbidden', 'The account of this API key is disabled.', { code: 'account_disabled' });

/** Which addresses it is bound to is its owner's to know. */
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
