/** Statements by the API of clients and operators: the list, one of them, its files, and never another account's. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { linesIn } from '../../../plugins/billing/statements/lines.ts';
import { verifyStatement } from '../../../plugins/billing/statements/verify.ts';
import { statementAdmin } from '../../../plugins/common/domain/organizations/statements.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { fakeStatements } from './fakes/statements.ts';
import { clientAccount } from './fakes/world.ts';

test('a client and an auditor read the same statements, and the file that they load proves itself', async () => {
  const services = fakeConsole();
  const [client, auditor] = [caller(services, 'client'), caller(services, 'auditor')];
  assert.equal((await client('GET /me')).json.features.statements, true);
  const admin = `/admin/accounts/${clientAccount}/statements`;
  for (const [who, path] of [
    [client, '/statements'],
    [auditor, admin],
  ] as const) {
    const { rows } = (await who(`GET ${path}?limit=1`)).json;
    assert.deepEqual(
      rows.map(({ number, month, opening, closing }: Record<string, string>) => [number, month, opening, closing]),
      [[2, '2026-10', '25.00', '24.994995']],
    );
    const { json } = await who(`GET ${path}/2`);
    assert.deepEqual(
      json.lines.map((line: Record<string, unknown>) => [
        line['kind'],
        line['project'],
        line['personName'],
        line['rows'],
        line['amount'],
        line['usd'],
      ]),
      [
        ['CHARGE', 'search', 'Ben Admin', 2, '-0.006239567', '-0.01'],
        ['REFUND', null, null, 1, '0.001234567', '0.00'],
      ],
    );
    assert.deepEqual([json.openingUsd, json.closingUsd, json.digest], ['25.00', '24.99', rows[0].digest]);
    assert.deepEqual(
      json.credit.map(({ month, used, paid, due, state }: Record<string, string>) => [month, used, paid, due, state]),
      [['2026-10', '5.000000001', '2.00', '3.000000001', 'due']],
    );
    assert.deepEqual((await who(`GET ${path}/1`)).json.credit, []);
    const file = join(temporaryDirectory('statements-'), 'file');
    const answer = await who(`GET ${path}/2/file`);
    writeFileSync(file, answer.text);
    const verdict = await verifyStatement(linesIn(file));
    assert.deepEqual([verdict.ok, verdict.digest], [true, json.digest], verdict.text);
    assert.match(answer.headers.get('content-disposition')!, /^attachment; filename="statement-2026-10\.jsonl"$/);
    const csv = await who(`GET ${path}/2/file?format=csv`);
    assert.match(csv.headers.get('content-type')!, /^text\/csv/);
    const lines = csv.text.trimEnd().split('\r\n');
    assert.deepEqual([lines.length, lines.at(-1)!.split(',').slice(-3, -1)], [5, ['2026-10', '3.000000001']]);
    assert.match((await who(`GET ${path}/2/file?format=focus`)).text, /^AvailabilityZone,BilledCost,/);
  }
});

test("another account's statements, a number that there is not and a form that there is not are refused", async () => {
  const services = fakeConsole();
  const client = caller(services, 'client');
  services.host.provide(statementAdmin, fakeStatements('another'));
  assert.deepEqual((await client('GET /statements')).json.rows, []);
  for (const path of ['/statements/1', '/statements/1/file']) assert.equal((await client(`GET ${path}`)).status, 404);
  for (const path of ['/statements/0', '/statements/x/file', '/statements/1/file?format=pdf'])
    assert.equal((await client(`GET ${path}`)).status, 400, path);
  assert.equal((await client(`GET /admin/accounts/another/statements`)).status, 403);
});
