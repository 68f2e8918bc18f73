/** Azure AI Content Safety: attacks in prompts and documents (shieldPrompt), harm in texts (analyze). https://learn.microsoft.com/azure/ai-services/content-safety */

import { z } from '../../../core/contract/schema.ts';
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import type { CheckTools, TextsToJudge } from '../../common/guardrails/checks.ts';
import { asType, eachText, postedObject, type ServiceSettings, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers(),
  shield: z
    .boolean()
    .default(true)
    .describe('Looks for attacks in prompts and tool results. Turn it off where another check does that.'),
  severity: z
    .number()
    .int()
    .min(0)
    .max(7)
    .default(4)
    .describe('Severity of harm from which on it is a finding, from 0 to 7. Lower it to find more.'),
  categories: z
    .array(z.enum(['Hate', 'SelfHarm', 'Sexual', 'Violence']))
    .default(['Hate', 'SelfHarm', 'Sexual', 'Violence'])
    .describe('Kinds of harm that are looked for; an empty list: none. Leave out what does not matter to you.'),
  blocklists: z
    .array(z.string().min(1))
    .default([])
    .describe('Names of the resource’s own block lists. Name those that you keep there.'),
});
type Settings = z.output<typeof config>;

const version = 'api-version=2024-09-01';
/** Longest texts of each operation; longer ones are checked in pieces. */
const most = 10_000;

export const azureContentSafety = asType<Settings>({
  name: 'azure_content_safety',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge(given) {
      const asks: Promise<boolean>[] = [];
      if (settings.shield && given.stage === 'prompt') asks.push(isAttack(settings, tools, given));
      if (settings.categories.length > 0 || settings.blocklists.length > 0) asks.push(isHarm(settings, tools, given));
      return { isHit: (await Promise.all(asks)).includes(true) };
    },
  }),
});

function ask(settings: ServiceSettings, tools: CheckTools, operation: string, body: object, signal: AbortSignal) {
  const headers = settings.key === '' ? {} : { 'ocp-apim-subscription-key': settings.key };
  return postedObject(settings, tools, { path: `/contentsafety/${operation}?${version}`, headers, body, signal });
}

async function isAttack(settings: Settings, tools: CheckTools, { texts, signal }: TextsToJudge): Promise<boolean> {
  const pieces = (isDocument: boolean) =>
    texts.filter(({ role }) => (role === 'tool') === isDocument).flatMap(({ text }) => cut(text));
  const [prompts, documents] = [pieces(false), pieces(true)];
  const bodies: object[] = prompts.map((userPrompt) => ({ userPrompt, documents: [] }));
  // At most five documents a request.
  for (let at = 0; at < documents.length; at += 5)
    bodies.push({ userPrompt: '', documents: documents.slice(at, at + 5) });
  const answers = await Promise.all(bodies.map((body) => ask(settings, tools, 'text:shieldPrompt', body, signal)));
  return answers.some(({ userPromptAnalysis: ofPrompt, documentsAnalysis: ofDocuments }) =>
    [ofPrompt, ...listOf(ofDocuments)].some((one) => {
      if (!isObject(one)) return false;
      if (typeof one['attackDetected'] !== 'boolean') throw new Error('the service does not say what is an attack');
      return one['attackDetected'];
    }),
  );
}

async function isHarm(settings: Settings, tools: CheckTools, { texts, signal }: TextsToJudge): Promise<boolean> {
  const { categories, blocklists, severity } = settings;
  const pieces = texts.flatMap(({ role, text }) => cut(text).map((piece) => ({ role, text: piece })));
  const answers = await eachText(pieces, (text) => {
    const body = { text, categories, blocklistNames: blocklists, outputType: 'EightSeverityLevels' };
    return ask(settings, tools, 'text:analyze', body, signal);
  });
  return answers.some((answer) => listOf(answer['blocklistsMatch']).length > 0 || isSevere(answer, severity));
}

function isSevere(answer: JsonObject, severity: number): boolean {
  if (!Array.isArray(answer['categoriesAnalysis'])) throw new Error('the service has analysed no categories');
  return answer['categoriesAnalysis'].some((one) => isObject(one) && Number(one['severity']) >= severity);
}

const cut = (text: string): string[] =>
  Array.from({ length: Math.ceil(text.length / most) }, (_, index) => text.slice(index * most, (index + 1) * most));
