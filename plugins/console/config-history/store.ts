/** Applied configurations in the database: one row for each that any node applied, its texts sealed and kept once. */
import { and, desc, eq, inArray, lt, notInArray, sql } from 'drizzle-orm';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { Database, Orm } from '../../common/domain/database.ts';
import type { Secrets } from '../people/secrets.ts';
import { consoleTables } from '../people/tables.ts';
import {
  type Applied,
  digestOf,
  digestOfAll,
  type HistoryStore,
  type KeptVersion,
  type VersionSource,
} from './history.ts';
import { openText, sealText } from './seal.ts';

export const mostVersions = 50;
/** All sealed texts together; the newest version is kept in any case. */
const mostBytes = 16 * 2 ** 20;
/** A larger tree is kept without its texts. */
const mostBytesOfOne = 8 * 2 ** 20;
const mostNodes = 1_000;

interface StoreParts {
  readonly store: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly secrets: () => Secrets;
  /** The machine; processes of one machine read the same files. */
  readonly node: string;
}

export function openHistoryStore(parts: StoreParts): HistoryStore {
  const { store, secrets } = parts;
  const { configVersions, configTexts } = consoleTables(store.schema);
  return {
    async list() {
      const rows = await store.orm.select().from(configVersions).orderBy(desc(configVersions.version));
      return rows.map(keptOf);
    },
    async texts(digests) {
      const rows = await store.orm
        .select()
        .from(configTexts)
        .where(inArray(configTexts.digest, [...digests]));
      return new Map(
        rows.flatMap(({ digest, sealed }) => {
          const text = openText(sealed, digest, secrets());
          return text === undefined ? [] : [[digest, text] as const];
        }),
      );
    },
    record: (applied) => store.orm.transaction((orm) => record(orm as Orm, parts, applied)),
  };
}

function keptOf(row: { readonly files: string; readonly at: Date } & Record<string, unknown>): KeptVersion {
  const { files, at, actor, reason, auditId, ...rest } = row;
  return {
    ...(rest as Pick<KeptVersion, 'version' | 'digest' | 'node'> & { source: VersionSource }),
    actor: (actor as string | null) ?? undefined,
    reason: (reason as string | null) ?? undefined,
    auditId: (auditId as string | null) ?? undefined,
    at: at.getTime(),
    files: (JSON.parse(files) as [string, string, number][]).map(([path, digest, bytes]) => ({ path, digest, bytes })),
  };
}

/**
 * A node adds a version for texts that are not those of a version after its own one, so that a fleet that takes up one change adds
 * one version, and a step back adds another.
 */
async function record(orm: Orm, parts: StoreParts, applied: Applied): Promise<void> {
  const { store, clock, node } = parts;
  const { configVersions, configNodes } = consoleTables(store.schema);
  const table = sql`${sql.identifier(store.schema)}.console_config_versions`;
  await orm.execute(sql`lock table ${table} in share row exclusive mode`);
  const digest = digestOfAll(applied.texts);
  const at = new Date(clock.now());
  const [mine] = await orm.select().from(configNodes).where(eq(configNodes.node, node));
  const [newest] = await orm.select().from(configVersions).orderBy(desc(configVersions.version)).limit(1);
  const [same] = await orm
    .select()
    .from(configVersions)
    .where(eq(configVersions.digest, digest))
    .orderBy(desc(configVersions.version))
    .limit(1);
  const { actor = null, reason = null, auditId = null, source } = applied;
  let version = same?.version;
  if (same === undefined || same.version < (mine?.version ?? newest!.version)) {
    version = (newest?.version ?? 0) + 1;
    const files = await keepTexts(orm, parts, applied);
    const row = { version, at, digest, source, actor, reason, auditId, node, files: JSON.stringify(files) };
    await orm.insert(configVersions).values(row);
    await prune(orm, parts, version);
  } else if (same.actor === null && actor !== null)
    await orm
      .update(configVersions)
      .set({ source, actor, reason, auditId })
      .where(eq(configVersions.version, same.version));
  const own = { node, version: version!, at };
  await orm.insert(configNodes).values(own).onConflictDoUpdate({ target: configNodes.node, set: own });
}

async function keepTexts(orm: Orm, { store, random, secrets }: StoreParts, { texts }: Applied) {
  const { configTexts } = consoleTables(store.schema);
  const files = texts.map(({ path, text }) => [path, digestOf(text), Buffer.byteLength(text)] as const);
  if (files.reduce((sum, [, , bytes]) => sum + bytes, 0) > mostBytesOfOne) return files;
  const kept = await orm
    .select({ digest: configTexts.digest })
    .from(configTexts)
    .where(
      inArray(
        configTexts.digest,
        files.map(([, digest]) => digest),
      ),
    );
  for (const [index, [, digest]] of files.entries()) {
    if (kept.some((row) => row.digest === digest)) continue;
    const sealed = sealText(texts[index]!.text, digest, secrets(), random);
    await orm.insert(configTexts).values({ digest, sealed, bytes: sealed.length }).onConflictDoNothing();
  }
  return files;
}

/** Removes what is beyond the bounds, the oldest first. */
async function prune(orm: Orm, { store }: StoreParts, newest: number): Promise<void> {
  const { configVersions, configTexts, configNodes } = consoleTables(store.schema);
  const versions = (await orm.select().from(configVersions).orderBy(desc(configVersions.version))).map(keptOf);
  const sizes = new Map(
    (await orm.select({ digest: configTexts.digest, bytes: configTexts.bytes }).from(configTexts)).map((row) => [
      row.digest,
      row.bytes,
    ]),
  );
  const kept = new Set<string>();
  let bytes = 0;
  let oldest = newest;
  for (const { version, files } of versions.slice(0, mostVersions)) {
    const added = [...new Set(files.map(({ digest }) => digest))].filter((digest) => !kept.has(digest));
    bytes += added.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0);
    if (bytes > mostBytes && version !== newest) break;
    for (const digest of added) kept.add(digest);
    oldest = version;
  }
  await orm.delete(configVersions).where(lt(configVersions.version, oldest));
  await orm.delete(configTexts).where(kept.size === 0 ? undefined : notInArray(configTexts.digest, [...kept]));
  await orm
    .delete(configNodes)
    .where(
      sql`${configNodes.node} not in (select node from ${configNodes} order by at desc limit ${sql.raw(String(mostNodes))})`,
    );
}

/** Seals every text again with the first secret, after that was changed. Returns how many, and how many none of the secrets opens. */
export async function sealAgain(
  { orm, schema }: Pick<Database, 'orm' | 'schema'>,
  secrets: Secrets,
  random: Random,
): Promise<{ readonly done: number; readonly left: number }> {
  const { configTexts } = consoleTables(schema);
  const rows = await orm.select().from(configTexts);
  let left = 0;
  for (const { digest, sealed } of rows) {
    if (openText(sealed, digest, [secrets[0]]) !== undefined) continue;
    const text = openText(sealed, digest, secrets);
    if (text === undefined) left += 1;
    else
      await orm
        .update(configTexts)
        .set({ sealed: sealText(text, digest, secrets, random) })
        .where(and(eq(configTexts.digest, digest), eq(configTexts.sealed, sealed)));
  }
  return { done: rows.length - left, left };
}
