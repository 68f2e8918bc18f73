/** The database service of one gateway: a connection, its schema, migrations, announcements and health. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/pg-proxy';
import type { Host } from '../../core/contract/contract.ts';
import { markPassing } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { Outage } from '../../core/contract/outage.ts';
import type { Database, Orm } from '../common/domain/database.ts';
import { Changes, heardPollIntervalMs, pollIntervalMs, pruneIntervalMs } from './changes.ts';
import { type Connection, type ConnectOptions, connect, describeUrl } from './connect.ts';
import { refuseDevelopment } from './development.ts';
import { distribute } from './distribute.ts';
import { useEmbedded } from './embedded/keeper.ts';
import { readOwner } from './embedded/lock.ts';
import { Health } from './health.ts';
import { channelOf, Listener } from './listener.ts';
import { migrate, prepareSchema } from './migrate.ts';
import { Replica, replicaLookMs } from './replica.ts';
import { StartWait, type StartWaitOptions } from './start-wait.ts';
import { warmUpThread } from './thread.ts';
import { missingTls } from './tls.ts';
import { filledTable } from './transfer/tables.ts';

/** A poll of a Postgres server that gets no answer for so long is repeated on a new connection. */
const pollDeadlineMs = 3_000;
const listenIntervalMs = 1_000;
const defaultStartTimeoutMs = 60_000;

export interface DatabaseOptions {
  /** `embedded` or a `postgres://` URL. */
  readonly database: string;
  readonly maxConnections: number;
  /** How long a gateway that starts waits for the first answer; commands do not wait for a database that is down. */
  readonly startTimeoutMs?: number;
  /** An empty server is meant, though the data directory has an embedded database. */
  readonly mayBeEmpty?: boolean;
  readonly bridgeMs?: number;
  /** Tables are distributed over servers, after the migrations of each plugin. */
  readonly isDistributed?: boolean;
  /** A server that follows this one, and how far behind it may be for pages and exports. */
  readonly replica?: { readonly url: string; readonly lagMs: number } | undefined;
  /** Wakes the other processes' readers of changes beside the database's own notifications. */
  readonly notifier?: ChangeNotifier | undefined;
}

interface ChangeNotifier {
  publish(channel: string): void;
  subscribe(channel: string, listener: () => void): void;
}

export interface OpenedDatabase extends Database {
  /** Runs work on a connection without a time limit for statements. */
  patiently<T>(work: (orm: Orm) => Promise<T>): Promise<T>;
  /** Makes the tables of a schema of this or another gateway by these migrations, as far as the program has them. */
  makeTables(schema: string, migrations: readonly { readonly plugin: string }[]): Promise<void>;
  /** Set for commands: the database had no rows of the gateway, as a sentence. */
  readonly emptiness: string | undefined;
  /** Who else uses the database: a gateway that runs on it. */
  userBeside(): Promise<string | undefined>;
  /** Notifications that have reached this process so far. */
  notices(): number;
  close(): Promise<void>;
}

/** Connects, makes what the schema lacks, and begins to listen to changes while serving. */
export async function openDatabase(host: Host, options: DatabaseOptions): Promise<OpenedDatabase> {
  const { schema } = host;
  const outage = outageOfDatabase(host);
  const source = await openSource(host, options, outage);
  const { orm } = source.connection;
  const waiting = waitFor(source, host, options);
  const channel = channelOf(schema);
  const reader = source.reader ?? source.connection;
  const changes = new Changes({ orm, reader: reader.orm, schema, channel, clock: host.clock, log: host.log });
  const tools = tableTools(source.options, schema, waiting, options.isDistributed === true);
  let emptiness: string | undefined;
  try {
    emptiness = await waiting.run(() => emptinessOf(host, orm, source, options.mayBeEmpty === true));
    await waiting.run(() => refuseDevelopment(orm, schema));
    await waiting.run(() => prepareSchema(orm, schema));
    await tools.migrate('storage', new URL('./migrations/', import.meta.url));
    await waiting.run(() => changes.begin());
  } catch (error) {
    await source.close(0);
    throw error;
  }
  const replica = replicaOf(host, source, options);
  const health = new Health(host, {
    outage,
    work: () => changes.poll(),
    recovered: () => source.connection.renew(pollDeadlineMs),
  });
  const [poll, notify] = [() => void health.poll(), () => changes.wake()];
  const listener = new Listener({ driver: source.options, channel, onNotice: poll, notify, log: host.log, outage });
  host.every(pollIntervalMs, 'poll for changes', regularPoll(host.clock, { changes, health, listener }));
  options.notifier?.subscribe(channel, poll);
  host.every(listenIntervalMs, 'listen to changes', () => listener.listen());
  host.every(pruneIntervalMs, 'prune changes', () => changes.prune());
  return {
    orm,
    schema,
    ...tools,
    emptiness,
    userBeside: () => source.userBeside(),
    notices: () => listener.notices,
    announce: async (topic, subject) => {
      await changes.announce(topic, subject);
      options.notifier?.publish(channel);
    },
    change: async (topic, subject, work) => {
      const result = await changes.change(topic, subject, work);
      options.notifier?.publish(channel);
      return result;
    },
    onChange: (topic, listener) => changes.onChange(topic, listener),
    ...traitsOf(source, options, replica),
    healthy: () => source.alive() && health.isGood(),
    awayMs: () => outage.lastsMs ?? 0,
    close: async () => {
      await Promise.all([listener.close(), replica?.close()]);
      await source.close();
    },
  };
}

