/** The store of earlier answers and issued ids: setup, start and stop. */
import type { Endpoint, Host } from '../../../core/contract/contract.ts';
import { database } from '../../common/domain/database.ts';
import { providers } from '../../common/domain/upstreams.ts';
import type { Protocol } from '../../common/wire/protocols.ts';
import type { StateConfig } from '../config.ts';
import { conversationEndpoints } from './conversations/endpoints.ts';
import { ConversationStore } from './conversations/store.ts';
import { stateEndpoints } from './endpoints.ts';
import { IdGuard } from './id-guard.ts';
import { IssuedIds } from './issued-ids.ts';
import { Resolver } from './resolver.ts';
import { ResponseRecorder } from './response-recorder.ts';
import { ResponseStore } from './store.ts';
import { Upstreams } from './upstreams.ts';

const flushIntervalMs = 250;
const expiryIntervalMs = 600_000;
const mebibyte = 2 ** 20;
const issuedMemoryBytes = 16 * mebibyte;

export interface ResponseState {
  readonly endpoints: readonly Endpoint[];
  readonly resolver: Resolver;
  readonly keeper: ResponseRecorder;
  readonly ids: IdGuard;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** `protocol`: the protocol with references to earlier answers. */
export function openState(host: Host, config: StateConfig, protocol: Protocol): ResponseState {
  const { clock, log, random } = host;
  const store = new ResponseStore({ clock, log, memoryBytes: config.memory });
  const conversations = new ConversationStore({
    clock,
    log,
    random,
    keepMs: config.keep,
    maxBytes: config.max_bytes,
    memoryBytes: config.memory,
  });
  const issued = new IssuedIds({ clock, log, memoryBytes: issuedMemoryBytes });
  const upstreams = new Upstreams({ providers: () => host.find(providers), protocol, clock });
  return {
    endpoints: [...stateEndpoints({ store, upstreams, protocol }), ...conversationEndpoints(conversations, protocol)],
    resolver: new Resolver(store, conversations),
    ids: new IdGuard({ store: issued, providers: () => host.find(providers), clock, keepMs: config.keep_ids }),
    keeper: new ResponseRecorder({ store, conversations, clock, keepMs: config.keep, maxBytes: config.max_bytes }),
    async start() {
      const kept = host.find(database);
      if (kept === undefined) return;
      await kept.migrate('protocol-convert', new URL('../migrations/', import.meta.url));
      store.useDatabase(kept);
      issued.useDatabase(kept);
      conversations.useDatabase(kept);
      host.every(flushIntervalMs, 'write kept responses', async () => {
        const stores = [store, issued, conversations].filter(({ waits }) => waits);
        for (const each of stores) await each.flush();
        return stores.length === 0 ? 'idle' : undefined;
      });
      host.every(expiryIntervalMs, 'delete expired responses', async () => {
        await store.deleteExpired();
        await issued.deleteExpired();
        await conversations.deleteExpired();
      });
    },
    async stop() {
      await store.flush();
      await issued.flush();
      await conversations.flush();
    },
  };
}
