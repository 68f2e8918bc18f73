/** What calls came to by their tags, of one account: by the values of a name, or by models of one tag. */
import { z } from '@hono/zod-openapi';
import type { SpendTableQuery } from '../../common/domain/admin/ledger.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import { money } from '../../common/domain/money.ts';
import { totalTokens } from '../../common/domain/usage.ts';
import { quarterMs } from '../../common/rollups/table.ts';
import { ledgerQueries } from '../services.ts';
import { type ConsoleServices, need, ownAccount } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, id, instant, instantInput, iso, tagInput, usd, usdText } from './schemas.ts';
import { spanOfDays, zoneQuery } from './time-zone.ts';

const sums = { requests: z.number().describe('Charged calls.'), tokens: z.number(), cost: usd };
const tagSums = z
  .object({
    from: instant.describe('As asked for, or up to a quarter of an hour earlier.'),
    until: instant,
    names: z.array(z.string()).describe('The names of all tags of the account.'),
    rows: z
      .array(z.object({ group: z.string().describe('A value of the name, or a model.'), ...sums }))
      .describe('The most expensive first. The value * stands for those beyond 200 tags in an hour.'),
  })
  .openapi('TagSums');

const query = z.object({
  from: instantInput.optional(),
  until: instantInput.optional(),
  tag: tagInput
    .optional()
    .describe('team: by its values; team=search: by the models of calls with this tag. Absent: the names alone.'),
  ...zoneQuery.shape,
});
const own = route('get', '/usage/tags', 'Own calls by their tags', answers(tagSums), { query });
const ofAccount = route('get', '/admin/tags', 'Calls of an account by their tags', answers(tagSums), {
  query: query.extend({ accountId: id }),
});

export function tagRoutes(services: ConsoleServices) {
  const answer = (accountId: string, asked: z.output<typeof query>) =>
    tagSumsOf(services, accountId, spanOfDays(asked, services.clock.now(), 30), asked.tag);
  return new Routes(services)
    .read(own, async ({ query: asked, c }) => answer(await ownAccount(services, c), asked))
    .read(ofAccount, ({ query: asked }) => answer(asked.accountId, asked));
}

async function tagSumsOf(services: ConsoleServices, accountId: string, span: Span, tag: string | undefined) {
  const ledger = need(services, ledgerQueries);
  const from = Math.floor(span.from / quarterMs) * quarterMs;
  const by: SpendTableQuery['by'] = tag?.includes('=') ? ['model'] : ['tag'];
  const [names, cells] = await Promise.all([
    ledger.tagNames(accountId),
    tag === undefined || from >= span.until
      ? []
      : ledger.spendTable({ accountId, tags: [tag], bounds: [from, span.until], by }),
  ]);
  const rows = cells
    .toSorted((one, other) => Number(other.cost - one.cost) || other.requests - one.requests)
    .map(({ group: [name = ''], requests, usage, cost }) => ({
      group: by[0] === 'tag' ? name.slice(name.indexOf('=') + 1) : name,
      requests,
      tokens: totalTokens(usage),
      cost: usdText(money(cost)),
    }));
  return { from: iso(from), until: iso(span.until), names: [...names], rows };
}
