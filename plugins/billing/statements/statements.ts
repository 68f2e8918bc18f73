/** Statements (`billing.statements`): their regular work, and their files. */
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Database } from '../../common/domain/database.ts';
import type { ArchiveReader } from '../archive/reader.ts';
import { StatementLines } from './format.ts';
import { type Form, inForm } from './forms.ts';
import { headOf, listOf, movementsOf, type Place, type Sealed, sealedOf } from './rows.ts';
import { sealRound } from './sealing.ts';

const roundMs = 60_000;

/** `zone`: months are those of this time zone; absent: no statements are made. */
export interface Settings {
  readonly zone?: string | undefined;
  /** Who writes them. */
  readonly issuer?: string | undefined;
}

export interface Statements {
  /** Newest first; of all accounts without one. */
  list(accountId: string | undefined, most: number): Promise<Sealed[]>;
  /** The text of its file. Throws where what moved is not what was sealed any more. */
  file(accountId: string, number: number, form: Form): AsyncGenerator<string>;
  start(): void;
}

export function openStatements(
  host: Host,
  { orm, schema }: Database,
  archive: ArchiveReader,
  { zone, issuer = host.gateway }: Settings,
): Statements {
  const place: Place = { orm, schema, archive };
  return {
    list: (accountId, most) => listOf(place, accountId, most),
    file: (accountId, number, form) => inForm(linesOf(place, accountId, number), form, issuer),
    start: () => {
      if (zone === undefined) return;
      const owner = host.random.bytes(8).toString('hex');
      host.every(roundMs, 'seal statements', async () => {
        const accounts = await sealRound({ place, zone, owner, now: host.clock.now() });
        return accounts === 0 ? 'idle' : undefined;
      });
    },
  };
}

async function* linesOf(place: Place, accountId: string, number: number): AsyncGenerator<string> {
  const sealed = await sealedOf(place, accountId, number);
  if (sealed === undefined) throw new GatewayError('not_found', `There is no statement ${number} of this account.`);
  const bounds = { ...sealed, before: number === 1 ? undefined : await sealedOf(place, accountId, number - 1) };
  const lines = new StatementLines(headOf(bounds, sealed.opening));
  yield lines.first;
  for await (const row of movementsOf(place, bounds)) yield lines.row(row);
  const last = lines.line(lines.summary());
  if (lines.digest !== sealed.digest)
    throw new GatewayError('internal', `What moved is not what statement ${number} was sealed with: run "audit".`);
  yield last;
}
