/** The log lines about one exchange: each has its id and what the plugins know of it. */
import type { Exchange, PluginInstance } from '../contract/contract.ts';
import type { Log, RequestLog } from '../contract/host-tools.ts';

/** What all exchanges of a server share. */
export interface ExchangeLogs {
  readonly log: Log;
  readonly sources: readonly Pick<PluginInstance, 'logFields'>[];
}

export class ExchangeLog implements RequestLog {
  readonly #exchange: Exchange;
  readonly #log: Log;
  readonly #sources: ExchangeLogs['sources'];

  constructor(exchange: Exchange, { log, sources }: ExchangeLogs) {
    this.#exchange = exchange;
    this.#log = log;
    this.#sources = sources;
  }

  debug(fields: object, message: string): void {
    this.#log.debug(this.#named(fields), message);
  }

  info(fields: object, message: string): void {
    this.#log.info(this.#named(fields), message);
  }

  warn(fields: object, message: string): void {
    this.#log.warn(this.#named(fields), message);
  }

  error(fields: object, message: string): void {
    this.#log.error(this.#named(fields), message);
  }

  /** A plugin's fault in this must not reach the request. */
  fields(): Record<string, string> {
    const fields: Record<string, string> = { request_id: this.#exchange.id };
    for (const source of this.#sources) {
      try {
        Object.assign(fields, source.logFields?.(this.#exchange));
      } catch {
        // The line is written without them.
      }
    }
    return fields;
  }

  #named(fields: object): object {
    return { ...this.fields(), ...fields };
  }
}
