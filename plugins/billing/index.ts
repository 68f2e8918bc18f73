/** Billing: holds the most a call may cost before it is sent, settles its actual cost, and keeps the ledger. */

import { definePlugin, type Host, type Notice, type PluginInstance } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { accounts, caller } from '../common/domain/accounts.ts';
import { accountAdmin } from '../common/domain/admin/accounts.ts';
import { alertEvents } from '../common/domain/admin/alerts.ts';
import { ledgerQueries, payments } from '../common/domain/admin/ledger.ts';
import { movedAccounts } from '../common/domain/admin/notices.ts';
import { requestSumsAudit } from '../common/domain/admin/requests.ts';
import { callRow, callRows, requestSumTable } from '../common/domain/call-facts.ts';
import { attempts, call, conversation, ruled, spendGuard, usageReport, vendorBatch } from '../common/domain/calls.ts';
import { type Database, database } from '../common/domain/database.ts';
import { authorization, authorizations, funds, heldEstimate, ledger, pool } from '../common/domain/ledger.ts';
import { catalog, instead, model, modelSwitch } from '../common/domain/models.ts';
import { budgetAdmin } from '../common/domain/organizations/budgets.ts';
import { creditLineAdmin } from '../common/domain/organizations/credit-lines.ts';
import { projectAdmin } from '../common/domain/organizations/projects.ts';
import { statementAdmin } from '../common/domain/organizations/statements.ts';
import { plan, plans, rateLimits } from '../common/domain/plans.ts';
import { multipliers, priceRatio } from '../common/domain/price-ratio.ts';
import { sealedFiles } from '../common/domain/stored-files.ts';
import { lookMs } from '../common/kit/pace.ts';
import { foldEveryMs, foldSums } from '../common/rollups/fold.ts';
import { admitted, admittedOrders } from '../common/wire/admission-rules.ts';
import { creditTermsOf, openCreditLines } from './accounts/credit-lines.ts';
import { openLedgerService } from './accounts/service.ts';
import { type Archive, openArchive } from './archive/archive.ts';
import { audit } from './audit/audit.ts';
import { endingReservations } from './authorizations/admitted.ts';
import { AuthorizationStore } from './authorizations/authorizations.ts';
import { amountOf, authorizationOf, isOrder, requireWithin } from './authorizations/offers.ts';
import { callWithHold, estimateHold } from './calls.ts';
import { commandsOf } from './commands/ledger.ts';
import { type Config, configSchema, nodesOf, noticesOf, rulesOf } from './config.ts';
import { Estimates } from './estimates/unreported.ts';
import { readPaying } from './grants/funds.ts';
import { type Files, nodeFiles } from './journal/segments.ts';
import { openCallRows } from './ledger/call-rows.ts';
import { callSums } from './ledger/call-sums.ts';
import { statementOf } from './reports/ledger-pages.ts';
import { openLedgerQueries, withPages } from './reports/ledger-queries.ts';
import { openMovedAccounts } from './reports/moved.ts';
import { journalOf } from './reports/nodes.ts';
import { admitByBalance, requireFunds } from './reservations/admission.ts';
import { noticesOfOverdraft } from './reservations/bound.ts';
import type { HoldRules } from './reservations/call-terms.ts';
import { auditWith, RestoreWatch } from './restores/watch.ts';
import { type BillingRuntime, healthOf, journalDirectory, openBillingRuntime } from './runtime.ts';
import { openScopes, type Scopes } from './scopes.ts';
import { openStatements, type Statements } from './statements/statements.ts';
import { type Store, sqlStore } from './store.ts';

const syncMs = 50;
const progressMs = 3_000;
const sweepMs = 15_000;
const expiryMs = 300_000;

export default definePlugin<Config>({
  name: 'billing',
  config: configSchema,
  services: {
    requires: [database],
    optional: [
      ...[accountAdmin, accounts, catalog, modelSwitch, multipliers, plans, rateLimits],
      ...[requestSumsAudit, requestSumTable, alertEvents, payments, sealedFiles, admittedOrders, projectAdmin],
    ],
    provides: [
      ...[ledger, pool, funds, authorizations, ledgerQueries, movedAccounts, callRows],
      ...[statementAdmin, budgetAdmin, creditLineAdmin],
    ],
  },
  requires: [call, caller, model],
  optional: [plan, priceRatio, instead, conversation, ruled, admitted],
  sets: [spendGuard, authorization, callRow, heldEstimate],
  requiresAtEnd: [attempts, usageReport],
  setup: (host, config) => setUpBilling(host, config, nodeFiles),
});

