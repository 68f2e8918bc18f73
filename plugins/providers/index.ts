/** Vendors as data: their protocols, base URLs and keys, and the choice of a key for each call. */
import { definePlugin, type Host } from '../../core/contract/contract.ts';
import { upstreamAdmin, upstreamHealth } from '../common/domain/admin/upstreams.ts';
import { database } from '../common/domain/database.ts';
import {
  endpointProtocols,
  localUpstreams,
  mediaProtocols,
  type Providers,
  providers,
  sessionProtocols,
  translations,
} from '../common/domain/upstreams.ts';
import { vendorCredentials } from '../common/wire/credentials.ts';
import { providerCommands } from './commands.ts';
import { type ProvidersConfig, providersSchema } from './config.ts';
import { ownSchemes, Schemes } from './credentials.ts';
import { credentialFaults, localFaults, providerFaults, providerWarnings, type Spoken, spokenBy } from './mistakes.ts';
import { Switches } from './switches.ts';
import { openUpstreamAdmin } from './upstream-admin.ts';
import { mostConnections, moveGates, vendorsOf } from './vendors.ts';

const rereadMs = 60_000;

export default definePlugin<ProvidersConfig>({
  name: 'providers',
  config: providersSchema,
  extensionPoints: [vendorCredentials],
  extends: [vendorCredentials],
  services: {
    optional: [
      ...[localUpstreams, database, upstreamHealth, translations],
      ...[mediaProtocols, endpointProtocols, sessionProtocols],
    ],
    provides: [providers, upstreamAdmin],
  },
  async setup(host, written) {
    let config = written;
    for (const scheme of ownSchemes) host.extend(vendorCredentials, scheme);
    const schemes = new Schemes(host);
    let vendors = vendorsOf(config, host, schemes);
    const service: Providers = {
      find: (name) => vendors.known.get(name),
      list: () => [...vendors.known.values()],
      configured: () => new Map(Object.entries(config).map(([name, { speaks }]) => [name, Object.keys(speaks)])),
      acquireKey: (name, model, except, preference) =>
        vendors.rings.get(name)?.take(model, except, preference) ?? { retryAfterMs: 0 },
      findKey: (name, credential, model) => vendors.rings.get(name)?.findKey(credential, model),
      coolDown: (credential, model, forMs, reason, about) =>
        vendors.ringOfCredential.get(credential)?.coolDown(credential, model, forMs, reason, about),
      isDisabled: (name) => vendors.rings.get(name)?.isDisabled ?? false,
    };
    host.provide(providers, service);
    const store = host.find(database);
    await store?.migrate('providers', new URL('./migrations/', import.meta.url));
    const switches = new Switches({
      database: store,
      clock: host.clock,
      log: host.log,
      applyDisabled: (off) => {
        for (const ring of vendors.rings.values()) ring.applyDisabled(off);
      },
      clearCooldown: (name) => {
        vendors.rings.get(name)?.clearCooldown();
        host.find(upstreamHealth)?.reset(name);
      },
    });
    if (host.mode !== 'check') await switches.load();
    // In case an announcement is lost.
    if (store !== undefined) host.every(rereadMs, 'read which upstreams are disabled', () => switches.refresh());
    const admin = openUpstreamAdmin(
      () => ({ config, ...vendors }),
      switches,
      () => host.find(upstreamHealth),
    );
    host.provide(upstreamAdmin, admin);
    return {
      checks: {
        notices: () => [...vendors.notices, ...providerWarnings(config, spokenIn(host))],
        problems: () => [...faultsOf(config, host), ...credentialFaults(config, schemes.all())],
        upstreamConnections: (perPool) => mostConnections(config, perPool),
      },
      commandLine: { commands: providerCommands(admin) },
      reload: {
        prepare(changed) {
          const next = vendorsOf(changed, host, schemes, vendors);
          return () => {
            moveGates(vendors, next, changed);
            config = changed;
            vendors = next;
            switches.reapply();
          };
        },
      },
    };
  },
});

const faultsOf = (config: ProvidersConfig, host: Host) => [
  ...providerFaults(config, spokenIn(host)),
  ...localFaults(config, host.find(localUpstreams)),
];

function spokenIn(host: Host): Spoken {
  const pathsOf = (service: typeof translations | typeof mediaProtocols) => host.find(service)?.paths();
  const [media, endpoints, sessions] = [mediaProtocols, endpointProtocols, sessionProtocols].map(pathsOf);
  return spokenBy(pathsOf(translations), media, endpoints, sessions);
}
