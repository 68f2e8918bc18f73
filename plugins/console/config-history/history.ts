/** The configurations that were applied: kept, compared with one another, and brought back. */
import { hash } from 'node:crypto';
import type { ConfigCheck, ConfigFiles, ConfigText } from '../../../core/contract/config-files.ts';
import { GatewayError } from '../../../core/contract/errors.ts';

export const sources = ['start', 'save', 'restore', 'reload', 'signal', 'file', 'command'] as const;
export type VersionSource = (typeof sources)[number];

interface KeptFile {
  readonly path: string;
  readonly digest: string;
  readonly bytes: number;
}

export interface KeptVersion {
  readonly version: number;
  readonly at: number;
  readonly digest: string;
  readonly source: VersionSource;
  readonly actor: string | undefined;
  readonly reason: string | undefined;
  readonly auditId: string | undefined;
  readonly node: string;
  readonly files: readonly KeptFile[];
}

/** Texts that were applied, and by whom. */
export interface Applied {
  readonly texts: readonly ConfigText[];
  readonly source: VersionSource;
  readonly actor?: string | undefined;
  readonly reason?: string | undefined;
  readonly auditId?: string | undefined;
}

export interface HistoryStore {
  /** Newest first. */
  list(): Promise<readonly KeptVersion[]>;
  /** Texts by their digests; absent: kept no more, or not readable. */
  texts(digests: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Adds a version, or the person to one that was added for the same texts. */
  record(applied: Applied): Promise<void>;
}

/** A file with another text on each side; undefined: the side has no such file. */
export interface FileDifference {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** What a restoration would do. */
export interface Restoration {
  readonly check: ConfigCheck;
  readonly differences: readonly FileDifference[];
  /** Names what the files to be written have now; a restoration is refused where that has changed. */
  readonly state: string;
}

export const digestOf = (text: string): string => hash('sha256', text);
export const digestOfAll = (texts: readonly ConfigText[]): string =>
  hash('sha256', JSON.stringify(texts.map(({ path, text }) => [path, digestOf(text)]).sort()));

export class ConfigHistory {
  readonly #store: HistoryStore;
  readonly #files: () => ConfigFiles;

  constructor(store: HistoryStore, files: () => ConfigFiles) {
    this.#store = store;
    this.#files = files;
  }

  /** With the version that runs in this process; undefined: it is not kept yet. */
  async list(): Promise<{ readonly versions: readonly KeptVersion[]; readonly running: number | undefined }> {
    const versions = await this.#store.list();
    const digest = digestOfAll(this.#files().running());
    return { versions, running: versions.find((one) => one.digest === digest)?.version };
  }

  /** Versions by the id of their row in the audit log. */
  async versionsOf(auditIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const kept = await this.#store.list();
    return new Map(
      kept.flatMap(({ auditId, version }) =>
        auditId !== undefined && auditIds.includes(auditId) ? [[auditId, version] as const] : [],
      ),
    );
  }

  /** The version before another one; undefined: there is none. */
  async before(version: number): Promise<number | undefined> {
    return (await this.#store.list()).find((one) => one.version < version)?.version;
  }

  /** Files that differ between two versions; undefined: what runs. */
  async differences(from: number | undefined, to: number | undefined): Promise<readonly FileDifference[]> {
    return differing(await this.#textsOf(from), await this.#textsOf(to));
  }

  /** What restoring `version` would change, with what a check finds. `only`: these of its files. */
  async plan(version: number, only?: readonly string[]): Promise<Restoration> {
    const { texts, differences } = await this.#target(version, only);
    const check =
      differences.length === 0
        ? { problems: [], notices: [], changes: [] }
        : await this.#files().checkAll(texts.filter(({ path }) => differences.some((one) => one.path === path)));
    return { check, differences, state: stateOf(differences) };
  }

  /** Writes and applies the files of a version that differ. Throws as a save does; conflict where the disk is not in `state`. */
  async restore(version: number, state: string | undefined, only?: readonly string[]): Promise<ConfigCheck> {
    const { texts, onDisk, differences } = await this.#target(version, only);
    if (state !== undefined && stateOf(differences) !== state)
      throw new GatewayError('conflict', 'The files have changed meanwhile: look at the difference again.', {
        code: 'config_changed',
      });
    const wanted = texts.filter(({ path }) => differences.some((one) => one.path === path));
    if (wanted.length === 0)
      throw new GatewayError('conflict', 'The files have these texts already.', { code: 'config_same' });
    return this.#files().saveAll(wanted, onDisk);
  }

  async #target(version: number, only: readonly string[] | undefined) {
    const texts = (await this.#textsOf(version)).filter(({ path }) => only?.includes(path) ?? true);
    const onDisk = await this.#files().onDisk(texts.map(({ path }) => path));
    const now = [...onDisk].flatMap(([path, text]) => (text === undefined ? [] : [{ path, text }]));
    return { texts, onDisk, differences: differing(now, texts) };
  }

  async #textsOf(version: number | undefined): Promise<readonly ConfigText[]> {
    if (version === undefined) return this.#files().running();
    const kept = (await this.#store.list()).find((one) => one.version === version);
    if (kept === undefined)
      throw new GatewayError('not_found', `Version ${version} of the configuration is not kept.`, { field: 'version' });
    const texts = await this.#store.texts(kept.files.map(({ digest }) => digest));
    return kept.files.map(({ path, digest }) => {
      const text = texts.get(digest);
      if (text === undefined)
        throw new GatewayError(
          'conflict',
          `Version ${version} cannot be read: its texts were too large, or console.secret is another one.`,
          {
            code: 'config_unreadable',
          },
        );
      return { path, text };
    });
  }
}

function differing(before: readonly ConfigText[], after: readonly ConfigText[]): FileDifference[] {
  const paths = new Set([...after, ...before].map(({ path }) => path));
  const textIn = (texts: readonly ConfigText[], path: string) => texts.find((one) => one.path === path)?.text;
  return [...paths]
    .map((path) => ({ path, before: textIn(before, path), after: textIn(after, path) }))
    .filter((one) => one.before !== one.after);
}

const stateOf = (differences: readonly FileDifference[]): string =>
  hash(
    'sha256',
    JSON.stringify(differences.map(({ path, before }) => [path, before === undefined ? '' : digestOf(before)])),
  );
