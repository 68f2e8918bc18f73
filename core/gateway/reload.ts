/**
 * Applies changed files while the gateway serves: all of their changes or none.
 *
 * 1. Read the file and its includes, or a draft instead of one.
 * 2. Check by booting the file in the mode `check`. Any problem ends the reload.
 * 3. Compare with the running file (`config-changes.ts`). What needs a restart keeps its running value and is reported; the
 *    rest is then checked once more by itself, since it may depend on what waits.
 * 4. Prepare: every plugin with `prepare` validates its section, or refuses.
 * 5. Commit in one turn, in the list's order; then the chains are compiled and the router is swapped. This cannot fail.
 *
 * All plugins commit, whichever section has changed, because the state of one may depend on another's section. A chain keeps
 * each `handle` as it was compiled, so running exchanges keep the configuration that they began with.
 */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, sep } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import type { ConfigCheck, ConfigNotice, ConfigSource } from '../contract/config-files.ts';
import { GatewayError } from '../contract/errors.ts';
import { ConfigError, type GatewayFile, readSections } from './config.ts';
import { type Change, compare } from './config-changes.ts';
import { FileWatch, seemsUnfinished } from './file-watch.ts';
import type { GatewayRuntime } from './runtime.ts';
import { secretIn } from './secrets/secret-file.ts';
import type { Drafts, Problem } from './yaml.ts';

/** Network file systems and mounts of single files report no change. */
const secretsEveryMs = 30_000;

export interface ReloaderOptions {
  readonly runtime: GatewayRuntime;
  /** Reads the gateway's files. Throws a ConfigError. */
  readonly read: (drafts?: Drafts) => Promise<GatewayFile>;
  /** Runs all checks of a boot. Throws a ConfigError; plugins may throw other errors. */
  readonly check: (file: GatewayFile) => Promise<readonly ConfigNotice[]>;
  /** Names of the built-in plugins. */
  readonly known: () => ReadonlySet<string>;
  /** Called when a saved text was applied. */
  readonly onSaved?: (() => void) | undefined;
}

/** A checked change that can be applied. */
interface Prepared {
  readonly reachable: GatewayFile;
  readonly changes: readonly Change[];
  readonly notices: readonly ConfigNotice[];
  readonly commits: readonly (() => void)[];
}

