/** Calls under guardrails: what their checks are to find in them, the real plugin that judges them, and what their clients must get. */
import type { Exchange, Host, Plugin, PluginInstance } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import { z } from '../../core/contract/schema.ts';
import type { InstalledPlugin } from '../../core/http/chain.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { type GuardrailCheckType, guardrailChecks, type TextsToJudge } from '../../plugins/common/guardrails/checks.ts';
import { type AnswerTransform, type CallTransform, callTransforms } from '../../plugins/common/wire/call-transforms.ts';
import { type PromptRule, type PromptText, type PromptTexts, prompts } from '../../plugins/common/wire/prompt-rules.ts';
import guardrails from '../../plugins/guardrails/index.ts';
import { Refusal } from '../../plugins/guardrails/refusal.ts';
import type { Chance } from './chance.ts';
import type { Life, Schedule } from './schedule.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** What the texts of a call say that checks look for; empty: nothing. */
export interface Marks {
  readonly prompt: string;
  readonly answer: string;
  /** The chunk of the answer that says it. */
  readonly chunk: number;
}

/** The model of which the policy charges what a vendor has done when a prompt is refused beside its call. */
const charging = 'large';
/** A verdict that comes later is none. */
const withinMs = 40;
const secret = 'secret';

export function drawMarks(chance: Chance): Marks {
  const drawn = (marks: readonly string[]) => (chance.oneIn(2) ? '' : chance.pick(marks));
  const ofFirst = ['first-hit', 'first-broken', 'first-late'];
  return {
    prompt: drawn([...ofFirst, 'beside-hit', 'beside-hit', 'beside-broken', 'beside-late', secret, secret]),
    answer: drawn(['last-hit', 'last-hit', 'last-broken', secret]),
    chunk: chance.below(3),
  };
}

/** The same call later: a service that was broken may work by then, and finds nothing. */
export function marksAgain(chance: Chance, marks: Marks): Marks {
  const isMended = /-(?:broken|late)$/.test(marks.prompt) && chance.oneIn(2);
  return isMended ? { ...marks, prompt: '' } : marks;
}

const outside = (mark: string, more: object) => ({ type: 'simulated', mark, within: `${withinMs}ms`, ...more });
const checks = {
  first: outside('first', { on: ['prompt'] }),
  mask: { type: 'words', list: [secret], on: ['prompt', 'answer'], do: 'mask' },
  beside: outside('beside', { on: ['prompt'], beside: true }),
  last: outside('last', { on: ['answer'] }),
};
const policy = { checks: Object.keys(checks), uncovered: 'allow' };
const section = {
  checks,
  policies: { kind: policy, strict: { ...policy, charge: 'attempt' } },
  apply: [
    { policy: 'kind', models: ['small'] },
    { policy: 'strict', models: [charging] },
  ],
  stream: { release: 6, overlap: 10 },
};

/** A service that is asked, and finds, breaks or never says what the text says of it. */
function serviceOf(schedule: Schedule, chance: Chance, life: Life): GuardrailCheckType {
  const open = ({ mark }: { readonly mark: string }) => ({
    judge({ texts }: TextsToJudge) {
      const says = (what: string) => texts.some(({ text }) => text.includes(`${mark}-${what}`));
      const judge = () => {
        if (says('broken')) throw new Error('the service is broken');
        return { isHit: says('hit') };
      };
      if (says('late')) return Promise.withResolvers<never>().promise;
      if (chance.oneIn(3)) return judge();
      return new Promise<{ readonly isHit: boolean }>((resolve) => {
        schedule.after(chance.below(withinMs - 5), life, 'verdict', () => resolve(undefined as never));
      }).then(judge);
    },
  });
  const type = { name: 'simulated', config: z.strictObject({ mark: z.string() }), isOutside: true, open };
  return type as unknown as GuardrailCheckType;
}

export interface GuardRoom {
  readonly installed: readonly InstalledPlugin[];
  /** The check of an answer. */
  readonly transform: CallTransform;
}

interface GuardGround {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly life: Life;
  /** The texts of a request. */
  readonly textsOf: (exchange: Exchange) => PromptTexts;
}

