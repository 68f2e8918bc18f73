/** Mistakes in `speaks` of targets: protocols that do not exist, or that the provider does not speak. */
import type { Fault, Host, Notice } from '../../core/contract/contract.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import {
  endpointProtocols,
  mediaProtocols,
  providers,
  sessionProtocols,
  translations,
} from '../common/domain/upstreams.ts';
import { wireProtocols } from '../common/wire/protocols.ts';
import type { ModelsConfig } from './config.ts';

export const protocolServices = [translations, mediaProtocols, endpointProtocols, sessionProtocols] as const;

/** A provider that is not in the file has a notice of its own. */
export function targetFaults(config: ModelsConfig, host: Pick<Host, 'get' | 'find'>): Fault[] {
  const configured = host.get(providers).configured?.();
  if (configured === undefined) return [];
  const known = new Set(protocolServices.flatMap((service) => [...(host.find(service)?.paths().keys() ?? [])]));
  return Object.entries(config).flatMap(([id, { targets }]) =>
    targets.flatMap(({ provider, speaks = [] }, index) => {
      const spoken = configured.get(provider);
      if (spoken === undefined) return [];
      return speaks
        .filter((name) => !spoken.includes(name))
        .map((name) => faultOf([id, 'targets', index, 'speaks'], name, provider, spoken, known));
    }),
  );
}

/**
 * A protocol at a vendor's own addresses (`vertex-claude`) is for one maker's models, and their clients are relayed to it: beside
 * other protocols each target names its own.
 */
export function targetNotices(config: ModelsConfig, host: Pick<Host, 'get' | 'find'>): Notice[] {
  const known = host.find(translations);
  const names = [...(known?.paths().keys() ?? [])];
  const isVariant = (to: string) => names.some((from) => from !== to && known?.relays?.(from, to) === true);
  return host
    .get(providers)
    .list()
    .flatMap(({ name: provider, speaks }): Notice[] => {
      const spoken = Object.keys(speaks);
      if (spoken.length < 2 || !spoken.some(isVariant)) return [];
      const models = Object.entries(config).flatMap(([id, { targets }]) =>
        targets.some((target) => target.provider === provider && target.speaks === undefined) ? [id] : [],
      );
      if (models.length === 0) return [];
      const text = `"${provider}" speaks ${spoken.join(', ')}, each for models of its own: write speaks for the target of ${models.join(', ')}`;
      return [{ level: 'warning', text }];
    });
}

function faultOf(
  path: Fault['path'],
  name: string,
  provider: string,
  spoken: readonly string[],
  known: ReadonlySet<string>,
): Fault {
  if (known.size === 0 || known.has(name))
    return { path, message: `the provider "${provider}" does not speak "${name}"; it speaks ${spoken.join(', ')}` };
  const near = didYouMean(name, known);
  const message = `there is no protocol "${name}"${near || `; known are ${[...known].join(', ')}`}`;
  return near === '' ? { path, message, lacks: { point: wireProtocols, name } } : { path, message };
}
