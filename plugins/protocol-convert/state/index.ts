/** The memory of earlier answers, put together: what the plugin sets up, starts and stops. */
import type { Endpoint, Host } from '../../../core/contract.ts';
import { duration, size, z } from '../../../core/schema.ts';
import { database, providers } from '../../../core/vocabulary.ts';
import type { Protocol } from '../protocol.ts';
import { stateEndpoints } from './endpoints.ts';
import { Keeper } from './keeper.ts';
import { Resolver } from './resolver.ts';
import { ResponseStore } from './store.ts';
import { Upstreams } from './upstreams.ts';

const flushIntervalMs = 250;
const expiryIntervalMs = 600_000;
const mebibyte = 2 ** 20;

export const stateSchema = z.strictObject({
  keep: duration()
    .prefault('24h')
    .describe('How long answers of the responses protocol can be continued, read and listed; 0s: they are not kept.'),
  max_bytes: size()
    .prefault(4 * mebibyte)
    .describe('Largest conversation, as JSON, that is kept; the answer of a larger one cannot be continued by its id.'),
  memory: size()
    .prefault(64 * mebibyte)
    .describe('Memory for answers that were kept or asked for last; without a database no others are kept.'),
});

export type StateConfig = z.output<typeof stateSchema>;

export interface ResponseState {
  readonly endpoints: readonly Endpoint[];
  readonly resolver: Resolver;
  readonly keeper: Keeper;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** `protocol`: the one whose clients come back to earlier answers. */
export function openState(host: Host, config: StateConfig, protocol: Protocol): ResponseState {
  const { clock, log } = host;
  const store = new ResponseStore({ clock, log, memoryBytes: config.memory });
  const upstreams = new Upstreams({ providers: () => host.find(providers), protocol, clock });
  return {
    endpoints: stateEndpoints({ store, upstreams, protocol }),
    resolver: new Resolver(store),
    keeper: new Keeper({ store, clock, log, keepMs: config.keep, maxBytes: config.max_bytes }),
    async start() {
      const kept = host.find(database);
      if (kept === undefined) return;
      await kept.migrate('protocol-convert', new URL('../migrations/', import.meta.url));
      store.useDatabase(kept);
      host.every(flushIntervalMs, 'write kept responses', () => store.flush());
      host.every(expiryIntervalMs, 'delete expired responses', () => store.deleteExpired());
    },
    stop: () => store.flush(),
  };
}
