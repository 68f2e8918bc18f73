/** Takes changed files up while the gateway serves: everything is judged first, then all of it holds at once, or nothing. */

import { dirname, sep } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { ConfigError, type GatewayFile, readSections } from './config.ts';
import { type Change, compare } from './config-changes.ts';
import type { Notice } from './contract.ts';
import type { ConfigCheck } from './desk.ts';
import { GatewayError } from './errors.ts';
import { FileWatch } from './file-watch.ts';
import type { House } from './house.ts';
import type { Drafts, Problem } from './yaml.ts';

export interface ReloaderOptions {
  readonly house: House;
  /** Reads the gateway's files. Throws a ConfigError. */
  readonly read: (drafts?: Drafts) => GatewayFile;
  /** The checks of a boot, all of them, on a gateway that nothing is done with. Throws a ConfigError; plugins may throw more. */
  readonly check: (file: GatewayFile) => Promise<readonly Notice[]>;
  /** Names of the plugins of the house. */
  readonly known: () => ReadonlySet<string>;
  /** Called when a saved text is in force. */
  readonly onSaved?: (() => void) | undefined;
}

/** Everything that stands before a take-up, which cannot fail. */
interface Prepared {
  readonly reachable: GatewayFile;
  readonly changes: readonly Change[];
  readonly notices: readonly Notice[];
  readonly commits: readonly (() => void)[];
}

