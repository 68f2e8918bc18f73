/** The rules of other plugins about texts for models: called once for each request, of every operation, before it costs anything. */
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Notice,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { rethrowOfRule } from '../../core/contract/errors.ts';
import { z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { call, ruled, vendorBatch } from '../common/domain/calls.ts';
import { plan } from '../common/domain/plans.ts';
import { guarded } from '../common/guardrails/checks.ts';
import { boundaryIn } from '../common/kit/forms/multipart.ts';
import { streamedForm } from '../common/kit/forms/streamed-form.ts';
import {
  type PromptContext,
  type PromptRule,
  type PromptTexts,
  promptRules,
  prompts,
} from '../common/wire/prompt-rules.ts';
import { KeptForm, WholeForm } from './form.ts';
import { JsonTexts } from './texts.ts';

export default definePlugin({
  name: 'prompts',
  config: z.strictObject({}),
  extensionPoints: [prompts],
  services: { provides: [promptRules] },
  requires: [call],
  optional: [caller, plan, guarded],
  sets: [ruled],
  setup(host) {
    const rulesOf = (operation: string) =>
      host.extensions(prompts).filter(({ operations }) => operations?.includes(operation) ?? true);
    host.provide(promptRules, {
      textsOf,
      pass(message, context) {
        const rules = rulesOf(context.operation).filter((rule) => rule.applies?.(context) ?? true);
        if (rules.length === 0) return undefined;
        const texts = new JsonTexts(message);
        const waits = run(rules, texts, context);
        return waits === undefined ? texts.written() : waits.then(() => texts.written());
      },
    });
    const instance: PluginInstance = {
      // A request without a body is a session's step, of which each message is read.
      applies: (endpoint) => isRead(endpoint) && endpoint.body !== 'none' && rulesOf(endpoint.operation).length > 0,
      handle(exchange, next) {
        exchange.set(ruled, true);
        // The answer of a vendor's batch has come: its line has passed the rules when it was ordered.
        if (exchange.find(vendorBatch) === 'answer') return next();
        const context = contextOf(exchange);
        const rules = rulesOf(context.operation).filter((rule) => rule.applies?.(context) ?? true);
        return rules.length === 0 ? next() : pass(exchange, rules, context).then(() => next());
      },
      checks: { notices: () => noticesOf(host.extensions(prompts), host.endpoints()) },
    };
    return instance;
  },
});

/** A request with a call has texts that are read. */
function isRead({ setsOnOpen = [] }: Endpoint): boolean {
  return setsOnOpen.includes(call);
}

function contextOf(exchange: Exchange): PromptContext {
  const { id, endpoint } = exchange;
  return { operation: endpoint.operation, requestId: id, find: (key) => exchange.find(key) };
}

async function pass(exchange: Exchange, rules: readonly PromptRule[], context: PromptContext): Promise<void> {
  const texts = textsOf(exchange);
  await run(rules, texts, context);
  const written = 'written' in texts ? texts.written() : undefined;
  if (written !== undefined) await exchange.replaceBody(written);
}

function textsOf(exchange: Exchange): JsonTexts | WholeForm | KeptForm {
  const parts = exchange.find(streamedForm);
  if (parts !== undefined) return new KeptForm(parts);
  const { body, headers } = exchange.request;
  const boundary = boundaryIn(headers['content-type']);
  return boundary === undefined ? new JsonTexts(body) : new WholeForm(body, boundary);
}

/** The rules one after the other; undefined: none waits. */
function run(
  rules: readonly PromptRule[],
  texts: PromptTexts,
  context: PromptContext,
  from = 0,
): Promise<void> | undefined {
  for (let index = from; index < rules.length; index++) {
    let waits: void | Promise<void>;
    try {
      waits = rules[index]!.prompt(texts, context);
    } catch (error) {
      return rethrowOfRule(error);
    }
    if (waits !== undefined) return waits.catch(rethrowOfRule).then(() => run(rules, texts, context, index + 1));
  }
  return undefined;
}

/** Says which operations a rule does not see. */
function noticesOf(rules: readonly PromptRule[], endpoints: readonly Endpoint[]): Notice[] {
  const all = new Set(endpoints.map(({ operation }) => operation));
  const read = new Set(endpoints.filter(isRead).map(({ operation }) => operation));
  const forwarded = endpoints.filter((endpoint) => endpoint.handle === undefined && !read.has(endpoint.operation));
  const never = forwarded.map(({ operation }) => operation);
  const warning = (text: string): Notice => ({ level: 'warning', text });
  return rules.flatMap(({ name, operations }) => {
    const unknown = (operations ?? []).filter((operation) => !all.has(operation));
    const missed = [...read].filter((operation) => operations?.includes(operation) === false);
    const unseen = [...new Set([...missed, ...never])].toSorted();
    const of = `The prompt rule "${name}"`;
    return [
      ...unknown.map((operation) =>
        warning(`${of} names the operation "${operation}", which no endpoint of this gateway has.`),
      ),
      ...(unseen.length === 0 ? [] : [warning(`${of} does not see these operations: ${unseen.join(', ')}.`)]),
    ];
  });
}