/** Commands read the database itself: what they say must be of now. */
function replicaOf(host: Host, source: Source, { replica, maxConnections }: DatabaseOptions) {
  if (replica === undefined || !source.shared || host.mode !== 'serve') return undefined;
  const name = describeUrl(replica.url);
  const { clock, log } = host;
  const opened = new Replica({
    name,
    primary: source.connection.orm,
    replica: connect({ ...source.options, target: { url: replica.url }, maxConnections }),
    lagMs: replica.lagMs,
    clock,
    log,
  });
  host.every(replicaLookMs, 'look how far behind the replica is', () => opened.look());
  return opened;
}

type Traits = Pick<Database, 'makesParameters' | 'shared' | 'bridgeMs' | 'onCopy' | 'pages' | 'replica'>;

function traitsOf({ shared, onCopy }: Source, { bridgeMs = 0 }: DatabaseOptions, replica: Replica | undefined): Traits {
  return {
    makesParameters: true,
    shared,
    bridgeMs: shared ? bridgeMs : 0,
    ...(onCopy === undefined ? {} : { onCopy }),
    ...(replica === undefined ? {} : { pages: replica.orm, replica: () => replica.state }),
  };
}

function outageOfDatabase({ clock, log }: Host): Outage {
  const [began, over] = ['the database does not answer', 'the database answers again'];
  return new Outage({ clock, log, began, over, fields: { store: 'database' } });
}

/** A remark for a person before a command: it may have been given another address or directory than the gateway. Throws at a start. */
async function emptinessOf(host: Host, orm: Orm, source: Source, mayBe: boolean): Promise<string | undefined> {
  const { directory, gateway, schema } = host;
  const { name, shared } = source;
  const hasEmbedded = shared && existsSync(join(directory, 'postgres', 'PG_VERSION'));
  // A start is refused: someone may only have set the address of a server, and accounts and balances would seem to be gone.
  if (host.mode !== 'command' && (mayBe || !hasEmbedded)) return undefined;
  if ((await filledTable(orm, schema)) !== undefined) return undefined;
  if (host.mode !== 'command')
    throw new Error(
      `The database ${name} has no rows of this gateway, but ${directory} holds an embedded database. Bring it there: run "gateway storage export FILE" with storage.database (DATABASE_URL) as before, then "gateway storage import FILE" as it is now. To begin with nothing, set storage.start_empty: true.`,
    );
  const sentence = `The database ${name} has no rows of the gateway "${gateway}" (schema ${schema})`;
  if (hasEmbedded)
    return `${sentence}; the embedded database in ${directory} is not used, since storage.database (DATABASE_URL) names this one.`;
  if (existsSync(join(directory, 'journal', schema)))
    return `${sentence}, although ${directory} has a journal of it: check storage.database (DATABASE_URL) and DATA_DIR.`;
  return `${sentence} yet.`;
}

type TableTools = Pick<OpenedDatabase, 'patiently' | 'migrate' | 'makeTables'>;

/** By connections of their own: a migration may take longer than a statement is let. */
function tableTools(options: ConnectOptions, schema: string, waiting: StartWait, isDistributed: boolean): TableTools {
  const directories = new Map<string, URL>();
  const patiently = <T>(work: (orm: Orm) => Promise<T>) => {
    const patient = connect({ ...options, maxConnections: 1, patient: true, threaded: false });
    return work(patient.orm).finally(() => patient.close());
  };
  return {
    patiently,
    migrate: async (plugin, directory) => {
      directories.set(plugin, directory);
      await waiting.run((answered) =>
        patiently(async (orm) => {
          await migrate(orm, schema, plugin, directory, (name) => answered(`the migration ${name} runs`));
          if (isDistributed) await distribute(orm, schema);
        }),
      );
    },
    // Tables of plugins that are neither in this gateway's list nor of the program stay away.
    makeTables: (name, migrations) =>
      patiently(async (orm) => {
        await prepareSchema(orm, name);
        for (const plugin of new Set(migrations.map((each) => each.plugin))) {
          const directory = directories.get(plugin) ?? new URL(`../${plugin}/migrations/`, import.meta.url);
          if (existsSync(directory)) await migrate(orm, name, plugin, directory);
        }
      }),
  };
}