/** Sets the plugin up with the given file operations and ledger. */
export async function setUpBilling(
  host: Host,
  config: Config,
  files: Files,
  ledgerOf: typeof sqlStore = sqlStore,
): Promise<PluginInstance<Config>> {
  const store = host.get(database);
  await store.migrate('billing', new URL('./migrations/', import.meta.url));
  const rows = ledgerOf(store, () => host.find(requestSumTable));
  const state: State = { config, rules: rulesOf(config), runtime: undefined };
  const storage = { store, rows, files, ...openFiles(host, store, config) };
  const { ledgerService, authorizationStore, scoped, commands, watch } = provideAll(host, state, storage);
  const estimates = new Estimates();
  return {
    applies: (endpoint) => endpoint.handle === undefined || endpoint.deferred === true,
    reload: {
      members: ['hold', 'budgets'],
      prepare: (changed: Config) => () => takeChange(state, scoped, changed),
    },
    admit: (exchange) => state.runtime && admitByBalance(exchange, state.runtime.reservations, host),
    handle: (exchange, next) => {
      if (!exchange.get(call).billable) return next();
      const { runtime, rules } = state;
      if (runtime === undefined)
        throw new GatewayError('overloaded', 'The gateway is starting.', { retryAfterMs: 1_000 });
      const stage = exchange.find(vendorBatch);
      if (stage === 'answer') return next();
      if (stage === 'estimate') return estimateHold(exchange, rules, host.clock.now());
      if ((stage !== undefined || exchange.endpoint.deferred === true) && isOrder(exchange)) {
        exchange.set(authorization, authorizationOf(exchange, authorizationStore, scoped, host.clock.now()));
        return next();
      }
      return callWithHold(exchange, { reservations: runtime.reservations, ...scoped, rules, host, estimates }, next);
    },
    commandLine: { commands },
    checks: {
      notices: () => noticesFor(host, state, store.shared === true),
      problems: storage.archive.problems,
    },
    health: healthOf(() => state.runtime, watch),
    lifecycle: {
      start: async () => {
        await scoped.start();
        const running = await openBillingRuntime(host, rows, files, {
          ...runtimeOptions(config, store, watch),
          stepTokens: state.rules.stepTokens,
          upkeep: ledgerService.applyDueTerms,
        });
        state.runtime = running;
        runBackgroundWork(host, store, running, () => ledgerService.changes.bookExpired());
        for (const each of [storage.archive, storage.statements]) each.start();
      },
      drain: () => state.runtime?.leases?.drain(),
      stop: async () => {
        const running = state.runtime;
        state.runtime = undefined;
        await running?.close();
      },
    },
  };
}

/** State that changes while the plugin lives. */
interface State {
  config: Config;
  rules: HoldRules;
  /** Set from start to stop. */
  runtime: BillingRuntime | undefined;
}

/** Existing holds stay; later extensions of a long answer use the new step. */
function takeChange(state: State, scoped: Scopes, changed: Config): void {
  state.config = changed;
  state.rules = rulesOf(changed);
  scoped.change(changed);
  if (state.runtime !== undefined) state.runtime.reservations.stepTokens = state.rules.stepTokens;
}

interface Storage {
  readonly store: Database;
  readonly rows: Store;
  readonly files: Files;
  readonly archive: Archive;
  readonly statements: Statements;
}

function openFiles(host: Host, store: Database, config: Config): Pick<Storage, 'archive' | 'statements'> {
  const archive = openArchive(host, store, config.archive.after, nodesOf(config));
  const statements = { ...config.statements, payWithinMs: config.credit_lines.pay_within };
  return { archive, statements: openStatements(host, store, archive.reader, statements) };
}

