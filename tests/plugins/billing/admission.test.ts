/** Who is refused before the body of a request is read: accounts without money, at endpoints that charge, unless a model may be free. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admitByBalance } from '../../../plugins/billing/reservations/admission.ts';
import type { Reservations } from '../../../plugins/billing/reservations/reservations.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { vendorBatch } from '../../../plugins/common/domain/calls.ts';
import { fakeExchange, fakeHost } from '../../helpers/fakes.ts';

const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined };

test('only endpoints that charge require funds, and batch lines that a vendor executes do not', async () => {
  const requests: string[] = [];
  const reservations = {
    bridging: false,
    requireFunds: (accountId: string) => void requests.push(accountId),
  } as unknown as Reservations;
  const admit = (endpoint: object, facts: [never, unknown][] = []) =>
    admitByBalance(
      fakeExchange({ endpoint, facts: [[caller, who], ...facts], request: { method: 'POST' } }),
      reservations,
      fakeHost(),
    );
  await admit({});
  await admit({ charges: false });
  await admit({ charges: ({ method }: { method: string }) => method !== 'POST' });
  await admit({ charges: true }, [[vendorBatch as never, {}]]);
  assert.deepEqual(requests, []);
  await admit({ charges: true });
  await admit({ charges: ({ method }: { method: string }) => method === 'POST' });
  assert.deepEqual(requests, ['alice', 'alice']);
});
