/** Who reads: a person who is signed in to the console, or a program with a key. */
import type { Host } from '../../../core/contract/contract.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import { keyring } from '../../common/domain/accounts.ts';
import { accountAdmin } from '../../common/domain/admin/accounts.ts';
import { pool } from '../../common/domain/ledger.ts';
import { formatUsd } from '../../common/domain/money.ts';
import { consoleSite } from '../../common/domain/pages/console-site.ts';
import type { ReaderView } from './frame.ts';

export interface Reader {
  readonly accountId: string | undefined;
  /** undefined: a program. */
  readonly person: string | undefined;
  readonly seesMoney?: boolean;
  readonly seesKeys?: boolean;
}

const mostKeys = 100;

/** undefined: a stranger. */
export async function readerOf(host: Host, request: ClientRequest): Promise<Reader | undefined> {
  const { cookie } = request.headers;
  const person = cookie === undefined ? undefined : await host.find(consoleSite)?.readerOf(cookie);
  if (person !== undefined) {
    const { name, ...shown } = person;
    return { ...shown, person: name };
  }
  const hasKey = ['authorization', 'x-api-key', 'x-goog-api-key'].some((name) => request.headers[name] !== undefined);
  if (!hasKey) return undefined;
  const found = await host.find(keyring)?.authenticate(request);
  return found && { accountId: found.accountId, person: undefined };
}

/** The head of a person's pages; what cannot be read now is left out. */
export async function readerView(host: Host, reader: Reader): Promise<ReaderView | undefined> {
  const { person, accountId, seesMoney = false, seesKeys = false } = reader;
  if (person === undefined) return undefined;
  if (accountId === undefined) return { name: person, balance: undefined, key: undefined };
  const [money, keys] = await Promise.all([
    (seesMoney ? host.find(pool) : undefined)?.view(accountId).catch(() => undefined),
    (seesKeys ? host.find(accountAdmin) : undefined)?.keys(accountId, { limit: mostKeys }).catch(() => undefined),
  ]);
  const usable = (keys?.rows ?? []).filter(({ revokedAt }) => revokedAt === undefined);
  const [key] = usable.toSorted((left, right) => (right.lastUsedAt ?? 0) - (left.lastUsedAt ?? 0));
  return {
    name: person,
    balance: money && formatUsd(money.balance + money.held),
    key: key && { name: key.name, prefix: key.prefix },
  };
}
