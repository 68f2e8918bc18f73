/** Pinned requests: they refer to state that one upstream stores, so they go to that upstream with that key or fail. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { Secret } from '../../core/contract/secret.ts';
import type { Pinned } from '../common/domain/calls.ts';
import { type Model, speaksProtocol } from '../common/domain/models.ts';
import type { Providers } from '../common/domain/upstreams.ts';

/** Throws `lost` unless the model is served by the upstream that stores the state. */
export function checkPinned(pin: Pinned, model: Model, providers: Providers): void {
  const provider = providers.find(pin.provider);
  const isOff = providers.isDisabled?.(pin.provider) === true;
  if (provider === undefined || isOff) throw lost(pin);
  const { protocol } = pin;
  const serves = model.targets.some(
    (target) =>
      target.provider === pin.provider && (protocol === undefined || speaksProtocol(target, provider, protocol)),
  );
  if (!serves) throw lost(pin);
}

/**
 * The key of the earlier answer, or for how long it cannot be used (0: it was tried already). Throws `lost` when it
 * is not configured any more or disabled: no other key can read the stored state.
 */
export function takePinned(
  pin: Pinned,
  model: string,
  providers: Providers,
  tried: ReadonlySet<string> | undefined,
): { key: Secret; credential: string } | { retryAfterMs: number } {
  const { credential } = pin;
  const named = providers.findKey(pin.provider, credential, model);
  if (named === undefined || named.disabled === true) throw lost(pin);
  if (tried?.has(credential) === true) return { retryAfterMs: 0 };
  return named.restsMs > 0 ? { retryAfterMs: named.restsMs } : { key: named.key, credential };
}

/**
 * `previous_response_not_found` for earlier answers: clients react to exactly this code by sending the whole conversation
 * again. `resource_not_found` for files and other resources.
 */
function lost({ field }: Pinned): GatewayError {
  if (field !== undefined) {
    const message = `What the field "${field}" refers to cannot be used with this model.`;
    return new GatewayError('invalid_request', message, { field, code: 'resource_not_found' });
  }
  return new GatewayError('invalid_request', 'The previous response cannot be continued with this model.', {
    field: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}
