/** Usage by key: what the account of a key has used and spent, from the rollups, in the shapes that clients query. */
import { definePlugin, type Endpoint, type Exchange, type Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { PublicOperation } from '../../core/contract/public-operation.ts';
import { z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { pool } from '../common/domain/ledger.ts';
import { catalog } from '../common/domain/models.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { reportPage } from './answers.ts';
import { balance, type Subject, spending, subscription, usedBetween } from './balance.ts';
import { reportQuery } from './query.ts';
import { type Report, reports } from './reports.ts';

/** Queries of one account that run at once in this process. */
const mostAtOnce = 16;

export default definePlugin({
  name: 'usage',
  config: z.strictObject({}),
  services: { requires: [ledgerQueries, catalog], optional: [pool] },
  requires: [caller],
  setup(host) {
    const running = new Map<string, number>();
    const answering =
      (answer: (exchange: Exchange, subject: Subject) => Promise<object>) =>
      async (exchange: Exchange): Promise<Answer> => {
        const { accountId } = exchange.get(caller);
        const count = running.get(accountId) ?? 0;
        if (count >= mostAtOnce) throw tooMany();
        running.set(accountId, count + 1);
        exchange.defer(() => leave(running, accountId));
        const subject = {
          ...{ ledger: host.get(ledgerQueries), pool: host.find(pool) },
          ...{ accountId, now: host.clock.now() },
        };
        const body = JSON.stringify(await answer(exchange, subject));
        return { status: 200, headers: { 'content-type': 'application/json', 'cache-control': 'no-store' }, body };
      };
    return { endpoints: endpointsOf(host, answering), addresses: { pathPrefixes: ['/v1'] } };
  },
});

type Answering = (
  answer: (exchange: Exchange, subject: Subject) => Promise<object>,
) => (exchange: Exchange) => Promise<Answer>;

function endpointsOf(host: Host, answering: Answering): Endpoint[] {
  const get = (
    path: string,
    describes: PublicOperation,
    answer: (exchange: Exchange, subject: Subject) => Promise<object>,
  ): Endpoint => ({
    method: 'GET',
    path,
    operation: 'usage',
    describes: [describes],
    body: 'none',
    handle: answering(answer),
    renderError: envelopeAnswer,
  });
  const ofReport = (report: Report) =>
    get(
      `/v1/organization${report.path}`,
      { summary: summaryOf(report), query: reportParameters },
      (exchange, subject) => answerReport(host, report, exchange, subject),
    );
  return [
    ...reports.map(ofReport),
    get('/v1/balance', { summary: 'Returns the balance of the account.' }, (_exchange, subject) => balance(subject)),
    get(
      '/v1/usage',
      { summary: 'Returns the balance, and the spend of today and of this month.', query: tagParameters },
      ({ request }, subject) => spending(subject, request.query),
    ),
    ...['', '/v1'].flatMap((prefix) => [
      get(
        `${prefix}/dashboard/billing/subscription`,
        { summary: 'Returns the balance as a limit.' },
        (_exchange, subject) => subscription(subject),
      ),
      get(
        `${prefix}/dashboard/billing/usage`,
        { summary: 'Returns the spend between two days.', query: dayParameters },
        ({ request }, subject) => usedBetween(subject, request.query),
      ),
    ]),
  ];
}

function summaryOf({ path }: Report): string {
  return path === '/costs'
    ? 'Returns the charges by days.'
    : `Returns the usage of ${path.slice('/usage/'.length).replaceAll('_', ' ')}, by time.`;
}

const reportParameters = {
  start_time: 'Beginning, in Unix seconds; required.',
  end_time: 'End, in Unix seconds; absent: now.',
  bucket_width: 'Width of a bucket: 1m, 1h or 1d.',
  limit: 'Buckets of a page.',
  page: 'The "next_page" of the page before.',
  group_by: 'Groups, separated by commas; tag:team for the values of a tag.',
  api_key_ids: 'Only what these keys have used.',
  project_ids: 'Only calls that were made in these projects.',
  user_ids: 'Only calls by keys of these people.',
  tags: 'Only calls with all of these tags, as team=search,env=prod.',
};
const tagParameters = {
  tags: 'Also what calls with all of these tags came to, as team=search,env=prod.',
  group_by: 'Also what calls came to by the values of a tag, as tag:team.',
};
const dayParameters = {
  start_date: 'First day, as 2026-01-31.',
  end_date: 'The day after the last one.',
};

const columnOf = {
  ...({ model: 'model', api_key_id: 'key', tag: 'tag' } as const),
  ...({ project_id: 'project', user_id: 'person' } as const),
};

async function answerReport(host: Host, report: Report, { request }: Exchange, subject: Subject): Promise<object> {
  const query = reportQuery(request.query, report.form, subject.now);
  const { bounds, keyIds, models, projectIds, personIds, groups, tags } = query;
  const by = [...new Set(['model' as const, ...groups.map((name) => columnOf[name])])];
  const wanted = { accountId: subject.accountId, bounds, keyIds, models, projectIds, personIds, tags, by };
  const cells = bounds.length < 2 ? [] : await subject.ledger.spendTable(wanted);
  const known = host.get(catalog);
  // What the catalogue does not name any more was most likely a chat model.
  return reportPage(report, query, cells, (model) => known.find(model)?.kind ?? 'chat');
}

function leave(running: Map<string, number>, accountId: string): void {
  const count = running.get(accountId)! - 1;
  if (count === 0) running.delete(accountId);
  else running.set(accountId, count);
}

function tooMany(): GatewayError {
  return new GatewayError('rate_limited', `At most ${mostAtOnce} queries of usage run at once for an account.`, {
    retryAfterMs: 1000,
  });
}
