/** The gateways of one process: set up together, served, reloaded and ended together. */
import { type BootOptions, boot, type Gateway } from './boot.ts';
import { readGatewayFile, schemaOf } from './config.ts';
import type { Crew } from './crew.ts';
import { GatewayError } from './errors.ts';

export interface ServingOptions {
  readonly crew?: Crew;
  /** Called when somebody who uses the gateway of this file has changed the file. */
  readonly onSaved?: (file: string) => void;
}

export class Serving {
  readonly #all: Gateway[] = [];
  /** Those that listen, by file. */
  readonly #listening = new Map<string, Gateway>();
  #ended = false;

  get hasEnded(): boolean {
    return this.#ended;
  }

  /**
   * Sets all up before any is called: a mistake in one file is told before another's clients are served. Rejects with what
   * is wrong, and then nothing is left running.
   */
  async begin(files: readonly string[], options: ServingOptions = {}): Promise<void> {
    refuseTwins(files);
    try {
      for (const file of files) this.#all.push(await boot(file, bootOptions(file, options)));
      for (const [index, gateway] of this.#all.entries()) {
        const port = await gateway.serve();
        this.#listening.set(files[index]!, gateway);
        gateway.log.info({ port }, 'listening');
      }
    } catch (error) {
      await this.#each((gateway) => gateway.stop(0));
      throw error;
    }
  }

  /** Each by itself: what is wrong with one file keeps no other from being taken up. `only`: these files. */
  reload(only?: readonly string[]): void {
    if (this.#ended) return;
    for (const [file, gateway] of this.#listening) {
      if (only !== undefined && !only.includes(file)) continue;
      gateway.reload().catch((error: unknown) => gateway.log.error({ error }, 'the files could not be read again'));
    }
  }

  /** Lets what runs end within the configured times, or `deadlineMs`. */
  async stop(why: object, deadlineMs?: number): Promise<void> {
    this.#ended = true;
    this.#all[0]?.log.info(why, 'stopping; running requests may end, a second signal ends them');
    await this.#each((gateway) => gateway.stop(deadlineMs));
  }

  /** Others serve already: nobody is hung up on. */
  async retire(): Promise<void> {
    this.#ended = true;
    this.#all[0]?.log.info({}, 'another process has taken over; running requests may end');
    await this.#each((gateway) => gateway.retire());
  }

  async #each(work: (gateway: Gateway) => Promise<void>): Promise<void> {
    await Promise.all(this.#all.map(work));
  }
}

function bootOptions(file: string, { crew, onSaved }: ServingOptions): BootOptions {
  return {
    mode: 'serve',
    ...(crew === undefined ? {} : { crew }),
    ...(onSaved === undefined ? {} : { onSaved: () => onSaved(file) }),
  };
}

/** Two gateways with one schema would be one gateway with two opinions. */
export function refuseTwins(files: readonly string[]): void {
  const places = new Map<string, string>();
  for (const file of files) {
    const { directory, settings } = readGatewayFile(file);
    const schema = schemaOf(settings);
    const twin = places.get(`${directory} ${schema}`);
    if (twin !== undefined)
      throw new GatewayError('conflict', `${twin} and ${file} have the same schema "${schema}": give each its own.`);
    places.set(`${directory} ${schema}`, file);
  }
}
