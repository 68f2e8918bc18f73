/** Authentication: maps an API key to its caller, from memory where possible. Stores accounts and keys. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import {
  bodyOwner,
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type Next,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import type { Random } from '../../core/contract/host-tools.ts';
import { count, z } from '../../core/contract/schema.ts';
import { accounts, type Caller, caller, keyRules, keyring } from '../common/domain/accounts.ts';
import { accountAdmin } from '../common/domain/admin/accounts.ts';
import { type Database, database } from '../common/domain/database.ts';
import { ledger } from '../common/domain/ledger.ts';
import { priceFloor } from '../common/domain/models.ts';
import { plans } from '../common/domain/plans.ts';
import { endpointMatches, unmatchedRules } from '../common/kit/endpoint-rules.ts';
import { openAccountAdmin } from './account-admin.ts';
import { type AccountAdminStore, openAccountAdminStore } from './account-queries.ts';
import { openAccounts } from './accounts.ts';
import { type AdmissionRules, Authenticator } from './authenticator.ts';
import { carriers } from './carriers.ts';
import { accountCommands, keyCommands } from './commands.ts';
import { LastUsed } from './last-used.ts';
import { openStore, type Store } from './store.ts';

const flushIntervalMs = 30_000;
const minSecretLength = 16;

const config = z.strictObject({
  public: z
    .array(z.string().min(1))
    .default([])
    .describe('Endpoints that need no key, as "GET /v1/models" or by operation name; a key sent there is ignored.'),
  carriers: z
    .array(z.enum(carriers))
    .min(1)
    .default([...carriers])
    .describe(
      'Where a request may carry its key: bearer (Authorization), x-api-key, x-goog-api-key, query (?key=). Default: all.',
    ),
  secret: z
    .string()
    .refine(
      (value) => value === '' || value.length >= minSecretLength,
      `must have at least ${minSecretLength} characters`,
    )
    .default('')
    .describe(
      'Secret that keys are hashed with. Empty: made once and kept in the database. It cannot be changed later.',
    ),
  cache: z
    .strictObject({
      size: count()
        .refine((value) => value >= 1 && value <= 1_000_000, 'must be between 1 and 1M')
        .prefault(10_000)
        .describe('Keys that are kept in memory.'),
    })
    .prefault({})
    .describe('Keys that were seen are admitted without asking the database.'),
  failures: z
    .strictObject({
      per_minute: count()
        .refine((value) => value >= 1 && value <= 1_000_000, 'must be between 1 and 1M')
        .prefault(60)
        .describe('Failed attempts a remote address may make in a minute before they are answered with 429.'),
    })
    .prefault({})
    .describe('How guessing keys is slowed down.'),
});

type Settings = z.output<typeof config>;

export default definePlugin<Settings>({
  name: 'auth',
  config,
  services: {
    requires: [database],
    optional: [ledger, plans, priceFloor],
    provides: [accounts, accountAdmin, keyring, keyRules],
  },
  sets: [caller, bodyOwner],

  setup: (host, settings) => setUpAuth(host, settings),
});

/** The plugin's SQL statements. */
export interface Stores {
  readonly store: Store;
  readonly admin: AccountAdminStore;
}

const sqlStores = (db: Database): Stores => ({ store: openStore(db), admin: openAccountAdminStore(db) });

/** The plugin's setup with statements of the caller's choice. */
export async function setUpAuth(
  host: Host,
  settings: Settings,
  storesOf: (db: Database) => Stores = sqlStores,
): Promise<PluginInstance<Settings>> {
  let current = settings;
  const db = host.get(database);
  await db.migrate('auth', new URL('./migrations/', import.meta.url));
  const { store, admin: accountAdminService } = storesOf(db);
  const pepper = host.mode === 'check' ? unusedPepper : await loadPepper(store, settings.secret, host.random);
  const { clock, log, random } = host;
  const accountService = openAccounts({ store, pepper, clock, random });
  host.provide(accounts, accountService);
  host.provide(
    accountAdmin,
    openAccountAdmin({ store: accountAdminService, accountService, clock, floor: () => host.find(priceFloor) }),
  );

  host.provide(keyRules, {
    carriers: () => current.carriers,
    needsKey: (endpoint) => requiresKeyExcept(current.public)(endpoint),
  });

  const lastUsed = new LastUsed(store);
  host.every(flushIntervalMs, 'write when keys were last used', () => lastUsed.flush());
  const authenticator = new Authenticator(
    { ...rulesOf(settings), cacheSize: settings.cache.size },
    { database: db, store, pepper, clock, log, onUse: (keyId, atMs) => lastUsed.note(keyId, atMs) },
  );

  host.provide(keyring, {
    authenticate: (request) => authenticator.authenticate(request),
    callerOf: (keyId, remoteAddress) => authenticator.callerOf(keyId, remoteAddress),
  });

  const instance: PluginInstance<Settings> = {
    applies: requiresKeyExcept(settings.public),
    handle(exchange: Exchange, next: Next) {
      const admit = (identified: Caller) => {
        exchange.set(caller, identified);
        exchange.set(bodyOwner, identified.accountId);
        return next();
      };
      // Only `prepare` of a direct request can have set it.
      const prepared = exchange.find(caller);
      if (prepared !== undefined) return admit(prepared);
      const known = authenticator.authenticate(exchange.request);
      // Awaiting a value that is there already would cost the hot path a turn.
      return known instanceof Promise ? known.then(admit) : admit(known);
    },

    commands: [...accountCommands(host, accountService), ...keyCommands(host, accountService)],
    notices: () => unmatchedRules('auth.public', current.public, host.endpoints()),
    stop: () => lastUsed.flush(),
    reloads: ['public', 'carriers', 'failures'],
    prepare: (changed) => () => {
      current = changed;
      instance.applies = requiresKeyExcept(changed.public);
      authenticator.applyConfig(rulesOf(changed));
    },
  };
  return instance;
}

/** Every endpoint requires a key, except endpoints that authenticate themselves and those that are open. */
function requiresKeyExcept(open: readonly string[]): (endpoint: Endpoint) => boolean {
  return (endpoint) => endpoint.keyless !== true && !open.some((rule) => endpointMatches(rule, endpoint));
}

function rulesOf({ carriers, failures }: Settings): AdmissionRules {
  return { carriers, failuresPerMinute: failures.per_minute };
}

/** For dry runs, which must not use the database and hash no key. */
const unusedPepper = createSecretKey(Buffer.alloc(32));

/**
 * The pepper of this gateway. Throws if `configured` differs from the secret of the stored hashes: every key would be
 * refused, and an error at the start is clearer.
 */
async function loadPepper(store: Store, configured: string, random: Random): Promise<KeyObject> {
  const secret =
    configured !== '' ? configured : await store.getOrSetSetting('pepper', random.bytes(32).toString('base64url'));
  const pepper = createSecretKey(Buffer.from(secret, 'utf8'));
  const fingerprint = createHmac('sha256', pepper).update('fingerprint').digest('base64url');
  if ((await store.getOrSetSetting('pepper fingerprint', fingerprint)) !== fingerprint)
    throw new Error(
      'auth.secret is not the one that the keys in this database were made with; set it back to that one',
    );
  return pepper;
}
