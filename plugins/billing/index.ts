/** Billing: holds what a call may cost before it is sent, settles what it did cost, and keeps the ledger. */
import { type Clock, definePlugin, type Exchange, type Host, type Outcome, type Part } from '../../core/contract.ts';
import { moneyDesk } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { count, size, z } from '../../core/schema.ts';
import { maxCount } from '../../core/usage.ts';
import {
  accounts,
  attempts,
  call,
  caller,
  catalog,
  type Database,
  type Deposit,
  database,
  deposit,
  deposits,
  ledger,
  type Meter,
  meter,
  model,
  multipliers,
  plan,
  plans,
  pool,
  priceRatio,
  tell,
  usageReport,
} from '../../core/vocabulary.ts';
import { share } from './absorbed.ts';
import { audit } from './audit.ts';
import { type Books, journalDirectory, openBooks } from './books.ts';
import { overdraftNotices } from './bound.ts';
import { type HoldRules, termsOf } from './call-terms.ts';
import { Caps } from './caps.ts';
import { boundOf } from './charge.ts';
import { commandsOf } from './commands.ts';
import { Vault } from './deposits.ts';
import type { Desk } from './desk.ts';
import { departures, type Hold } from './hold.ts';
import { holdWithin, keySpend } from './key-spend.ts';
import { attemptNotes, judge, type Verdict } from './outcome.ts';
import { openTill } from './pool.ts';
import { openMoneyDesk } from './reports/desk.ts';
import { readLedger } from './rows.ts';
import { type Files, nodeFiles } from './segments.ts';
import { type Store, sqlStore } from './store.ts';
import { endLine, endValues, heldLine, heldValues } from './story.ts';

const configSchema = z.strictObject({
  hold: z
    .strictObject({
      output_tokens: count()
        .default(4096)
        .describe('Output tokens that a hold covers at most; a longer answer extends it by as many.'),
      whole_answers: z
        .enum(['step', 'bound'])
        .default('step')
        .describe(
          'What is set aside for an answer that is not streamed: output_tokens (step; it may cost more than the balance), or all that it can cost (bound).',
        ),
    })
    .prefault({})
    .describe('How much is set aside for a call before it is sent.'),
  journal: z
    .strictObject({
      segment: size()
        .default(8 * 2 ** 20)
        .describe('Size at which the next journal file is begun.'),
      limit: size()
        .default(4 * 2 ** 30)
        .describe('Journal files on disk at most; beyond that new calls are refused.'),
      backlog: count()
        .default(200_000)
        .describe('Ledger rows that may wait for the database before new calls are refused.'),
    })
    .prefault({})
    .describe('The local file in which every hold and charge is recorded before the database has it.'),
  nodes: count()
    .default(8)
    .describe('Processes that may serve from one Postgres at once, draining ones included; one more does not start.'),
  accounts: count().default(100_000).describe('Accounts whose balance is kept in memory at most.'),
});

type Config = z.output<typeof configSchema>;

const syncMs = 50;
const applyMs = 50;
const progressMs = 3_000;
const sweepMs = 15_000;

/** What is done later is covered whole. */
const wholeOrder: HoldRules = { stepTokens: maxCount, wholeAnswers: 'step' };

export default definePlugin<Config>({
  name: 'billing',
  config: configSchema,
  needs: [database],
  uses: [accounts, catalog, multipliers, plans],
  provides: [ledger, pool, deposits, moneyDesk],
  reads: [call, caller, model],
  finds: [plan, priceRatio],
  writes: [meter, deposit],
  awaits: [attempts, usageReport],
  setup: (host, config) => setUpBilling(host, config, nodeFiles),
});

