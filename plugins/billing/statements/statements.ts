/** Statements (`billing.statements`): their regular work, and their files. */
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Database } from '../../common/domain/database.ts';
import { money } from '../../common/domain/money.ts';
import type { CreditMonth } from '../../common/domain/organizations/credit-lines.ts';
import {
  type StatementAdmin,
  type StatementView,
  statementAdmin,
} from '../../common/domain/organizations/statements.ts';
import { cursorIn, pageOf, rowsFor } from '../../common/kit/paging.ts';
import type { ArchiveReader } from '../archive/reader.ts';
import { type Due, StatementLines } from './format.ts';
import { inForm } from './forms.ts';
import { headOf, type Kept, listOf, movementsOf, type Place, type Sealed, sealedOf, summaryOf } from './rows.ts';
import { sealRound } from './sealing.ts';

const roundMs = 60_000;
const cursorForm = /^[1-9]\d{0,8}$/;

/** `zone`: months are those of this time zone; absent: no statements are made. */
interface Settings {
  readonly zone?: string | undefined;
  /** Who writes them. */
  readonly issuer?: string | undefined;
}

interface Given extends Settings {
  /** How long behind the end of a month what was used of a credit line is to be paid. */
  readonly payWithinMs: number;
}

export interface Statements extends Pick<StatementAdmin, 'file'> {
  /** Newest first; of all accounts without one. */
  list(accountId: string | undefined, most: number): Promise<readonly Sealed[]>;
  start(): void;
}

export function openStatements(
  host: Host,
  { orm, schema }: Database,
  archive: ArchiveReader,
  { zone, issuer = host.gateway, payWithinMs }: Given,
): Statements {
  const place: Place = { orm, schema, archive };
  const file: StatementAdmin['file'] = (accountId, number, form) =>
    inForm(linesOf(place, accountId, number), form, issuer);
  if (zone !== undefined) host.provide(statementAdmin, { ...queriesOf(place, issuer), file });
  return {
    file,
    list: (accountId, most) => listOf(place, accountId, most, undefined),
    start: () => {
      if (zone === undefined) return;
      const owner = host.random.bytes(8).toString('hex');
      // The database is asked once a month, but while there are accounts to go through.
      let dueAt = 0;
      host.every(roundMs, 'seal statements', async () => {
        const now = host.clock.now();
        if (now < dueAt) return 'idle';
        const sealing = await sealRound({ place, zone, payWithinMs, owner, now });
        dueAt = sealing.dueAt;
        return sealing.accounts === 0 ? 'idle' : undefined;
      });
    },
  };
}

function queriesOf(place: Place, issuer: string): Omit<StatementAdmin, 'file'> {
  return {
    list: async (accountId, page) => {
      const rows = await listOf(place, accountId, rowsFor(page), cursorIn(page, cursorForm));
      return pageOf(rows, page, ({ number }) => String(number), viewOf);
    },
    find: async (accountId, number) => {
      const sealed = await sealedOf(place, accountId, number);
      if (sealed === undefined) return undefined;
      const { rows, lines, opening, closing, credit = [] } = await summaryOf(place, accountId, number);
      return {
        ...{ ...viewOf(sealed), issuer, rows, openingUsd: opening.usd, closingUsd: closing.usd },
        lines: lines.map(({ amount, ...line }) => ({ ...line, amount: money(BigInt(amount)) })),
        credit: credit.map(creditMonthOf),
      };
    },
  };
}

function creditMonthOf({ month, until, due_at: dueAt, used, paid, state }: Due): CreditMonth {
  return {
    ...{ month, until: Date.parse(until), dueAt: Date.parse(dueAt), state },
    ...{ used: money(BigInt(used)), paid: money(BigInt(paid)) },
  };
}

function viewOf({
  number,
  month,
  zone,
  from,
  until,
  opening,
  closing,
  digest,
  previous,
  sealedAt,
}: Kept): StatementView {
  return {
    ...{ number, month, zone, from, until, digest, sealedAt, previous: previous ?? undefined },
    ...{ opening: money(BigInt(opening)), closing: money(BigInt(closing)) },
  };
}

async function* linesOf(place: Place, accountId: string, number: number): AsyncGenerator<string> {
  const sealed = await sealedOf(place, accountId, number);
  if (sealed === undefined) throw new GatewayError('not_found', `There is no statement ${number} of this account.`);
  const bounds = { ...sealed, before: number === 1 ? undefined : await sealedOf(place, accountId, number - 1) };
  const lines = new StatementLines(headOf(bounds, sealed.opening));
  yield lines.first;
  for await (const row of movementsOf(place, bounds)) yield lines.row(row);
  const { credit } = await summaryOf(place, accountId, number);
  const last = lines.line(lines.summary(credit));
  if (lines.digest !== sealed.digest)
    throw new GatewayError('internal', `What moved is not what statement ${number} was sealed with: run "audit".`);
  yield last;
}
