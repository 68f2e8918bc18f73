/** The plugin `admission` with rules of a test, and calls that pass it, without a gateway. */
import plugin from '../../../plugins/admission/index.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { type Attempt, attempts, call, spendGuard } from '../../../plugins/common/domain/calls.ts';
import { type Database, database } from '../../../plugins/common/domain/database.ts';
import { model } from '../../../plugins/common/domain/models.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { type AdmissionRule, admission } from '../../../plugins/common/wire/admission-rules.ts';
import { type FakeExchange, fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';

export async function started(rules: readonly AdmissionRule[], section: object = {}, store?: Database) {
  const host = fakeHost();
  if (store !== undefined) host.provide(database, store);
  for (const rule of rules) host.extend(admission, rule);
  const instance = await setUp(plugin, host, section);
  const end = async (exchange: FakeExchange, outcome: Parameters<FakeExchange['end']>[0] = {}) => {
    await exchange.end(outcome);
    await instance.lifecycle!.stop!();
  };
  return { host, instance, end, pass: (exchange: FakeExchange, next: () => void = () => {}) => enter(exchange, next) };

  async function enter(exchange: FakeExchange, next: () => void) {
    return instance.handle!(exchange, async () => {
      next();
      return okAnswer;
    });
  }
}

export function exchangeOf(more: Parameters<typeof fakeExchange>[0] = {}): FakeExchange {
  return fakeExchange({
    endpoint: { operation: 'chat', setsOnOpen: [call] },
    ...more,
    facts: [
      [call, { billable: true }],
      [caller, { accountId: 'a', keyId: 'k', project: 'search', tags: new Map([['env', 'prod']]) }],
      [model, { id: 'm' }],
      ...(more?.facts ?? []),
    ],
  });
}

/** The request is handed to a vendor, and the account is charged. */
export async function send(exchange: FakeExchange, cost: bigint | undefined): Promise<void> {
  await exchange.send();
  exchange.set(attempts, [{ number: 1, result: 'answered' } as Attempt]);
  const charged = cost === undefined ? undefined : { cost: money(cost), usage: { input: 7 }, own: undefined };
  exchange.set(spendGuard, { observe: () => true, charged: () => charged });
}

/** A rule that writes down its calls, as `first+` (reserved), `first=` (settled), `first-` (released). */
export function noting(name: string, notes: string[], more: Partial<AdmissionRule> = {}): AdmissionRule {
  return {
    name,
    reserve({ id }) {
      notes.push(`${name}+`);
      return id;
    },
    settle: () => void notes.push(`${name}=`),
    release: () => void notes.push(`${name}-`),
    ...more,
  };
}
