/** What live pages are told: looked up once for all of them, and told to those for whom it has changed. */
import type { Clock, Host } from '../../core/contract.ts';
import { tellSums } from './api/request-rows.ts';
import { usdText } from './api/words.ts';
import { moneyDesk, requestDesk, taskDesk } from './desks.ts';

/** As much of a client as is needed to know what to tell it. */
export interface Watcher {
  readonly accountId: string | undefined;
  readonly told: Map<string, string>;
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
      const { accountId } = watcher;
      const messages: [string, object | undefined][] =
        accountId === undefined
          ? [
              ['monitor', monitor],
              ['tasks', tasks?.all],
            ]
          : [
              ['balance', balances.get(accountId)],
              ['tasks', tasks?.of(accountId)],
            ];
      return messages.flatMap(([topic, told]) => news(watcher, topic, told));
    });
  }

  async #balances(accountIds: readonly string[]): Promise<Map<string, object>> {
    if (accountIds.length === 0) return new Map();
    const found = await this.#host.find(moneyDesk)?.balances(accountIds);
    return new Map([...(found ?? [])].map(([id, balance]) => [id, { balance: usdText(balance) }]));
  }

  /** The last minute, of all traffic. */
  async #monitor(): Promise<object | undefined> {
    const until = this.#clock.now() + 1;
    const sums = await this.#host.find(requestDesk)?.sums({ from: until - lastMs, until });
    return sums === undefined ? undefined : { lastMinute: tellSums(sums) };
  }

  /** Tasks that are not done; one that leaves the list is news too. */
  async #tasks() {
    const desk = this.#host.find(taskDesk);
    if (desk === undefined) return undefined;
    const page = await desk.list({ states: ['queued', 'running'] }, { limit: mostTasks }, undefined);
    const tell = (rows: typeof page.rows) => ({
      active: rows.map(({ id, state, progress }) => ({ id, state, progress })),
    });
    return {
      all: tell(page.rows),
      of: (accountId: string) => tell(page.rows.filter((row) => row.accountId === accountId)),
    };
  }
}

function news<W extends Watcher>(watcher: W, topic: string, told: object | undefined): [W, string][] {
  if (told === undefined) return [];
  const message = JSON.stringify({ topic, ...told });
  if (watcher.told.get(topic) === message) return [];
  watcher.told.set(topic, message);
  return [[watcher, message]];
}
