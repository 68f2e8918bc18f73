/** A database inside the test's own process, counted and breakable, behind the vocabulary's interface. */
import { readdir, readFile } from 'node:fs/promises';
import type { PGlite } from '@electric-sql/pglite';
import { drizzle } from 'drizzle-orm/pglite';
import type { Database, Orm } from '../../../plugins/common/domain/database.ts';
import { openInProcess } from '../../helpers/template.ts';

export interface EmbeddedDatabase extends Database {
  /** Statements that were sent since the last reset. */
  statements: string[];
  /** `down`: unhealthy. `failing`: healthy still, but statements fail. */
  state: 'up' | 'down' | 'failing';
  /** While set, statements wait for it. */
  gate: Promise<void> | undefined;
}

let shared: Promise<PGlite> | undefined;
let nextSchema = 1;

/** A schema of its own in one database per process. */
export async function openEmbedded(): Promise<EmbeddedDatabase> {
  shared ??= openInProcess();
  const client = await shared;
  const schema = `auth_${nextSchema++}`;
  await client.exec(`create schema "${schema}"`);
  const listeners: { topic: string; listener: (subject: string) => void }[] = [];
  const control: Pick<EmbeddedDatabase, 'statements' | 'state' | 'gate'> = {
    statements: [],
    state: 'up',
    gate: undefined,
  };
  const guarded = new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'query') return value.bind(target);
      return async (...parameters: unknown[]) => {
        control.statements.push(String(parameters[0]));
        if (control.state !== 'up') throw new Error('connection refused');
        await control.gate;
        return value.apply(target, parameters);
      };
    },
  });
  const orm = drizzle(guarded) as unknown as Orm;
  return Object.assign(control, {
    orm,
    schema,
    async migrate(_plugin: string, directory: URL) {
      for (const file of (await readdir(directory)).sort()) {
        const text = await readFile(new URL(file, directory), 'utf8');
        await client.exec(
          text
            .replaceAll('{schema}', `"${schema}"`)
            .replaceAll('create table', 'create table if not exists')
            .replaceAll('create index', 'create index if not exists')
            .replaceAll('add column', 'add column if not exists'),
        );
      }
    },
    async announce(topic: string, subject: string) {
      for (const entry of listeners) if (entry.topic === topic) entry.listener(subject);
    },
    async change<T>(this: Database, topic: string, subject: string, work: (orm: Orm) => Promise<T>) {
      const result = await work(orm);
      await this.announce(topic, subject);
      return result;
    },
    onChange: (topic: string, listener: (subject: string) => void) => void listeners.push({ topic, listener }),
    healthy: () => control.state !== 'down',
  });
}

/** For the end of a test file. */
export async function closeEmbedded(): Promise<void> {
  await (await shared)?.close();
  shared = undefined;
}
