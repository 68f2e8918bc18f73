/** What the section makes of each vendor: its face to other plugins, its ring of keys, its gate; and anew when it changes. */
import type { Host, Notice } from '../../core/contract.ts';
import { localUpstreams, type Provider, type UpstreamTraits } from '../../core/vocabulary.ts';
import { resolvingMap } from './addresses.ts';
import type { ProviderConfig, ProvidersConfig } from './config.ts';
import { type Alarm, Gate, type GateRules } from './gate.ts';
import { KeyRing } from './keys.ts';

export interface Vendors {
  readonly known: ReadonlyMap<string, Provider>;
  readonly rings: ReadonlyMap<string, KeyRing>;
  /** Of those that take only so many requests at once. */
  readonly gates: ReadonlyMap<string, Gate>;
  /** Of vendors that are gone: should one come back, its new keys get names that its old ones did not have. */
  readonly retired: ReadonlyMap<string, KeyRing>;
  readonly ringOfCredential: ReadonlyMap<string, KeyRing>;
  readonly notices: readonly Notice[];
}

/** `earlier`: those whose place they take. Their keys' rests, places and queues go on; nothing of them is changed yet. */
export function vendorsOf(config: ProvidersConfig, host: Host, earlier?: Vendors): Vendors {
  const known = new Map<string, Provider>();
  const rings = new Map<string, KeyRing>();
  const gates = new Map<string, Gate>();
  const ringOfCredential = new Map<string, KeyRing>();
  const retired = new Map([...(earlier?.retired ?? []), ...(earlier?.rings ?? [])]);
  const notices: Notice[] = [];
  for (const [name, section] of Object.entries(config)) {
    if (section.keys.length === 0) {
      notices.push({ level: 'warning', text: `provider "${name}" has no key and is left out` });
      continue;
    }
    const ring = retired.get(name)?.changed(section.keys) ?? new KeyRing(name, section.keys, host.clock, host.log);
    retired.delete(name);
    const rules = gateRules(section);
    // One that stays keeps its places and who waits; its new rules hold from the commit on.
    const gate = rules && (earlier?.gates.get(name) ?? new Gate(rules, host.clock, alarm));
    if (gate !== undefined) gates.set(name, gate);
    known.set(name, { ...provider(name, section, host), keyCount: section.keys.length, gate });
    rings.set(name, ring);
    for (const credential of ring.credentials) ringOfCredential.set(credential, ring);
  }
  return { known, rings, gates, retired, ringOfCredential, notices };
}

/** When `next` takes the place of `earlier`: new bounds hold at once, and where none is set any more nobody waits on. */
export function moveGates(earlier: Vendors, next: Vendors, config: ProvidersConfig): void {
  for (const [name, gate] of next.gates) gate.change(gateRules(config[name]!)!);
  for (const [name, gate] of earlier.gates) if (!next.gates.has(name)) gate.open();
}

const alarm: Alarm = (afterMs, work) => {
  const timer = setTimeout(work, afterMs).unref();
  return () => clearTimeout(timer);
};

function gateRules({ concurrency, queue }: ProviderConfig): GateRules | undefined {
  return concurrency === undefined ? undefined : { limit: concurrency, queue: queue.length, waitMs: queue.wait };
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
