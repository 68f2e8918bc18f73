/** Faults in what a meter reads of an answer. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { type Conversation, conversation, type UsageReport, usageReport } from '../../plugins/common/domain/calls.ts';
import type { Mutant } from './mutants.ts';
import { editing } from './mutants-tools.ts';
import { added, timesReported } from './reported.ts';
import type { Counts } from './tariff.ts';

/** Changes what a meter has read of an answer that came to its end. */
function metering(exchange: LiveExchange, change: (usage: Counts) => Counts): void {
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    const report = (fact as unknown) === usageReport ? (value as UsageReport) : undefined;
    const isReported = report?.terminal === true && !report.estimated;
    return set(fact, isReported ? ({ ...report, usage: change(report!.usage as Counts) } as never) : value);
  };
}

/** Changes the mark of each conversation. */
function marking(exchange: LiveExchange, change: (mark: number | undefined) => number | undefined): void {
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    if ((fact as unknown) !== conversation) return set(fact, value);
    return set(fact, { ...value, mark: change((value as Conversation).mark) } as never);
  };
}

export const reportMutants: Readonly<Record<string, Mutant>> = {
  'reported-again': {
    summary: 'a response that the vendor reports twice is charged twice',
    exchange: (exchange) => {
      metering(exchange, (usage) => (timesReported(exchange.id) > 1 ? added(usage, usage) : usage));
    },
  },
  'tools-unread': {
    summary: 'calls of tools that the vendor has run are not counted',
    exchange: (exchange) => metering(exchange, ({ call: _unread, ...usage }) => usage),
  },
  'conversation-ignored': {
    summary: 'a call without a report is charged by its size although its conversation is known',
    exchange: (exchange) => marking(exchange, () => undefined),
  },
  'conversations-mixed': {
    summary: 'a call without a report is charged by the last call of another conversation',
    exchange: (exchange) => marking(exchange, (mark) => mark && 2),
  },
  'estimate-unmarked': {
    summary: 'an estimate is not marked as one',
    link: editing((record) => (record.kind === 'SETTLE' ? { ...record, estimated: false } : record)),
  },
};
