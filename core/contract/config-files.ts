/** The service that shows, checks and saves the gateway's own configuration files. */
import { defineService } from './contract.ts';

export interface ConfigProblem {
  /** `file.yaml:12`, or the file alone. */
  readonly where: string;
  readonly message: string;
}

/** A remark on a configuration. */
export interface ConfigNotice {
  readonly level: 'info' | 'warning';
  readonly text: string;
  /** `file.yaml:12`, where the place is known. */
  readonly where?: string;
}

/**
 * Why a file is not written: `shipped`: an update of the product replaces it; `mounted`: this process may not write it; `data`: it would be the own
 * file over a shipped one, in a data directory that this process may not write.
 */
export type ReadOnlyReason = 'shipped' | 'mounted' | 'data';

export interface ConfigFileView {
  readonly name: string;
  readonly text: string;
  readonly writable: boolean;
  /** Why forms do not write it; undefined: they do. A shipped file may be writable as a text. */
  readonly readOnly: ReadOnlyReason | undefined;
  /** Names of the files that it includes, each laid over those before it, and the file over all of them. */
  readonly includes: readonly string[];
}

export interface ConfigView {
  /** The files that the gateway was read from, the main file first, with their text; over a shipped one an own one, empty until it is written. */
  readonly files: readonly ConfigFileView[];
  /** JSON Schema of a gateway file. */
  readonly schema: object;
  /** Remarks on what runs. */
  readonly notices: readonly ConfigNotice[];
  readonly loadedAt: number;
  /** Counts reloads. */
  readonly generation: number;
}

export interface ConfigCheck {
  readonly problems: readonly ConfigProblem[];
  readonly notices: readonly ConfigNotice[];
  /** Sections that would change, and those that take effect only after a restart. */
  readonly changes: readonly { readonly section: string; readonly restart: boolean }[];
}

/** What made a configuration run: the start, a save here, a signal, or a change of the files. */
export type ConfigSource = 'start' | 'save' | 'signal' | 'file';

/** One file of the gateway. Its path is relative to the directory of the main file, so that it is the same on every machine. */
export interface ConfigText {
  readonly path: string;
  readonly text: string;
}

/** The gateway's own files. Provided by the core. */
export interface ConfigFiles {
  view(): Promise<ConfigView>;
  /** Checks a file's new text; changes nothing. */
  check(file: string, text: string): Promise<ConfigCheck>;
  /** Checks, writes and applies it; throws invalid_request with the first problem, conflict if the file has changed meanwhile. */
  save(file: string, text: string, previous: string): Promise<ConfigCheck>;
  /** Reads the files again. */
  reload(): Promise<ConfigCheck>;
  /** The texts that were read last and applied, the main file first. */
  running(): readonly ConfigText[];
  /** Calls `listener` whenever texts were applied. */
  onApplied(listener: (source: ConfigSource) => void): void;
  /** The texts that these files have on the disk; undefined: it has none. Throws not_found for a path beside no file of this gateway. */
  onDisk(paths: readonly string[]): Promise<ReadonlyMap<string, string | undefined>>;
  /** As `check`, with the texts of several files that this gateway runs or ran. */
  checkAll(texts: readonly ConfigText[]): Promise<ConfigCheck>;
  /** As `save`: writes all of the files or none. A command writes only; the serving gateway applies. `previous`: what `onDisk` returned. */
  saveAll(texts: readonly ConfigText[], previous: ReadonlyMap<string, string | undefined>): Promise<ConfigCheck>;
  /** Applies the running texts again, as what they refer to has changed; files that wait for a signal wait on. */
  reapply(): Promise<ConfigCheck>;
}

export const configFiles = defineService<ConfigFiles>('config files');
