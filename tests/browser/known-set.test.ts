/** The known set on every page, in a real browser in two time zones: each number on a page is one that was worked out here, or the page fails. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { type Call, dayIn, Figures } from '../plugins/console/known/figures.ts';
import { type KnownSet, type Made, type Person, undated, type Zone, zones } from '../plugins/console/known/play.ts';
import { catalogue, nano, ownCosts, sum, usd } from '../plugins/console/known/prices.ts';
import { counted, lotsOf, share, shown } from '../plugins/console/known/shown.ts';
import { operator } from '../plugins/console/start-console.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser, openPage, signIn } from './chromium.ts';
import { buildPages } from './operator-stage.ts';
import { type Reading, readPage } from './reading.ts';

let figures: Figures;
let known: KnownSet;
let browser: Browser;
const complaints: string[] = [];

before(async () => {
  buildPages();
  figures = await Figures.play();
  known = figures.known;
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await known?.stop();
});

async function pageIn(zone: Zone, who?: { readonly email: string; readonly password: string }): Promise<Page> {
  const options = { baseURL: known.testbed.origin, timezoneId: zone, viewport: { width: 1600, height: 3_000 } };
  const page = await openPage(browser, complaints, options);
  await page.clock.setFixedTime(known.now);
  if (who !== undefined) await signIn(page, who);
  return page;
}

type Check = (reading: Reading, zone: Zone) => void;

/** All pages are looked at, whatever the first one shows. */
async function readAll(page: Page, zone: Zone, checks: Readonly<Record<string, Check>>): Promise<void> {
  const failures: string[] = [];
  for (const [path, check] of Object.entries(checks))
    await readPage(page, `/console${path}`, (reading) => check(reading, zone)).catch((error: Error) => {
      failures.push(error.message);
    });
  assert.deepEqual(failures, []);
}

// ------------------------------------------------------------------------------------------------------------ figures

const always = () => true;
const isServed = ({ isNoise }: Made) => !isNoise;
const net = ({ cost, refunded }: { cost: string; refunded: string }) => nano(cost) - nano(refunded);
const dollars = (amount: bigint) => `$${usd(amount)}`;
const exact = (amount: bigint) => `${amount < 0n ? '−' : '+'}$${usd(amount < 0n ? -amount : amount)}`;
const refundsOf = ({ refunded }: { refunded: string }) =>
  nano(refunded) === 0n ? '' : ` · refunds of ${shown(nano(refunded))} subtracted`;
const isModel = /^(?:[a-z]+-)+[\w.-]*$/;
const tokensOf = (calls: readonly Call[]) =>
  calls.reduce((all, { used }) => {
    const { character: _, search: __, image: ___, ...tokens } = used;
    return Object.values(tokens).reduce((total, count) => total + count, all);
  }, 0);
const made = (isWanted: (one: Made) => boolean = always) => known.made.filter((one) => isServed(one) && isWanted(one));
const costOf = ({ id }: Made) => {
  const call = figures.calls.find((one) => one.id === id);
  return call?.settled ? shown(call.cost) : '–';
};
const balanceOf = (person: Person) => sum(lotsOf(figures, person).map(({ left }) => left));
/** Names in the order of what their calls came to, with the amounts. */
const byName = (of: 'model' | 'key' | 'provider', isWanted: (call: Call) => boolean) =>
  [...new Set(figures.calls.filter(isWanted).map((call) => call[of]))].map((name) => {
    const isIn = (call: Call) => isWanted(call) && call[of] === name;
    return { name, money: figures.moneyOf(isIn), calls: figures.calls.filter(isIn) };
  });

function grants(reading: Reading, person: Person): void {
  for (const { name, amount, left } of lotsOf(figures, person)) {
    const [rest, whole] = [shown(left), shown(amount)];
    reading.tile(
      name,
      `${rest} / ${whole}`,
      `${rest} of ${whole} left`,
      /^Expires (?:in \d+ (?:days?|hours?)|tomorrow)$|^does not expire$/,
    );
  }
}

// ------------------------------------------------------------------------------------------------------------- clients

const ofAda = ({ account }: { account: string }) => account === known.ada.accountId;

