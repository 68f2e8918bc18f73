/** Two sealed statements of one account, in memory, by the lines that real ones are made of. */

import { monthOf } from '../../../../plugins/billing/grants/months.ts';
import { type Head, type Row, StatementLines } from '../../../../plugins/billing/statements/format.ts';
import { inForm } from '../../../../plugins/billing/statements/forms.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import type { StatementAdmin, StatementDetail } from '../../../../plugins/common/domain/organizations/statements.ts';
import { paged } from './lists.ts';

const zone = 'Europe/Berlin';
const issuer = 'Demo Ltd';
/** What is to be paid of a credit line at the end of the second. */
const { until: ended } = monthOf('2026-10', zone);
const credit = {
  ...{
    month: '2026-10',
    until: new Date(ended).toISOString(),
    due_at: new Date(ended + 14 * 86_400_000).toISOString(),
  },
  ...{ used: '5000000001', paid: '2000000000' },
};
const months: readonly [month: string, rows: readonly Omit<Row, 'seq'>[]][] = [
  ['2026-09', [{ at: '2026-09-03T10:00:00.000000Z', kind: 'CREDIT', amount: '25000000000', of: 'top-up' }]],
  [
    '2026-10',
    [
      { at: '2026-10-01T10:00:00.000000Z', kind: 'CHARGE', amount: '-1234567', model: 'gpt-5.4', ...priced(1_234_567) },
      { at: '2026-10-02T10:00:00.000000Z', kind: 'CHARGE', amount: '-5005000', model: 'gpt-5.4', ...priced(5_005_000) },
      { at: '2026-10-03T10:00:00.000000Z', kind: 'REFUND', amount: '1234567', reference: 'sorry' },
    ],
  ],
];

function priced(input: number) {
  return {
    usage: { input },
    price: { input: '1000000' },
    price_version: 'v1',
    ratio: '1/1',
    project: 'search',
    person: 'person-admin',
  };
}

export function fakeStatements(accountId: string): StatementAdmin {
  const made: { readonly view: StatementDetail; readonly lines: readonly string[] }[] = [];
  let [seq, opening, previous]: [number, string, string | null] = [0, '0', null];
  for (const [index, [month, rows]] of months.entries()) {
    const { from, until } = monthOf(month, zone);
    const [number, instants] = [
      index + 1,
      { from: new Date(from).toISOString(), until: new Date(until).toISOString() },
    ];
    const common = { number, month, zone };
    const head: Head = {
      format: 'model-gateway statement 1',
      account: accountId,
      ...common,
      ...instants,
      previous,
      opening,
    };
    const writer = new StatementLines(head);
    const texts = [writer.first, ...rows.map((row) => writer.row({ seq: String(++seq), ...row }))];
    const sums = writer.summary(month === credit.month ? [credit] : []);
    texts.push(writer.line(sums));
    const { digest } = writer;
    const view = {
      ...{ ...common, from, until, issuer, digest, previous: previous ?? undefined, sealedAt: until + 3_600_000 },
      ...{ opening: money(BigInt(opening)), closing: money(writer.closing), rows: writer.rows },
      ...{ openingUsd: sums.opening.usd, closingUsd: sums.closing.usd },
      lines: sums.lines.map((line) => ({ ...line, amount: money(BigInt(line.amount)) })),
      credit: (sums.credit ?? []).map(({ due_at, ...due }) => ({
        ...{ month: due.month, until: Date.parse(due.until), dueAt: Date.parse(due_at), state: due.state },
        ...{ used: money(BigInt(due.used)), paid: money(BigInt(due.paid)) },
      })),
    };
    made.push({ view, lines: texts });
    [opening, previous] = [String(writer.closing), digest];
  }
  const of = (id: string) => (id === accountId ? made : []);
  async function* linesOf(id: string, number: number) {
    yield* of(id)[number - 1]!.lines;
  }
  return {
    list: async (id, page) =>
      paged(
        of(id)
          .map(({ view }) => view)
          .toReversed(),
        page,
      ),
    find: async (id, number) => of(id)[number - 1]?.view,
    file: (id, number, form) => inForm(linesOf(id, number), form, issuer),
  };
}
