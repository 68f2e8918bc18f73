/** Fills in what stands in a gateway file for a value: variables, files with secrets, and secrets of plugins' sources. */
import { resolve } from 'node:path';
import { didYouMean } from '../../tools/near-names.ts';
import { readSecretFile } from './secret-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Secrets of sources by `source:reference`; undefined: there is none of that name. */
export type FoundSecrets = ReadonlyMap<string, string | undefined>;

/** Where a value stands. */
export interface Place {
  /** `providers.acme.keys` */
  readonly setting: string;
  /** Directory of the file, which relative paths begin at. */
  readonly directory: string;
  /** Adds a problem at this place. */
  refuse(message: string): void;
  /** Adds a warning of a probable mistake at this place. */
  remark(text: string): void;
}

/** A secret of a source that is still to be asked for. */
export interface WantedSecret {
  readonly source: string;
  readonly reference: string;
  readonly places: Place[];
}

/** `${NAME}`, `${source:reference}`, and each with `:-default`. */
const placeholder =
  /\$\{(?:([A-Za-z_][A-Za-z0-9_]*)|([a-z][a-z0-9-]*):(?!-)((?:(?!:-)[^}])+))(?::-((?:[^}\\]|\\.)*))?\}/g;
export const fileSource = 'file';
/** Shorter values are not masked: they could be part of any word. */
const shortestHidden = 8;
/** A value that comes from a file or a source is a secret for certain. */
const shortestHiddenSecret = 4;

/** One word within quotes: files of variables and shells keep them where they are not expected. */
export function isQuoted(text: string): boolean {
  return /^(["'])[^\s"']+\1$/.test(text);
}

/** The probable mistake in a value from elsewhere. */
function remarkOf(what: string, value: string): string | undefined {
  if (isQuoted(value.trim()))
    return `${what} has quotes around its value, which belong to it: remove them where it is set`;
  if (value !== value.trim()) return `${what} has blanks or a line break around its value: remove them where it is set`;
  return undefined;
}

export class Filling {
  readonly #environment: Environment;
  readonly #found: FoundSecrets | undefined;
  readonly #mayRead: (path: string) => boolean;
  readonly #hidden = new Set<string>();
  /** Files with secrets that are named, with their text; undefined: there is none, or it cannot be read. */
  readonly files = new Map<string, string | undefined>();
  /** Values that sources have not given yet, by `source:reference`. */
  readonly wanted = new Map<string, WantedSecret>();

  /** `found`: what the sources have given; absent: they were not asked yet. */
  constructor(environment: Environment, found: FoundSecrets | undefined, mayRead: (path: string) => boolean) {
    this.#environment = environment;
    this.#found = found;
    this.#mayRead = mayRead;
  }

  /** The text with everything filled in. */
  fill(text: string, place: Place): string {
    const [unclear] = /\$\{[^}]{0,40}\}?/.exec(text.replaceAll(placeholder, '')) ?? [];
    if (unclear !== undefined) place.refuse(`${unclear} is no variable: write \${NAME} or \${NAME:-default}`);
    return text.replace(
      placeholder,
      (_whole, name?: string, source?: string, reference?: string, fallback?: string) =>
        (name === undefined
          ? this.#secret(source!, reference!.trim(), fallback, place)
          : this.#variable(name, fallback, place)) ?? '',
    );
  }

  /** The text with every value masked that was filled in. */
  hide(text: string): string {
    const longestFirst = [...this.#hidden].sort((left, right) => right.length - left.length);
    return longestFirst.reduce((hidden, value) => hidden.replaceAll(value, '***'), text);
  }

  #variable(name: string, fallback: string | undefined, place: Place): string | undefined {
    const value = this.#environment[name];
    const path = this.#environment[`${name}_FILE`];
    const isSet = value !== undefined && value !== '';
    if (path !== undefined && path !== '') {
      if (!isSet) return this.#file(path, `the file ${path} of ${name}_FILE`, fallback, place, false);
      place.refuse(`both ${name} and ${name}_FILE are set in the environment: remove one of them`);
    }
    if (isSet) {
      const remark = remarkOf(`the environment variable ${name}`, value);
      if (remark !== undefined) place.remark(remark);
      return this.#hiding(value, shortestHidden);
    }
    if (fallback === undefined)
      place.refuse(`the environment variable ${name} is not set${didYouMean(name, Object.keys(this.#environment))}`);
    return fallback;
  }

  #secret(source: string, reference: string, fallback: string | undefined, place: Place): string | undefined {
    if (source === fileSource) {
      const named = `the file ${reference}`;
      if (this.#mayRead(resolve(place.directory, reference)))
        return this.#file(reference, named, fallback, place, fallback !== undefined);
      place.refuse(`${place.setting}: ${named} lies elsewhere: it can only be named by hand`);
      return undefined;
    }
    const key = `${source}:${reference}`;
    if (this.#found === undefined) {
      const wanted = this.wanted.get(key) ?? { source, reference, places: [] };
      wanted.places.push(place);
      this.wanted.set(key, wanted);
      return fallback;
    }
    const value = this.#found.get(key);
    if (value !== undefined) return this.#hiding(value, shortestHiddenSecret);
    if (fallback === undefined) place.refuse(`${place.setting}: the source "${source}" has no secret "${reference}"`);
    return fallback;
  }

  #file(
    written: string,
    named: string,
    fallback: string | undefined,
    place: Place,
    mayBeMissing: boolean,
  ): string | undefined {
    const path = resolve(place.directory, written);
    const read = readSecretFile(path);
    const text = 'text' in read ? read.text : undefined;
    this.files.set(path, text);
    if (text !== undefined) {
      const remark = remarkOf(named, text);
      if (remark !== undefined) place.remark(remark);
      return this.#hiding(text, shortestHiddenSecret);
    }
    const problem = 'text' in read ? 'is empty' : `cannot be read (${read.problem})`;
    if ('problem' in read ? !(read.isMissing && mayBeMissing) : fallback === undefined)
      place.refuse(`${place.setting}: ${named} ${problem}`);
    return fallback;
  }

  #hiding(value: string, shortest: number): string {
    if (value.length >= shortest) this.#hidden.add(value);
    return value;
  }
}