/** Polls each time it is called; seldom while notifications arrive and the database is well. */
function regularPoll(
  clock: Clock,
  { changes, health, listener }: { readonly changes: Changes; readonly health: Health; readonly listener: Listener },
): () => Promise<void> | undefined {
  let polledAt = Number.NEGATIVE_INFINITY;
  return () => {
    const isSeldom = listener.hears && health.isGood();
    if (isSeldom && clock.monotonic() - polledAt < heardPollIntervalMs - pollIntervalMs / 2) return undefined;
    polledAt = clock.monotonic();
    const { notices } = listener;
    const { found } = changes;
    return health.poll().then(() => {
      if (changes.found > found && listener.notices === notices) listener.doubt();
    });
  };
}

/** The database of a dry run: opens nothing; every statement fails. */
export function closedDatabase(schema: string, shared: boolean): Database {
  const orm = drizzle(async () => {
    throw new Error('A dry run opens no database.');
  });
  return {
    orm: orm as unknown as Orm,
    schema,
    shared,
    migrate: async () => undefined,
    announce: async () => undefined,
    change: (_topic, _subject, work) => work(orm as unknown as Orm),
    onChange: () => undefined,
    healthy: () => true,
  };
}

function startLimit(host: Host, { startTimeoutMs = defaultStartTimeoutMs }: DatabaseOptions): number {
  return host.mode === 'serve' ? startTimeoutMs : 0;
}

function waitFor({ waits, name }: Source, host: Host, options: DatabaseOptions): StartWait {
  return new StartWait({ ...waits, name, limitMs: startLimit(host, options), log: host.log });
}

interface Source {
  /** Name in logs and errors. */
  readonly name: string;
  readonly options: ConnectOptions;
  readonly connection: Connection;
  /** A connection of its own for polls: in an outage all others may be taken by statements that get no answer. */
  readonly reader?: Connection;
  readonly onCopy?: NonNullable<Database['onCopy']>;
  readonly waits?: Pick<StartWaitOptions, 'check'>;
  /** Other processes may serve from it too. */
  readonly shared: boolean;
  alive(): boolean;
  userBeside(): Promise<string | undefined>;
  /** 0: what still runs has had its time. */
  close(withinSeconds?: number): Promise<void>;
}

async function openSource(host: Host, options: DatabaseOptions, outage: Outage): Promise<Source> {
  const { database, maxConnections, startTimeoutMs = defaultStartTimeoutMs } = options;
  const threaded = host.mode === 'serve';
  const applicationName = `model-gateway ${host.mode === 'serve' ? '' : 'command '}${host.gateway}`;
  const common = {
    maxConnections,
    applicationName,
    threaded,
    outage,
    ...(threaded ? {} : { openDeadlineMs: startTimeoutMs }),
  };
  if (database !== 'embedded') {
    const name = describeUrl(database);
    const options = { ...common, target: { url: database } };
    // The connection for polls is one of those that the pool may have.
    const connection = connect({
      ...options,
      maxConnections: threaded ? Math.max(1, maxConnections - 1) : maxConnections,
    });
    host.log.info({ database: name, schema: host.schema }, 'using a Postgres server');
    const polling = { ...options, maxConnections: 1, deadlineMs: pollDeadlineMs, openDeadlineMs: pollDeadlineMs };
    const reader = threaded ? connect(polling) : undefined;
    return {
      name,
      options,
      connection,
      ...(reader === undefined ? {} : { reader }),
      waits: { check: () => missingTls(database, name) },
      shared: true,
      alive: () => true,
      userBeside: () => gatewayBeside(connection.orm),
      async close(withinSeconds) {
        await Promise.all([reader?.close(withinSeconds), connection.close(withinSeconds)]);
      },
    };
  }
  const mode = host.mode === 'serve' ? 'serve' : 'command';
  if (threaded) warmUpThread();
  const embedded = await useEmbedded(host.directory, mode, host.log, undefined, host.schema);
  embedded.onFailure((reason) => outage.failed(markPassing(reason)));
  const target = { ...common, target: { socketPath: embedded.address } };
  const connection = connect(target);
  host.log.info({ directory: host.directory, schema: host.schema }, 'using the embedded database');
  return {
    name: `in ${host.directory}`,
    options: target,
    connection,
    onCopy: embedded.onCopy,
    shared: false,
    alive: () => embedded.alive(),
    userBeside: async () => {
      const owner = readOwner(host.directory);
      return owner === undefined || owner.gatewayPid === process.pid ? undefined : `process ${owner.gatewayPid}`;
    },
    async close(withinSeconds) {
      await connection.close(withinSeconds);
      await embedded.release();
    },
  };
}

async function gatewayBeside(orm: Orm): Promise<string | undefined> {
  const rows = (await orm.execute(
    sql`select application_name as name from pg_catalog.pg_stat_activity where datname = current_database()
          and application_name like 'model-gateway %' and application_name not like 'model-gateway command %' limit 1`,
  )) as unknown as { name: string }[];
  return rows[0] && `the gateway ${rows[0].name.replace('model-gateway ', '')}`;
}
