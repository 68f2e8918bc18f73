/** The messages of live pages: queried once for all of them, and sent to those for which they have changed. */

import type { Host } from '../../core/contract/contract.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { requestFilter, sumsJson } from './api/request-rows.ts';
import { usdText } from './api/schemas.ts';
import { ledgerQueries, requestQueries, taskAdmin } from './services.ts';

/** What a member's role includes. */
export interface Sees {
  readonly balance: boolean;
  readonly tasks: boolean;
}

/** The part of a client that decides its messages. */
export interface Watcher {
  readonly accountId: string | undefined;
  readonly sees: Sees;
  /** The last message of each topic. */
  readonly sent: Map<string, string>;
}

const lastMs = 60_000;
const mostTasks = 500;

export class Pulse {
  readonly #host: Pick<Host, 'find'>;
  readonly #clock: Clock;

  constructor(host: Pick<Host, 'find'>, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
  }

  async beat<W extends Watcher>(watchers: readonly W[]): Promise<[W, string][]> {
    const accountIds = [...new Set(watchers.flatMap(({ accountId }) => (accountId === undefined ? [] : [accountId])))];
    const isWatched = watchers.some(({ accountId }) => accountId === undefined);
    const [balances, monitor, tasks] = await Promise.all([
      this.#balances(accountIds),
      isWatched ? this.#monitor() : undefined,
      this.#tasks(),
    ]);
    return watchers.flatMap((watcher) => {
      const { accountId, sees } = watcher;
      const messages: [string, object | undefined][] =
        accountId === undefined
          ? [
              ['monitor', monitor],
              ['tasks', tasks?.all],
            ]
          : [
              ['balance', sees.balance ? balances.get(accountId) : undefined],
              ['tasks', sees.tasks ? tasks?.of(accountId) : undefined],
            ];
      return messages.flatMap(([topic, content]) => changed(watcher, topic, content));
    });
  }

  async #balances(accountIds: readonly string[]): Promise<Map<string, object>> {
    if (accountIds.length === 0) return new Map();
    const found = await this.#host.find(ledgerQueries)?.balances(accountIds);
    return new Map([...(found ?? [])].map(([id, balance]) => [id, { balance: usdText(balance) }]));
  }

  /** The last minute, of all traffic. */
  async #monitor(): Promise<object | undefined> {
    const until = this.#clock.now() + 1;
    const sums = await this.#host
      .find(requestQueries)
      ?.sums(requestFilter({}, { from: until - lastMs, until }, undefined));
    return sums === undefined ? undefined : { lastMinute: sumsJson(sums) };
  }

  /** Tasks that are not done; a task that leaves the list is a change too. */
  async #tasks() {
    const tasks = this.#host.find(taskAdmin);
    if (tasks === undefined) return undefined;
    const page = await tasks.list({ states: ['queued', 'running'] }, { limit: mostTasks }, undefined);
    const message = (rows: typeof page.rows) => ({
      active: rows.map(({ id, state, progress }) => ({ id, state, progress })),
    });
    return {
      all: message(page.rows),
      of: (accountId: string) => message(page.rows.filter((row) => row.accountId === accountId)),
    };
  }
}

function changed<W extends Watcher>(watcher: W, topic: string, content: object | undefined): [W, string][] {
  if (content === undefined) return [];
  const message = JSON.stringify({ topic, ...content });
  if (watcher.sent.get(topic) === message) return [];
  watcher.sent.set(topic, message);
  return [[watcher, message]];
}
