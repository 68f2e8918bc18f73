/** What the checks of one call have said, as it is shown to the client and stored. */

import type { CheckVerdict } from '../common/guardrails/checks.ts';

export type Said = CheckVerdict['verdict'];
/** In the order of their weight. */
const weights: readonly Said[] = ['passed', 'broken', 'logged', 'masked', 'refused'];

export interface Verdict {
  readonly check: string;
  readonly stage: CheckVerdict['stage'];
  said: Said;
  findings: number;
  ms: number;
  /** Stands for the first finding. */
  digest: string;
}

export const verdictHeader = 'x-gateway-guardrails';

export class Verdicts {
  readonly #all = new Map<string, Verdict>();

  /** A check may be asked several times at a stage: the gravest verdict counts, with all findings and all time. */
  add(said: Omit<Verdict, 'said'> & { readonly said: Said }): void {
    const key = `${said.stage} ${said.check}`;
    const known = this.#all.get(key);
    if (known === undefined) {
      this.#all.set(key, { ...said });
      return;
    }
    if (weights.indexOf(said.said) > weights.indexOf(known.said)) known.said = said.said;
    known.findings += said.findings;
    known.ms += said.ms;
    if (known.digest === '') known.digest = said.digest;
  }

  get all(): readonly Verdict[] {
    return [...this.#all.values()];
  }

  /** `pii=masked(2), attack=passed`; undefined: none has said anything yet. */
  get header(): string | undefined {
    const byCheck = new Map<string, { said: Said; findings: number }>();
    for (const { check, said, findings } of this.#all.values()) {
      const known = byCheck.get(check) ?? { said: 'passed', findings: 0 };
      const isGraver = weights.indexOf(said) > weights.indexOf(known.said);
      byCheck.set(check, { said: isGraver ? said : known.said, findings: known.findings + findings });
    }
    if (byCheck.size === 0) return undefined;
    return [...byCheck]
      .map(([check, { said, findings }]) => `${check}=${said}${findings > 0 ? `(${findings})` : ''}`)
      .join(', ');
  }
}
