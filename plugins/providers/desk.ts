/** The upstream desk: what state each provider and its keys are in, and the switches that an operator has. */
import type { UpstreamDesk, UpstreamView } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import type { ProvidersConfig } from './config.ts';
import type { KeyRing } from './keys.ts';
import type { Switches } from './switches.ts';

export interface Upstreams {
  readonly config: ProvidersConfig;
  readonly rings: ReadonlyMap<string, KeyRing>;
}

/** `now` tells those that are configured at the moment. */
export function openDesk(now: () => Upstreams, switches: Switches): UpstreamDesk {
  const ringOf = (provider: string): KeyRing => {
    const ring = now().rings.get(provider);
    if (ring !== undefined) return ring;
    throw new GatewayError('not_found', 'There is no such provider, or it has no key.', { field: 'provider' });
  };
  return {
    list() {
      const { config, rings } = now();
      return [...rings].map(
        ([provider, ring]): UpstreamView => ({
          provider,
          // As it is written: the address of a vendor inside the process is known only while that runs.
          protocols: { ...config[provider]!.speaks },
          disabled: ring.isDisabled,
          keys: ring.states(),
        }),
      );
    },

    async setDisabled(provider, credential, disabled) {
      const ring = ringOf(provider);
      const digest = credential === undefined ? undefined : ring.digestOf(credential);
      if (credential !== undefined && digest === undefined)
        throw new GatewayError('not_found', 'This provider has no such key.', { field: 'credential' });
      await switches.set(provider, digest, disabled);
    },

    wake(provider) {
      ringOf(provider);
      switches.wake(provider);
    },
  };
}
