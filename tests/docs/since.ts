/** The version that a setting came with: the first one that has a digest of its path in `since/VERSION.txt`. */
import { hash } from 'node:crypto';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const folder = join(import.meta.dirname, 'since');
const digestOf = (path: string) => hash('sha256', path).slice(0, 8);

const versions = globSync(join(folder, '*.txt'))
  .map((file) => ({
    version: basename(file, '.txt'),
    digests: new Set(readFileSync(file, 'utf8').trim().split(/\s+/)),
  }))
  .toSorted((one, other) => one.version.localeCompare(other.version, 'en', { numeric: true }));

export function sinceOf(path: string): string {
  const digest = digestOf(path);
  return versions.find(({ digests }) => digests.has(digest))?.version ?? 'Unreleased';
}

/** Settings that came with a version, for `npm run docs -- --cut VERSION` at its release. */
export function writeVersion(version: string, paths: readonly string[]): void {
  const digests = paths.filter((path) => sinceOf(path) === 'Unreleased').map(digestOf);
  const lines = Array.from({ length: Math.ceil(digests.length / 12) }, (_, line) =>
    digests.slice(line * 12, line * 12 + 12).join(' '),
  );
  writeFileSync(join(folder, `${version}.txt`), `${lines.join('\n')}\n`);
}
