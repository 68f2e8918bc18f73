/** Faults in how a second try runs beside the first, and in what becomes of the one that loses. */
import type { Branch } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import { UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import type { LiveBranch, LiveExchange } from '../../core/http/exchange.ts';
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import { call, conversation, type SpendGuard, spendGuard, usageReport } from '../../plugins/common/domain/calls.ts';
import { target } from '../../plugins/common/domain/upstreams.ts';
import { attemptsIn } from './memory-records.ts';
import type { Mutant } from './mutants.ts';
import { editing, redefine } from './mutants-tools.ts';
import { forward } from './visit.ts';

/** Changes each branch of an exchange. */
const onBranches =
  (change: (branch: LiveBranch) => void) =>
  (exchange: LiveExchange): void => {
    const fork = exchange.fork.bind(exchange);
    exchange.fork = () => {
      const branch = fork();
      change(branch);
      return branch;
    };
  };

/** Changes how a call that was charged has ended. */
const charging = (edit: (record: Extract<EndRecord, { kind: 'SETTLE' }>) => EndRecord) =>
  editing((record) => (record.kind === 'SETTLE' ? edit(record) : record));

/** Changes what the gateway's file says of hedges. */
const hedging = (edit: object) => (section: object) =>
  'hedge' in section ? { ...section, hedge: { ...(section.hedge as object), ...edit } } : section;

/** Why a try is stopped that has lost; one that has failed is stopped for that. */
const isOutrun = ({ kind }: GatewayError) => kind === 'client_left';

export const hedgeMutants: Readonly<Record<string, Mutant>> = {
  'loser-unbooked': {
    summary: 'a try that has lost leaves no row',
    link: charging((record) => ({
      ...record,
      attempts: attemptsIn(record).filter(({ bearer }) => bearer === 'client'),
    })),
  },
  'loser-charged': {
    summary: 'the client pays for both tries',
    link: charging((record) => ({
      ...record,
      cost: (BigInt(record.cost) + BigInt(record.absorbed ?? 0)).toString(),
      absorbed: undefined,
    })),
  },
  'loser-free': {
    summary: 'what a try that has lost may cost is not booked',
    link: charging(({ absorbed: _absorbed, ...record }) => record),
  },
  'loser-keeps-its-place': {
    summary: 'the place of a try that has lost is not given back',
    exchange: onBranches((branch) => {
      const stop = branch.stop.bind(branch);
      branch.stop = (reason) => {
        stop(reason);
        // A timer stops a branch that is read on; no one is notified in its turn.
        if (isOutrun(reason) && branch.get(target).upstream.drain === undefined)
          throw new Error('it was closed already');
      };
    }),
  },
  'loser-runs-on': {
    summary: 'the vendor of a try that has lost is not stopped',
    exchange: onBranches((branch) => {
      const stop = branch.stop.bind(branch);
      branch.stop = (reason) => {
        if (!isOutrun(reason)) stop(reason);
      };
    }),
  },
  'failed-one-has-a-say': {
    summary: 'a client that leaves goes by the vendor of a try that has failed',
    exchange: onBranches((branch) => {
      const stop = branch.stop.bind(branch);
      branch.stop = (reason) => {
        if (isOutrun(reason)) stop(reason);
      };
    }),
  },
  'loser-joined': {
    summary: 'the call goes on as its first try, whichever has answered',
    exchange: (exchange) => {
      const fork = exchange.fork.bind(exchange);
      let first: Branch | undefined;
      exchange.fork = () => {
        const branch = fork();
        first ??= branch;
        branch.join = () => exchange.adoptBranch(first as LiveBranch);
        return branch;
      };
    },
  },
  'loser-settled-late': {
    summary: 'a call is settled before the try that has lost has come to its end',
    exchange: (exchange) => {
      const defer = exchange.defer.bind(exchange);
      exchange.defer = (work) =>
        defer((outcome) => (String(work).includes('#end(') ? void work(outcome) : work(outcome)));
    },
  },
  'first-words-unmetered': {
    summary: 'what a try has shown before it was chosen is not metered',
    exchange: onBranches((branch) => {
      const [set, join] = [branch.set.bind(branch), branch.join.bind(branch)];
      let isChosen = false;
      branch.join = () => {
        isChosen = true;
        join();
      };
      branch.set = (fact, value) => {
        if ((fact as unknown) !== spendGuard) return set(fact, value);
        const { observe } = value as SpendGuard;
        return set(fact, { observe: (tokens: number) => !isChosen || observe.call(value, tokens) } as never);
      };
    }),
  },
  'hedge-without-client': {
    summary: 'a second try is sent for a client that has left',
    exchange: onBranches((branch) => redefine(branch, 'clientDisconnected', { get: () => undefined, set: () => {} })),
  },
  'losses-unbounded': {
    summary: 'a try that may have run is followed by another one whatever it may have cost',
    exchange: (exchange) => {
      const set = exchange.set.bind(exchange);
      exchange.set = (fact, value) => {
        if ((fact as unknown) === spendGuard)
          redefine(value as SpendGuard, 'writeOff', { value: () => true, configurable: true });
        set(fact, value);
      };
    },
  },
  'other-at-own-price': {
    summary: 'a call that another model has served costs what its own model does',
    exchange: (exchange) => {
      const set = exchange.set.bind(exchange);
      exchange.set = (fact, value) => {
        if ((fact as unknown) === spendGuard)
          redefine(value as SpendGuard, 'serve', { value: () => true, configurable: true });
        set(fact, value);
      };
    },
  },
  'opening-billed': {
    summary: 'a refusal in a stream before the first word is charged with its prompt',
    forward: async (exchange) => {
      try {
        return await forward(exchange);
      } catch (error) {
        const report = exchange.find(usageReport);
        if (!(error instanceof UpstreamRefusal) || error.mayRun || report?.usage === undefined) throw error;
        if (Object.keys(report.usage).length > 0) throw error;
        exchange.set(usageReport, { ...report, usage: { input: exchange.get(call).inputTokens } });
        throw new UpstreamRefusal(error.error, { ...error, hasUsage: true });
      }
    },
  },
  'break-unbooked': {
    summary: 'what an attempt that may have run may cost is not booked where another one follows',
    link: editing((record) => {
      if (record.kind !== 'SETTLE' && record.kind !== 'VOID') return record;
      const attempts = attemptsIn(record).map((note) =>
        note.result === 'unknown' ? { ...note, absorbed: '0' } : note,
      );
      return { ...record, attempts, absorbed: undefined };
    }),
  },
  'losses-uncounted': {
    summary:
      'what attempts may have cost that were followed by another one does not count against the share of the hour',
    exchange: (exchange) => {
      const set = exchange.set.bind(exchange);
      exchange.set = (fact, value) => {
        const guard = value as SpendGuard;
        const writeOff = (fact as unknown) === spendGuard ? guard.writeOff?.bind(guard) : undefined;
        if (writeOff !== undefined)
          guard.writeOff = (attempt, share) => writeOff(attempt, share) || (share > 0 && attempt.number < 9);
        set(fact, value);
      };
    },
  },
  'given-up': {
    summary: 'a call does not fail over from an attempt that may have run',
    route: (section) => ({ ...section, retry_ambiguous: 'never' }),
  },
  'share-forgotten': {
    summary: 'a second try runs beside the first however many others have had one',
    route: hedging({ share: 1 }),
  },
  impatient: {
    summary: 'a second try begins although the first is hardly silent',
    route: (section) => ('hedge' in section ? hedging({ after: '10ms' })(section) : section),
  },
  'traces-left-twice': {
    summary: 'a call of which more than an answer comes is tried twice at once',
    exchange: (exchange) => {
      const set = exchange.set.bind(exchange);
      exchange.set = (fact, value) =>
        set(fact, (fact as unknown) === conversation ? ({ ...value, hasSideEffects: () => false } as never) : value);
    },
  },
};
