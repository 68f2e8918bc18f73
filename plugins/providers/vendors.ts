/** Builds the providers of a configuration: service entries, key rings and gates; and rebuilds them when it changes. */
import type { Host, Notice } from '../../core/contract/contract.ts';
import type { UpstreamNetwork } from '../../core/contract/exchange.ts';
import { networkOf } from '../../core/tools/network-config.ts';
import { localUpstreams, type Provider, type UpstreamTraits } from '../common/domain/upstreams.ts';
import { parseLocal, resolvingMap } from './addresses.ts';
import { isOneAuth, type ProviderConfig, type ProvidersConfig } from './config.ts';
import type { Schemes, WrittenAuth } from './credentials.ts';
import { type Alarm, Gate, type GateRules } from './gate.ts';
import { KeyRing } from './keys.ts';
import { filledIn, namesIn, type SecretLookup, secretNotices } from './secrets/references.ts';

export interface Vendors {
  readonly known: ReadonlyMap<string, Provider>;
  readonly rings: ReadonlyMap<string, KeyRing>;
  /** Gates of providers with a concurrency limit. */
  readonly gates: ReadonlyMap<string, Gate>;
  /** Keys of removed providers: if one returns, its new keys get numbers that the old ones did not have. */
  readonly retired: ReadonlyMap<string, KeyRing>;
  readonly ringOfCredential: ReadonlyMap<string, KeyRing>;
  readonly notices: readonly Notice[];
}

/** `earlier`: the state that this one replaces. Cooldowns, slots and queues carry over; nothing of it changes yet. */
export function vendorsOf(
  config: ProvidersConfig,
  host: Host,
  schemes: Schemes,
  lookup: SecretLookup,
  earlier?: Vendors,
): Vendors {
  const known = new Map<string, Provider>();
  const rings = new Map<string, KeyRing>();
  const gates = new Map<string, Gate>();
  const ringOfCredential = new Map<string, KeyRing>();
  const retired = new Map([...(earlier?.retired ?? []), ...(earlier?.rings ?? [])]);
  const keyless: Keyless[] = [];
  for (const [name, written] of Object.entries(config)) {
    const section = filledIn(written, lookup);
    if (section.keys.length === 0) {
      keyless.push({ name, missing: namesIn(written), isOptional: section.optional });
      continue;
    }
    const networks = networksOf(section);
    const ring =
      retired.get(name)?.withKeys(section.keys, networks) ??
      new KeyRing(name, section.keys, host.clock, host.log, undefined, networks);
    retired.delete(name);
    const rules = gateRules(section);
    // A gate that stays keeps its slots and queue; new rules apply at the commit.
    const gate = rules && (earlier?.gates.get(name) ?? new Gate(rules, host.clock, alarm));
    if (gate !== undefined) gates.set(name, gate);
    known.set(name, { ...providerOf(name, section, host, schemes), keyCount: section.keys.length, gate });
    rings.set(name, ring);
    for (const credential of ring.credentials) ringOfCredential.set(credential, ring);
  }
  return {
    known,
    rings,
    gates,
    retired,
    ringOfCredential,
    notices: [...withoutKey(keyless, lookup), ...secretNotices(config, lookup)],
  };
}

/** By the place of the key; undefined: every key reaches the vendor directly. */
export function networksOf(
  section: Pick<ProviderConfig, 'proxy' | 'tls' | 'addresses' | 'keyProxies'>,
): readonly (UpstreamNetwork | undefined)[] | undefined {
  const { proxy, tls, addresses: family, keyProxies } = section;
  const common = networkOf({ proxy, tls, family });
  const networks = keyProxies.map((own) => (own === undefined ? common : networkOf({ proxy: own, tls, family })));
  return networks.some((network) => network !== undefined) ? networks : undefined;
}

interface Keyless {
  readonly name: string;
  /** Secrets that its settings refer to. */
  readonly missing: readonly string[];
  readonly isOptional: boolean;
}

