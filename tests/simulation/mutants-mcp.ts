/** Faults in what calls of tools cost. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { type Attempt, attempts, type UsageReport, usageReport } from '../../plugins/common/domain/calls.ts';
import { searchModel } from '../../plugins/web-search/search.ts';
import type { Mutant } from './mutants.ts';
import { redefine } from './mutants-tools.ts';
import { toolEndpoint } from './tools.ts';

/** Reads the end of each call of a tool as another one. */
function ending(exchange: LiveExchange, change: (end: Attempt['result'], attempt: Attempt) => Attempt['result']): void {
  if (exchange.endpoint !== toolEndpoint) return;
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    if ((fact as unknown) === attempts)
      for (const attempt of value as readonly Attempt[]) {
        let end = attempt.result;
        const put = (given: Attempt['result']) => {
          end = given;
        };
        redefine(attempt, 'result', { get: () => change(end, attempt), set: put });
      }
    set(fact, value);
  };
}

/** What its client has cancelled, or left, reads as refused and has used nothing. */
function cancelledFree(exchange: LiveExchange): void {
  const isCancelled = (attempt: Attempt | undefined) => attempt?.error === 'cancelled';
  ending(exchange, (end, attempt) => (isCancelled(attempt) ? 'refused' : end));
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    if ((fact as unknown) !== usageReport) return set(fact, value);
    const report = value as UsageReport;
    const get = () => (isCancelled(exchange.find(attempts)?.[0]) ? {} : report.usage);
    return set(fact, redefine({ ...report }, 'usage', { get }) as typeof value);
  };
}

/** That it failed before its client left is not kept. */
function failedWhenever(exchange: LiveExchange): void {
  if (exchange.endpoint !== toolEndpoint) return;
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    if ((fact as unknown) === attempts)
      for (const attempt of value as readonly Attempt[])
        redefine(attempt, 'failedFirst', { get: () => undefined, set: () => {} });
    set(fact, value);
  };
}

/** A search that its client has left reads as refused and has used nothing. */
function leftFree(exchange: LiveExchange): void {
  const hasLeft = () =>
    exchange.aborted?.kind === 'client_left' && exchange.find(attempts)?.[0]?.protocol === searchModel;
  ending(exchange, (end) => (hasLeft() ? 'refused' : end));
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    if ((fact as unknown) !== usageReport || exchange.endpoint !== toolEndpoint) return set(fact, value);
    const report = value as UsageReport;
    const get = () => (hasLeft() ? {} : report.usage);
    return set(fact, redefine({ ...report }, 'usage', { get }) as typeof value);
  };
}

export const mcpMutants: Readonly<Record<string, Mutant>> = {
  'tool-failed-and-charged': {
    summary: 'a call of a tool that has failed is charged although its price does not say so',
    exchange: (exchange) => ending(exchange, (end) => (end === 'refused' ? 'answered' : end)),
  },
  'tool-left-and-free': {
    summary: 'a call of a tool that its client has cancelled or left costs nothing although it was sent',
    exchange: cancelledFree,
  },
  'tool-left-unsent-and-charged': {
    summary: 'a call of a tool is charged whose client has left before it was sent',
    exchange: (exchange) => ending(exchange, (end) => (end === 'not_sent' ? 'running' : end)),
  },
  'tool-broken-and-charged': {
    summary: 'a call of a tool that broke off is charged where its client leaves before it has the error',
    exchange: failedWhenever,
  },
  'search-left-and-free': {
    summary: 'a web search that its client has left costs nothing although the engine has answered it',
    exchange: leftFree,
  },
};
