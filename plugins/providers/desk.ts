/** The upstream desk: what state each provider and its keys are in, and the switches that an operator has. */
import type { UpstreamDesk, UpstreamHealth, UpstreamRoom, UpstreamView } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import type { ProvidersConfig } from './config.ts';
import type { Gate } from './gate.ts';
import type { KeyRing } from './keys.ts';
import type { Switches } from './switches.ts';

export interface Upstreams {
  readonly config: ProvidersConfig;
  readonly rings: ReadonlyMap<string, KeyRing>;
  readonly gates: ReadonlyMap<string, Gate>;
}

/** `now` tells those that are configured at the moment, `health` whoever watches how they do. */
export function openDesk(
  now: () => Upstreams,
  switches: Switches,
  health: () => UpstreamHealth | undefined,
): UpstreamDesk {
  const ringOf = (provider: string): KeyRing => {
    const ring = now().rings.get(provider);
    if (ring !== undefined) return ring;
    throw new GatewayError('not_found', 'There is no such provider, or it has no key.', { field: 'provider' });
  };
  return {
    list() {
      const { config, rings, gates } = now();
      const watched = health();
      return [...rings].map(
        ([provider, ring]): UpstreamView => ({
          provider,
          // As it is written: the address of a vendor inside the process is known only while that runs.
          protocols: { ...config[provider]!.speaks },
          disabled: ring.isDisabled,
          keys: ring.states(),
          ...roomOf(gates.get(provider)),
          ...(watched === undefined ? {} : { targets: watched.targets(provider) }),
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

function roomOf(gate: Gate | undefined): { room?: UpstreamRoom } {
  if (gate === undefined) return {};
  const { rules, inFlight, waiting } = gate;
  return { room: { limit: rules.limit, queue: rules.queue, inFlight, waiting } };
}
