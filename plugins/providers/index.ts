/** Vendors as data: who they are, what they speak, where, and whose turn it is among their keys. */
import { definePlugin } from '../../core/contract.ts';
import { upstreamDesk, upstreamHealth } from '../../core/desk.ts';
import { database, localUpstreams, type Providers, providers } from '../../core/vocabulary.ts';
import { providerCommands } from './commands.ts';
import { type ProvidersConfig, providersSchema } from './config.ts';
import { openDesk } from './desk.ts';
import { Switches } from './switches.ts';
import { moveGates, vendorsOf } from './vendors.ts';

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
          moveGates(vendors, next, changed);
          config = changed;
          vendors = next;
          switches.again();
        };
      },
    };
  },
});
