/** A request log of its own on a database of its own, and exchanges that pass through it. */
import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Outcome, PluginInstance } from '../../../../core/contract/contract.ts';
import { type Accounts, accounts, caller } from '../../../../plugins/common/domain/accounts.ts';
import { type RecordedBodies, recordedBodies } from '../../../../plugins/common/domain/admin/recorded-bodies.ts';
import { type Call, call } from '../../../../plugins/common/domain/calls.ts';
import { database } from '../../../../plugins/common/domain/database.ts';
import plugin from '../../../../plugins/request-log/index.ts';
import { beatMs } from '../../../../plugins/request-log/queue.ts';
import { openDatabase, type TestDatabase } from '../../../helpers/database.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, okAnswer, setUp } from '../../../helpers/fakes.ts';

export const alice = '00000000-0000-4000-8000-00000000000a';
export const bob = '00000000-0000-4000-8000-00000000000b';

interface Passing {
  account?: string | undefined;
  key?: string;
  model?: string;
  request?: string | Uint8Array;
  requestType?: string;
  answer?: readonly (string | Uint8Array)[];
  answerHeaders?: Record<string, string>;
  outcome?: Partial<Outcome>;
  /** Thrown inside, instead of an answer. */
  error?: Error;
}

export interface Stage {
  readonly host: FakeHost;
  readonly store: TestDatabase;
  readonly part: PluginInstance;
  readonly bodies: RecordedBodies;
  /** Sends an exchange through, to its end; resolves with it. */
  pass(passing?: Passing): Promise<FakeExchange>;
  /** Runs what goes on every so often. */
  run(name: string): Promise<void>;
  flush(): Promise<void>;
  count(): Promise<number>;
}

export async function startStage(section: object, given?: TestDatabase): Promise<Stage> {
  const store = given ?? (await openDatabase({ plugins: ['request-log'] }));
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  host.provide(accounts, { find: async (name: string) => account(name) } as Accounts);
  const part = await setUp(plugin, host, section);
  await part.lifecycle?.start?.();
  const run = async (name: string) => {
    await host.intervals.find((interval) => interval.name === name)!.work();
  };
  return {
    host,
    store,
    part,
    bodies: host.get(recordedBodies),
    run,
    flush: async () => {
      host.advance(beatMs);
      await run('write bodies');
    },
    async pass(passing = {}) {
      const exchange = exchangeOf(passing);
      const answered = part.handle!(exchange, async () => {
        if (passing.error !== undefined) throw passing.error;
        return okAnswer;
      }).catch((error: unknown) => {
        if (error !== passing.error) throw error;
      });
      await answered;
      const chunks = (passing.answer ?? ['{"ok":true}']).map((chunk) => Buffer.from(chunk));
      exchange.watcher?.head(passing.outcome?.status ?? 200, {
        'content-type': 'application/json',
        ...passing.answerHeaders,
      });
      for (const chunk of chunks) {
        exchange.watcher?.chunk(chunk);
        // The one that lent the bytes takes them back.
        chunk.fill(0x3f);
      }
      await exchange.end({ bytesOut: chunks.reduce((sum, { length }) => sum + length, 0), ...passing.outcome });
      return exchange;
    },
    async count() {
      const rows = await store.orm.execute(
        sql`select count(*)::int as count from ${sql.identifier(store.schema)}.request_bodies`,
      );
      return Number((rows as unknown as { count: number }[])[0]!.count);
    },
  };
}

const account = (name: string) =>
  name === 'alice' ? { id: alice, name, plan: 'free', createdAt: new Date(0) } : undefined;

function exchangeOf({
  account: accountId = alice,
  key = randomUUID(),
  model,
  request,
  requestType,
}: Passing): FakeExchange {
  const body = Buffer.from(request ?? '{"model":"m"}');
  const exchange = fakeExchange({
    id: randomUUID(),
    request: {
      body,
      bodyBytes: body.length,
      headers: { 'content-type': requestType ?? 'application/json; charset=utf-8' },
    },
  });
  exchange.set(caller, { accountId, keyId: key, plan: 'free', models: undefined });
  if (model !== undefined) exchange.set(call, { model } as Call);
  return exchange;
}
