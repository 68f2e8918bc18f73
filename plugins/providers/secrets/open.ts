/** Opens the stored secrets of a gateway: of its database, or for `check` the names that it has written. */
import type { Command, Host } from '../../../core/contract/contract.ts';
import type { RotatedSecret } from '../../../core/contract/secret.ts';
import { vendorSecrets } from '../../common/domain/admin/vendor-secrets.ts';
import type { Database } from '../../common/domain/database.ts';
import type { ProvidersConfig } from '../config.ts';
import { secretCommands } from './commands.ts';
import { KeySource } from './key-source.ts';
import { readNames } from './names-file.ts';
import type { SecretLookup } from './references.ts';
import { howToOpen } from './sealing.ts';
import { lookupByNames, lookupIn, NamesWriter, namesOf, openVendorSecrets, rotatedSecrets } from './service.ts';
import { SecretStore } from './store.ts';

const rereadMs = 60_000;
const overlapsMs = 1_000;

export interface Secrets {
  readonly lookup: SecretLookup;
  readonly commands: readonly Command[];
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
    const names = host.mode === 'check' ? readNames(host.commonDirectory) : new Map<string, boolean>();
    const lookup = lookupByNames(names);
    const closed = openVendorSecrets(undefined, lookup, uses.config);
    host.provide(vendorSecrets, closed);
    return { lookup, commands: secretCommands(closed), rotated: () => [], refuses: () => ({}) };
  }
  const names = new NamesWriter(host.commonDirectory);
  const store: SecretStore = new SecretStore({
    ...uses,
    database,
    source,
    clock: host.clock,
    random: host.random,
    log: host.log,
    changed: () => {
      try {
        names.write(namesOf(store));
      } catch (error) {
        host.log.warn({ error }, 'the names of the stored secrets could not be written for "check"');
      }
      uses.changed();
    },
  });
  await store.load();
  host.every(rereadMs, 'read the keys of vendors', () => store.refresh());
  host.every(overlapsMs, 'end the use of replaced keys of vendors', () => store.endOverlaps());
  const lookup = lookupIn(store);
  const service = openVendorSecrets(store, lookup, uses.config);
  host.provide(vendorSecrets, service);
  return {
    lookup,
    commands: secretCommands(service),
    rotated: () => rotatedSecrets(store, () => source.read().length),
    refuses() {
      const lost = service.list().filter(({ state }) => state === 'unreadable').length;
      return lost === 0 ? {} : { 'vendor secrets': `${lost} cannot be decrypted: ${howToOpen}` };
    },
  };
}
