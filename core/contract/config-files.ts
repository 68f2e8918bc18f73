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

export interface ConfigView {
  /** The files that the gateway was read from, the main file first, with their text. */
  readonly files: readonly { readonly name: string; readonly text: string; readonly writable: boolean }[];
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

/** The gateway's own files. Provided by the core. */
export interface ConfigFiles {
  view(): Promise<ConfigView>;
  /** Checks a file's new text; changes nothing. */
  check(file: string, text: string): Promise<ConfigCheck>;
  /** Checks, writes and applies it; throws invalid_request with the first problem, conflict if the file has changed meanwhile. */
  save(file: string, text: string, previous: string): Promise<ConfigCheck>;
  /** Reads the files again. */
  reload(): Promise<ConfigCheck>;
}

export const configFiles = defineService<ConfigFiles>('config files');
