/** Calls that a crash interrupts: those of which a byte may have left are charged an estimate, and of the others nothing is. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { attempts } from '../../../plugins/common/domain/calls.ts';
import type { FakeExchange } from '../../helpers/fakes.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { answer, attemptOf, entered, leaveWorlds, newWorld, send, type World } from './world.ts';

after(leaveWorlds);

/** Each attempt's connection is refused, or it is sent; then the call is answered, or the crash finds it under way. */
const call = fc.record({
  tries: fc.array(fc.constantFrom('unreachable' as const, 'sent' as const), { maxLength: 3 }),
  isAnswered: fc.boolean(),
  /** The hold is written before the next call comes, or together with it. */
  waits: fc.boolean(),
});

async function run(world: World, exchange: FakeExchange, tries: readonly ('unreachable' | 'sent')[]): Promise<void> {
  for (const kind of tries) {
    // The first byte's hooks do not run where no connection comes about.
    const list = exchange.find(attempts) ?? [];
    if (kind === 'sent') Object.assign(await send(exchange), { result: 'unknown' });
    else exchange.set(attempts, [...list, attemptOf('not_sent', list.length + 1)]);
  }
  await world.tick('sync the journal');
}

test('a crash charges only the calls of which a byte may have been sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 6 }), async (calls) => {
      const world = await newWorld({ credit: '1' });
      let due = 1_000_000_000n;
      for (const { tries, isAnswered, waits } of calls) {
        const exchange = await entered(world);
        if (waits) await world.tick('sync the journal');
        await run(world, exchange, tries);
        // 1,000 tokens of the prompt at 2 USD a million; 10 of an answer at 10.
        if (isAnswered) {
          await answer(exchange, { input: 1_000, output: 10 });
          due -= 2_100_000n;
        } else if (tries.includes('sent')) due -= 2_000_000n;
      }
      await world.tick('sync the journal');
      await using next = await world.crash();
      assert.equal(await next.balance(), due);
      assert.deepEqual((await next.audit()).violations, []);
    }),
    { numRuns: runsOf(4, 60) },
  );
});
