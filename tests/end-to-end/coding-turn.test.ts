/** A coding client's turn against the plans that config/main.yaml ships: the limits let it through, the balance bounds it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type DialectName, dialectNames } from './dialects.ts';
import { type Customer, startTestbed, type Testbed } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed();
});
after(() => testbed.stop());

const plan = 'free';
const steps = 10;
/** About one token each. */
const words = (count: number) => 'read '.repeat(count);

/** Requests of 20k to 60k tokens one after the other, with two small ones beside the first, as titles and topics are asked for. */
async function turn(customer: Customer, dialect: DialectName): Promise<number[]> {
  const send = async (tokens: number, stream: boolean) => {
    const prompt = `${words(tokens)}[[sandbox: tokens=20]]`;
    const { status } = await testbed.call(customer, dialect, { model: 'sandbox', prompt, stream });
    return status;
  };
  const statuses = await Promise.all([send(500, false), send(200, true), send(20_000, true)]);
  for (let step = 1; step < steps; step += 1)
    statuses.push(await send(20_000 + Math.floor((40_000 * step) / (steps - 1)), true));
  return statuses;
}

for (const dialect of dialectNames)
  test(`a client of ${dialect} works through a long turn without a 429, and begins the next at once`, async () => {
    const customer = await testbed.customer({ plan });
    for (let turns = 0; turns < 2; turns += 1)
      assert.deepEqual(await turn(customer, dialect), Array<number>(steps + 2).fill(200));
  });

test("work ends when the plan's money is used up, with 402 and not 429", async () => {
  const customer = await testbed.customer({ plan, nanoUsd: 0n });
  const statuses: number[] = [];
  for (let turns = 0; turns < 4 && !statuses.includes(402); turns += 1)
    statuses.push(...(await turn(customer, 'messages')));
  assert.deepEqual([...new Set(statuses)], [200, 402]);
});