const home: Check = (reading, zone) => {
  const isToday = (at: number) => dayIn(zone, at) === dayIn(zone, known.now);
  const [today, month] = [figures.moneyOf(ofAda, isToday), figures.moneyOf(ofAda)];
  const [callsToday, calls] = [made((one) => ofAda(one) && isToday(one.at)).length, made(ofAda).length];
  const balance = shown(balanceOf(known.ada));
  reading.tile('Balance', balance, `To spend now: ${balance}`);
  reading.tile('Spent today', shown(net(today)), `${counted(callsToday)} requests${refundsOf(today)}`);
  reading.tile('Spent, last 30 days', shown(net(month)), `${shown(net(month) / 30n)} a day${refundsOf(month)}`);
  reading.tile('Calls, last 30 days', counted(calls), `${counted(callsToday)} today`);
  grants(reading, known.ada);
  for (const { name, money } of byName('model', (call) => ofAda(call) && call.settled))
    reading.tile(name, shown(net(money)));
  reading.rest(/^\d{3} (?:refused|failed)$/, isModel, /^n8n$/, /, 30 days$/);
};

const keys: Check = (reading) => {
  for (const { name, money } of byName('key', ofAda)) reading.row({ Name: name, 'Spent, 30 days': shown(net(money)) });
  reading.rest();
};

const usage: Check = (reading) => {
  const money = figures.moneyOf(ofAda);
  const calls = made(ofAda);
  const failed = calls.filter(({ result }) => result === 'client_error' || result === 'upstream_error').length;
  const refused = known.made.filter((one) => ofAda(one) && one.isNoise).length;
  const mean = `${shown(net(money) / BigInt(calls.length))} a request${refundsOf(money)}`;
  reading.tile('Cost', shown(net(money)), mean);
  reading.tile('Tokens', counted(tokensOf(figures.calls.filter(ofAda))));
  reading.tile('Requests', counted(calls.length));
  const succeeded = share(figures.count('ok', ofAda), calls.length);
  const apart = `${refused} refused before serving (wrong key or no such model)`;
  reading.tile('Errors', counted(failed), `${succeeded} succeeded · ${apart}`);
  for (const one of newest(ofAda)) reading.row({ Model: one.model, Cost: costOf(one) });
  const tagged = figures.calls.find(({ id }) => id === known.taggedId)!;
  // Savings by caches are not worked out here.
  reading.cells('claude-sonnet-5', /^[\d,]+$/, /%$/, /^\$/);
  reading.line(/came from a cache/);
  reading.cells('prod', '1', counted(tokensOf([tagged])), shown(tagged.cost));
  reading.line(`1–25 of ${counted(calls.length + refused)}`);
  reading.rest(isModel);
};