export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #watch: FileWatch;
  /** One at a time: what is prepared holds only for the state that it was prepared on. */
  #turn: Promise<unknown> = Promise.resolve();
  #waiting: Promise<ConfigCheck> | undefined;
  #generation = 0;
  #loadedAt: number;

  constructor(options: ReloaderOptions) {
    const { house } = options;
    this.#options = options;
    this.#loadedAt = house.clock.now();
    this.#watch = new FileWatch(house.log, () => {
      this.reload().catch((error: unknown) => house.log.error({ error }, 'the changed files could not be taken up'));
    });
  }

  /** Counts the take-ups. */
  get generation(): number {
    return this.#generation;
  }

  /** Wall-clock milliseconds at which what runs was taken up. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  /** Follows the files as `reload` of the settings says. */
  watch(): void {
    const { settings, yaml } = this.#options.house.file;
    if (this.#options.house.isStopping || settings.reload === 'signal') this.#watch.close();
    else this.#watch.follow(yaml.files);
  }

  close(): void {
    this.#watch.close();
  }

  /** What the files would mean with this text in place of one of them. Changes nothing, never rejects for what an operator wrote. */
  check(file: string, text: string): Promise<ConfigCheck> {
    return this.#inTurn(async () => {
      const outcome = await this.#prepare(this.#drafted(file, text));
      return outcome instanceof ConfigError ? refused(outcome) : accepted(outcome);
    });
  }

  /** Reads the files again and takes up what has changed. What is wrong is logged, and told. */
  reload(): Promise<ConfigCheck> {
    // A request that still waits for its turn will read what this one would.
    this.#waiting ??= this.#inTurn(async () => {
      this.#waiting = undefined;
      const outcome = await this.#prepare();
      if (!(outcome instanceof ConfigError)) return this.#takeUp(outcome);
      this.#refuse(outcome);
      return refused(outcome);
    });
    return this.#waiting;
  }

  /** Takes the text up if `write`, called when all is well with it, can put it where it belongs. */
  save(file: string, text: string, write: () => Promise<void>): Promise<ConfigCheck> {
    return this.#inTurn(async () => {
      const outcome = await this.#prepare(this.#drafted(file, text));
      if (outcome instanceof ConfigError) throw unfit(outcome);
      await write();
      const taken = this.#takeUp(outcome);
      this.#options.onSaved?.();
      return taken;
    });
  }

  /** Whoever may edit the files this way is not let out of their directories. */
  #drafted(file: string, text: string): Drafts {
    const directories = [...this.#options.house.file.yaml.files.keys()].map((known) => dirname(known) + sep);
    return {
      texts: new Map([[file, text]]),
      mayRead: (wanted) => directories.some((directory) => wanted.startsWith(directory)),
    };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  async #prepare(drafts?: Drafts): Promise<Prepared | ConfigError> {
    const { house, read, check } = this.#options;
    try {
      // A turn for the exchanges between the steps: together they would hold them up for as long as a boot thinks.
      const next = read(drafts);
      if (drafts !== undefined) this.#refuseStrangers(next);
      await turn();
      const notices = await judged(next, check);
      await turn();
      const { changes, reachable } = compare(house.file, next, house.seats);
      // What waits for a restart may be what made the rest fit.
      if (changes.some(({ restart }) => restart)) await judged(reachable, check);
      return { reachable, changes, notices, commits: await this.#commits(reachable) };
    } catch (error) {
      if (error instanceof ConfigError) return error;
      throw error;
    }
  }

  /** To load a plugin is to run its code, and be it for a check: one from outside of the house comes in by hand. */
  #refuseStrangers({ settings, yaml }: GatewayFile): void {
    const { house, known } = this.#options;
    const welcome = new Set([...known(), ...house.file.settings.plugins]);
    const problems = settings.plugins.flatMap((name, index) =>
      welcome.has(name)
        ? []
        : [{ where: yaml.where(['plugins', index]), message: `the plugin "${name}" can only be added by hand` }],
    );
    if (problems.length > 0) throw new ConfigError(problems);
  }

  /** Every part that can is asked, also where its own section is the same: it may have looked at another's. */
  async #commits(reachable: GatewayFile): Promise<(() => void)[]> {
    const { house, known } = this.#options;
    const plugins = house.seats.map(({ plugin }) => plugin);
    const sections = readSections(reachable, plugins, known());
    const commits: (() => void)[] = [];
    const problems: Problem[] = [];
    for (const { plugin, part } of house.seats) {
      if (part.prepare === undefined) continue;
      try {
        commits.push(await part.prepare(sections.get(plugin.name)));
      } catch (error) {
        problems.push({
          where: reachable.yaml.where([plugin.name]),
          message: reachable.yaml.hide(`${plugin.name}: ${wordsOf(error)}`),
        });
      }
    }
    if (problems.length > 0) throw new ConfigError(problems);
    return commits;
  }

  #takeUp(prepared: Prepared): ConfigCheck {
    const { house } = this.#options;
    const { reachable, changes, commits } = prepared;
    if (house.isStopping) throw new GatewayError('overloaded', 'The gateway is shutting down.');
    const light = changes.filter(({ restart }) => !restart).map(({ section }) => section);
    const heavy = changes.filter(({ restart }) => restart).map(({ section }) => section);
    house.takeUp(reachable, light.length === 0 ? [] : commits);
    if (light.length > 0) {
      this.#generation++;
      this.#loadedAt = house.clock.now();
    }
    const fields = { generation: this.#generation, sections: light };
    house.log.info(
      fields,
      light.length === 0 ? 'the files say nothing new that can be taken up' : 'the changed files are in force',
    );
    if (heavy.length > 0) house.log.warn({ sections: heavy }, 'these changes wait for a restart');
    this.watch();
    return accepted(prepared);
  }

  #refuse(error: ConfigError): void {
    const { log } = this.#options.house;
    log.error(
      { problems: error.problems },
      `the changed files are refused, what ran goes on: ${error.problems[0]!.where}`,
    );
  }
}

/** A plugin that refuses its section while it is set up may say so by any error. */
async function judged(file: GatewayFile, check: ReloaderOptions['check']): Promise<readonly Notice[]> {
  try {
    return await check(file);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError([{ where: file.yaml.where([]), message: file.yaml.hide(wordsOf(error)) }]);
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function accepted({ notices, changes }: Prepared): ConfigCheck {
  return { problems: [], notices, changes };
}

function refused({ problems }: ConfigError): ConfigCheck {
  return { problems, notices: [], changes: [] };
}

/** For whoever wanted to save it. */
function unfit({ problems }: ConfigError): GatewayError {
  const { where, message } = problems[0]!;
  const more = problems.length === 1 ? '' : ` (and ${problems.length - 1} more)`;
  return new GatewayError('invalid_request', `${where}: ${message}${more}`, { field: 'text', code: 'config_invalid' });
}
