/** The database service of one gateway: a connection, its schema, migrations, announcements and health. */
import { drizzle } from 'drizzle-orm/pg-proxy';
import type { Host } from '../../core/contract.ts';
import type { Database, Orm } from '../../core/vocabulary.ts';
import { Changes, pollIntervalMs, pruneIntervalMs } from './changes.ts';
import { type Connection, type ConnectOptions, connect, describeUrl } from './connect.ts';
import { useEmbedded } from './embedded/keeper.ts';
import { channelOf, Listener } from './listener.ts';
import { migrate, prepareSchema } from './migrate.ts';

/** A poll without an answer for so long means that statements hang. */
const stuckAfterMs = 5_000;
const listenIntervalMs = 1_000;

export interface DatabaseOptions {
  /** `embedded` or a `postgres://` URL. */
  readonly database: string;
  readonly maxConnections: number;
  /** Wakes the other processes' readers of changes beside the database's own notifications. */
  readonly bell?: Bell | undefined;
}

export interface Bell {
  publish(channel: string): void;
  subscribe(channel: string, listener: () => void): void;
}

export interface OpenedDatabase extends Database {
  close(): Promise<void>;
}

/** Connects, makes what the schema lacks, and begins to listen to changes while serving. */
export async function openDatabase(host: Host, options: DatabaseOptions): Promise<OpenedDatabase> {
  const { schema } = host;
  const source = await openSource(host, options);
  const { orm } = source.connection;
  const channel = source.shared ? channelOf(schema) : undefined;
  const changes = new Changes({ orm, schema, channel, clock: host.clock, log: host.log });
  /** By a connection of its own: a migration may take longer than a statement is let. */
  const migratePlugin = async (plugin: string, directory: URL) => {
    const patient = connect({ ...source.options, maxConnections: 1, patient: true, threaded: false });
    await migrate(patient.orm, schema, plugin, directory).finally(() => patient.close());
  };
  try {
    await prepareSchema(orm, schema);
    await migratePlugin('storage', new URL('./migrations/', import.meta.url));
    await changes.begin();
  } catch (error) {
    await source.close();
    throw error;
  }
  const health = new Health(host, () => changes.poll());
  const poll = () => health.poll();
  const listener =
    channel === undefined || host.mode !== 'serve' ? undefined : new Listener(source.options, channel, poll, host.log);
  host.every(pollIntervalMs, 'poll for changes', poll);
  const { bell } = options;
  bell?.subscribe(channelOf(schema), () => void poll());
  if (listener !== undefined) host.every(listenIntervalMs, 'listen to changes', () => listener.listen());
  host.every(pruneIntervalMs, 'prune changes', () => changes.prune());
  return {
    orm,
    schema,
    migrate: migratePlugin,
    announce: async (topic, subject) => {
      await changes.announce(topic, subject);
      bell?.publish(channelOf(schema));
    },
    change: async (topic, subject, work) => {
      const result = await changes.change(topic, subject, work);
      bell?.publish(channelOf(schema));
      return result;
    },
    onChange: (topic, listener) => changes.onChange(topic, listener),
    shared: source.shared,
    healthy: () => source.alive() && health.isGood(),
    ...(source.onCopy === undefined ? {} : { onCopy: source.onCopy }),
    close: async () => {
      await listener?.close();
      await source.close();
    },
  };
}

/** For a dry run: nothing is opened; whoever runs a statement all the same gets an error. */
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

interface Source {
  readonly options: ConnectOptions;
  readonly connection: Connection;
  readonly onCopy?: NonNullable<Database['onCopy']>;
  /** Other processes may serve from it too. */
  readonly shared: boolean;
  alive(): boolean;
  close(): Promise<void>;
}

async function openSource(host: Host, { database, maxConnections }: DatabaseOptions): Promise<Source> {
  const common = { maxConnections, applicationName: `model-gateway ${host.gateway}`, threaded: host.mode === 'serve' };
  if (database !== 'embedded') {
    const options = { ...common, target: { url: database } };
    const connection = connect(options);
    host.log.info({ database: describeUrl(database), schema: host.schema }, 'using a Postgres server');
    return { options, connection, shared: true, alive: () => true, close: () => connection.close() };
  }
  const mode = host.mode === 'serve' ? 'serve' : 'command';
  const embedded = await useEmbedded(host.directory, mode, host.log);
  const options = { ...common, target: { socketPath: embedded.address } };
  const connection = connect(options);
  host.log.info({ directory: host.directory, schema: host.schema }, 'using the embedded database');
  return {
    options,
    connection,
    onCopy: embedded.onCopy,
    shared: false,
    alive: () => embedded.alive(),
    async close() {
      await connection.close();
      await embedded.release();
    },
  };
}

/** Whether statements get answers, judged by the regular poll. */
class Health {
  readonly #host: Host;
  readonly #work: () => Promise<void>;
  #failed = false;
  #again = false;
  #runningSince: number | undefined;

  constructor(host: Host, work: () => Promise<void>) {
    this.#host = host;
    this.#work = work;
  }

  isGood(): boolean {
    const stuck = this.#runningSince !== undefined && this.#host.clock.monotonic() - this.#runningSince > stuckAfterMs;
    return !this.#failed && !stuck;
  }

  /** Logs when health changes, not each failure. */
  async poll(): Promise<void> {
    if (this.#runningSince !== undefined) {
      // What has come meanwhile may not be in what is being read.
      this.#again = true;
      return;
    }
    do {
      this.#again = false;
      await this.#poll();
    } while (this.#again);
  }

  async #poll(): Promise<void> {
    this.#runningSince = this.#host.clock.monotonic();
    try {
      await this.#work();
      if (this.#failed) this.#host.log.info({}, 'the database answers again');
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) this.#host.log.error({ error }, 'the database does not answer');
      this.#failed = true;
    } finally {
      this.#runningSince = undefined;
    }
  }
}
