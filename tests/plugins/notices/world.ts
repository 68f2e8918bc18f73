/** A plugin of notices over a real database, with made-up accounts, a mailbox and a receiver of webhooks. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'drizzle-orm';
import { consolePages, mailers } from '../../../plugins/common/domain/admin/alerts.ts';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import {
  accountEnds,
  accountPeople,
  movedAccounts,
  noticeAdmin,
  noticeSender,
  type StandingAccount,
} from '../../../plugins/common/domain/admin/notices.ts';
import { type PricedModel, priceQueries } from '../../../plugins/common/domain/admin/prices.ts';
import { requestQueries } from '../../../plugins/common/domain/admin/requests.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { pool, type WindowView } from '../../../plugins/common/domain/ledger.ts';
import { type Money, parseRatio, parseUsd, type Ratio } from '../../../plugins/common/domain/money.ts';
import {
  type CreditLineAdmin,
  type CreditMonth,
  creditLineAdmin,
} from '../../../plugins/common/domain/organizations/credit-lines.ts';
import { plans } from '../../../plugins/common/domain/plans.ts';
import { tableOf } from '../../../plugins/common/kit/sql.ts';
import notices from '../../../plugins/notices/index.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { type FakeHost, fakeHost, setUp } from '../../helpers/fakes.ts';

export const ada = '01980000-0000-7000-8000-000000000001';
export const bob = '01980000-0000-7000-8000-000000000002';
export const eve = '01980000-0000-7000-8000-000000000003';
const minute = 60_000;
const atOnce = 2;

/** What the gateway's other plugins would say. */
interface Facts {
  balances: Map<string, Money>;
  windows: WindowView[];
  cap: { amount: Money; spent: Money } | undefined;
  keyEndsAt: number | undefined;
  /** Since when a key has its secret. */
  keySince: number | undefined;
  planEndsAt: number | undefined;
  /** Months of ada's credit line that have ended and are not paid. */
  unpaid: CreditMonth[];
  models: PricedModel[];
  /** Accounts that have used the models. */
  users: string[];
  /** In the order of their ids. */
  accounts: StandingAccount[];
  ratio: Ratio;
  /** Accounts in the order of their movements, of which two are read at once; absent: all that have a balance, at each look. */
  moved?: readonly string[];
  /** Requests so far. */
  written: number;
}
interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

interface Node {
  readonly host: FakeHost;
  /** Looks for crossings, and sends what is due. */
  round(): Promise<void>;
}

export async function openWorld(section: object = {}) {
  const store = await openDatabase({ plugins: ['notices'] });
  const facts: Facts = {
    balances: new Map(),
    ...{
      windows: [],
      cap: undefined,
      keyEndsAt: undefined,
      keySince: undefined,
      planEndsAt: undefined,
      unpaid: [],
      models: [],
      users: [],
      written: 0,
    },
    ...{ accounts: [], ratio: parseRatio('1') },
  };
  // It has looked before: the first look of all only notes where movements end.
  await store.orm.execute(sql`update ${tableOf(store, 'notice_look')} set movement = 0`);
  const mails: Mail[] = [];
  const clock = fakeHost();
  const node = () => openNode(store, clock, facts, mails, section);
  const first = await node();
  return {
    ...{ store, facts, mails, clock, node },
    admin: first.host.get(noticeAdmin),
    sender: first.host.get(noticeSender),
    round: first.round,
    host: first.host,
    close: () => store.close(),
  };
}

