/** Clients at work while faults come one after the other; then what all sides have recorded. */
import { setTimeout as pause } from 'node:timers/promises';
import { Browser } from '../plugins/console/browser.ts';
import { Answers } from './answers.ts';
import { VendorBill } from './bill.ts';
import type { Fault } from './faults.ts';
import { compareLedger, type Findings } from './ledger.ts';
import { Load } from './load.ts';
import { type Callers, Operations, pausedCall, pausedKind } from './operations.ts';
import { Sessions } from './sessions.ts';
import { type Stage, texts } from './stage.ts';

export interface Driven extends Findings {
  readonly answers: Answers;
}

/** On a stage that serves; nothing serves afterwards. `rate`: operations a second; `calmMs`: from one fault to the next. */
export async function drive(stage: Stage, faults: readonly Fault[], rate: number, calmMs: number): Promise<Driven> {
  const { fleet, vendorOrigin } = stage.parts;
  const bill = new VendorBill(vendorOrigin);
  const { callers, keyedAccount } = await callersAt(stage);
  const answers = new Answers(stage.origins);
  const operations = new Operations(answers, callers);
  const load = new Load(operations, rate);
  stage.askPaused = () => operations.paused();
  const sessions = new Sessions(stage.origins[0]!, callers.keys);
  await pause(4_000);
  for (const fault of faults) {
    answers.begin(fault.name);
    await fault.run(stage);
    answers.begin('none');
    await pause(calmMs);
  }
  const [isAnswered] = await Promise.all([sessions.stop(), load.stop()]);
  if (!isAnswered) operations.wrong.push('a WebSocket is open, and what was asked over it is not answered');
  answers.end();
  for (const node of fleet.nodes) node.signal('SIGTERM');
  await Promise.all(fleet.nodes.map((node) => node.ended()));
  const unseen = await bill.close();
  const { account, violations } = await compareLedger(fleet, operations, operations.redeemed.length + 1, {
    ...{ answers, sessions: sessions.acknowledged, keyedAccount, keysSent: operations.keysSent },
    ...{ entries: [...bill.entries.values()], salvaged: stage.salvaged },
    raised: stage.raised === undefined ? undefined : { ...stage.raised, models: texts },
  });
  const costly = faults.flatMap((fault) => costOf(answers, fault));
  const missed = unseen === 0 ? [] : [`${unseen} entries of the vendor's bill were never read`];
  const done = `${operations.begun} operations, ${answers.requests} requests; ${sessions.cancelled} sessions were broken off by clients`;
  const { requested, served } = operations.awake;
  const bridged = `${served} of ${requested} calls of accounts that had paused were served while PostgreSQL was away`;
  return { answers, account: [done, bridged, ...account], violations: [...violations, ...costly, ...missed] };
}

/** What a fault must not have cost. */
function costOf({ phases }: Answers, { name, isFreeAfterMs = Number.POSITIVE_INFINITY }: Fault): string[] {
  const { failures } = phases.find((phase) => phase.name === name)!;
  return failures
    .filter(
      ({ kind, afterMs, tookMs }) =>
        // These are served from what was kept of them.
        kind === pausedKind || isFreeAfterMs === 0 || afterMs - tookMs > isFreeAfterMs,
    )
    .map(({ kind, status, text }) => `${name}: ${kind} was answered with ${status}: ${text.replaceAll(/\s+/g, ' ')}`);
}

/** Accounts with money, one of them with a plan that has a window, and a person who has signed up at the console. */
async function callersAt(stage: Stage): Promise<{ callers: Callers; keyedAccount: string }> {
  const { fleet } = stage.parts;
  const [origin] = stage.origins;
  const browser = new Browser(origin!);
  const reply = await browser.send('/auth/sign-up/email', {
    body: { email: 'ada@example.test', password: 'a long enough password', name: 'Ada' },
  });
  if (reply.status !== 200) throw new Error(`signing up: ${reply.status} ${reply.text}`);
  const { customers, codes } = await fleet.runAsCommand(async (gateway) => {
    const plans = ['open', 'granted', 'open', 'open', 'open', 'open', 'open', 'granted'];
    const customers = await Promise.all(plans.map((plan) => gateway.customer({ plan })));
    const create = gateway.gateway.gateway.commands.find(({ name }) => name === 'codes create')!;
    const { codes } = (await create.run({ usd: '1', count: '500' })).json as { codes: string[] };
    return { customers, codes };
  });
  const [first, ...others] = codes;
  await browser.send('/wallet/redeem', { body: { code: first } });
  const [keyed, ...rest] = customers;
  const paused = rest.splice(-3).map(({ key }) => key);
  for (const node of fleet.nodes) for (const key of paused) await callOnce(node.origin, key);
  const cookie = browser.cookieHeader();
  const callers = { keys: rest.map(({ key }) => key), keyed: keyed!.key, paused, cookie, codes: others };
  return { callers, keyedAccount: keyed!.accountId };
}

/** So that this gateway knows the account. */
async function callOnce(origin: string, key: string): Promise<void> {
  const answer = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(pausedCall),
  });
  if (answer.status !== 200) throw new Error(`the first call of an account: ${answer.status} ${await answer.text()}`);
  await answer.text();
}
