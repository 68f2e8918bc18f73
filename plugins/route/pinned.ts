/** Requests that continue what one upstream keeps: they go to that upstream, by that key, or nowhere. */
import { GatewayError } from '../../core/errors.ts';
import type { Model, Pinned, Providers, Secret } from '../../core/vocabulary.ts';

/** Throws `previous_response_not_found` unless the model is served by the upstream that keeps the earlier answer. */
export function checkPinned(pin: Pinned, model: Model, providers: Providers): void {
  const serves = model.targets.some((target) => target.provider === pin.provider);
  const provider = providers.find(pin.provider);
  const isOff = providers.isDisabled?.(pin.provider) === true;
  if (!serves || isOff || provider === undefined || !(pin.protocol in provider.speaks)) throw lost();
}

/**
 * The key by which the earlier answer was given, or for how long it cannot be used (0: it was tried already). Throws
 * `previous_response_not_found` when it is no longer configured or out of use: no other key could see that answer.
 */
export function takePinned(
  pin: Pinned,
  model: string,
  providers: Providers,
  tried: ReadonlySet<string> | undefined,
): { key: Secret; credential: string } | { retryAfterMs: number } {
  const { credential } = pin;
  const named = providers.keyNamed(pin.provider, credential, model);
  if (named === undefined || named.disabled === true) throw lost();
  if (tried?.has(credential) === true) return { retryAfterMs: 0 };
  return named.restsMs > 0 ? { retryAfterMs: named.restsMs } : { key: named.key, credential };
}

/** Clients act on exactly this code: they send the whole conversation again. */
function lost(): GatewayError {
  return new GatewayError('invalid_request', 'The previous response cannot be continued with this model.', {
    field: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}