/** The plugin's setup with the file functions and the ledger of the caller's choice. */
export async function setUpBilling(
  host: Host,
  config: Config,
  files: Files,
  ledgerOf: (store: Database) => Store = sqlStore,
): Promise<Part<Config>> {
  const store = host.need(database);
  await store.migrate('billing', new URL('./migrations/', import.meta.url));
  let rules = rulesOf(config);
  let books: Books | undefined;
  const rows = ledgerOf(store);
  const till = openTill(host, store, rows, () => books);
  host.provide(ledger, till.ledger);
  host.provide(pool, till.pool);
  const vault = new Vault(host, till.changes);
  host.provide(deposits, vault);
  const caps = new Caps({
    clock: host.clock,
    log: host.log,
    spentSince: (keyId, from) => keySpend(rows, books!, keyId, from),
    shared: store.shared === true,
    limit: config.accounts,
  });
  const directory = journalDirectory(host);
  const check = () => audit(store.orm, store.schema, files, directory);
  const self = () => ({ files, directory, pending: books?.backlog.rows, at: host.clock.now() });
  host.provide(moneyDesk, openMoneyDesk({ store, audit: check, self }));
  return {
    applies: (endpoint) => endpoint.handle === undefined || endpoint.later === true,
    reloads: ['hold'],
    // Money that is held already stays as it is; later steps of a long answer are as large as is written now.
    prepare: (changed: Config) => () => {
      rules = rulesOf(changed);
      if (books !== undefined) books.desk.stepTokens = rules.stepTokens;
    },
    handle: async (exchange, next) => {
      if (!exchange.get(call).billable) return next();
      if (books === undefined)
        throw new GatewayError('overloaded', 'The gateway is starting.', { retryAfterMs: 1_000 });
      if (exchange.endpoint.later === true) {
        exchange.set(deposit, offerOf(exchange, vault, caps, host.clock.now()));
        return next();
      }
      const opening = openAccount(exchange, { desk: books.desk, caps, rules, clock: host.clock });
      // As a rule the account is in memory, and nothing is waited for.
      if (opening !== undefined) await opening;
      return next();
    },
    commands: commandsOf({
      host,
      store,
      ledger: till.ledger,
      pool: till.pool,
      readLedger: (accountId, limit) => readLedger(store.orm, store.schema, accountId, limit),
      audit: check,
    }),
    notices: () =>
      overdraftNotices({
        rules,
        at: host.clock.now(),
        models: host.find(catalog)?.list() ?? [],
        idOf: (name) => host.find(catalog)?.find(name)?.id,
        plans: host.find(plans)?.list() ?? [],
        multipliers: host.find(multipliers),
        nodes: store.shared === true ? config.nodes : 1,
      }),
    ready: () => books?.desk.accepting() ?? false,
    // It stays shut out until the journal is read anew, which happens at a start; what is under way ends in the drain before.
    alive: () => books?.desk.shutOut !== true,
    start: async () => {
      const running = await openBooks(host, rows, files, {
        stepTokens: rules.stepTokens,
        segmentBytes: config.journal.segment,
        journalBytes: config.journal.limit,
        backlogLimit: config.journal.backlog,
        accountLimit: config.accounts,
        shared: store.shared === true ? store : undefined,
        nodeLimit: config.nodes,
        upkeep: till.upkeep,
        onCopy: store.onCopy,
      });
      books = running;
      host.every(syncMs, 'sync the journal', () => running.tick());
      host.every(applyMs, 'write the ledger', async () => void (await running.apply()));
      host.every(progressMs, 'note progress', () => running.desk.noteProgress());
      host.every(sweepMs, 'forget idle accounts', () => running.purses.sweep());
      store.onChange('account', (accountId) => {
        // A slice is refreshed by whoever needs more of it; that a plan was bought is to be known before.
        if (running.purses.knows(accountId)) void running.flusher.refresh(accountId);
      });
    },
    drain: () => books?.lettings?.drain(),
    stop: async () => {
      const running = books;
      books = undefined;
      await running?.close();
    },
  };
}

function rulesOf({ hold }: Config): HoldRules {
  return { stepTokens: hold.output_tokens, wholeAnswers: hold.whole_answers };
}

/** What an order may place, within the cap of its key. */
function offerOf(exchange: Exchange, vault: Vault, caps: Caps, at: number): Deposit {
  const terms = termsOf(exchange, wholeOrder, at);
  const { cap } = exchange.get(caller);
  const offer = vault.offer(terms);
  return cap === undefined ? offer : caps.guard(offer, cap, boundOf(terms, terms.outputTokens));
}

/** What every call's money goes through. */
interface Counter {
  readonly desk: Desk;
  readonly caps: Caps;
  readonly rules: HoldRules;
  readonly clock: Clock;
}

/** Holds the money, and makes sure that the hold ends however the exchange does. */
function openAccount(exchange: Exchange, counter: Counter): undefined | Promise<void> {
  const { desk, caps, rules, clock } = counter;
  const terms = termsOf(exchange, rules, clock.now());
  const { cap } = exchange.get(caller);
  const taken = cap === undefined ? desk.hold(terms) : holdWithin(caps, cap, terms, desk);
  if (taken instanceof Promise) return taken.then((hold) => watch(exchange, counter, hold));
  watch(exchange, counter, taken);
  return undefined;
}

function watch(exchange: Exchange, { desk, caps, clock }: Counter, hold: Hold): void {
  exchange.defer((outcome) => {
    const verdict = settle(exchange, desk, hold, outcome.kind);
    if (hold.terms.cap === undefined && hold.spent !== undefined)
      caps.charged(hold.terms.keyId, hold.spent, clock.now());
    tell(exchange, clock.now(), endLine, () => endValues(hold, verdict));
  });
  exchange.beforeSend((sending) => desk.sent(hold, sending.find(attempts)?.at(-1)));
  exchange.set(meter, new HoldMeter(desk, hold));
  const { held, terms } = hold;
  tell(exchange, terms.at, heldLine, () => heldValues(held, terms));
}

function settle(exchange: Exchange, desk: Desk, hold: Hold, outcome: Outcome['kind']): Verdict {
  const list = exchange.find(attempts) ?? [];
  const sent = departures(hold);
  const report = exchange.find(usageReport);
  const { seenOutput, unpaid } = hold;
  const { inputTokens } = hold.terms;
  const verdict = judge({ attempts: list, sent, report, outcome, inputTokens, seenOutput, unpaid });
  desk.end(hold, verdict, share(attemptNotes(list, sent), list, verdict, hold.terms));
  return verdict;
}

class HoldMeter implements Meter {
  readonly #desk: Desk;
  readonly #hold: Hold;

  constructor(desk: Desk, hold: Hold) {
    this.#desk = desk;
    this.#hold = hold;
  }

  observe(outputTokens: number): boolean {
    return this.#desk.observe(this.#hold, outputTokens);
  }

  charged(): ReturnType<NonNullable<Meter['charged']>> {
    const { spent, own } = this.#hold;
    return spent === undefined ? undefined : { cost: spent, own };
  }
}
