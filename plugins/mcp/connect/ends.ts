/** Connections go when their account is disabled, or their person is no member of it any more. */
import type { Host } from '../../../core/contract/contract.ts';
import { accountAdmin } from '../../common/domain/admin/accounts.ts';
import { database } from '../../common/domain/database.ts';
import { memberAdmin } from '../../common/domain/organizations/members.ts';
import type { Generation } from '../generation.ts';
import type { Connections } from './connections.ts';
import { whoOwns } from './owner.ts';

/** What ended while no process heard of it. */
const roundMs = 3_600_000;
const accountsAtOnce = 500;

export function endConnections(host: Host, servers: () => Generation, connections: Connections): void {
  const store = host.find(database);
  if (store === undefined || host.mode !== 'serve') return;
  const isUsed = () => Object.values(servers().config.servers).some(({ connect }) => connect !== undefined);
  // A member who goes is a change of the account.
  store.onChange('account', (accountId) => {
    if (!isUsed()) return;
    endThose(host, connections, accountId).catch((error: unknown) => {
      host.log.warn({ error }, 'connections to servers of tools were not ended; it is tried again within the hour');
    });
  });
  host.every(roundMs, 'end connections to servers of tools', () => (isUsed() ? endAll(host, connections) : undefined));
}

async function endAll(host: Host, connections: Connections): Promise<void> {
  const { store } = await connections.opened()!;
  for (let accounts = await store.accountsAfter('', accountsAtOnce); accounts.length > 0; ) {
    for (const accountId of accounts) await endThose(host, connections, accountId);
    accounts = await store.accountsAfter(accounts.at(-1)!, accountsAtOnce);
  }
}

async function endThose(host: Host, connections: Connections, accountId: string): Promise<void> {
  const [accounts, members] = [host.find(accountAdmin), host.find(memberAdmin)];
  if (accounts === undefined || members === undefined) return;
  const { store } = await connections.opened()!;
  const owned = await store.ofAccount(accountId);
  if (owned.length === 0) return;
  const account = await accounts.find(accountId);
  const hasEnded = account === undefined || account.disabled;
  for (const { server, owner } of owned) {
    const { person } = whoOwns(owner);
    const hasLeft = person !== undefined && (await members.roleOf(accountId, person)) === undefined;
    if (hasEnded || hasLeft) await connections.end(server, owner);
  }
}
