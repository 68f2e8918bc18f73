/** Vendors as data: who they are, what they speak, where, and whose turn it is among their keys. */
import { definePlugin, type Host, type Notice } from '../../core/contract.ts';
import {
  localUpstreams,
  type Provider,
  type Providers,
  providers,
  type UpstreamTraits,
} from '../../core/vocabulary.ts';
import { resolvingMap } from './addresses.ts';
import { type ProviderConfig, type ProvidersConfig, providersSchema } from './config.ts';
import { KeyRing } from './keys.ts';

export default definePlugin<ProvidersConfig>({
  name: 'providers',
  config: providersSchema,
  provides: [providers],
  uses: [localUpstreams],
  setup(host, config) {
    let vendors = vendorsOf(config, host);
    const service: Providers = {
      find: (name) => vendors.known.get(name),
      list: () => [...vendors.known.values()],
      takeKey: (name, model, except) => vendors.rings.get(name)?.take(model, except) ?? { retryAfterMs: 0 },
      keyNamed: (name, credential, model) => vendors.rings.get(name)?.named(credential, model),
      rest: (credential, model, forMs, reason) =>
        vendors.ringOfCredential.get(credential)?.rest(credential, model, forMs, reason),
    };
    host.provide(providers, service);
    return {
      notices: () => vendors.notices,
      prepare(changed) {
        const next = vendorsOf(changed, host, vendors);
        return () => {
          vendors = next;
        };
      },
    };
  },
});

interface Vendors {
  readonly known: ReadonlyMap<string, Provider>;
  readonly rings: ReadonlyMap<string, KeyRing>;
  readonly ringOfCredential: ReadonlyMap<string, KeyRing>;
  readonly notices: readonly Notice[];
}

/** `earlier`: those whose place they take. */
function vendorsOf(config: ProvidersConfig, host: Host, earlier?: Vendors): Vendors {
  const known = new Map<string, Provider>();
  const rings = new Map<string, KeyRing>();
  const ringOfCredential = new Map<string, KeyRing>();
  const notices: Notice[] = [];
  for (const [name, section] of Object.entries(config)) {
    if (section.keys.length === 0) {
      notices.push({ level: 'warning', text: `provider "${name}" has no key and is left out` });
      continue;
    }
    const before = earlier?.rings.get(name);
    const ring = before?.changed(section.keys) ?? new KeyRing(name, section.keys, host.clock, host.log);
    known.set(name, provider(name, section, host));
    rings.set(name, ring);
    for (const credential of ring.credentials) ringOfCredential.set(credential, ring);
  }
  return { known, rings, ringOfCredential, notices };
}

function provider(name: string, section: ProviderConfig, host: Host): Provider {
  const speaks = resolvingMap(section.speaks, () => host.find(localUpstreams));
  const traits = traitsOf(section);
  const { auth, dialect } = section;
  if (auth === undefined || isOneAuth(auth)) return { name, speaks, dialect, traits: { ...traits, auth } };
  const protocolTraits: Record<string, UpstreamTraits> = Object.create(null);
  for (const [protocol, own] of Object.entries(auth)) protocolTraits[protocol] = { ...traits, auth: own };
  return { name, speaks, dialect, traits, protocolTraits };
}

function traitsOf(section: ProviderConfig): UpstreamTraits {
  const { drain } = section;
  const headers = Object.entries(section.headers).map(([header, value]) => [header.toLowerCase(), value] as const);
  return {
    auth: undefined,
    headers: Object.fromEntries(headers),
    dropFields: section.drop_fields,
    streamUsageOption: section.stream_usage,
    connectTimeoutMs: section.timeouts.connect,
    firstByteTimeoutMs: section.timeouts.first_byte,
    idleTimeoutMs: section.timeouts.idle,
    ...(section.client_left === 'abort' ? {} : { drain: { longestMs: drain.longest, maxBytes: drain.bytes } }),
  };
}

/** `{ header, value }` for all protocols, as against one of these for each protocol. */
function isOneAuth(auth: NonNullable<ProviderConfig['auth']>): auth is { header: string; value: string } {
  return typeof auth['header'] === 'string';
}
