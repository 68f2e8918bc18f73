/** The usage by which an answer is charged: the vendor's report, completed from the request where the price counts unreported classes. */
import type { Exchange } from '../../core/contract/contract.ts';
import type { Call } from '../common/domain/calls.ts';
import { model } from '../common/domain/models.ts';
import { unitPrice } from '../common/domain/money.ts';
import type { Usage, UsageClass } from '../common/domain/usage.ts';

export interface Measured {
  readonly usage: Usage;
  readonly estimated: boolean;
}

/**
 * `seen`: the best estimate of each class, by the request and the answer. A report is charged as it is, but a class that the
 * price names and the report lacks is estimated: a vendor that counts tokens may serve a model that is sold by the second.
 */
export function completed(reported: Usage | undefined, seen: Usage, isPriced: (name: UsageClass) => boolean): Measured {
  if (reported === undefined) return { usage: seen, estimated: true };
  let usage = reported;
  for (const name of Object.keys(seen) as UsageClass[]) {
    if (reported[name] !== undefined || isCovered(name, reported) || !isPriced(name)) continue;
    usage = { ...usage, [name]: seen[name] };
  }
  return { usage, estimated: usage !== reported };
}

/** Text and audio of a prompt, and of an answer, are reported together. */
function isCovered(name: UsageClass, reported: Usage): boolean {
  const side = sides.find((one) => one.has(name));
  return side !== undefined && [...side].some((other) => reported[other] !== undefined);
}

const sides: readonly ReadonlySet<UsageClass>[] = [
  new Set<UsageClass>(['input', 'input_audio']),
  new Set<UsageClass>(['output', 'output_audio']),
];

/** Properties of a call that are known before its answer. */
export function requestedUsage({ inputTokens, counted }: Call): Usage {
  return { input: inputTokens, ...counted };
}

/** Whether some version of the called model's price counts this class. */
export function pricedIn(exchange: Exchange): (name: UsageClass) => boolean {
  const book = exchange.find(model)?.prices ?? [];
  return (name) => book.some(({ standard }) => unitPrice(standard.price, name) > 0n);
}