function provideAll(host: Host, state: State, { store, rows, files, archive, statements }: Storage) {
  const directory = journalDirectory(host);
  const watch = rows.restores && new RestoreWatch({ host, rows: rows.restores, journal: directory });
  watch?.listen(store);
  const credit = creditTermsOf(state.config, store);
  const ledgerService = openLedgerService({
    ...{ host, database: store, store: rows, runtime: () => state.runtime, watch, credit },
  });
  host.provide(creditLineAdmin, openCreditLines(ledgerService.changes, store, credit, host.clock));
  host.provide(ledger, { ...ledgerService.ledger, processes: store.shared === true ? state.config.nodes : undefined });
  host.provide(pool, ledgerService.pool);
  host.provide(funds, {
    require: async (exchange, amount) =>
      state.runtime && requireFunds(exchange, state.runtime.reservations, host, undefined, amount),
    fits: (calls) => requireWithin(calls, scoped, state.rules, host.clock.now()),
    paying: (accountIds, orm) => readPaying(orm, store.schema, accountIds),
    amountOf: (exchange) => amountOf(exchange, state.rules, host.clock.now()),
  });
  const authorizationStore = new AuthorizationStore(host, ledgerService.changes);
  host.provide(
    authorizations,
    endingReservations(authorizationStore, () => host.find(admittedOrders)),
  );
  host.provide(callRows, openCallRows(store));
  const scoped = openScopes(host, { store, rows: rows.ownBudgets }, state.config, () => state.runtime);
  const check = auditWith(rows.restores, (days) =>
    audit(store.orm, store.schema, { days, archive: archive.reader, requestSums: host.find(requestSumsAudit) }),
  );
  const self = () => ({ files, directory, pending: state.runtime?.backlog.rows, at: host.clock.now() });
  const mismatch = (findings: number) => host.find(alertEvents)?.report('ledger_mismatch', 'ledger', { findings });
  const journal = () =>
    journalOf(self(), state.config.journal.backlog, state.runtime?.reservations.accepting() ?? true);
  const charges = { orm: store.orm, schema: store.schema, archive: archive.reader, now: () => host.clock.now() };
  const queries = openLedgerQueries({ store: charges, audit: check, self, journal, mismatch });
  host.provide(ledgerQueries, withPages(queries, charges, store.pages));
  host.provide(movedAccounts, openMovedAccounts(store));
  const commands = commandsOf({
    ...{ host, store, archive, statements, watch, ledger: ledgerService.ledger, pool: ledgerService.pool },
    statement: (accountId, limit) => statementOf(charges, accountId, limit),
    audit: check,
    journal: { files, directory, cursorOf: (name) => rows.cursorOf(name) },
  });
  return { ledgerService, authorizationStore, scoped, commands, watch };
}

function noticesFor(host: Host, { config, rules }: State, isShared: boolean): Notice[] {
  return [...noticesOf(config, isShared), ...noticesOfOverdraft(host, rules, isShared ? nodesOf(config) : 1)];
}

function runtimeOptions({ journal, accounts, nodes }: Config, store: Database, watch: RestoreWatch | undefined) {
  return {
    segmentBytes: journal.segment,
    journalBytes: journal.limit,
    backlogLimit: journal.backlog,
    accountLimit: accounts,
    shared: store.shared === true ? store : undefined,
    nodeLimit: nodesOf({ nodes }),
    onCopy: store.onCopy,
    watch,
  };
}

function runBackgroundWork(
  host: Host,
  store: Database,
  running: BillingRuntime,
  bookExpired: () => Promise<void>,
): void {
  host.every(syncMs, 'sync the journal', () => running.tick());
  host.every(lookMs, 'write the ledger', () => running.apply());
  host.every(expiryMs, 'book what has expired', () => bookExpired());
  host.every(progressMs, 'note progress', () => running.reservations.noteProgress());
  host.every(foldEveryMs, 'fold sums of calls', () => foldSums(store.orm, store.schema, callSums, host.clock.now()));
  host.every(sweepMs, 'forget idle accounts', () => running.balances.sweep());
  host.every(sweepMs, 'delete applied journal segments', () => running.release());
  store.onChange('account', (accountId) => {
    // Calls that need more refresh a lease share; a purchased plan must be known earlier.
    if (running.balances.knows(accountId)) void running.flusher.refresh(accountId);
  });
}
