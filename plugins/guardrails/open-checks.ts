/** The checks of a section, opened, and asked within their time. */
import { createHash } from 'node:crypto';
import type { Host } from '../../core/contract/contract.ts';
import type { SectionPart } from '../../core/contract/remarks.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import type {
  CheckTools,
  GuardrailCheck,
  GuardrailCheckType,
  Judgement,
  TextsToJudge,
} from '../common/guardrails/checks.ts';
import { type CommonSettings, type GuardrailsConfig, ownMembers } from './config.ts';

export interface OpenCheck {
  readonly name: string;
  readonly settings: CommonSettings;
  readonly check: GuardrailCheck;
  readonly breaker: Breaker;
  /** A digest of its name, its settings, and the files that it was opened with. */
  readonly digest: string;
}

export type OpenChecks = ReadonlyMap<string, OpenCheck>;

type Types = readonly GuardrailCheckType[];

/** Throws an Error with a sentence for a section that cannot work. */
export async function openChecks(section: GuardrailsConfig, types: Types, tools: CheckTools): Promise<OpenChecks> {
  const open = new Map<string, OpenCheck>();
  for (const [name, settings] of Object.entries(section.checks)) {
    const type = types.find((one) => one.name === settings.type);
    if (type === undefined) throw new Error(`checks.${name}.type: ${unknownType(settings.type, types)}`);
    const parsed = (type.config as unknown as SectionPart['schema']).safeParse(ownMembers(settings));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new Error(`checks.${name}.${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'cannot be read'}`);
    }
    try {
      const hash = createHash('sha256').update(JSON.stringify([name, settings]));
      const read = async (path: string) => {
        const text = await tools.read(path);
        hash.update(text);
        return text;
      };
      const check = await type.open(parsed.data, { ...tools, read });
      open.set(name, { name, settings, check, breaker: new Breaker(tools.clock), digest: hash.digest('hex') });
    } catch (error) {
      throw new Error(`checks.${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return open;
}

export function unknownType(name: string, types: Types): string {
  const names = types.map((one) => one.name);
  return `there is no type of check "${name}"${didYouMean(name, names)}`;
}

const mostFailures = 5;
const restMs = 10_000;

/** A service that fails again and again is left alone for a while; then one call tries it. */
export class Breaker {
  readonly #clock: Host['clock'];
  #failures = 0;
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Host['clock']) {
    this.#clock = clock;
  }

  get isOpen(): boolean {
    if (this.#failures < mostFailures) return false;
    const now = this.#clock.monotonic();
    if (now < this.#restsUntil) return true;
    this.#restsUntil = now + restMs;
    return false;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures++;
    if (this.#failures >= mostFailures) this.#restsUntil = this.#clock.monotonic() + restMs;
  }
}

/** A verdict, or why there is none. */
export type Outcome = (Judgement & { readonly ms: number }) | { readonly broken: unknown; readonly ms: number };

/** What a check is asked; one that does not wait asks for no signal. */
class Asked implements TextsToJudge {
  readonly stage: TextsToJudge['stage'];
  readonly operation: string;
  readonly texts: TextsToJudge['texts'];
  readonly unread: number;
  readonly schema: TextsToJudge['schema'];
  readonly ask: TextsToJudge['ask'];
  #abort: AbortController | undefined;

  constructor({ stage, operation, texts, unread, schema, ask: request }: Omit<TextsToJudge, 'signal'>) {
    this.stage = stage;
    this.operation = operation;
    this.texts = texts;
    this.unread = unread;
    this.schema = schema;
    this.ask = request;
  }

  get signal(): AbortSignal {
    return this.#aborting.signal;
  }

  abort(): void {
    this.#aborting.abort();
  }

  get #aborting(): AbortController {
    this.#abort ??= new AbortController();
    return this.#abort;
  }
}

/** Never throws or rejects. A promise only where the check waits. */
export function ask(
  one: OpenCheck,
  given: Omit<TextsToJudge, 'signal'>,
  clock: Host['clock'],
): Outcome | Promise<Outcome> {
  const { check, settings, breaker } = one;
  if (breaker.isOpen) return { broken: new Error('the check rests after failures'), ms: 0 };
  const start = clock.monotonic();
  const asked = new Asked(given);
  try {
    const judgement = check.judge(asked);
    if (!(judgement instanceof Promise)) return heard(breaker, judgement, clock.monotonic() - start);
    const inside = check.waitsForTurns === true ? judgement : inTime(judgement, settings.within, asked);
    return inside.then(
      (verdict) => heard(breaker, verdict, clock.monotonic() - start),
      (error: unknown) => broken(breaker, error, clock.monotonic() - start),
    );
  } catch (error) {
    return broken(breaker, error, clock.monotonic() - start);
  }
}

function heard(breaker: Breaker, judgement: Judgement, ms: number): Outcome {
  if (typeof judgement?.isHit !== 'boolean') return broken(breaker, new Error('the check gave no verdict'), ms);
  breaker.succeeded();
  return { isHit: judgement.isHit, found: judgement.found ?? [], ms };
}

function broken(breaker: Breaker, error: unknown, ms: number): Outcome {
  breaker.failed();
  return { broken: error, ms };
}

async function inTime<T>(awaited: Promise<T>, ms: number, asked: Asked): Promise<T> {
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    over.reject(new Error(`no verdict came within ${ms} ms`));
    asked.abort();
  }, ms);
  try {
    return await Promise.race([awaited, over.promise]);
  } finally {
    clearTimeout(timer);
  }
}
