/** The gateways of one process: started, reloaded and stopped together. */

import { GatewayError } from '../contract/errors.ts';
import type { ProcessGroup } from '../contract/process-group.ts';
import { type BootOptions, boot, type Gateway } from '../gateway/boot.ts';
import { readGatewayFile, schemaOf } from '../gateway/config.ts';

export interface ServingOptions {
  readonly processGroup?: ProcessGroup;
  /** Called when the file was saved through its gateway. */
  readonly onSaved?: (file: string) => void;
}

export class Serving {
  readonly #all: Gateway[] = [];
  /** Listening gateways by file. */
  readonly #listening = new Map<string, Gateway>();
  #ended = false;

  get hasEnded(): boolean {
    return this.#ended;
  }

  /**
   * Boots all gateways before any of them listens, so that a mistake in one file stops all. Rejects with the error; then
   * nothing is left running.
   */
  async begin(files: readonly string[], options: ServingOptions = {}): Promise<void> {
    refuseDuplicates(files);
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

  /** Reloads each gateway independently. `only`: these files. */
  reload(only?: readonly string[]): void {
    if (this.#ended) return;
    for (const [file, gateway] of this.#listening) {
      if (only !== undefined && !only.includes(file)) continue;
      gateway.reload().catch((error: unknown) => gateway.log.error({ error }, 'the files could not be read again'));
    }
  }

  /** Drains and stops within the configured times, or `deadlineMs`. */
  async stop(why: object, deadlineMs?: number): Promise<void> {
    this.#ended = true;
    this.#all[0]?.log.info(why, 'stopping; running requests may end, a second signal ends them');
    await this.#each((gateway) => gateway.stop(deadlineMs));
  }

  /** Stops after other processes have taken over, without breaking connections. */
  async retire(): Promise<void> {
    this.#ended = true;
    this.#all[0]?.log.info({}, 'another process has taken over; running requests may end');
    await this.#each((gateway) => gateway.retire());
  }

  async #each(work: (gateway: Gateway) => Promise<void>): Promise<void> {
    await Promise.all(this.#all.map(work));
  }
}

function bootOptions(file: string, { processGroup, onSaved }: ServingOptions): BootOptions {
  return {
    mode: 'serve',
    ...(processGroup === undefined ? {} : { processGroup: processGroup }),
    ...(onSaved === undefined ? {} : { onSaved: () => onSaved(file) }),
  };
}

/** Refuses two gateways with the same data directory and schema. */
export function refuseDuplicates(files: readonly string[]): void {
  const seen = new Map<string, string>();
  for (const file of files) {
    const { directory, settings } = readGatewayFile(file);
    const schema = schemaOf(settings);
    const other = seen.get(`${directory} ${schema}`);
    if (other !== undefined)
      throw new GatewayError('conflict', `${other} and ${file} have the same schema "${schema}": give each its own.`);
    seen.set(`${directory} ${schema}`, file);
  }
}
