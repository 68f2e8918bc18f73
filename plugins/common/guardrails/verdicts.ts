/** The console's contract: what checks have said of calls. Types alone. */
import { defineService } from '../../../core/contract/contract.ts';

export interface GuardrailVerdicts {
  /**
   * By the ids of these calls, in the form of the header `x-gateway-guardrails`: `pii=masked(2), attack=passed`. Calls without checks are left
   * out; a verdict comes within a second of the call's end.
   */
  of(
    calls: readonly { readonly requestId: string; readonly accountId: string }[],
  ): Promise<ReadonlyMap<string, string>>;
}

/** Provided by `guardrails`, where there is a database. */
export const guardrailVerdicts = defineService<GuardrailVerdicts>('guardrail verdicts');
