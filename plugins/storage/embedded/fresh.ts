/** A new database that was made when the program was built: a first start unpacks it in place of making one, which takes seconds. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

const archive = fileURLToPath(new URL('./dist/fresh.gz', import.meta.url));

/** The first line of the archive; the files' bytes follow, one after the other. */
interface Contents {
  /** Of PGlite, which made it. */
  readonly version: string;
  readonly folders: readonly string[];
  readonly files: readonly (readonly [path: string, bytes: number])[];
}

/** Unpacks it into the empty directory `live`, unless there is none or another version of the database has made it. */
export function unpackFresh(live: string, from = archive): void {
  if (!existsSync(from)) return;
  const bytes = gunzipSync(readFileSync(from));
  let at = bytes.indexOf('\n') + 1;
  const { version, folders, files } = JSON.parse(bytes.toString('utf8', 0, at)) as Contents;
  if (version !== databaseVersion()) return;
  for (const path of folders) mkdirSync(join(live, path), { mode: 0o700 });
  for (const [path, length] of files) {
    writeFileSync(join(live, path), bytes.subarray(at, at + length), { mode: 0o600 });
    at += length;
  }
}

/** Packs the database at `live`, which no process has open, into the archive. */
export function packFresh(live: string, to = archive): void {
  const entries = readdirSync(live, { recursive: true, withFileTypes: true }).map((entry) => ({
    path: join(entry.parentPath, entry.name).slice(live.length + 1),
    isFolder: entry.isDirectory(),
  }));
  const paths = entries.filter(({ isFolder }) => !isFolder).map(({ path }) => path);
  const contents = paths.map((path) => readFileSync(join(live, path)));
  const head: Contents = {
    version: databaseVersion(),
    // Sorted, so that each comes after the one that it is in.
    folders: entries.flatMap(({ path, isFolder }) => (isFolder ? [path] : [])).sort(),
    files: paths.map((path, index) => [path, contents[index]!.length]),
  };
  mkdirSync(dirname(to), { recursive: true });
  const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...contents]);
  writeFileSync(to, gzipSync(bytes, { level: 9 }));
}

export function removeFresh(): void {
  rmSync(archive, { force: true });
}

function databaseVersion(): string {
  const file = new URL('../package.json', import.meta.resolve('@electric-sql/pglite'));
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
