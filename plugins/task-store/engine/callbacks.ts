/** Delivers signed callbacks about final tasks through the guarded client, with retries until the receiver acknowledges. */
import { createHmac } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { Clock, Log, Random } from '../../../core/contract/host-tools.ts';
import type { RotatedSecret } from '../../../core/contract/secret.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { type GuardedClient, Unfetchable } from '../../../core/tools/guarded-fetch.ts';
import type { Database } from '../../common/domain/database.ts';
import { signedHeaders } from '../../common/kit/fetch/webhooks.ts';
import { backOff, givenBack, Leases } from '../../common/kit/jobs/leases.ts';
import { inMs, rowsOf, tableOf } from '../../common/kit/sql.ts';
import { orderFields } from '../../common/wire/trace.ts';
import type { StoredTask, TaskRows } from './rows.ts';

const atOnce = 8;
const timeoutMs = 15_000;
const leaseMs = 60_000;
/** About a day in all. */
const mostTries = 30;
const longestPauseMs = 3_600_000;
const gone = 410;

export interface CallbackTools {
  readonly store: Database;
  readonly rows: TaskRows;
  readonly post: (url: string, body: string, headers: Record<string, string>, signal: AbortSignal) => Promise<number>;
  /** The final task in the client's protocol. */
  readonly render: (task: StoredTask) => JsonObject;
  /** Secrets of this gateway; each account's own secrets derive from them. All sign, the first one is shown. */
  readonly secrets: readonly string[];
  /** Before the second attempt. */
  readonly firstPauseMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

interface Row {
  readonly id: string;
  readonly task_id: string;
  readonly url: string;
  readonly tries: number;
}

/** `whsec_…`, as https://www.standardwebhooks.com defines it: the secret with which this account verifies its callbacks. */
export function callbackSecret(secret: string, accountId: string): string {
  return `whsec_${createHmac('sha256', secret).update(`callbacks of ${accountId}`).digest('base64')}`;
}

export class Callbacks {
  readonly #tools: CallbackTools;
  readonly #leases: Leases<Row>;
  #running: Promise<void> | undefined;

  constructor(tools: CallbackTools) {
    this.#tools = tools;
    const columns = sql`taken.id::text as id, task_id, url, tries`;
    this.#leases = new Leases({ runner: tools.store.orm, table: tableOf(tools.store, 'task_callbacks'), columns });
  }

  /** Delivers due callbacks, several at once; runs do not overlap. */
  turn(): Promise<void> {
    this.#running ??= this.#deliverDue().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #deliverDue(): Promise<void> {
    const lease = this.#tools.random.bytes(12).toString('hex');
    const due = await this.#leases.take(lease, atOnce, leaseMs);
    await Promise.all(due.map((row) => this.#deliver(row, lease)));
  }

  async #deliver(row: Row, lease: string): Promise<void> {
    const { rows, log } = this.#tools;
    const task = await rows.find(row.task_id);
    if (task === undefined) return;
    const outcome = await this.#post(row, task);
    if (outcome === 'delivered') {
      await this.#write(row, lease, sql`due_at = null, delivered_at = now(), last_error = null`);
      return;
    }
    const { failure, final } = outcome;
    const isLast = final || row.tries + 1 >= mostTries;
    if (isLast) log.warn({ ...orderFields(task), task: row.task_id, failure }, 'a callback failed for the last time');
    const { firstPauseMs, random } = this.#tools;
    const due = isLast ? sql`null` : inMs(backOff(row.tries, firstPauseMs, longestPauseMs, random));
    await this.#write(row, lease, sql`due_at = ${due}, last_error = ${failure.slice(0, 300)}`);
  }

  async #post(row: Row, task: StoredTask): Promise<'delivered' | { failure: string; final: boolean }> {
    const { post, render: word, secrets, clock } = this.#tools;
    const at = new Date(clock.now());
    const named = { type: `task.${task.state}`, timestamp: at.toISOString(), request_id: task.requestId };
    const body = JSON.stringify({ ...named, data: word(task) });
    const own = secrets.map((secret) => callbackSecret(secret, task.accountId));
    const headers = { 'content-type': 'application/json', ...signedHeaders(own, row.id, at, body) };
    try {
      const status = await post(row.url, body, headers, AbortSignal.timeout(timeoutMs));
      if (status >= 200 && status < 300) return 'delivered';
      return { failure: `status ${status}`, final: status === gone };
    } catch (error) {
      return { failure: error instanceof Error ? error.message : 'it failed', final: false };
    }
  }

  async #write({ id }: Row, lease: string, changes: SQL): Promise<void> {
    await this.#leases.change(id, lease, sql`tries = tries + 1, ${givenBack}, ${changes}`);
  }
}

/**
 * Throws invalid_request for an address that the guard would always refuse; what a host name resolves to is checked on
 * delivery.
 */
export function checkCallback(client: GuardedClient, address: string): void {
  try {
    client.check(address);
  } catch (error) {
    if (!(error instanceof Unfetchable)) throw error;
    throw invalid(`The address in "callback_url" cannot be called: ${error.message}.`, 'callback_url');
  }
}

/** The gateway's secrets: those of the configuration, and the one that was generated once and stored while there were none. */
export async function callbackKeys(
  { orm, schema }: Database,
  configured: readonly string[],
  random: Random,
): Promise<readonly string[]> {
  const table = sql`${sql.identifier(schema)}.task_secret`;
  if (configured.length === 0)
    await orm.execute(
      sql`insert into ${table} (secret) values (${random.bytes(32).toString('base64url')}) on conflict do nothing`,
    );
  const rows = await rowsOf<{ secret: string }>(orm, sql`select secret from ${table}`);
  return [...new Set([...configured, ...rows.map(({ secret }) => secret)])];
}

export function rotatedCallbacks({ orm, schema }: Database, configured: readonly string[]): RotatedSecret {
  const table = sql`${sql.identifier(schema)}.task_secret`;
  return {
    setting: 'task-store.callbacks.secret',
    uses: 'signatures of callbacks, by an own secret of each account',
    secrets: configured.length,
    async rotate(givesUp) {
      if (givesUp && configured.length > 0) await orm.execute(sql`delete from ${table}`);
      const advice =
        'each secret signs: the others can be removed when every receiver has the one that "callbacks secret ACCOUNT" shows first';
      return { done: 0, left: 0, advice };
    },
  };
}