const newest = (isWanted: (one: Made) => boolean) =>
  known.made
    .filter(isWanted)
    .sort((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, 25);

/** How much of a model's traffic was answered, in tenths of a percent, cut; fewer than three calls say nothing. */
function uptimeOf(model: string): string {
  const [ok, failed] = (['ok', 'upstream_error'] as const).map((result) =>
    figures.count(result, (one) => one.model === model),
  ) as [number, number];
  return ok + failed < 3 ? 'no calls' : `${Math.floor((ok / (ok + failed)) * 1_000) / 10}%`;
}

/** All amounts of a price list. */
const listed = (price: object | string): bigint[] =>
  typeof price === 'string'
    ? [0n]
    : Object.values(price).flatMap((one) =>
        typeof one === 'object' ? listed(one) : typeof one === 'number' ? [nano(String(one))] : [],
      );

function models(ratio: bigint): Check {
  return (reading) => {
    for (const [id, { price }] of Object.entries(catalogue)) {
      const own = listed(price).map((amount) => dollars((amount * ratio) / 10n));
      const official = listed(price).map(dollars);
      const row = reading.take({ Model: named(id) });
      const [yours = '', ofVendor = ''] = row['Your price']!.split(' official ');
      const amounts = (text: string) => text.match(/\$[\d.,]+/g) ?? [];
      for (const amount of [...amounts(yours), ...amounts(row['Cached input'] ?? '')])
        assert.ok(own.includes(amount), `${id}: ${amount} of ${own.join(', ')}`);
      for (const amount of amounts(ofVendor)) assert.ok(official.includes(amount), `${id}: ${amount}`);
      assert.ok(row['Last 24 hours']!.endsWith(uptimeOf(id)), `${id}: ${row['Last 24 hours']}, not ${uptimeOf(id)}`);
    }
    reading.rest(/^(?:Chat|Images|Videos|Embeddings|Rerank|Decisions|Moderation|Speech|Transcription|Realtime) \d+$/);
  };
}
/** A cell with the name of a model, before or behind its title. */
const named = (id: string) => new RegExp(`(?:^| )${RegExp.escape(id)}(?: |$)`);
const wallet: Check = (reading) => {
  const balance = balanceOf(known.ada);
  reading.tile('Balance', shown(balance), 'Set aside for running calls $0.00');
  reading.tile('To spend now', shown(balance));
  reading.tile('Plan', 'saver', /^until [A-Z][a-z]{2} \d+, \d\d:\d\d$/);
  grants(reading, known.ada);
  let after = balance;
  for (const { amount } of movements(known.ada).slice(0, 25)) {
    reading.row({ Change: exact(amount), 'Balance after': exact(after).slice(1) });
    after -= amount;
  }
  const lasting = sum(lotsOf(figures, known.ada).map(({ left, expires }) => (expires === undated ? left : 0n)));
  const missing = Number((nano('20') - lasting + 9_999_999n) / 10_000_000n) / 100;
  reading.line('$20.00', '$25.00 to spend a month', 'at most $5.00 in 5 hours', 'at most $15.00 a week');
  reading.line('600 requests a minute', '10M tokens a minute', '50 calls at the same time');
  reading.line(`You need $${missing.toFixed(2)} more.`, '$5.00', '$8.00 to spend a month', 'Official prices × 1.2');
  reading.rest(/^Page 1$/);
};

/** What moved a person's money, newest first. */
function movements({ accountId }: Person) {
  const charges = figures.calls.map(({ at, account, cost }) => ({ at, account, amount: -cost }));
  return [...charges, ...known.moves]
    .filter(({ account, amount }) => account === accountId && amount !== 0n)
    .sort((one, other) => one.at - other.at)
    .reverse();
}

const ofBatch = () => known.made.filter(({ path }) => path === 'batch');
const batchCost = () => shown(sum(ofBatch().map(({ id }) => figures.calls.find((call) => call.id === id)!.cost)));

const ownPages: Readonly<Record<string, Check>> = {
  '/keys': keys,
  '/models': (reading, zone) => models(12n)(reading, zone),
  '/tasks': (reading) => reading.rest(),
  '/files': (reading) => {
    reading.row({ Name: 'lines.jsonl', Size: `${known.batchBytes} bytes` });
    reading.row({ Name: /^batch_\w+_output\.jsonl$/, Size: /^[\d.]+ kB$/ });
    reading.rest(/^in \d+ days$/);
  },
  '/batches': (reading) => {
    reading.row({ Endpoint: '/v1/chat/completions', Failed: '0', Cost: batchCost() });
    reading.rest(/^in \d+ hours$/);
  },
  '/profile': (reading) => reading.rest(/^At least 10 characters\.$/, /127\.0\.0\.1/, /Chrom/),
};

test("a client's pages show the numbers of the known set alone", async () => {
  for (const zone of zones) {
    const page = await pageIn(zone, { email: known.ada.email, password: 'another long password' });
    await readAll(page, zone, { '/': home, '/usage': usage, '/wallet': wallet, ...ownPages });
    await page.close();
  }
});

// ----------------------------------------------------------------------------------------------------------- operators

const marginOf = (money: ReturnType<Figures['moneyOf']>) => {
  const revenue = net(money);
  const costed = revenue - nano(money.uncosted);
  const percent = (part: bigint, whole: bigint) => `${Math.floor((Number(part) / Number(whole)) * 1_000) / 10} %`;
  const known = `${percent(nano(money.margin!), costed)} of revenue`;
  const note = `${known}, for the ${percent(costed, revenue)} of revenue whose own cost is known`;
  return [shown(nano(money.margin!)), money.ownCostUnknown === 0 ? known : note] as const;
};
const amountIn = (text: string | null) => (text === null ? 'unknown' : shown(nano(text)));

const overview: Check = (reading) => {
  const money = figures.moneyOf();
  const refused = `${known.made.length - made().length} refused before serving (wrong key or no such model)`;
  const succeeded = share(figures.count('ok'), made().length);
  reading.tile('Requests', counted(made().length), `${succeeded} succeeded · ${refused}`);
  reading.tile('Charged', amountIn(money.cost));
  reading.tile('Margin', ...marginOf(money));
  reading.line(/^12 requests failed/);
  for (const person of [known.ada, known.bob]) {
    const own = figures.moneyOf(({ account }) => account === person.accountId);
    reading.line(amountIn(own.cost));
  }
  reading.line(amountIn(figures.moneyOf(({ account }) => account === known.cem.accountId).cost));
  reading.tile('upstream_failed', String(figures.count('upstream_error')));
  reading.rest(/ 24 hours\.$/);
};

const monitor: Check = (reading) => {
  const money = figures.moneyOf();
  const [failed, calls] = [figures.count('upstream_error'), made().length];
  reading.tile('Requests', counted(calls));
  reading.tile('Upstream errors', counted(failed), `${share(failed, calls)} of all requests`);
  reading.tile('Tokens', counted(tokensOf(figures.calls)));
  reading.tile('Charged', amountIn(money.cost));
  reading.tile('Success', share(figures.count('ok'), calls), `${figures.count('ok')} succeeded`);
  const refused = `${known.made.length - calls} refused before serving (wrong key or no such model)`;
  const left = `${figures.count('left')} clients left · ${refused}`;
  reading.tile('Client errors', counted(figures.count('client_error')), left);
  reading.tile('Margin', ...marginOf(money));
  rowsByModel(reading, always);
  reading.rest(/a second$/, isModel);
};

function rowsByModel(reading: Reading, isWanted: (made: Made) => boolean): void {
  for (const name of new Set(made(isWanted).map(({ model }) => model))) {
    if (name === '') continue;
    const isIn = (one: Made) => isWanted(one) && one.model === name;
    const own = figures.moneyOf(isIn);
    reading.row({
      ...{ Model: name, Requests: counted(made(isIn).length) },
      ...{ Success: share(figures.count('ok', isIn), made(isIn).length) },
      ...{ 'Upstream errors': counted(figures.count('upstream_error', isIn)), Charged: amountIn(own.cost) },
      ...{ 'Own cost': amountIn(own.ownCost), Margin: amountIn(own.margin) },
    });
  }
}

const requests: Check = (reading) => {
  for (const one of newest(always)) reading.row({ Model: one.model || '–', Charged: costOf(one) });
  reading.line(`1–25 of ${counted(known.made.length)}`);
  reading.rest(isModel);
};

const story: Check = (reading) => {
  const call = refunded().call;
  reading.tile('Charged', shown(call.cost, true));
  reading.tile('Own cost', shown(call.own!, true));
  reading.tile('Margin', shown(-call.own!, true));
  reading.tile('Refunded', shown(call.cost, true));
  reading.tile('Usage', `${call.used['input']} input, ${call.used['output']} output`);
  const { input, output } = catalogue[call.model]!.price;
  const perMillion = (price: number) =>
    price < 1 || price % 1 ? String(price).replace(/^(\d+\.\d)$/, '$10') : String(price);
  const formula = `(${call.used['input']} input × ${perMillion(input!)} + ${call.used['output']} output × ${perMillion(output!)}) / 1M`;
  reading.line(formula);
};
const refunded = () => figures.refunds[0]!;

const money: Check = (reading, zone) => {
  const all = figures.moneyOf();
  const flow = (what: Parameters<Figures['flow']>[0]) => nano(figures.flow(what));
  reading.tile(
    'Charged',
    amountIn(all.cost),
    `for calls, from paid and given money · Refunded ${amountIn(all.refunded)}`,
  );
  reading.tile('Own cost', amountIn(all.ownCost));
  reading.tile('Written off (estimate)', amountIn(all.writtenOff));
  reading.tile('Margin', ...marginOf(all));
  const [card, byHand] = [flow('card'), flow('byHand')];
  reading.tile('Cash in', shown(card + byHand), `card ${shown(card)} · by hand ${shown(byHand)}`);
  const [plans, codes, promotions] = [flow('plan'), flow('code'), flow('promotion')];
  const given = `plans ${shown(plans)} · codes ${shown(codes)} · promotions ${shown(promotions)}`;
  reading.tile(
    'Given',
    shown(plans + codes + promotions),
    new RegExp(`^${RegExp.escape(given)}(?: · of it expired \\$[\\d.]+)?$`),
  );
  const [paid, free] = [flow('usedPaid'), flow('usedGiven')];
  const used = `paid ${shown(paid)} · given ${shown(free)} · for plans $5.00 · debits $0.25`;
  reading.tile('Used', shown(paid + free), used);
  reading.tile('Owed to clients', shown(flow('owed')));
  for (const { name, money: own, calls } of byName('model', ({ settled, own }) => settled && own === undefined))
    reading.row({ Model: name, Requests: counted(calls.length), 'Without own cost': amountIn(own.uncosted) });
  const days = [...new Set(known.made.map(({ at }) => dayIn(zone, at)))];
  const columns = (of: ReturnType<Figures['moneyOf']>, count: number) => ({
    ...{ Requests: counted(count), Charged: amountIn(of.cost), 'Own cost': amountIn(of.ownCost) },
    ...{ 'Written off (estimate)': amountIn(of.writtenOff), Margin: amountIn(of.margin) },
    ...{ Refunded: amountIn(of.refunded), 'Without own cost': amountIn(of.uncosted) },
  });
  for (const day of days) {
    const isDay = (at: number) => dayIn(zone, at) === day;
    const date = new Date(`${day}T12:00:00Z`).toLocaleDateString('en-US', {
      month: 'short',
      day: 'numeric',
      timeZone: 'UTC',
    });
    const own = figures.moneyOf(always, isDay);
    reading.row({ Day: new RegExp(`\\b${date}$`), ...columns(own, made(({ at }) => isDay(at)).length) });
  }
  reading.row({ Day: 'Sum of these rows', ...columns(all, made().length) });
  reading.rest();
};

const accounts: Check = (reading) => {
  for (const person of [known.ada, known.bob, known.cem])
    reading.row({ Name: new RegExp(RegExp.escape(person.email)), Balance: shown(balanceOf(person)) });
  reading.row({ Name: 'demo', Balance: '$10.00' });
  reading.row({ Name: /oscar@/, Balance: '$1.00' });
  reading.rest(/^1(?:\.2)?$/, /^saver → /);
};

const account: Check = (reading) => {
  const balance = shown(balanceOf(known.ada));
  reading.tile('Balance', balance, 'Set aside for running calls $0.00');
  reading.tile('Spendable now', balance);
  reading.tile('Charged in 30 days', amountIn(figures.moneyOf(ofAda).cost));
  reading.tile('Requests in 30 days', counted(made(ofAda).length));
  for (const { name, amount, left } of lotsOf(figures, known.ada)) {
    const [rest, whole] = [shown(left), shown(amount)];
    const end = new RegExp(
      `^${RegExp.escape(`${rest} / ${whole} · `)}(?:expires (?:in \\d+ (?:days?|hours?)|tomorrow)|does not expire)$`,
    );
    reading.tile(name, rest, `${rest} of ${whole} left`, end);
  }
  reading.tile('Multiplier', '1');
  rowsByModel(reading, ofAda);
  reading.rest(/, 30 days$/, /^[\da-f-]{36}$/, /^ada@example\.test/);
};

const upstreams: Check = (reading) => {
  const isLate = ({ at }: Made) => at > known.now - 3_600_000;
  for (const { name, calls } of byName('provider', (call) => isLate(call) && call.provider !== '')) {
    const costs = calls.flatMap(({ own }) => own ?? []);
    const some = calls.filter(({ result }) => result === 'upstream_error').length;
    reading.row({
      Upstream: name,
      'Upstream errors': String(some),
      'Own cost': costs.length === 0 ? '–' : shown(sum(costs)),
    });
  }
  reading.rest(/^Show \d+ without a request/, /^[\d.]+%$/, /^1 \/ 1$/, /^\d+$/);
};

const plans: Check = (reading) => {
  reading.tile('Free', 'Default', 'Free', '$1.00 to spend a month');
  reading.tile(
    'Pro',
    '$20.00 a month',
    '$25.00 to spend a month',
    'at most $5.00 in 5 hours',
    'at most $15.00 in a week',
  );
  reading.tile('Saver', '$5.00 a month', '$8.00 to spend a month', 'Price ratio 1.2');
  for (const tokens of ['2M', '10M'])
    reading.line('600 requests a minute', `${tokens} tokens a minute`, /^50 (?:at a time|calls at the same time)$/);
  reading.rest();
};

const prices: Check = (reading) => {
  for (const [id, { price }] of Object.entries(catalogue)) {
    const own = listed(price).map(dollars);
    const row = reading.take({ Model: named(id) });
    for (const column of ['Input', 'Cached', 'Output', 'Image', 'Second'])
      assert.ok(
        ['', 'free', undefined].includes(row[column]) || own.includes(row[column]!),
        `${id} ${column}: ${row[column]} of ${own.join(', ')}`,
      );
    if (ownCosts[id] !== undefined)
      assert.equal(
        row['Own cost'],
        `${shown(nano(String(ownCosts[id]['input'])))} / ${shown(nano(String(ownCosts[id]['output'])))}`,
      );
  }
  reading.rest();
};

const operatorPages: Readonly<Record<string, Check>> = {
  '/admin/overview': overview,
  '/admin/monitor?span=24h': monitor,
  '/admin/requests?span=24h': requests,
  '/admin/upstreams': upstreams,
  '/admin/alerts': (reading) => reading.rest(),
  '/admin/tasks': (reading) => {
    for (const state of ['Succeeded', 'Succeeded', 'Failed'])
      reading.row({ Model: 'grok-imagine-image', State: state, Progress: state === 'Failed' ? '0 %' : '100 %' });
    reading.rest();
  },
  '/admin/files': (reading) => {
    reading.row({ Name: 'lines.jsonl', Size: `${known.batchBytes} bytes` });
    reading.row({ Name: /^batch_\w+_output\.jsonl$/ });
    reading.rest();
  },
  '/admin/batches': (reading) => {
    reading.row({ Lines: '5', Failed: '0', Charged: batchCost() });
    reading.rest();
  },
  '/admin/accounts': accounts,
  '/admin/people': (reading) => reading.rest(),
  '/admin/plans': plans,
  '/admin/codes': (reading) => {
    reading.cells(/…$/, 'spring', '$2.50', '1 of 1');
    reading.rest();
  },
  '/admin/prices': prices,
  '/admin/nodes': (reading) => {
    reading.row({ Version: '0.1.0', Leases: /^\d+$/, 'Leased out': /^\$/ });
    reading.rest();
  },
  '/admin/audit': (reading) => {
    for (const { amount } of figures.refunds.toReversed()) reading.row({ Reason: `${usd(amount)} USD: test` });
    reading.row({ Reason: '0.25 USD: a correction' });
    reading.row({ Reason: '30.00 USD: an invoice' });
    reading.row({ Action: 'codes.create', Reason: /^1 codes?$/ });
    reading.rest(/^127\.0\.0\.1$/, /^…\w+$/, /^WPKR|^[A-Z\d]{4}-/);
  },
};

test('pages of operators and of strangers show the numbers of the known set alone', async () => {
  for (const zone of zones) {
    const page = await pageIn(zone, operator);
    await readAll(page, zone, {
      ...operatorPages,
      [`/admin/requests/${refunded().call.id}`]: story,
      [`/admin/accounts/${known.ada.accountId}`]: account,
      '/admin/money': money,
    });
    await page.close();
  }
  for (const zone of zones) {
    const page = await pageIn(zone);
    await readAll(page, zone, {
      '/welcome': (reading, zone) => {
        reading.line(`${Object.keys(catalogue).length} models, one address`);
        models(10n)(reading, zone);
      },
      '/status': (reading) => {
        for (const [id, { display_name: name }] of Object.entries(catalogue))
          if (uptimeOf(id) !== 'no calls') reading.tile(name, uptimeOf(id), uptimeOf(id));
        reading.rest(/^A bar is an hour/, /^How much of real traffic/, /^Fails at the moment/);
      },
    });
    await page.close();
  }
  assert.deepEqual(complaints, []);
});
