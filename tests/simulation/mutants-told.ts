/** Faults in what a meter reads of an answer. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { type UsageReport, usageReport } from '../../plugins/common/domain/calls.ts';
import type { Mutant } from './mutants.ts';
import type { Counts } from './tariff.ts';
import { added, timesTold } from './told.ts';

/** Changes what a meter has read of an answer that came to its end. */
function metering(exchange: LiveExchange, change: (usage: Counts) => Counts): void {
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    const report = (fact as unknown) === usageReport ? (value as UsageReport) : undefined;
    const isTold = report?.terminal === true && !report.estimated;
    return set(fact, isTold ? ({ ...report, usage: change(report!.usage as Counts) } as never) : value);
  };
}

export const toldMutants: Readonly<Record<string, Mutant>> = {
  'told-again': {
    summary: 'a response that the vendor reports twice is charged twice',
    exchange: (exchange) => {
      metering(exchange, (usage) => (timesTold(exchange.id) > 1 ? added(usage, usage) : usage));
    },
  },
  'tools-unread': {
    summary: 'calls of tools that the vendor has run are not counted',
    exchange: (exchange) => metering(exchange, ({ call: _unread, ...usage }) => usage),
  },
};