export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #watch: FileWatch;
  /** Watches files with secrets and the sources of plugins, whatever the setting `reload` says. */
  readonly #secretWatch: FileWatch;
  readonly #secretsChanged: () => void;
  readonly #listeners: ((source: ConfigSource) => void)[] = [];
  #sourceWatches: readonly (() => void)[] | undefined;
  /** Serializes reloads: a prepared change is valid only for the state that it was prepared on. */
  #turn: Promise<unknown> = Promise.resolve();
  #waiting: Promise<ConfigCheck> | undefined;
  #waitingSecrets: Promise<ConfigCheck> | undefined;
  #waitingReapply: Promise<ConfigCheck> | undefined;
  #generation = 0;
  #loadedAt: number;

  constructor(options: ReloaderOptions) {
    const { runtime } = options;
    this.#options = options;
    this.#loadedAt = runtime.clock.now();
    const { log } = runtime;
    const apply = (reload: () => Promise<unknown>) => () => {
      reload().catch((error: unknown) => log.error({ error }, 'the changed files could not be applied'));
    };
    this.#watch = new FileWatch({
      log,
      changed: apply(() => this.reload('file')),
      read: (file) => readFile(file, 'utf8').catch(() => undefined),
      seemsUnfinished,
    });
    this.#secretsChanged = apply(() => this.#reloadSecrets());
    this.#secretWatch = new FileWatch({
      log,
      changed: this.#secretsChanged,
      read: secretIn,
      seemsUnfinished: (text, before = '') => text === '' || before.startsWith(text),
      everyMs: secretsEveryMs,
    });
  }

  /** Counts the applied reloads. */
  get generation(): number {
    return this.#generation;
  }

  /** Wall-clock milliseconds at which the running configuration was applied. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  /** Watches what holds secrets, and the files if the setting `reload` asks for it. */
  watch(): void {
    const { runtime } = this.#options;
    if (runtime.isStopping) {
      this.close();
      return;
    }
    const { settings, yaml } = runtime.file;
    if (settings.reload === 'signal') this.#watch.close();
    // The directory of an own file may not be there before the file.
    else this.#watch.follow(new Map([...yaml.files].filter(([file]) => file !== yaml.own || existsSync(file))));
    this.#secretWatch.follow(yaml.secretFiles);
    this.#sourceWatches ??= runtime.sources().flatMap((source) => source.watch?.(this.#secretsChanged) ?? []);
  }

  /** Calls `listener` whenever texts were applied. */
  onApplied(listener: (source: ConfigSource) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#watch.close();
    this.#secretWatch.close();
    for (const end of this.#sourceWatches ?? []) end();
    this.#sourceWatches = [];
  }

  /** Checks the files with these texts, by absolute path. Changes nothing; problems are returned, not thrown. */
  check(texts: ReadonlyMap<string, string>): Promise<ConfigCheck> {
    return this.#inTurn(async () => {
      const outcome = await this.#prepare(this.#drafted(texts), true);
      return outcome instanceof ConfigError ? refused(outcome) : accepted(outcome);
    });
  }

  /** Reads the files again and applies changes. Problems are logged and returned. */
  reload(source: ConfigSource = 'signal'): Promise<ConfigCheck> {
    // A reload that still waits will read the same files.
    this.#waiting ??= this.#inTurn(() => {
      this.#waiting = undefined;
      return this.#readAgain(source);
    });
    return this.#waiting;
  }

  /** Reads the secrets again. Where the files wait for a signal, their running texts hold. */
  #reloadSecrets(): Promise<ConfigCheck> {
    const { runtime } = this.#options;
    if (runtime.file.settings.reload === 'watch') return this.reload('file');
    this.#waitingSecrets ??= this.#inTurn(() => {
      this.#waitingSecrets = undefined;
      return this.#readAgain('file', {
        texts: runtime.file.yaml.files,
        mayRead: () => true,
        mayTakeSecret: () => true,
      });
    });
    return this.#waitingSecrets;
  }

  /** Applies the running texts to all plugins, whether or not their values differ. */
  reapply(): Promise<ConfigCheck> {
    const { runtime } = this.#options;
    this.#waitingReapply ??= this.#inTurn(() => {
      this.#waitingReapply = undefined;
      return this.#readAgain(
        'file',
        { texts: runtime.file.yaml.files, mayRead: () => true, mayTakeSecret: () => true },
        true,
      );
    });
    return this.#waitingReapply;
  }

  async #readAgain(source: ConfigSource, texts?: Drafts, always = false): Promise<ConfigCheck> {
    const outcome = await this.#prepare(texts);
    if (!(outcome instanceof ConfigError)) return this.#applyConfig(outcome, source, always);
    this.#refuse(outcome);
    return refused(outcome);
  }

  /** Checks the texts, calls `write` to store them, and applies them; a command, which serves nothing, only stores them. */
  save(texts: ReadonlyMap<string, string>, write: () => Promise<void>): Promise<ConfigCheck> {
    return this.#inTurn(async () => {
      const outcome = await this.#prepare(this.#drafted(texts), true);
      if (outcome instanceof ConfigError) throw configInvalid(outcome);
      await write();
      if (this.#options.runtime.mode !== 'serve') return accepted(outcome);
      const result = this.#applyConfig(outcome, 'save');
      this.#options.onSaved?.();
      return result;
    });
  }

  /** A draft may include files only from the directories of the current files, and name secrets only in those of current secrets. */
  #drafted(texts: ReadonlyMap<string, string>): Drafts {
    const { files, secretFiles, own } = this.#options.runtime.file.yaml;
    const below = (known: Iterable<string>) => {
      const directories = [...known].map((path) => dirname(path) + sep);
      return (wanted: string) => directories.some((directory) => wanted.startsWith(directory));
    };
    return {
      texts,
      // The data directory has files that are no settings.
      mayRead: below([...files.keys()].filter((file) => file !== own)),
      mayTakeSecret: below(secretFiles.keys()),
    };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  async #prepare(texts?: Drafts, areDrafts = false): Promise<Prepared | ConfigError> {
    const { runtime, read, check } = this.#options;
    try {
      // Yields to exchanges between the steps: with a large catalogue they take 20 to 50 ms together.
      const next = await read(texts);
      if (areDrafts) this.#refuseNewPlugins(next);
      await turn();
      const notices = await checked(next, check);
      await turn();
      const { changes, reachable } = compare(runtime.file, next, runtime.plugins);
      // The rest may depend on what waits for a restart.
      if (changes.some(({ restart }) => restart)) await checked(reachable, check);
      return { reachable, changes, notices, commits: await this.#commits(reachable) };
    } catch (error) {
      if (error instanceof ConfigError) return error;
      throw error;
    }
  }

  /** Loading a plugin runs its code, even for a check: drafts may add built-in plugins only. */
  #refuseNewPlugins({ settings, yaml }: GatewayFile): void {
    const { runtime, known } = this.#options;
    const allowed = new Set([...known(), ...runtime.file.settings.plugins]);
    const problems = settings.plugins.flatMap((name, index) =>
      allowed.has(name)
        ? []
        : [{ where: yaml.where(['plugins', index]), message: `the plugin "${name}" can only be added by hand` }],
    );
    if (problems.length > 0) throw new ConfigError(problems);
  }

  /** Calls every `prepare`, also for an unchanged section: the instance may depend on another section. */
  async #commits(reachable: GatewayFile): Promise<(() => void)[]> {
    const { runtime, known } = this.#options;
    if (runtime.mode !== 'serve') return [];
    const plugins = runtime.plugins.map(({ plugin }) => plugin);
    const sections = readSections(reachable, plugins, known());
    const commits: (() => void)[] = [];
    const problems: Problem[] = [];
    for (const { plugin, instance } of runtime.plugins) {
      if (instance.reload === undefined) continue;
      try {
        commits.push(await instance.reload.prepare(sections.get(plugin.name)));
      } catch (error) {
        problems.push({
          where: reachable.yaml.where([plugin.name]),
          message: reachable.yaml.hide(`${plugin.name}: ${messageOf(error)}`),
        });
      }
    }
    if (problems.length > 0) throw new ConfigError(problems);
    return commits;
  }

  /** `always`: all plugins commit though no section has changed. */
  #applyConfig(prepared: Prepared, source: ConfigSource, always = false): ConfigCheck {
    const { runtime } = this.#options;
    const { reachable, changes, commits } = prepared;
    if (runtime.isStopping) throw new GatewayError('overloaded', 'The gateway is shutting down.');
    const applied = changes.filter(({ restart }) => !restart).map(({ section }) => section);
    const waiting = changes.filter(({ restart }) => restart).map(({ section }) => section);
    const isApplied = always || applied.length > 0;
    runtime.applyConfig(reachable, isApplied ? commits : []);
    if (isApplied) {
      this.#generation++;
      this.#loadedAt = runtime.clock.now();
    }
    const fields = { generation: this.#generation, sections: applied };
    runtime.log.info(
      fields,
      isApplied ? 'the changed files are in force' : 'the files contain no change that can be applied',
    );
    if (waiting.length > 0) runtime.log.warn({ sections: waiting }, 'these changes wait for a restart');
    this.watch();
    for (const listener of this.#listeners) listener(source);
    return accepted(prepared);
  }

  #refuse(error: ConfigError): void {
    const { log } = this.#options.runtime;
    log.error(
      { problems: error.problems },
      `the changed files are refused; the running configuration stays: ${error.problems[0]!.where}`,
    );
  }
}

/** Converts errors that plugins throw from `setup` to ConfigErrors. */
async function checked(file: GatewayFile, check: ReloaderOptions['check']): Promise<readonly ConfigNotice[]> {
  try {
    return await check(file);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError([{ where: file.yaml.where([]), message: file.yaml.hide(messageOf(error)) }]);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function accepted({ notices, changes }: Prepared): ConfigCheck {
  return { problems: [], notices, changes };
}

function refused({ problems }: ConfigError): ConfigCheck {
  return { problems, notices: [], changes: [] };
}

function configInvalid({ problems }: ConfigError): GatewayError {
  const { where, message } = problems[0]!;
  const more = problems.length === 1 ? '' : ` (and ${problems.length - 1} more)`;
  return new GatewayError('invalid_request', `${where}: ${message}${more}`, { field: 'text', code: 'config_invalid' });
}
