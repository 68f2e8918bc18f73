/** Matches endpoints against the rules that configuration names them by. */
import type { Endpoint, Notice } from '../../../core/contract/contract.ts';
import { didYouMean } from '../../../core/tools/near-names.ts';

/** Whether a rule of an endpoint list (`GET /v1/models`) or an operation name (`chat`) names this endpoint. */
export function endpointMatches(rule: string, endpoint: Endpoint): boolean {
  return rule === endpoint.operation || rule === `${endpoint.method} ${endpoint.path}`;
}

/** A warning for each rule of a setting that names no endpoint: what it says of one would silently not hold. */
export function unmatchedRules(setting: string, rules: readonly string[], endpoints: readonly Endpoint[]): Notice[] {
  const known = new Set(endpoints.flatMap(({ method, path, operation }) => [operation, `${method} ${path}`]));
  return rules
    .filter((rule) => !known.has(rule))
    .map((rule) => ({
      level: 'warning',
      text: `${setting} names "${rule}", which is no endpoint of this gateway${didYouMean(rule, known)}`,
    }));
}