/** The plugin and what gives it texts, on a host without a table of verdicts. */
export async function openGuardRoom(host: Host, ground: GuardGround): Promise<GuardRoom> {
  const points = new Map<unknown, unknown[]>();
  const extend = (point: unknown, extension: unknown) =>
    void points.set(point, [...(points.get(point) ?? []), extension]);
  extend(guardrailChecks, serviceOf(ground.schedule, ground.chance, ground.life));
  const own = {
    ...host,
    extend,
    extensions: (point: unknown) => points.get(point) ?? [],
    find: (service: unknown) => (service === database ? undefined : host.find(service as typeof database)),
  } as unknown as Host;
  const config = (guardrails.config as unknown as { parse(value: unknown): never }).parse(section);
  const instance = await guardrails.setup(own, config);
  const [rule] = points.get(prompts) as PromptRule[];
  const reader: PluginInstance = {
    async handle(exchange, next) {
      const context = { operation: 'chat', requestId: exchange.id, find: exchange.find.bind(exchange) };
      if (rule!.applies!(context)) await rule!.prompt(ground.textsOf(exchange), context);
      return next();
    },
  };
  const plugin = guardrails as unknown as Plugin;
  const transforms = points.get(callTransforms) as CallTransform[];
  return {
    installed: [
      { plugin, instance },
      { plugin: { ...plugin, name: 'prompts' }, instance: reader },
    ],
    transform: transforms.find(({ name }) => name === 'guardrails')!,
  };
}

/** The texts of one call on their way. */
export class GuardedTexts {
  readonly #marks: Marks;
  readonly #trace: Trace;
  readonly #violations: Violations;
  #prompt: PromptText;
  #transform: AnswerTransform | undefined;
  #released = '';

  constructor(marks: Marks, trace: Trace, violations: Violations) {
    this.#marks = marks;
    this.#trace = trace;
    this.#violations = violations;
    const text = `Say something ${marks.prompt} of it.`;
    this.#prompt = { role: 'user', kind: 'text', field: 'messages[0].content', turn: 1, text };
  }

  get prompt(): PromptTexts {
    const replace = (text: PromptText, by: string) => {
      this.#prompt = { ...text, text: by };
    };
    return { texts: [this.#prompt], unread: [], replace };
  }

  /** A vendor has the request. */
  sent(): void {
    const { text } = this.#prompt;
    if (/first-/.test(text)) this.#fault('a vendor has a prompt that was refused, or could not be judged');
    if (text.includes(secret)) this.#fault('a vendor has a text that is masked');
  }

  /** An answer comes. */
  begin(transform: CallTransform, exchange: Exchange): void {
    this.#transform = transform.answer!(exchange);
    this.#released = '';
    const start = this.#pass({ type: 'text-start', block: 0, choice: 0 });
    if (start instanceof Promise) throw new Error('the start of a text waits');
  }

  /** A chunk of the answer, its end, or all of it at once. Rejects with the error that ends it. */
  async chunk(index: number): Promise<void> {
    const text = index === this.#marks.chunk ? `it is ${this.#marks.answer} and ` : 'some more ';
    await this.#pass({ type: 'text-delta', block: 0, choice: 0, text, logprobs: undefined });
  }

  async end(): Promise<void> {
    await this.#pass({ type: 'text-end', block: 0, choice: 0, opaqueState: undefined });
    await this.#pass({ type: 'stop', choice: 0, reason: 'stop', sequence: undefined });
  }

  async whole(chunks: number): Promise<void> {
    for (let index = 0; index < chunks; index += 1) await this.chunk(index);
    await this.end();
  }

  /** What the client has of the answer; `isWhole`: up to its end. */
  got(isWhole: boolean, chunks: number): void {
    if (/beside-/.test(this.#prompt.text)) this.#fault('is answered, and its prompt was refused beside the call');
    if (this.#released.includes(secret)) this.#fault('the client reads a text that is masked');
    const isSaid = this.#marks.chunk < chunks && this.#marks.answer.startsWith('last-');
    if (isWhole && isSaid) this.#fault('a refused answer has come to its end');
    if (/last-/.test(this.#released)) this.#fault('the client reads a text that is refused');
  }

  /** Whether nothing is to be paid behind this error of the checks of its prompt; undefined: it is none of theirs. */
  sparedBy(error: GatewayError, model: string): boolean | undefined {
    const isRefusal = error.code === 'content_policy_violation';
    if (!isRefusal && error.code !== 'guardrail_unavailable') return undefined;
    // Behind an answer that was paid for, no one is asked to try again.
    const isOfAnswer = error instanceof Refusal ? error.stage === 'answer' : error.shouldRetry === false;
    const mark = isOfAnswer ? this.#marks.answer : this.#marks.prompt;
    // A service that was broken again and again is left alone for a while: then the calls of others end so.
    if (isRefusal && !mark.endsWith('-hit')) this.#fault(`is refused, and its text says "${mark}"`);
    return !isOfAnswer && !(isRefusal && model === charging);
  }

  #pass(event: Parameters<AnswerTransform['event']>[0]): void | Promise<void> {
    const take = (events: readonly (typeof event)[]) => {
      for (const made of events) if (made.type === 'text-delta') this.#released += made.text;
    };
    const made = this.#transform?.event(event) ?? [event];
    return made instanceof Promise ? made.then(take) : take(made);
  }

  #fault(what: string): void {
    this.#violations.add('guard', this.#trace.id, what);
  }
}
