/** Opens the stored secrets of a gateway: of its database, or for `check` the names that it has written. */
import { configFiles } from '../../../core/contract/config-files.ts';
import type { Command, Host } from '../../../core/contract/contract.ts';
import type { RotatedSecret, SecretSource } from '../../../core/contract/secret.ts';
import { vendorSecrets } from '../../common/domain/admin/vendor-secrets.ts';
import type { Database } from '../../common/domain/database.ts';
import { KeySource } from '../../common/kit/secrets/key-source.ts';
import { howToOpen } from '../../common/kit/secrets/sealing.ts';
import type { ProvidersConfig } from '../config.ts';
import { secretCommands } from './commands.ts';
import { readNames } from './names-file.ts';
import { namesAny, storedSource } from './reference-text.ts';
import type { SecretLookup } from './references.ts';
import { lookupByNames, lookupIn, NamesWriter, namesOf, openVendorSecrets, rotatedSecrets } from './service.ts';
import { SecretStore } from './store.ts';

const rereadMs = 60_000;
const overlapsMs = 1_000;

export interface Secrets {
  readonly lookup: SecretLookup;
  readonly commands: readonly Command[];
  /** For the settings of other plugins. */
  readonly source: SecretSource;
  rotated(): readonly RotatedSecret[];
  /** How many names cannot be decrypted, for `/readyz`. */
  refuses(): Readonly<Record<string, string>>;
}

interface Uses {
  readonly config: () => ProvidersConfig;
  /** Called when other texts are to be used. */
  readonly changed: () => void;
  readonly hasWorked: (name: string, text: string) => boolean;
}

export async function openSecrets(host: Host, database: Database | undefined, uses: Uses): Promise<Secrets> {
  const source = new KeySource({ directory: host.commonDirectory, environment: process.env, random: host.random });
  if (host.mode === 'check' || database === undefined) {
    source.read();
    const lookup =
      host.mode === 'check' ? lookupByNames(readNames(host.commonDirectory, host.schema)) : lookupByNames(new Map());
    const closed = openVendorSecrets({ lookup, config: uses.config, texts: () => [] });
    host.provide(vendorSecrets, closed);
    return {
      lookup,
      commands: secretCommands(closed),
      source: sourceOf(lookup),
      rotated: () => [],
      refuses: () => ({}),
    };
  }
  const names = new NamesWriter(host.commonDirectory, host.schema);
  const named = new Set<() => void>();
  const write = () => {
    try {
      names.write(namesOf(store));
    } catch (error) {
      host.log.warn({ error }, 'the names of the stored secrets could not be written for "check"');
    }
  };
  const store: SecretStore = new SecretStore({
    ...uses,
    database,
    source,
    clock: host.clock,
    random: host.random,
    log: host.log,
    changed: () => {
      write();
      uses.changed();
      for (const changed of named) changed();
    },
  });
  await store.load();
  write();
  host.every(rereadMs, 'read the keys of vendors', () => store.refresh());
  host.every(overlapsMs, 'end the use of replaced keys of vendors', () => store.endOverlaps());
  const lookup = lookupIn(store);
  const texts = () => host.find(configFiles)?.running() ?? [];
  const service = openVendorSecrets({ store, lookup, config: uses.config, texts });
  host.provide(vendorSecrets, service);
  return {
    lookup,
    commands: secretCommands(service),
    source: sourceOf(lookup, (changed) => {
      // Most gateways name none outside of their vendors, which take a change up by themselves.
      const look = () => texts().some(({ text }) => namesAny(text)) && changed();
      named.add(look);
      return () => named.delete(look);
    }),
    rotated: () => rotatedSecrets(store, () => source.read().length),
    refuses() {
      const lost = service.list().filter(({ state }) => state === 'unreadable').length;
      return lost === 0 ? {} : { 'vendor secrets': `${lost} cannot be decrypted: ${howToOpen}` };
    },
  };
}

function sourceOf({ texts, state, isUnknown }: SecretLookup, watch?: SecretSource['watch']): SecretSource {
  return {
    name: storedSource,
    async read(name) {
      if (isUnknown === true) return `${storedSource}:${name}`;
      if (state(name) === 'unreadable') throw new Error(`it cannot be decrypted: ${howToOpen}`);
      const [newest] = texts(name);
      return newest;
    },
    ...(watch === undefined ? {} : { watch }),
  };
}
