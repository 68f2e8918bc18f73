/**
 * New databases that were made when the program was built: a first start unpacks one instead of making it, which takes seconds. One is
 * empty; the other has all tables of the gateways that `npm start` serves, and is used only where their migrations are the same.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

const folder = fileURLToPath(new URL('./dist/', import.meta.url));
export const emptyArchive = join(folder, 'fresh.zst');
export const migratedArchive = join(folder, 'migrated.zst');
/** A window beyond the whole: the three databases in it are nearly the same, so this halves its size. */
const compression = {
  [constants.ZSTD_c_compressionLevel]: 9,
  [constants.ZSTD_c_windowLog]: 26,
  [constants.ZSTD_c_enableLongDistanceMatching]: 1,
};

/** The first line of the archive; the files' bytes follow, one after the other, compressed. */
interface Contents {
  /** Version of PGlite, which made it. */
  readonly version: string;
  /** The schemas that have tables in it, and the migrations that made these; absent: it is empty. */
  readonly tables?: Tables | undefined;
  readonly folders: readonly string[];
  readonly files: readonly (readonly [path: string, bytes: number])[];
}

interface Tables {
  readonly schemas: readonly string[];
  readonly migrations: string;
}

/** Unpacks one with the tables of `schema` into the empty directory `live`, or else the empty one, if there is one that fits. */
export function unpackFresh(live: string, schema?: string, archives = [migratedArchive, emptyArchive]): void {
  const migrations = schema === undefined ? undefined : migrationsDigest();
  for (const archive of archives) {
    if (!existsSync(archive)) continue;
    const bytes = readFileSync(archive);
    const from = bytes.indexOf('\n') + 1;
    const contents = JSON.parse(bytes.toString('utf8', 0, from)) as Contents;
    const { version, tables } = contents;
    const fits = tables === undefined || (tables.migrations === migrations && tables.schemas.includes(schema!));
    if (version !== databaseVersion() || !fits) continue;
    unpack(live, contents, zstdDecompressSync(bytes.subarray(from)));
    return;
  }
}

function unpack(live: string, { folders, files }: Contents, bytes: Buffer): void {
  let at = 0;
  for (const path of folders) mkdirSync(join(live, path), { mode: 0o700 });
  for (const [path, length] of files) {
    writeFileSync(join(live, path), bytes.subarray(at, at + length), { mode: 0o600 });
    at += length;
  }
}

/** Packs the database at `live`, which no process has open, into the archive. `schemas`: those with all their tables. */
export function packFresh(live: string, to: string, schemas?: readonly string[]): void {
  const entries = readdirSync(live, { recursive: true, withFileTypes: true }).map((entry) => ({
    path: join(entry.parentPath, entry.name).slice(live.length + 1),
    isFolder: entry.isDirectory(),
  }));
  const paths = entries.filter(({ isFolder }) => !isFolder).map(({ path }) => path);
  const contents = paths.map((path) => readFileSync(join(live, path)));
  const head: Contents = {
    version: databaseVersion(),
    tables: schemas === undefined ? undefined : { schemas, migrations: migrationsDigest() },
    // Sorted, so that each comes after the one that it is in.
    folders: entries.flatMap(({ path, isFolder }) => (isFolder ? [path] : [])).sort(),
    files: paths.map((path, index) => [path, contents[index]!.length]),
  };
  mkdirSync(dirname(to), { recursive: true });
  const packed = zstdCompressSync(Buffer.concat(contents), { params: compression });
  writeFileSync(to, Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), packed]));
}

export function removeFresh(): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Folders of plugins that have migrations, by the plugin's name. */
export function migrationFolders(plugins = new URL('../../', import.meta.url)): Map<string, URL> {
  const folders = readdirSync(plugins, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const all = folders.map(({ name }) => [name, new URL(`${name}/migrations/`, plugins)] as const);
  return new Map(all.filter(([, url]) => existsSync(url)));
}

/** Changes with every migration of this program. */
function migrationsDigest(): string {
  const hash = createHash('sha256');
  for (const [plugin, url] of migrationFolders()) {
    for (const name of readdirSync(url).sort()) {
      const text = readFileSync(new URL(name, url));
      hash.update(`${plugin}/${name} ${text.length}\n`).update(text);
    }
  }
  return hash.digest('hex');
}

function databaseVersion(): string {
  const file = new URL('../package.json', import.meta.resolve('@electric-sql/pglite'));
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
