/** The access token of one connection: kept for a moment, and replaced by one process of all before it ends or when the server refuses it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Host } from '../../../core/contract/contract.ts';
import { Unavailable } from '../errors.ts';
import type { TokenSource } from '../tokens.ts';
import type { Flow, Server } from './flow.ts';
import type { Connection, ConnectionStore } from './store.ts';

/** A change by another process is seen after so long at most. */
const keptMs = 10_000;
/** A token that has not ended is replaced so long before. */
const earlyMs = 30_000;
/** Another process that asks for tokens is waited for, longer than its lease lasts. */
const [waitMs, mostWaits] = [100, 180];

export interface ConnectedParts {
  readonly host: Host;
  readonly store: ConnectionStore;
  readonly flow: Flow;
  readonly name: string;
  readonly server: Server;
  readonly owner: string;
  /** Where people connect it. */
  readonly page: string;
}

export class ConnectedTokens implements TokenSource {
  readonly #parts: ConnectedParts;
  #kept: { readonly header: string; readonly until: number } | undefined;
  #asking: Promise<string> | undefined;
  #refused: string | undefined;

  constructor(parts: ConnectedParts) {
    this.#parts = parts;
  }

  /** The header `authorization`. Rejects with Unavailable. */
  async header(): Promise<string> {
    if (this.#kept !== undefined && this.#parts.host.clock.monotonic() < this.#kept.until) return this.#kept.header;
    this.#asking ??= this.#found().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** The server takes it no more. */
  refused(header: string): void {
    if (this.#kept?.header !== header) return;
    this.#kept = undefined;
    this.#refused = header;
  }

  /** The next request reads the row. */
  forget(): void {
    this.#kept = undefined;
  }

  async #found(): Promise<string> {
    const { store, name, owner, host } = this.#parts;
    for (let waits = 0; waits < mostWaits; waits++) {
      const connection = await store.read(name, owner);
      if (connection?.grant === undefined) throw this.#missing();
      const { access, refresh, until = Number.POSITIVE_INFINITY } = connection.grant;
      const header = `Bearer ${access}`;
      const leftMs = until - host.clock.now();
      // One that cannot be replaced is used up to its end.
      if (header !== this.#refused && leftMs > (refresh === undefined ? 0 : earlyMs)) return this.#keep(header, leftMs);
      if (await store.lease(name, owner, connection.version)) await this.#renew(connection);
      else await delay(waitMs);
    }
    throw new Unavailable('The server of this tool cannot be reached now.', false);
  }

  async #renew({ grant, version }: Connection): Promise<void> {
    const { store, flow, name, owner, server, host } = this.#parts;
    try {
      const renewed = grant?.refresh === undefined ? null : await flow.renew(server, grant);
      await store.renewed(name, owner, version, renewed);
    } catch (error) {
      host.log.warn({ server: name, error }, 'an access token for a tool server was not renewed');
      await store.renewed(name, owner, version, undefined);
      // A service that is away for a moment ends no connection.
      throw new Unavailable('The server of this tool cannot be reached now.', false, error);
    }
  }

  #keep(header: string, leftMs: number): string {
    const until = this.#parts.host.clock.monotonic() + Math.min(keptMs, leftMs);
    this.#kept = { header, until };
    return header;
  }

  #missing(): Unavailable {
    const { name, page } = this.#parts;
    return new Unavailable(`This server is not connected: connect "${name}" at ${page}.`, false);
  }
}
