/** Who calls: an API key to a caller, from memory when it was seen before. Keeps the accounts and their keys. */
import { definePlugin, type Endpoint, type Exchange, type Host, type Next, type Part } from '../../core/contract.ts';
import { accountDesk } from '../../core/desk.ts';
import { count, z } from '../../core/schema.ts';
import {
  accounts,
  caller,
  type Database,
  database,
  endpointMatches,
  ledger,
  plans,
  priceFloor,
} from '../../core/vocabulary.ts';
import { openAccounts } from './accounts.ts';
import { type AdmissionRules, Authenticator } from './authenticator.ts';
import { carriers } from './carriers.ts';
import { accountCommands, keyCommands } from './commands.ts';
import { openDesk } from './desk.ts';
import { type DeskStore, openDeskStore } from './desk-store.ts';
import { LastUsed } from './last-used.ts';
import { loadPepper, unusedPepper } from './pepper.ts';
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
  needs: [database],
  uses: [ledger, plans, priceFloor],
  provides: [accounts, accountDesk],
  writes: [caller],

  setup: (host, settings) => setUpAuth(host, settings),
});

/** Every statement that the plugin runs. */
export interface Stores {
  readonly store: Store;
  readonly desk: DeskStore;
}

const sqlStores = (db: Database): Stores => ({ store: openStore(db), desk: openDeskStore(db) });

/** The plugin's setup with the statements of the caller's choice. */
export async function setUpAuth(
  host: Host,
  settings: Settings,
  storesOf: (db: Database) => Stores = sqlStores,
): Promise<Part<Settings>> {
  const db = host.need(database);
  await db.migrate('auth', new URL('./migrations/', import.meta.url));
  const { store, desk } = storesOf(db);
  const pepper = host.mode === 'check' ? unusedPepper : await loadPepper(store, settings.secret, host.random);
  const { clock, log, random } = host;
  const book = openAccounts({ store, pepper, clock, random });
  host.provide(accounts, book);
  host.provide(accountDesk, openDesk({ store: desk, book, clock, floor: () => host.find(priceFloor) }));

  const lastUsed = new LastUsed(store);
  host.every(flushIntervalMs, 'write when keys were last used', () => lastUsed.flush());
  const authenticator = new Authenticator(
    { ...rulesOf(settings), cacheSize: settings.cache.size },
    { database: db, store, pepper, clock, log, onUse: (keyId, atMs) => lastUsed.note(keyId, atMs) },
  );

  const part: Part<Settings> = {
    applies: closedBut(settings.public),
    async handle(exchange: Exchange, next: Next) {
      const known = authenticator.authenticate(exchange.request);
      // Awaiting a value that is there already would cost the hot path a turn.
      exchange.set(caller, known instanceof Promise ? await known : known);
      return next();
    },

    commands: [...accountCommands(host, book), ...keyCommands(host, book)],
    stop: () => lastUsed.flush(),
    reloads: ['public', 'carriers', 'failures'],
    prepare: (changed) => () => {
      part.applies = closedBut(changed.public);
      authenticator.follow(rulesOf(changed));
    },
  };
  return part;
}

/** Every endpoint asks for a key but those that admit by themselves and those that are open to everybody. */
function closedBut(open: readonly string[]): (endpoint: Endpoint) => boolean {
  return (endpoint) => endpoint.keyless !== true && !open.some((rule) => endpointMatches(rule, endpoint));
}

function rulesOf({ carriers, failures }: Settings): AdmissionRules {
  return { carriers, failuresPerMinute: failures.per_minute };
}