async function openNode(
  store: TestDatabase,
  { clock, advance }: FakeHost,
  facts: Facts,
  mails: Mail[],
  section: object,
): Promise<Node> {
  const random = { bytes: randomBytes, fraction: Math.random };
  const host: FakeHost = { ...fakeHost({ schema: store.schema }), clock, advance, random };
  host.provide(database, store);
  let movement = 0n;
  host.provide(movedAccounts, {
    latest: async () => 0n,
    async behind(after) {
      const { moved } = facts;
      if (moved === undefined) return { accountIds: [...facts.balances.keys()], upTo: ++movement, isFull: false };
      const from = Number(after);
      const found = moved.slice(from, from + atOnce);
      const upTo = BigInt(from + found.length);
      return { accountIds: [...new Set(found)], upTo, isFull: found.length === atOnce };
    },
    balances: async (ids) => new Map(ids.map((id) => [id, facts.balances.get(id)!])),
    used: async (ids, models) =>
      new Map(ids.filter((id) => facts.users.includes(id)).map((id) => [id, new Set(models)])),
  });
  host.provide(accountPeople, {
    mailsOf: async (ids) => new Map(ids.map((id) => [id, [`${nameOf(id)}@example.test`]])),
  });
  host.provide(consolePages, { address: (path) => `https://gateway.test/console${path}` });
  host.provide(mailers, { find: () => ({ send: async (mail) => void mails.push(mail) }) });
  const unpaid = (after: string) => (after === '' ? [{ accountId: ada, months: facts.unpaid }] : []);
  host.provide(creditLineAdmin, {
    unpaid: async (after) => unpaid(after),
  } as Partial<CreditLineAdmin> as CreditLineAdmin);
  provideEnds(host, facts);
  provideMoney(host, facts);
  const part = await setUp(notices, host, section as never);
  await part.lifecycle!.start!();
  return {
    host,
    async round() {
      advance(minute);
      facts.written++;
      for (const { name, work } of host.intervals) if (/notices$/.test(name) && !/old/.test(name)) await work();
    },
  };
}

const nameOf = (id: string) => ({ [ada]: 'ada', [bob]: 'bob' })[id] ?? 'eve';

function provideEnds(host: FakeHost, facts: Facts): void {
  const within = (endsAt: number | undefined, ms: number) => endsAt !== undefined && endsAt <= host.clock.now() + ms;
  host.provide(accountEnds, {
    cappedKeys: async (ids) =>
      facts.cap === undefined || !ids.includes(ada)
        ? []
        : [{ accountId: ada, keyId: 'k1', name: 'build', cap: { amount: facts.cap.amount, every: 'day' } }],
    endingKeys: async (ms, after) =>
      within(facts.keyEndsAt, ms) && after < ada
        ? [{ accountId: ada, keyId: 'k1', name: 'build', prefix: 'sk-1', endsAt: facts.keyEndsAt! }]
        : [],
    oldKeys: async (leastMs, after) => {
      const { keySince: since } = facts;
      if (since === undefined || since > host.clock.now() - leastMs || after >= ada) return [];
      return [{ accountId: ada, keyId: 'k1', name: 'build', prefix: 'sk-1', since }];
    },
    endingPlans: async (ms, after) =>
      within(facts.planEndsAt, ms) && after < ada ? [{ accountId: ada, plan: 'pro', endsAt: facts.planEndsAt! }] : [],
    standing: async (after, most, only) =>
      facts.accounts
        .filter(({ accountId, multiplier }) => accountId > after && (only === undefined || multiplier !== undefined))
        .slice(0, most),
  });
}

function provideMoney(host: FakeHost, facts: Facts): void {
  host.provide(pool, { view: async () => ({ windows: facts.windows }) } as never);
  host.provide(plans, {
    default: 'pro',
    has: (name: string) => name === 'pro',
    terms: () => ({ multiplier: facts.ratio }),
    list: () => [{ name: 'pro', limits: {}, windows: { week: parseUsd('10') } }],
    offer: () => ({ renew: true }),
  } as never);
  host.provide(ledgerQueries, { spend: async () => [{ group: 'k1', cost: facts.cap?.spent }] } as never);
  host.provide(priceQueries, { list: () => facts.models } as never);
  host.provide(requestQueries, { written: () => facts.written } as never);
}

/** Answers webhooks with `status`, and keeps them. */
export async function openReceiver() {
  const got: { headers: Record<string, string>; text: string }[] = [];
  const answer = { status: 204 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      got.push({ headers: request.headers as Record<string, string>, text: Buffer.concat(chunks).toString() });
      response.writeHead(answer.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/notices`;
  return { got, answer, url, close: () => server.close() };
}
