/** Vendors as data: their protocols, base URLs and keys, and the choice of a key for each call. */
import { configFiles } from '../../core/contract/config-files.ts';
import { definePlugin, type Host } from '../../core/contract/contract.ts';
import { secretSources } from '../../core/contract/secret.ts';
import { upstreamAdmin, upstreamHealth } from '../common/domain/admin/upstreams.ts';
import { vendorSecrets } from '../common/domain/admin/vendor-secrets.ts';
import { vendorSetup } from '../common/domain/admin/vendor-setup.ts';
import { database } from '../common/domain/database.ts';
import {
  endpointProtocols,
  localUpstreams,
  mediaProtocols,
  providers,
  sessionProtocols,
  translations,
} from '../common/domain/upstreams.ts';
import { vendorCredentials } from '../common/wire/credentials.ts';
import { providerCommands } from './commands.ts';
import { type ProvidersConfig, providersSchema } from './config.ts';
import { ownSchemes, Schemes } from './credentials.ts';
import { credentialFaults, localFaults, providerFaults, providerWarnings, type Spoken, spokenBy } from './mistakes.ts';
import { RunningVendors } from './running.ts';
import { openSecrets } from './secrets/open.ts';
import { storedSource } from './secrets/reference-text.ts';
import { openVendorSetup } from './setup.ts';
import { Switches } from './switches.ts';
import { openUpstreamAdmin } from './upstream-admin.ts';
import { mostConnections } from './vendors.ts';

const rereadMs = 60_000;

export default definePlugin<ProvidersConfig>({
  name: 'providers',
  config: providersSchema,
  extensionPoints: [vendorCredentials],
  extends: [vendorCredentials, secretSources],
  storedSecrets: { source: storedSource, after: [database] },
  services: {
    optional: [
      ...[configFiles, localUpstreams, database, upstreamHealth, translations],
      ...[mediaProtocols, endpointProtocols, sessionProtocols],
    ],
    provides: [providers, upstreamAdmin, vendorSecrets, vendorSetup],
  },
  async setup(host, written) {
    for (const scheme of ownSchemes) host.extend(vendorCredentials, scheme);
    const schemes = new Schemes(host);
    const store = host.find(database);
    await store?.migrate('providers', new URL('./migrations/', import.meta.url));
    let running: RunningVendors | undefined;
    const secrets = await openSecrets(host, store, {
      config: () => running?.config ?? written,
      changed: () => takeUp(host, running),
      hasWorked: (name, text) => running?.hasAnswered(host.find(upstreamHealth), name, text) ?? false,
    });
    const { lookup } = secrets;
    host.extend(secretSources, secrets.source);
    const vendors = new RunningVendors(written, { host, schemes, lookup, replaced: () => switches.reapply() });
    const rings = () => vendors.vendors.rings;
    const switches = new Switches({
      database: store,
      clock: host.clock,
      log: host.log,
      applyDisabled: (off) => {
        for (const ring of rings().values()) ring.applyDisabled(off);
      },
      clearCooldown: (name) => {
        rings().get(name)?.clearCooldown();
        host.find(upstreamHealth)?.reset(name);
      },
    });
    running = vendors;
    host.provide(providers, vendors.service());
    if (host.mode !== 'check') await switches.load();
    // In case an announcement is lost.
    if (store !== undefined) host.every(rereadMs, 'read which upstreams are disabled', () => switches.refresh());
    const admin = openUpstreamAdmin(
      () => ({ config: vendors.config, ...vendors.vendors }),
      switches,
      () => host.find(upstreamHealth),
    );
    host.provide(upstreamAdmin, admin);
    host.provide(vendorSetup, openVendorSetup({ host, schemes, lookup, running: vendors }));
    return {
      checks: {
        notices: () => [...vendors.vendors.notices, ...providerWarnings(vendors.config, spokenIn(host))],
        problems: () => [...faultsOf(vendors.config, host), ...credentialFaults(vendors.config, schemes.all())],
        upstreamConnections: (perPool) => mostConnections(vendors.config, perPool),
      },
      commandLine: { commands: [...providerCommands(admin), ...secrets.commands], secrets: secrets.rotated },
      health: { refuses: secrets.refuses },
      reload: { prepare: (changed) => vendors.prepare(changed) },
    };
  },
});

/** What depends on which vendors have a key, such as the list of models, is applied again. */
function takeUp(host: Host, running: RunningVendors | undefined): void {
  if (running?.refresh() !== true || host.mode !== 'serve') return;
  host
    .find(configFiles)
    ?.reapply()
    .catch((error: unknown) => host.log.error({ error }, 'the changed keys of vendors could not be applied'));
}

const faultsOf = (config: ProvidersConfig, host: Host) => [
  ...providerFaults(config, spokenIn(host)),
  ...localFaults(config, host.find(localUpstreams)),
];

function spokenIn(host: Host): Spoken {
  const pathsOf = (service: typeof translations | typeof mediaProtocols) => host.find(service)?.paths();
  const [media, endpoints, sessions] = [mediaProtocols, endpointProtocols, sessionProtocols].map(pathsOf);
  return spokenBy(pathsOf(translations), media, endpoints, sessions);
}
