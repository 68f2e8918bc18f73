/** The console's contract: what checks have said of calls. Types, and the names of verdicts. */
import type { SQL } from 'drizzle-orm';
import { defineService } from '../../../core/contract/contract.ts';
import type { Span } from '../domain/admin/pages.ts';

/** What a list of requests may be narrowed by: all but `passed`. */
export const findingVerdicts = ['refused', 'masked', 'logged', 'broken'] as const;

/** Requests in which a check has found something, or was broken. At least one of the two. */
export interface FindingFilter {
  /** Name of the check. */
  readonly check?: string | undefined;
  readonly verdict?: (typeof findingVerdicts)[number] | undefined;
}

export interface GuardrailVerdicts {
  /**
   * By the ids of these calls, in the form of the header `x-gateway-guardrails`: `pii=masked(2), attack=passed`. Calls without checks are left
   * out; a verdict comes within a second of the call's end.
   */
  of(
    calls: readonly { readonly requestId: string; readonly accountId: string }[],
  ): Promise<ReadonlyMap<string, string>>;
  /** The ids of requests of these findings, the newest 50,000 of the span: a query of one column of UUIDs. */
  found(filter: FindingFilter, span: Span, accountId: string | undefined): SQL;
}

/** Provided by `guardrails`, where there is a database. */
export const guardrailVerdicts = defineService<GuardrailVerdicts>('guardrail verdicts');
