/** `guardrails try`: what a policy finds in a text, without a call. */
import { readFile } from 'node:fs/promises';
import type { Command } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { type CallTools, GuardedCall } from './guarded-call.ts';
import type { OpenCheck } from './open-checks.ts';
import type { Policies } from './policies.ts';
import type { VerdictRows } from './rows.ts';

interface Trial {
  readonly check: string;
  readonly verdict: string;
  readonly findings: number;
  readonly milliseconds: number;
}

interface Tried {
  readonly checks: readonly Trial[];
  /** The text as a model or a client gets it; absent: it is refused. */
  readonly text?: string;
}

/** Each check gets the text as the ones before it have left it. */
export async function tryText(
  checks: readonly OpenCheck[],
  written: string,
  stage: 'prompt' | 'answer',
  tools: CallTools,
): Promise<Tried> {
  const call = new GuardedCall(checks, { operation: 'try' }, tools);
  call.placeholders.avoid(written);
  let text = written;
  let isRefused = false;
  const places = stage === 'prompt' ? (['prompt', 'messages'] as const) : (['answer', 'text'] as const);
  for (const check of call.at(...places)) {
    const piece = {
      texts: [{ role: stage === 'prompt' ? 'user' : 'assistant', text }] as const,
      write: (by: string) => {
        text = by;
      },
    };
    try {
      const found = await call.judge(check, stage, { texts: piece.texts });
      call.mask(
        { texts: piece.texts, write: (changes) => piece.write(withChanges(text, changes.get(0) ?? [])) },
        found,
      );
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      isRefused = true;
    }
  }
  const trials = call.verdicts.all.map(({ check, said, findings, ms }) => ({
    ...{ check, verdict: said, findings },
    milliseconds: Math.round(ms),
  }));
  return isRefused ? { checks: trials } : { checks: trials, text };
}

function withChanges(text: string, changes: readonly { start: number; end: number; by: string }[]): string {
  return changes.reduceRight((made, { start, end, by }) => made.slice(0, start) + by + made.slice(end), text);
}

export function tryCommand(policies: () => Promise<Policies>, tools: CallTools): Command {
  return {
    name: 'guardrails try',
    summary: 'what the checks of a policy find in the text of a file, without a call',
    arguments: ['<file>'],
    options: {
      '--policy <name>': 'the policy, of those in `guardrails.policies`',
      '--stage <stage>': 'prompt (usual) or answer',
    },
    async run({ file, policy, stage = 'prompt' }) {
      if (typeof policy !== 'string') throw refused('Name a policy: --policy NAME.');
      if (stage !== 'prompt' && stage !== 'answer') throw refused('The stage is prompt or answer.');
      const checks = (await policies()).named(policy);
      if (checks === undefined) throw refused(`There is no policy "${policy}" in guardrails.policies.`);
      const text = await readFile(String(file), 'utf8').catch(() => {
        throw refused(`The file ${String(file)} cannot be read.`);
      });
      const tried = await tryText(checks, text, stage, tools);
      const lines = tried.checks.map(
        ({ check, verdict, findings, milliseconds }) =>
          `${check}: ${verdict}, findings: ${findings}, ${milliseconds} ms`,
      );
      const rest = tried.text === undefined ? 'The text is refused.' : tried.text;
      return { json: tried, text: [...lines, '', rest].join('\n'), exitCode: tried.text === undefined ? 2 : 0 };
    },
  };
}

const dayMs = 24 * 3_600_000;

export function reportCommand(rows: VerdictRows, clock: Host['clock']): Command {
  return {
    name: 'guardrails report',
    summary: 'what checks have said: calls by verdict, and how long they took',
    options: { '--days <days>': 'of so many days (usual: 7)' },
    async run({ days = '7' }) {
      const number = Number(days);
      if (!Number.isInteger(number) || number < 1) throw refused('--days is a whole number from 1 on.');
      const rates = await rows.rates(clock.now() - number * dayMs);
      const lines = rates.map(({ check, stage, calls, verdicts, milliseconds }) => {
        const said = Object.entries(verdicts).map(([verdict, count]) => `${verdict} ${count}`);
        return `${check} (${stage}): ${calls} calls, ${said.join(', ')}; ${Math.round(milliseconds)} ms a call`;
      });
      return { json: { checks: rates }, text: lines.length === 0 ? 'No call was checked.' : lines.join('\n') };
    },
  };
}

function refused(message: string): GatewayError {
  return new GatewayError('invalid_request', message);
}