function withoutKey(providers: readonly Keyless[], { state }: SecretLookup): Notice[] {
  // What cannot be decrypted is said by itself.
  const found = providers.filter(({ missing, isOptional }) =>
    missing.length === 0 ? !isOptional : missing.every((name) => state(name) !== 'unreadable'),
  );
  const [first, ...others] = found;
  if (first === undefined) return [];
  const missing = found.flatMap((one) => one.missing.filter((name) => state(name) === 'missing'));
  const how = `"gateway providers secret set ${missing.length === 1 ? missing[0] : 'NAME'}" stores it`;
  const text =
    others.length === 0
      ? `provider "${first.name}" has no key and is left out${missing.length === 0 ? '' : `: ${how}`}`
      : `providers without a key are left out: ${found.map(({ name }) => name).join(', ')}${missing.length === 0 ? '' : `; ${how}, where one is named by secret:NAME`}`;
  return [{ level: 'warning', text, path: [first.name, 'keys'] }];
}

/** Replaces `earlier` by `next`: new limits apply at once, and gates without a limit admit all waiting requests. */
export function moveGates(earlier: Vendors, next: Vendors, config: ProvidersConfig): void {
  for (const [name, gate] of next.gates) gate.change(gateRules(config[name]!)!);
  for (const [name, gate] of earlier.gates) if (!next.gates.has(name)) gate.removeLimit();
}

/** Connections to all providers at once, where one address with one key has at most `perPool`. */
export function mostConnections(config: ProvidersConfig, perPool: number): number {
  return Object.values(config).reduce((sum, { speaks, keys, concurrency = Number.POSITIVE_INFINITY }) => {
    const origins = new Set(Object.values(speaks).map((url) => parseLocal(url)?.name ?? new URL(url).origin));
    return sum + Math.min(concurrency, origins.size * keys.length * perPool);
  }, 0);
}

const alarm: Alarm = (afterMs, work) => {
  const timer = setTimeout(work, afterMs).unref();
  return () => clearTimeout(timer);
};

function gateRules({ concurrency, queue }: ProviderConfig): GateRules | undefined {
  return concurrency === undefined ? undefined : { limit: concurrency, queue: queue.length, waitMs: queue.wait };
}

export function providerOf(name: string, section: ProviderConfig, host: Host, schemes: Schemes): Provider {
  const speaks = resolvingMap(section.speaks, () => host.find(localUpstreams));
  const traits = traitsOf(section);
  const { auth, dialect, models_url: modelsUrl } = section;
  const isRemote = Object.values(section.speaks).every((url) => url.startsWith('https:'));
  const common = {
    ...{ name, speaks, dialect, modelsUrl, regions: section.regions },
    ...(isRemote ? { vendor: section.preset ?? name } : {}),
    ...(section.zdr ? { zdr: true as const } : {}),
  };
  if (auth === undefined) return { ...common, traits };
  if (isOneAuth(auth)) return { ...common, traits: authorizedBy(schemes, auth, traits) };
  const protocolTraits: Record<string, UpstreamTraits> = Object.create(null);
  for (const [protocol, own] of Object.entries(auth)) protocolTraits[protocol] = authorizedBy(schemes, own, traits);
  return { ...common, traits, protocolTraits };
}

function traitsOf(section: ProviderConfig): UpstreamTraits {
  const { drain } = section;
  return {
    auth: undefined,
    headers: section.headers,
    dropFields: section.drop_fields,
    streamUsageOption: section.stream_usage,
    connectTimeoutMs: section.timeouts.connect,
    firstByteTimeoutMs: section.timeouts.first_byte,
    idleTimeoutMs: section.timeouts.idle,
    ...uncheckedIdsOf(section),
    ...(section.session_key ? { sessionKey: true } : {}),
    ...(section.cache_marks === undefined ? {} : { cacheMarks: section.cache_marks }),
    ...(section.client_left === 'abort'
      ? {}
      : {
          [section.client_left === 'auto' ? 'cheapDrain' : 'drain']: {
            longestMs: drain.longest,
            maxBytes: drain.bytes,
          },
        }),
  };
}

function uncheckedIdsOf({ unknown_ids: unknown, shared_ids: shared }: ProviderConfig): Partial<UpstreamTraits> {
  if (unknown === 'refuse' && shared.length === 0) return {};
  return { uncheckedIds: { all: unknown === 'forward', shared: new Set(shared) } };
}

/** The scheme is looked up at the first call: only then all plugins are set up. */
function authorizedBy(schemes: Schemes, written: WrittenAuth, traits: UpstreamTraits): UpstreamTraits {
  let auth: UpstreamTraits['auth'];
  return {
    ...traits,
    get auth() {
      auth ??= schemes.authOf(written);
      return auth;
    },
  };
}
