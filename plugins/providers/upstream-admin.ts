/** Upstream administration: the state of each provider and its keys, and the switches for them. */

import { X509Certificate } from 'node:crypto';
import { GatewayError } from '../../core/contract/errors.ts';
import { blocksIn, type NetworkSettings } from '../../core/tools/network-config.ts';
import type {
  CertificateView,
  UpstreamAdmin,
  UpstreamCapacity,
  UpstreamHealth,
  UpstreamView,
} from '../common/domain/admin/upstreams.ts';
import type { ProvidersConfig } from './config.ts';
import type { Gate } from './gate.ts';
import type { KeyRing } from './keys.ts';
import type { Switches } from './switches.ts';

export interface Upstreams {
  readonly config: ProvidersConfig;
  readonly rings: ReadonlyMap<string, KeyRing>;
  readonly gates: ReadonlyMap<string, Gate>;
}

/** `now` returns the current configuration, `health` the service that tracks targets. */
export function openUpstreamAdmin(
  now: () => Upstreams,
  switches: Switches,
  health: () => UpstreamHealth | undefined,
): UpstreamAdmin {
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
          // As configured: the address of a vendor inside the process is known only while it runs.
          protocols: withoutQueries(config[provider]!.speaks),
          disabled: ring.isDisabled,
          keys: ring.states(),
          ...capacityOf(gates.get(provider)),
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

    clearCooldown(provider) {
      ringOf(provider);
      switches.clearCooldown(provider);
    },

    certificates: () => certificatesIn(now().config),
  };
}

function capacityOf(gate: Gate | undefined): { room?: UpstreamCapacity } {
  if (gate === undefined) return {};
  const { rules, inFlight, waiting } = gate;
  return { room: { limit: rules.limit, queue: rules.queue, inFlight, waiting } };
}

/** A query may hold what only the vendor is to see. */
function withoutQueries(speaks: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(speaks).map(([protocol, url]) => [protocol, url.replace(/\?.*$/, '')]));
}

const known = new WeakMap<object, readonly CertificateView[]>();

/** Read once for each configuration. */
function certificatesIn(
  config: Readonly<Record<string, { readonly tls?: NetworkSettings['tls'] }>>,
): readonly CertificateView[] {
  const earlier = known.get(config);
  if (earlier !== undefined) return earlier;
  const found = Object.entries(config).flatMap(([provider, { tls }]) => [
    ...expiryOf(provider, 'ca', tls?.ca ?? []),
    ...expiryOf(provider, 'cert', [tls?.cert ?? '']),
  ]);
  known.set(config, found);
  return found;
}

function expiryOf(provider: string, use: CertificateView['use'], texts: readonly string[]): CertificateView[] {
  const times = texts.flatMap((text) =>
    blocksIn(text).map((block) => new X509Certificate(block).validToDate.getTime()),
  );
  return times.length === 0 ? [] : [{ provider, use, expiresAt: Math.min(...times) }];
}
