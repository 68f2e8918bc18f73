/** A plugin for tests: keeps what was metered of each exchange, and how it ended. */
import { definePlugin, type Outcome } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { call, type UsageReport, usageReport } from '../../plugins/common/domain/calls.ts';

export interface Observed {
  readonly outcome: Outcome;
  /** As it was read when the exchange had ended. */
  readonly report: UsageReport | undefined;
}

const waiting: ((observed: Observed) => void)[] = [];

/** Resolves when the next exchange has ended. */
export function nextObserved(): Promise<Observed> {
  return new Promise((resolve) => waiting.push(resolve));
}

export default definePlugin({
  name: 'probe',
  config: z.strictObject({}),
  requiresAtEnd: [usageReport],
  setup: () => ({
    applies: (endpoint) => endpoint.setsOnOpen?.includes(call) ?? false,
    handle(exchange, next) {
      exchange.defer((outcome) => {
        const live = exchange.find(usageReport);
        const report = live && {
          usage: live.usage,
          estimated: live.estimated,
          terminal: live.terminal,
          upstreamId: live.upstreamId,
          finish: live.finish,
        };
        waiting.shift()?.({ outcome, report });
      });
      return next();
    },
  }),
});
