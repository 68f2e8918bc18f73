/** Vendors as data: who they are, what they speak, where, and whose turn it is among their keys. */
import { definePlugin, type Host, type Notice } from '../../core/contract.ts';
import { upstreamDesk, upstreamHealth } from '../../core/desk.ts';
import {
  database,
  localUpstreams,
  type Provider,
  type Providers,
  providers,
  type UpstreamTraits,
} from '../../core/vocabulary.ts';
import { resolvingMap } from './addresses.ts';
import { providerCommands } from './commands.ts';
import { type ProviderConfig, type ProvidersConfig, providersSchema } from './config.ts';
import { openDesk } from './desk.ts';
import { type Alarm, Gate, type GateRules } from './gate.ts';
import { KeyRing } from './keys.ts';
import { Switches } from './switches.ts';

const rereadMs = 60_000;

export default definePlugin<ProvidersConfig>({
  name: 'providers',
  config: providersSchema,
  provides: [providers, upstreamDesk],
  uses: [localUpstreams, database, upstreamHealth],
  async setup(host, written) {
    let config = written;
    let vendors = vendorsOf(config, host);
    const service: Providers = {
      find: (name) => vendors.known.get(name),
      list: () => [...vendors.known.values()],
      takeKey: (name, model, except, wish) => vendors.rings.get(name)?.take(model, except, wish) ?? { retryAfterMs: 0 },
      keyNamed: (name, credential, model) => vendors.rings.get(name)?.named(credential, model),
      rest: (credential, model, forMs, reason) =>
        vendors.ringOfCredential.get(credential)?.rest(credential, model, forMs, reason),
      isDisabled: (name) => vendors.rings.get(name)?.isDisabled ?? false,
    };
    host.provide(providers, service);
    const store = host.find(database);
    await store?.migrate('providers', new URL('./migrations/', import.meta.url));
    const switches = new Switches({
      database: store,
      clock: host.clock,
      log: host.log,
      obey: (off) => {
        for (const ring of vendors.rings.values()) ring.obey(off);
      },
      wake: (name) => {
        vendors.rings.get(name)?.wake();
        host.find(upstreamHealth)?.reset(name);
      },
    });
    if (host.mode !== 'check') await switches.load();
    // Should an announcement ever be lost.
    if (store !== undefined) host.every(rereadMs, 'read which upstreams are disabled', () => switches.refresh());
    const desk = openDesk(
      () => ({ config, ...vendors }),
      switches,
      () => host.find(upstreamHealth),
    );
    host.provide(upstreamDesk, desk);
    return {
      notices: () => vendors.notices,
      commands: providerCommands(desk),
      prepare(changed) {
        const next = vendorsOf(changed, host, vendors);
        return () => {
          const closed = [...vendors.gates].filter(([name]) => !next.gates.has(name));
          config = changed;
          vendors = next;
          for (const [name, gate] of next.gates) gate.change(gateRules(changed[name]!)!);
          for (const [, gate] of closed) gate.open();
          switches.again();
        };
      },
    };
  },
});

interface Vendors {
  readonly known: ReadonlyMap<string, Provider>;
  readonly rings: ReadonlyMap<string, KeyRing>;
  /** Of those that take only so many requests at once. */
  readonly gates: ReadonlyMap<string, Gate>;
  /** Of vendors that are gone: should one come back, its new keys get names that its old ones did not have. */
  readonly retired: ReadonlyMap<string, KeyRing>;
  readonly ringOfCredential: ReadonlyMap<string, KeyRing>;
  readonly notices: readonly Notice[];
}

/** `earlier`: those whose place they take. */
function vendorsOf(config: ProvidersConfig, host: Host, earlier?: Vendors): Vendors {
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
