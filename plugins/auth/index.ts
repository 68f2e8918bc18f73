/** Authentication: maps an API key to its caller, from memory where possible. Stores accounts and keys. */
import type { Command } from '../../core/contract/commands.ts';
import {
  bodyOwner,
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type Next,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { count, secretList, z } from '../../core/contract/schema.ts';
import { accounts, type Caller, caller, keyRules, keyring, tagsText } from '../common/domain/accounts.ts';
import { accountAdmin } from '../common/domain/admin/accounts.ts';
import { accountEnds } from '../common/domain/admin/notices.ts';
import { type Database, database } from '../common/domain/database.ts';
import { ledger } from '../common/domain/ledger.ts';
import { priceFloor } from '../common/domain/models.ts';
import { memberAdmin } from '../common/domain/organizations/members.ts';
import { projectAdmin } from '../common/domain/organizations/projects.ts';
import { plans } from '../common/domain/plans.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';
import { endpointMatches, unmatchedRules } from '../common/kit/endpoint-rules.ts';
import { openAccountAdmin } from './account-admin.ts';
import { type AccountAdminStore, openAccountAdminStore } from './account-queries.ts';
import { type AccountService, openAccounts } from './accounts.ts';
import { type AdmissionRules, Authenticator } from './authenticator.ts';
import { carriers } from './carriers.ts';
import { accountCommands, keyCommands } from './commands.ts';
import { openAccountEnds } from './ends.ts';
import { jwtIssuer } from './jwt/config.ts';
import { Tokens } from './jwt/tokens.ts';
import { workloadKeys } from './jwt/workloads.ts';
import { LastUsed } from './last-used.ts';
import { openInvitations, openJoining } from './members/invitations.ts';
import { openMemberStore } from './members/store.ts';
import { changing, loadPeppers, type Peppers, rotatedKeys, unusedPeppers } from './peppers.ts';
import { openProjectAdmin } from './projects/admin.ts';
import { projectCommands } from './projects/commands.ts';
import { openProjectStore } from './projects/store.ts';
import { keepsWhatIsNotKept } from './refusals.ts';
import { openStore, type Store } from './store.ts';

const flushIntervalMs = 30_000;
const rereadMs = 1_000;
const minSecretLength = 16;

const config = z.strictObject({
  public: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Endpoints that need no key, as "GET /v1/models" or by operation name; a key sent there is ignored. List what strangers may see.',
    ),
  carriers: z
    .array(z.enum(carriers))
    .min(1)
    .default([...carriers])
    .describe(
      'Where a request may carry its key: bearer (Authorization), x-api-key, x-goog-api-key, query (?key=). Leave query out when proxies in front log addresses.',
    ),
  secret: secretList(minSecretLength)
    .default([])
    .describe(
      'Secret that keys are hashed with, or a list: the first for new keys, all to find keys; empty: made once and kept in the database. Set it when several hosts share a database, or to keep it apart from the rows.',
    ),
  cache: z
    .strictObject({
      size: count()
        .refine((value) => value >= 1 && value <= 1_000_000, 'must be between 1 and 1M')
        .prefault(10_000)
        .describe('Keys that are kept in memory. Raise it when more keys are used within a minute.'),
    })
    .prefault({})
    .describe('Keys that were seen are admitted without asking the database.'),
  jwt: z
    .array(jwtIssuer)
    .max(50)
    .default([])
    .describe(
      'Issuers with tokens (JWT) that calls may carry where keys are. Name those of your workloads, which then need no key.',
    ),
  failures: z
    .strictObject({
      per_minute: count()
        .refine((value) => value >= 1 && value <= 1_000_000, 'must be between 1 and 1M')
        .prefault(60)
        .describe(
          'Failed attempts a remote address may make in a minute before they are answered with 429. Raise it where many clients share one address.',
        ),
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
    provides: [accounts, accountAdmin, projectAdmin, memberAdmin, accountEnds, keyring, keyRules],
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

function workRegularly(host: Host, lastUsed: LastUsed, authenticator: Authenticator): void {
  host.every(flushIntervalMs, 'write when keys were last used', () => lastUsed.flush());
  host.every(rereadMs, 'read keys of changed accounts', () => authenticator.readChanged());
}

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
  const peppers = host.mode === 'check' ? unusedPeppers : await loadPeppers(store, settings.secret, host);
  const { clock, random } = host;
  const accountService = openAccounts({ store, peppers, clock, random });
  host.provide(accounts, accountService);
  const floor = () => host.find(priceFloor);
  const admin = openAccountAdmin({ store: accountAdminService, accountService, clock, floor });
  host.provide(accountAdmin, admin);
  const commands = [...accountCommands(host, accountService, admin), ...keyCommands(host, accountService)];
  const accountEndsService = openAccountEnds(db, () => clock.now());
  host.provide(accountEnds, accountEndsService);
  provideRules(host, () => current);
  const lastUsed = new LastUsed(store);
  const members = openMemberStore(db, () => new Date(clock.now()));
  const tokens = openTokens(host, settings, { db, store, members });
  const authenticator = openAuthenticator(host, settings, { db, store, peppers, lastUsed, tokens });

  const preparePeppers = changing(peppers, settings.secret, {
    load: (list) => loadPeppers(store, list, host),
    changed: () => authenticator.secretsChanged(),
  });

  workRegularly(host, lastUsed, authenticator);
  host.provide(keyring, {
    authenticate: (request) => authenticator.authenticate(request),
    callerOf: (keyId, remoteAddress, headers) => authenticator.callerOf(keyId, remoteAddress, headers),
  });

  const instance: PluginInstance<Settings> = {
    applies: requiresKeyExcept(settings.public),
    handle: admitting(authenticator),
    logFields,
    commandLine: {
      commands: [...commands, ...provideProjects(host, { db, accountService, members })],
      secrets: () => [rotatedKeys(store, peppers, settings.secret)],
    },
    checks: { notices: () => unmatchedRules('auth.public', current.public, host.endpoints()) },
    lifecycle: { stop: () => lastUsed.flush() },
    reload: {
      members: ['public', 'carriers', 'failures', 'secret', 'jwt'],
      async prepare(changed) {
        const commit = await preparePeppers(changed.secret);
        return () => {
          commit();
          current = changed;
          instance.applies = requiresKeyExcept(changed.public);
          authenticator.applyConfig(rulesOf(changed));
          tokens.applyConfig(changed.jwt);
        };
      },
    },
  };
  return instance;
}

const tagsEvent = defineEvent('auth.tags', (tags: string) => `with the tags ${tags}`);

function logFields(exchange: Exchange): Record<string, string> | undefined {
  const who = exchange.find(caller);
  const tags = who?.tags && { tags: tagsText(who.tags) };
  return who && { account_id: who.accountId, key_id: who.keyId, ...tags };
}

function admitting(authenticator: Authenticator) {
  return function auth(exchange: Exchange, next: Next) {
    const admit = (identified: Caller) => {
      const { keeps } = exchange.endpoint;
      if (keeps !== undefined && identified.retention === 'none') throw keepsWhatIsNotKept(keeps);
      exchange.set(caller, identified);
      if (identified.tags !== undefined)
        recordEvent(exchange, exchange.receivedAt, tagsEvent, [tagsText(identified.tags)]);
      exchange.set(bodyOwner, identified.accountId);
      return next();
    };
    // Only `prepare` of a direct request can have set it.
    const prepared = exchange.find(caller);
    if (prepared !== undefined) return admit(prepared);
    const known = authenticator.authenticate(exchange.request);
    // Awaiting a value that is there already would cost the hot path a turn.
    return known instanceof Promise ? known.then(admit) : admit(known);
  };
}

interface ProjectParts {
  readonly db: Database;
  readonly accountService: AccountService;
  readonly members: Members;
}

/** Members too. Returns the commands of projects. */
function provideProjects(host: Host, { db, accountService, members }: ProjectParts): Command[] {
  const joining = openJoining(db, () => new Date(host.clock.now()));
  host.provide(memberAdmin, { ...members, ...joining, invitations: openInvitations(db, host.clock) });
  const projects = openProjectAdmin(openProjectStore(db), host.clock);
  host.provide(projectAdmin, projects);
  return projectCommands(accountService, projects, members);
}

function provideRules(host: Host, current: () => Settings): void {
  host.provide(keyRules, {
    carriers: () => current().carriers,
    needsKey: (endpoint) => requiresKeyExcept(current().public)(endpoint),
  });
}

type Members = ReturnType<typeof openMemberStore>;

function openTokens(
  host: Host,
  settings: Settings,
  { db, store, members }: { readonly db: Database; readonly store: Store; readonly members: Members },
): Tokens {
  const isMember = async (accountId: string, person: string) => (await members.roleOf(accountId, person)) !== undefined;
  const keyOf = workloadKeys({ database: db, store, clock: host.clock, isMember });
  return new Tokens({ host, size: settings.cache.size, keyOf }, settings.jwt);
}

interface AuthenticatorParts {
  readonly db: Database;
  readonly store: Store;
  readonly peppers: Peppers;
  readonly lastUsed: LastUsed;
  readonly tokens: Tokens;
}

function openAuthenticator(host: Host, settings: Settings, parts: AuthenticatorParts) {
  const { db, store, peppers, lastUsed, tokens } = parts;
  return new Authenticator(
    { ...rulesOf(settings), cacheSize: settings.cache.size },
    {
      database: db,
      store,
      peppers,
      clock: host.clock,
      log: host.log,
      lastUsed,
      tokens,
      onOldHash: (keyId, digest, of) => lastUsed.noteDigest(keyId, { digest, secret: peppers.first, of }),
    },
  );
}

/** Every endpoint requires a key, except endpoints that authenticate themselves and those that are open. */
function requiresKeyExcept(open: readonly string[]): (endpoint: Endpoint) => boolean {
  return (endpoint) => endpoint.keyless !== true && !open.some((rule) => endpointMatches(rule, endpoint));
}

function rulesOf({ carriers, failures }: Settings): AdmissionRules {
  return { carriers, failuresPerMinute: failures.per_minute };
}
