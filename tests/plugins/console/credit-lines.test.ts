/** Credit lines by the API: an operator decides with a reason, the account's client reads it, an auditor changes nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';

test('an operator sets a credit line with a reason, and its client reads the amounts left, used, paid and due', async () => {
  const services = fakeConsole();
  const [client, operator, auditor] = [
    caller(services, 'client'),
    caller(services, 'operator'),
    caller(services, 'auditor'),
  ];
  assert.equal((await client('GET /me')).json.features.creditLines, true);
  assert.deepEqual((await client('GET /credit-line')).json, { line: null });
  const admin = `/admin/accounts/${clientAccount}/credit-line`;
  const body = { amount: '500', reason: 'pays by invoice' };
  assert.equal((await auditor(`POST ${admin}`, body)).status, 403);
  assert.equal((await client(`POST ${admin}`, body)).status, 403);
  for (const wrong of [{ amount: '-1', reason: 'x' }, { amount: '5' }, { ...body, more: 1 }])
    assert.equal((await operator(`POST ${admin}`, wrong)).status, 400);
  const { line } = (await operator(`POST ${admin}`, body)).json;
  assert.deepEqual([line.amount, line.left, line.isStopped, line.stopsAt], ['500.00', '500.00', false, null]);
  const shown = (await client('GET /credit-line')).json.line;
  assert.deepEqual(shown, line);
  assert.deepEqual(
    shown.months.map(({ month, used, paid, due, state }: Record<string, string>) => [month, used, paid, due, state]),
    [
      ['2026-11', '5.00', '0.00', '5.00', 'running'],
      ['2026-10', '5.00', '2.00', '3.00', 'overdue'],
    ],
  );
  assert.deepEqual((await auditor(`GET ${admin}`)).json.line, line);
  assert.equal((await operator(`POST ${admin}`, { ...body, amount: '0' })).json.line.amount, '0.00');
  assert.equal((await operator('GET /admin/accounts/none/credit-line')).status, 404);
});
